//! Goal: a query gives the same rows whatever serves it: index or scan, one physical partition or
//! seven, pages of any size; and stays inside its scope. Method: generated data, a list of queries,
//! a naive filter as oracle.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;

use common::*;
use engine::ops::*;
use engine::{Container, Error};
use item::Value;
use model::Rid;
use model::partition_key::PartitionKey;
use serde_json::json;

fn text(text: &str) -> QueryText {
    QueryText { text: text.into(), parameters: Vec::new() }
}

fn rows(db: &Db, c: &Container, scope: &Scope, query: &QueryText, items_max: usize) -> Vec<String> {
    let mut rows = Vec::new();
    let mut continuation = None;
    loop {
        let page =
            PageRequest { items_max: Some(items_max), continuation, ..PageRequest::default() };
        let found = db.engine.query_items(&db.ctx(), c, scope, query, &page).unwrap();
        assert!(found.rows.len() <= items_max);
        rows.extend(found.rows.iter().map(|row| String::from_utf8(row.to_vec()).unwrap()));
        match found.continuation {
            Some(token) => {
                assert!(token.len() < 1024, "a continuation fits a header");
                continuation = Some(token);
            }
            None => return rows,
        }
    }
}

/// Rows, charge and work of each page.
fn pages(
    db: &Db,
    c: &Container,
    query: &str,
    items_max: usize,
    ctx: impl Fn() -> base::Ctx,
) -> Vec<(Vec<bytes::Bytes>, RequestCharge, base::MeterReading)> {
    let mut pages = Vec::new();
    let mut continuation = None;
    loop {
        let page =
            PageRequest { items_max: Some(items_max), continuation, ..PageRequest::default() };
        let scope = Scope::Container;
        let found = db.engine.query_items(&ctx(), c, &scope, &text(query), &page).unwrap();
        pages.push((found.rows, found.charge, found.meter));
        match found.continuation {
            Some(token) => continuation = Some(token),
            None => return pages,
        }
    }
}

#[test]
fn threads_change_neither_rows_nor_charges() {
    on_every_store(|db| {
        let c = db.container_with(json!({}), Some(Throughput::Manual(240_000)));
        for n in 0..300 {
            let mut body =
                json!({"id": n.to_string(), "pk": n, "n": n % 10, "s": format!("v{}", n % 4)});
            if n % 3 > 0 {
                body["opt"] = json!(n);
            }
            db.create(&c, body).unwrap();
        }
        for query in QUERIES.into_iter().chain(ORDERED) {
            let matches = pages(db, &c, query, 1000, || db.ctx().on_trial());
            let matches = matches.iter().map(|page| page.0.len()).sum::<usize>().max(1);
            for items_max in [1, 7, matches, 1000] {
                // Work on trial stays on one thread.
                let alone = pages(db, &c, query, items_max, || db.ctx().on_trial());
                let together = pages(db, &c, query, items_max, || db.ctx());
                assert_eq!(alone, together, "{query} in pages of {items_max}");
            }
        }
    });
}

/// The last items of every partition pass: a walk that tests keys meets them in its last batch.
#[test]
fn threads_do_not_change_where_tests_of_keys_end() {
    const ITEMS: usize = 64;
    const PASSING: usize = 10;
    on_every_store(|db| {
        let c = db.container_with(json!({}), Some(Throughput::Manual(240_000)));
        let mut counts = [0; 24];
        for n in 0.. {
            if counts.iter().all(|count| *count == ITEMS) {
                break;
            }
            let key = PartitionKey::parse(&format!("[{n}]")).unwrap();
            let count = &mut counts[c.partition_of(&key) as usize];
            if *count < ITEMS {
                let letter = if *count < ITEMS - PASSING { 'a' } else { 'z' };
                let body =
                    json!({"id": n.to_string(), "pk": n, "s": format!("{letter}{count:02}")});
                db.create(&c, body).unwrap();
                *count += 1;
            }
        }
        let query = "SELECT VALUE c.id FROM c WHERE CONTAINS(c.s, 'z')";
        for items_max in [24 * PASSING, 24 * PASSING + 5] {
            let alone = pages(db, &c, query, items_max, || db.ctx().on_trial());
            let together = pages(db, &c, query, items_max, || db.ctx());
            assert_eq!(alone, together, "in pages of {items_max}");
        }
    });
}

#[test]
fn full_pages_are_not_followed_by_an_empty_one() {
    on_every_store(|db| {
        let c = db.container(json!({}));
        for n in 0..512 {
            let tags = [1, 2];
            db.create(&c, json!({"id": n.to_string(), "pk": n, "v": n % 2, "tags": tags})).unwrap();
        }
        for (query, count) in [
            ("SELECT * FROM c", 512),
            ("SELECT * FROM c ORDER BY c.v", 512),
            ("SELECT * FROM c ORDER BY c.v DESC", 512),
            ("SELECT * FROM c WHERE c.v >= 0", 512),
            ("SELECT * FROM c WHERE c.v = 0", 256),
            ("SELECT VALUE t FROM c JOIN t IN c.tags WHERE c.v = 0", 512),
        ] {
            for items_max in [64, 256, 512].into_iter().filter(|max| *max <= count) {
                let found = pages(db, &c, query, items_max, || db.ctx());
                let found: Vec<usize> = found.iter().map(|page| page.0.len()).collect();
                assert_eq!(found, vec![items_max; count / items_max], "{query}");
            }
        }
    });
}

/// Clients that merge an order go on past the last row they had: among rows of equal order by `_rid`,
/// in the direction they are told.
#[test]
fn rows_of_equal_order_come_as_clients_are_told() {
    on_every_store(|db| {
        let index = |paths: &[(&str, &str)]| {
            let path = |(path, order): &(&str, &str)| json!({"path": path, "order": order});
            serde_json::Value::from(paths.iter().map(path).collect::<Vec<_>>())
        };
        let c = db.container(json!({"indexingPolicy": {"compositeIndexes": [
            index(&[("/n", "descending"), ("/s", "ascending")]),
            index(&[("/k", "ascending"), ("/n", "descending"), ("/s", "ascending")]),
            index(&[("/k", "ascending"), ("/n", "descending")]),
        ]}}));
        for n in 0..40 {
            let s = format!("s{}", n * 7 % 5);
            db.create(&c, json!({"id": n.to_string(), "pk": n, "k": 1, "n": n % 2, "s": s}))
                .unwrap();
        }
        for (keys, filter) in [
            ("c.n ASC, c.s DESC", "true"),
            ("c.n DESC, c.s ASC", "true"),
            ("c.n DESC", "true"),
            ("c.n ASC", "c.k = 1"),
            ("c.n DESC", "c.k = 1"),
        ] {
            let parts: Vec<&str> = keys.split(", ").map(|key| &key[..3]).collect();
            let items: Vec<String> =
                parts.iter().map(|key| format!("{{\"item\": {key}}}")).collect();
            let query = text(&format!(
                "SELECT c._rid, [{}] AS orderByItems, c.id AS payload FROM c WHERE ({filter}) \
                 ORDER BY {keys}",
                items.join(", ")
            ));
            let page = PageRequest { items_max: Some(1000), ..PageRequest::default() };
            let scope = Scope::Container;
            let found = db.engine.query_items(&db.ctx(), &c, &scope, &query, &page).unwrap();
            let rows: Vec<serde_json::Value> =
                found.rows.iter().map(|row| serde_json::from_slice(row).unwrap()).collect();
            assert_eq!(rows.len(), 40, "{keys}");
            let is_reversed = found.is_reversed.expect("a client merges it");
            for pair in rows.windows(2) {
                let [a, b] = [&pair[0], &pair[1]];
                // All partition keys differ, so that ordinals go by their hashes; rids say which.
                if a["orderByItems"] == b["orderByItems"] {
                    let ordinal =
                        |row: &serde_json::Value| match Rid::parse(row["_rid"].as_str().unwrap()) {
                            Some(Rid::Child(_, _, ordinal)) => ordinal,
                            other => panic!("{other:?}"),
                        };
                    assert_eq!(ordinal(a) > ordinal(b), is_reversed, "{keys}: {a} {b}");
                }
            }
        }
        let plain = text("SELECT * FROM c ORDER BY c.n");
        let page = PageRequest::default();
        let found = db.engine.query_items(&db.ctx(), &c, &Scope::Container, &plain, &page);
        assert_eq!(found.unwrap().is_reversed, None);
    });
}

fn load(db: &Db, throughput: u32, definition: serde_json::Value) -> Arc<Container> {
    let c = db.container_with(definition, Some(Throughput::Manual(throughput)));
    for n in 0..60 {
        let mut body =
            json!({"id": format!("i{n:02}"), "pk": n % 7, "n": n % 10, "s": format!("v{}", n % 4)});
        match n % 6 {
            0 => body["opt"] = json!(n),
            1 => body["opt"] = json!(format!("s{n}")),
            2 => body["opt"] = json!(null),
            3 => body["opt"] = json!([n]),
            4 => body["opt"] = json!(true),
            _ => {}
        }
        db.create(&c, body).unwrap();
    }
    c
}

const QUERIES: [&str; 18] = [
    "SELECT VALUE c.id FROM c WHERE c.n = 3",
    "SELECT VALUE c.id FROM c WHERE c.n > 7 AND c.s = 'v1'",
    "SELECT VALUE c.id FROM c WHERE c.n IN (1, 2) OR c.s = 'v3'",
    "SELECT VALUE c.id FROM c WHERE NOT (c.n = 3)",
    "SELECT VALUE c.id FROM c WHERE IS_DEFINED(c.opt) AND c.n < 5",
    "SELECT VALUE c.id FROM c WHERE STARTSWITH(c.s, 'v') AND c.n >= 9",
    "SELECT VALUE c.id FROM c WHERE c.pk = 4",
    "SELECT VALUE c.id FROM c WHERE c.pk IN (1, 5) AND c.n != 0",
    "SELECT VALUE c.id FROM c WHERE c.id = 'i07'",
    "SELECT VALUE c.id FROM c WHERE c.opt = null",
    "SELECT VALUE c.id FROM c WHERE c.opt > 20",
    "SELECT VALUE c.id FROM c WHERE c.pk = 2 AND c.id IN ('i02', 'i09', 'i10')",
    "SELECT VALUE c.id FROM c WHERE CONTAINS(c.s, '2')",
    "SELECT VALUE c.id FROM c WHERE c.pk = 3 AND c.s LIKE '%1'",
    "SELECT VALUE c.id FROM c WHERE c.opt != 6 AND NOT ENDSWITH(c.id, '7')",
    "SELECT VALUE c.id FROM c WHERE IS_STRING(c.opt)",
    "SELECT VALUE COUNT(1) FROM c WHERE c.n = 3",
    "SELECT VALUE c.id FROM c",
];

const ORDERED: [&str; 5] = [
    "SELECT VALUE c.id FROM c ORDER BY c.n",
    "SELECT VALUE c.id FROM c WHERE c.s = 'v2' ORDER BY c.n DESC",
    "SELECT TOP 11 VALUE c.id FROM c ORDER BY c.opt",
    "SELECT VALUE c.opt FROM c ORDER BY c.opt DESC",
    "SELECT VALUE c.id FROM c ORDER BY c.n OFFSET 5 LIMIT 17",
];

/// Batches end where items are large, and what is read ahead has a bound.
#[test]
fn large_items_come_once_each() {
    on_every_store(|db| {
        let c = db.container_with(json!({}), Some(Throughput::Manual(120_000)));
        let filler = "x".repeat(1 << 20);
        for n in 0..40 {
            let body = json!({"id": format!("{n:02}"), "pk": n % 20, "n": n % 2, "s": filler});
            db.create(&c, body).unwrap();
        }
        let wholes = ["SELECT * FROM c WHERE c.n >= 0", "SELECT * FROM c WHERE c.n IN (0, 1)"];
        for query in wholes.into_iter().chain(["SELECT * FROM c ORDER BY c.id"]) {
            let pages = pages(db, &c, query, 1000, || db.ctx());
            assert!(pages.len() >= 10, "a page has four megabytes");
            let mut found: Vec<String> = pages.iter().flat_map(|page| ids(&page.0)).collect();
            found.sort();
            assert!(found.into_iter().eq((0..40).map(|n| format!("{n:02}"))), "{query}");
        }
        let one = &Scope::PartitionKey(PartitionKey::parse("[7]").unwrap());
        let found = rows(db, &c, one, &text("SELECT VALUE c.id FROM c WHERE c.n = 1"), 1000);
        assert_eq!(found, ["\"07\"", "\"27\""]);
    });
}

/// Without an index on user properties everything is a scan: the oracle for the index.
#[test]
fn index_scan_partitions_and_pages_agree() {
    let plain = Db::memory();
    let none = json!({"indexingPolicy": {"includedPaths": [], "excludedPaths": [{"path": "/*"}]}});
    let oracle = load(&plain, 400, none);
    for throughput in [400, 70_000] {
        let db = Db::memory();
        let c = load(&db, throughput, json!({}));
        for query in QUERIES {
            let mut expected = rows(&plain, &oracle, &Scope::Container, &text(query), 1000);
            expected.sort();
            for items_max in [1, 3, 1000] {
                let mut found = rows(&db, &c, &Scope::Container, &text(query), items_max);
                found.sort();
                assert_eq!(found, expected, "{query} on {throughput} RU/s in pages of {items_max}");
            }
        }
        for query in ORDERED {
            let all = rows(&db, &c, &Scope::Container, &text(query), 1000);
            for items_max in [1, 3, 7] {
                let paged = rows(&db, &c, &Scope::Container, &text(query), items_max);
                assert_eq!(paged, all, "{query} on {throughput} RU/s in pages of {items_max}");
            }
        }
    }
}

/// Strings are cut at 192 bytes in terms and at 128 in composite indexes; up to 100 bytes an entry
/// may answer a filter by itself.
#[test]
fn values_at_the_limits_of_an_index_are_told_apart() {
    let mut values: Vec<serde_json::Value> =
        [json!(null), json!(true), json!([]), json!({}), json!(-0.0), json!(0), json!(5e-324)]
            .into();
    values.extend([json!(1e308), json!(-1e308), json!(9_007_199_254_740_993_i64), json!("")]);
    for length in [98, 99, 100, 101, 127, 128, 129, 130, 191, 192, 193, 194, 300] {
        for last in ["a", "b", "\u{e9}"] {
            values.push(json!(format!("{}{last}", "x".repeat(length - last.len()))));
        }
    }
    let by = |order: &str| json!([{"path": "/pk"}, {"path": "/s", "order": order}]);
    let both = json!({"indexingPolicy": {"compositeIndexes": [by("ascending"), by("descending")]}});
    let none = json!({"indexingPolicy": {"includedPaths": [], "excludedPaths": [{"path": "/*"}]}});
    let fill = |definition: serde_json::Value| {
        let db = Db::memory();
        let c = db.container(definition);
        for (n, value) in values.iter().enumerate() {
            for pk in ["one", "two"] {
                let body = json!({"id": format!("{pk}{n}"), "pk": pk, "s": value});
                db.create(&c, body).unwrap();
            }
        }
        db.create(&c, json!({"id": "nothing", "pk": "one"})).unwrap();
        (db, c)
    };
    let oracle = fill(none);
    let indexed = [fill(json!({})), fill(both)];
    let key = Scope::PartitionKey(PartitionKey::parse(r#"["one"]"#).unwrap());
    for value in &values {
        for operator in ["=", "<", "<=", ">", ">=", "!="] {
            let query = format!("SELECT * FROM c WHERE c.pk = 'one' AND c.s {operator} @value");
            let parameter = Value::parse(value.to_string().as_bytes()).unwrap();
            let parameters = vec![("@value".to_owned(), parameter)];
            for (order, scope) in [("", &Scope::Container), ("", &key), (" ORDER BY c.s", &key)] {
                let ask = |order: &str| QueryText {
                    text: format!("{query}{order}"),
                    parameters: parameters.clone(),
                };
                let ids = |(db, c): &(Db, Arc<Container>), query: &QueryText| {
                    let found = rows(db, c, scope, query, 100);
                    sorted(found.iter().map(|row| id_of(row.as_bytes())).collect())
                };
                let expected = ids(&oracle, &ask(""));
                for one in &indexed {
                    assert_eq!(ids(one, &ask(order)), expected, "{query}{order} with {value}");
                }
            }
        }
    }
}

#[test]
fn a_scope_bounds_a_query() {
    let db = Db::memory();
    let c = load(&db, 70_000, json!({}));
    let all = text("SELECT VALUE c.id FROM c");
    let key = |text: &str| Scope::PartitionKey(PartitionKey::parse(text).unwrap());
    assert_eq!(rows(&db, &c, &key("[3]"), &all, 4).len(), 9);
    let other = text("SELECT VALUE c.id FROM c WHERE c.pk = 2");
    assert_eq!(rows(&db, &c, &key("[3]"), &other, 4).len(), 0);
    let ranges = c.ranges().into_iter().map(|range| {
        let scope = Scope::Range { partition: Some(range.id.to_string()), epk: None };
        rows(&db, &c, &scope, &all, 5).len()
    });
    assert_eq!(ranges.sum::<usize>(), 60);
}

#[test]
fn parameters_and_client_rewrites_run() {
    let db = Db::memory();
    let c = load(&db, 400, json!({}));
    let query = QueryText {
        text: "SELECT VALUE c.id FROM c WHERE c.n = @n AND c.s = @s".into(),
        parameters: vec![("@n".into(), Value::Number(3.0)), ("@s".into(), Value::string("v3"))],
    };
    assert_eq!(rows(&db, &c, &Scope::Container, &query, 10), [r#""i03""#, r#""i23""#, r#""i43""#]);
    let rewritten = text(
        r#"SELECT VALUE {"_rid": c._rid, "orderByItems": [{"item": c.n}], "payload": c}
           FROM c WHERE true ORDER BY c.n"#,
    );
    let found = rows(&db, &c, &Scope::Container, &rewritten, 20);
    assert_eq!(found.len(), 60);
    let first: serde_json::Value = serde_json::from_str(&found[0]).unwrap();
    assert_eq!(first["orderByItems"], json!([{"item": 0}]));
    assert_eq!(first["payload"]["_rid"], first["_rid"]);
}

#[test]
fn a_continuation_belongs_to_its_query() {
    let db = Db::memory();
    let c = load(&db, 400, json!({}));
    let page = |query: &str, continuation: Option<String>| {
        let request = PageRequest { items_max: Some(2), continuation, ..PageRequest::default() };
        db.engine.query_items(&db.ctx(), &c, &Scope::Container, &text(query), &request)
    };
    let token = page("SELECT * FROM c", None).unwrap().continuation;
    assert!(page("SELECT * FROM c", token.clone()).is_ok());
    let other = page("SELECT * FROM c WHERE c.n = 1", token);
    assert!(matches!(other, Err(Error::Invalid(_))), "{other:?}");
}

#[test]
fn mistakes_are_refused_with_their_place() {
    let db = Db::memory();
    let c = db.container(json!({}));
    let run = |query: &str| {
        let page = PageRequest::default();
        db.engine.query_items(&db.ctx(), &c, &Scope::Container, &text(query), &page)
    };
    for query in ["SELECT", "SELECT * FROM c WHERE", "SELEKT * FROM c", "SELECT * FROM c ORDER BY"]
    {
        match run(query) {
            Err(Error::InvalidQuery(document)) => {
                let document: serde_json::Value = serde_json::from_str(&document).unwrap();
                assert!(document["errors"][0]["location"]["start"].is_u64(), "{document}");
            }
            other => panic!("{query}: {other:?}"),
        }
    }
    let excluded = json!({"indexingPolicy": {
        "includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": "/x/?"}],
    }});
    db.engine.delete_container(&db.ctx(), "d", "c", &EtagCondition::None).unwrap();
    let c = db.container(excluded);
    let page = PageRequest::default();
    let query = text("SELECT * FROM c ORDER BY c.x");
    let refused = db.engine.query_items(&db.ctx(), &c, &Scope::Container, &query, &page);
    assert!(matches!(refused, Err(Error::InvalidQuery(_))), "{refused:?}");
}

#[test]
fn patch_conditions_are_checked() {
    let db = Db::memory();
    let c = db.container(json!({}));
    db.create(&c, json!({"id": "a", "pk": "p", "v": 1})).unwrap();
    let patch = |condition: &str| {
        let operations = json!([{"op": "incr", "path": "/v", "value": 1}]);
        let body = json!({"condition": condition, "operations": operations});
        db.patch(&c, r#"["p"]"#, "a", body)
    };
    assert_eq!(body(&patch("from c where c.v = 1").unwrap())["v"], 2);
    assert!(matches!(patch("from c where c.v = 1"), Err(Error::PatchConditionFailed)));
    assert!(matches!(patch("from c where"), Err(Error::InvalidQuery(_))));
    assert_eq!(db.read(&c, r#"["p"]"#, "a").unwrap()["v"], 2);
}

#[test]
fn queries_stay_right_while_the_index_changes() {
    let db = Db::memory();
    let c = load(&db, 400, json!({}));
    let query = text("SELECT VALUE c.id FROM c WHERE c.n = 3");
    let mut expected = rows(&db, &c, &Scope::Container, &query, 100);
    expected.sort();
    let change = |indexing: serde_json::Value| {
        let mut body = (*db.engine.read_container("d", "c").unwrap().body).clone();
        body["indexingPolicy"] = indexing;
        db.engine.replace_container(&db.ctx(), "d", "c", &body, &EtagCondition::None).unwrap();
    };
    let policies = [
        json!({"includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": "/n/?"}]}),
        json!({}),
        json!({"includedPaths": [{"path": "/s/?"}], "excludedPaths": [{"path": "/*"}]}),
        json!({"includedPaths": [{"path": "/n/?"}], "excludedPaths": [{"path": "/*"}]}),
    ];
    for policy in policies {
        change(policy.clone());
        let mut found = rows(&db, &c, &Scope::Container, &query, 4);
        found.sort();
        assert_eq!(found, expected, "during {policy}");
        db.work();
        let mut found = rows(&db, &c, &Scope::Container, &query, 4);
        found.sort();
        assert_eq!(found, expected, "after {policy}");
    }
}

#[test]
fn items_excluded_from_the_index_are_not_found() {
    let db = Db::memory();
    let c = db.container(json!({}));
    let mut write = plain(WriteKind::Create(draft(&json!({"id": "a", "pk": "p"}))));
    write.is_indexed = false;
    db.write(&c, r#"["p"]"#, write).unwrap();
    assert!(db.read(&c, r#"["p"]"#, "a").is_ok());
    assert_eq!(rows(&db, &c, &Scope::Container, &text("SELECT * FROM c"), 9).len(), 0);
    assert_eq!(db.changes(&c, &Scope::Container, ChangeFeedStart::Beginning).rows.len(), 1);
    db.verify();
}

#[test]
fn resources_can_be_queried() {
    let db = Db::memory();
    db.container(json!({}));
    let offers = db.engine.list_offers();
    let container = db.engine.read_container("d", "c").unwrap();
    let query = QueryText {
        text: "SELECT * FROM root r WHERE r.resource = @link".into(),
        parameters: vec![(
            "@link".into(),
            Value::string(container.body["_self"].as_str().unwrap()),
        )],
    };
    let found = db.engine.query_resources(&db.ctx(), &offers, &query).unwrap();
    assert_eq!(found.len(), 1);
    let offer: serde_json::Value = serde_json::from_slice(&found[0]).unwrap();
    assert_eq!(offer["content"]["offerThroughput"], 400);
    assert_eq!(offer["offerResourceId"], container.rid.to_string());
}

#[test]
fn a_plan_asks_no_more_than_the_client_offers() {
    let db = Db::memory();
    let c = load(&db, 400, json!({}));
    let plan = |c: &Container, query: &str, features: &str| {
        let plan = db.engine.query_plan(c, &text(query), Some(features))?;
        Ok::<serde_json::Value, Error>(serde_json::from_str(&plan).unwrap())
    };
    let count = "SELECT VALUE COUNT(1) FROM c";
    let real = plan(&c, count, "Aggregate, OrderBy").unwrap();
    assert_eq!(real["queryInfo"]["aggregates"], json!(["Count"]));
    let passed = plan(&c, count, "OrderBy,Top").unwrap();
    assert_eq!(passed["queryInfo"]["aggregates"], json!([]), "one range needs no merging");
    assert_eq!(passed["queryInfo"]["rewrittenQuery"], "");
    db.engine.delete_container(&db.ctx(), "d", "c", &EtagCondition::None).unwrap();
    let c = load(&db, 70_000, json!({}));
    let refused = plan(&c, count, "OrderBy,Top");
    assert!(matches!(refused, Err(Error::Invalid(m)) if m.contains("Aggregate")));
    let ranked = text("SELECT * FROM c ORDER BY RANK FullTextScore(c.s, 'v1')");
    let refused = db.engine.query_plan(&c, &ranked, None);
    assert!(matches!(refused, Err(Error::Invalid(_))), "no client can merge ranks");
    let pinned = plan(&c, "SELECT * FROM c WHERE c.pk = 3", "").unwrap();
    let range = &pinned["queryRanges"][0];
    assert_eq!((&range["min"], &range["isMaxInclusive"]), (&range["max"], &json!(true)));
    // What reads no items is to be asked once.
    let constant = plan(&c, "SELECT TOP 2 5", "").unwrap();
    assert_eq!(constant["queryInfo"]["top"], json!(null));
    let once = json!([{"min": "", "max": "", "isMinInclusive": true, "isMaxInclusive": true}]);
    assert_eq!(constant["queryRanges"], once);
}

#[test]
fn groups_over_several_keys_have_few_aggregates() {
    let db = Db::memory();
    let c = load(&db, 400, json!({}));
    let query = |count: usize| {
        let counts: Vec<String> = (0..count).map(|n| format!("COUNT(c.p{n}) AS a{n}")).collect();
        text(&format!("SELECT c.n, {} FROM c GROUP BY c.n", counts.join(", ")))
    };
    let run = |scope: &Scope, count: usize| {
        db.engine.query_items(&db.ctx(), &c, scope, &query(count), &PageRequest::default())
    };
    for count in [20, 21] {
        assert_eq!(run(&Scope::Container, count).unwrap().rows.len(), 10);
    }
    let refused = run(&Scope::Container, 22);
    assert!(matches!(refused, Err(Error::Invalid(message)) if message.contains("21 aggregates")));
    let one = Scope::PartitionKey(PartitionKey::parse("[3]").unwrap());
    assert!(!run(&one, 22).unwrap().rows.is_empty());
}

/// Clients that merge for themselves change their resume filter from page to page and still send
/// the continuation of the last one.
#[test]
fn a_rewritten_order_resumes_under_another_filter() {
    let db = Db::memory();
    let c = load(&db, 400, json!({}));
    let page = |filter: &str, continuation: Option<String>| {
        let query = format!(
            r#"SELECT c._rid, [{{"item": c.n}}] AS orderByItems, c.id AS payload
               FROM c WHERE ({filter}) ORDER BY c.n"#
        );
        let request = PageRequest { items_max: Some(7), continuation, ..PageRequest::default() };
        db.engine.query_items(&db.ctx(), &c, &Scope::Container, &text(&query), &request).unwrap()
    };
    let first = page("true", None);
    let second = page("c.n >= 1", first.continuation);
    let seen: std::collections::HashSet<_> = first.rows.iter().chain(&second.rows).collect();
    assert_eq!(seen.len(), 14, "no row twice");
    let row: serde_json::Value = serde_json::from_slice(&second.rows[0]).unwrap();
    assert_eq!(row["orderByItems"][0]["item"], 1);
}

#[test]
fn without_an_index_a_filter_must_ask_for_a_scan() {
    let db = Db::memory();
    let c = db.container(json!({"indexingPolicy": {"indexingMode": "none", "automatic": false}}));
    db.create(&c, json!({"id": "a", "pk": "p", "v": 1})).unwrap();
    let run = |query: &str, is_scan_enabled: bool| {
        let page = PageRequest { is_scan_enabled, ..PageRequest::default() };
        let scope = Scope::Container;
        db.engine.query_items(&db.ctx(), &c, &scope, &text(query), &page).map(|p| p.rows.len())
    };
    assert!(matches!(run("SELECT * FROM c WHERE c.v = 1", false), Err(Error::Invalid(_))));
    assert_eq!(run("SELECT * FROM c WHERE c.v = 1", true).unwrap(), 1);
    assert_eq!(run("SELECT * FROM c", false).unwrap(), 1);
    assert_eq!(run("SELECT * FROM c WHERE c.pk = 'p' AND c.id = 'a'", false).unwrap(), 1);
}

/// Generated queries over generated items: with the index and without, on one physical partition
/// and on seven, in pages of one, three and all, on every store.
#[test]
fn generated_queries_agree_everywhere() {
    use query::testing::Generator;
    // Longer than the index keeps of a string.
    let prefix = "p".repeat(200);
    let composites = json!([
        [{"path": "/a", "order": "ascending"}, {"path": "/id", "order": "ascending"}],
        [{"path": "/a", "order": "descending"}, {"path": "/id", "order": "ascending"}],
        [{"path": "/b", "order": "ascending"}, {"path": "/a", "order": "ascending"},
         {"path": "/id", "order": "ascending"}],
        [{"path": "/a", "order": "ascending"}, {"path": "/b", "order": "ascending"}],
    ]);
    let definition = |id: &str, included: &[&str], excluded: &[&str]| {
        let paths = |paths: &[&str]| -> Vec<serde_json::Value> {
            paths.iter().map(|path| json!({"path": path})).collect()
        };
        json!({
            "id": id,
            "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
            "indexingPolicy": {
                "indexingMode": "consistent",
                "includedPaths": paths(included), "excludedPaths": paths(excluded),
                "compositeIndexes": composites,
            },
        })
    };
    for seed in 0..4 {
        on_every_store(|db| {
            let generator = Generator::new(seed, &prefix);
            let layouts = [
                // What may be sorted by must be indexed.
                (400, definition("sparse", &["/a/?", "/id/?"], &["/*"])),
                (400, definition("one", &["/*"], &[])),
                (70_000, definition("seven", &["/*"], &[])),
            ];
            let containers: Vec<_> = layouts
                .into_iter()
                .map(|(ru, body)| db.container_with(body, Some(Throughput::Manual(ru))))
                .collect();
            for number in 0..30 {
                let body: serde_json::Value =
                    serde_json::from_str(&generator.body(number)).unwrap();
                for container in &containers {
                    db.create(container, body.clone()).unwrap();
                }
            }
            for _ in 0..25 {
                let generated = generator.query();
                let query = text(&generated.text.replace("SELECT *", "SELECT c.id, c.a, c.tags"));
                let all = |at: usize, items_max: usize| {
                    rows(db, &containers[at], &Scope::Container, &query, items_max)
                };
                let expect = sorted(all(0, 1000));
                // The scope of a key is the condition on it.
                let scope = Scope::PartitionKey(PartitionKey::parse(r#"["p1"]"#).unwrap());
                let within: Vec<_> =
                    (0..3).map(|at| sorted(rows(db, &containers[at], &scope, &query, 3))).collect();
                assert_eq!(within[1], within[0], "{seed}, within p1: {}", query.text);
                assert_eq!(within[2], within[0], "{seed}, within p1: {}", query.text);
                for at in [1, 2] {
                    let found = all(at, 1000);
                    assert_eq!(sorted(found.clone()), expect, "{seed}, {at}: {}", query.text);
                    for items_max in [1, 3] {
                        assert_eq!(all(at, items_max), found, "{seed}, {at}: {}", query.text);
                    }
                }
            }
        });
    }
}

fn sorted(mut rows: Vec<String>) -> Vec<String> {
    rows.sort();
    rows
}

#[test]
fn computed_properties_are_checked_and_read() {
    let db = Db::memory();
    let with = |id: &str, query: &str| {
        let computed = json!([{"name": "low", "query": query}]);
        json!({"id": id, "computedProperties": computed,
               "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}})
    };
    let c = db.container_with(with("fine", "SELECT VALUE LOWER(c.s) FROM c"), None);
    for (id, s) in [("1", "B"), ("2", "a")] {
        db.create(&c, json!({"id": id, "pk": 1, "s": s})).unwrap();
    }
    let query = text("SELECT VALUE c.low FROM c WHERE c.low >= 'a' ORDER BY c.low");
    assert_eq!(rows(&db, &c, &Scope::Container, &query, 1), [r#""a""#, r#""b""#]);
    let count = with("wrong", "SELECT VALUE COUNT(1) FROM c");
    let refused = db.engine.create_container(&db.ctx(), "d", &count, None);
    assert!(matches!(refused, Err(Error::Invalid(message)) if message.contains("low")));
    let mut chained = with("chained", "SELECT VALUE LOWER(c.s) FROM c");
    let other = json!({"name": "lower", "query": "SELECT VALUE c.low || '!' FROM c"});
    chained["computedProperties"].as_array_mut().unwrap().push(other);
    let refused = db.engine.create_container(&db.ctx(), "d", &chained, None);
    assert!(matches!(refused, Err(Error::Invalid(message)) if message.contains("'lower'")));
}
