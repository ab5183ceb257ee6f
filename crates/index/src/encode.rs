//! Scalars as bytes that order like scalars.
//!
//! ```text
//! undefined 01   null 02   false 03   true 04
//! number    05 {binary64, big-endian, sign folded}
//! string    06 {UTF-8, 00 written as 00 FF} 00 01
//!           06 {the first bytes of a long one} 00 02
//! array     07   object 08                               the type is all there is
//! ```
//!
//! A shorter string sorts before its extensions because its end, 00 01 or 00 02, sorts before any
//! byte that could follow, even an escaped zero. A cut string sorts right after the string that is
//! exactly its beginning. Strings are cut at a fixed number of bytes, also inside a character: a
//! cut that moved to a character boundary would put "…é" and "…€" in the wrong order.
//!
//! INVARIANTS
//! (S1) No encoding is a prefix of another, so encodings can follow one another, and inverting
//!      all bytes of one reverses its order.

use std::borrow::Cow;

use item::{Kind, Node};

/// Bytes of a string that a term keeps. Long enough for names and links, short enough that any
/// encoding, at most 387 bytes, fits the position of a continuation.
pub const STRING_BYTES_MAX: usize = 192;

/// First byte of an encoding. The order of types is the order of tags.
pub(crate) mod tag {
    pub const UNDEFINED: u8 = 0x01;
    pub const NULL: u8 = 0x02;
    pub const FALSE: u8 = 0x03;
    pub const TRUE: u8 = 0x04;
    pub const NUMBER: u8 = 0x05;
    pub const STRING: u8 = 0x06;
    pub const ARRAY: u8 = 0x07;
    pub const OBJECT: u8 = 0x08;
}

const ESCAPED_ZERO: [u8; 2] = [0x00, 0xFF];
const END: [u8; 2] = [0x00, 0x01];
const CUT: [u8; 2] = [0x00, 0x02];

/// A value as far as the index knows values.
#[derive(Debug, Clone, PartialEq)]
pub enum Scalar<'a> {
    /// The path is missing.
    Undefined,
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// binary64; −0 is 0.
    Number(f64),
    /// UTF-8 text.
    String(Cow<'a, str>),
    /// Any array.
    Array,
    /// Any object.
    Object,
}

impl<'a> Scalar<'a> {
    /// What the index knows of a place in an item.
    pub fn of(node: Option<Node<'a>>) -> Self {
        let Some(node) = node else { return Scalar::Undefined };
        match node.kind() {
            Kind::Null => Scalar::Null,
            Kind::Bool => Scalar::Bool(node.as_bool().unwrap_or_default()),
            Kind::Number => Scalar::Number(node.as_f64().unwrap_or_default()),
            Kind::String => Scalar::String(node.as_str().unwrap_or_default()),
            Kind::Array => Scalar::Array,
            Kind::Object => Scalar::Object,
        }
    }

    /// A string.
    pub fn string(text: &'a str) -> Self {
        Scalar::String(Cow::Borrowed(text))
    }

    pub(crate) fn tag(&self) -> u8 {
        match self {
            Scalar::Undefined => tag::UNDEFINED,
            Scalar::Null => tag::NULL,
            Scalar::Bool(false) => tag::FALSE,
            Scalar::Bool(true) => tag::TRUE,
            Scalar::Number(_) => tag::NUMBER,
            Scalar::String(_) => tag::STRING,
            Scalar::Array => tag::ARRAY,
            Scalar::Object => tag::OBJECT,
        }
    }

    /// Whether an encoding with this limit for strings keeps all of it. Arrays and objects are
    /// never kept.
    pub fn is_exact(&self, string_bytes_max: usize) -> bool {
        match self {
            Scalar::String(text) => text.len() <= string_bytes_max,
            Scalar::Array | Scalar::Object => false,
            Scalar::Undefined | Scalar::Null | Scalar::Bool(_) | Scalar::Number(_) => true,
        }
    }
}

/// A value read back from a term.
#[derive(Debug, Clone, PartialEq)]
pub struct Decoded {
    /// The value; of a cut string the whole characters that are left.
    pub scalar: Scalar<'static>,
    /// Whether the value is all there was.
    pub exact: bool,
}

/// Appends the encoding of a value with the usual limit for strings.
pub fn write(scalar: &Scalar<'_>, out: &mut Vec<u8>) {
    write_limited(scalar, STRING_BYTES_MAX, out);
}

/// Appends the encoding of a value, strings cut at a limit of the caller's.
pub fn write_limited(scalar: &Scalar<'_>, string_bytes_max: usize, out: &mut Vec<u8>) {
    match scalar {
        Scalar::Number(number) => write_number(*number, out),
        Scalar::String(text) => write_string(text, string_bytes_max, out),
        Scalar::Undefined | Scalar::Null | Scalar::Bool(_) | Scalar::Array | Scalar::Object => {
            out.push(scalar.tag())
        }
    }
}

/// Appends the encoding of a number.
pub fn write_number(number: f64, out: &mut Vec<u8>) {
    out.push(tag::NUMBER);
    out.extend_from_slice(&ordered_bits(number).to_be_bytes());
}

/// Appends the encoding of a string.
pub fn write_string(text: &str, bytes_max: usize, out: &mut Vec<u8>) {
    out.push(tag::STRING);
    let is_cut = text.len() > bytes_max;
    write_escaped(&text.as_bytes()[..text.len().min(bytes_max)], out);
    out.extend_from_slice(if is_cut { &CUT } else { &END });
}

/// Appends bytes with zeros escaped.
pub(crate) fn write_escaped(bytes: &[u8], out: &mut Vec<u8>) {
    if !bytes.contains(&0) {
        return out.extend_from_slice(bytes);
    }
    for &byte in bytes {
        match byte {
            0 => out.extend_from_slice(&ESCAPED_ZERO),
            _ => out.push(byte),
        }
    }
}

/// Bits that order like the numbers they stand for; −0 and 0 have the same.
pub(crate) fn ordered_bits(number: f64) -> u64 {
    let bits = (number + 0.0).to_bits(); // −0 + 0 is 0
    let all_if_negative = ((bits as i64) >> 63) as u64;
    bits ^ (all_if_negative | 1 << 63)
}

fn number_of(ordered: u64) -> f64 {
    let all_if_negative = !(((ordered as i64) >> 63) as u64);
    f64::from_bits(ordered ^ (all_if_negative | 1 << 63))
}

/// Reads a value from the front of `bytes`; also says how many bytes it took. `None` if the bytes
/// are not an encoding.
pub fn decode(bytes: &[u8]) -> Option<(Decoded, usize)> {
    let exact = |scalar, length| Some((Decoded { scalar, exact: true }, length));
    let (&first, rest) = bytes.split_first()?;
    match first {
        tag::UNDEFINED => exact(Scalar::Undefined, 1),
        tag::NULL => exact(Scalar::Null, 1),
        tag::FALSE => exact(Scalar::Bool(false), 1),
        tag::TRUE => exact(Scalar::Bool(true), 1),
        tag::NUMBER => {
            let bits = u64::from_be_bytes(*rest.first_chunk()?);
            exact(Scalar::Number(number_of(bits)), 9)
        }
        tag::STRING => decode_string(rest),
        tag::ARRAY => Some((Decoded { scalar: Scalar::Array, exact: false }, 1)),
        tag::OBJECT => Some((Decoded { scalar: Scalar::Object, exact: false }, 1)),
        _ => None,
    }
}

fn decode_string(bytes: &[u8]) -> Option<(Decoded, usize)> {
    let (text, end, used) = read_escaped(bytes)?;
    let exact = match end {
        0x01 => true,
        0x02 => false,
        _ => return None,
    };
    let text = match (String::from_utf8(text), exact) {
        (Ok(text), _) => text,
        (Err(_), true) => return None,
        (Err(error), false) => {
            let whole = error.utf8_error().valid_up_to();
            String::from_utf8(error.into_bytes()[..whole].to_vec()).ok()?
        }
    };
    Some((Decoded { scalar: Scalar::String(text.into()), exact }, used + 1))
}

/// How many bytes the encoding at the front takes, and whether it holds the whole value, read
/// without making the value. All bytes are inverted if `inverted` is FF, and are as they are if it
/// is 00.
pub(crate) fn extent(bytes: &[u8], inverted: u8) -> Option<(usize, bool)> {
    match bytes.first()? ^ inverted {
        tag::NUMBER => Some((9, true)),
        tag::STRING => {
            let mut at = 1;
            loop {
                at += memchr::memchr(inverted, bytes.get(at..)?)?;
                match bytes.get(at + 1)? ^ inverted {
                    0x01 => return Some((at + 2, true)),
                    0x02 => return Some((at + 2, false)),
                    _ => at += 2,
                }
            }
        }
        tag::ARRAY | tag::OBJECT => Some((1, false)),
        _ => Some((1, true)),
    }
}

/// Where an encoding ends that does not hold its whole value; `None` if it does.
pub fn cut(bytes: &[u8]) -> Option<usize> {
    extent(bytes, 0).and_then(|(length, is_exact)| (!is_exact).then_some(length))
}

/// Reads escaped bytes up to a zero that is none: the bytes, what follows the zero, the length.
pub(crate) fn read_escaped(bytes: &[u8]) -> Option<(Vec<u8>, u8, usize)> {
    let mut text = Vec::new();
    let mut at = 0;
    loop {
        let zero = at + memchr::memchr(0, bytes.get(at..)?)?;
        text.extend_from_slice(&bytes[at..zero]);
        at = zero + 2;
        match *bytes.get(zero + 1)? {
            0xFF => text.push(0),
            end => return Some((text, end, at)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(scalar: &Scalar<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        write(scalar, &mut out);
        out
    }

    #[test]
    fn encodings_are_as_drawn() {
        let check = |scalar: Scalar<'_>, expect: &[u8]| assert_eq!(bytes(&scalar), expect);
        check(Scalar::Undefined, &[1]);
        check(Scalar::Null, &[2]);
        check(Scalar::Bool(false), &[3]);
        check(Scalar::Bool(true), &[4]);
        check(Scalar::Number(1.0), &[5, 0xBF, 0xF0, 0, 0, 0, 0, 0, 0]);
        check(Scalar::Number(-1.0), &[5, 0x40, 0x0F, 255, 255, 255, 255, 255, 255]);
        check(Scalar::Number(-0.0), &[5, 0x80, 0, 0, 0, 0, 0, 0, 0]);
        check(Scalar::string("a\0b"), &[6, b'a', 0, 0xFF, b'b', 0, 1]);
        check(Scalar::Array, &[7]);
        check(Scalar::Object, &[8]);
    }

    #[test]
    fn strings_are_cut_at_the_limit() {
        let max = STRING_BYTES_MAX;
        for (length, exact) in [(max - 1, true), (max, true), (max + 1, false)] {
            let text = "x".repeat(length);
            let encoded = bytes(&Scalar::string(&text));
            let (decoded, used) = decode(&encoded).unwrap();
            assert_eq!((decoded.exact, used), (exact, encoded.len()), "{length}");
            let kept = Scalar::String(text[..length.min(max)].to_owned().into());
            assert_eq!(decoded.scalar, kept);
        }
        let split = format!("{}é", "x".repeat(max - 1));
        let (decoded, _) = decode(&bytes(&Scalar::string(&split))).unwrap();
        assert_eq!(decoded.scalar, Scalar::String("x".repeat(max - 1).into()));
    }

    #[test]
    fn a_cut_inside_a_character_keeps_the_order() {
        let start = "x".repeat(STRING_BYTES_MAX - 2);
        let texts = ["é", "é2", "€", "€2", "😀", "😀2"].map(|end| format!("{start}{end}"));
        let encoded = texts.map(|text| bytes(&Scalar::string(&text)));
        assert!(encoded.is_sorted());
    }

    #[test]
    fn damaged_bytes_are_no_values() {
        for damaged in [
            &[][..],
            &[0],
            &[9],
            &[5, 1, 2],
            &[6, b'a'],
            &[6, b'a', 0],
            &[6, 0, 3],
            &[6, 0x80, 0, 1],
        ] {
            assert_eq!(decode(damaged), None, "{damaged:?}");
        }
    }
}
