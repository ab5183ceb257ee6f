//! The many ways binary JSON writes a string.

use std::borrow::Cow;

use super::markers::*;
use super::reader::{Reader, Width};
use crate::error::IngestError;

const HEX_LOWER_DIGITS: &[u8; 16] = b"0123456789abcdef";
const HEX_UPPER_DIGITS: &[u8; 16] = b"0123456789ABCDEF";
const DATE_TIME_CHARS: &[u8; 16] = b" 0123456789:-.TZ";
const BASE64_CHARS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const BASE64_URL_CHARS: &[u8; 64] =
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// How many characters base64 ends with to fill its last group of four. A byte above two is the
/// complement of the number, and says that they were left away.
const PADDING_MAX: u8 = 2;

/// Reads a string in any form, its marker included.
pub(super) fn read<'a>(input: &mut Reader<'a>) -> Result<Cow<'a, str>, IngestError> {
    let offset = input.at();
    let width = match input.peek()? {
        REFERENCE_1 => Width::One,
        REFERENCE_2 => Width::Two,
        REFERENCE_3 => Width::Three,
        REFERENCE_4 => Width::Four,
        _ => return read_direct(input),
    };
    input.skip_marker();
    let target = input.length(width)?;
    let mut there = input.from(target);
    let is_sound = target < offset && !matches!(there.peek(), Ok(REFERENCE_1..=REFERENCE_4));
    if !is_sound {
        return Err(IngestError::syntax(offset, "a reference must go back to a string"));
    }
    read_direct(&mut there)
}

/// Reads what has a type of its own here and is a string in JSON.
pub(super) fn read_typed<'a>(
    input: &mut Reader<'a>,
    marker: u8,
) -> Result<Cow<'a, str>, IngestError> {
    let width = match marker {
        BINARY_1 => Width::One,
        BINARY_2 => Width::Two,
        BINARY_4 => Width::Four,
        _ => return guid_value(input),
    };
    let length = input.length(width)?;
    let bytes = input.slice(length)?;
    ascii(input, base64(bytes, BASE64_CHARS, true))
}

fn read_direct<'a>(input: &mut Reader<'a>) -> Result<Cow<'a, str>, IngestError> {
    let marker = input.peek()?;
    input.skip_marker();
    match marker {
        SYSTEM_MIN..=SYSTEM_MAX => {
            Ok(Cow::Borrowed(SYSTEM_STRINGS[usize::from(marker - SYSTEM_MIN)]))
        }
        SHORT_MIN..=SHORT_MAX => utf8(input, usize::from(marker - SHORT_MIN)),
        STRING_1 => input.length(Width::One).and_then(|length| utf8(input, length)),
        STRING_2 => input.length(Width::Two).and_then(|length| utf8(input, length)),
        STRING_4 => input.length(Width::Four).and_then(|length| utf8(input, length)),
        GUID_LOWER | GUID_UPPER | GUID_QUOTED => guid_text(input, marker),
        HEX_LOWER => digits(input, HEX_LOWER_DIGITS),
        HEX_UPPER => digits(input, HEX_UPPER_DIGITS),
        DATE_TIME => digits(input, DATE_TIME_CHARS),
        PACKED_4 => packed(input, 4, Width::One),
        PACKED_5 => packed(input, 5, Width::One),
        PACKED_6 => packed(input, 6, Width::One),
        PACKED_7_1 => packed(input, 7, Width::One),
        PACKED_7_2 => packed(input, 7, Width::Two),
        BASE64_1 => base64_text(input, BASE64_CHARS, Width::One),
        BASE64_2 => base64_text(input, BASE64_CHARS, Width::Two),
        BASE64_URL_1 => base64_text(input, BASE64_URL_CHARS, Width::One),
        BASE64_URL_2 => base64_text(input, BASE64_URL_CHARS, Width::Two),
        _ => Err(IngestError::syntax(input.at() - 1, "not the marker of a string")),
    }
}

fn utf8<'a>(input: &mut Reader<'a>, length: usize) -> Result<Cow<'a, str>, IngestError> {
    let offset = input.at();
    let text = std::str::from_utf8(input.slice(length)?);
    text.map(Cow::Borrowed).map_err(|_| IngestError::syntax(offset, "invalid UTF-8"))
}

/// Sixteen bytes, low nibble first, with dashes between them.
fn guid_text<'a>(input: &mut Reader<'a>, marker: u8) -> Result<Cow<'a, str>, IngestError> {
    let bytes: [u8; 16] = input.array()?;
    let chars = if marker == GUID_UPPER { HEX_UPPER_DIGITS } else { HEX_LOWER_DIGITS };
    let text = guid(bytes.map(|byte| byte.rotate_left(4)), chars);
    let quoted = marker == GUID_QUOTED;
    ascii(input, if quoted { [b"\"", &text[..], b"\""].concat() } else { text })
}

/// Sixteen bytes, the first three fields little-endian.
fn guid_value<'a>(input: &mut Reader<'a>) -> Result<Cow<'a, str>, IngestError> {
    let mut bytes: [u8; 16] = input.array()?;
    bytes[..4].reverse();
    bytes[4..6].reverse();
    bytes[6..8].reverse();
    ascii(input, guid(bytes, HEX_LOWER_DIGITS))
}

fn guid(bytes: [u8; 16], digits: &[u8; 16]) -> Vec<u8> {
    let mut out = Vec::with_capacity(36);
    for (byte, at) in bytes.into_iter().zip(0..) {
        if matches!(at, 4 | 6 | 8 | 10) {
            out.push(b'-');
        }
        out.push(digits[usize::from(byte >> 4)]);
        out.push(digits[usize::from(byte & 15)]);
    }
    out
}

/// Characters of an alphabet of sixteen: count, then nibbles, low first.
fn digits<'a>(input: &mut Reader<'a>, chars: &[u8; 16]) -> Result<Cow<'a, str>, IngestError> {
    let count = input.length(Width::One)?;
    let bytes = input.slice(count.div_ceil(2))?;
    let text = unpack(bytes, 4, count).map(|value| chars[usize::from(value)]).collect();
    ascii(input, text)
}

/// Characters as distances from a base character: count, base, then packed bits.
fn packed<'a>(
    input: &mut Reader<'a>,
    bits: usize,
    width: Width,
) -> Result<Cow<'a, str>, IngestError> {
    let count = input.length(width)?;
    let base = if bits < 7 { input.u8()? } else { 0 };
    let bytes = input.slice((count * bits).div_ceil(8))?;
    let text = unpack(bytes, bits, count).map(|value| base.saturating_add(value)).collect();
    ascii(input, text)
}

/// `count` values of `bits` bits each, the lowest bits of the first byte first.
fn unpack(bytes: &[u8], bits: usize, count: usize) -> impl Iterator<Item = u8> {
    (0..count).map(move |index| {
        let (byte, shift) = (index * bits / 8, index * bits % 8);
        let low = u16::from(bytes[byte]);
        let high = bytes.get(byte + 1).map_or(0, |&byte| u16::from(byte));
        ((high << 8 | low) >> shift) as u8 & ((1 << bits) - 1)
    })
}

/// Base64 text stored decoded: groups of four characters, padding, bytes.
fn base64_text<'a>(
    input: &mut Reader<'a>,
    chars: &[u8; 64],
    width: Width,
) -> Result<Cow<'a, str>, IngestError> {
    let groups = input.length(width)?;
    let given = input.u8()?;
    let has_padding = given <= PADDING_MAX;
    let padding = if has_padding { given } else { !given };
    let length = (groups * 3).checked_sub(usize::from(padding));
    let length = length.filter(|_| padding <= PADDING_MAX);
    let length = length.ok_or(input.refuse("base64 text with an impossible padding"))?;
    let bytes = input.slice(length)?;
    ascii(input, base64(bytes, chars, has_padding))
}

fn base64(bytes: &[u8], chars: &[u8; 64], has_padding: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |at: usize| group.get(at).map_or(0, |&byte| u32::from(byte));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        let count = group.len() + 1;
        out.extend((0..count).map(|at| chars[(bits >> (18 - 6 * at) & 63) as usize]));
        if has_padding {
            out.extend((count..4).map(|_| b'='));
        }
    }
    out
}

fn ascii<'a>(input: &Reader<'a>, text: Vec<u8>) -> Result<Cow<'a, str>, IngestError> {
    let text = if text.is_ascii() { String::from_utf8(text).ok() } else { None };
    text.map(Cow::Owned).ok_or(input.refuse("a packed string that is not ASCII"))
}
