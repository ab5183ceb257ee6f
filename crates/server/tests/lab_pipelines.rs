//! Goal: a pipeline handles every change, also when it is interrupted, and nobody runs it twice.
//! Method: one small model against a real server; leases are left behind, taken over and tampered with.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;

use client::Key;
use common::Server;
use lab::pipeline::{LEASES, Runner};
use lab::target::{Tally, Target};
use lab::{Data, Source};
use model::partition_key::PartitionKey;
use serde_json::{Value, json};

const COPIES: &str = r#"
name = "copies"
[[entities]]
name = "user"
count = 250
fields.id = { kind = "guid" }
fields.name = { kind = "word", length = 9 }
[[models]]
id = "m"
[[models.containers]]
name = "users"
partition_key = "/id"
throughput = 30000
[[models.containers]]
name = "names"
partition_key = "/userId"
[[models.items]]
entity = "user"
container = "users"
item = { id = "${user.id}", name = "${user.name}" }
[[models.pipelines]]
name = "names"
source = "users"
[[models.pipelines.steps]]
upsert = "names"
item = { id = "name", userId = "${change.id}", name = "${change.name}" }
[[models.checks]]
name = "names"
copies = { container = "names", sql = "SELECT n.userId AS k, n AS v FROM n" }
sources = { container = "users", sql = "SELECT u.id AS k, {id: 'name', userId: u.id, name: u.name} AS v FROM u" }
complete = true
[[patterns]]
id = "p"
[[patterns.models.m]]
query = "users"
sql = "SELECT * FROM u"
"#;

async fn put(target: &Target, container: &str, key: &str, item: Value) {
    let key = PartitionKey::parse(&json!([key]).to_string()).unwrap();
    let request = target.container(container).upsert(&key, item.to_string());
    target.client.send(&request).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn pipelines_go_on_where_they_were() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path());
    let beside = |_: &str| Err("no file".to_owned());
    let source = Source { name: "copies".into(), text: COPIES.into(), beside: Box::new(beside) };
    let data = Arc::new(Data::new(Arc::new(source.read().unwrap()), 1, 1.0));
    let model = &data.workload.models[0];
    let endpoint = format!("http://{}", server.client.address);
    let client = client::Client::new(&endpoint, Key::development()).unwrap();
    let target = Target { client, database: "copies".into() };
    target.create(model, false).await.unwrap();
    lab::load::load(&data, 0, &target, Arc::new(|_| {})).await.unwrap();
    let differences = async || {
        let verdicts = lab::verify::verify(model, &target).await.unwrap();
        verdicts.iter().map(|verdict| verdict.findings.len()).sum::<usize>()
    };
    assert_eq!(differences().await, 250, "no copy yet");

    // From the beginning, everything is copied.
    let mut first = Runner::start(&data, 0, target.clone(), "first").await.unwrap();
    let drained = first.drain().await.unwrap();
    assert_eq!(drained.changes, 250);
    assert!(drained.work.ru() > 0.0 && drained.lag.is_some());
    assert_eq!(differences().await, 0);

    // A property too many is found, until the copy is made again.
    let user = data.instance(0, 3);
    let id = data.get(&user, &[lab::expression::Step::Name("id".into())]).unwrap();
    let id = id.as_str().unwrap();
    let name = data.get(&user, &[lab::expression::Step::Name("name".into())]).unwrap();
    let copy = json!({"id": "name", "userId": id, "name": name});
    put(&target, "names", id, json!({"id": "name", "userId": id, "name": name, "more": 1})).await;
    assert_eq!(differences().await, 1);
    put(&target, "names", id, copy).await;
    assert_eq!(differences().await, 0);

    // Nobody else may run it meanwhile.
    let second = Runner::start(&data, 0, target.clone(), "second").await;
    assert!(matches!(second, Err(lab::Error::Leased(name)) if name == "names"));

    // A process that ends without giving back its leases, and one more change.
    drop(first);
    let user = data.instance(0, 7);
    let id = data.get(&user, &[lab::expression::Step::Name("id".into())]).unwrap();
    let id = id.as_str().unwrap();
    put(&target, "users", id, json!({"id": id, "name": "renamed"})).await;
    assert_eq!(differences().await, 1);
    let mut again = Runner::start(&data, 0, target.clone(), "first").await.unwrap();
    assert_eq!(again.drain().await.unwrap().changes, 1, "only what is new");
    assert_eq!(differences().await, 0);
    let idle = again.drain().await.unwrap();
    assert_eq!((idle.changes, idle.work.ru(), idle.lag), (0, 0.0, None));
    assert!(idle.idle.requests >= 3, "one look at each physical partition");

    // Who knows where something was written looks nowhere else.
    let users = model.pipelines[0].source;
    put(&target, "users", id, json!({"id": id, "name": "once more"})).await;
    let mut found = Vec::new();
    for range in 0..3 {
        let elsewhere = [(users, Some(range)), (users + 1, None)].into();
        let drained = again.drain_after(elsewhere, Tally::default()).await.unwrap();
        assert_eq!(drained.idle.requests, 1, "the last look at the one partition");
        found.push(drained.changes);
    }
    assert_eq!(found.iter().sum::<u64>(), 1, "{found:?}");
    assert_eq!(differences().await, 0);
    put(&target, "users", id, json!({"id": id, "name": "renamed"})).await;
    let anywhere = [(users, None)].into();
    assert_eq!(again.drain_after(anywhere, Tally::default()).await.unwrap().changes, 1);
    assert_eq!(differences().await, 0);

    // Given back, anybody may go on.
    again.stop().await.unwrap();
    let mut second = Runner::start(&data, 0, target.clone(), "second").await.unwrap();
    assert_eq!(second.drain().await.unwrap().changes, 0);
    second.stop().await.unwrap();

    // A crash behind a page and before its position: changes come twice, copies stay right.
    let leases = leases_of(&target).await;
    assert_eq!(leases.len(), 3);
    for lease in leases {
        let id = lease["id"].as_str().unwrap();
        put(&target, LEASES, id, json!({"id": id, "owner": "", "renewed": 0})).await;
    }
    let mut third = Runner::start(&data, 0, target.clone(), "third").await.unwrap();
    assert_eq!(third.drain().await.unwrap().changes, 250);
    assert_eq!(differences().await, 0);

    // Somebody who takes a lease over leaves its former owner without it.
    for lease in leases_of(&target).await {
        let id = lease["id"].as_str().unwrap().to_owned();
        put(&target, LEASES, &id, json!({"id": id, "owner": "", "renewed": 0})).await;
    }
    let mut fourth = Runner::start(&data, 0, target.clone(), "fourth").await.unwrap();
    put(&target, "users", id, json!({"id": id, "name": "again"})).await;
    assert!(matches!(third.drain().await, Err(lab::Error::Leased(_))));
    assert_eq!(fourth.drain().await.unwrap().changes, 250);
    assert_eq!(differences().await, 0);

    // A renewal that was cut off, and done all the same: its lease is given back like the others.
    let mut of_others = leases_of(&target).await;
    let one = of_others.pop().unwrap();
    put(&target, LEASES, one["id"].as_str().unwrap(), one.clone()).await;
    // Leases of others are left to them: of somebody else, and of one who has the same name.
    of_others[0]["owner"] = json!("fifth");
    of_others[1]["renewed"] = json!(of_others[1]["renewed"].as_u64().unwrap() + 1);
    for lease in &of_others {
        put(&target, LEASES, lease["id"].as_str().unwrap(), lease.clone()).await;
    }
    assert!(matches!(fourth.stop().await, Err(lab::Error::Leased(_))));
    let by_id = async |id: &Value| {
        let leases = leases_of(&target).await;
        leases.into_iter().find(|lease| lease["id"] == *id).unwrap()
    };
    assert_eq!(by_id(&of_others[0]["id"]).await["owner"], "fifth");
    assert_eq!(by_id(&of_others[1]["id"]).await["owner"], "fourth");
    let given_back = by_id(&one["id"]).await;
    assert_eq!(given_back["owner"], "");
    assert_eq!(given_back["continuation"], one["continuation"]);
    server.stop();
}

async fn leases_of(target: &Target) -> Vec<Value> {
    let query = target.container(LEASES).query("SELECT * FROM l", &[], -1);
    target.rows("leases", &query, &mut Default::default()).await.unwrap()
}
