//! What the tests of this crate share.
#![allow(dead_code, reason = "each test uses its part")]

use item::{Kind, Node, Stamp};
use proptest::prelude::*;
use serde_json::{Map, Value as Json};

pub const STAMP: Stamp<'static> = Stamp {
    rid: "AAAAAIAAAAABAAAAAAAAAA==",
    self_link: "dbs/AAAAAA==/colls/AAAAAIAAAAA=/docs/AAAAAIAAAAABAAAAAAAAAA==/",
    etag: "0000d826-0000-0700-0000-60a2b6f10000",
    ts: 1_700_000_000,
    lsn: 42,
    position: 3,
    ordinal: 7,
    is_indexed: true,
};

/// Any JSON value: short names so that they meet again, strings of any characters, numbers of any
/// size.
pub fn any_json() -> impl Strategy<Value = Json> {
    scalar().prop_recursive(6, 80, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Json::Array),
            members(inner).prop_map(Json::Object),
        ]
    })
}

/// Any JSON object.
pub fn any_object() -> impl Strategy<Value = Map<String, Json>> {
    members(any_json())
}

fn members(value: impl Strategy<Value = Json>) -> impl Strategy<Value = Map<String, Json>> {
    prop::collection::vec((any_text(), value), 0..8)
        .prop_map(|members| members.into_iter().collect())
}

fn scalar() -> impl Strategy<Value = Json> {
    prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::Bool),
        any_number().prop_map(Json::from),
        any::<i64>().prop_map(|number| Json::from(number >> 12)),
        any_text().prop_map(Json::String),
    ]
}

/// Any finite number, with those people write more often than chance would.
pub fn any_number() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<f64>().prop_filter("finite", |number| number.is_finite()),
        (-1_000_000i32..1_000_000, 0..12i32)
            .prop_map(|(n, scale)| f64::from(n) / 10f64.powi(scale)),
        (any::<i32>(), 0..290i32).prop_map(|(n, scale)| f64::from(n) * 10f64.powi(scale)),
    ]
}

pub fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::collection::vec(any::<char>(), 0..12).prop_map(String::from_iter),
        prop::collection::vec(prop::sample::select(ODD_CHARS), 0..20).prop_map(String::from_iter),
        prop::sample::select(&["a", "b", "id", "_rid", "_ts", "ttl", ""][..])
            .prop_map(String::from),
    ]
}

const ODD_CHARS: &[char] =
    &['a', 'z', '"', '\\', '/', '\n', '\0', '\u{1f}', '\u{7f}', 'é', '€', '😀', '\u{ffff}', ' '];

/// Checks that a node reads as the value in every way there is.
pub fn assert_reads_as(node: Node<'_>, json: &Json) {
    match json {
        Json::Null => assert!(node.is_null()),
        Json::Bool(value) => assert_eq!(node.as_bool(), Some(*value)),
        Json::Number(number) => assert_eq!(node.as_f64(), number.as_f64()),
        Json::String(text) => {
            assert_eq!(node.as_str().as_deref(), Some(text.as_str()));
            assert!(node.is_string(text) && !node.is_string(&format!("{text}x")));
        }
        Json::Array(elements) => assert_array(node, elements),
        Json::Object(object) => assert_object(node, object),
    }
}

fn assert_array(node: Node<'_>, elements: &[Json]) {
    assert_eq!((node.kind(), node.len()), (Kind::Array, elements.len()));
    assert_eq!(node.elements().count(), elements.len());
    for (index, (element, json)) in node.elements().zip(elements).enumerate() {
        assert_reads_as(element, json);
        assert_eq!(node.at(index).unwrap().raw(), element.raw());
    }
    assert!(node.at(elements.len()).is_none());
}

fn assert_object(node: Node<'_>, object: &Map<String, Json>) {
    assert_eq!((node.kind(), node.len()), (Kind::Object, object.len()));
    assert_eq!(node.members().count(), object.len());
    for ((name, member), (json_name, json)) in node.members().zip(object) {
        assert_eq!(&name, json_name);
        assert_reads_as(member, json);
        assert_eq!(node.get(json_name).unwrap().raw(), member.raw());
    }
    assert!(node.get("a name nobody generates").is_none());
}
