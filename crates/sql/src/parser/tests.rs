//! What parses, what does not, and where the error is.

use super::{parse, parse_condition};
use crate::limits;

/// Parses and prints.
fn check(text: &str, expect: &str) {
    match parse(text) {
        Ok(query) => assert_eq!(query.to_string(), expect, "{text}"),
        Err(error) => panic!("{text}: {error}"),
    }
}

fn check_error(text: &str, code: &str, start: u32, end: u32) {
    let error = parse(text).expect_err(text);
    let span = error.span.expect("a place");
    assert_eq!((error.code.as_str(), span.start, span.end), (code, start, end), "{text}: {error}");
}

#[test]
fn clauses() {
    let cases = [
        ("select * from c", "SELECT * FROM c"),
        ("SeLeCt distinct TOP 5 value c.x y FROM c", "SELECT DISTINCT TOP 5 VALUE c.x AS y FROM c"),
        ("SELECT c.a, c['b c'] AS d, 1 e", "SELECT c.a, c[\"b c\"] AS d, 1 AS e"),
        ("SELECT * FROM Root AS r", "SELECT * FROM Root AS r"),
        ("SELECT * FROM c.a[0]['x'] t", "SELECT * FROM c.a[0].x AS t"),
        (
            "SELECT t FROM c JOIN t IN c.tags JOIN (SELECT VALUE 1) AS x",
            "SELECT t FROM c JOIN t IN c.tags JOIN (SELECT VALUE 1) AS x",
        ),
        (
            "SELECT c.k, COUNT(1) n FROM c WHERE c.x>1 GROUP BY c.k, c.j OFFSET @o LIMIT 3",
            "SELECT c.k, COUNT(1) AS n FROM c WHERE c.x > 1 GROUP BY c.k, c.j OFFSET @o LIMIT 3",
        ),
        (
            "SELECT * FROM c ORDER BY c.a, c.b DESC, c.d asc",
            "SELECT * FROM c ORDER BY c.a, c.b DESC, c.d ASC",
        ),
        (
            "SELECT * FROM c order by rank FullTextScore(c.t, 'x')",
            "SELECT * FROM c ORDER BY RANK FullTextScore(c.t, \"x\")",
        ),
        ("SELECT * FROM rank ORDER BY rank.x", "SELECT * FROM rank ORDER BY rank.x"),
        ("SELECT * FROM first ORDER BY first.all", "SELECT * FROM first ORDER BY first.all"),
    ];
    for (text, expect) in cases {
        check(text, expect);
    }
}

#[test]
fn precedence() {
    let cases = [
        ("1 = 2 & 3 != 4", "(1 = 2) & (3 != 4)"),
        ("NOT a = b", "(NOT a) = b"),
        ("a OR b AND c", "a OR (b AND c)"),
        ("1 + 2 * 3 - 4", "(1 + (2 * 3)) - 4"),
        ("a ?? b ?? c ? d : e ? f : g", "((a ?? b) ?? c) ? d : (e ? f : g)"),
        ("a || b | c ^ d", "a || (b | (c ^ d))"),
        ("a < b << 1 = c", "(a < (b << 1)) = c"),
        ("a NOT IN (1, 2) AND b", "(a NOT IN (1, 2)) AND b"),
        ("a BETWEEN 1 AND 2 AND b", "(a BETWEEN 1 AND 2) AND b"),
        ("a LIKE 'x' || 'y' ESCAPE '!'", "a LIKE (\"x\" || \"y\") ESCAPE \"!\""),
        ("-a.b[1] - -1", "(-a.b[1]) - (-1)"),
        ("c.ab-cd", "c.ab - cd"),
        ("(a AND b) AND c", "(a AND b) AND c"),
        ("-1 >>> 0", "(-1) >>> 0"),
    ];
    for (text, expect) in cases {
        check(&format!("SELECT VALUE {text}"), &format!("SELECT VALUE {expect}"));
    }
}

#[test]
fn primaries() {
    let cases = [
        ("[1, 'a', [], {}]", "[1, \"a\", [], {}]"),
        (
            "{a: 1, 'b': 2, \"c d\": {value: null}}",
            "{\"a\": 1, \"b\": 2, \"c d\": {\"value\": null}}",
        ),
        ("udf.Tax(c.x)", "udf.Tax(c.x)"),
        ("left('abc', 2)", "LEFT(\"abc\", 2)"),
        ("EXISTS(SELECT VALUE 1)", "EXISTS(SELECT VALUE 1)"),
        ("first (select value t from t in c.x)", "FIRST(SELECT VALUE t FROM t IN c.x)"),
        ("(SELECT VALUE 1).x", "(SELECT VALUE 1).x"),
        ("ARRAY(SELECT VALUE 1)[0]", "ARRAY(SELECT VALUE 1)[0]"),
        ("c[@p].x", "c[@p].x"),
        ("c['order']", "c[\"order\"]"),
        ("0x10 + 1e3", "16 + 1000"),
        ("PI()", "PI()"),
    ];
    for (text, expect) in cases {
        check(&format!("SELECT VALUE {text}"), &format!("SELECT VALUE {expect}"));
    }
}

#[test]
fn errors_have_a_place() {
    let cases = [
        ("", "SC1002", 0, 0),
        ("SELECT", "SC1002", 6, 6),
        ("SELECT 1,", "SC1002", 9, 9),
        ("SELECT c.order FROM c", "SC1001", 9, 14),
        ("SELECT * FROM c WHERE", "SC1002", 21, 21),
        ("SELECT * FROM c WHERE c.a IN ()", "SC1001", 30, 31),
        ("SELECT *, c.x FROM c", "SC1001", 8, 9),
        ("SELECT VALUE * FROM c", "SC1001", 13, 14),
        ("SELECT TOP -1 * FROM c", "SC1001", 11, 12),
        ("SELECT TOP 1.5 * FROM c", "SC2060", 11, 14),
        ("SELECT TOP 4294967296 * FROM c", "SC2060", 11, 21),
        ("SELECT * FROM c OFFSET 4294967296 LIMIT 1", "SC2062", 23, 33),
        ("SELECT * FROM c OFFSET 1 LIMIT 4294967296", "SC2061", 31, 41),
        ("SELECT * FROM c OFFSET 1", "SC1002", 24, 24),
        ("SELECT * FROM c LIMIT 1", "SC1001", 16, 21),
        ("SELECT * FROM c;", "SC1001", 15, 16),
        ("SELECT 'é' 'b'", "SC1001", 11, 14),
        ("SELECT c.12a FROM c", "SC1001", 8, 12),
        ("SELECT a IN (1) IN (2)", "SC1001", 16, 18),
        ("SELECT [1,]", "SC1001", 10, 11),
        ("SELECT {1: 2}", "SC1001", 8, 9),
        ("SELECT 1 AS value", "SC1001", 12, 17),
        ("SELECT * FROM c ORDER BY RANK c.x", "SC1001", 30, 31),
        ("SELECT 'a' LIKE 'b' ESCAPE 'xy'", "SC1001", 27, 31),
    ];
    for (text, code, start, end) in cases {
        check_error(text, code, start, end);
    }
}

#[test]
fn conditions() {
    let condition = parse_condition("from c where c.v = 1").unwrap();
    assert_eq!(condition.to_string(), "FROM c WHERE c.v = 1");
    assert!(parse_condition("FROM c").unwrap().filter.is_none());
    assert!(parse_condition("SELECT * FROM c").is_err());
    assert!(parse_condition("from c where c.v = 1 order by c.v").is_err());
}

/// A query at the limit is fine, one above is refused.
fn check_limit(max: usize, text: impl Fn(usize) -> String) {
    assert!(parse(&text(max - 1)).is_ok());
    assert!(parse(&text(max)).is_ok());
    assert_eq!(parse(&text(max + 1)).unwrap_err().code.as_str(), "SC3007");
}

#[test]
fn limits_hold() {
    check_limit(limits::NESTING_MAX, |n| format!("SELECT {}1{}", "(".repeat(n), ")".repeat(n)));
    check_limit(limits::HEIGHT_MAX as usize - 1, |n| format!("SELECT 1{}", "+1".repeat(n)));
    check_limit(limits::ANDS_MAX, |n| format!("SELECT 1{}", " AND 1".repeat(n)));
    check_limit(limits::ORS_MAX, |n| format!("SELECT 1{}", " OR 1".repeat(n)));
    check_limit(limits::JOINS_MAX, |n| format!("SELECT 1 FROM c{}", " JOIN x IN c.x".repeat(n)));
    check_limit(limits::UDF_CALLS_MAX, |n| format!("SELECT 1{}", "+udf.f()".repeat(n)));
    check_limit(limits::IN_ITEMS_MAX, |n| format!("SELECT 1 IN (1{})", ",1".repeat(n - 1)));
    check_limit(limits::TEXT_BYTES_MAX, |n| format!("SELECT 1{}", " ".repeat(n - 8)));
}

#[test]
fn deep_text_of_every_kind_is_refused_without_recursion() {
    for opening in
        ["(", "[", "-", "NOT ", "ABS(", "{a:", "1?", "EXISTS(SELECT ", "(SELECT 1 FROM ("]
    {
        assert!(parse(&format!("SELECT {}", opening.repeat(20_000))).is_err(), "{opening}");
    }
}
