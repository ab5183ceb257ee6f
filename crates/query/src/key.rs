//! Values as bytes that are equal exactly for equal values, and order like them.
//!
//! ```text
//! undefined 01   null 02   false 03   true 04
//! number    05 {binary64, big-endian, sign folded}
//! string    06 {UTF-8, 00 written as 00 FF} 00 01
//! array     07 {element}… 00
//! object    08 {name as string}{value}… 00               in the order of their names
//! ```
//!
//! No key is a prefix of another, so keys can follow one another, and inverting all bytes of one
//! reverses its order. DISTINCT and GROUP BY compare these bytes, sorts order by them, and
//! continuations carry them.

use item::{Kind, Node, Value};

use crate::datum::Datum;

mod tag {
    pub const END: u8 = 0x00;
    pub const UNDEFINED: u8 = 0x01;
    pub const NULL: u8 = 0x02;
    pub const FALSE: u8 = 0x03;
    pub const TRUE: u8 = 0x04;
    pub const NUMBER: u8 = 0x05;
    pub const STRING: u8 = 0x06;
    pub const ARRAY: u8 = 0x07;
    pub const OBJECT: u8 = 0x08;
}

/// The key of a value.
pub(crate) fn canonical(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    write_value(value, &mut out);
    out
}

/// Appends the key of a value, wherever it lives.
pub(crate) fn write(datum: &Datum<'_>, out: &mut Vec<u8>) {
    match datum {
        Datum::Node(node) => write_node(*node, out),
        Datum::Value(value) => write_value(value, out),
    }
}

/// Appends the key of what the terms of a path know of a value: of arrays and objects the type.
pub(crate) fn write_kind_or_scalar(node: Option<Node<'_>>, out: &mut Vec<u8>) {
    match node.map(|node| (node, node.kind())) {
        Some((_, Kind::Array)) => out.extend_from_slice(&[tag::ARRAY, tag::END]),
        Some((_, Kind::Object)) => out.extend_from_slice(&[tag::OBJECT, tag::END]),
        Some((node, _)) => write_node(node, out),
        None => out.push(tag::UNDEFINED),
    }
}

fn write_node(node: Node<'_>, out: &mut Vec<u8>) {
    match node.kind() {
        Kind::Null => out.push(tag::NULL),
        Kind::Bool => out.push(bool_tag(node.as_bool().unwrap_or_default())),
        Kind::Number => write_number(node.as_f64().unwrap_or_default(), out),
        Kind::String => write_string(&node.as_str().unwrap_or_default(), out),
        Kind::Array => {
            out.push(tag::ARRAY);
            node.elements().for_each(|element| write_node(element, out));
            out.push(tag::END);
        }
        Kind::Object => write_value(&node.to_value(), out),
    }
}

/// Appends the key of a value.
pub(crate) fn write_value(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Undefined => out.push(tag::UNDEFINED),
        Value::Null => out.push(tag::NULL),
        Value::Bool(bool) => out.push(bool_tag(*bool)),
        Value::Number(number) => write_number(*number, out),
        Value::String(text) => write_string(text, out),
        Value::Array(elements) => {
            out.push(tag::ARRAY);
            elements.iter().for_each(|element| write_value(element, out));
            out.push(tag::END);
        }
        Value::Object(object) => {
            out.push(tag::OBJECT);
            let mut members: Vec<_> = object.iter().collect();
            members.sort_by_key(|(name, _)| *name);
            for (name, value) in members {
                write_string(name, out);
                write_value(value, out);
            }
            out.push(tag::END);
        }
    }
}

fn bool_tag(bool: bool) -> u8 {
    if bool { tag::TRUE } else { tag::FALSE }
}

fn write_number(number: f64, out: &mut Vec<u8>) {
    // −0 is 0.
    let bits = (number + 0.0).to_bits();
    let sign = 1 << 63;
    let ordered = if bits & sign == 0 { bits | sign } else { !bits };
    out.push(tag::NUMBER);
    out.extend_from_slice(&ordered.to_be_bytes());
}

fn write_string(text: &str, out: &mut Vec<u8>) {
    out.push(tag::STRING);
    let mut rest = text.as_bytes();
    while let Some(at) = rest.iter().position(|byte| *byte == 0) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(&[0x00, 0xFF]);
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
    out.extend_from_slice(&[0x00, 0x01]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_order_like_values() {
        let ascending = [
            "null",
            "false",
            "true",
            "-1e300",
            "-1",
            "0",
            "0.5",
            "2",
            "10",
            r#""""#,
            r#""\u0000""#,
            r#""a""#,
            r#""a\u0000""#,
            r#""ab""#,
            r#""b""#,
            "[]",
            "[1]",
            "[1,2]",
            "[2]",
            "{}",
            r#"{"a":1}"#,
        ];
        let keys = ascending.map(|text| canonical(&Value::parse(text.as_bytes()).unwrap()));
        assert!(keys.is_sorted_by(|a, b| a < b));
        assert!(canonical(&Value::Undefined) < keys[0]);
    }

    #[test]
    fn equal_values_have_equal_keys() {
        let of = |text: &str| canonical(&Value::parse(text.as_bytes()).unwrap());
        assert_eq!(of(r#"{"a":1,"b":[2]}"#), of(r#"{"b":[2.0],"a":1e0}"#));
        assert_eq!(of("-0.0"), of("0"));
        assert_ne!(of(r#"{"a":1}"#), of(r#"{"b":1}"#));
    }
}
