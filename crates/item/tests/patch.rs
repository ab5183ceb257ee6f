//! Patch, as a table: an item, a patch, and the item after it or the refusal.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod common;

use common::STAMP;
use item::patch::{OPERATIONS_MAX, Patch, PatchError, apply, parse};
use item::{Draft, IngestError, Value};

/// Patches an item whose partition key is `/pk/a`.
fn patched(item: &str, operations: &str) -> Result<String, PatchError> {
    let patch = parse(&Value::parse(operations.as_bytes()).unwrap())?;
    let item = Draft::parse(item.as_bytes()).unwrap().stamp(&STAMP);
    let key = vec!["pk".to_owned(), "a".to_owned()];
    apply(&patch, item.root(), &[key]).map(|draft| draft.root().raw().to_owned())
}

fn check(item: &str, operations: &str, expect: &str) {
    assert_eq!(patched(item, operations).as_deref(), Ok(expect), "{operations} on {item}");
}

fn check_refused(item: &str, operations: &str, expect: &str) {
    let refusal = patched(item, operations).expect_err(operations);
    assert_eq!(refusal.to_string(), expect, "{operations} on {item}");
}

#[test]
fn add() {
    check(r#"{"a":1}"#, r#"[{"op":"add","path":"/b","value":2}]"#, r#"{"a":1,"b":2}"#);
    check(r#"{"a":1,"b":2}"#, r#"[{"op":"add","path":"/a","value":3}]"#, r#"{"a":3,"b":2}"#);
    check(
        r#"{"a":1}"#,
        r#"[{"op":"add","path":"/b","value":{"c":[]}}]"#,
        r#"{"a":1,"b":{"c":[]}}"#,
    );
    check(r#"{"a":{}}"#, r#"[{"op":"add","path":"/a/b","value":null}]"#, r#"{"a":{"b":null}}"#);
    check(r#"{"a":[1,3]}"#, r#"[{"op":"add","path":"/a/1","value":2}]"#, r#"{"a":[1,2,3]}"#);
    check(r#"{"a":[1]}"#, r#"[{"op":"add","path":"/a/0","value":0}]"#, r#"{"a":[0,1]}"#);
    check(r#"{"a":[1]}"#, r#"[{"op":"add","path":"/a/1","value":2}]"#, r#"{"a":[1,2]}"#);
    check(r#"{"a":[1]}"#, r#"[{"op":"add","path":"/a/-","value":2}]"#, r#"{"a":[1,2]}"#);
    check(
        r#"{"a":[{"b":1}]}"#,
        r#"[{"op":"add","path":"/a/0/c","value":2}]"#,
        r#"{"a":[{"b":1,"c":2}]}"#,
    );
    check(r#"{"a":1}"#, r#"[{"op":"add","path":"/-","value":2}]"#, r#"{"a":1,"-":2}"#);
    check(r#"{"a":1}"#, r#"[{"op":"add","path":"/x~1y~0z","value":2}]"#, r#"{"a":1,"x/y~z":2}"#);
    check(r#"{"a":1}"#, r#"[{"op":"add","path":"/","value":2}]"#, r#"{"a":1,"":2}"#);

    let no_position = "operation 0: the array has no such position at";
    check_refused(
        r#"{"a":[1]}"#,
        r#"[{"op":"add","path":"/a/2","value":2}]"#,
        &format!("{no_position} '/a/2'"),
    );
    check_refused(
        r#"{"a":[1]}"#,
        r#"[{"op":"add","path":"/a/x","value":2}]"#,
        &format!("{no_position} '/a/x'"),
    );
    check_refused(
        r#"{"a":[1]}"#,
        r#"[{"op":"add","path":"/a/01","value":2}]"#,
        &format!("{no_position} '/a/01'"),
    );
    check_refused(
        r#"{"a":[1]}"#,
        r#"[{"op":"add","path":"/a/-1","value":2}]"#,
        &format!("{no_position} '/a/-1'"),
    );
    let no_parent = "operation 0: there is no object or array to change at";
    check_refused(
        "{}",
        r#"[{"op":"add","path":"/a/b","value":2}]"#,
        &format!("{no_parent} '/a/b'"),
    );
    check_refused(
        r#"{"a":1}"#,
        r#"[{"op":"add","path":"/a/b","value":2}]"#,
        &format!("{no_parent} '/a/b'"),
    );
    check_refused(
        r#"{"a":[1]}"#,
        r#"[{"op":"add","path":"/a/-/b","value":2}]"#,
        &format!("{no_parent} '/a/-/b'"),
    );
}

#[test]
fn set() {
    check(r#"{"a":1}"#, r#"[{"op":"set","path":"/b","value":2}]"#, r#"{"a":1,"b":2}"#);
    check(r#"{"a":1}"#, r#"[{"op":"set","path":"/a","value":[2]}]"#, r#"{"a":[2]}"#);
    check(r#"{"a":[1,3]}"#, r#"[{"op":"set","path":"/a/1","value":2}]"#, r#"{"a":[1,2]}"#);
    check(r#"{"a":[1]}"#, r#"[{"op":"set","path":"/a/1","value":2}]"#, r#"{"a":[1,2]}"#);
    check(r#"{"a":[1]}"#, r#"[{"op":"set","path":"/a/-","value":2}]"#, r#"{"a":[1,2]}"#);
    check(r#"{"a":[]}"#, r#"[{"op":"set","path":"/ttl","value":60}]"#, r#"{"a":[],"ttl":60}"#);

    let expect = "operation 0: the array has no such position at '/a/2'";
    check_refused(r#"{"a":[1]}"#, r#"[{"op":"set","path":"/a/2","value":2}]"#, expect);
    let expect = "operation 0: there is no object or array to change at '/b/c'";
    check_refused(r#"{"a":[1]}"#, r#"[{"op":"set","path":"/b/c","value":2}]"#, expect);
}

#[test]
fn replace() {
    check(r#"{"a":1,"b":2}"#, r#"[{"op":"replace","path":"/a","value":[]}]"#, r#"{"a":[],"b":2}"#);
    check(r#"{"a":[1,2]}"#, r#"[{"op":"replace","path":"/a/1","value":3}]"#, r#"{"a":[1,3]}"#);
    check(r#"{"a":null}"#, r#"[{"op":"replace","path":"/a","value":1}]"#, r#"{"a":1}"#);

    let not_found = "operation 0: there is nothing to change at";
    check_refused(
        "{}",
        r#"[{"op":"replace","path":"/a","value":1}]"#,
        &format!("{not_found} '/a'"),
    );
    check_refused(
        r#"{"a":[1]}"#,
        r#"[{"op":"replace","path":"/a/1","value":1}]"#,
        &format!("{not_found} '/a/1'"),
    );
    check_refused(
        r#"{"a":[1]}"#,
        r#"[{"op":"replace","path":"/a/-","value":1}]"#,
        &format!("{not_found} '/a/-'"),
    );
}

#[test]
fn remove() {
    check(r#"{"a":1,"b":2,"c":3}"#, r#"[{"op":"remove","path":"/b"}]"#, r#"{"a":1,"c":3}"#);
    check(r#"{"a":[1,2,3]}"#, r#"[{"op":"remove","path":"/a/1"}]"#, r#"{"a":[1,3]}"#);
    check(r#"{"a":{"b":{}}}"#, r#"[{"op":"remove","path":"/a/b"}]"#, r#"{"a":{}}"#);

    let not_found = "operation 0: there is nothing to change at";
    check_refused("{}", r#"[{"op":"remove","path":"/a"}]"#, &format!("{not_found} '/a'"));
    check_refused(
        r#"{"a":1}"#,
        r#"[{"op":"remove","path":"/a/b"}]"#,
        &format!("{not_found} '/a/b'"),
    );
    check_refused(
        r#"{"a":[1]}"#,
        r#"[{"op":"remove","path":"/a/1"}]"#,
        &format!("{not_found} '/a/1'"),
    );
    check_refused(
        r#"{"a":[1]}"#,
        r#"[{"op":"remove","path":"/a/-"}]"#,
        &format!("{not_found} '/a/-'"),
    );
}

#[test]
fn increment() {
    check(r#"{"a":1}"#, r#"[{"op":"incr","path":"/a","value":2}]"#, r#"{"a":3}"#);
    check(r#"{"a":1}"#, r#"[{"op":"incr","path":"/a","value":-2.5}]"#, r#"{"a":-1.5}"#);
    check(r#"{"a":0.5}"#, r#"[{"op":"incr","path":"/a","value":0.5}]"#, r#"{"a":1}"#);
    check(r#"{"a":[1,5]}"#, r#"[{"op":"incr","path":"/a/1","value":1}]"#, r#"{"a":[1,6]}"#);
    check("{}", r#"[{"op":"incr","path":"/a","value":7}]"#, r#"{"a":7}"#);
    check(r#"{"a":{}}"#, r#"[{"op":"incr","path":"/a/b","value":-1}]"#, r#"{"a":{"b":-1}}"#);

    let not_a_number = "operation 0: only a number can be incremented at '/a'";
    for value in [r#""1""#, "null", "true", "[]", "{}"] {
        let item = format!(r#"{{"a":{value}}}"#);
        check_refused(&item, r#"[{"op":"incr","path":"/a","value":1}]"#, not_a_number);
    }
    let expect = "operation 0: the array has no such position at '/a/1'";
    check_refused(r#"{"a":[1]}"#, r#"[{"op":"incr","path":"/a/1","value":1}]"#, expect);
    let expect = "operation 0: there is no object or array to change at '/a/b'";
    check_refused("{}", r#"[{"op":"incr","path":"/a/b","value":1}]"#, expect);
    let expect = "operation 0: the number becomes too large at '/a'";
    check_refused(r#"{"a":1.7e308}"#, r#"[{"op":"incr","path":"/a","value":1.7e308}]"#, expect);
}

#[test]
fn relocate() {
    check(r#"{"a":1,"b":2}"#, r#"[{"op":"move","from":"/a","path":"/c"}]"#, r#"{"b":2,"c":1}"#);
    check(r#"{"a":1,"b":2}"#, r#"[{"op":"move","from":"/a","path":"/b"}]"#, r#"{"b":1}"#);
    check(
        r#"{"a":{"b":1},"c":{}}"#,
        r#"[{"op":"move","from":"/a/b","path":"/c/d"}]"#,
        r#"{"a":{},"c":{"d":1}}"#,
    );
    check(
        r#"{"a":{"b":{"c":1}}}"#,
        r#"[{"op":"move","from":"/a/b","path":"/a"}]"#,
        r#"{"a":{"c":1}}"#,
    );
    check(r#"{"a":[1,2,3]}"#, r#"[{"op":"move","from":"/a/0","path":"/a/2"}]"#, r#"{"a":[2,3,1]}"#);
    check(r#"{"a":[1,2]}"#, r#"[{"op":"move","from":"/a/0","path":"/a/-"}]"#, r#"{"a":[2,1]}"#);
    check(r#"{"a":1,"b":2}"#, r#"[{"op":"move","from":"/a","path":"/a"}]"#, r#"{"a":1,"b":2}"#);

    let expect = "operation 0: there is nothing to change at '/a'";
    check_refused("{}", r#"[{"op":"move","from":"/a","path":"/b"}]"#, expect);
    check_refused("{}", r#"[{"op":"move","from":"/a","path":"/a"}]"#, expect);
    let expect = "operation 0: a value cannot be moved into itself at '/a/b'";
    check_refused(r#"{"a":{}}"#, r#"[{"op":"move","from":"/a","path":"/a/b"}]"#, expect);
    let expect = "operation 0: there is no object or array to change at '/b/c'";
    check_refused(r#"{"a":1}"#, r#"[{"op":"move","from":"/a","path":"/b/c"}]"#, expect);
}

#[test]
fn operations_apply_in_order_and_all_or_none() {
    let operations = r#"[{"op":"add","path":"/a","value":{}},{"op":"set","path":"/a/b","value":[1]},
        {"op":"add","path":"/a/b/-","value":2},{"op":"incr","path":"/a/b/0","value":9},
        {"op":"move","from":"/a/b","path":"/c"},{"op":"remove","path":"/a"}]"#;
    check("{}", operations, r#"{"c":[10,2]}"#);
    let operations = r#"[{"op":"add","path":"/a","value":1},{"op":"remove","path":"/b"}]"#;
    check_refused("{}", operations, "operation 1: there is nothing to change at '/b'");
}

#[test]
fn some_paths_are_protected() {
    let protected = [
        "/id",
        "/id/x",
        "/_rid",
        "/_etag",
        "/_ts",
        "/_self",
        "/_attachments",
        "/_ts/0",
        "/pk",
        "/pk/a",
        "/pk/a/b",
    ];
    for path in protected {
        let expect = format!("operation 0: '{path}' cannot be patched");
        for op in ["add", "set", "replace", "incr"] {
            let operations = format!(r#"[{{"op":"{op}","path":"{path}","value":1}}]"#);
            check_refused(r#"{"id":"1","pk":{"a":1}}"#, &operations, &expect);
        }
        for other in [
            format!(r#"[{{"op":"remove","path":"{path}"}}]"#),
            format!(r#"[{{"op":"move","from":"{path}","path":"/x"}}]"#),
            format!(r#"[{{"op":"move","from":"/x","path":"{path}"}}]"#),
        ] {
            check_refused(r#"{"id":"1","x":1}"#, &other, &expect);
        }
    }
    check(
        r#"{"pk":{"a":1}}"#,
        r#"[{"op":"add","path":"/pk/b","value":2}]"#,
        r#"{"pk":{"a":1,"b":2}}"#,
    );
    check(r#"{"a":{}}"#, r#"[{"op":"add","path":"/a/id","value":2}]"#, r#"{"a":{"id":2}}"#);
    check(r#"{"a":1}"#, r#"[{"op":"add","path":"/_x","value":2}]"#, r#"{"a":1,"_x":2}"#);
    check(r#"{"a":1}"#, r#"[{"op":"add","path":"/ids","value":2}]"#, r#"{"a":1,"ids":2}"#);
}

#[test]
fn bodies_are_checked() {
    let read = |body: &str| parse(&Value::parse(body.as_bytes()).unwrap());
    let refused = |body: &str| read(body).expect_err(body).to_string();
    let one = r#"{"op":"remove","path":"/a"}"#;
    let Patch { operations, condition } =
        read(&format!(r#"{{"condition":"from c where c.v = 1","operations":[{one}]}}"#)).unwrap();
    assert_eq!((operations.len(), condition.as_deref()), (1, Some("from c where c.v = 1")));
    assert_eq!(
        read(&format!(r#"{{"operations":[{one}],"condition":null}}"#)).unwrap().condition,
        None
    );
    assert_eq!(read(&format!("[{one}]")).unwrap().condition, None);

    let many = |count: usize| format!("[{}]", vec![one; count].join(","));
    assert_eq!(read(&many(OPERATIONS_MAX - 1)).unwrap().operations.len(), OPERATIONS_MAX - 1);
    assert_eq!(read(&many(OPERATIONS_MAX)).unwrap().operations.len(), OPERATIONS_MAX);
    assert_eq!(read(&many(OPERATIONS_MAX + 1)), Err(PatchError::Count { count: 11 }));
    assert_eq!(read("[]"), Err(PatchError::Count { count: 0 }));

    let expect = "a patch must be an array of operations or an object with 'operations'";
    for body in ["{}", "1", "null", r#""x""#, r#"{"operations":{}}"#] {
        assert_eq!(refused(body), expect);
    }
    let expect = "the condition of a patch must be a string";
    assert_eq!(refused(&format!(r#"{{"condition":1,"operations":[{one}]}}"#)), expect);
    for op in ["copy", "test", "Add", "increment", ""] {
        let expect = format!("operation 0: '{op}' is not supported");
        assert_eq!(refused(&format!(r#"[{{"op":"{op}","path":"/a","value":1}}]"#)), expect);
    }
    assert_eq!(refused("[1]"), "operation 0: 'op' must be a string");
    assert_eq!(refused(r#"[{"op":"add","path":"/a"}]"#), "operation 0: 'value' is missing");
    assert_eq!(
        refused(r#"[{"op":"incr","path":"/a","value":"1"}]"#),
        "operation 0: 'value' must be a number"
    );
    for path in [r#""""#, r#""a""#, r#""/a~2""#, "null", "1"] {
        let body = format!(r#"[{one},{{"op":"remove","path":{path}}}]"#);
        assert_eq!(refused(&body), "operation 1: 'path' must be a JSON pointer such as '/a/b'");
    }
    let body = r#"[{"op":"move","path":"/a"}]"#;
    assert_eq!(refused(body), "operation 0: 'from' must be a JSON pointer such as '/a/b'");
}

#[test]
fn a_patched_item_keeps_the_limits() {
    let deep = format!("{}{}", "[".repeat(127), "]".repeat(127));
    check(
        "{}",
        &format!(r#"[{{"op":"add","path":"/a","value":{}}}]"#, &deep[1..253]),
        &format!(r#"{{"a":{}}}"#, &deep[1..253]),
    );
    let operations = format!(
        r#"[{{"op":"add","path":"/a","value":{{}}}},{{"op":"add","path":"/a/b","value":{}}}]"#,
        &deep[..]
    );
    let too_deep = PatchError::Result(IngestError::TooDeep { offset: 0 });
    assert!(Value::parse(operations.as_bytes()).is_err(), "the patch itself is too deep");
    let shallow = format!(r#"[{{"op":"add","path":"/a/a/a","value":{}}}]"#, &deep[1..253]);
    assert_eq!(patched(r#"{"a":{"a":{}}}"#, &shallow), Err(too_deep));
    let large = format!(r#"[{{"op":"add","path":"/b","value":"{}"}}]"#, "x".repeat(1 << 20));
    let item = format!(r#"{{"a":"{}"}}"#, "x".repeat(1 << 20));
    assert!(matches!(
        patched(&item, &large),
        Err(PatchError::Result(IngestError::TooLarge { .. }))
    ));
}
