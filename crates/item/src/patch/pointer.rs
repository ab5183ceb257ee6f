//! JSON pointers: `/a/b~1c/0`, with `~1` for `/` and `~0` for `~`.

use std::fmt;

/// A path to a member or element, at least one segment long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pointer {
    segments: Vec<String>,
}

impl Pointer {
    /// `None` unless the text is `/segment` once or more with valid escapes. The empty pointer,
    /// which means the item itself, is none of ours.
    pub fn parse(text: &str) -> Option<Pointer> {
        let segments = text.strip_prefix('/')?.split('/').map(unescape).collect::<Option<_>>()?;
        Some(Pointer { segments })
    }

    /// The segments without escapes.
    pub fn segments(&self) -> &[String] {
        &self.segments
    }

    /// The segments of the parent, and the last one.
    pub(super) fn split(&self) -> (&[String], &str) {
        self.segments.split_last().map_or((&[], ""), |(last, parents)| (parents, last))
    }

    /// Whether it is one of the two paths, or a parent or child of the other.
    pub(super) fn touches(&self, path: &[impl AsRef<str>]) -> bool {
        let pairs = self.segments.iter().zip(path);
        !path.is_empty() && pairs.fold(true, |alike, (a, b)| alike && a == b.as_ref())
    }

    /// Whether it lies strictly inside `other`.
    pub(super) fn is_inside(&self, other: &Pointer) -> bool {
        self.segments.len() > other.segments.len() && self.segments.starts_with(&other.segments)
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let escape = |segment: &String| segment.replace('~', "~0").replace('/', "~1");
        self.segments.iter().try_for_each(|segment| write!(f, "/{}", escape(segment)))
    }
}

/// A position in an array: decimal, without sign or leading zeros.
pub(super) fn index(segment: &str) -> Option<usize> {
    let is_decimal = segment.bytes().all(|byte| byte.is_ascii_digit());
    let is_plain = segment == "0" || !segment.starts_with('0');
    if is_decimal && is_plain { segment.parse().ok() } else { None }
}

fn unescape(segment: &str) -> Option<String> {
    let mut parts = segment.split('~');
    let mut out = parts.next()?.to_owned();
    for part in parts {
        let (char, rest) = match part.as_bytes().first()? {
            b'0' => ('~', &part[1..]),
            b'1' => ('/', &part[1..]),
            _ => return None,
        };
        out.push(char);
        out.push_str(rest);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_read_and_print() {
        let check = |text: &str, expect: &[&str]| {
            let pointer = Pointer::parse(text).unwrap();
            assert_eq!(pointer.segments(), expect);
            assert_eq!(pointer.to_string(), text);
        };
        check("/a", &["a"]);
        check("/a/0/-", &["a", "0", "-"]);
        check("/", &[""]);
        check("/a~1b/~0c/~01", &["a/b", "~c", "~1"]);
        check("/é~0~1", &["é~/"]);
    }

    #[test]
    fn other_texts_are_no_pointers() {
        for text in ["", "a", "a/b", "/~", "/a~2", "/a~", "/~é"] {
            assert_eq!(Pointer::parse(text), None, "{text}");
        }
    }

    #[test]
    fn indexes_are_plain_decimals() {
        assert_eq!((index("0"), index("10")), (Some(0), Some(10)));
        for segment in ["", "01", "-1", "+1", "1.0", "-", "a", "99999999999999999999999"] {
            assert_eq!(index(segment), None, "{segment}");
        }
    }

    #[test]
    fn touching_is_being_above_or_below() {
        let touches = |pointer, path: &[&str]| Pointer::parse(pointer).unwrap().touches(path);
        assert!(touches("/a", &["a"]) && touches("/a", &["a", "b"]) && touches("/a/b/c", &["a"]));
        assert!(!touches("/a/c", &["a", "b"]) && !touches("/b", &["a"]) && !touches("/a", &[]));
    }
}
