//! Goal: what a script does happens at once or not at all, and it sees what it is promised to see.
//! Method: procedures, triggers and functions on every store; clients that go away; threads that
//! run the same procedure at once.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;

use common::*;
use engine::ops::*;
use engine::{Container, Error, Owner, Result};
use item::Value;
use model::partition_key::PartitionKey;
use serde_json::json;

const OWNER: Owner<'static> = Owner { database: "d", container: Some("c"), user: None };

fn upload(db: &Db, kind: ResourceKind, body: serde_json::Value) -> Result<Resource> {
    Ok(db.engine.create_resource(&db.ctx(), kind, OWNER, &body, true)?.1)
}

fn procedure(db: &Db, body: &str) {
    upload(db, ResourceKind::StoredProcedure, json!({"id": "p", "body": body})).unwrap();
}

fn trigger(db: &Db, id: &str, kind: &str, operation: &str, body: &str) {
    let body = json!({
        "id": id, "body": body, "triggerType": kind, "triggerOperation": operation,
    });
    upload(db, ResourceKind::Trigger, body).unwrap();
}

fn function(db: &Db, id: &str, body: &str) {
    upload(db, ResourceKind::Udf, json!({"id": id, "body": body})).unwrap();
}

fn arguments(arguments: serde_json::Value) -> Vec<Value> {
    let value = Value::parse(arguments.to_string().as_bytes()).unwrap();
    value.as_array().unwrap().to_vec()
}

fn run(
    db: &Db,
    c: &Arc<Container>,
    key: &str,
    given: serde_json::Value,
) -> Result<serde_json::Value> {
    let guard = now(db.engine.lock(c, &PartitionKey::parse(key).unwrap()));
    let execution =
        Execution { procedure: "p".into(), arguments: arguments(given), is_logging: false };
    let answer = db.engine.execute(&db.ctx(), guard, execution).wait()?;
    Ok(answer.body.map_or(serde_json::Value::Null, |body| serde_json::from_slice(&body).unwrap()))
}

/// Uploads a procedure and runs it under the key `["k"]`.
fn script(db: &Db, c: &Arc<Container>, body: &str) -> Result<serde_json::Value> {
    procedure(db, body);
    run(db, c, r#"["k"]"#, json!([]))
}

fn write(
    db: &Db,
    c: &Arc<Container>,
    kind: WriteKind,
    (pre, post): (Option<&str>, Option<&str>),
) -> Result<TriggeredAnswer> {
    let guard = now(db.engine.lock(c, &PartitionKey::parse(r#"["k"]"#).unwrap()));
    let triggers = Triggers { pre: pre.map(str::to_owned), post: post.map(str::to_owned) };
    db.engine.write_with_triggers(&db.ctx(), guard, plain(kind), &triggers).wait()
}

fn ids_in(db: &Db, c: &Container, key: &str) -> Vec<String> {
    let scope = Scope::PartitionKey(PartitionKey::parse(key).unwrap());
    let mut ids = db.feed_ids(c, &scope, 100);
    ids.sort();
    ids
}

fn number_of(result: Result<serde_json::Value>) -> u32 {
    match result {
        Err(Error::Script(error)) => error.number,
        other => panic!("not a script error: {other:?}"),
    }
}

#[test]
fn a_procedure_commits_under_one_lsn() {
    on_every_store(|db| {
        let c = db.container(json!({}));
        db.create(&c, json!({"id": "old", "pk": "k", "n": 1})).unwrap();
        let body = script(
            db,
            &c,
            "function () {
                var __c = getContext().getCollection();
                __c.createDocument(__c.getSelfLink(), {id: 'a', pk: 'k'}, function (error, made) {
                    if (error) throw error;
                    __c.readDocument(__c.getAltLink() + '/docs/old', function (error, old) {
                        if (error) throw error;
                        old.n++;
                        __c.replaceDocument(old._self, old, function (error, replaced) {
                            if (error) throw error;
                            getContext().getResponse().setBody([made, replaced]);
                        });
                    });
                });
            }",
        );
        let body = body.unwrap();
        let (a, old) = (db.read(&c, r#"["k"]"#, "a"), db.read(&c, r#"["k"]"#, "old"));
        assert_eq!(body, json!([a.unwrap(), old.unwrap()]), "what a script sees is what is stored");
        let changes = db.changes(&c, &Scope::Container, ChangeFeedStart::Beginning);
        let lsns: Vec<serde_json::Value> = changes
            .rows
            .iter()
            .map(|row| serde_json::from_slice::<serde_json::Value>(row).unwrap()["_lsn"].clone())
            .collect();
        assert_eq!(lsns[0], lsns[1]);
        db.verify();
    });
}

#[test]
fn what_escapes_undoes_everything() {
    let first = "__.createDocument(__.getSelfLink(), {id: 'a', pk: 'k'});";
    let ends = [
        ("throw new Error('no');", 0),
        ("throw new Error(418, 'no');", 418),
        ("__.createDocument(__.getSelfLink(), {id: 'a', pk: 'k'});", 409),
        ("__.readDocument(__.getAltLink() + '/docs/nobody');", 404),
        ("__.readDocument(__.getAltLink() + '/docs/nobody', function (e) { throw e; });", 404),
        ("__.createDocument(__.getSelfLink(), {id: 'b', pk: 'other'});", 400),
        ("__.createDocument('dbs/x/colls/y', {id: 'b', pk: 'k'});", 400),
        ("getContext().abort(new Error(403, 'enough'));", 403),
        ("__.queryDocuments(__.getSelfLink(), 'SELECT nonsense');", 400),
        ("__.deleteDocument(__.getAltLink() + '/docs/x', {etag: 'other'});", 412),
    ];
    on_every_store(|db| {
        let c = db.container(json!({}));
        db.create(&c, json!({"id": "x", "pk": "k"})).unwrap();
        for (end, number) in ends {
            let result = script(db, &c, &format!("function () {{ {first} {end} }}"));
            assert_eq!(number_of(result), number, "{end}");
            assert_eq!(ids_in(db, &c, r#"["k"]"#), ["x"], "{end}");
        }
        db.verify();
    });
}

#[test]
fn a_swallowed_error_undoes_nothing() {
    on_every_store(|db| {
        let c = db.container(json!({"uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/u"]}]}}));
        let body = script(
            db,
            &c,
            "function () {
                var link = __.getSelfLink(), numbers = [];
                function note(error) { numbers.push(error ? error.number : 0); __.response.setBody(numbers); }
                __.createDocument(link, {id: 'a', pk: 'k', u: 1}, note);
                __.createDocument(link, {id: 'b', pk: 'k', u: 1}, note);
                __.createDocument(link, {id: 'c', pk: 'k', u: 2}, note);
                __.replaceDocument(__.getAltLink() + '/docs/c', {id: 'd', pk: 'k', u: 1}, note);
                __.replaceDocument(__.getAltLink() + '/docs/c', {id: 'e', pk: 'k', u: 3}, note);
                __.createDocument(link, {id: 'c', pk: 'k', u: 4}, note);
            }",
        );
        assert_eq!(body.unwrap(), json!([0, 409, 0, 409, 0, 0]));
        assert_eq!(ids_in(db, &c, r#"["k"]"#), ["a", "c", "e"]);
        db.verify();
    });
}

#[test]
fn queries_see_what_was_there_and_point_reads_what_is() {
    on_every_store(|db| {
        let c = db.container(json!({}));
        db.create(&c, json!({"id": "x", "pk": "k"})).unwrap();
        db.create(&c, json!({"id": "y", "pk": "other"})).unwrap();
        let body = script(
            db,
            &c,
            "function () {
                var seen = {};
                __.createDocument(__.getSelfLink(), {id: 'a', pk: 'k'});
                __.readDocument(__.getAltLink() + '/docs/a', function (e, item) { seen.point = item.id; });
                __.queryDocuments(__.getSelfLink(), 'SELECT VALUE c.id FROM c', function (e, rows) { seen.query = rows; });
                __.readDocuments(__.getSelfLink(), function (e, rows) {
                    seen.feed = rows.map(function (row) { return row.id; });
                });
                __.readDocument(__.getAltLink() + '/docs/y', function (e) { seen.other = e.number; __.response.setBody(seen); });
            }",
        );
        let expect = json!({"point": "a", "query": ["x"], "feed": ["x"], "other": 404});
        assert_eq!(body.unwrap(), expect);
    });
}

#[test]
fn queries_see_what_was_committed_a_moment_ago() {
    on_every_store(|db| {
        let c = db.container(json!({}));
        procedure(
            db,
            "function (id) {
                __.queryDocuments(__.getSelfLink(), 'SELECT VALUE COUNT(1) FROM c', function (e, rows) {
                    __.response.setBody(rows[0]);
                    __.createDocument(__.getSelfLink(), {id: id, pk: 'k'});
                });
            }",
        );
        // None waits for its answer before the next begins: the lock orders them, not the disk.
        let key = PartitionKey::parse(r#"["k"]"#).unwrap();
        let started = (0..20).map(|n| {
            let execution = Execution {
                procedure: "p".into(),
                arguments: arguments(json!([format!("i{n:02}")])),
                is_logging: false,
            };
            db.engine.execute(&db.ctx(), now(db.engine.lock(&c, &key)), execution)
        });
        for (n, running) in started.collect::<Vec<_>>().into_iter().enumerate() {
            assert_eq!(running.wait().unwrap().body.unwrap(), n.to_string());
        }
        db.verify();
    });
}

#[test]
fn etags_of_own_writes_can_be_relied_on() {
    on_every_store(|db| {
        let c = db.container(json!({}));
        let body = script(
            db,
            &c,
            "function () {
                var link = __.getSelfLink();
                __.createDocument(link, {id: 'a', pk: 'k'}, function (error, made) {
                    made.n = 1;
                    __.replaceDocument(made._self, made, {etag: made._etag}, function (error, first) {
                        __.replaceDocument(made._self, made, {etag: made._etag}, function (stale) {
                            __.response.setBody([error, stale.number, first._etag]);
                        });
                    });
                });
            }",
        );
        let stored = db.read(&c, r#"["k"]"#, "a").unwrap();
        assert_eq!(body.unwrap(), json!([null, 412, stored["_etag"]]));
    });
}

#[test]
fn a_pre_trigger_changes_the_item_and_a_post_trigger_sees_it() {
    on_every_store(|db| {
        let c = db.container(json!({}));
        trigger(
            db,
            "stamp",
            "Pre",
            "All",
            "function () {
                var request = getContext().getRequest(), item = request.getBody();
                item.operation = request.getOperationType();
                request.setBody(item);
            }",
        );
        trigger(
            db,
            "count",
            "Post",
            "All",
            "function () {
                var made = getContext().getResponse().getBody();
                __.queryDocuments(__.getSelfLink(), 'SELECT VALUE COUNT(1) FROM c', function (e, rows) {
                    __.upsertDocument(__.getSelfLink(), {id: 'meta', pk: 'k', before: rows[0], last: made.id});
                });
            }",
        );
        let both = (Some("stamp"), Some("count"));
        let item = |id: &str| draft(&json!({"id": id, "pk": "k"}));
        let made = write(db, &c, WriteKind::Create(item("a")), both).unwrap();
        assert_eq!(body(&made.answer)["operation"], "Create");
        assert_eq!(body(&made.answer), db.read(&c, r#"["k"]"#, "a").unwrap());
        let meta = db.read(&c, r#"["k"]"#, "meta").unwrap();
        assert_eq!((&meta["before"], &meta["last"]), (&json!(0), &json!("a")));
        write(db, &c, WriteKind::Upsert(item("a")), both).unwrap();
        assert_eq!(db.read(&c, r#"["k"]"#, "a").unwrap()["operation"], "Upsert");
        assert_eq!(db.read(&c, r#"["k"]"#, "meta").unwrap()["before"], 2);
        db.verify();
    });
}

#[test]
fn a_trigger_that_throws_undoes_its_write() {
    on_every_store(|db| {
        let c = db.container(json!({}));
        trigger(db, "no", "Pre", "Create", "function () { throw new Error(409, 'never'); }");
        let late = "function () {
            __.createDocument(__.getSelfLink(), {id: 'own', pk: 'k'}, function () {
                throw new Error('too late');
            });
        }";
        trigger(db, "late", "Post", "Create", late);
        let create = || WriteKind::Create(draft(&json!({"id": "a", "pk": "k"})));
        for triggers in [(Some("no"), None), (None, Some("late"))] {
            let refused = write(db, &c, create(), triggers);
            assert!(matches!(refused, Err(Error::Script(_))), "{refused:?}");
            assert_eq!(ids_in(db, &c, r#"["k"]"#), Vec::<String>::new());
        }
        db.verify();
    });
}

#[test]
fn triggers_run_on_what_they_are_made_for() {
    let db = Db::memory();
    let c = db.container(json!({}));
    for operation in ["All", "Create", "Update", "Replace", "Upsert", "Delete"] {
        trigger(&db, operation, "Pre", operation, "function () {}");
    }
    let item = || draft(&json!({"id": "a", "pk": "k"}));
    let run = |kind: WriteKind| {
        let names = ["All", "Create", "Update", "Replace", "Upsert", "Delete"];
        let kinds = |kind: &WriteKind| match kind {
            WriteKind::Create(draft) => WriteKind::Create(draft.clone()),
            WriteKind::Upsert(draft) => WriteKind::Upsert(draft.clone()),
            WriteKind::Replace(id, draft) => WriteKind::Replace(id.clone(), draft.clone()),
            WriteKind::Patch(..) | WriteKind::Delete(_) => WriteKind::Delete(item_id("a")),
        };
        let fits = |name: &&str| {
            // Whether it is refused before it is tried.
            !matches!(write(&db, &c, kinds(&kind), (Some(*name), None)), Err(Error::Invalid(_)))
        };
        names.into_iter().filter(fits).collect::<Vec<_>>()
    };
    assert_eq!(run(WriteKind::Create(item())), ["All", "Create"]);
    assert_eq!(run(WriteKind::Replace(item_id("a"), item())), ["All", "Update", "Replace"]);
    assert_eq!(run(WriteKind::Upsert(item())), ["All", "Update", "Replace", "Upsert"]);
    assert_eq!(run(WriteKind::Delete(item_id("a"))), ["All", "Delete"]);
    let refusal = |kind, triggers| match write(&db, &c, kind, triggers) {
        Err(Error::Invalid(message) | Error::NotSupported(message)) => message,
        other => panic!("{other:?}"),
    };
    let create = || WriteKind::Create(item());
    assert!(refusal(create(), (Some("nobody"), None)).contains("does not exist"));
    assert!(refusal(create(), (None, Some("All"))).contains("Pre-trigger"));
}

#[test]
fn a_pre_trigger_cannot_move_an_item() {
    let db = Db::memory();
    let c = db.container(json!({}));
    let body = "function () {
        var item = getContext().getRequest().getBody();
        item.pk = 'elsewhere';
        getContext().getRequest().setBody(item);
    }";
    trigger(&db, "move", "Pre", "All", body);
    let create = WriteKind::Create(draft(&json!({"id": "a", "pk": "k"})));
    let refused = write(&db, &c, create, (Some("move"), None));
    let Err(Error::AfterTriggers(refused)) = refused else { panic!("{refused:?}") };
    assert!(matches!(refused.error, Error::PartitionKeyMismatch), "{refused:?}");
    assert!(refused.charge > RequestCharge::ONE, "the trigger is paid for");
}

#[test]
fn functions_in_queries() {
    on_every_store(|db| {
        let c = db.container(json!({}));
        for n in 0..20 {
            let body = json!({"id": format!("{n:02}"), "pk": format!("p{}", n % 3), "n": n});
            db.create(&c, body).unwrap();
        }
        function(db, "tax", "function (n) { return n * 0.5; }");
        function(db, "isOdd", "function (item) { return item.n % 2 === 1; }");
        function(db, "fail", "function () { throw new Error('no'); }");
        let query = |text: &str| {
            let query = QueryText { text: text.into(), parameters: Vec::new() };
            assert!(db.engine.calls_functions(&query));
            let page = PageRequest::default();
            let running =
                db.engine.query_with_functions(&db.ctx(), &c, Scope::Container, &query, page);
            let page = running.wait()?;
            let rows = page.rows.iter().map(|row| serde_json::from_slice(row).unwrap());
            Ok::<_, Error>(rows.collect::<Vec<serde_json::Value>>())
        };
        let all =
            query("SELECT VALUE udf.tax(c.n) FROM c WHERE udf.isOdd(c) ORDER BY c.n").unwrap();
        let expect: Vec<serde_json::Value> =
            (0..20).filter(|n| n % 2 == 1).map(|n| json!(f64::from(n) * 0.5)).collect();
        let plain = |rows: &[serde_json::Value]| {
            rows.iter().map(|row| row.as_f64().unwrap()).collect::<Vec<f64>>()
        };
        assert_eq!(plain(&all), plain(&expect));
        assert_eq!(
            query("SELECT VALUE udf.tax(c.missing) FROM c").unwrap(),
            Vec::<serde_json::Value>::new()
        );
        let failed = query("SELECT VALUE udf.fail() FROM c").unwrap_err();
        assert!(
            matches!(&failed, Error::InvalidQuery(text) if text.contains("Error: no")),
            "{failed:?}"
        );
        assert!(query("SELECT VALUE udf.nobody() FROM c").is_err());
    });
}

#[test]
fn a_script_asks_queries_with_functions() {
    let db = Db::memory();
    let c = db.container(json!({}));
    db.create(&c, json!({"id": "x", "pk": "k", "n": 20})).unwrap();
    function(&db, "half", "function (n) { return n / 2; }");
    let body = script(
        &db,
        &c,
        "function () {
            __.queryDocuments(__.getSelfLink(), 'SELECT VALUE udf.half(c.n) FROM c', function (e, rows) {
                if (e) throw e;
                __.response.setBody(rows);
            });
        }",
    );
    assert_eq!(body.unwrap(), json!([10]));
}

#[test]
fn a_client_that_goes_away_undoes_its_script() {
    on_every_store(|db| {
        let c = db.container(json!({}));
        procedure(
            db,
            "function () {
                __.createDocument(__.getSelfLink(), {id: 'a', pk: 'k'}, function () { for (;;); });
            }",
        );
        let key = PartitionKey::parse(r#"["k"]"#).unwrap();
        let guard = now(db.engine.lock(&c, &key));
        let execution =
            Execution { procedure: "p".into(), arguments: Vec::new(), is_logging: false };
        drop(db.engine.execute(&db.ctx(), guard, execution));
        // The lock is free again: this would wait for five seconds otherwise.
        db.create(&c, json!({"id": "b", "pk": "k"})).unwrap();
        assert_eq!(ids_in(db, &c, r#"["k"]"#), ["b"]);
    });
}

/// A script is blamed for its own time, not for clients that lose patience.
#[test]
fn clients_that_go_away_do_not_get_a_script_blocked() {
    let db = Db::memory();
    let c = db.container(json!({}));
    procedure(&db, "function (forever) { while (forever); __.response.setBody('done'); }");
    let key = PartitionKey::parse(r#"["k"]"#).unwrap();
    for _ in 0..12 {
        let execution = Execution {
            procedure: "p".into(),
            arguments: arguments(json!([true])),
            is_logging: false,
        };
        let running = db.engine.execute(&db.ctx(), now(db.engine.lock(&c, &key)), execution);
        // A script that only computes shows nothing of having begun.
        std::thread::sleep(std::time::Duration::from_millis(20));
        drop(running);
    }
    assert_eq!(run(&db, &c, r#"["k"]"#, json!([false])).unwrap(), json!("done"));
}

#[test]
fn a_new_policy_in_the_middle_of_a_script() {
    on_every_store(|db| {
        let c = db.container(json!({}));
        procedure(
            db,
            "function () {
                __.createDocument(__.getSelfLink(), {id: 'a', pk: 'k', v: 1}, function () {
                    var end = Date.now() + 300;
                    while (Date.now() < end);
                    __.createDocument(__.getSelfLink(), {id: 'b', pk: 'k', v: 2});
                });
            }",
        );
        let key = PartitionKey::parse(r#"["k"]"#).unwrap();
        let guard = now(db.engine.lock(&c, &key));
        let execution =
            Execution { procedure: "p".into(), arguments: Vec::new(), is_logging: false };
        let running = db.engine.execute(&db.ctx(), guard, execution);
        let definition = json!({
            "id": "c",
            "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
            "indexingPolicy": {"includedPaths": [{"path": "/v/?"}], "excludedPaths": [{"path": "/*"}]},
        });
        db.engine
            .replace_container(&db.ctx(), "d", "c", &definition, &EtagCondition::None)
            .unwrap();
        db.create(&c, json!({"id": "x", "pk": "other", "v": 3})).unwrap();
        running.wait().unwrap();
        db.work();
        assert_eq!(ids_in(db, &c, r#"["k"]"#), ["a", "b"]);
        db.verify();
    });
}

#[test]
fn a_script_that_is_too_slow_too_often_is_blocked_until_it_is_replaced() {
    let db = Db::with_scripts(script::PoolOptions {
        limits: script::Limits {
            run: std::time::Duration::from_millis(50),
            accept: std::time::Duration::from_millis(40),
            ..script::Limits::default()
        },
        ..script::PoolOptions::default()
    });
    let c = db.container(json!({}));
    procedure(&db, "function () { for (;;); }");
    for _ in 0..5 {
        let late = run(&db, &c, r#"["k"]"#, json!([]));
        assert!(matches!(late, Err(Error::Timeout)), "{late:?}");
    }
    let blocked = run(&db, &c, r#"["k"]"#, json!([]));
    assert!(matches!(blocked, Err(Error::Forbidden(_))), "{blocked:?}");
    procedure(&db, "function () { __.response.setBody('better'); }");
    assert_eq!(run(&db, &c, r#"["k"]"#, json!([])).unwrap(), json!("better"));
}

#[test]
fn wrong_scripts_are_refused_when_they_are_uploaded() {
    let db = Db::memory();
    db.container(json!({}));
    for body in ["function () {", "not javascript at all", "", "1 + 1", "var x = 3;"] {
        let refused = upload(&db, ResourceKind::StoredProcedure, json!({"id": "p", "body": body}));
        assert!(matches!(refused, Err(Error::Invalid(_))), "{body}: {refused:?}");
    }
}

#[test]
fn sixteen_writers_count_to_sixteen_times_as_much() {
    let directory = tempfile::tempdir().unwrap();
    let store = store_embedded::EmbeddedStore::open(
        directory.path().join("data"),
        store_embedded::Options::default(),
    );
    let db = Db::on(Arc::new(store.unwrap()), None);
    let c = db.container(json!({}));
    db.create(&c, json!({"id": "n", "pk": "k", "value": 0})).unwrap();
    procedure(
        &db,
        "function () {
            __.readDocument(__.getAltLink() + '/docs/n', function (error, item) {
                if (error) throw error;
                item.value++;
                __.replaceDocument(item._self, item);
            });
        }",
    );
    const RUNS: usize = 100;
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                for _ in 0..RUNS {
                    run(&db, &c, r#"["k"]"#, json!([])).unwrap();
                }
            });
        }
    });
    assert_eq!(db.read(&c, r#"["k"]"#, "n").unwrap()["value"], 16 * RUNS);
}
