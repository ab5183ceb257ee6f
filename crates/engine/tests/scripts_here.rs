//! Goal: a procedure does the same wherever it runs: on a script thread, or on a thread that is lent
//! to scripts, for a moment.
//! Method: the same procedures on a thread that is lent and on one that is not, with the only script
//! thread kept busy where it must not be needed.

#![allow(clippy::unwrap_used)]

mod common;

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;

use common::*;
use engine::ops::*;
use engine::{Container, Error, Scripted};
use model::partition_key::PartitionKey;
use serde_json::json;

/// Counts in an item, and before that for itself.
const COUNT: &str = "function (turns) { for (var i = 0; i < turns; i++); \
    __.readDocument(__.getAltLink() + '/docs/n', function (e, d) { d.n++; \
    __.replaceDocument(d._self, d, function (e, d) { __.response.setBody(d.n); }); }); }";

/// A database with one script thread, where lent threads are lent for so long, and a container in
/// which to count.
fn database(here: Duration) -> (Db, Arc<Container>) {
    database_with(script::Limits { here, ..script::Limits::default() })
}

fn database_with(limits: script::Limits) -> (Db, Arc<Container>) {
    let scripts = script::PoolOptions { threads: 1, limits };
    let db = Db::with_scripts(scripts);
    let c = db.container(json!({}));
    for key in ["k", "other"] {
        db.create(&c, json!({"id": "n", "pk": key, "n": 0})).unwrap();
    }
    (db, c)
}

fn on_lent_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let lent = thread::Builder::new();
        let lent = lent.stack_size(script::Limits::default().thread_stack_bytes());
        let run = || {
            script::lend_thread();
            work()
        };
        lent.spawn_scoped(scope, run).unwrap().join().unwrap()
    })
}

/// Occupies the script thread until it is dropped.
fn keep_busy(db: &Db, c: &Arc<Container>) -> Scripted<ScriptAnswer> {
    db.execute(c, ("forever", r#"["other"]"#), json!([]))
}

#[test]
fn a_quick_procedure_needs_no_script_thread() {
    let (db, c) = database(Duration::from_secs(60));
    db.procedure("count", COUNT);
    db.procedure("forever", "function () { while (true); }");
    let count = |turns: u64| db.execute(&c, ("count", r#"["k"]"#), json!([turns])).wait();
    on_lent_thread(|| {
        let first = count(1).unwrap();
        let busy = keep_busy(&db, &c);
        // Were it not done here, it would have to wait for the one that is never over.
        let mut bodies = Vec::new();
        for _ in 0..20 {
            let answer = count(1).unwrap();
            assert_eq!(answer.charge, first.charge);
            bodies.push(script_body(&answer));
            script::tidy_thread();
        }
        assert_eq!(bodies, (2..22).map(|n| json!(n)).collect::<Vec<_>>());
        drop(busy);
    });
    assert_eq!(db.read(&c, r#"["k"]"#, "n").unwrap()["n"], 21);
    db.verify();
}

#[test]
fn a_procedure_that_is_not_over_soon_begins_again_elsewhere() {
    let (db, c) = database(Duration::from_millis(10));
    db.procedure("count", COUNT);
    let count = |turns: u64| db.execute(&c, ("count", r#"["k"]"#), json!([turns])).wait();
    const MANY: u64 = 3_000_000;
    let alone = count(MANY).unwrap();
    assert_eq!(script_body(&alone), json!(1));
    on_lent_thread(|| {
        for n in 0..3 {
            // Known to be quick, it is tried here; it is done once, and paid for once.
            assert_eq!(script_body(&count(1).unwrap()), json!(2 + 3 * n));
            assert_eq!(script_body(&count(1).unwrap()), json!(3 + 3 * n));
            let slow = count(MANY).unwrap();
            assert_eq!(script_body(&slow), json!(4 + 3 * n));
            assert_eq!(slow.charge, alone.charge);
        }
    });
    assert_eq!(db.read(&c, r#"["k"]"#, "n").unwrap()["n"], 10);
    db.verify();
}

#[test]
fn refusals_are_the_same_and_leave_nothing() {
    let (db, c) = database(Duration::from_secs(60));
    let body = "function (fails) { __.createDocument(__.getSelfLink(), { id: 'x', pk: 'k' }, \
                function (e) { if (e) throw new Error('no ' + e.number); if (fails) throw 'yes'; }); }";
    db.procedure("create", body);
    let create = |fails: bool| match db.execute(&c, ("create", r#"["k"]"#), json!([fails])).wait() {
        Ok(answer) => panic!("{answer:?}"),
        Err(Error::Script(error)) => (error.message.clone(), error.charge),
        Err(error) => panic!("{error}"),
    };
    let there = create(true);
    db.create(&c, json!({"id": "x", "pk": "k"})).unwrap();
    let conflict = create(false);
    db.delete(&c, r#"["k"]"#, "x").unwrap();
    on_lent_thread(|| {
        // One that succeeds makes it known to be quick.
        db.execute(&c, ("create", r#"["k"]"#), json!([false])).wait().unwrap();
        assert_eq!(create(false), conflict);
        db.delete(&c, r#"["k"]"#, "x").unwrap();
        assert_eq!(create(true), there);
    });
    assert!(matches!(db.read(&c, r#"["k"]"#, "x"), Err(Error::NotFound)));
    db.verify();
}

#[test]
fn scripts_go_as_deep_and_leave_nothing_behind() {
    let (db, c) = database(Duration::from_secs(60));
    let deep = "function () { var n = 0; function f() { n++; f(); } try { f(); } catch (e) {} \
                __.response.setBody([n, Object.left]); Object.left = 1; Array.prototype.left = 1; }";
    db.procedure("deep", deep);
    let run = || script_body(&db.execute(&c, ("deep", r#"["k"]"#), json!([])).wait().unwrap());
    let depth = |body: &serde_json::Value| body[0].as_f64().unwrap();
    let there = run();
    on_lent_thread(|| {
        for _ in 0..3 {
            let here = run();
            assert!((depth(&here) / depth(&there) - 1.0).abs() < 0.1, "{here} {there}");
            assert_eq!(here.as_array().unwrap().len(), 2);
            assert!(here[1].is_null(), "{here}");
        }
    });
}

#[test]
fn queries_of_scripts_find_the_same() {
    let (db, c) = database(Duration::from_secs(60));
    for n in 0..300 {
        db.create(&c, json!({"id": format!("i{n}"), "pk": "k", "v": n % 7})).unwrap();
    }
    let body = "function () { __.queryDocuments(__.getSelfLink(), \
                'SELECT VALUE c.id FROM c WHERE c.v = 3', { pageSize: 1000 }, \
                function (e, rows) { __.response.setBody(rows.sort()); }); }";
    db.procedure("find", body);
    let find = || db.execute(&c, ("find", r#"["k"]"#), json!([])).wait().unwrap();
    let there = find();
    assert_eq!(script_body(&there).as_array().unwrap().len(), 43);
    on_lent_thread(|| {
        for _ in 0..5 {
            let here = find();
            assert_eq!((script_body(&here), here.charge), (script_body(&there), there.charge));
        }
    });
}

#[test]
fn a_thread_that_does_not_come_back_does_not_keep_the_partition() {
    let run = Duration::from_millis(100);
    let (db, c) = database_with(script::Limits { run, ..script::Limits::default() });
    db.procedure("count", COUNT);
    // A search that does not look at the clock, and takes seconds.
    let search = "function (n) { 'a'.repeat(2 * n).indexOf('a'.repeat(n) + 'b'); }";
    db.procedure("search", search);
    let search = |n: u64| db.execute(&c, ("search", r#"["k"]"#), json!([n])).wait();
    let key = PartitionKey::parse(r#"["k"]"#).unwrap();
    on_lent_thread(|| {
        search(1).unwrap();
        let (begun, is_over) = (Barrier::new(2), AtomicBool::new(false));
        thread::scope(|scope| {
            let guard = now(db.engine.lock(&c, &key));
            let other = scope.spawn(|| {
                begun.wait();
                let mut lock = pin!(db.engine.lock(&c, &key));
                let mut context = Context::from_waker(Waker::noop());
                while lock.as_mut().poll(&mut context).is_pending() {
                    thread::yield_now();
                }
                !is_over.load(Ordering::SeqCst)
            });
            begun.wait();
            let arguments = vec![item::Value::parse(b"40000").unwrap()];
            let procedure = "search".into();
            let execution = Execution { procedure, arguments, is_logging: false };
            let searched = db.engine.execute(&db.ctx(), guard, execution).wait();
            is_over.store(true, Ordering::SeqCst);
            assert!(matches!(searched, Err(Error::Timeout)), "{searched:?}");
            assert!(other.join().unwrap(), "the lock was free while the search went on");
        });
        // Never here again, and elsewhere the watchdog answers.
        assert!(search(1).is_ok());
        assert!(matches!(search(40_000), Err(Error::Timeout)));
    });
    db.verify();
}
