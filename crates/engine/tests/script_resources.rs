//! Goal: stored procedures, triggers and UDFs are kept below their container like any resource:
//! checked, counted, durable, and gone with their owner. Method: the same steps for each kind.

#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use engine::ops::ResourceKind::{StoredProcedure, Trigger, Udf};
use engine::ops::*;
use engine::{Engine, Error, Owner, Result};
use model::rid::ChildKind;
use model::{Rid, limits};
use serde_json::{Value, json};
use store::{Range, Space};

/// Every kind with its place in links, its nibble in rids, and how many a container may have.
const KINDS: [(ResourceKind, &str, ChildKind, usize); 3] = [
    (StoredProcedure, "sprocs", ChildKind::StoredProcedure, limits::STORED_PROCEDURES_MAX),
    (Trigger, "triggers", ChildKind::Trigger, limits::TRIGGERS_MAX),
    (Udf, "udfs", ChildKind::Udf, limits::UDFS_MAX),
];

const OWNER: Owner<'_> = Owner { database: "d", container: Some("c"), user: None };

fn script(id: &str) -> Value {
    json!({
        "id": id, "body": "function () { return 1; }",
        "triggerType": "Pre", "triggerOperation": "All",
    })
}

fn create(db: &Db, kind: ResourceKind, body: &Value) -> Result<Resource> {
    let made = db.engine.create_resource(&db.ctx(), kind, OWNER, body, false);
    made.map(|(_, resource)| resource)
}

fn upsert(db: &Db, kind: ResourceKind, body: &Value) -> Result<ResourceStatus> {
    let made = db.engine.create_resource(&db.ctx(), kind, OWNER, body, true);
    made.map(|(status, _)| status)
}

fn names(engine: &Engine, kind: ResourceKind) -> Vec<String> {
    let all = engine.list_resources(kind, OWNER).unwrap();
    all.iter().map(|one| one.body["id"].as_str().unwrap().to_owned()).collect()
}

fn catalog_keys(db: &Db) -> u64 {
    let range = Range { start: vec![1], end: Some(vec![2]) };
    db.store.view().reader().count(Space::Meta, &range).unwrap()
}

#[test]
fn a_script_is_a_resource_of_its_container() {
    on_every_store(|db| {
        let c = db.container(json!({}));
        for (kind, keyword, child, _) in KINDS {
            let made = create(db, kind, &script("s")).unwrap();
            assert!(matches!(create(db, kind, &script("s")), Err(Error::Conflict)));
            let Rid::Child(database, container, ordinal) = made.rid else {
                panic!("{:?}", made.rid)
            };
            assert_eq!(Rid::Container(database, container), c.rid());
            assert_eq!(ordinal >> 60, child as u64);
            let link =
                format!("dbs/{}/colls/{}/{keyword}/{}/", c.database_rid(), c.rid(), made.rid);
            assert_eq!(made.body["_self"], link);
            let read = |id: &str| db.engine.read_resource(kind, OWNER, id);
            assert_eq!(read("s").unwrap().body, made.body);
            assert_eq!(read(&made.rid.to_string()).unwrap().body, made.body);
            let by_rids = (c.database_rid().to_string(), c.rid().to_string());
            let owner = Owner::container(&by_rids.0, &by_rids.1);
            assert_eq!(db.engine.read_resource(kind, owner, "s").unwrap().etag, made.etag);
            assert!(matches!(read("t"), Err(Error::NotFound)));
            assert_eq!(names(&db.engine, kind), ["s"]);
        }
    });
}

#[test]
fn scripts_are_replaced_renamed_and_deleted() {
    on_every_store(|db| {
        db.container(json!({}));
        for (kind, ..) in KINDS {
            let made = create(db, kind, &script("s")).unwrap();
            let replace = |id: &str, body: &Value, condition: &EtagCondition| {
                db.engine.replace_resource(&db.ctx(), kind, OWNER, id, body, condition)
            };
            let stale = EtagCondition::Is("stale".into());
            let current = EtagCondition::Is(made.etag.clone());
            let refused = replace("s", &script("s"), &stale);
            assert!(matches!(refused, Err(Error::PreconditionFailed)));
            let replaced = replace("s", &script("s"), &current).unwrap();
            assert_eq!(replaced.rid, made.rid);
            assert_ne!(replaced.etag, made.etag);
            replace("s", &script("renamed"), &EtagCondition::None).unwrap();
            assert_eq!(names(&db.engine, kind), ["renamed"]);
            assert_eq!(upsert(db, kind, &script("renamed")).unwrap(), ResourceStatus::Replaced);
            assert_eq!(upsert(db, kind, &script("new")).unwrap(), ResourceStatus::Created);
            let taken = replace("new", &script("renamed"), &EtagCondition::None);
            assert!(matches!(taken, Err(Error::Conflict)));
            let delete = |id: &str, condition: &EtagCondition| {
                db.engine.delete_resource(&db.ctx(), kind, OWNER, id, condition)
            };
            assert!(matches!(delete("new", &stale), Err(Error::PreconditionFailed)));
            delete("new", &EtagCondition::None).unwrap();
            assert!(matches!(delete("new", &EtagCondition::None), Err(Error::NotFound)));
            assert_eq!(names(&db.engine, kind), ["renamed"]);
        }
    });
}

#[test]
fn what_is_no_script_is_refused() {
    let db = Db::memory();
    db.container(json!({}));
    let without = |name: &str| {
        let mut body = script("s");
        body.as_object_mut().unwrap().remove(name);
        body
    };
    let with = |name: &str, value: Value| {
        let mut body = script("s");
        body[name] = value;
        body
    };
    for (kind, ..) in KINDS {
        let mut refused = vec![
            without("id"),
            without("body"),
            with("id", json!("")),
            with("id", json!("a/b")),
            with("id", json!("a?")),
            with("id", json!("a ")),
            with("id", json!("x".repeat(limits::NAME_CHARS_MAX + 1))),
            with("body", json!(7)),
            with("body", json!(null)),
            with("body", json!("")),
            with("body", json!(" \n")),
        ];
        if kind == Trigger {
            refused.extend([
                without("triggerType"),
                without("triggerOperation"),
                with("triggerType", json!("Between")),
                with("triggerOperation", json!("Read")),
                with("triggerOperation", json!(1)),
            ]);
        }
        for body in &refused {
            assert!(matches!(create(&db, kind, body), Err(Error::Invalid(_))), "{kind:?} {body}");
            assert!(matches!(upsert(&db, kind, body), Err(Error::Invalid(_))), "{kind:?} {body}");
        }
        create(&db, kind, &with("id", json!("x".repeat(limits::NAME_CHARS_MAX)))).unwrap();
        let owner = Owner::container("d", "absent");
        let made = db.engine.create_resource(&db.ctx(), kind, owner, &script("s"), false);
        assert!(matches!(made, Err(Error::OwnerNotFound)));
        let owner = Owner::container("absent", "c");
        assert!(matches!(db.engine.list_resources(kind, owner), Err(Error::OwnerNotFound)));
    }
}

#[test]
fn words_of_a_trigger_are_kept_as_they_were_sent() {
    let db = Db::memory();
    db.container(json!({}));
    let types = ["Pre", "Post", "pre", "post"];
    let operations = ["All", "Create", "Update", "Replace", "Upsert", "Delete", "all", "update"];
    for kind in types {
        for operation in operations {
            let body = json!({
                "id": "t", "body": "function () {}",
                "triggerType": kind, "triggerOperation": operation,
            });
            upsert(&db, Trigger, &body).unwrap();
            let read = db.engine.read_resource(Trigger, OWNER, "t").unwrap();
            assert_eq!(read.body["triggerType"], kind);
            assert_eq!(read.body["triggerOperation"], operation);
        }
    }
}

#[test]
fn a_container_has_so_many_scripts_and_no_more() {
    let db = Db::memory();
    db.container(json!({}));
    db.container(json!({"id": "other"}));
    for (kind, _, _, max) in KINDS {
        for n in 0..max {
            create(&db, kind, &script(&n.to_string())).unwrap();
        }
        assert!(matches!(create(&db, kind, &script("more")), Err(Error::Forbidden(_))));
        assert!(matches!(upsert(&db, kind, &script("more")), Err(Error::Forbidden(_))));
        assert_eq!(upsert(&db, kind, &script("0")).unwrap(), ResourceStatus::Replaced);
        let other = Owner::container("d", "other");
        db.engine.create_resource(&db.ctx(), kind, other, &script("own"), false).unwrap();
        let condition = EtagCondition::None;
        db.engine.delete_resource(&db.ctx(), kind, OWNER, "0", &condition).unwrap();
        create(&db, kind, &script("more")).unwrap();
        assert_eq!(names(&db.engine, kind).len(), max);
    }
}

#[test]
fn scripts_survive_a_restart() {
    on_every_store(|db| {
        db.container(json!({}));
        for (kind, ..) in KINDS {
            create(db, kind, &script("kept")).unwrap();
            create(db, kind, &script("gone")).unwrap();
            let condition = EtagCondition::None;
            db.engine.delete_resource(&db.ctx(), kind, OWNER, "gone", &condition).unwrap();
        }
        let reopened = db.reopened();
        for (kind, ..) in KINDS {
            assert_eq!(names(&reopened, kind), ["kept"]);
            let read = |engine: &Engine| engine.read_resource(kind, OWNER, "kept").unwrap().body;
            assert_eq!(read(&reopened), read(&db.engine));
        }
    });
}

#[test]
fn scripts_go_with_their_owner() {
    on_every_store(|db| {
        db.engine.create_database(&db.ctx(), &json!({"id": "d"}), None).unwrap();
        let before = catalog_keys(db);
        for is_database in [false, true] {
            db.container(json!({}));
            db.container(json!({"id": "other"}));
            let other = Owner::container("d", "other");
            for (kind, ..) in KINDS {
                create(db, kind, &script("s")).unwrap();
                db.engine.create_resource(&db.ctx(), kind, other, &script("s"), false).unwrap();
            }
            db.engine.delete_container(&db.ctx(), "d", "c", &EtagCondition::None).unwrap();
            for (kind, ..) in KINDS {
                let read = db.engine.read_resource(kind, OWNER, "s");
                assert!(matches!(read, Err(Error::OwnerNotFound)));
                assert!(db.engine.read_resource(kind, other, "s").is_ok());
            }
            db.container(json!({}));
            assert!(names(&db.engine, StoredProcedure).is_empty(), "a new container is empty");
            if is_database {
                db.engine.delete_database(&db.ctx(), "d", &EtagCondition::None).unwrap();
                db.engine.create_database(&db.ctx(), &json!({"id": "d"}), None).unwrap();
            } else {
                for name in ["c", "other"] {
                    db.engine.delete_container(&db.ctx(), "d", name, &EtagCondition::None).unwrap();
                }
            }
            assert_eq!(catalog_keys(db), before, "nothing stays on disk");
            db.container(json!({}));
            let reopened = db.reopened();
            KINDS.iter().for_each(|(kind, ..)| assert!(names(&reopened, *kind).is_empty()));
            db.engine.delete_container(&db.ctx(), "d", "c", &EtagCondition::None).unwrap();
        }
    });
}
