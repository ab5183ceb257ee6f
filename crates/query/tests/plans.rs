//! Goal: plans are what a reader would expect, and read no more than they should.
//! Method: plan, rows and meter of each query over a few items, in one table.

#![allow(clippy::unwrap_used)] // A test that cannot go on fails there.

use base::Ctx;
use query::testing::{VecSource, item};
use query::{PageEnd, PageLimits, Parameters, Path};

fn places() -> VecSource {
    let bodies = [
        r#"{"id":"1","country":"no","city":"Oslo","size":7,"tags":["a","b"],"notes":{"stars":3}}"#,
        r#"{"id":"2","country":"no","city":"Bergen","size":3,"notes":{"stars":5}}"#,
        r#"{"id":"3","country":"se","city":"Oslo","size":5,"tags":["b"],"notes":{"stars":4}}"#,
        r#"{"id":"4","country":"se","city":"Malmo"}"#,
    ];
    let items = bodies.iter().zip(1..).map(|(body, ordinal)| item(body, ordinal));
    let mut source = VecSource::new(items, 2).keyed(&key());
    source.excluded = vec![Path::of(["notes", "stars"])];
    source
}

fn key() -> Vec<Vec<String>> {
    vec![vec!["country".to_owned()]]
}

/// Checks plan, rows, and `terms_read items_read items_scanned`.
fn check(text: &str, plan: &str, rows: &str, meter: [u64; 3]) {
    let source = places();
    let bound = query::bind(&sql::parse(text).unwrap(), &Parameters::new()).unwrap();
    let planned = query::plan(bound, &key(), &source, None).unwrap();
    assert_eq!(planned.to_string().trim_end(), plan, "{text}");
    let ctx = Ctx::background();
    let page = query::execute(&ctx, &planned, &source, None, PageLimits::default()).unwrap();
    assert_eq!(page.end, PageEnd::Exhausted, "{text}");
    let texts: Vec<_> = page.rows.iter().map(|row| String::from_utf8_lossy(row)).collect();
    assert_eq!(texts.join(" "), rows, "{text}");
    let read = ctx.meter().read();
    assert_eq!([read.terms_read, read.items_read, read.items_scanned], meter, "{text}");
}

#[test]
fn a_scan_reads_everything() {
    check(
        "SELECT VALUE p.id FROM p WHERE p.notes.stars > 3",
        "Project: VALUE p.id\n└─ Filter: p.notes.stars > 3\n   └─ Scan",
        r#""3" "2""#,
        [0, 0, 4],
    );
}

#[test]
fn top_stops_a_scan_early() {
    check(
        "SELECT TOP 1 VALUE p.id FROM p",
        "Take: rows 0 to 1\n└─ Project: VALUE p.id\n   └─ Scan",
        r#""1""#,
        [0, 0, 1],
    );
}

#[test]
fn an_equality_is_a_lookup_and_the_rest_a_filter() {
    check(
        r#"SELECT VALUE p.id FROM p WHERE p.city = "Oslo" AND p.notes.stars > 3"#,
        concat!(
            "Project: VALUE p.id\n",
            "└─ Filter: (p.city = \"Oslo\") AND (p.notes.stars > 3)\n",
            "   └─ Lookup: /city = \"Oslo\"",
        ),
        r#""3""#,
        [2, 2, 0],
    );
}

#[test]
fn an_equality_beyond_the_key_is_preferred() {
    check(
        r#"SELECT VALUE p.id FROM p WHERE p.country = "no" AND p.city = "Oslo""#,
        concat!(
            "Project: VALUE p.id\n",
            "└─ Filter: (p.country = \"no\") AND (p.city = \"Oslo\")\n",
            "   └─ Lookup: /city = \"Oslo\"",
        ),
        r#""1""#,
        [2, 2, 0],
    );
}

#[test]
fn two_comparisons_are_one_range() {
    check(
        "SELECT VALUE p.id FROM p WHERE p.size > 3 AND p.size <= 7",
        concat!(
            "Project: VALUE p.id\n",
            "└─ Filter: (p.size > 3) AND (p.size <= 7)\n",
            "   └─ Range: /size > 3 <= 7",
        ),
        r#""3" "1""#,
        [2, 2, 0],
    );
}

#[test]
fn a_prefix_is_a_range() {
    check(
        "SELECT VALUE p.id FROM p WHERE STARTSWITH(p.city, 'Os')",
        concat!(
            "Project: VALUE p.id\n",
            "└─ Filter: STARTSWITH(p.city, \"Os\")\n",
            "   └─ Range: /city >= \"Os\" < \"Ot\"",
        ),
        r#""1" "3""#,
        [2, 2, 0],
    );
}

#[test]
fn an_element_of_an_array_is_a_lookup() {
    check(
        "SELECT VALUE p.id FROM p WHERE ARRAY_CONTAINS(p.tags, 'b')",
        concat!(
            "Project: VALUE p.id\n",
            "└─ Filter: ARRAY_CONTAINS(p.tags, \"b\")\n",
            "   └─ Lookup: /tags/[] = \"b\"",
        ),
        r#""1" "3""#,
        [2, 2, 0],
    );
}

#[test]
fn ids_with_their_keys_are_points() {
    check(
        "SELECT VALUE p.id FROM p WHERE p.country = 'no' AND p.id IN ('1', '4')",
        concat!(
            "Project: VALUE p.id\n",
            "└─ Filter: (p.country = \"no\") AND (p.id IN (\"1\", \"4\"))\n",
            "   └─ Points: 2",
        ),
        r#""1""#,
        [0, 1, 0],
    );
}

#[test]
fn sorting_walks_the_terms_and_adds_items_without_the_path() {
    check(
        "SELECT VALUE p.id FROM p ORDER BY p.size DESC",
        "Project: VALUE p.id\n└─ Ordered: /size descending, and items without it",
        r#""1" "3" "2" "4""#,
        [3, 4, 0],
    );
}

#[test]
fn a_bound_on_the_sort_key_bounds_the_walk() {
    check(
        "SELECT TOP 1 VALUE p.id FROM p WHERE p.size > 3 ORDER BY p.size",
        concat!(
            "Take: rows 0 to 1\n",
            "└─ Project: VALUE p.id\n",
            "   └─ Filter: p.size > 3\n",
            "      └─ Ordered: /size > 3 ascending",
        ),
        r#""3""#,
        [1, 1, 0],
    );
}

#[test]
fn a_condition_that_never_holds_reads_nothing() {
    check(
        "SELECT VALUE COUNT(1) FROM p WHERE 1 = 2",
        concat!(
            "Project: VALUE COUNT(1)\n",
            "└─ Group: 0 keys, 1 aggregates\n",
            "   └─ Filter: 1 = 2\n",
            "      └─ Nothing",
        ),
        "0",
        [0, 0, 0],
    );
}
