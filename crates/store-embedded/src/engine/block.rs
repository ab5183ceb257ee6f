//! Some entries of a table in order of keys: what is read, checked and cached at once.
//!
//! ```text
//!   head*  value*  mark*  restart*  restarts u32                             little-endian
//!   head    = shared, rest, value: varints; key without its shared start
//!   mark    = a byte of the key's tail; as many as fill the last interval
//!   restart = where its head is u32, where its value is u32
//! ```
//!
//! A key leaves out what it shares with the key before it, except at every [`RESTART_EVERY`]th
//! entry, where a search can begin. `value` is its length plus one; 0 is a deleted key.
//!
//! Keys lie together, apart from values: a search in a block that is in memory, but in no cache of
//! the processor, waits for one or two lines of it and not for one per entry.
//!
//! Marks tell which intervals cannot have a key with one of the wanted tails, sixteen to
//! thirty-two keys at a time: whoever looks for the few entries of one logical partition among
//! everybody's puts together the keys of few intervals.

use std::cmp::Ordering;
use std::sync::Arc;

use bytes::Bytes;
use memchr::{memchr, memrchr};
use store::{Direction, tail_of};

use super::Entry;

const RESTART_EVERY: usize = 16;
const RESTART_BYTES: usize = 8;
/// Which byte of a tail is its mark: tails are ordinals, which begin with 28 bits that those of a
/// logical partition share, and the last eight of these are as random as any.
const MARK_SHIFT: u32 = 36;
/// Parts of larger blocks are copied, unless they are most of it.
const SHARED_BYTES_MAX: usize = 8 << 10;

/// Makes a block.
#[derive(Default)]
pub(crate) struct BlockBuilder {
    /// The heads; once finished, the block.
    bytes: Vec<u8>,
    values: Vec<u8>,
    marks: Vec<u8>,
    /// Where heads and values of restarts are among heads and values.
    restarts: Vec<[u32; 2]>,
    last_key: Vec<u8>,
    len: usize,
}

impl BlockBuilder {
    /// Adds an entry behind all others.
    pub(crate) fn push(&mut self, key: &[u8], entry: Entry<'_>) {
        let shared = match self.len.is_multiple_of(RESTART_EVERY) {
            true => {
                self.restarts.push([self.bytes.len() as u32, self.values.len() as u32]);
                0
            }
            false => common(&self.last_key, key),
        };
        let value = match entry {
            Entry::Deleted => None,
            Entry::Value(_) | Entry::Shared(_) => Some(entry.bytes()),
        };
        put_varint(&mut self.bytes, shared);
        put_varint(&mut self.bytes, key.len() - shared);
        put_varint(&mut self.bytes, value.map_or(0, |value| value.len() + 1));
        self.bytes.extend_from_slice(&key[shared..]);
        self.values.extend_from_slice(value.unwrap_or_default());
        self.marks.push(mark_of(tail_of(key)));
        self.last_key.truncate(shared);
        self.last_key.extend_from_slice(&key[shared..]);
        self.len += 1;
    }

    /// The key added last.
    pub(crate) fn last_key(&self) -> &[u8] {
        &self.last_key
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes so far.
    pub(crate) fn size(&self) -> usize {
        let interval_bytes = RESTART_BYTES + RESTART_EVERY;
        self.bytes.len() + self.values.len() + interval_bytes * self.restarts.len() + 4
    }

    /// The block; the builder begins the next one.
    pub(crate) fn finish(&mut self) -> &[u8] {
        let heads = self.bytes.len() as u32;
        self.bytes.append(&mut self.values);
        self.marks.resize(RESTART_EVERY * self.restarts.len(), 0);
        self.bytes.append(&mut self.marks);
        for [head, value] in &self.restarts {
            self.bytes.extend_from_slice(&head.to_le_bytes());
            self.bytes.extend_from_slice(&(heads + value).to_le_bytes());
        }
        self.bytes.extend_from_slice(&(self.restarts.len() as u32).to_le_bytes());
        self.restarts.clear();
        self.len = 0;
        &self.bytes
    }

    /// Forgets the finished block, but not its last key.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
    }
}

/// A block that was read. Its bytes were checked by whoever read it.
pub(crate) struct Block {
    bytes: Bytes,
    /// Where the heads end and the values begin.
    heads_end: usize,
    /// Where the marks end and the restarts begin.
    end: usize,
    restarts: usize,
}

impl Block {
    /// Makes sense of bytes; nothing if they are not a block.
    pub(crate) fn new(bytes: Vec<u8>) -> Option<Block> {
        let bytes = Bytes::from(bytes);
        let tail = bytes.len().checked_sub(4)?;
        let restarts = u32::from_le_bytes(bytes[tail..].try_into().ok()?) as usize;
        let end = tail.checked_sub(restarts.checked_mul(RESTART_BYTES)?)?;
        let first = bytes.get(end + 4..end + RESTART_BYTES).filter(|_| restarts > 0)?;
        let heads_end = u32::from_le_bytes(first.try_into().ok()?) as usize;
        let marks = end.checked_sub(restarts.checked_mul(RESTART_EVERY)?)?;
        (heads_end <= marks).then_some(Block { bytes, heads_end, end, restarts })
    }

    /// A part of it that stays when the block goes. It keeps all of the block in memory, so it is a
    /// copy if that would be much more.
    pub(crate) fn share(&self, part: &[u8]) -> Bytes {
        let is_small = self.bytes.len() <= SHARED_BYTES_MAX;
        match is_small || part.len() >= self.bytes.len() / 2 {
            true => self.bytes.slice_ref(part),
            false => Bytes::copy_from_slice(part),
        }
    }

    /// Where its keys begin.
    pub(crate) fn first_byte(&self) -> u8 {
        self.bytes[0]
    }

    /// Memory it takes.
    pub(crate) fn size(&self) -> usize {
        self.bytes.len()
    }

    /// What it says of a key, if anything.
    pub(crate) fn get(&self, key: &[u8]) -> Option<Entry<'_>> {
        self.find(key).map(|(entry, _)| entry)
    }

    /// The same, with the place behind the key.
    pub(crate) fn find(&self, key: &[u8]) -> Option<(Entry<'_>, Place)> {
        let (head, value) = self.restart(self.interval_of(key));
        self.search(Place { head, value }, 0, key)
    }

    /// The same for a key behind one that was found.
    pub(crate) fn find_past(
        &self,
        (last, place): (&[u8], Place),
        key: &[u8],
    ) -> Option<(Entry<'_>, Place)> {
        // Where the next interval begins, the search ends.
        self.search(place, common(last, key), key).or_else(|| self.find(key))
    }

    /// Looks for a key from a place on whose last key has its first `matched` bytes in common with
    /// it.
    ///
    /// Keys are compared without being put together: while the keys passed are before `key`, how
    /// much the last of them has in common with it decides.
    fn search(
        &self,
        mut place: Place,
        mut matched: usize,
        key: &[u8],
    ) -> Option<(Entry<'_>, Place)> {
        while place.head < self.heads_end {
            let raw = self.raw(place.head);
            let value = place.value;
            place = Place { head: raw.next, value: value + raw.value_bytes };
            match raw.shared.cmp(&matched) {
                Ordering::Greater => {}
                Ordering::Less => return None,
                Ordering::Equal => {
                    let rest = &self.bytes[raw.key.clone()];
                    let wanted = &key[matched..];
                    let same = common(rest, wanted);
                    match rest[same..].first().cmp(&wanted[same..].first()) {
                        Ordering::Less => matched += same,
                        Ordering::Equal => return Some((self.entry(&raw, value), place)),
                        Ordering::Greater => return None,
                    }
                }
            }
        }
        None
    }

    pub(crate) fn intervals(&self) -> usize {
        self.restarts
    }

    /// Takes the next of some intervals in which a key may have the mark, and those passed over on
    /// the way there.
    pub(crate) fn next_marked(
        &self,
        intervals: &mut std::ops::Range<usize>,
        direction: Direction,
        mark: u8,
    ) -> Option<usize> {
        let marks = self.marks(intervals.clone());
        let found = match direction {
            Direction::Forward => memchr(mark, marks),
            Direction::Backward => memrchr(mark, marks),
        };
        let found = found.map(|at| intervals.start + at / RESTART_EVERY);
        match (direction, found) {
            (_, None) => intervals.end = intervals.start,
            (Direction::Forward, Some(found)) => intervals.start = found + 1,
            (Direction::Backward, Some(found)) => intervals.end = found,
        }
        found
    }

    /// Does the same as [`sieve`](Block::sieve) for tails that have a mark. Only keys with the mark
    /// are put together, and nothing behind the last of them is looked at.
    pub(crate) fn sieve_marked(
        &self,
        interval: usize,
        mark: u8,
        within: Option<(&[u8], Option<&[u8]>)>,
        tails: &std::ops::Range<u64>,
        sieve: &mut Sieve,
    ) {
        sieve.clear();
        sieve.looked_at = RESTART_EVERY;
        let marks = self.marks(interval..interval + 1);
        let Some(last) = memrchr(mark, marks) else { return };
        let (mut at, _) = self.restart(interval);
        let heads_end = self.interval_end(interval);
        let mut heads = [Head::default(); RESTART_EVERY];
        for (position, own) in marks[..=last].iter().enumerate() {
            if at >= heads_end {
                break;
            }
            let raw = self.raw(at);
            at = raw.next;
            heads[position] = Head { shared: raw.shared, start: raw.key.start };
            if *own != mark || raw.is_deleted {
                continue;
            }
            self.put_together(&heads[..=position], raw.key.end, &mut sieve.key);
            let is_within = within.is_none_or(|(start, end)| {
                start <= &sieve.key[..] && end.is_none_or(|end| &sieve.key[..] < end)
            });
            if is_within && tails.contains(&tail_of(&sieve.key)) {
                sieve.found.extend_from_slice(&sieve.key);
                sieve.ends.push(sieve.found.len());
            }
        }
    }

    /// Makes the key of the last of some heads, the first of which begins an interval. What it
    /// shares with the heads before is taken from the nearest that has it.
    fn put_together(&self, heads: &[Head], end: usize, key: &mut Vec<u8>) {
        let Some((last, before)) = heads.split_last() else { return };
        key.resize(last.shared + (end - last.start), 0);
        key[last.shared..].copy_from_slice(&self.bytes[last.start..end]);
        let mut missing = last.shared;
        for head in before.iter().rev() {
            if missing == 0 {
                break;
            }
            if head.shared < missing {
                let bytes = &self.bytes[head.start..head.start + (missing - head.shared)];
                key[head.shared..missing].copy_from_slice(bytes);
                missing = head.shared;
            }
        }
    }

    fn marks(&self, intervals: std::ops::Range<usize>) -> &[u8] {
        let start = self.end - RESTART_EVERY * (self.restarts - intervals.start);
        &self.bytes[start..start + RESTART_EVERY * intervals.len()]
    }

    /// Looks at the keys of an interval: those from `start` on and before `end` whose tails are
    /// wanted are in the sieve afterwards.
    pub(crate) fn sieve(
        &self,
        interval: usize,
        within: Option<(&[u8], Option<&[u8]>)>,
        tails: &std::ops::Range<u64>,
        sieve: &mut Sieve,
    ) {
        sieve.clear();
        let (mut at, _) = self.restart(interval);
        let heads_end = self.interval_end(interval);
        // Keys ascend: none is before the first that is not.
        let (mut start, end) = within.map_or((None, None), |(start, end)| (Some(start), end));
        while at < heads_end {
            let raw = self.raw(at);
            at = raw.next;
            sieve.key.truncate(raw.shared);
            sieve.key.extend_from_slice(&self.bytes[raw.key]);
            if start.is_some_and(|start| sieve.key.as_slice() < start) {
                continue;
            }
            start = None;
            if end.is_some_and(|end| sieve.key.as_slice() >= end) {
                break;
            }
            if raw.is_deleted {
                continue;
            }
            sieve.looked_at += 1;
            if tails.contains(&tail_of(&sieve.key)) {
                sieve.found.extend_from_slice(&sieve.key);
                sieve.ends.push(sieve.found.len());
            }
        }
    }

    /// The key behind which there is nothing of an interval left to look at, if to go on from there
    /// is to get on: otherwise the interval has nothing of the range but its edge.
    pub(crate) fn ahead(
        &self,
        interval: usize,
        (start, end): (&[u8], Option<&[u8]>),
        direction: Direction,
    ) -> Option<Vec<u8>> {
        match direction {
            Direction::Forward => Some(self.last_key(interval)).filter(|last| &last[..] >= start),
            Direction::Backward => {
                let first = self.first_key(interval);
                end.is_none_or(|end| first < end).then(|| first.to_vec())
            }
        }
    }

    /// The last key of an interval.
    fn last_key(&self, interval: usize) -> Vec<u8> {
        let (mut at, _) = self.restart(interval);
        let end = self.interval_end(interval);
        let mut key = Vec::new();
        while at < end {
            let raw = self.raw(at);
            key.truncate(raw.shared);
            key.extend_from_slice(&self.bytes[raw.key]);
            at = raw.next;
        }
        key
    }

    /// The first key of an interval.
    pub(crate) fn first_key(&self, interval: usize) -> &[u8] {
        &self.bytes[self.raw(self.restart(interval).0).key]
    }

    fn interval_end(&self, interval: usize) -> usize {
        match interval + 1 < self.restarts {
            true => self.restart(interval + 1).0,
            false => self.heads_end,
        }
    }

    /// Where the first head and the first value of an interval are.
    fn restart(&self, interval: usize) -> (usize, usize) {
        if interval == 0 {
            return (0, self.heads_end);
        }
        let at = self.end + RESTART_BYTES * interval;
        let number =
            |at: usize| u32::from_le_bytes(self.bytes[at..at + 4].try_into().unwrap_or_default());
        (number(at) as usize, number(at + 4) as usize)
    }

    /// The interval in which `key` is, or in which the last key before it is.
    pub(crate) fn interval_of(&self, key: &[u8]) -> usize {
        // The first one begins before all others.
        let (mut low, mut high) = (1, self.restarts);
        while low < high {
            let middle = (low + high) / 2;
            let raw = self.raw(self.restart(middle).0);
            match &self.bytes[raw.key] <= key {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low - 1
    }

    fn raw(&self, at: usize) -> Raw {
        // Nearly every head has a short key, and a value of less than 16 KB.
        if let Some(bytes) = self.bytes.get(at..).and_then(<[u8]>::first_chunk::<4>)
            && (bytes[0] | bytes[1]) < 0x80
        {
            let [shared, rest, low, high] = bytes.map(usize::from);
            let (value, head) = match (low < 0x80, high < 0x80) {
                (true, _) => (low, 3),
                (false, true) => (low & 0x7f | high << 7, 4),
                (false, false) => return self.long_raw(at),
            };
            return Raw::new(shared, at + head, rest, value);
        }
        self.long_raw(at)
    }

    fn long_raw(&self, at: usize) -> Raw {
        let mut at = at;
        let shared = self.varint(&mut at);
        let rest = self.varint(&mut at);
        let value = self.varint(&mut at);
        Raw::new(shared, at, rest, value)
    }

    fn varint(&self, at: &mut usize) -> usize {
        let first = self.bytes[*at];
        *at += 1;
        if first < 0x80 {
            return usize::from(first);
        }
        let (mut value, mut shift) = (usize::from(first & 0x7f), 7);
        loop {
            let byte = self.bytes[*at];
            *at += 1;
            value |= usize::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return value;
            }
            shift += 7;
        }
    }

    fn entry(&self, raw: &Raw, value: usize) -> Entry<'_> {
        match raw.is_deleted {
            true => Entry::Deleted,
            false => Entry::Value(&self.bytes[value..value + raw.value_bytes]),
        }
    }
}

/// A head that was passed: how much of its key is left out, and where the rest is.
#[derive(Clone, Copy, Default)]
struct Head {
    shared: usize,
    start: usize,
}

/// A place between two entries.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    head: usize,
    value: usize,
}

/// Keys that were found among those of an interval.
#[derive(Default)]
pub(crate) struct Sieve {
    /// The key put together last.
    key: Vec<u8>,
    pub(crate) looked_at: usize,
    found: Vec<u8>,
    ends: Vec<usize>,
}

impl Sieve {
    fn clear(&mut self) {
        self.key.clear();
        self.found.clear();
        self.ends.clear();
        self.looked_at = 0;
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn get(&self, at: usize) -> &[u8] {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.found[start..self.ends[at]]
    }
}

/// A head.
struct Raw {
    shared: usize,
    /// Where the rest of the key is.
    key: std::ops::Range<usize>,
    value_bytes: usize,
    is_deleted: bool,
    /// Where the next one is.
    next: usize,
}

impl Raw {
    /// The head of a key whose rest is at a place.
    fn new(shared: usize, at: usize, rest: usize, value: usize) -> Raw {
        let next = at + rest;
        let value_bytes = value.saturating_sub(1);
        Raw { shared, key: at..next, value_bytes, is_deleted: value == 0, next }
    }
}

/// A place in a block. It holds the keys of one interval, put together.
pub(crate) struct BlockCursor {
    block: Arc<Block>,
    interval: usize,
    keys: Vec<u8>,
    decoded: Vec<Decoded>,
    at: usize,
}

#[derive(Clone, Copy)]
struct Decoded {
    key_start: u32,
    key_end: u32,
    value_start: u32,
    /// `u32::MAX`: deleted.
    value_bytes: u32,
}

impl BlockCursor {
    /// At the first key that is not before `key`; nothing if all are.
    pub(crate) fn from(self, key: &[u8]) -> Option<BlockCursor> {
        let interval = self.block.interval_of(key);
        let mut cursor = self.in_interval(interval);
        cursor.at = cursor.lower_bound(key);
        match cursor.at < cursor.decoded.len() {
            true => Some(cursor),
            false => cursor.next_interval(),
        }
    }

    /// At the last key before `key`; nothing if there is none.
    pub(crate) fn before(self, key: &[u8]) -> Option<BlockCursor> {
        let interval = self.block.interval_of(key);
        let mut cursor = self.in_interval(interval);
        match cursor.lower_bound(key).checked_sub(1) {
            Some(at) => {
                cursor.at = at;
                Some(cursor)
            }
            None => cursor.previous_interval(),
        }
    }

    /// For a block, with no place yet.
    pub(crate) fn new(block: Arc<Block>) -> BlockCursor {
        let (keys, decoded) = (Vec::with_capacity(1024), Vec::with_capacity(RESTART_EVERY));
        BlockCursor { block, interval: 0, keys, decoded, at: 0 }
    }

    /// For another block, with the memory of this one.
    pub(crate) fn moved(self, block: Arc<Block>) -> BlockCursor {
        BlockCursor { block, ..self }
    }

    /// At the first key.
    pub(crate) fn first(self) -> BlockCursor {
        self.in_interval(0)
    }

    /// At the last key.
    pub(crate) fn last(self) -> BlockCursor {
        let last = self.block.restarts - 1;
        let mut cursor = self.in_interval(last);
        cursor.at = cursor.decoded.len() - 1;
        cursor
    }

    pub(crate) fn key(&self) -> &[u8] {
        self.key_at(self.at)
    }

    pub(crate) fn entry(&self) -> Entry<'_> {
        let decoded = &self.decoded[self.at];
        let start = decoded.value_start as usize;
        match decoded.value_bytes {
            u32::MAX => Entry::Deleted,
            bytes => Entry::Value(&self.block.bytes[start..start + bytes as usize]),
        }
    }

    /// To the next key; false and unmoved at the last one.
    pub(crate) fn next(&mut self) -> bool {
        if self.at + 1 < self.decoded.len() {
            self.at += 1;
            return true;
        }
        if self.interval + 1 < self.block.restarts {
            self.decode(self.interval + 1);
            return true;
        }
        false
    }

    /// To the key before; false and unmoved at the first one.
    pub(crate) fn previous(&mut self) -> bool {
        if self.at > 0 {
            self.at -= 1;
            return true;
        }
        if self.interval > 0 {
            self.decode(self.interval - 1);
            self.at = self.decoded.len() - 1;
            return true;
        }
        false
    }

    fn key_at(&self, at: usize) -> &[u8] {
        let decoded = &self.decoded[at];
        &self.keys[decoded.key_start as usize..decoded.key_end as usize]
    }

    fn lower_bound(&self, key: &[u8]) -> usize {
        let (mut low, mut high) = (0, self.decoded.len());
        while low < high {
            let middle = (low + high) / 2;
            match self.key_at(middle) < key {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }

    fn in_interval(mut self, interval: usize) -> BlockCursor {
        self.decode(interval);
        self
    }

    fn next_interval(self) -> Option<BlockCursor> {
        let next = self.interval + 1;
        (next < self.block.restarts).then(|| self.in_interval(next))
    }

    fn previous_interval(self) -> Option<BlockCursor> {
        let previous = self.interval.checked_sub(1)?;
        let mut cursor = self.in_interval(previous);
        cursor.at = cursor.decoded.len() - 1;
        Some(cursor)
    }

    fn decode(&mut self, interval: usize) {
        let block = &*self.block;
        self.interval = interval;
        self.at = 0;
        self.keys.clear();
        self.decoded.clear();
        let end = block.interval_end(interval);
        let ((mut at, mut value), mut last) = (block.restart(interval), 0);
        while at < end {
            let raw = block.raw(at);
            let key_start = self.keys.len();
            self.keys.extend_from_within(last..last + raw.shared);
            self.keys.extend_from_slice(&block.bytes[raw.key]);
            let value_bytes = match raw.is_deleted {
                true => u32::MAX,
                false => raw.value_bytes as u32,
            };
            self.decoded.push(Decoded {
                key_start: key_start as u32,
                key_end: self.keys.len() as u32,
                value_start: value as u32,
                value_bytes,
            });
            (at, value, last) = (raw.next, value + raw.value_bytes, key_start);
        }
    }
}

/// The mark that all keys with these tails have; nothing if they have different ones.
pub(crate) fn mark_of_all(tails: &std::ops::Range<u64>) -> Option<u8> {
    let last = tails.end.checked_sub(1)?;
    (tails.start >> MARK_SHIFT == last >> MARK_SHIFT).then(|| mark_of(last))
}

fn mark_of(tail: u64) -> u8 {
    (tail >> MARK_SHIFT) as u8
}

/// How many keys are passed over with some intervals, at most.
pub(crate) fn keys_of(intervals: usize) -> usize {
    RESTART_EVERY * intervals
}

/// How many first bytes two strings have in common.
pub(super) fn common(a: &[u8], b: &[u8]) -> usize {
    let mut same = 0;
    for (a, b) in a.chunks_exact(8).zip(b.chunks_exact(8)) {
        let [a, b] = [a, b].map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()));
        if a != b {
            return same + ((a ^ b).trailing_zeros() / 8) as usize;
        }
        same += 8;
    }
    let rest = a[same..].iter().zip(&b[same..]);
    same + rest.take_while(|(a, b)| a == b).count()
}

fn put_varint(bytes: &mut Vec<u8>, value: usize) {
    let mut value = value;
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::collections::BTreeMap;

    use base::Random;

    use super::*;

    type Model = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

    fn model(seed: u64, len: usize) -> Model {
        let random = Random::from_seed(seed);
        (0..len)
            .map(|_| {
                let mut key = b"a common start, longer than a word/".to_vec();
                key.extend((random.next() % 5000).to_be_bytes());
                key.extend(vec![b'z'; (random.next() % 3) as usize]);
                let value = random.next() % 200;
                let value = (value > 20).then(|| vec![value as u8; value as usize]);
                (key, value)
            })
            .collect()
    }

    fn block(model: &Model) -> Arc<Block> {
        let mut builder = BlockBuilder::default();
        for (key, value) in model {
            let entry = value.as_deref().map_or(Entry::Deleted, Entry::Value);
            builder.push(key, entry);
        }
        Arc::new(Block::new(builder.finish().to_vec()).unwrap())
    }

    #[test]
    fn it_agrees_with_an_ordered_map() {
        for seed in 0..40 {
            let model = model(seed, [1, 2, 15, 16, 17, 33, 300][seed as usize % 7]);
            let block = block(&model);
            let cursor = || BlockCursor::new(block.clone());
            let mut all = Vec::new();
            let mut walk = cursor().first();
            loop {
                all.push((walk.key().to_vec(), walk.entry().owned()));
                if !walk.next() {
                    break;
                }
            }
            assert!(all.iter().cloned().eq(model.clone()));
            let mut back = cursor().last();
            for (key, value) in model.iter().rev() {
                assert_eq!((back.key(), &back.entry().owned()), (key.as_slice(), value));
                back.previous();
            }
            let others = self::model(seed + 1000, 100);
            for key in model.keys().chain(others.keys()) {
                assert_eq!(block.get(key).map(Entry::owned), model.get(key).cloned());
                let behind = model.range(key.clone()..).next().map(|(key, _)| key.clone());
                assert_eq!(cursor().from(key).map(|c| c.key().to_vec()), behind);
                let before = model.range(..key.clone()).next_back().map(|(key, _)| key.clone());
                assert_eq!(cursor().before(key).map(|c| c.key().to_vec()), before);
            }
        }
    }

    #[test]
    fn a_small_part_does_not_keep_a_large_block() {
        let mut builder = BlockBuilder::default();
        builder.push(b"a", Entry::Value(&[1; 300]));
        builder.push(b"b", Entry::Value(&[2; 1 << 20]));
        let block = Block::new(builder.finish().to_vec()).unwrap();
        let shares = |key: &[u8]| {
            let value = block.get(key).unwrap().bytes();
            let shared = block.share(value);
            assert_eq!(shared, value);
            shared.as_ptr() == value.as_ptr()
        };
        assert!(!shares(b"a") && shares(b"b"));
    }

    #[test]
    fn what_is_no_block_is_refused() {
        assert!(Block::new(Vec::new()).is_none());
        assert!(Block::new(vec![0, 0, 0, 0]).is_none());
        assert!(Block::new(vec![9, 0, 0, 0]).is_none());
        let bytes = [0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0];
        assert!(Block::new(bytes.to_vec()).is_none(), "heads end behind the values");
    }

    #[test]
    fn keys_are_found_from_their_neighbors() {
        for seed in 0..200 {
            let random = Random::from_seed(seed);
            let below = |most: u64| random.next() % most;
            // Few letters, so that keys begin alike, and some keys and values with long heads.
            let key = || {
                let length = if below(20) == 0 { 100 + below(200) } else { below(12) };
                (0..length).map(|_| below(3) as u8).collect::<Vec<u8>>()
            };
            let value = || match below(5) {
                0 => None,
                1 => Some(vec![7; below(40_000) as usize]),
                _ => Some(vec![8; below(300) as usize]),
            };
            let model: Model = (0..=below(120)).map(|_| (key(), value())).collect();
            let block = block(&model);
            let mut wanted: Vec<Vec<u8>> = model.keys().filter(|_| below(3) > 0).cloned().collect();
            wanted.extend((0..40).map(|_| key()));
            wanted.sort();
            wanted.dedup();
            let mut last: Option<(&[u8], Place)> = None;
            for key in &wanted {
                let found = match last {
                    Some(last) => block.find_past(last, key),
                    None => block.find(key),
                };
                let entry = found.as_ref().map(|(entry, _)| match entry {
                    Entry::Deleted => None,
                    Entry::Value(_) | Entry::Shared(_) => Some(entry.bytes().to_vec()),
                });
                assert_eq!(entry.as_ref(), model.get(key), "seed {seed}");
                last = found.map(|(_, place)| (&key[..], place)).or(last);
            }
        }
    }
}
