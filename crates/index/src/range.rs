//! From a predicate to the range of terms that satisfy it.
//!
//! Ranges are half-open and hold for terms with an ordinal behind them: all keys that begin with a
//! term of the range are in it.
//!
//! ```text
//! = "b"        [ path 06 b 00 01      , path 06 b 00 02 )
//! > 5          [ path 05 {after 5}    , path 06         )     numbers only
//! begins "b"   [ path 06 b            , path 06 c       )
//! all          [ path                 , after the path  )
//! ```

use std::ops::Bound;

use item::Kind;

use crate::encode::{self, STRING_BYTES_MAX, Scalar, tag, write_escaped};
use crate::path::Path;

/// What a predicate says about the values at a path.
#[derive(Debug, Clone, PartialEq)]
pub enum Bounds<'a> {
    /// Every term of the path, also "undefined".
    All,
    /// Every value.
    Defined,
    /// Every value of a type.
    OfKind(Kind),
    /// The value is this one. Of arrays and objects only the type is compared.
    Equal(Scalar<'a>),
    /// The value is of the type of the bounds and between them. Bounds of different types leave
    /// nothing; without bounds this is [`Bounds::Defined`].
    Between(Bound<Scalar<'a>>, Bound<Scalar<'a>>),
    /// The value is a string that begins with this one.
    Prefix(&'a str),
}

/// A half-open range of keys. Empty if `start >= end`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TermRange {
    /// The first key.
    pub start: Vec<u8>,
    /// The first key that is not in it any more.
    pub end: Vec<u8>,
    /// Whether every item in the range satisfies the predicate. If not, a string or path was cut
    /// or a type stands for its values: look at the item.
    pub exact: bool,
}

impl TermRange {
    /// Whether a term lies in the range.
    pub fn contains(&self, term: &[u8]) -> bool {
        self.start.as_slice() <= term && term < self.end.as_slice()
    }
}

/// The term of one value at one path.
pub fn term(path: &Path, scalar: &Scalar<'_>) -> Vec<u8> {
    let mut term = path.to_bytes();
    encode::write(scalar, &mut term);
    term
}

/// The terms of a path that satisfy a predicate.
pub fn range(path: &Path, bounds: &Bounds<'_>) -> TermRange {
    let path_bytes = path.to_bytes();
    let values = value_range(bounds, STRING_BYTES_MAX);
    let with_path = |value: &[u8]| [&path_bytes, value].concat();
    TermRange {
        start: with_path(&values.start),
        end: with_path(&values.end),
        exact: values.exact && path.is_exact(),
    }
}

/// Encodings that satisfy a predicate. The end is never empty: no encoding begins with `FF`.
pub(crate) fn value_range(bounds: &Bounds<'_>, string_max: usize) -> TermRange {
    let range = |start: Vec<u8>, end: Vec<u8>, exact| TermRange { start, end, exact };
    match bounds {
        Bounds::All => range(vec![], vec![tag::OBJECT + 1], true),
        Bounds::Defined => range(vec![tag::NULL], vec![tag::OBJECT + 1], true),
        Bounds::OfKind(kind) => of_kind(*kind),
        Bounds::Equal(scalar) => equal(scalar, string_max),
        Bounds::Between(lower, upper) => between(lower, upper, string_max),
        Bounds::Prefix(text) => prefix(text, string_max),
    }
}

fn of_kind(kind: Kind) -> TermRange {
    let (first, last) = match kind {
        Kind::Null => (tag::NULL, tag::NULL),
        Kind::Bool => (tag::FALSE, tag::TRUE),
        Kind::Number => (tag::NUMBER, tag::NUMBER),
        Kind::String => (tag::STRING, tag::STRING),
        Kind::Array => (tag::ARRAY, tag::ARRAY),
        Kind::Object => (tag::OBJECT, tag::OBJECT),
    };
    TermRange { start: vec![first], end: vec![last + 1], exact: true }
}

fn equal(scalar: &Scalar<'_>, string_max: usize) -> TermRange {
    let start = encoded(scalar, string_max);
    let end = after(start.clone());
    TermRange { start, end, exact: scalar.is_exact(string_max) }
}

fn between(lower: &Bound<Scalar<'_>>, upper: &Bound<Scalar<'_>>, string_max: usize) -> TermRange {
    let values = [lower, upper].map(|bound| match bound {
        Bound::Included(scalar) | Bound::Excluded(scalar) => Some(scalar),
        Bound::Unbounded => None,
    });
    let (kind, same) = match values {
        [None, None] => return value_range(&Bounds::Defined, string_max),
        [Some(a), Some(b)] => (kind_of(a), kind_of(a) == kind_of(b)),
        [Some(one), None] | [None, Some(one)] => (kind_of(one), true),
    };
    let Some(whole) = kind.map(of_kind).filter(|_| same) else { return nothing() };
    let exact = values.into_iter().flatten().all(|scalar| scalar.is_exact(string_max));
    TermRange {
        start: lower_end(lower, string_max).unwrap_or(whole.start),
        end: upper_end(upper, string_max).unwrap_or(whole.end),
        exact,
    }
}

/// A cut string may be on either side of the bound, so its term belongs to both.
fn lower_end(bound: &Bound<Scalar<'_>>, string_max: usize) -> Option<Vec<u8>> {
    match bound {
        Bound::Unbounded => None,
        Bound::Excluded(scalar) if scalar.is_exact(string_max) => {
            Some(after(encoded(scalar, string_max)))
        }
        Bound::Included(scalar) | Bound::Excluded(scalar) => Some(encoded(scalar, string_max)),
    }
}

fn upper_end(bound: &Bound<Scalar<'_>>, string_max: usize) -> Option<Vec<u8>> {
    match bound {
        Bound::Unbounded => None,
        Bound::Excluded(scalar) if scalar.is_exact(string_max) => Some(encoded(scalar, string_max)),
        Bound::Included(scalar) | Bound::Excluded(scalar) => {
            Some(after(encoded(scalar, string_max)))
        }
    }
}

fn prefix(text: &str, string_max: usize) -> TermRange {
    if text.len() > string_max {
        return equal(&Scalar::string(text), string_max);
    }
    let mut start = vec![tag::STRING];
    write_escaped(text.as_bytes(), &mut start);
    let end = after(start.clone());
    TermRange { start, end, exact: true }
}

fn nothing() -> TermRange {
    TermRange { start: vec![tag::UNDEFINED], end: vec![tag::UNDEFINED], exact: true }
}

fn kind_of(scalar: &Scalar<'_>) -> Option<Kind> {
    match scalar {
        Scalar::Undefined => None,
        Scalar::Null => Some(Kind::Null),
        Scalar::Bool(_) => Some(Kind::Bool),
        Scalar::Number(_) => Some(Kind::Number),
        Scalar::String(_) => Some(Kind::String),
        Scalar::Array => Some(Kind::Array),
        Scalar::Object => Some(Kind::Object),
    }
}

fn encoded(scalar: &Scalar<'_>, string_max: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode::write_limited(scalar, string_max, &mut bytes);
    bytes
}

/// The first key after all keys that begin with `bytes`; empty if there is none.
pub(crate) fn after(mut bytes: Vec<u8>) -> Vec<u8> {
    while bytes.last() == Some(&0xFF) {
        bytes.pop();
    }
    if let Some(last) = bytes.last_mut() {
        *last += 1;
    }
    bytes
}
