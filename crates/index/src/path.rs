//! Paths as bytes: the front of every term.
//!
//! ```text
//! property  02 {name, 00 written as 00 FF} 00
//! elements  03                                   any element of an array
//! end       01
//! long      04 {the first bytes of the above}{128-bit hash of it}       fixed length
//! ```
//!
//! The zero that ends a name is followed by 01, 02 or 03, never by FF, so it is not taken for an
//! escape. All paths under a path share its bytes up to the end mark.

use model::container::path::{PropertyPath, Segment};

use crate::encode::{read_escaped, write_escaped};
use crate::ordinal::hash128;

/// Longest path that is kept as it is. Longer ones are legal but rare, and one of them stands in
/// front of each element of an array.
pub const PATH_BYTES_MAX: usize = 256;

const END: u8 = 0x01;
const PROPERTY: u8 = 0x02;
const ELEMENTS: u8 = 0x03;
const LONG: u8 = 0x04;
const LONG_PREFIX_BYTES: usize = 111;
const LONG_BYTES: usize = 1 + LONG_PREFIX_BYTES + 16;

/// The path of the item itself.
pub(crate) const ROOT: &[u8] = &[END];

/// Where a value is in an item: property names, and `[]` for any element of an array.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Path {
    /// From the root down.
    pub segments: Vec<Segment>,
}

impl Path {
    /// A path of segments.
    pub fn new(segments: Vec<Segment>) -> Self {
        Path { segments }
    }

    /// A path of property names.
    pub fn of_properties<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let segment = |name: &str| Segment::Property(name.to_owned());
        Path { segments: names.into_iter().map(segment).collect() }
    }

    /// The bytes of the path, shortened if they are too many.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut open = Vec::with_capacity(32);
        self.segments.iter().for_each(|segment| push_segment(segment, &mut open));
        let mut bytes = Vec::with_capacity(open.len() + 1);
        write_closed(&open, &mut bytes);
        bytes
    }

    /// Whether its bytes are the path itself and not a hash.
    pub fn is_exact(&self) -> bool {
        self.to_bytes().first() != Some(&LONG)
    }

    /// Reads a path from the front of a term; also says how many bytes it took. `None` if it was
    /// too long to be kept, or the bytes are no path.
    pub fn decode(bytes: &[u8]) -> Option<(Self, usize)> {
        let mut segments = Vec::new();
        let mut at = 0;
        loop {
            let tag = *bytes.get(at)?;
            at += 1;
            match tag {
                END => return Some((Path { segments }, at)),
                ELEMENTS => segments.push(Segment::Elements),
                PROPERTY => {
                    // The byte after the zero belongs to what follows.
                    let (name, _, used) = read_escaped(bytes.get(at..)?)?;
                    segments.push(Segment::Property(String::from_utf8(name).ok()?));
                    at += used - 1;
                }
                _ => return None,
            }
        }
    }
}

impl From<&PropertyPath> for Path {
    fn from(path: &PropertyPath) -> Self {
        Path::of_properties(path.segments().iter().map(String::as_str))
    }
}

fn push_segment(segment: &Segment, open: &mut Vec<u8>) {
    match segment {
        Segment::Property(name) => push_property(name, open),
        Segment::Elements => push_elements(open),
    }
}

/// Extends an open path, one without its end mark, by a property.
pub(crate) fn push_property(name: &str, open: &mut Vec<u8>) {
    open.push(PROPERTY);
    write_escaped(name.as_bytes(), open);
    open.push(0);
}

/// Extends an open path by any element of the array there.
pub(crate) fn push_elements(open: &mut Vec<u8>) {
    open.push(ELEMENTS);
}

/// Appends an open path and its end mark, or its short form.
pub(crate) fn write_closed(open: &[u8], out: &mut Vec<u8>) {
    if open.len() < PATH_BYTES_MAX {
        out.extend_from_slice(open);
        return out.push(END);
    }
    out.push(LONG);
    out.extend_from_slice(&open[..LONG_PREFIX_BYTES]);
    out.extend_from_slice(&hash128(open).to_be_bytes());
}

/// How many bytes of a term are its path, and whether the path leads through the elements of an
/// array. A long path does not show it and passes for one of properties.
pub(crate) fn measure(term: &[u8]) -> (usize, bool) {
    if term.first() == Some(&LONG) {
        return (LONG_BYTES.min(term.len()), false);
    }
    let (mut at, mut has_elements) = (0, false);
    loop {
        match term.get(at) {
            Some(&PROPERTY) => at += 1 + name_bytes(&term[at + 1..]),
            Some(&ELEMENTS) => {
                has_elements = true;
                at += 1;
            }
            Some(_) | None => return ((at + 1).min(term.len()), has_elements),
        }
    }
}

/// Bytes of an escaped name and the zero that ends it.
fn name_bytes(bytes: &[u8]) -> usize {
    let is_end = |at: usize| bytes[at] == 0 && bytes.get(at + 1) != Some(&0xFF);
    (0..bytes.len()).find(|&at| is_end(at)).map_or(bytes.len(), |at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_as_drawn() {
        let path = Path::of_properties(["a", "b\0"]);
        assert_eq!(path.to_bytes(), [2, b'a', 0, 2, b'b', 0, 0xFF, 0, 1]);
        let path = Path::new(vec![Segment::Property("a".into()), Segment::Elements]);
        assert_eq!(path.to_bytes(), [2, b'a', 0, 3, 1]);
        assert_eq!(Path::default().to_bytes(), [1]);
    }

    #[test]
    fn long_paths_end_in_a_hash() {
        // A property of n bytes is n + 2, its path one more.
        for (length, exact) in [(252, true), (253, true), (254, false), (70_000, false)] {
            let path = Path::of_properties([&"x".repeat(length)[..]]);
            let bytes = path.to_bytes();
            assert_eq!(path.is_exact(), exact, "{length}");
            assert_eq!(Path::decode(&bytes), exact.then_some((path, length + 3)));
            assert!(bytes.len() <= PATH_BYTES_MAX);
        }
        let long = |end: &str| Path::of_properties([&format!("{}{end}", "x".repeat(300))[..]]);
        assert_ne!(long("a").to_bytes(), long("b").to_bytes());
    }

    #[test]
    fn a_path_is_measured_at_the_front_of_a_term() {
        let property = |name: &str| Segment::Property(name.into());
        let long = "x".repeat(300);
        for (segments, has_elements) in [
            (vec![], false),
            (vec![property("a"), property("b\0c")], false),
            (vec![property("a\0"), Segment::Elements, property("")], true),
            (vec![property(&long), Segment::Elements], false),
        ] {
            let mut term = Path::new(segments).to_bytes();
            let length = term.len();
            term.extend_from_slice(&[6, b'v', 0, 1]);
            assert_eq!(measure(&term), (length, has_elements), "{term:?}");
        }
    }

    #[test]
    fn damaged_bytes_are_no_path() {
        for damaged in [&[][..], &[0], &[2, b'a'], &[2, b'a', 0], &[2, 0x80, 0, 1], &[3], &[4, 1]] {
            assert_eq!(Path::decode(damaged), None, "{damaged:?}");
            assert!(measure(damaged).0 <= damaged.len(), "{damaged:?}");
        }
    }
}
