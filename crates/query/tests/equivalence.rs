//! Goal: the rows of a query depend neither on the access path, nor on the number of partitions,
//! nor on the size of pages (E1, E2).
//! Method: random items of few values, so that ties, missing values and cut strings are common;
//! each query runs in every layout and is compared with the plainest one.

#![allow(clippy::unwrap_used)] // A test that cannot go on fails there.

use item::{Item, Value};
use proptest::prelude::*;
use query::testing::{VecSource, item, rows_in_pages};

const UNORDERED: &[&str] = &[
    "SELECT * FROM c",
    "SELECT VALUE c.id FROM c WHERE c.a = 1",
    "SELECT c.id, c.a FROM c WHERE c.a IN (1, 'x', null, 'longer-b')",
    "SELECT VALUE c.id FROM c WHERE c.a >= 1 AND c.a < 3",
    "SELECT VALUE c.id FROM c WHERE c.a > 'l' AND c.b",
    "SELECT VALUE c.id FROM c WHERE STARTSWITH(c.a, 'longer')",
    "SELECT VALUE c.id FROM c WHERE c.a LIKE 'longer-%' OR c.b = false",
    "SELECT VALUE c.id FROM c WHERE ARRAY_CONTAINS(c.tags, 'x')",
    "SELECT VALUE c.id FROM c WHERE c.id IN ('i1', 'i3', 'i5', 'none')",
    "SELECT VALUE c.id FROM c WHERE c.a BETWEEN 0 AND 2 AND NOT IS_DEFINED(c.b)",
    "SELECT c.id, t FROM c JOIN t IN c.tags",
    "SELECT c.id, t, u FROM c JOIN t IN c.tags JOIN u IN c.tags WHERE c.a = 1 OR t != u",
    "SELECT VALUE t FROM t IN c.tags",
    "SELECT DISTINCT VALUE c.a FROM c",
    "SELECT c.a, COUNT(1) AS n, MIN(c.id) AS m FROM c GROUP BY c.a",
    "SELECT VALUE COUNT(1) FROM c WHERE c.a = 1",
    "SELECT MIN(c.a) AS lo, MAX(c.id) AS hi, COUNT(c.b) AS n FROM c",
    "SELECT VALUE c.id FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t = 'x')",
    "SELECT c.id, udf.add(c.a, c.a) AS twice FROM c WHERE udf.isLarge(c.a) OR c.a = 'longer-a'",
    "SELECT udf.same(c.a) AS a, COUNT(1) AS n FROM c WHERE c.b GROUP BY udf.same(c.a)",
];

const ORDERED: &[&str] = &[
    "SELECT c.id, c.a FROM c ORDER BY c.a",
    "SELECT c.id, c.a FROM c ORDER BY c.a DESC",
    "SELECT c.id, c.a FROM c WHERE c.b ORDER BY c.a DESC",
    "SELECT c.id, c.a FROM c WHERE c.a >= 1 ORDER BY c.a",
    "SELECT c.id, c.a FROM c WHERE c.a > 'longer-a' ORDER BY c.a DESC",
    "SELECT c.id, c.a, t FROM c JOIN t IN c.tags ORDER BY c.a DESC",
    "SELECT c.id, c.a, t FROM c JOIN t IN c.tags ORDER BY c.a",
    "SELECT c.id, c.a FROM c WHERE c.id IN ('i1', 'i2', 'i4') ORDER BY c.a",
    "SELECT DISTINCT c.a FROM c ORDER BY c.a",
    "SELECT c.id, udf.same(c.a) AS a FROM c WHERE NOT udf.isLarge(c.a) ORDER BY c.a DESC",
    "SELECT VALUE {\"_rid\": c._rid, \"a\": c.a, \"payload\": c} FROM c WHERE true ORDER BY c.a",
    "SELECT c._rid, [{\"item\": c.a}] AS orderByItems, c.a, c AS payload FROM c WHERE (true) ORDER BY c.a DESC",
];

/// What TOP, OFFSET and LIMIT cut out of the whole result.
const WINDOWS: &[(&str, usize, usize)] = &[
    ("SELECT TOP 3 c.id, c.a FROM c ORDER BY c.a", 0, 3),
    ("SELECT c.id, c.a FROM c ORDER BY c.a OFFSET 2 LIMIT 4", 2, 4),
    ("SELECT TOP 5 c.id, c.a FROM c ORDER BY c.a OFFSET 2 LIMIT 4", 2, 3),
    ("SELECT TOP 0 c.id, c.a FROM c ORDER BY c.a", 0, 0),
];

fn sorted(mut rows: Vec<String>) -> Vec<String> {
    rows.sort();
    rows
}

/// The rows, the same for pages of every size.
fn run_in_pages(source: &VecSource, text: &str) -> Vec<String> {
    let rows = rows_in_pages(source, text, 1000);
    for rows_max in [1, 3] {
        assert_eq!(rows_in_pages(source, text, rows_max), rows, "{text} in pages of {rows_max}");
    }
    rows
}

fn key(row: &str) -> Value {
    Value::parse(row.as_bytes()).unwrap().get("a").clone()
}

fn value() -> impl Strategy<Value = Option<&'static str>> {
    proptest::sample::select(vec![
        None,
        Some("null"),
        Some("true"),
        Some("0"),
        Some("1"),
        Some("2.5"),
        Some("\"x\""),
        Some("\"longer-a\""),
        Some("\"longer-b\""),
        Some("\"longer\""),
        Some("\"long\""),
        Some("[1]"),
        Some("{}"),
    ])
}

fn items() -> impl Strategy<Value = Vec<Item>> {
    let tags =
        proptest::sample::select(vec![None, Some("[]"), Some("[\"x\"]"), Some("[\"x\",1,\"x\"]")]);
    let flag = proptest::sample::select(vec![None, Some("true"), Some("false")]);
    proptest::collection::vec((value(), flag, tags), 0..14).prop_map(|all| {
        type Parts = (Option<&'static str>, Option<&'static str>, Option<&'static str>);
        let body = |(at, (a, b, tags)): (usize, Parts)| {
            let mut body = format!("{{\"id\":\"i{at}\"");
            for (name, value) in [("a", a), ("b", b), ("tags", tags)] {
                if let Some(value) = value {
                    body.push_str(&format!(",\"{name}\":{value}"));
                }
            }
            item(&(body + "}"), at as u64 * 3 + 1)
        };
        all.into_iter().enumerate().map(body).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn unordered_rows_are_the_same_everywhere(items in items()) {
        let mut plain = VecSource::new(items.clone(), 1);
        plain.is_indexed = false;
        for text in UNORDERED {
            let expect = sorted(rows_in_pages(&plain, text, 1000));
            for (partitions, is_indexed) in [(1, true), (7, true), (7, false)] {
                let mut source = VecSource::new(items.clone(), partitions);
                source.is_indexed = is_indexed;
                source.string_bytes_max = 4;
                let rows = run_in_pages(&source, text);
                prop_assert_eq!(&sorted(rows), &expect, "{} over {} partitions", text, partitions);
            }
        }
    }

    #[test]
    fn ordered_rows_are_in_order_and_the_same_everywhere(items in items()) {
        let plain = VecSource::new(items.clone(), 1);
        for text in ORDERED {
            let expect = rows_in_pages(&plain, text, 1000);
            for (partitions, string_bytes_max) in [(1, 4), (1, 6), (3, 64), (7, 6)] {
                let mut source = VecSource::new(items.clone(), partitions);
                source.string_bytes_max = string_bytes_max;
                let rows = run_in_pages(&source, text);
                let in_order = rows.is_sorted_by(|a, b| {
                    let order = key(a).compare(&key(b));
                    if text.contains("DESC") { order.is_ge() } else { order.is_le() }
                });
                prop_assert!(in_order, "{}: {:?}", text, rows);
                if partitions == 1 {
                    prop_assert_eq!(&rows, &expect, "{}", text);
                }
                prop_assert_eq!(sorted(rows), sorted(expect.clone()), "{}", text);
            }
        }
    }

    #[test]
    fn windows_are_cut_out_of_the_whole_result(items in items()) {
        for partitions in [1, 7] {
            let source = VecSource::new(items.clone(), partitions);
            let whole = rows_in_pages(&source, "SELECT c.id, c.a FROM c ORDER BY c.a", 1000);
            for (text, skip, take) in WINDOWS {
                let expect: Vec<_> = whole.iter().skip(*skip).take(*take).cloned().collect();
                prop_assert_eq!(run_in_pages(&source, text), expect, "{}", text);
            }
        }
    }
}
