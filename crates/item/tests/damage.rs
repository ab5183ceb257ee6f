//! Stored bytes that were damaged: everything may be wrong about them, but nothing panics.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod common;

use bytes::Bytes;
use common::{STAMP, any_object};
use item::{Draft, Item, Node};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn reading_damaged_bytes_never_panics(
        object in any_object(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
    ) {
        let mut bytes = stored(&object);
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        read_all(bytes);
    }

    /// Damage aimed at the node table, past the checks of `from_bytes`.
    #[test]
    fn reading_a_damaged_table_never_panics(
        object in any_object(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), 0..8u32), 1..30),
    ) {
        let mut bytes = stored(&object);
        let text_len = Item::from_bytes(bytes.clone().into()).unwrap().text_len();
        let table = 40 + text_len;
        let length = bytes.len() - table;
        for (at, bit) in damage {
            bytes[table + at.index(length)] ^= 1 << bit;
        }
        read_all(bytes);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        read_all([&[1, 1, 0, 0][..], &bytes].concat());
        read_all(bytes);
    }
}

/// Every single byte of one item, set to every value that tends to matter.
#[test]
fn every_byte_may_be_wrong() {
    let body = r#"{"id":"a\nb","n":[1,{"x":-2.5e300},[]],"é\"":{"t":true,"u":null},"ttl":5}"#;
    let bytes = Draft::parse(body.as_bytes()).unwrap().stamp(&STAMP).as_bytes().to_vec();
    for at in 0..bytes.len() {
        for byte in
            [0, 1, 2, 7, 0x22, 0x5c, 0x7f, 0x80, 0xc3, 0xfe, 0xff, bytes[at] ^ 1, bytes[at] ^ 0x80]
        {
            let mut damaged = bytes.clone();
            damaged[at] = byte;
            read_all(damaged);
        }
    }
}

/// A table that claims a million levels must not exhaust the stack.
#[test]
fn forged_depth_does_not_overflow_the_stack() {
    let item = Draft::parse(format!(r#"{{"a":[{}0]}}"#, "0,".repeat(200_000)).as_bytes())
        .unwrap()
        .stamp(&STAMP);
    let mut bytes = item.as_bytes().to_vec();
    let table = 40 + item.text_len();
    let slots = ((bytes.len() - table) / 8) as u64;
    let array: u64 = 5 << 26 | 1 << 32;
    for slot in (2..slots - 10).step_by(2) {
        let at = table + slot as usize * 8;
        bytes[at..at + 8].copy_from_slice(&array.to_le_bytes());
        bytes[at + 8..at + 16].copy_from_slice(&((slots - 6) | 1 << 32).to_le_bytes());
    }
    read_all(bytes);
}

/// Arrays that claim the slots of their parent's siblings: a walk that believed them would visit
/// the rest of the table twice at every level.
#[test]
fn forged_overlaps_are_not_followed() {
    let body = format!(r#"{{"a":[{}0]}}"#, "0,".repeat(2_000));
    let item = Draft::parse(body.as_bytes()).unwrap().stamp(&STAMP);
    let mut bytes = item.as_bytes().to_vec();
    let table = 40 + item.text_len();
    let slots = ((bytes.len() - table) / 8) as u64;
    let end = slots - 5;
    let array: u64 = 5 << 26 | 1 << 32;
    let mut put = |slot: u64, word: u64| {
        let at = table + slot as usize * 8;
        bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
    };
    for outer in (4..end - 8).step_by(4) {
        put(outer, array);
        put(outer + 1, (outer + 4) | 1 << 32);
        put(outer + 2, array);
        put(outer + 3, end | 1 << 32);
    }
    read_all(bytes);
}

fn stored(object: &serde_json::Map<String, serde_json::Value>) -> Vec<u8> {
    let text = serde_json::to_vec(object).unwrap();
    Draft::parse(&text).unwrap().stamp(&STAMP).as_bytes().to_vec()
}

/// Asks everything that can be asked.
fn read_all(bytes: Vec<u8>) {
    let Ok(item) = Item::from_bytes(Bytes::from(bytes)) else { return };
    let _ = (item.lsn(), item.position(), item.ordinal(), item.ts(), item.ttl(), item.is_indexed());
    let _ = (item.rid().len(), item.etag().len(), item.id(), item.text(), item.text_len());
    walk(item.root());
    let _ = item.root().to_value();
    let draft = item.to_draft();
    walk(draft.root());
    let again = draft.stamp(&STAMP);
    walk(again.root());
}

fn walk(node: Node<'_>) {
    let _ = (node.kind(), node.as_bool(), node.as_f64(), node.as_str(), node.raw(), node.len());
    let _ =
        (node.get("id"), node.get("é\""), node.at(0), node.at(usize::MAX), node.path(["n", "x"]));
    let _ = (node.is_string(""), node.is_string("é\""));
    node.elements().for_each(walk);
    node.members().for_each(|(_, member)| walk(member));
}
