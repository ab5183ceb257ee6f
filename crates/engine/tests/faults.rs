//! Goal: whatever commit fails, what was acknowledged is there, nothing is half there, and a new
//! engine on the same bytes is sound. Method: a store that refuses everything from the nth commit
//! on, for every n of a script; and a store with a small limit.

#![allow(clippy::unwrap_used)]

mod common;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::*;
use engine::Error;
use engine::ops::*;
use model::partition_key::PartitionKey;
use serde_json::json;
use store::{Commit, Limits, Outcome, Statistics, Store, Ticket, Token, View};
use store_memory::MemoryStore;

/// A store that takes so many commits and then fails like a broken disk.
struct FaultyStore {
    inner: Arc<MemoryStore>,
    commits_left: AtomicUsize,
    commit_bytes_max: Option<usize>,
}

impl FaultyStore {
    fn new(inner: &Arc<MemoryStore>, commits: usize) -> Arc<FaultyStore> {
        let commits_left = AtomicUsize::new(commits);
        Arc::new(FaultyStore { inner: inner.clone(), commits_left, commit_bytes_max: None })
    }
}

impl Store for FaultyStore {
    fn view(&self) -> View {
        self.inner.view()
    }

    fn commit(&self, commit: Commit) -> Ticket {
        let left = self
            .commits_left
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        match left {
            Ok(_) => self.inner.commit(commit),
            Err(_) => {
                let reason = "no more".to_owned();
                Ticket::resolved(Err(store::Error::Poisoned { reason }))
            }
        }
    }

    fn resolve(&self, token: Token) -> store::Result<Outcome> {
        self.inner.resolve(token)
    }

    fn flush(&self) -> store::Result<()> {
        self.inner.flush()
    }

    fn checkpoint(&self, directory: &Path) -> store::Result<()> {
        self.inner.checkpoint(directory)
    }

    fn compact(&self) -> store::Result<()> {
        self.inner.compact()
    }

    fn limits(&self) -> Limits {
        let limits = self.inner.limits();
        let commit_bytes_max = self.commit_bytes_max.unwrap_or(limits.commit_bytes_max);
        Limits { commit_bytes_max, ..limits }
    }

    fn statistics(&self) -> Statistics {
        self.inner.statistics()
    }
}

/// Does one of everything until something fails. Returns the ids that must be there.
fn script(db: &Db) -> engine::Result<Vec<String>> {
    let mut acknowledged = Vec::new();
    let ctx = db.ctx();
    db.engine.create_database(&ctx, &json!({"id": "d"}), None)?;
    let definition = json!({
        "id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
        "uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/u"]}]}, "defaultTtl": -1,
    });
    db.engine.create_container(&ctx, "d", &definition, None)?;
    let c = db.engine.container("d", "c")?;
    let mut note = |result: engine::Result<ItemAnswer>, id: &str| match result {
        Ok(_) => {
            acknowledged.push(id.to_owned());
            true
        }
        Err(_) => false,
    };
    for n in 0..3 {
        let id = format!("i{n}");
        if !note(db.create(&c, json!({"id": id, "pk": "p", "u": n})), &id) {
            return Ok(acknowledged);
        }
    }
    if !note(db.replace(&c, "i0", json!({"id": "i0", "pk": "p", "u": 10})), "i0") {
        return Ok(acknowledged);
    }
    let both = vec![
        create(json!({"id": "b1", "pk": "p", "u": 20})),
        create(json!({"id": "b2", "pk": "p", "u": 21})),
    ];
    if db.batch(&c, r#"["p"]"#, both).is_err() {
        return Ok(acknowledged);
    }
    acknowledged.extend(["b1".to_owned(), "b2".to_owned()]);
    let body = json!({"id": "t", "pk": "p", "u": 30, "ttl": 1});
    if db.create(&c, body).is_err() {
        return Ok(acknowledged);
    }
    db.advance(2);
    let key = PartitionKey::parse(r#"["q"]"#).unwrap();
    let _ = db.engine.delete_partition(&ctx, &c, &key).and_then(|pending| pending.wait());
    let mut indexing = (*db.engine.read_container("d", "c")?.body).clone();
    indexing["indexingPolicy"] =
        json!({"includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": "/u/?"}]});
    let _ = db.engine.replace_container(&ctx, "d", "c", &indexing, &EtagCondition::None);
    while db.engine.work().unwrap_or(false) {}
    Ok(acknowledged)
}

#[test]
fn every_commit_may_be_the_last() {
    for commits in 0..40 {
        let inner = Arc::new(MemoryStore::new());
        let faulty = FaultyStore::new(&inner, commits);
        if commits == 0 {
            // Not even the account's secret could be stored: the database does not open.
            assert!(engine::Engine::open(faulty, engine::Options::new(0)).is_err());
            continue;
        }
        let acknowledged = script(&Db::on(faulty, None)).unwrap_or_default();
        let db = Db::on(inner, None);
        db.verify();
        let Ok(c) = db.engine.container("d", "c") else {
            assert!(acknowledged.is_empty());
            continue;
        };
        for id in &acknowledged {
            assert!(db.read(&c, r#"["p"]"#, id).is_ok(), "{id} after {commits} commits");
        }
        let halves = ["b1", "b2"].map(|id| db.read(&c, r#"["p"]"#, id).is_ok());
        assert_eq!(halves[0], halves[1], "half a batch after {commits} commits");
        db.work();
        db.verify();
    }
}

#[test]
fn a_refused_commit_leaves_no_trace_for_later_writers() {
    let inner = Arc::new(MemoryStore::new());
    let store = FaultyStore::new(&inner, 3);
    let db = Db::on(store.clone(), None);
    let c = db.container(json!({}));
    let refused = db.create(&c, json!({"id": "a", "pk": "p"}));
    assert!(matches!(refused, Err(Error::Fault(_))), "{refused:?}");
    store.commits_left.store(usize::MAX, Ordering::SeqCst);
    let created = db.create(&c, json!({"id": "a", "pk": "p"})).unwrap();
    assert_eq!(created.status, ItemStatus::Created);
    db.verify();
}

/// A store whose commits are small.
fn narrow_store(commit_bytes_max: usize) -> Arc<FaultyStore> {
    let mut store = FaultyStore::new(&Arc::new(MemoryStore::new()), usize::MAX);
    Arc::get_mut(&mut store).unwrap().commit_bytes_max = Some(commit_bytes_max);
    store
}

#[test]
fn a_transaction_over_the_limit_is_refused_whole() {
    let db = Db::on(narrow_store(20_000), None);
    let c = db.container(json!({}));
    let batch = |first: usize, count: usize| {
        let item =
            |n: usize| create(json!({"id": n.to_string(), "pk": "p", "text": "x".repeat(1000)}));
        db.batch(&c, r#"["p"]"#, (first..first + count).map(item).collect())
    };
    assert!(batch(0, 5).unwrap().is_committed);
    let refused = batch(100, 20);
    assert!(matches!(refused, Err(Error::TooLarge(_))), "{refused:?}");
    assert_eq!(db.feed_ids(&c, &Scope::Container, 50).len(), 5);
    assert!(batch(100, 5).unwrap().is_committed, "and the partition goes on");
    db.verify();
}

const STAGE: &str = "function (sizes, swallows) { var refused = []; \
    sizes.forEach(function (size, at) { \
        __.createDocument(__.getSelfLink(), { id: 'i' + at, pk: 'k', x: 'x'.repeat(size) }, function (e) { \
            if (e && !swallows) throw e; if (e) refused.push(at, e.number); __.response.setBody(refused); }); }); }";

#[test]
fn a_script_stages_half_a_commit_and_no_more() {
    const STAGED_MAX: usize = 10_000;
    let length_of =
        |size: usize| draft(&json!({"id": "i0", "pk": "k", "x": "x".repeat(size)})).text_len();
    let fill = |rest: usize| rest - length_of(0);
    let check = |sizes: &[usize],
                 swallows: bool,
                 expect: std::result::Result<serde_json::Value, u32>,
                 left: &[&str]| {
        let db = Db::on(narrow_store(2 * STAGED_MAX), None);
        let c =
            db.container(json!({"indexingPolicy": {"indexingMode": "none", "automatic": false}}));
        db.procedure("stage", STAGE);
        let staged = db.execute(&c, ("stage", r#"["k"]"#), json!([sizes, swallows])).wait();
        match (staged, expect) {
            (Err(Error::Script(error)), Err(number)) => {
                assert_eq!(error.number, number, "{sizes:?}")
            }
            (staged, expect) => assert_eq!(Ok(script_body(&staged.unwrap())), expect, "{sizes:?}"),
        }
        assert_eq!(db.feed_ids(&c, &Scope::Container, 10), left, "{sizes:?}");
        db.verify();
    };
    // One item, then two: below, at and above.
    check(&[fill(STAGED_MAX - 1)], false, Ok(json!([])), &["i0"]);
    check(&[fill(STAGED_MAX)], false, Ok(json!([])), &["i0"]);
    check(&[fill(STAGED_MAX + 1)], false, Err(413), &[]);
    let rest = STAGED_MAX - length_of(4000);
    check(&[4000, fill(rest - 1)], false, Ok(json!([])), &["i0", "i1"]);
    check(&[4000, fill(rest)], false, Ok(json!([])), &["i0", "i1"]);
    check(&[4000, fill(rest + 1)], false, Err(413), &[]);
    // What is refused takes no room, so that a script can go on with something smaller.
    check(&[4000, fill(rest + 1), fill(rest)], true, Ok(json!([1, 413])), &["i0", "i2"]);
}
