//! Binary JSON: the captured examples, each marker once, and whatever an encoder can produce.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod common;

use common::{any_object, assert_reads_as};
use item::{Draft, IngestError};
use proptest::prelude::*;
use serde_json::Value as Json;

/// Decodes `{"a": value}`, the value given in hex, and prints the value.
fn decode(hex: &str) -> Result<String, IngestError> {
    let mut bytes = vec![0x80, 0xe9, 0x81, b'a'];
    bytes.extend(unhex(hex));
    let draft = Draft::parse_binary(&bytes)?;
    Ok(draft.root().get("a").unwrap().raw().to_owned())
}

fn unhex(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(pair).collect()
}

#[test]
fn captured_examples() {
    let draft =
        Draft::parse_binary(&unhex("80 ED0E03 82 6964 81 62 82 706B 82 7032 81 76 01")).unwrap();
    assert_eq!(draft.root().raw(), r#"{"id":"b","pk":"p2","v":1}"#);
    assert_eq!(decode("CC 000000000000F83F").unwrap(), "1.5");
    assert_eq!(decode("CB FBFFFFFFFFFFFFFF").unwrap(), "-5");
    assert_eq!(decode("E5 03 02 01 81 78").unwrap(), r#"[1,"x"]"#);
}

#[test]
fn every_marker_decodes() {
    let cases = [
        ("00", "0"),
        ("1F", "31"),
        ("20", r#""$s""#),
        ("2C", r#""id""#),
        ("3F", r#""_id""#),
        ("7102 00 000102 030405", r#""AAECAwQF""#),
        ("7102 01 000102 0304", r#""AAECAwQ=""#),
        ("7102 02 000102 03", r#""AAECAw==""#),
        ("7102 FD 000102 03", r#""AAECAw""#),
        ("7102 FE 000102 0304", r#""AAECAwQ""#),
        ("720100 00 FBFFBF", r#""+/+/""#),
        ("7301 00 FBFFBF", r#""-_-_""#),
        ("740100 00 FBFFBF", r#""-_-_""#),
        ("75 1032547698BADCFE 1032547698BADCFE", r#""01234567-89ab-cdef-0123-456789abcdef""#),
        ("76 1032547698BADCFE 1032547698BADCFE", r#""01234567-89AB-CDEF-0123-456789ABCDEF""#),
        ("77 1032547698BADCFE 1032547698BADCFE", r#""\"01234567-89ab-cdef-0123-456789abcdef\"""#),
        ("7803 BA0C", r#""abc""#),
        ("7904 BADC", r#""ABCD""#),
        ("7A0A 13531CC282", r#""2024-01-17""#),
        ("7B03 61 1002", r#""abc""#),
        ("7C03 61 4100", r#""bca""#),
        ("7D02 41 8100", r#""BC""#),
        ("7E02 6131", r#""ab""#),
        ("7F0200 6131", r#""ab""#),
        ("80", r#""""#),
        ("83 E282AC", r#""€""#),
        ("C003 610A62", r#""a\nb""#),
        ("C10100 78", r#""x""#),
        ("C201000000 78", r#""x""#),
        ("C7 FFFFFFFFFFFFFFFF", "18446744073709552000"),
        ("C8 FF", "255"),
        ("C9 FFFF", "-1"),
        ("CA 00000080", "-2147483648"),
        ("CB FFFFFFFFFFFFFF7F", "9223372036854776000"),
        ("CC 9A9999999999B93F", "0.1"),
        ("CC 0000000000000080", "0"),
        ("CD 0000C03F", "1.5"),
        ("CE 000000000000F83F", "1.5"),
        ("CF 003E", "1.5"),
        ("D0", "null"),
        ("D1", "false"),
        ("D2", "true"),
        ("D3 67452301 AB89 EFCD 0123456789ABCDEF", r#""01234567-89ab-cdef-0123-456789abcdef""#),
        ("D7 FF", "255"),
        ("D8 FF", "-1"),
        ("D9 00FF", "-256"),
        ("DA FFFFFFFF", "-1"),
        ("DB FFFFFFFFFFFFFFFF", "-1"),
        ("DC FFFFFFFF", "4294967295"),
        ("DD01 00", r#""AA==""#),
        ("DE0200 0001", r#""AAE=""#),
        ("DF03000000 000102", r#""AAEC""#),
        ("E0", "[]"),
        ("E1 01", "[1]"),
        ("E203 010203", "[1,2,3]"),
        ("E200", "[]"),
        ("E30100 01", "[1]"),
        ("E402000000 01 D0", "[1,null]"),
        ("E50301 C9 0100", "[1]"),
        ("E602000200 0102", "[1,2]"),
        ("E70200000002000000 0102", "[1,2]"),
        ("E8", "{}"),
        ("E9 2C 01", r#"{"id":1}"#),
        ("EA06 8162 01 8163 02", r#"{"b":1,"c":2}"#),
        ("EB0300 8162 01", r#"{"b":1}"#),
        ("EC03000000 8162 E8", r#"{"b":{}}"#),
        ("ED0301 8162 01", r#"{"b":1}"#),
        ("EE03000100 8162 01", r#"{"b":1}"#),
        ("EF0300000001000000 8162 01", r#"{"b":1}"#),
        ("F0 D7 03 0102FF", "[1,2,255]"),
        ("F1 D9 0200 0100 FFFF", "[1,-1]"),
        ("F2 F0 D7 02 03 010203040506", "[[1,2],[3,4],[5,6]]"),
        ("F3 F1 D8 0100 0200 01 FF", "[[1],[-1]]"),
        ("F2 F0 CE 00 02", "[[],[]]"),
        ("E2 05 82 6162 C3 06", r#"["ab","ab"]"#),
        ("E2 06 82 6162 C4 0600", r#"["ab","ab"]"#),
        ("E2 07 82 6162 C5 060000", r#"["ab","ab"]"#),
        ("E2 08 82 6162 C6 06000000", r#"["ab","ab"]"#),
        ("E9 C3 02 01", r#"{"a":1}"#),
        ("C3 02", r#""a""#),
    ];
    for (hex, expect) in cases {
        assert_eq!(decode(hex).as_deref(), Ok(expect), "{hex}");
    }
}

#[test]
fn damage_is_refused() {
    let cases = [
        ("", "unexpected end of input"),
        ("01 01", "unexpected bytes after the value"),
        ("40", "not the marker of a string"),
        ("60 00", "not the marker of a string"),
        ("70", "not the marker of a string"),
        ("D4", "unknown type marker"),
        ("F4", "unknown type marker"),
        ("FF", "unknown type marker"),
        ("83 6162", "a length exceeds the input"),
        ("C2 FFFFFFFF 61", "a length exceeds the input"),
        ("81 FF", "invalid UTF-8"),
        ("CC 0000", "unexpected end of input"),
        ("C3 04", "a reference must go back to a string"),
        ("C3 05", "a reference must go back to a string"),
        ("C6 FFFFFFFF", "a reference must go back to a string"),
        ("C3 01", "not the marker of a string"),
        ("E2 06 81 61 C302 C308", "a reference must go back to a string"),
        ("E2 02 01", "a length exceeds the input"),
        ("E2 01 CA 00000000", "a value exceeds its container"),
        ("E5 02 01 0102", "a container has another number of values than it says"),
        ("E5 01 02 01", "a container has another number of values than it says"),
        ("E4 FFFFFFFF 01", "a length exceeds the input"),
        ("E9 01 01", "not the marker of a string"),
        ("EA 02 8162", "unexpected end of input"),
        ("F0 D0 01 00", "not the marker of a number"),
        ("F0 D7 05 00", "unexpected end of input"),
        ("F2 F1 D7 01 01 00", "an array of arrays with a foreign marker"),
        ("7102 03 000102 030405", "base64 text with an impossible padding"),
        ("7100 01", "base64 text with an impossible padding"),
        ("7B02 7F FF", "a packed string that is not ASCII"),
        ("7EFF 00", "a length exceeds the input"),
    ];
    for (hex, expect) in cases {
        match decode(hex) {
            Err(IngestError::Syntax { what, .. }) => assert_eq!(what, expect, "{hex}"),
            other => panic!("{hex} gave {other:?}"),
        }
    }
    assert_eq!(decode("CC 000000000000F07F"), Err(IngestError::Number { offset: 4 }));
    assert!(Draft::parse_binary(b"").is_err() && Draft::parse_binary(b"{}").is_err());
}

#[test]
fn duplicates_and_system_properties_follow_the_same_rules() {
    let bytes = unhex("80 EA0F 8161 01 25 01 8162 02 8161 03 27 E9 27 05");
    assert_eq!(Draft::parse_binary(&bytes).unwrap().root().raw(), r#"{"a":3,"b":2}"#);
    let nested = unhex("80 E9 8161 E9 27 05");
    assert_eq!(Draft::parse_binary(&nested).unwrap().root().raw(), r#"{"a":{"_ts":5}}"#);
}

/// A small buffer that refers to one long string very often.
#[test]
fn expansion_is_limited() {
    let long = 60_000usize;
    let mut elements = vec![0xc1];
    elements.extend((long as u16).to_le_bytes());
    elements.extend(std::iter::repeat_n(b'x', long));
    let first = 4 + 5;
    let with_references = |count: usize| {
        let mut elements = elements.clone();
        (0..count).for_each(|_| elements.extend([0xc3, first]));
        let mut bytes = vec![0x80, 0xe9, 0x81, b'a', 0xe4];
        bytes.extend((elements.len() as u32).to_le_bytes());
        bytes.extend(elements);
        Draft::parse_binary(&bytes)
    };
    assert!(with_references(30).is_ok());
    assert!(matches!(with_references(40), Err(IngestError::TooLarge { .. })));
    assert!(matches!(with_references(1_000_000), Err(IngestError::TooLarge { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn what_an_encoder_writes_reads_back(object in any_object(), seed in any::<u64>()) {
        let mut object = object;
        let mut encoder = Encoder { bytes: vec![0x80], choice: seed };
        encoder.value(&Json::Object(object.clone()));
        item::SYSTEM_PROPERTIES.iter().for_each(|name| drop(object.shift_remove(*name)));
        let draft = Draft::parse_binary(&encoder.bytes).unwrap();
        assert_reads_as(draft.root(), &Json::Object(object));
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let object = [&[0x80, 0xe9, 0x81, b'a'][..], &bytes].concat();
        if let Ok(draft) = Draft::parse_binary(&object) {
            let again = Draft::parse(draft.root().raw().as_bytes()).unwrap();
            prop_assert_eq!(again.root().raw(), draft.root().raw());
        }
    }

    #[test]
    fn a_damaged_buffer_is_read_or_refused(
        object in any_object(),
        seed in any::<u64>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut encoder = Encoder { bytes: vec![0x80], choice: seed };
        encoder.value(&Json::Object(object));
        for (at, byte) in damage {
            let at = at.index(encoder.bytes.len());
            encoder.bytes[at] = byte;
        }
        if let Ok(draft) = Draft::parse_binary(&encoder.bytes) {
            let again = Draft::parse(draft.root().raw().as_bytes()).unwrap();
            prop_assert_eq!(again.root().raw(), draft.root().raw());
        }
    }
}

/// Writes binary JSON, choosing among the forms a value has by turns.
struct Encoder {
    bytes: Vec<u8>,
    choice: u64,
}

impl Encoder {
    fn choose(&mut self, forms: u64) -> u64 {
        self.choice =
            self.choice.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.choice >> 33) % forms
    }

    fn value(&mut self, json: &Json) {
        match json {
            Json::Null => self.bytes.push(0xd0),
            Json::Bool(value) => self.bytes.push(0xd1 + u8::from(*value)),
            Json::Number(number) => self.number(number.as_f64().unwrap()),
            Json::String(text) => self.string(text),
            Json::Array(elements) => {
                self.container(0xe0, elements.len(), |own| {
                    elements.iter().for_each(|json| own.value(json))
                });
            }
            Json::Object(object) => self.container(0xe8, object.len(), |own| {
                object.iter().for_each(|(name, json)| {
                    own.string(name);
                    own.value(json);
                });
            }),
        }
    }

    fn number(&mut self, number: f64) {
        let integer = number as i64;
        if integer as f64 != number || self.choose(3) == 0 {
            self.bytes.push(0xcc);
            self.bytes.extend(number.to_le_bytes());
        } else if (0..32).contains(&integer) {
            self.bytes.push(integer as u8);
        } else if let Ok(small) = i16::try_from(integer) {
            self.bytes.push(0xc9);
            self.bytes.extend(small.to_le_bytes());
        } else if let Ok(medium) = i32::try_from(integer) {
            self.bytes.push(0xca);
            self.bytes.extend(medium.to_le_bytes());
        } else {
            self.bytes.push(0xcb);
            self.bytes.extend(integer.to_le_bytes());
        }
    }

    fn string(&mut self, text: &str) {
        let length = text.len();
        match self.choose(4) {
            0 if text == "_rid" => return self.bytes.push(0x25),
            0 | 1 if length < 64 => self.bytes.push(0x80 + length as u8),
            2 if length < 256 => self.bytes.extend([0xc0, length as u8]),
            _ => {
                self.bytes.push(0xc1);
                self.bytes.extend((length as u16).to_le_bytes());
            }
        }
        self.bytes.extend(text.as_bytes());
    }

    /// `base` is the marker of the empty container; the other forms follow it.
    fn container(&mut self, base: u8, count: usize, children: impl FnOnce(&mut Encoder)) {
        let mut inner = Encoder { bytes: Vec::new(), choice: self.choice };
        children(&mut inner);
        self.choice = inner.choice;
        let is_counted = self.choose(2) == 1;
        let length = inner.bytes.len();
        let width = if length < 256 { 0 } else { 1 + self.choose(2) as u8 };
        match count {
            0 => self.bytes.push(base),
            1 if is_counted => self.bytes.push(base + 1),
            _ => {
                self.bytes.push(base + 2 + width + if is_counted { 3 } else { 0 });
                self.size(length, width);
                if is_counted {
                    self.size(count, width);
                }
            }
        }
        self.bytes.extend(inner.bytes);
    }

    fn size(&mut self, size: usize, width: u8) {
        self.bytes.extend(&(size as u32).to_le_bytes()[..1 << width]);
    }
}
