//! Goal: a script on a disk that is full or slow does all of its work or none of it, and nobody is told
//! of work that a crash could still undo.
//! Method: a store on disk whose writes are made to fail or to wait.

#![allow(clippy::unwrap_used)]

mod common;

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use common::*;
use engine::ops::*;
use engine::{Error, Scripted};
use model::partition_key::PartitionKey;
use serde_json::json;
use store_embedded::{EmbeddedStore, Faults, Options};

/// A database on disk with one script thread, so that scripts run one after the other.
fn on_disk(directory: &Path, faults: &Faults) -> Db {
    on_disk_with(directory, faults, script::Limits::default())
}

fn on_disk_with(directory: &Path, faults: &Faults, limits: script::Limits) -> Db {
    let options = Options { faults: faults.clone(), ..Options::default() };
    let store = EmbeddedStore::open(directory.join("data"), options).unwrap();
    Db::on_with_scripts(Arc::new(store), script::PoolOptions { threads: 1, limits })
}

fn is_ready<T>(scripted: &mut Scripted<T>) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    matches!(Pin::new(scripted).poll(&mut context), Poll::Ready(_))
}

const CREATE_TWO: &str = "function () { __.createDocument(__.getSelfLink(), { id: 'a', pk: 'k' }); \
    __.createDocument(__.getSelfLink(), { id: 'b', pk: 'k' }); __.response.setBody('done'); }";

const COUNT: &str = "function () { __.readDocument(__.getAltLink() + '/docs/n', function (e, d) { \
    __.response.setBody(d.n); }); }";

#[test]
fn a_script_on_a_full_disk_does_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let faults = Faults::default();
    let db = on_disk(directory.path(), &faults);
    let c = db.container(json!({}));
    for key in ["k", "other"] {
        db.create(&c, json!({"id": "n", "pk": key, "n": 1})).unwrap();
    }
    db.procedure("two", CREATE_TWO);
    db.procedure("count", COUNT);
    let change = "function () { var b = getContext().getRequest().getBody(); b.n = 2; \
                  getContext().getRequest().setBody(b); }";
    let trigger =
        json!({"id": "t", "body": change, "triggerType": "Pre", "triggerOperation": "All"});
    db.upload(ResourceKind::Trigger, &trigger);

    faults.fail_writes();
    let refused = db.execute(&c, ("two", r#"["k"]"#), json!([])).wait();
    assert!(matches!(refused, Err(Error::Fault(_))), "{refused:?}");
    let guard = now(db.engine.lock(&c, &PartitionKey::parse(r#"["k"]"#).unwrap()));
    let write = plain(WriteKind::Replace(item_id("n"), draft(&json!({"id": "n", "pk": "k"}))));
    let triggers = Triggers { pre: Some("t".into()), post: None };
    let refused = db.engine.write_with_triggers(&db.ctx(), guard, write, &triggers).wait();
    assert!(matches!(refused, Err(Error::Fault(_))), "{refused:?}");

    // What was there can be read, by scripts too. Where a write was on its way, a script may have seen
    // it, and is refused then.
    assert_eq!(db.read(&c, r#"["k"]"#, "n").unwrap()["n"], 1);
    assert_eq!(db.feed_ids(&c, &Scope::Container, 10), ["n", "n"]);
    let read = db.execute(&c, ("count", r#"["other"]"#), json!([])).wait();
    assert_eq!(script_body(&read.unwrap()), json!(1));
    match db.execute(&c, ("count", r#"["k"]"#), json!([])).wait() {
        Ok(read) => assert_eq!(script_body(&read), json!(1)),
        Err(error) => assert!(matches!(error, Error::Fault(_)), "{error}"),
    }
    drop((c, db));

    let db = on_disk(directory.path(), &Faults::default());
    let c = db.engine.container("d", "c").unwrap();
    assert_eq!(db.feed_ids(&c, &Scope::Container, 10), ["n", "n"]);
    assert_eq!(db.read(&c, r#"["k"]"#, "n").unwrap()["n"], 1);
    let done = db.execute(&c, ("two", r#"["k"]"#), json!([])).wait();
    assert_eq!(script_body(&done.unwrap()), json!("done"));
    db.verify();
}

#[test]
fn an_answer_waits_for_what_the_script_has_read() {
    let directory = tempfile::tempdir().unwrap();
    let faults = Faults::default();
    let db = on_disk(directory.path(), &faults);
    let c = db.container(json!({}));
    db.procedure("count", COUNT);
    for key in ["k", "other"] {
        db.create(&c, json!({"id": "n", "pk": key, "n": 1})).unwrap();
    }

    faults.hold_writes(true);
    let guard = now(db.engine.lock(&c, &PartitionKey::parse(r#"["k"]"#).unwrap()));
    let body = draft(&json!({"id": "n", "pk": "k", "n": 2}));
    let written = db.engine.write(&db.ctx(), guard, plain(WriteKind::Replace(item_id("n"), body)));
    faults.wait_until_held();
    let mut waiting = db.execute(&c, ("count", r#"["k"]"#), json!([]));
    // There is one thread: with this answer, the other has been decided. It depends on nothing.
    let other = db.execute(&c, ("count", r#"["other"]"#), json!([])).wait();
    assert_eq!(script_body(&other.unwrap()), json!(1));
    assert!(!is_ready(&mut waiting));

    faults.hold_writes(false);
    assert_eq!(script_body(&waiting.wait().unwrap()), json!(2));
    written.wait().unwrap();
}

#[test]
fn an_answer_waits_for_what_the_script_has_written() {
    let directory = tempfile::tempdir().unwrap();
    let faults = Faults::default();
    let db = on_disk(directory.path(), &faults);
    let c = db.container(json!({}));
    db.procedure("two", CREATE_TWO);
    db.procedure("count", COUNT);
    db.create(&c, json!({"id": "n", "pk": "other", "n": 1})).unwrap();

    faults.hold_writes(true);
    let mut waiting = db.execute(&c, ("two", r#"["k"]"#), json!([]));
    let other = db.execute(&c, ("count", r#"["other"]"#), json!([])).wait();
    assert_eq!(script_body(&other.unwrap()), json!(1));
    faults.wait_until_held();
    assert!(!is_ready(&mut waiting));
    faults.hold_writes(false);
    assert_eq!(script_body(&waiting.wait().unwrap()), json!("done"));
}

/// A write that fails after its script has read another's: neither is answered as if it were there.
#[test]
fn an_answer_from_what_never_became_durable_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let faults = Faults::default();
    let db = on_disk(directory.path(), &faults);
    let c = db.container(json!({}));
    db.procedure("count", COUNT);
    db.create(&c, json!({"id": "n", "pk": "k", "n": 1})).unwrap();

    faults.hold_writes(true);
    let guard = now(db.engine.lock(&c, &PartitionKey::parse(r#"["k"]"#).unwrap()));
    let body = draft(&json!({"id": "n", "pk": "k", "n": 2}));
    let written = db.engine.write(&db.ctx(), guard, plain(WriteKind::Replace(item_id("n"), body)));
    faults.wait_until_held();
    let reading = db.execute(&c, ("count", r#"["k"]"#), json!([]));
    faults.fail_writes();
    faults.hold_writes(false);
    assert!(matches!(written.wait(), Err(Error::Fault(_))));
    let read = reading.wait();
    assert!(matches!(read, Err(Error::Fault(_))), "{read:?}");
    assert_eq!(db.read(&c, r#"["k"]"#, "n").unwrap()["n"], 1);
}

#[test]
fn a_thread_that_is_lent_does_not_wait_for_the_disk() {
    let directory = tempfile::tempdir().unwrap();
    let faults = Faults::default();
    let limits = script::Limits { here: Duration::from_secs(60), ..script::Limits::default() };
    let db = on_disk_with(directory.path(), &faults, limits);
    let c = db.container(json!({}));
    let find = "function () { __.queryDocuments(__.getSelfLink(), 'SELECT VALUE c.n FROM c', \
                function (e, rows) { __.response.setBody(rows); }); }";
    db.procedure("find", find);
    db.create(&c, json!({"id": "n", "pk": "k", "n": 1})).unwrap();
    let find = || db.execute(&c, ("find", r#"["k"]"#), json!([]));
    // Known to be quick from here on.
    assert_eq!(script_body(&find().wait().unwrap()), json!([1]));

    faults.hold_writes(true);
    let guard = now(db.engine.lock(&c, &PartitionKey::parse(r#"["k"]"#).unwrap()));
    let body = draft(&json!({"id": "n", "pk": "k", "n": 2}));
    let written = db.engine.write(&db.ctx(), guard, plain(WriteKind::Replace(item_id("n"), body)));
    faults.wait_until_held();
    // What the query is to see is not published before the disk is done; the thread has others to
    // serve meanwhile.
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        let lent = thread::Builder::new();
        let lent = lent.stack_size(script::Limits::default().thread_stack_bytes());
        let found = lent.spawn_scoped(scope, || {
            script::lend_thread();
            let finding = find();
            sender.send(()).unwrap();
            finding.wait()
        });
        let is_free = receiver.recv_timeout(Duration::from_secs(10)).is_ok();
        faults.hold_writes(false);
        assert!(is_free, "the thread waits for the disk");
        assert_eq!(script_body(&found.unwrap().join().unwrap().unwrap()), json!([2]));
    });
    written.wait().unwrap();
}
