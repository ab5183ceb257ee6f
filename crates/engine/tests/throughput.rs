//! Goal: provisioned throughput is what it says, for each physical partition, and no more is
//! refused than must be.
//! Method: a clock that stands still, and requests whose prices are known.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::*;
use engine::ops::*;
use engine::{Container, Engine, Error, Options, Owner};
use model::partition_key::PartitionKey;
use serde_json::json;

fn enforced() -> Db {
    let mut db = Db::memory();
    let options = Options {
        clock: db.clock.clone(),
        is_background: false,
        enforces_throughput: true,
        ..Options::new(0)
    };
    db.engine = Engine::open(db.store.clone(), options).unwrap();
    db
}

/// Creates items in a logical partition until one is refused: the price of all, when to come back.
fn exhaust(db: &Db, c: &Arc<Container>, key: &str, bytes: usize) -> (f64, Duration) {
    let mut spent = 0;
    for n in 0.. {
        let id = format!("{key}-{n}-{}", db.clock_millis());
        match db.create(c, json!({"id": id, "pk": key, "text": "x".repeat(bytes)})) {
            Ok(answer) => spent += answer.charge.raw(),
            Err(Error::Throttled { retry_after }) => {
                return (spent as f64 / 2_100_000.0, retry_after);
            }
            Err(error) => panic!("{error}"),
        }
    }
    unreachable!("an endless loop ends by returning")
}

trait Millis {
    fn clock_millis(&self) -> u64;
}

impl Millis for Db {
    fn clock_millis(&self) -> u64 {
        base::Clock::now(&*self.clock).as_millis()
    }
}

fn read(db: &Db, c: &Container, key: &str) -> engine::Result<ItemAnswer> {
    let key = PartitionKey::parse(&json!([key]).to_string()).unwrap();
    db.engine.read_item(&db.ctx(), c, &key, "absent", &EtagCondition::None, None)
}

fn is_throttled<T>(result: &engine::Result<T>) -> bool {
    matches!(result, Err(Error::Throttled { .. }))
}

#[test]
fn a_second_of_throughput_and_a_debt() {
    let db = enforced();
    let c = db.container_with(json!({}), Some(Throughput::Manual(400)));
    let (spent, retry_after) = exhaust(&db, &c, "p", 10);
    assert!((400.0..=407.0).contains(&spent), "{spent}");
    let owed = Duration::from_secs_f64((spent - 400.0) / 400.0);
    assert!(
        retry_after > owed && retry_after <= owed + Duration::from_millis(2),
        "{retry_after:?}"
    );
    for _ in 0..5 {
        assert!(is_throttled(&db.create(&c, json!({"id": "x", "pk": "p"}))), "refusals are free");
    }
    db.clock.advance(retry_after - Duration::from_millis(1));
    assert!(is_throttled(&db.create(&c, json!({"id": "x", "pk": "p"}))));
    db.clock.advance(Duration::from_millis(1));
    db.create(&c, json!({"id": "x", "pk": "p"})).unwrap();
    db.clock.advance(Duration::from_secs(100));
    let (spent, _) = exhaust(&db, &c, "p", 10);
    assert!((400.0..=407.0).contains(&spent), "no more than a second is saved: {spent}");
}

#[test]
fn everything_about_items_is_limited_and_nothing_else() {
    let db = enforced();
    let c = db.container_with(json!({}), Some(Throughput::Manual(400)));
    db.create(&c, json!({"id": "a", "pk": "p"})).unwrap();
    exhaust(&db, &c, "p", 10);
    let (ctx, page) = (db.ctx(), PageRequest::default());
    assert!(is_throttled(&read(&db, &c, "p")));
    assert!(is_throttled(&db.delete(&c, "[\"p\"]", "a")));
    assert!(is_throttled(&db.batch(&c, "[\"p\"]", vec![create(json!({"id": "b", "pk": "p"}))])));
    assert!(is_throttled(&db.engine.read_feed(&ctx, &c, &Scope::Container, &page)));
    let query = QueryText { text: "SELECT * FROM c".into(), parameters: Vec::new() };
    assert!(is_throttled(&db.engine.query_items(&ctx, &c, &Scope::Container, &query, &page)));
    let changes = ChangeFeedRequest {
        mode: ChangeFeedMode::LatestVersion,
        start: ChangeFeedStart::Beginning,
        is_enveloped: false,
        items_max: None,
        session: None,
    };
    assert!(is_throttled(&db.engine.change_feed(&ctx, &c, &Scope::Container, &changes)));
    assert!(db.engine.query_plan(&c, &query, None).is_ok());
    assert!(db.engine.read_container("d", "c").is_ok());
    assert_eq!(c.ranges().len(), 1);
    let refused: u64 = db.engine.usage()[0].partitions.iter().map(|one| one.refused).sum();
    assert_eq!(refused, 7);
}

#[test]
fn a_hot_partition_leaves_the_others_alone() {
    let db = enforced();
    let excluded = json!({"indexingPolicy": {"excludedPaths": [{"path": "/*"}]}});
    let c = db.container_with(excluded, Some(Throughput::Manual(20_000)));
    let partition =
        |key: &str| c.partition_of(&PartitionKey::parse(&json!([key]).to_string()).unwrap());
    let cold = (0..100).map(|n| format!("k{n}")).find(|key| partition(key) != partition("hot"));
    let (spent, _) = exhaust(&db, &c, "hot", 1 << 20);
    assert!((10_000.0..=10_700.0).contains(&spent), "half of the container's: {spent}");
    assert!(is_throttled(&read(&db, &c, "hot")));
    let cold = cold.unwrap();
    assert!(matches!(read(&db, &c, &cold), Err(Error::NotFound)));
    let query = QueryText { text: "SELECT * FROM c".into(), parameters: Vec::new() };
    let page = PageRequest::default();
    let ask = |scope| db.engine.query_items(&db.ctx(), &c, &scope, &query, &page);
    assert!(is_throttled(&ask(Scope::Container)), "who needs both waits for both");
    let key = PartitionKey::parse(&json!([cold]).to_string()).unwrap();
    assert!(ask(Scope::PartitionKey(key)).is_ok());
}

#[test]
fn containers_share_the_throughput_of_their_database() {
    let db = enforced();
    let throughput = Some(Throughput::Manual(400));
    db.engine.create_database(&db.ctx(), &json!({"id": "d"}), throughput).unwrap();
    let a = db.container(json!({"id": "a"}));
    let b = db.container(json!({"id": "b"}));
    let own = db.container_with(json!({"id": "own"}), throughput);
    exhaust(&db, &a, "p", 10);
    assert!(is_throttled(&read(&db, &b, "q")));
    assert!(matches!(read(&db, &own, "q"), Err(Error::NotFound)));
}

#[test]
fn a_replaced_offer_counts_at_once() {
    let db = enforced();
    let c = db.container_with(json!({}), Some(Throughput::Autoscale(1000)));
    let (spent, _) = exhaust(&db, &c, "p", 10);
    assert!((1000.0..=1007.0).contains(&spent), "autoscale is at its maximum at once: {spent}");
    assert_eq!(db.engine.usage()[0].scaled, Some(1000));
    let offer = db.engine.list_offers().remove(0);
    let mut body = (*offer.body).clone();
    body["content"]["offerAutopilotSettings"]["maxThroughput"] = json!(4000);
    db.engine.replace_offer(&db.ctx(), &offer.rid.to_string(), &body, None).unwrap();
    assert!(is_throttled(&read(&db, &c, "p")), "a debt stays one");
    db.clock.advance(Duration::from_millis(500));
    let (spent, _) = exhaust(&db, &c, "p", 10);
    assert!((1980.0..=2007.0).contains(&spent), "half a second of the new one: {spent}");
}

#[test]
fn failures_that_looked_at_data_are_paid_for() {
    let db = enforced();
    let c = db.container_with(json!({}), Some(Throughput::Manual(400)));
    db.create(&c, json!({"id": "a", "pk": "p"})).unwrap();
    let spent = || db.engine.usage()[0].partitions[0].spent.raw();
    let mut before = spent();
    let mut cost = |what: engine::Result<ItemAnswer>| {
        assert!(what.is_err());
        let cost = spent() - before;
        before = spent();
        RequestCharge::from_raw(cost).to_string()
    };
    assert_eq!(cost(read(&db, &c, "p")), "1");
    assert_eq!(cost(db.create(&c, json!({"id": "a", "pk": "p"}))), "1.24");
    assert_eq!(cost(db.delete(&c, "[\"p\"]", "nothing")), "1");
    assert_eq!(cost(db.replace(&c, "a", json!({"pk": "p"}))), "0");
}

#[test]
fn nothing_is_limited_by_default_and_all_is_counted() {
    let db = Db::memory();
    let c = db.container_with(json!({}), Some(Throughput::Manual(400)));
    let mut all = RequestCharge::ZERO;
    for n in 0..300 {
        // A quarter is of one key.
        let key = if n % 4 == 0 { "hot".to_owned() } else { format!("k{n}") };
        all += db.create(&c, json!({"id": format!("{n}"), "pk": key})).unwrap().charge;
    }
    let usage = db.engine.usage().remove(0);
    assert_eq!((usage.database.as_str(), usage.container.as_str()), ("d", "c"));
    assert_eq!(usage.partitions.iter().map(|one| one.spent).sum::<RequestCharge>(), all);
    assert_eq!(usage.hottest.len(), 5);
    assert_eq!(usage.hottest[0].0, "[\"hot\"]");
    assert_eq!(usage.scaled, None);
}

#[test]
fn each_partition_pays_its_share_of_a_fan_out() {
    let db = Db::memory();
    let c = db.container_with(json!({}), Some(Throughput::Manual(30_000)));
    for n in 0..30 {
        db.create(&c, json!({"id": format!("{n}"), "pk": format!("k{n}")})).unwrap();
    }
    let spent = || -> Vec<RequestCharge> {
        db.engine.usage()[0].partitions.iter().map(|one| one.spent).collect()
    };
    let before = spent();
    let query = QueryText { text: "SELECT * FROM c".into(), parameters: Vec::new() };
    let page = PageRequest::default();
    let page = db.engine.query_items(&db.ctx(), &c, &Scope::Container, &query, &page).unwrap();
    let paid: Vec<u64> =
        spent().iter().zip(&before).map(|(after, before)| after.raw() - before.raw()).collect();
    assert_eq!(paid.iter().sum::<u64>(), page.charge.raw());
    assert!(paid.iter().all(|&one| one > 5_418_000), "each was visited and had items: {paid:?}");
    let before = spent();
    let page = PageRequest::default();
    let page = db.engine.read_feed(&db.ctx(), &c, &Scope::Container, &page).unwrap();
    let paid = |at: usize| spent()[at].raw() - before[at].raw();
    assert_eq!((0..3).map(paid).sum::<u64>(), page.charge.raw());
}

/// A script that is told to stop returns how far it came, and the next run goes on.
#[test]
fn a_script_is_told_to_stop_before_the_throughput_is_spent() {
    let db = enforced();
    let c = db.container_with(json!({}), Some(Throughput::Manual(400)));
    let body = "function (from) {
        var collection = getContext().getCollection(), made = from;
        next();
        function next() {
            var item = {id: 'i' + made, pk: 'p'};
            var isAccepted = collection.createDocument(collection.getSelfLink(), item, function (error) {
                if (error) throw error;
                made++;
                next();
            });
            if (!isAccepted) getContext().getResponse().setBody(made);
        }
    }";
    let owner = Owner { database: "d", container: Some("c"), user: None };
    let procedure = json!({"id": "fill", "body": body});
    let kind = ResourceKind::StoredProcedure;
    db.engine.create_resource(&db.ctx(), kind, owner, &procedure, false).unwrap();
    let key = PartitionKey::parse(r#"["p"]"#).unwrap();
    let mut made = 0;
    for _ in 0..3 {
        let execution = Execution {
            procedure: "fill".into(),
            arguments: vec![item::Value::Number(f64::from(made))],
            is_logging: false,
        };
        let guard = now(db.engine.lock(&c, &key));
        let answer = db.engine.execute(&db.ctx(), guard, execution).wait().unwrap();
        let spent = answer.charge.as_f64();
        assert!((380.0..=400.0).contains(&spent), "{spent}");
        let before = made;
        made = String::from_utf8(answer.body.unwrap().to_vec()).unwrap().parse().unwrap();
        assert!(made > before + 50, "{before} {made}");
        db.advance(1);
    }
    assert_eq!(db.feed_ids(&c, &Scope::Container, 100).len(), made as usize);
}

/// What expires, or is deleted by its key, costs what deleting it would; a new index costs its terms.
#[test]
fn work_in_the_background_is_counted_apart() {
    on_every_store(|db| {
        let c = db.container(json!({"defaultTtl": -1}));
        let mut created = RequestCharge::ZERO;
        for (id, key, ttl) in [("a", "p", 5), ("b", "p", 500), ("c", "q", 5), ("d", "r", 500)] {
            let body = json!({"id": id, "pk": key, "ttl": ttl, "n": 1});
            created += db.create(&c, body).unwrap().charge;
        }
        let each = created.raw() / 4;
        let usage = || db.engine.usage()[0].partitions[0];
        db.advance(6);
        db.work();
        assert_eq!(usage().background.raw(), 2 * each, "two have expired");
        let key = PartitionKey::parse(r#"["p"]"#).unwrap();
        db.engine.delete_partition(&db.ctx(), &c, &key).unwrap().wait().unwrap();
        db.work();
        assert_eq!(usage().background.raw(), 3 * each, "the other one of a deleted key");
        let mut body = (*db.engine.read_container("d", "c").unwrap().body).clone();
        body["indexingPolicy"] =
            json!({"includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": "/n/?"}]});
        db.engine.replace_container(&db.ctx(), "d", "c", &body, &EtagCondition::None).unwrap();
        db.work();
        let terms = 2 * RequestCharge::WRITE_QUANTUM.raw();
        assert_eq!(usage().background.raw(), 3 * each + terms, "a leaf less of the last item");
        assert_eq!(usage().spent, created, "requests have paid for themselves only");
    });
}
