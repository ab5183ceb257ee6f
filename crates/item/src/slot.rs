//! One entry of the node table.
//!
//! A table is the values of a text in the order they begin. A scalar takes one slot, an array or
//! object two: the second says where its subtree ends and how many children it has.
//!
//! ```text
//! bits    0..26   26..29   29               30              32..64
//! first   start   tag      value escaped    name escaped    end
//! second  next slot after the subtree (32 bits)             number of children
//! ```
//!
//! `start` and `end` are byte offsets in the text. The name of a member is not recorded: it is
//! what lies between the end of the value before it and the start of its own.

use crate::string;

/// Bytes of a slot, little-endian.
pub(crate) const SLOT_BYTES: usize = 8;

/// Texts whose offsets fit a slot.
pub(crate) const TEXT_BYTES_MAX: usize = (1 << START_BITS) - 1;

const START_BITS: u32 = 26;
const TAG_SHIFT: u32 = START_BITS;
const VALUE_ESCAPED: u64 = 1 << 29;
const NAME_ESCAPED: u64 = 1 << 30;

/// What a value is. Booleans are told apart here, so reading one does not touch the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tag {
    Null,
    False,
    True,
    Number,
    String,
    Array,
    Object,
}

/// The first slot of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(u64);

impl Slot {
    pub fn new(tag: Tag, start: usize, end: usize) -> Slot {
        debug_assert!(start <= end && end <= TEXT_BYTES_MAX);
        Slot(start as u64 | (tag as u64) << TAG_SHIFT | (end as u64) << 32)
    }

    pub fn with_value_escaped(self, escaped: bool) -> Slot {
        if escaped { Slot(self.0 | VALUE_ESCAPED) } else { self }
    }

    pub fn with_name_escaped(self, escaped: bool) -> Slot {
        if escaped { Slot(self.0 | NAME_ESCAPED) } else { self }
    }

    pub fn with_end(self, end: usize) -> Slot {
        Slot(self.0 & u64::from(u32::MAX) | (end as u64) << 32)
    }

    pub fn start(self) -> usize {
        (self.0 & TEXT_BYTES_MAX as u64) as usize
    }

    pub fn end(self) -> usize {
        (self.0 >> 32) as usize
    }

    /// A tag no writer produces reads as null: damaged bytes must not panic.
    pub fn tag(self) -> Tag {
        match self.0 >> TAG_SHIFT & 7 {
            1 => Tag::False,
            2 => Tag::True,
            3 => Tag::Number,
            4 => Tag::String,
            5 => Tag::Array,
            6 => Tag::Object,
            _ => Tag::Null,
        }
    }

    pub fn is_container(self) -> bool {
        matches!(self.0 >> TAG_SHIFT & 7, 5 | 6)
    }

    /// Whether the name of a member is this; `inside` is how it stands in the text.
    pub fn is_named(self, inside: &[u8], name: &str) -> bool {
        match self.name_escaped() {
            true => string::unescape(inside).is_some_and(|text| text == name),
            false => inside == name.as_bytes(),
        }
    }

    /// The slot after a value at a place and all in it.
    pub fn next(self, table: &[u8], at: usize) -> usize {
        match self.is_container().then(|| Extent::read(table, at + 1)).flatten() {
            Some(extent) => (extent.next as usize).max(at + 2),
            None => at + 1,
        }
    }

    pub fn value_escaped(self) -> bool {
        self.0 & VALUE_ESCAPED != 0
    }

    pub fn name_escaped(self) -> bool {
        self.0 & NAME_ESCAPED != 0
    }

    pub fn to_bytes(self) -> [u8; SLOT_BYTES] {
        self.0.to_le_bytes()
    }

    pub fn read(table: &[u8], slot: usize) -> Option<Slot> {
        word(table, slot).map(Slot)
    }
}

/// The second slot of an array or object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    /// The slot after the last descendant.
    pub next: u32,
    /// How many elements or members there are.
    pub count: u32,
}

impl Extent {
    pub fn to_bytes(self) -> [u8; SLOT_BYTES] {
        (u64::from(self.next) | u64::from(self.count) << 32).to_le_bytes()
    }

    pub fn read(table: &[u8], slot: usize) -> Option<Extent> {
        word(table, slot).map(|word| Extent { next: word as u32, count: (word >> 32) as u32 })
    }
}

fn word(table: &[u8], slot: usize) -> Option<u64> {
    let bytes = table.get(slot.checked_mul(SLOT_BYTES)?..)?.first_chunk::<SLOT_BYTES>()?;
    Some(u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_gives_back_what_it_was_given() {
        let slot = Slot::new(Tag::String, 7, TEXT_BYTES_MAX).with_value_escaped(true);
        let slot = slot.with_name_escaped(true).with_end(99);
        let read = Slot::read(&slot.to_bytes(), 0).unwrap();
        assert_eq!((read.start(), read.end(), read.tag()), (7, 99, Tag::String));
        assert!(read.value_escaped() && read.name_escaped());
        assert_eq!(Slot::read(&slot.to_bytes(), 1), None);
    }

    #[test]
    fn an_extent_gives_back_what_it_was_given() {
        let extent = Extent { next: u32::MAX, count: 3 };
        assert_eq!(Extent::read(&extent.to_bytes(), 0), Some(extent));
    }
}
