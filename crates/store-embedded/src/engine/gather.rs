//! Values of many keys at once.
//!
//! Whoever follows an index has the keys of many rows, in blocks all over memory. One after the
//! other each would wait for memory several times; in steps, all wait at the same time.

use std::ops::Range;

use bytes::Bytes;

use super::Entry;
use super::block::{Block, Place};

/// Values of many keys, taken from place after place, newest first.
pub(crate) struct Gather<'a> {
    keys: &'a [&'a [u8]],
    /// Which keys nobody has known so far.
    open: Vec<usize>,
    found: Vec<Found>,
    packer: Packer,
}

/// Small values, one behind the other: few buffers to allocate, and to count references to. Who
/// keeps a value keeps its buffer, so that is not large.
#[derive(Default)]
struct Packer {
    full: Vec<Bytes>,
    packed: Vec<u8>,
}

#[derive(Clone)]
enum Found {
    Nothing,
    Deleted,
    Packed { buffer: usize, range: Range<usize> },
    Own(Bytes),
}

/// Values beyond this size are not packed.
const SMALL_BYTES_MAX: usize = 4 << 10;
/// What a buffer of small values has at most.
const PACKED_BYTES_MAX: usize = 16 << 10;
/// How much the processor fetches at once.
const LINE_BYTES: usize = 64;

impl<'a> Gather<'a> {
    pub(crate) fn new(keys: &'a [&'a [u8]]) -> Gather<'a> {
        let found = vec![Found::Nothing; keys.len()];
        Gather { keys, open: (0..keys.len()).collect(), found, packer: Packer::default() }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.open.is_empty()
    }

    /// The keys nobody has known so far, with their places.
    pub(crate) fn open(&self) -> impl ExactSizeIterator<Item = (usize, &'a [u8])> {
        self.open.iter().map(|&at| (at, self.keys[at]))
    }

    /// What was found is not looked for any more.
    pub(crate) fn close(&mut self) {
        self.open.retain(|at| matches!(self.found[*at], Found::Nothing));
    }

    /// Asks a place that tells of one key at a time.
    pub(crate) fn ask<'e>(&mut self, get: impl Fn(&[u8]) -> Option<Entry<'e>>) {
        let (keys, found, packer) = (self.keys, &mut self.found, &mut self.packer);
        self.open.retain(|&at| {
            let entry = get(keys[at]);
            match entry {
                None => {}
                Some(Entry::Deleted) => found[at] = Found::Deleted,
                Some(Entry::Shared(value)) => found[at] = Found::Own(value.clone()),
                Some(Entry::Value(value)) => found[at] = packer.pack(value, value.len()),
            }
            entry.is_none()
        });
    }

    /// Takes what blocks say of keys, a block for each. All are looked at before any is read: what the
    /// processor has to fetch from memory, it fetches at the same time.
    pub(crate) fn take_all(&mut self, blocks: &[(usize, &Block)]) {
        touch(blocks.iter().map(|(_, block)| block.first_byte()));
        let mut entries = Vec::with_capacity(blocks.len());
        // Keys come in order as a rule, and then neighbors are found from each other.
        let mut last: Option<(&Block, &[u8], Place)> = None;
        for &(at, block) in blocks {
            let key = self.keys[at];
            let found = match last {
                Some((own, before, place)) if std::ptr::eq(own, block) && before < key => {
                    block.find_past((before, place), key)
                }
                _ => block.find(key),
            };
            if let Some((entry, place)) = found {
                entries.push((at, block, entry));
                last = Some((block, key, place));
            }
        }
        let values = entries.iter().map(|(.., entry)| entry.bytes());
        let small = values.filter(|value| value.len() <= SMALL_BYTES_MAX);
        touch(small.clone().flat_map(|value| value.iter().step_by(LINE_BYTES).copied()));
        let mut left = small.map(<[u8]>::len).sum();
        for (at, block, entry) in entries {
            self.found[at] = match (entry, entry.bytes()) {
                (Entry::Deleted, _) => Found::Deleted,
                (_, value) if value.len() > SMALL_BYTES_MAX => Found::Own(block.share(value)),
                (_, value) => {
                    let found = self.packer.pack(value, left);
                    left -= value.len();
                    found
                }
            };
        }
    }

    /// The values, in the order of the keys.
    pub(crate) fn finish(self) -> Vec<Option<Bytes>> {
        let buffers = self.packer.finish();
        let value = |found| match found {
            Found::Nothing | Found::Deleted => None,
            Found::Packed { buffer, range } => Some(buffers[buffer].slice(range)),
            Found::Own(value) => Some(value),
        };
        self.found.into_iter().map(value).collect()
    }
}

impl Packer {
    /// Adds a value, of so many bytes that are still to come with it.
    fn pack(&mut self, value: &[u8], left: usize) -> Found {
        if self.packed.len() + value.len() > self.packed.capacity() {
            let room = left.min(PACKED_BYTES_MAX).max(value.len());
            let full = std::mem::replace(&mut self.packed, Vec::with_capacity(room));
            self.full.push(Bytes::from(full));
        }
        let start = self.packed.len();
        self.packed.extend_from_slice(value);
        Found::Packed { buffer: self.full.len(), range: start..self.packed.len() }
    }

    fn finish(mut self) -> Vec<Bytes> {
        self.full.push(Bytes::from(self.packed));
        self.full
    }
}

/// Reads bytes for the sake of having them near.
fn touch(bytes: impl Iterator<Item = u8>) {
    std::hint::black_box(bytes.fold(0, |sum, byte| sum ^ byte));
}
