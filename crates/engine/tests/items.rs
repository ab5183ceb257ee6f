//! Goal: every item operation does what the contract says, on every store.
//! Method: short scripts against an engine on a clock that stands still.

#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use engine::Error;
use engine::ops::*;
use model::SessionToken;
use model::partition_key::PartitionKey;
use serde_json::json;

#[test]
fn a_created_item_reads_back_with_its_system_properties() {
    on_every_store(|db| {
        let c = db.container(json!({}));
        let answer = db.create(&c, json!({"id": "a", "pk": "p", "n": 1})).unwrap();
        assert_eq!(answer.status, ItemStatus::Created);
        let read = db.read(&c, r#"["p"]"#, "a").unwrap();
        assert_eq!(read, body(&answer));
        let names: Vec<&String> = read.as_object().unwrap().keys().collect();
        let expected = ["id", "pk", "n", "_rid", "_self", "_etag", "_attachments", "_ts"];
        assert_eq!(names, expected);
        assert_eq!(read["_ts"], 1_800_000_000);
        let rid = read["_rid"].as_str().unwrap();
        let container = db.engine.read_container("d", "c").unwrap();
        let link = format!("{}docs/{rid}/", container.body["_self"].as_str().unwrap());
        assert_eq!(read["_self"], link);
        assert_eq!(db.read(&c, r#"["p"]"#, rid).unwrap(), read, "by rid");
        db.verify();
    });
}

#[test]
fn create_conflicts_within_a_logical_partition_only() {
    on_every_store(|db| {
        let c = db.container(json!({}));
        db.create(&c, json!({"id": "a", "pk": "p"})).unwrap();
        assert!(is_conflict(&db.create(&c, json!({"id": "a", "pk": "p"}))));
        db.create(&c, json!({"id": "a", "pk": "q"})).unwrap();
        db.verify();
    });
}

#[test]
fn missing_and_null_keys_are_two_logical_partitions() {
    on_every_store(|db| {
        let c = db.container(json!({}));
        db.create(&c, json!({"id": "a"})).unwrap();
        db.create(&c, json!({"id": "a", "pk": null, "n": 1})).unwrap();
        assert_eq!(db.read(&c, "[{}]", "a").unwrap().get("n"), None);
        assert_eq!(db.read(&c, "[null]", "a").unwrap()["n"], 1);
        assert!(matches!(db.read(&c, r#"["a"]"#, "a"), Err(Error::NotFound)));
        db.verify();
    });
}

#[test]
fn replace_keeps_the_rid_and_may_change_the_id() {
    on_every_store(|db| {
        let c = db.container(json!({}));
        let old = body(&db.create(&c, json!({"id": "a", "pk": "p"})).unwrap());
        let new = body(&db.replace(&c, "a", json!({"id": "b", "pk": "p", "x": [1]})).unwrap());
        assert_eq!(new["_rid"], old["_rid"]);
        assert_ne!(new["_etag"], old["_etag"]);
        assert!(matches!(db.read(&c, r#"["p"]"#, "a"), Err(Error::NotFound)));
        assert_eq!(db.read(&c, r#"["p"]"#, "b").unwrap(), new);
        db.create(&c, json!({"id": "a", "pk": "p"})).unwrap();
        assert!(is_conflict(&db.replace(&c, "a", json!({"id": "b", "pk": "p"}))));
        let missing = db.replace(&c, "zz", json!({"id": "zz", "pk": "p"}));
        assert!(matches!(missing, Err(Error::NotFound)));
        db.verify();
    });
}

#[test]
fn etags_guard_every_kind_of_write() {
    on_every_store(|db| {
        let c = db.container(json!({}));
        let first = db.create(&c, json!({"id": "a", "pk": "p"})).unwrap();
        let etag = first.item.unwrap().etag().to_owned();
        db.replace(&c, "a", json!({"id": "a", "pk": "p", "v": 2})).unwrap();
        let stale = |kind| {
            let mut write = plain(kind);
            write.if_match = EtagCondition::Is(etag.clone());
            db.write(&c, r#"["p"]"#, write)
        };
        let body = json!({"id": "a", "pk": "p"});
        let patch = item::Value::parse(br#"[{"op":"set","path":"/v","value":1}]"#).unwrap();
        let patch = item::patch::parse(&patch).unwrap();
        let kinds = [
            WriteKind::Replace(item_id("a"), draft(&body)),
            WriteKind::Upsert(draft(&body)),
            WriteKind::Delete(item_id("a")),
            WriteKind::Patch(item_id("a"), patch),
        ];
        for kind in kinds {
            let name = format!("{kind:?}");
            assert!(matches!(stale(kind), Err(Error::PreconditionFailed)), "{name}");
        }
        assert_eq!(db.read(&c, r#"["p"]"#, "a").unwrap()["v"], 2);
        let absent = json!({"id": "new", "pk": "p"});
        let created = stale(WriteKind::Upsert(draft(&absent))).unwrap();
        assert_eq!(created.status, ItemStatus::Created, "an absent item ignores the etag");
    });
}

#[test]
fn reading_with_the_current_etag_says_not_modified() {
    let db = Db::memory();
    let c = db.container(json!({}));
    let item = db.create(&c, json!({"id": "a", "pk": "p"})).unwrap().item.unwrap();
    let key = PartitionKey::parse(r#"["p"]"#).unwrap();
    let condition = EtagCondition::parse(&format!("\"{}\"", item.etag()));
    let answer = db.engine.read_item(&db.ctx(), &c, &key, "a", &condition, None).unwrap();
    assert_eq!(answer.status, ItemStatus::NotModified);
    assert_eq!(answer.charge.to_string(), "1");
}

#[test]
fn a_session_from_the_future_is_not_served() {
    let db = Db::memory();
    let c = db.container(json!({}));
    let answer = db.create(&c, json!({"id": "a", "pk": "p"})).unwrap();
    let key = PartitionKey::parse(r#"["p"]"#).unwrap();
    let read = |lsn: u64| {
        let token = SessionToken::parse(&format!("0:-1#{lsn}")).unwrap();
        db.engine.read_item(&db.ctx(), &c, &key, "a", &EtagCondition::None, Some(&token))
    };
    assert!(read(answer.lsn).is_ok());
    assert!(matches!(read(answer.lsn + 1), Err(Error::SessionNotAvailable { .. })));
}

#[test]
fn unique_keys_hold_within_a_logical_partition() {
    on_every_store(|db| {
        let policy = json!({"uniqueKeys": [{"paths": ["/mail"]}, {"paths": ["/a", "/b/c"]}]});
        let c = db.container(json!({"uniqueKeyPolicy": policy}));
        let unique = |id: &str, pk: &str, mail: serde_json::Value, a: i32| json!({"id": id, "pk": pk, "mail": mail, "a": a, "b": {"c": 1}});
        let taken = |result: engine::Result<ItemAnswer>| {
            assert!(matches!(result, Err(Error::UniqueKeyConflict)), "{result:?}");
        };
        db.create(&c, unique("1", "p", json!("x"), 1)).unwrap();
        taken(db.create(&c, unique("2", "p", json!("x"), 2)));
        taken(db.create(&c, unique("2", "p", json!("y"), 1)));
        db.create(&c, unique("2", "q", json!("x"), 1)).unwrap();
        db.create(&c, unique("3", "p", json!("X"), 3)).unwrap();
        db.create(&c, unique("4", "p", json!(null), 4)).unwrap();
        taken(db.create(&c, json!({"id": "5", "pk": "p", "a": 5})));
        taken(db.upsert(&c, unique("6", "p", json!("x"), 6)));
        taken(db.replace(&c, "3", unique("3", "p", json!("x"), 3)));
        db.replace(&c, "1", unique("1", "p", json!("x"), 9)).unwrap();
        db.delete(&c, r#"["p"]"#, "1").unwrap();
        db.create(&c, unique("7", "p", json!("x"), 9)).unwrap();
        let long = "m".repeat(3000);
        db.create(&c, unique("8", "p", json!(long), 10)).unwrap();
        taken(db.create(&c, unique("9", "p", json!(long), 11)));
        db.create(&c, unique("9", "p", json!(format!("{long}.")), 11)).unwrap();
        db.verify();
    });
}

#[test]
fn patches_change_items_and_respect_conditions() {
    on_every_store(|db| {
        let c = db.container(json!({}));
        db.create(&c, json!({"id": "a", "pk": "p", "n": 1, "list": [1, 3]})).unwrap();
        let operations = json!([
            {"op": "incr", "path": "/n", "value": 4},
            {"op": "add", "path": "/list/1", "value": 2},
            {"op": "move", "from": "/list", "path": "/moved"},
        ]);
        let patched = body(&db.patch(&c, r#"["p"]"#, "a", operations).unwrap());
        assert_eq!((&patched["n"], &patched["moved"]), (&json!(5), &json!([1, 2, 3])));
        for path in ["/id", "/pk", "/_ts", "/_etag"] {
            let operation = json!([{"op": "set", "path": path, "value": "x"}]);
            let refused = db.patch(&c, r#"["p"]"#, "a", operation);
            assert!(matches!(refused, Err(Error::Invalid(_))), "{path}");
        }
        db.verify();
    });
}

#[test]
fn charges_follow_the_published_figures() {
    let db = Db::memory();
    let c = db.container(json!({"partitionKey": {"paths": ["/id"], "version": 2, "kind": "Hash"}}));
    let write = |kind| db.write(&c, r#"["a"]"#, plain(kind)).unwrap().charge.to_string();
    let id = json!({"id": "a", "name": "n"});
    // An item of two properties keyed by its id: 30 quanta, 5.71 RU; changing one, 56: 10.67.
    assert_eq!(write(WriteKind::Create(draft(&id))), "5.71");
    let renamed = json!({"id": "a", "name": "m"});
    assert_eq!(write(WriteKind::Replace(item_id("a"), draft(&renamed))), "10.67");
    assert_eq!(write(WriteKind::Delete(item_id("a"))), "5.71");
}

#[test]
fn a_full_logical_partition_refuses_to_grow() {
    let store = std::sync::Arc::new(store_memory::MemoryStore::new());
    let options = engine::Options {
        logical_partition_bytes_max: 2000,
        is_background: false,
        ..engine::Options::new(0)
    };
    let mut db = Db::on(store.clone(), None);
    db.engine = engine::Engine::open(store, options).unwrap();
    let c = db.container(json!({}));
    let big = "x".repeat(600);
    db.create(&c, json!({"id": "1", "pk": "p", "big": big})).unwrap();
    db.create(&c, json!({"id": "2", "pk": "p", "big": big})).unwrap();
    let full = db.create(&c, json!({"id": "3", "pk": "p", "big": big}));
    assert!(matches!(full, Err(Error::LogicalPartitionFull)), "{full:?}");
    db.create(&c, json!({"id": "3", "pk": "q", "big": big})).unwrap();
    db.delete(&c, r#"["p"]"#, "1").unwrap();
    db.create(&c, json!({"id": "3", "pk": "p", "big": big})).unwrap();
}
