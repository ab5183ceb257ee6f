//! Every limit: one below, at it, one above.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod common;

use common::STAMP;
use item::{DEPTH_MAX, Draft, ITEM_BYTES_MAX, IngestError, Item, Json, Object, Ttl, Value};

/// `{"a":{"a":…}}` with as many levels, and the same in arrays inside one object.
fn nested(levels: usize) -> [String; 2] {
    let objects = format!("{}{}{}", r#"{"a":"#.repeat(levels - 1), "{}", "}".repeat(levels - 1));
    let arrays = format!(r#"{{"a":{}{}}}"#, "[".repeat(levels - 1), "]".repeat(levels - 1));
    [objects, arrays]
}

#[test]
fn nesting_of_text_is_limited() {
    for levels in [DEPTH_MAX - 1, DEPTH_MAX] {
        for text in nested(levels) {
            let item = Draft::parse(text.as_bytes()).unwrap().stamp(&STAMP);
            assert!(item.to_draft().root().raw() == text);
            assert_eq!(depth(&item.to_draft().root().to_value()), levels);
        }
    }
    for text in nested(DEPTH_MAX + 1) {
        let refusal = Draft::parse(text.as_bytes()).unwrap_err();
        let offset = if text.starts_with(r#"{"a":["#) { 4 + DEPTH_MAX } else { 5 * DEPTH_MAX };
        assert_eq!(refusal, IngestError::TooDeep { offset });
    }
    let endless = "[".repeat(1_000_000);
    assert_eq!(
        Json::parse(endless.as_bytes()).unwrap_err(),
        IngestError::TooDeep { offset: DEPTH_MAX }
    );
}

#[test]
fn nesting_of_values_is_limited() {
    let nest =
        |levels: usize| (1..levels).fold(Value::array(Vec::new()), |inner, _| vec![inner].into());
    let object = |levels| {
        let mut object = Object::new();
        object.insert("a", nest(levels - 1));
        Value::object(object)
    };
    assert!(Draft::from_value(&object(DEPTH_MAX - 1)).is_ok());
    assert!(Draft::from_value(&object(DEPTH_MAX)).is_ok());
    let refusal = Draft::from_value(&object(DEPTH_MAX + 1)).unwrap_err();
    assert_eq!(refusal, IngestError::TooDeep { offset: 0 });
}

#[test]
fn nesting_of_binary_is_limited() {
    let nest = |levels: usize| {
        let mut bytes = vec![0x80, 0xe9, 0x81, b'a'];
        bytes.extend(std::iter::repeat_n(0xe1, levels - 2));
        bytes.push(0xe0);
        bytes
    };
    assert!(Draft::parse_binary(&nest(DEPTH_MAX - 1)).is_ok());
    assert!(Draft::parse_binary(&nest(DEPTH_MAX)).is_ok());
    let refusal = Draft::parse_binary(&nest(DEPTH_MAX + 1)).unwrap_err();
    assert_eq!(refusal, IngestError::TooDeep { offset: 3 + DEPTH_MAX });
}

#[test]
fn the_size_of_an_item_is_limited() {
    let empty = Draft::parse(br#"{"a":""}"#).unwrap().text_len();
    let body = |bytes: usize| format!(r#"{{ "a" : "{}" }}"#, "x".repeat(bytes - empty));
    for bytes in [ITEM_BYTES_MAX - 1, ITEM_BYTES_MAX] {
        let item = Draft::parse(body(bytes).as_bytes()).unwrap().stamp(&STAMP);
        assert_eq!((item.text_len(), item.text().len()), (bytes, bytes));
        assert!(Item::from_bytes(item.as_bytes().clone()).is_ok());
    }
    let too_large = IngestError::TooLarge { bytes: ITEM_BYTES_MAX + 1 };
    let body = body(ITEM_BYTES_MAX + 1);
    assert_eq!(Draft::parse(body.as_bytes()).unwrap_err(), too_large);
    let value = Value::parse(body.as_bytes()).unwrap();
    assert_eq!(Draft::from_value(&value).unwrap_err(), too_large);
}

#[test]
fn the_size_is_that_of_the_canonical_text() {
    let blanks = format!("{{{}}}", " ".repeat(3 * ITEM_BYTES_MAX));
    assert!(Draft::parse(blanks.as_bytes()).is_ok());
    let escapes = format!(r#"{{"a":"{}"}}"#, "\\u0061".repeat(ITEM_BYTES_MAX / 2));
    assert!(Draft::parse(escapes.as_bytes()).is_ok());
    let grows = format!(r#"{{"a":[{}0]}}"#, "1e20,".repeat(ITEM_BYTES_MAX / 21));
    assert!(matches!(Draft::parse(grows.as_bytes()), Err(IngestError::TooLarge { .. })));
    let text = "x".repeat(ITEM_BYTES_MAX);
    let dropped = format!(r#"{{"_etag":"{text}","id":"1"}}"#);
    assert_eq!(Draft::parse(dropped.as_bytes()).unwrap().root().raw(), r#"{"id":"1"}"#);
    let replaced = format!(r#"{{"a":"{text}","a":"1"}}"#);
    assert_eq!(Draft::parse(replaced.as_bytes()).unwrap().root().raw(), r#"{"a":"1"}"#);
}

#[test]
fn the_densest_item_fits_its_table() {
    let text = format!(r#"{{"a":[{}0]}}"#, "0,".repeat(1_000_000));
    let item = Draft::parse(text.as_bytes()).unwrap().stamp(&STAMP);
    let array = item.root().get("a").unwrap();
    assert_eq!((array.len(), array.at(1_000_000).unwrap().as_f64()), (1_000_001, Some(0.0)));
}

#[test]
fn wide_objects_keep_each_name_once() {
    for width in [31, 32, 33, 34, 5_000] {
        let names: Vec<String> =
            (0..width).map(|i| format!(r#""same-beginning-{i}-same-end":{i}"#)).collect();
        let distinct = format!("{{{}}}", names.join(","));
        assert_eq!(Draft::parse(distinct.as_bytes()).unwrap().root().raw(), distinct);
        for at in [0, width / 2, width - 1] {
            let twice = format!(r#"{{{},"same-beginning-{at}-same-end":"last"}}"#, names.join(","));
            let draft = Draft::parse(twice.as_bytes()).unwrap();
            let (_, member) = draft.root().members().nth(at).unwrap();
            assert_eq!((draft.root().len(), member.raw()), (width, r#""last""#));
        }
    }
}

#[test]
fn time_to_live_is_classified() {
    let check = |ttl: &str, expect: Ttl| {
        let draft = Draft::parse(format!(r#"{{"ttl":{ttl}}}"#).as_bytes()).unwrap();
        assert_eq!(draft.ttl(), expect, "{ttl}");
        let item = draft.stamp(&STAMP);
        assert_eq!((item.ttl(), item.to_draft().ttl()), (expect, expect), "{ttl}");
    };
    assert_eq!(Draft::parse(br#"{"a":{"ttl":5}}"#).unwrap().ttl(), Ttl::Absent);
    check("-1", Ttl::Never);
    check("-1.0", Ttl::Never);
    check("1", Ttl::Seconds(1));
    check("1e3", Ttl::Seconds(1000));
    check("2147483647", Ttl::Seconds(2147483647));
    for ttl in ["null", "0", "-2", "1.5", "2147483648", "1e300", r#""60""#, "true", "[]", "{}"] {
        check(ttl, Ttl::Invalid);
    }
}

#[test]
fn only_objects_are_items() {
    for text in ["null", "1", r#""a""#, "[]", "[{}]", "true"] {
        assert_eq!(Draft::parse(text.as_bytes()).unwrap_err(), IngestError::NotAnObject, "{text}");
        let value = Value::parse(text.as_bytes()).unwrap();
        assert_eq!(Draft::from_value(&value).unwrap_err(), IngestError::NotAnObject);
    }
    assert_eq!(Draft::from_value(&Value::Undefined).unwrap_err(), IngestError::NotAnObject);
    assert_eq!(Draft::parse_binary(&[0x80, 0xe0]).unwrap_err(), IngestError::NotAnObject);
}

#[test]
fn values_without_json_are_left_out_or_refused() {
    let mut object = Object::new();
    object.insert("a", Value::Undefined);
    object.insert("b", vec![Value::Undefined, Value::Null].into());
    let value = Value::object(object.clone());
    assert_eq!(Draft::from_value(&value).unwrap().root().raw(), r#"{"b":[null]}"#);
    assert_eq!(value.to_json(), r#"{"b":[null]}"#);
    object.insert("c", Value::Number(f64::NAN));
    let value = Value::object(object);
    assert!(matches!(Draft::from_value(&value), Err(IngestError::Number { .. })));
    assert_eq!(value.to_json(), r#"{"b":[null],"c":null}"#);
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(elements) => 1 + elements.iter().map(depth).max().unwrap_or(0),
        Value::Object(object) => {
            1 + object.iter().map(|(_, value)| depth(value)).max().unwrap_or(0)
        }
        Value::Undefined | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}
