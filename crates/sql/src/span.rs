//! Where something stands in the query text.

/// A range of the query text: zero-based offsets in UTF-16 code units, `end` exclusive.
///
/// The service counts characters as its clients do, so the offsets fit the strings of .NET, Java
/// and JavaScript without conversion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// Offset of the first unit.
    pub start: u32,
    /// Offset after the last unit.
    pub end: u32,
}

impl Span {
    /// The range from `start` to `end`.
    pub const fn new(start: u32, end: u32) -> Span {
        Span { start, end }
    }

    /// The smallest range that covers both.
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}
