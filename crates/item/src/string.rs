//! String text: the canonical escapes, writing them and taking them off again.
//!
//! Canonical means minimal: `"` `\` and control characters are escaped, nothing else. Control
//! characters take their short form where JSON has one and `\u00xx` in lower case otherwise, as
//! JavaScript prints them. Every string therefore has exactly one canonical text, and comparing
//! texts is comparing strings.

use std::borrow::Cow;

const LOW: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;
const HEX: &[u8; 16] = b"0123456789abcdef";

/// Appends `text` as a JSON string with its quotes and says whether anything was escaped.
pub(crate) fn write_string(out: &mut Vec<u8>, text: &str) -> bool {
    out.push(b'"');
    let escaped = write_inside(out, text);
    out.push(b'"');
    escaped
}

/// Appends what stands between the quotes of `text` as a JSON string.
pub(crate) fn write_inside(out: &mut Vec<u8>, text: &str) -> bool {
    let bytes = text.as_bytes();
    let (mut from, mut escaped) = (0, false);
    loop {
        let to = plain_run(bytes, from);
        out.extend_from_slice(&bytes[from..to]);
        let Some(&byte) = bytes.get(to) else { break };
        write_escape(out, byte);
        (from, escaped) = (to + 1, true);
    }
    escaped
}

/// Appends one character of a string, escaped if it has to be; says whether it was.
pub(crate) fn write_char(out: &mut Vec<u8>, char: char) -> bool {
    let needs_escape = char < ' ' || char == '"' || char == '\\';
    if needs_escape {
        write_escape(out, char as u8);
    } else {
        out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
    }
    needs_escape
}

/// Where the run of bytes that stand for themselves ends: at `"`, `\`, a control character or the
/// end of `bytes`. Eight bytes at a time; a borrow can only mark a byte above a true hit.
#[inline]
pub(crate) fn plain_run(bytes: &[u8], mut at: usize) -> usize {
    while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*chunk);
        let hits = below_space(word) | equal(word, b'"') | equal(word, b'\\');
        if hits != 0 {
            return at + (hits.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while bytes.get(at).is_some_and(|&byte| byte >= b' ' && byte != b'"' && byte != b'\\') {
        at += 1;
    }
    at
}

/// Takes the escapes off the inside of a canonical string. `None` if the bytes are damaged.
pub(crate) fn unescape(inside: &[u8]) -> Option<String> {
    let mut out = Vec::with_capacity(inside.len());
    let mut rest = inside;
    while let Some(at) = rest.iter().position(|&byte| byte == b'\\') {
        out.extend_from_slice(&rest[..at]);
        let (char, length) = escaped_char(&rest[at..])?;
        out.push(char);
        rest = &rest[at + length..];
    }
    out.extend_from_slice(rest);
    String::from_utf8(out).ok()
}

/// Borrows the inside of a canonical string, or takes its escapes off if it has some.
pub(crate) fn decode(inside: &[u8], escaped: bool) -> Option<Cow<'_, str>> {
    if escaped {
        unescape(inside).map(Cow::Owned)
    } else {
        std::str::from_utf8(inside).ok().map(Cow::Borrowed)
    }
}

/// The character of the canonical escape `bytes` begin with, and the length of that escape.
/// Canonical `\u` escapes stand for control characters only, hence one byte.
fn escaped_char(bytes: &[u8]) -> Option<(u8, usize)> {
    let char = match bytes.get(1)? {
        b'b' => 8,
        b't' => b'\t',
        b'n' => b'\n',
        b'f' => 12,
        b'r' => b'\r',
        b'u' => {
            let digits = std::str::from_utf8(bytes.get(4..6)?).ok()?;
            let char = u8::from_str_radix(digits, 16).ok()?;
            return Some((char, 6));
        }
        other => *other,
    };
    Some((char, 2))
}

fn write_escape(out: &mut Vec<u8>, byte: u8) {
    let short = match byte {
        b'"' => b'"',
        b'\\' => b'\\',
        8 => b'b',
        b'\t' => b't',
        b'\n' => b'n',
        12 => b'f',
        b'\r' => b'r',
        _ => {
            out.extend_from_slice(b"\\u00");
            out.push(HEX[usize::from(byte >> 4)]);
            out.push(HEX[usize::from(byte & 15)]);
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

fn below_space(word: u64) -> u64 {
    word.wrapping_sub(LOW * u64::from(b' ')) & !word & HIGH
}

fn equal(word: u64, byte: u8) -> u64 {
    let difference = word ^ (LOW * u64::from(byte));
    difference.wrapping_sub(LOW) & !difference & HIGH
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: &str) {
        let mut out = Vec::new();
        let escaped = write_string(&mut out, text);
        assert_eq!(String::from_utf8(out.clone()).unwrap(), expect);
        assert_eq!(escaped, expect.contains('\\'));
        let inside = &out[1..out.len() - 1];
        assert_eq!(decode(inside, escaped).unwrap(), text);
    }

    #[test]
    fn escapes_are_minimal() {
        check("", r#""""#);
        check("plain / é 😀 \u{7f}\u{2028}", "\"plain / é 😀 \u{7f}\u{2028}\"");
        check("a\"b\\c", r#""a\"b\\c""#);
        check("\u{8}\t\n\u{c}\r", r#""\b\t\n\f\r""#);
        check("\0\u{1f}", r#""\u0000\u001f""#);
        check(
            "\u{1b}long enough for several words of eight bytes\n",
            "\"\\u001blong enough for several words of eight bytes\\n\"",
        );
    }

    #[test]
    fn every_byte_ends_a_run_or_not_at_every_offset() {
        for offset in 0..20 {
            for byte in 0..=255u8 {
                let mut bytes = vec![b'x'; 24];
                bytes[offset] = byte;
                let special = byte < b' ' || byte == b'"' || byte == b'\\';
                let expect = if special { offset } else { 24 };
                assert_eq!(plain_run(&bytes, 0), expect, "byte {byte} at {offset}");
            }
        }
    }

    #[test]
    fn damaged_escapes_are_none() {
        for bytes in [&b"\\"[..], b"\\u00", b"\\u00zz", b"\xff\\n"] {
            assert_eq!(unescape(bytes), None);
        }
    }
}
