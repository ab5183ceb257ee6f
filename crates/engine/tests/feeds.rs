//! Goal: read feeds and change feeds meet every item once, in order, whole transactions only.
//! Method: scripts on every store, then feeds in pages of every size.

#![allow(clippy::unwrap_used)]

mod common;

use bytes::Bytes;
use common::*;
use engine::Error;
use engine::ops::*;
use model::epk::{EffectivePartitionKey, EpkRange};
use model::partition_key::PartitionKey;
use serde_json::json;

fn key(text: &str) -> Scope {
    Scope::PartitionKey(PartitionKey::parse(text).unwrap())
}

fn request(start: ChangeFeedStart, items_max: usize) -> ChangeFeedRequest {
    ChangeFeedRequest {
        mode: ChangeFeedMode::LatestVersion,
        start,
        is_enveloped: false,
        items_max: Some(items_max),
        session: None,
    }
}

/// Follows a feed to its end; returns ids page by page, and the last etag.
fn follow(
    db: &Db,
    c: &engine::Container,
    scope: &Scope,
    mut request: ChangeFeedRequest,
) -> (Vec<Vec<String>>, String) {
    let mut pages = Vec::new();
    loop {
        let page = db.engine.change_feed(&db.ctx(), c, scope, &request).unwrap();
        if page.rows.is_empty() {
            return (pages, page.etag);
        }
        pages.push(ids(&page.rows));
        request.start = ChangeFeedStart::Etag(page.etag);
    }
}

#[test]
fn the_latest_version_feed_moves_updated_items_and_drops_deleted_ones() {
    on_every_store(|db| {
        let c = db.container(json!({}));
        for id in ["a", "b", "c", "d"] {
            db.create(&c, json!({"id": id, "pk": "p"})).unwrap();
        }
        db.replace(&c, "b", json!({"id": "b", "pk": "p", "v": 1})).unwrap();
        db.delete(&c, r#"["p"]"#, "c").unwrap();
        let page = db.changes(&c, &Scope::Container, ChangeFeedStart::Beginning);
        assert_eq!(ids(&page.rows), ["a", "d", "b"]);
        let last: serde_json::Value = serde_json::from_slice(&page.rows[2]).unwrap();
        assert_eq!(last["_lsn"], 5);
        let quiet = db.changes(&c, &Scope::Container, ChangeFeedStart::Etag(page.etag.clone()));
        assert!(quiet.rows.is_empty());
        db.upsert(&c, json!({"id": "a", "pk": "p", "v": 2})).unwrap();
        let next = db.changes(&c, &Scope::Container, ChangeFeedStart::Etag(page.etag));
        assert_eq!(ids(&next.rows), ["a"]);
    });
}

#[test]
fn a_feed_from_now_or_from_a_time_leaves_out_what_came_before() {
    on_every_store(|db| {
        let c = db.container(json!({}));
        db.create(&c, json!({"id": "old", "pk": "p"})).unwrap();
        let now = db.changes(&c, &Scope::Container, ChangeFeedStart::Now);
        assert!(now.rows.is_empty());
        db.advance(100);
        let time = start().as_secs() + 100;
        db.create(&c, json!({"id": "new", "pk": "p"})).unwrap();
        let since = db.changes(&c, &Scope::Container, ChangeFeedStart::Time(time));
        assert_eq!(ids(&since.rows), ["new"]);
        let after = db.changes(&c, &Scope::Container, ChangeFeedStart::Etag(now.etag));
        assert_eq!(ids(&after.rows), ["new"]);
    });
}

#[test]
fn pages_never_split_a_transaction() {
    on_every_store(|db| {
        let c = db.container(json!({}));
        for batch in 0..4 {
            let item = |n: usize| create(json!({"id": format!("{batch}-{n}"), "pk": "p"}));
            db.batch(&c, r#"["p"]"#, (0..5).map(item).collect()).unwrap();
            db.create(&c, json!({"id": format!("{batch}"), "pk": "q"})).unwrap();
        }
        for items_max in [1, 2, 3, 5, 6, 7, 100] {
            let start = request(ChangeFeedStart::Beginning, items_max);
            let (pages, _) = follow(db, &c, &Scope::Container, start);
            let all: Vec<&String> = pages.iter().flatten().collect();
            assert_eq!(all.len(), 24, "pages of {items_max}");
            for page in &pages {
                for batch in 0..4 {
                    let prefix = format!("{batch}-");
                    let part = page.iter().filter(|id| id.starts_with(&prefix)).count();
                    assert!(part == 0 || part == 5, "{part} of 5 in a page of {items_max}");
                }
            }
        }
        let (pages, _) = follow(db, &c, &key(r#"["q"]"#), request(ChangeFeedStart::Beginning, 3));
        assert_eq!(pages.concat(), ["0", "1", "2", "3"]);
    });
}

/// A small logical partition is read from its items, a large one from the log: its changes are
/// the same, in the same order, in pages of any size.
#[test]
fn the_feed_of_a_key_is_the_part_of_the_feed_that_has_it() {
    on_every_store(|db| {
        let c = db.container(json!({}));
        let item = |pk: &str, n: usize, v: u32| json!({"id": n.to_string(), "pk": pk, "v": v});
        for from in (0..1200).step_by(100) {
            let large = (from..from + 100).map(|n| create(item("large", n, 0))).collect();
            db.batch(&c, r#"["large"]"#, large).unwrap();
            db.create(&c, item("small", from, 0)).unwrap();
        }
        let some = [3, 1, 2].map(|n| create(item("small", n, 0)));
        db.batch(&c, r#"["small"]"#, some.into()).unwrap();
        for n in [500, 100, 900] {
            db.upsert(&c, item("small", n, 1)).unwrap();
            db.upsert(&c, item("large", n + 1, 1)).unwrap();
        }
        for pk in ["small", "large"] {
            db.delete(&c, &format!("[\"{pk}\"]"), "700").unwrap();
        }
        let all = |scope: &Scope, after: &str, items_max| {
            let start = ChangeFeedStart::Etag(after.into());
            let (mut rows, mut request) = (Vec::new(), request(start, items_max));
            loop {
                let page = db.engine.change_feed(&db.ctx(), &c, scope, &request).unwrap();
                if page.rows.is_empty() {
                    return rows;
                }
                assert!(page.rows.len() < items_max.max(3) + 100, "whole transactions only");
                rows.extend(page.rows);
                request.start = ChangeFeedStart::Etag(page.etag);
            }
        };
        for after in ["0", "9", "24", "25", "29"] {
            let whole = all(&Scope::Container, after, 1000);
            for pk in ["small", "large", "none"] {
                let of_key = |row: &&Bytes| {
                    let row: serde_json::Value = serde_json::from_slice(row).unwrap();
                    row["pk"] == pk
                };
                let part: Vec<&Bytes> = whole.iter().filter(of_key).collect();
                for items_max in [1, 4, 1000] {
                    let found = all(&key(&format!("[\"{pk}\"]")), after, items_max);
                    let found: Vec<&Bytes> = found.iter().collect();
                    assert_eq!(found, part, "{pk} after {after} in pages of {items_max}");
                }
            }
        }
    });
}

#[test]
fn feeds_by_range_cover_the_container_exactly() {
    on_every_store(|db| {
        let c = db.container_with(json!({}), Some(Throughput::Manual(50_000)));
        for n in 0..100 {
            db.create(&c, json!({"id": n.to_string(), "pk": n})).unwrap();
        }
        let by_partition = |id: u32| Scope::Range { partition: Some(id.to_string()), epk: None };
        let mut all = Vec::new();
        for range in c.ranges() {
            let start = request(ChangeFeedStart::Beginning, 7);
            let (pages, etag) = follow(db, &c, &by_partition(range.id), start);
            assert_eq!(etag, range.lsn.to_string(), "the etag of one partition is its LSN");
            all.extend(pages.concat());
            // The two halves of a range are the range.
            let middle = format!("{:02X}", 0x40 * (2 * range.id + 1) / 10);
            let epk = |text: &str| EffectivePartitionKey::parse(text).unwrap();
            let half = |min: &str, max: &str| {
                let epk = Some(EpkRange { min: epk(min), max: epk(max) });
                let scope = Scope::Range { partition: Some(range.id.to_string()), epk };
                db.feed_ids(&c, &scope, 3).len()
            };
            let whole = db.feed_ids(&c, &by_partition(range.id), 10).len();
            assert_eq!(half(&range.min, &middle) + half(&middle, &range.max), whole);
        }
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 100);
        let (pages, etag) =
            follow(db, &c, &Scope::Container, request(ChangeFeedStart::Beginning, 9));
        assert_eq!(pages.concat().len(), 100);
        assert_eq!(etag.split('|').count(), 5);
        let gone = db.engine.read_feed(
            &db.ctx(),
            &c,
            &Scope::Range { partition: Some("5".into()), epk: None },
            &PageRequest::default(),
        );
        assert!(matches!(gone, Err(Error::RangeGone { .. })));
    });
}

/// Clients that ask one physical partition after the other for a key get its items once.
#[test]
fn a_key_in_a_range_is_found_where_it_is() {
    on_every_store(|db| {
        let paths = json!({"paths": ["/t", "/u"], "kind": "MultiHash", "version": 2});
        let throughput = Some(Throughput::Manual(30_000));
        let c = db.container_with(json!({"partitionKey": paths}), throughput);
        for n in 0..60 {
            let body = json!({"id": n.to_string(), "t": n % 3, "u": n % 20});
            let key = json!([n % 3, n % 20]).to_string();
            db.write(&c, &key, plain(WriteKind::Create(draft(&body)))).unwrap();
        }
        for (text, count) in [("[1,4]", 1), ("[1]", 20), ("[9]", 0)] {
            let parsed = PartitionKey::parse(text).unwrap();
            let (mut changed, mut read, mut queried) = (Vec::new(), Vec::new(), Vec::new());
            for range in c.ranges() {
                let partition = range.id.to_string();
                let scope = Scope::KeyInRange { key: parsed.clone(), partition };
                let start = request(ChangeFeedStart::Beginning, 7);
                let (pages, etag) = follow(db, &c, &scope, start);
                assert_eq!(etag, range.lsn.to_string(), "{text}");
                changed.extend(pages.concat());
                read.extend(db.feed_ids(&c, &scope, 3));
                let text = "SELECT * FROM c WHERE c.t >= 0".to_owned();
                let query = QueryText { text, parameters: Vec::new() };
                let every = PageRequest { items_max: Some(100), ..PageRequest::default() };
                let page = db.engine.query_items(&db.ctx(), &c, &scope, &query, &every).unwrap();
                queried.extend(ids(&page.rows));
            }
            let whole = key(text);
            let mut all = db.feed_ids(&c, &whole, 100);
            all.sort();
            for mut found in [changed, read, queried] {
                found.sort();
                assert_eq!(found, all, "{text}");
            }
            assert_eq!(all.len(), count, "{text}");
        }
        let partition = "3".to_owned();
        let scope = Scope::KeyInRange { key: PartitionKey::parse("[1]").unwrap(), partition };
        let gone = db.engine.read_feed(&db.ctx(), &c, &scope, &PageRequest::default());
        assert!(matches!(gone, Err(Error::RangeGone { .. })));
    });
}

#[test]
fn hierarchical_keys_are_read_by_prefix() {
    on_every_store(|db| {
        let key_definition =
            json!({"paths": ["/t", "/u", "/s"], "kind": "MultiHash", "version": 2});
        let throughput = Some(Throughput::Manual(30_000));
        let c = db.container_with(json!({"partitionKey": key_definition}), throughput);
        for t in ["A", "B"] {
            for u in 0..3 {
                for s in 0..4 {
                    let body = json!({"id": format!("{t}{u}{s}"), "t": t, "u": u, "s": s});
                    let key = json!([t, u, s]).to_string();
                    db.write(&c, &key, plain(WriteKind::Create(draft(&body)))).unwrap();
                }
            }
        }
        assert_eq!(db.feed_ids(&c, &key(r#"["A"]"#), 5).len(), 12);
        assert_eq!(db.feed_ids(&c, &key(r#"["A", 1]"#), 3).len(), 4);
        assert_eq!(db.feed_ids(&c, &key(r#"["A", 1, 2]"#), 3), ["A12"]);
        assert_eq!(db.feed_ids(&c, &key(r#"["C"]"#), 3).len(), 0);
        let ctx = db.ctx();
        let prefix = PartitionKey::parse(r#"["A"]"#).unwrap();
        db.engine.delete_partition(&ctx, &c, &prefix).unwrap().wait().unwrap();
        assert_eq!(db.feed_ids(&c, &Scope::Container, 5).len(), 12);
        db.work();
        db.verify();
    });
}

#[test]
fn continuations_are_sealed() {
    let db = Db::memory();
    let c = db.container(json!({}));
    for n in 0..5 {
        db.create(&c, json!({"id": n.to_string(), "pk": n})).unwrap();
    }
    let page = |continuation: Option<String>| {
        let request = PageRequest { items_max: Some(2), continuation, ..PageRequest::default() };
        db.engine.read_feed(&db.ctx(), &c, &Scope::Container, &request)
    };
    let token = page(None).unwrap().continuation.unwrap();
    assert!(page(Some(token.clone())).is_ok());
    let mut forged = token.clone().into_bytes();
    forged[0] ^= 1;
    let forged = String::from_utf8(forged).unwrap();
    for bad in [forged, "".into(), "AAAA".into(), "?".into(), token[..token.len() - 2].into()] {
        assert!(matches!(page(Some(bad.clone())), Err(Error::Invalid(_))), "{bad}");
    }
}

#[test]
fn all_versions_and_deletes_are_kept_within_the_retention() {
    on_every_store(|db| {
        let c = db.container(json!({
            "changeFeedPolicy": {"retentionDuration": 10}, "defaultTtl": -1,
        }));
        let mut request = request(ChangeFeedStart::Now, 100);
        request.mode = ChangeFeedMode::AllVersionsAndDeletes;
        let now = db.engine.change_feed(&db.ctx(), &c, &Scope::Container, &request).unwrap();
        db.create(&c, json!({"id": "a", "pk": "p"})).unwrap();
        db.replace(&c, "a", json!({"id": "a", "pk": "p", "v": 2})).unwrap();
        db.delete(&c, r#"["p"]"#, "a").unwrap();
        db.create(&c, json!({"id": "t", "pk": "p", "ttl": 5})).unwrap();
        db.advance(6);
        db.work();
        request.start = ChangeFeedStart::Etag(now.etag.clone());
        let page = db.engine.change_feed(&db.ctx(), &c, &Scope::Container, &request).unwrap();
        let changes: Vec<serde_json::Value> =
            page.rows.iter().map(|row| serde_json::from_slice(row).unwrap()).collect();
        let kinds: Vec<&str> =
            changes.iter().map(|c| c["metadata"]["operationType"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["create", "replace", "delete", "create", "delete"]);
        assert_eq!(changes[1]["current"]["v"], 2);
        assert_eq!(changes[1]["previous"].get("v"), None);
        assert_eq!(changes[1]["metadata"]["previousImageLSN"], changes[0]["metadata"]["lsn"]);
        assert_eq!(changes[2].get("current"), None);
        assert_eq!(changes[2]["metadata"]["id"], "a");
        assert_eq!(changes[2]["metadata"]["partitionKey"], json!({"pk": "p"}));
        assert_eq!(changes[4]["metadata"]["timeToLiveExpired"], true);
        db.advance(700);
        db.work();
        let old = db.engine.change_feed(&db.ctx(), &c, &Scope::Container, &request);
        assert!(matches!(old, Err(Error::Invalid(_))), "older than the retention");
        request.start = ChangeFeedStart::Beginning;
        let beginning = db.engine.change_feed(&db.ctx(), &c, &Scope::Container, &request);
        assert!(matches!(beginning, Err(Error::Invalid(_))));
        db.verify();
    });
}

#[test]
fn a_page_of_changes_is_cut_at_its_largest_size() {
    let db = Db::memory();
    let c = db.container(json!({"changeFeedPolicy": {"retentionDuration": 10}}));
    let large = "x".repeat(1_500_000);
    let mut versions = request(ChangeFeedStart::Now, 100);
    versions.mode = ChangeFeedMode::AllVersionsAndDeletes;
    let now = db.engine.change_feed(&db.ctx(), &c, &Scope::Container, &versions).unwrap();
    for n in 0..8 {
        db.create(&c, json!({"id": n.to_string(), "pk": n, "large": large})).unwrap();
    }
    versions.start = ChangeFeedStart::Etag(now.etag);
    for mut next in [request(ChangeFeedStart::Beginning, 100), versions] {
        let mut count = 0;
        loop {
            let page = db.engine.change_feed(&db.ctx(), &c, &Scope::Container, &next).unwrap();
            let bytes: usize = page.rows.iter().map(|row| row.len()).sum();
            assert!(bytes < 4 << 20, "{bytes} bytes in a page");
            count += page.rows.len();
            if page.rows.is_empty() {
                break;
            }
            next.start = ChangeFeedStart::Etag(page.etag);
        }
        assert_eq!(count, 8);
    }
}
