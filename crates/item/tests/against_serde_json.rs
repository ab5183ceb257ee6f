//! The oracle: whatever serde_json reads, we read as the same value, in every way we can.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod common;

use common::{STAMP, any_json, any_number, any_object, assert_reads_as};
use item::{Draft, Item, Json, Value, write_number};
use proptest::prelude::*;
use serde_json::Value as Oracle;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_value_reads_the_same(oracle in any_json(), pretty in any::<bool>()) {
        let text = print(&oracle, pretty);
        let json = Json::parse(&text).unwrap();
        assert_reads_as(json.root(), &oracle);
        let value = Value::parse(&text).unwrap();
        prop_assert_eq!(value.to_json(), json.root().raw());
        prop_assert!(value.deep_eq(&json.root().to_value()));
    }

    #[test]
    fn any_object_becomes_an_item(object in any_object(), pretty in any::<bool>()) {
        let mut object = object;
        let text = print(&Oracle::Object(object.clone()), pretty);
        item::SYSTEM_PROPERTIES.iter().for_each(|name| drop(object.shift_remove(*name)));
        let oracle = Oracle::Object(object.clone());

        let draft = Draft::parse(&text).unwrap();
        assert_reads_as(draft.root(), &oracle);
        let from_value = Draft::from_value(&Value::parse(&text).unwrap()).unwrap();
        prop_assert_eq!(from_value.root().raw(), draft.root().raw());

        let text_len = draft.text_len();
        let item = draft.stamp(&STAMP);
        assert_eq!(from_value.stamp(&STAMP).as_bytes(), item.as_bytes());
        prop_assert_eq!((item.text_len(), item.text().len()), (text_len, text_len));
        assert_reads_as(item.root(), &stamped(&object));
        assert_reads_as(item.to_draft().root(), &oracle);

        let again = Item::from_bytes(item.as_bytes().clone()).unwrap();
        assert_eq!(again.to_draft().stamp(&STAMP).as_bytes(), item.as_bytes());
    }

    /// Pieces of JSON in any order: mostly refused, and for the same texts.
    #[test]
    fn the_same_texts_are_refused(pieces in prop::collection::vec(prop::sample::select(PIECES), 0..12)) {
        let text = pieces.concat();
        let oracle: Result<Oracle, _> = serde_json::from_slice(text.as_bytes());
        let json = Json::parse(text.as_bytes());
        prop_assert_eq!(json.is_ok(), oracle.is_ok(), "{}", text);
        if let (Ok(json), Ok(oracle)) = (json, oracle) {
            assert_reads_as(json.root(), &oracle);
        }
    }

    /// Text and number agree however the number was written.
    #[test]
    fn numbers_have_one_text(number in any_number()) {
        let mut canonical = Vec::new();
        write_number(&mut canonical, number);
        assert_eq!(std::str::from_utf8(&canonical).unwrap(), ryu_js::Buffer::new().format(number));
        for text in [format!("{number}"), format!("{number:e}"), format!("{number:.1074}")] {
            let json = Json::parse(text.as_bytes()).unwrap();
            prop_assert_eq!(json.root().raw().as_bytes(), &canonical[..]);
            prop_assert_eq!(json.root().as_f64(), Some(number));
        }
    }

    /// The shortcut for decimals that are canonical already gives what conversion would.
    #[test]
    fn decimals_copied_are_decimals_converted(whole in 0u64..10_000_000, fraction in "[0-9]{0,12}") {
        let text = if fraction.is_empty() { format!("{whole}") } else { format!("{whole}.{fraction}") };
        let number: f64 = text.parse().unwrap();
        let json = Json::parse(text.as_bytes()).unwrap();
        assert_eq!(json.root().raw(), ryu_js::Buffer::new().format(number));
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let is_json = serde_json::from_slice::<Oracle>(&bytes).is_ok();
        prop_assert_eq!(Json::parse(&bytes).is_ok(), is_json);
    }
}

/// No lone surrogates: serde_json refuses them, we replace them. No numbers serde_json rounds
/// differently: without its feature `float_roundtrip` it is not exact.
const PIECES: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"a\"",
    "\"b\":",
    "\"a\":1",
    "1",
    "-",
    "0",
    ".5",
    "e1",
    "1e400",
    "true",
    "null",
    " ",
    "\n",
    "\"",
    "\\",
    "\\n",
    "\\u0061",
    "é",
    "{\"a\":1,",
    "[1,",
    "\"\\u",
    "\u{feff}",
    "\u{1}",
];

fn print(oracle: &Oracle, pretty: bool) -> Vec<u8> {
    let print = if pretty { serde_json::to_vec_pretty } else { serde_json::to_vec };
    print(oracle).unwrap()
}

fn stamped(object: &serde_json::Map<String, Oracle>) -> Oracle {
    let mut object = object.clone();
    object.insert("_rid".into(), STAMP.rid.into());
    object.insert("_self".into(), STAMP.self_link.into());
    object.insert("_etag".into(), format!("\"{}\"", STAMP.etag).into());
    object.insert("_attachments".into(), "attachments/".into());
    object.insert("_ts".into(), STAMP.ts.into());
    Oracle::Object(object)
}
