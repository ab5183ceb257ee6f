//! Goal: functions at the edges of their arguments, where a plausible implementation is wrong.
//! Method: constant expressions and what they come to.

#![allow(clippy::unwrap_used)] // A test that cannot go on fails there.

use query::testing::{VecSource, item, rows_in_pages};
use query::{Parameters, bind};

fn check(expression: &str, expect: &str) {
    let source = VecSource::new([item(r#"{"id":"1"}"#, 1)], 1);
    let rows = rows_in_pages(&source, &format!("SELECT VALUE {expression}"), 10);
    assert_eq!(rows.join(" "), expect, "{expression}");
}

#[test]
fn integers_end_where_64_bits_do() {
    check("IS_INTEGER(9223372036854775807)", "true");
    check("IS_INTEGER(-9223372036854775808)", "true");
    check("IS_INTEGER(9223372036854777856)", "false");
    check("IS_INTEGER(18446744073709551615)", "false");
    check("IntAdd(9223372036854775807, 1)", "-9223372036854776000");
    check("LEFT('abc', 1e300)", r#""abc""#);
    check("RIGHT('abc', -1e300)", r#""""#);
    check("SUBSTRING('abc', 1, 1e300)", r#""bc""#);
    check("LEFT('abc', 1.5)", "");
    check("LEFT('', 1.5)", r#""""#);
    check("LEFT('', 'x')", "");
    check("SUBSTRING('', 0.5, 1)", r#""""#);
}

#[test]
fn numbers_are_written_with_exponents_of_three_digits() {
    check("ToString(2049537175849502700)", r#""2.0495371758495027e+018""#);
    check("ToString(1e17)", r#""1e+017""#);
    check("ToString(12345678901234567)", r#""12345678901234568""#);
    check("ToString(-1e300)", r#""-1e+300""#);
    check("ToString(0.0001)", r#""0.0001""#);
    check("ToString(0.00001)", r#""1e-005""#);
    check("ToString(1.5)", r#""1.5""#);
    check("ToString(-0.0)", r#""0""#);
}

#[test]
fn of_a_repeated_name_the_last_defined_value_counts() {
    check(r#"{"a": 1, "a": 2, "b": 3}"#, r#"{"a":2,"b":3}"#);
    check(r#"{"a": 1, "a": undefined}"#, r#"{"a":1}"#);
    check(r#"{"a": undefined, "a": undefined}"#, "{}");
}

#[test]
fn results_of_calls_are_iterated() {
    let body = r#"{"id":"1","size":{"w":2,"h":3},"tags":["a","b","a"]}"#;
    let source = VecSource::new([item(body, 1)], 1);
    let rows = |text: &str| rows_in_pages(&source, text, 1).join(" ");
    let pairs = "SELECT c.id, s.k, s.v FROM c JOIN s IN ObjectToArray(c.size)";
    assert_eq!(rows(pairs), r#"{"id":"1","k":"w","v":2} {"id":"1","k":"h","v":3}"#);
    let own =
        r#"SELECT VALUE s["name"] FROM c JOIN s IN OBJECTTOARRAY(c.size, "name") WHERE s.v > 2"#;
    assert_eq!(rows(own), r#""h""#);
    assert_eq!(rows("SELECT VALUE t FROM c JOIN t IN SetUnion(c.tags, ['z'])"), r#""a" "b" "z""#);
    assert_eq!(rows("SELECT VALUE t FROM c JOIN t IN udf.tags(c)"), r#""a" "b" "a""#);
    assert_eq!(rows("SELECT VALUE t FROM c JOIN t IN LOWER(c.id)"), "", "no array");
    let inner = "SELECT VALUE ARRAY(SELECT VALUE t FROM t IN SetUnion(c.tags, [])) FROM c";
    assert_eq!(rows(inner), r#"["a","b"]"#);
    for wrong in
        ["FROM c JOIN t IN (c.tags)", "FROM c JOIN t IN FIRST(SELECT 1)", "FROM c JOIN f(c)"]
    {
        assert!(sql::parse(&format!("SELECT VALUE 1 {wrong}")).is_err(), "{wrong}");
    }
}

#[test]
fn the_item_itself_is_there() {
    let bodies = [r#"{"id":"1","x":"a"}"#, r#"{"id":"2","x":"b"}"#];
    let items = bodies.iter().zip(1..).map(|(body, ordinal)| item(body, ordinal));
    let source = VecSource::new(items, 1);
    let rows = |text: &str| rows_in_pages(&source, text, 1).join(" ");
    assert_eq!(rows("SELECT VALUE c.id FROM c WHERE IS_DEFINED(c)"), r#""1" "2""#);
    assert_eq!(rows("SELECT VALUE COUNT(1) FROM c WHERE IS_DEFINED(c)"), "2");
    assert_eq!(rows("SELECT VALUE COUNT(1) FROM c WHERE IS_STRING(c) OR IS_NULL(c)"), "0");
    assert_eq!(
        rows("SELECT VALUE c.id FROM c WHERE IS_OBJECT(c) AND NOT IS_ARRAY(c)"),
        r#""1" "2""#
    );
}

/// Keys that fail a test stand for no item, and nothing is asked about one.
#[test]
fn functions_are_called_for_items_only() {
    let body = |n: usize| format!(r#"{{"id":"{n}","x":"v{n}","tags":["{n}"]}}"#);
    let source = VecSource::new((0..5).map(|n| item(&body(n), n as u64 + 1)), 1);
    for failing in 0..5 {
        // Of an item that is not there `fail` would be called.
        let call = "udf.tags({\"tags\": IS_DEFINED(c.id) ? c.tags : [udf.fail()]})";
        let text = format!("SELECT VALUE t FROM c JOIN t IN {call} WHERE c.x != 'v{failing}'");
        for rows_max in [1, 3, 10] {
            assert_eq!(rows_in_pages(&source, &text, rows_max).len(), 4, "{text}");
        }
    }
}

#[test]
fn a_beginning_is_not_cut_through_a_character() {
    let texts = ["a😀", "a\u{fffd}", "a\u{fffd}b"];
    let body = |(n, x): (usize, &&str)| item(&format!(r#"{{"id":"{n}","x":"{x}"}}"#), n as u64 + 1);
    let mut source = VecSource::new(texts.iter().enumerate().map(body), 1);
    for is_indexed in [true, false] {
        source.is_indexed = is_indexed;
        for call in ["LEFT(c.x, 2)", "SUBSTRING(c.x, 0, 2)"] {
            let text = format!("SELECT VALUE c.id FROM c WHERE {call} = 'a\u{fffd}'");
            assert_eq!(rows_in_pages(&source, &text, 10).len(), 3, "{text}, {is_indexed}");
        }
    }
}

#[test]
fn far_dates_are_exact() {
    check("TimestampToDateTime(253402300799999)", r#""9999-12-31T23:59:59.9990000Z""#);
    check("TimestampToDateTime(32503680000123)", r#""3000-01-01T00:00:00.1230000Z""#);
    check("TimestampToDateTime(-62135596799999)", r#""0001-01-01T00:00:00.0010000Z""#);
    check("TimestampToDateTime(1.5)", r#""1970-01-01T00:00:00.0015000Z""#);
    check("DateTimeToTimestamp(TimestampToDateTime(33177600000001))", "33177600000001");
}

#[test]
fn case_is_that_of_single_characters() {
    for call in ["STARTSWITH('ΟΔΟΣΑ', 'ΟΔΟΣ', true)", "ENDSWITH('ΟΔΟΣ', 'Σ', true)"] {
        check(call, "true");
    }
    check("CONTAINS('ΟΔΟΣΑ', 'οδοσ', true)", "true");
    check("StringEquals('ΟΔΟΣ', 'οδοσ', true)", "true");
    check("UPPER('straße')", r#""STRAßE""#);
    check("UPPER('µıi')", r#""µıI""#);
    check("LOWER('İI')", r#""İi""#);
    check("LOWER('ΑΣ')", r#""ασ""#);
}

#[test]
fn groups_are_by_something_of_the_items() {
    let is_refused = |key: &str| {
        let parsed = sql::parse(&format!("SELECT COUNT(1) AS n FROM c GROUP BY {key}")).unwrap();
        bind(&parsed, &Parameters::new()).is_err()
    };
    for key in ["1", "'a'", "ABS(1)", "undefined", "c.a, 1", "[1]"] {
        assert!(is_refused(key), "{key}");
    }
    for key in ["c", "c.a", "c.a + 1", "UPPER(c.a)", "[c.a, 1]"] {
        assert!(!is_refused(key), "{key}");
    }
}
