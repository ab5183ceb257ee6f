//! Percent-encoding, without form rules: `+` is a plus sign.

use std::borrow::Cow;
use std::fmt::{self, Write};

/// Decodes `%XX`. A `%` without two hex digits behind it stands for itself, as URL parsers have it.
pub fn decode(text: &[u8]) -> Cow<'_, [u8]> {
    let is_escape = |&byte: &u8| byte == b'%';
    let Some(mut at) = text.iter().position(is_escape) else { return Cow::Borrowed(text) };
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    loop {
        out.extend_from_slice(&rest[..at]);
        let (byte, taken) = escaped(&rest[at..]).map_or((b'%', 1), |byte| (byte, 3));
        out.push(byte);
        rest = &rest[at + taken..];
        match rest.iter().position(is_escape) {
            Some(next) => at = next,
            None => break,
        }
    }
    out.extend_from_slice(rest);
    Cow::Owned(out)
}

fn escaped(text: &[u8]) -> Option<u8> {
    let &[b'%', high, low, ..] = text else { return None };
    let digit = |byte: u8| (byte as char).to_digit(16);
    Some((digit(high)? << 4 | digit(low)?) as u8)
}

/// A text in which everything that may not stand in a header is escaped. `%` stays: clients compare
/// the header with names they know, and do not decode it.
pub struct HeaderSafe<'a>(pub &'a str);

impl fmt::Display for HeaderSafe<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        escape(f, self.0, |byte| (0x20..0x7f).contains(&byte))
    }
}

/// A text escaped as `encodeURIComponent` does it.
pub struct Component<'a>(pub &'a str);

impl fmt::Display for Component<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        escape(f, self.0, |byte| byte.is_ascii_alphanumeric() || b"-_.!~*'()".contains(&byte))
    }
}

fn escape(f: &mut fmt::Formatter<'_>, text: &str, stays: impl Fn(u8) -> bool) -> fmt::Result {
    if text.bytes().all(&stays) {
        return f.write_str(text);
    }
    for byte in text.bytes() {
        match stays(byte) {
            true => f.write_char(byte as char)?,
            false => write!(f, "%{byte:02X}")?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoding() {
        let cases = [
            ("plain", "plain"),
            ("x%20y%25%C3%A9%2B%26%3D", "x y%é+&="),
            ("a+b", "a+b"),
            ("%3d%3D", "=="),
            ("%", "%"),
            ("%4", "%4"),
            ("%zz", "%zz"),
        ];
        for (text, expect) in cases {
            assert_eq!(&*decode(text.as_bytes()), expect.as_bytes(), "{text}");
        }
    }

    #[test]
    fn encoding() {
        assert_eq!(HeaderSafe("dbs/d 1/colls/é%").to_string(), "dbs/d 1/colls/%C3%A9%");
        assert_eq!(HeaderSafe("a\r\nb").to_string(), "a%0D%0Ab");
        assert_eq!(Component("{\"a\":1}").to_string(), "%7B%22a%22%3A1%7D");
    }
}
