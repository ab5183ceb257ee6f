//! Which paths a policy indexes.
//!
//! Goal: the rules of precedence, as the documentation of the service states them. Method: one
//! item, many policies; the terms are read back and compared as text.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use index::encode::decode;
use index::{Path, Policy, Scalar, Terms};
use item::Draft;
use model::container::path::Segment;
use model::container::{ContainerDefinition, IndexingPolicy};
use serde_json::{Value, json};

fn policy(included: &[&str], excluded: &[&str]) -> Policy {
    let list = |paths: &[&str]| paths.iter().map(|path| json!({"path": path})).collect::<Vec<_>>();
    let json = json!({"includedPaths": list(included), "excludedPaths": list(excluded)});
    Policy::compile(&IndexingPolicy::parse(&json).unwrap())
}

fn show_path(path: &Path) -> String {
    let segment = |segment: &Segment| match segment {
        Segment::Property(name) => format!("/{name}"),
        Segment::Elements => "/[]".to_owned(),
    };
    path.segments.iter().map(segment).collect()
}

/// Terms as `path value`.
fn show(terms: &Terms) -> Vec<String> {
    let show = |term: &[u8]| {
        let (path, used) = Path::decode(term).unwrap();
        let (value, length) = decode(&term[used..]).unwrap();
        assert_eq!(used + length, term.len());
        let value = match value.scalar {
            Scalar::Undefined => "undefined".to_owned(),
            Scalar::Null => "null".to_owned(),
            Scalar::Bool(bool) => bool.to_string(),
            Scalar::Number(number) => number.to_string(),
            Scalar::String(text) => format!("{text:?}"),
            Scalar::Array => "array".to_owned(),
            Scalar::Object => "object".to_owned(),
        };
        format!("{} {value}", show_path(&path))
    };
    terms.iter().map(show).collect()
}

fn terms(policy: &Policy, item: Value) -> Vec<String> {
    let draft = Draft::parse(item.to_string().as_bytes()).unwrap();
    show(&policy.terms(draft.root()))
}

/// The table of the service: whether the scalars at /a/b, /a/b/c, /a/d and /e are indexed.
#[test]
fn the_deepest_path_wins_and_a_question_mark_beats_a_star() {
    let table = [
        // included, excluded, [/a/b, /a/b/c, /a/d, /e]
        (&["/*"][..], &["/a/*"][..], [false, false, false, true]),
        (&["/*", "/a/b/*"], &["/a/*"], [true, true, false, true]),
        (&["/*", "/a/b/?"], &["/a/*"], [true, false, false, true]),
        (&["/a/?"], &["/*"], [false, false, false, false]),
        (&["/a/*"], &["/*", "/a/b/?"], [false, true, true, false]),
    ];
    let scalar = json!({"id": "1", "a": {"b": 1, "d": 3}, "e": 4});
    let object = json!({"id": "1", "a": {"b": {"c": 2}, "d": 3}, "e": 4});
    for (included, excluded, expect) in table {
        let policy = policy(included, excluded);
        let scalar = terms(&policy, scalar.clone());
        let object = terms(&policy, object.clone());
        let has = |terms: &[String], term: &str| terms.iter().any(|other| other == term);
        let found = [
            has(&scalar, "/a/b 1"),
            has(&object, "/a/b/c 2"),
            has(&scalar, "/a/d 3"),
            has(&scalar, "/e 4"),
        ];
        assert_eq!(found, expect, "included {included:?}, excluded {excluded:?}");
        let paths = [&["a", "b"][..], &["a", "b", "c"], &["a", "d"], &["e"]];
        let asked = paths.map(|path| policy.is_indexed(&Path::of_properties(path.iter().copied())));
        assert_eq!(asked, expect, "the planner is told the same");
    }
}

#[test]
fn everything_is_indexed_by_default_but_system_properties() {
    let item = json!({
        "id": "1", "a": [1, "x", 1, [true]], "o": {"n": null}, "empty": [], "none": {},
        "_rid": "r", "_self": "s", "_etag": "e", "_attachments": "at", "_ts": 5, "_own": 1,
        "nested": {"_ts": 6},
    });
    let mut expect = vec![
        "/_own 1",
        "/a array",
        "/a/[] 1",
        "/a/[] \"x\"",
        "/a/[] array",
        "/a/[]/[] true",
        "/empty array",
        "/id \"1\"",
        "/nested object",
        "/nested/_ts 6",
        "/none object",
        "/o object",
        "/o/n null",
    ];
    let mut found = terms(&policy(&["/*"], &[]), item);
    expect.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, expect);
}

#[test]
fn the_id_and_the_time_are_always_indexed() {
    let nothing = policy(&[], &["/*", "/id/?"]);
    assert_eq!(terms(&nothing, json!({"id": "1", "a": 1})), ["/id \"1\""]);
    assert!(nothing.is_indexed(&Path::of_properties(["_ts"])));
    let (path, used) = Path::decode(&index::ts_term(7)).unwrap();
    assert_eq!(show_path(&path), "/_ts");
    let (value, _) = decode(&index::ts_term(7)[used..]).unwrap();
    assert_eq!(value.scalar, Scalar::Number(7.0));
}

#[test]
fn listed_paths_also_index_that_they_are_missing() {
    let policy = policy(&["/a/b/?", "/c/[]/d/?", "/e/*"], &["/*"]);
    assert_eq!(
        terms(&policy, json!({"id": "1"})),
        ["/a/b undefined", "/c/[]/d undefined", "/e undefined", "/id \"1\""]
    );
    assert_eq!(
        terms(&policy, json!({"id": "1", "a": {"b": null}, "c": [{}, {"d": 1}], "e": []})),
        ["/a/b null", "/c/[]/d 1", "/e array", "/id \"1\""]
    );
    assert_eq!(
        terms(&policy, json!({"id": "1", "a": 1, "c": {"d": 1}})),
        ["/a/b undefined", "/c/[]/d undefined", "/e undefined", "/id \"1\""]
    );
}

#[test]
fn paths_are_case_sensitive_and_arrays_need_brackets() {
    let policy = policy(&["/a/?", "/t/[]/?"], &["/*"]);
    assert_eq!(
        terms(&policy, json!({"id": "1", "A": 1, "a": [1], "t": [2, [3], {"x": 4}]})),
        ["/a array", "/id \"1\"", "/t/[] 2", "/t/[] array", "/t/[] object"]
    );
}

#[test]
fn mode_none_has_no_terms() {
    let json = json!({"indexingMode": "none"});
    let policy = Policy::compile(&IndexingPolicy::parse(&json).unwrap());
    assert!(!policy.is_consistent());
    assert!(!policy.is_indexed(&Path::of_properties(["id"])));
    assert_eq!(terms(&policy, json!({"id": "1"})), [""; 0]);
}

#[test]
fn computed_properties_hide_stored_ones() {
    let definition = ContainerDefinition::parse(&json!({
        "id": "c", "partitionKey": {"paths": ["/pk"]},
        "indexingPolicy": {"includedPaths": [{"path": "/*"}, {"path": "/low/?"}]},
        "computedProperties": [{"name": "low", "query": "SELECT VALUE LOWER(c.n) FROM c"}],
    }));
    let policy = Policy::of(&definition.unwrap());
    let expect = ["/n 2", "/id \"1\"", "/o object", "/o/low 3"];
    assert_eq!(
        sorted(terms(&policy, json!({"id": "1", "low": 1, "n": 2, "o": {"low": 3}}))),
        sorted(expect.map(str::to_owned).to_vec())
    );
}

fn sorted(mut list: Vec<String>) -> Vec<String> {
    list.sort_unstable();
    list
}

#[test]
fn a_name_of_seventy_kilobytes_is_one_term() {
    let name = "n".repeat(70_000);
    let draft = Draft::parse(json!({"id": "1", &name: 5}).to_string().as_bytes()).unwrap();
    let terms = policy(&["/*"], &[]).terms(draft.root());
    let term = index::term(&Path::of_properties([&name[..]]), &Scalar::Number(5.0));
    assert_eq!(terms.len(), 2);
    assert!(terms.contains(&term) && term.len() < 300);
}
