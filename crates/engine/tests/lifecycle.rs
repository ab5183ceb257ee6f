//! Goal: expiry, deletion by key, dropping and changing containers keep every promise, and nothing
//! is left behind. Method: a clock that stands still and background work done by hand.

#![allow(clippy::unwrap_used)]

mod common;

use bytes::Bytes;
use common::*;
use engine::Error;
use engine::ops::*;
use model::partition_key::PartitionKey;
use serde_json::json;
use store::{Commit, Range, ScanOptions, Space, Write};

/// Keys of the whole store in one space, counted, without the store's own.
fn stored(db: &Db, space: Space) -> u64 {
    let start = vec![u8::from(space == Space::Meta)];
    db.store.view().reader().count(space, &Range { start, end: None }).unwrap()
}

#[test]
fn expired_items_are_gone_at_once_and_removed_later() {
    on_every_store(|db| {
        let c = db.container(json!({"defaultTtl": 10}));
        db.create(&c, json!({"id": "default", "pk": "p"})).unwrap();
        db.create(&c, json!({"id": "short", "pk": "p", "ttl": 2})).unwrap();
        db.create(&c, json!({"id": "never", "pk": "p", "ttl": -1})).unwrap();
        db.create(&c, json!({"id": "long", "pk": "p", "ttl": 50})).unwrap();
        let present = || {
            let mut ids = db.feed_ids(&c, &Scope::Container, 10);
            ids.sort();
            ids
        };
        db.advance(2);
        assert_eq!(present(), ["default", "long", "never"]);
        assert!(matches!(db.read(&c, r#"["p"]"#, "short"), Err(Error::NotFound)));
        db.create(&c, json!({"id": "short", "pk": "p", "ttl": 50})).unwrap();
        db.advance(8);
        assert_eq!(present(), ["long", "never", "short"]);
        assert_eq!(
            ids(&db.changes(&c, &Scope::Container, ChangeFeedStart::Beginning).rows).len(),
            3
        );
        db.verify();
        db.work();
        db.verify();
        assert_eq!(stored(db, Space::Item), 3);
        let refused = [json!(0), json!(null), json!(1.5), json!("1"), json!(2147483648u64)];
        for ttl in refused {
            let result = db.create(&c, json!({"id": "bad", "pk": "p", "ttl": ttl}));
            assert!(matches!(result, Err(Error::Invalid(_))), "{ttl}");
        }
        db.create(&c, json!({"id": "most", "pk": "p", "ttl": 2147483647})).unwrap();
    });
}

#[test]
fn an_expired_item_does_not_come_back_when_the_setting_changes() {
    on_every_store(|db| {
        let c = db.container(json!({"defaultTtl": 5}));
        db.create(&c, json!({"id": "a", "pk": "p"})).unwrap();
        db.advance(5);
        let mut body = (*db.engine.read_container("d", "c").unwrap().body).clone();
        body.as_object_mut().unwrap().remove("defaultTtl");
        db.engine.replace_container(&db.ctx(), "d", "c", &body, &EtagCondition::None).unwrap();
        assert!(matches!(db.read(&c, r#"["p"]"#, "a"), Err(Error::NotFound)));
        db.create(&c, json!({"id": "b", "pk": "p", "ttl": 1})).unwrap();
        db.advance(100);
        assert!(db.read(&c, r#"["p"]"#, "b").is_ok(), "without a setting ttl is plain data");
        db.verify();
    });
}

#[test]
fn unique_keys_of_expired_items_are_free() {
    let db = Db::memory();
    let unique = json!({"uniqueKeys": [{"paths": ["/m"]}]});
    let c = db.container(json!({"defaultTtl": 5, "uniqueKeyPolicy": unique}));
    db.create(&c, json!({"id": "a", "pk": "p", "m": 1})).unwrap();
    db.advance(5);
    db.create(&c, json!({"id": "b", "pk": "p", "m": 1})).unwrap();
    db.verify();
    db.work();
    db.verify();
}

#[test]
fn deleting_a_partition_key_spares_what_is_written_afterwards() {
    on_every_store(|db| {
        let c = db.container(json!({}));
        for n in 0..30 {
            let pk = if n % 2 == 0 { "p" } else { "q" };
            db.create(&c, json!({"id": n.to_string(), "pk": pk})).unwrap();
        }
        let key = PartitionKey::parse(r#"["p"]"#).unwrap();
        db.engine.delete_partition(&db.ctx(), &c, &key).unwrap().wait().unwrap();
        assert_eq!(db.feed_ids(&c, &Scope::Container, 7).len(), 15);
        assert!(matches!(db.read(&c, r#"["p"]"#, "0"), Err(Error::NotFound)));
        db.create(&c, json!({"id": "0", "pk": "p", "again": true})).unwrap();
        assert_eq!(db.feed_ids(&c, &Scope::Container, 7).len(), 16);
        let reopened = db.reopened();
        let again = reopened.container("d", "c").unwrap();
        let read = |id: &str| {
            let ctx = db.ctx();
            reopened.read_item(&ctx, &again, &key, id, &EtagCondition::None, None)
        };
        assert!(read("2").is_err() && read("0").is_ok(), "the deletion survives a restart");
        db.work();
        db.verify();
        assert_eq!(stored(db, Space::Item), 16);
    });
}

#[test]
fn a_changed_indexing_policy_reaches_every_item() {
    on_every_store(|db| {
        let c = db.container(json!({}));
        for n in 0..20 {
            db.create(&c, json!({"id": n.to_string(), "pk": n % 3, "a": n, "b": {"c": n}}))
                .unwrap();
        }
        let change = |indexing: serde_json::Value| {
            let mut body = (*db.engine.read_container("d", "c").unwrap().body).clone();
            body["indexingPolicy"] = indexing;
            db.engine.replace_container(&db.ctx(), "d", "c", &body, &EtagCondition::None).unwrap();
        };
        let before = stored(db, Space::Term);
        change(json!({"includedPaths": [{"path": "/a/?"}], "excludedPaths": [{"path": "/*"}]}));
        assert_eq!(c.transformation_progress(), 0);
        db.replace(&c, "3", json!({"id": "3", "pk": 0, "a": "x"})).unwrap();
        db.create(&c, json!({"id": "new", "pk": 0, "b": 1})).unwrap();
        db.verify();
        change(json!({
            "includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": "/b/*"}],
            "compositeIndexes": [[{"path": "/a"}, {"path": "/pk", "order": "descending"}]],
        }));
        let reopened = db.reopened();
        while reopened.work().unwrap() {}
        assert_eq!(reopened.container("d", "c").unwrap().transformation_progress(), 100);
        assert_eq!(reopened.verify(|_| ()).unwrap().findings, Vec::<String>::new());
        drop(reopened);
        change(json!({"indexingMode": "none", "automatic": false}));
        db.work();
        assert_eq!(stored(db, Space::Term), 0);
        db.verify();
        change(json!({}));
        db.delete(&c, "[1]", "1").unwrap();
        db.work();
        db.verify();
        assert!(stored(db, Space::Term) > before / 2);
    });
}

#[test]
fn spatial_terms_come_and_go_with_their_index() {
    on_every_store(|db| {
        let c = db.container(json!({}));
        let at = |n: u32| json!({"type": "Point", "coordinates": [n, 50]});
        for n in 0..10 {
            db.create(&c, json!({"id": n.to_string(), "pk": 0, "loc": at(n)})).unwrap();
        }
        let change = |indexing: serde_json::Value| {
            let mut body = (*db.engine.read_container("d", "c").unwrap().body).clone();
            body["indexingPolicy"] = indexing;
            db.engine.replace_container(&db.ctx(), "d", "c", &body, &EtagCondition::None).unwrap();
        };
        let before = stored(db, Space::Term);
        change(json!({"spatialIndexes": [{"path": "/loc/*"}]}));
        db.replace(&c, "3", json!({"id": "3", "pk": 0, "loc": at(99)})).unwrap();
        db.work();
        db.verify();
        assert_eq!(stored(db, Space::Term), before + 10, "a cell for each point");
        db.replace(&c, "4", json!({"id": "4", "pk": 0, "loc": at(200)})).unwrap();
        db.replace(&c, "5", json!({"id": "5", "pk": 0, "loc": at(55)})).unwrap();
        db.verify();
        assert_eq!(stored(db, Space::Term), before + 9, "no cell for what is no place");
        change(json!({}));
        db.work();
        db.verify();
        assert_eq!(stored(db, Space::Term), before);
    });
}

#[test]
fn a_computed_property_hides_a_stored_one_from_the_index() {
    on_every_store(|db| {
        let c = db.container(json!({}));
        for n in 0..10 {
            db.create(&c, json!({"id": n.to_string(), "pk": n % 3, "a": n})).unwrap();
        }
        let before = stored(db, Space::Term);
        let change = |computed: serde_json::Value| {
            let mut body = (*db.engine.read_container("d", "c").unwrap().body).clone();
            body["computedProperties"] = computed;
            db.engine.replace_container(&db.ctx(), "d", "c", &body, &EtagCondition::None).unwrap();
        };
        change(json!([{"name": "a", "query": "SELECT VALUE c.pk FROM c"}]));
        db.delete(&c, "[0]", "0").unwrap();
        db.verify();
        db.work();
        db.verify();
        assert_eq!(stored(db, Space::Term), (before - before / 10) - 9);
        change(json!([]));
        db.create(&c, json!({"id": "0", "pk": 0, "a": 0})).unwrap();
        let reopened = db.reopened();
        while reopened.work().unwrap() {}
        assert_eq!(reopened.verify(|_| ()).unwrap().findings, Vec::<String>::new());
        assert_eq!(stored(db, Space::Term), before);
    });
}

#[test]
fn a_dropped_container_leaves_nothing_behind() {
    on_every_store(|db| {
        let empty: Vec<u64> = Space::ALL.iter().map(|space| stored(db, *space)).collect();
        let c = db.container(json!({}));
        let rid = c.rid();
        for n in 0..40 {
            db.create(&c, json!({"id": n.to_string(), "pk": n})).unwrap();
        }
        db.engine.delete_container(&db.ctx(), "d", "c", &EtagCondition::None).unwrap();
        assert!(matches!(db.create(&c, json!({"id": "x", "pk": 1})), Err(Error::OwnerNotFound)));
        let again = db.container(json!({}));
        assert_ne!(again.rid(), rid, "a rid is never used twice");
        db.engine.delete_database(&db.ctx(), "d", &EtagCondition::None).unwrap();
        db.work();
        let left: Vec<u64> = Space::ALL.iter().map(|space| stored(db, *space)).collect();
        assert_eq!(left[1..], empty[1..]);
        assert!(left[0] <= empty[0] + 1, "only the account's numbers may be new: {left:?}");
    });
}

#[test]
fn what_is_written_behind_a_removal_is_removed_too() {
    on_every_store(|db| {
        let c = db.container(json!({}));
        let tags: Vec<String> = (0..400).map(|n| format!("tag {n}")).collect();
        for n in 0..25 {
            db.create(&c, json!({"id": n.to_string(), "pk": n, "tags": tags})).unwrap();
        }
        let (all, first) = (stored(db, Space::Term), first_key(db, Space::Term));
        assert!(all > 8_000, "more than one step: {all}");
        db.engine.delete_container(&db.ctx(), "d", "c", &EtagCondition::None).unwrap();
        while stored(db, Space::Term) == all {
            assert!(db.engine.work().unwrap());
        }
        assert!(first_key(db, Space::Term) > first, "begun");
        // A commit that was under way when the container was dropped.
        let late = Write::Put(Space::Term, first.into(), Bytes::new());
        db.store.commit(Commit { writes: vec![late], ..Commit::default() }).wait().unwrap();
        db.work();
        assert_eq!(stored(db, Space::Term), 0);
        assert_eq!(stored(db, Space::Item), 0);
    });
}

fn first_key(db: &Db, space: Space) -> Vec<u8> {
    let options = ScanOptions { rows_max: 1, keys_only: true, ..ScanOptions::default() };
    let scanned = db.store.view().reader().scan(space, &Range::prefix([]), options).unwrap();
    scanned.rows[0].key.to_vec()
}

#[test]
fn a_restart_changes_nothing() {
    on_every_store(|db| {
        let c = db.container(json!({"defaultTtl": -1}));
        for n in 0..10 {
            db.create(&c, json!({"id": n.to_string(), "pk": n, "n": n})).unwrap();
        }
        let ctx = db.ctx();
        let owner = engine::Owner::database("d");
        let user = json!({"id": "u"});
        db.engine.create_resource(&ctx, ResourceKind::User, owner, &user, false).unwrap();
        let permission = json!({"id": "x", "permissionMode": "Read", "resource": "dbs/d/colls/c"});
        let below = engine::Owner::user("d", "u");
        db.engine
            .create_resource(&ctx, ResourceKind::Permission, below, &permission, false)
            .unwrap();
        let all = |engine: &engine::Engine| {
            let mut bodies = vec![
                engine.read_database("d").unwrap().body,
                engine.read_container("d", "c").unwrap().body,
                engine.read_resource(ResourceKind::User, owner, "u").unwrap().body,
                engine.read_resource(ResourceKind::Permission, below, "x").unwrap().body,
            ];
            bodies.extend(engine.list_offers().into_iter().map(|offer| offer.body));
            bodies
        };
        let reopened = db.reopened();
        assert_eq!(all(&reopened), all(&db.engine));
        assert_eq!(reopened.seal_key(), db.engine.seal_key());
        let c = reopened.container("d", "c").unwrap();
        assert_eq!(reopened.verify(|_| ()).unwrap().items, 10);
        let next = reopened.lock(&c, &PartitionKey::parse("[1]").unwrap());
        let write = plain(WriteKind::Create(draft(&json!({"id": "after", "pk": 1}))));
        let answer = reopened.write(&ctx, now(next), write).wait().unwrap();
        assert_eq!(answer.lsn, 11, "LSNs go on");
    });
}
