//! Goal: batches are all or nothing, writers of one key pipeline, nobody sees half of anything.
//! Method: scripts on every store; threads that write the same logical partition at once.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::HashMap;
use std::sync::Arc;

use common::*;
use engine::Error;
use engine::ops::*;
use model::partition_key::PartitionKey;
use proptest::prelude::*;
use serde_json::json;

#[test]
fn a_batch_commits_all_of_it_under_one_lsn() {
    on_every_store(|db| {
        let c = db.container(json!({}));
        let item = |id: &str| json!({"id": id, "pk": "p"});
        let operations = vec![
            create(item("a")),
            create(item("b")),
            BatchOperation::Read(item_id("a"), EtagCondition::None),
            BatchOperation::Write(plain(WriteKind::Replace(
                item_id("a"),
                draft(&json!({"id": "a", "pk": "p", "v": 2})),
            ))),
            BatchOperation::Write(plain(WriteKind::Delete(item_id("b")))),
            create(item("b")),
        ];
        let answer = db.batch(&c, r#"["p"]"#, operations).unwrap();
        assert!(answer.is_committed);
        let results: Vec<ItemAnswer> =
            answer.results.into_iter().map(|r| r.unwrap().unwrap()).collect();
        let statuses: Vec<ItemStatus> = results.iter().map(|r| r.status).collect();
        use ItemStatus::*;
        assert_eq!(statuses, [Created, Created, Ok, Ok, Deleted, Created]);
        let etag = |at: usize| results[at].item.as_ref().unwrap().etag().to_owned();
        assert_eq!(etag(2), etag(0), "the read sees the version of the first operation");
        assert_ne!(etag(3), etag(0));
        assert_eq!(db.read(&c, r#"["p"]"#, "a").unwrap()["v"], 2);
        let page = db.changes(&c, &Scope::Container, ChangeFeedStart::Beginning);
        assert_eq!(ids(&page.rows), ["a", "b"]);
        db.verify();
    });
}

#[test]
fn a_failed_batch_changes_nothing() {
    on_every_store(|db| {
        let c = db.container(json!({}));
        db.create(&c, json!({"id": "x", "pk": "p"})).unwrap();
        let before = db.changes(&c, &Scope::Container, ChangeFeedStart::Beginning).etag;
        let operations = vec![
            create(json!({"id": "a", "pk": "p"})),
            BatchOperation::Write(plain(WriteKind::Delete(item_id("x")))),
            BatchOperation::Read(item_id("nobody"), EtagCondition::None),
            create(json!({"id": "b", "pk": "p"})),
        ];
        let answer = db.batch(&c, r#"["p"]"#, operations).unwrap();
        assert!(!answer.is_committed);
        let failed = |r: &Option<engine::Result<ItemAnswer>>| match r {
            None => 424,
            Some(Err(Error::NotFound)) => 404,
            Some(_) => 0,
        };
        let results: Vec<i32> = answer.results.iter().map(failed).collect();
        assert_eq!(results, [424, 424, 404, 424]);
        assert!(db.read(&c, r#"["p"]"#, "x").is_ok());
        assert!(db.read(&c, r#"["p"]"#, "a").is_err());
        assert_eq!(db.changes(&c, &Scope::Container, ChangeFeedStart::Beginning).etag, before);
        db.verify();
    });
}

#[test]
fn batches_have_between_one_and_a_hundred_operations() {
    let db = Db::memory();
    let c = db.container(json!({}));
    let batch = |from: usize, count: usize| {
        let item = |n: usize| create(json!({"id": n.to_string(), "pk": "p"}));
        db.batch(&c, r#"["p"]"#, (from..from + count).map(item).collect())
    };
    assert!(matches!(batch(0, 0), Err(Error::Invalid(_))));
    assert!(batch(0, 99).unwrap().is_committed);
    assert!(batch(1000, 100).unwrap().is_committed);
    assert!(matches!(batch(2000, 101), Err(Error::Invalid(_))));
}

#[test]
fn unique_keys_hold_inside_a_batch() {
    let db = Db::memory();
    let c = db.container(json!({"uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/m"]}]}}));
    let item = |id: &str, m: i32| create(json!({"id": id, "pk": "p", "m": m}));
    let answer = db.batch(&c, r#"["p"]"#, vec![item("a", 1), item("b", 1)]).unwrap();
    assert!(matches!(answer.results[1], Some(Err(Error::UniqueKeyConflict))));
    let freed = vec![
        item("a", 1),
        BatchOperation::Write(plain(WriteKind::Delete(item_id("a")))),
        item("b", 1),
    ];
    assert!(db.batch(&c, r#"["p"]"#, freed).unwrap().is_committed);
    db.verify();
}

/// Sixteen threads increment one item with etags: every increment counts exactly once.
#[test]
fn writers_of_one_item_serialize() {
    on_every_store(|db| {
        let c = db.container(json!({}));
        db.create(&c, json!({"id": "n", "pk": "p", "n": 0})).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    for _ in 0..25 {
                        let operations = json!([{"op": "incr", "path": "/n", "value": 1}]);
                        db.patch(&c, r#"["p"]"#, "n", operations).unwrap();
                    }
                });
            }
        });
        assert_eq!(db.read(&c, r#"["p"]"#, "n").unwrap()["n"], 400);
        db.verify();
    });
}

/// Of many threads that create the same id exactly one wins, and who loses sees the winner.
#[test]
fn one_creator_wins() {
    on_every_store(|db| {
        let c = db.container(json!({}));
        for round in 0..20 {
            let id = round.to_string();
            let wins: usize = std::thread::scope(|scope| {
                let create = || {
                    let won = db.create(&c, json!({"id": id, "pk": "p"})).is_ok();
                    assert!(db.read(&c, r#"["p"]"#, &id).is_ok(), "a loser's answer waited");
                    usize::from(won)
                };
                let threads: Vec<_> = (0..8).map(|_| scope.spawn(create)).collect();
                threads.into_iter().map(|t| t.join().unwrap()).sum()
            });
            assert_eq!(wins, 1);
        }
        db.verify();
    });
}

/// A reader that follows a pair of items written by batches never sees them differ.
#[test]
fn readers_see_batches_whole() {
    on_every_store(|db| {
        let c = db.container(json!({}));
        let both = |n: i32| {
            let one = |id: &str| {
                let body = json!({"id": id, "pk": "p", "n": n});
                BatchOperation::Write(plain(WriteKind::Upsert(draft(&body))))
            };
            db.batch(&c, r#"["p"]"#, vec![one("a"), one("b")]).unwrap();
        };
        both(0);
        let key = Scope::PartitionKey(PartitionKey::parse(r#"["p"]"#).unwrap());
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| (1..200).for_each(both));
            while !writer.is_finished() {
                let page =
                    db.engine.read_feed(&db.ctx(), &c, &key, &PageRequest::default()).unwrap();
                let values: Vec<serde_json::Value> =
                    page.rows.iter().map(|r| serde_json::from_slice(r).unwrap()).collect();
                assert_eq!(values[0]["n"], values[1]["n"]);
                assert_eq!(values[0]["_ts"], values[1]["_ts"]);
            }
        });
    });
}

#[derive(Clone, Debug)]
enum Op {
    Create(u8, u8, i32),
    Upsert(u8, u8, i32),
    Replace(u8, u8, i32),
    Delete(u8, u8),
    Advance(u8),
    Work,
}

fn any_op() -> impl Strategy<Value = Op> {
    let write = (0..6u8, 0..3u8, -3..4i32);
    prop_oneof![
        3 => write.clone().prop_map(|(i, k, v)| Op::Create(i, k, v)),
        3 => write.clone().prop_map(|(i, k, v)| Op::Upsert(i, k, v)),
        2 => write.prop_map(|(i, k, v)| Op::Replace(i, k, v)),
        2 => (0..6u8, 0..3u8).prop_map(|(i, k)| Op::Delete(i, k)),
        1 => (0..4u8).prop_map(Op::Advance),
        1 => Just(Op::Work),
    ]
}

/// What the database must hold: value and expiry by identity.
#[derive(Default)]
struct Model {
    items: HashMap<(u8, u8), (i32, Option<u64>)>,
    now: u64,
}

impl Model {
    fn live(&self, i: u8, k: u8) -> Option<i32> {
        let (value, expiry) = self.items.get(&(i, k))?;
        expiry.is_none_or(|at| at > self.now).then_some(*value)
    }

    /// A positive value is also the item's time to live.
    fn put(&mut self, i: u8, k: u8, v: i32) {
        let expiry = (v > 0).then(|| self.now + v as u64);
        self.items.insert((i, k), (v, expiry));
    }
}

fn check(ops: &[Op]) {
    let db = Db::memory();
    let c = db.container(json!({"defaultTtl": -1}));
    let mut model = Model::default();
    let text = |i: u8, k: u8, v: i32| {
        let mut body = json!({"id": i.to_string(), "pk": k, "v": v, "tags": [v, "t", {"x": v}]});
        if v > 0 {
            body["ttl"] = v.into();
        }
        body
    };
    for op in ops {
        match *op {
            Op::Create(i, k, v) => {
                let is_free = model.live(i, k).is_none();
                assert_eq!(db.create(&c, text(i, k, v)).is_ok(), is_free, "{op:?}");
                if is_free {
                    model.put(i, k, v);
                }
            }
            Op::Upsert(i, k, v) => {
                db.upsert(&c, text(i, k, v)).unwrap();
                model.put(i, k, v);
            }
            Op::Replace(i, k, v) => {
                let is_there = model.live(i, k).is_some();
                let result = db.replace(&c, &i.to_string(), text(i, k, v));
                assert_eq!(result.is_ok(), is_there, "{op:?}");
                if is_there {
                    model.put(i, k, v);
                }
            }
            Op::Delete(i, k) => {
                let is_there = model.live(i, k).is_some();
                let result = db.delete(&c, &format!("[{k}]"), &i.to_string());
                assert_eq!(result.is_ok(), is_there, "{op:?}");
                if is_there {
                    model.items.remove(&(i, k));
                }
            }
            Op::Advance(seconds) => {
                db.advance(u64::from(seconds));
                model.now += u64::from(seconds);
            }
            Op::Work => db.work(),
        }
        for i in 0..6 {
            for k in 0..3 {
                let found = db.read(&c, &format!("[{k}]"), &i.to_string()).ok();
                let found = found.map(|body| body["v"].as_i64().unwrap() as i32);
                assert_eq!(found, model.live(i, k), "after {op:?}");
            }
        }
    }
    let live = (0..6).flat_map(|i| (0..3).map(move |k| (i, k)));
    let live = live.filter(|(i, k)| model.live(*i, *k).is_some()).count();
    let page = db.changes(&c, &Scope::Container, ChangeFeedStart::Beginning);
    assert_eq!(page.rows.len(), live, "the feed meets every live item once (C3)");
    assert_eq!(db.feed_ids(&c, &Scope::Container, 2).len(), live);
    db.verify();
    db.work();
    db.verify();
    let reopened = db.reopened();
    assert_eq!(reopened.verify(|_| ()).unwrap().findings, Vec::<String>::new());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn operations_agree_with_a_map(ops in prop::collection::vec(any_op(), 1..40)) {
        check(&ops);
    }
}

#[test]
fn many_partitions_at_once_end_up_right() {
    on_every_store(|db| {
        let c = db.container_with(json!({}), Some(Throughput::Manual(70_000)));
        assert_eq!(c.ranges().len(), 7);
        let c: Arc<_> = c;
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let c = &c;
                scope.spawn(move || {
                    for n in 0..50 {
                        let id = format!("{thread}-{n}");
                        let body = json!({"id": id, "pk": n % 13});
                        db.create(c, body).unwrap();
                    }
                });
            }
        });
        let mut ids = db.feed_ids(&c, &Scope::Container, 17);
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 400);
        db.verify();
    });
}
