//! Reading: points and ranges on one snapshot.

use bytes::Bytes;

use crate::{Result, Space};

/// Which way a scan walks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// Ascending keys.
    #[default]
    Forward,
    /// Descending keys.
    Backward,
}

/// Keys from `start` (inclusive) to `end` (exclusive).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// First key of the range.
    pub start: Vec<u8>,
    /// First key behind the range; `None` is the end of the space.
    pub end: Option<Vec<u8>>,
}

impl Range {
    /// Keys from `start` up to but excluding `end`.
    pub fn new(start: impl Into<Vec<u8>>, end: impl Into<Vec<u8>>) -> Range {
        Range { start: start.into(), end: Some(end.into()) }
    }

    /// All keys that begin with `prefix`.
    ///
    /// ```
    /// # use store::Range;
    /// assert_eq!(Range::prefix([1, 255]).end, Some(vec![2]));
    /// assert_eq!(Range::prefix([255]).end, None);
    /// ```
    pub fn prefix(prefix: impl Into<Vec<u8>>) -> Range {
        let start = prefix.into();
        let end = successor(&start);
        Range { start, end }
    }

    /// Whether `key` lies in the range.
    pub fn contains(&self, key: &[u8]) -> bool {
        key >= self.start.as_slice() && self.end.as_deref().is_none_or(|end| key < end)
    }

    /// Whether no key can lie in the range.
    pub fn is_empty(&self) -> bool {
        self.end.as_deref().is_some_and(|end| end <= self.start.as_slice())
    }
}

/// The first byte string behind all those that begin with `prefix`.
fn successor(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&b| b != 0xff)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

/// How far a scan goes. The scan stops at whichever bound comes first, never in the middle of a row.
#[derive(Clone, Copy, Debug)]
pub struct ScanOptions {
    /// Which way.
    pub direction: Direction,
    /// At most so many rows; at least one is returned if any is in range.
    pub rows_max: usize,
    /// Stop once keys and values together reach this size.
    pub bytes_max: usize,
    /// Leave values empty; an engine may save reading them.
    pub keys_only: bool,
}

impl Default for ScanOptions {
    fn default() -> ScanOptions {
        let direction = Direction::Forward;
        ScanOptions { direction, rows_max: usize::MAX, bytes_max: usize::MAX, keys_only: false }
    }
}

/// A key and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The whole key.
    pub key: Bytes,
    /// Its value; empty under `keys_only`.
    pub value: Bytes,
}

/// Rows of a scan, in the order walked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The rows.
    pub rows: Vec<Row>,
    /// Whether the scan stopped at a bound and rows may remain. Resume from the last key, exclusive.
    pub is_cut: bool,
}

impl Page {
    /// Takes from `rows` until a bound of `options` is reached. No row is pulled that is not kept.
    pub fn fill(rows: impl Iterator<Item = Result<Row>>, options: &ScanOptions) -> Result<Page> {
        let mut page = Page::default();
        let mut bytes = 0usize;
        for row in rows {
            let row = row?;
            bytes = bytes.saturating_add(row.key.len() + row.value.len());
            page.rows.push(row);
            if page.rows.len() >= options.rows_max || bytes >= options.bytes_max {
                page.is_cut = true;
                break;
            }
        }
        Ok(page)
    }
}

/// Which keys a [`sieve`](Reader::sieve) lets through.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Their tails.
    pub tails: std::ops::Range<u64>,
    /// Keys to look at, about.
    pub keys_max: usize,
}

/// What a [`sieve`](Reader::sieve) did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sieved {
    /// Keys looked at.
    pub keys: usize,
    /// Where to go on, past this key, if there may be more.
    pub last: Option<Vec<u8>>,
}

impl Sieved {
    /// Looks at one key and says whether to go on.
    pub fn look_at(
        &mut self,
        key: &[u8],
        wanted: &Wanted,
        act: &mut dyn FnMut(&[u8]) -> bool,
    ) -> bool {
        self.keys += 1;
        let goes_on = !wanted.tails.contains(&tail_of(key)) || act(key);
        let is_cut = !goes_on || self.keys >= wanted.keys_max;
        if is_cut {
            self.last = Some(key.to_vec());
        }
        !is_cut
    }
}

/// The number that the last eight bytes of a key are, big-endian; or all of them, if they are fewer.
pub fn tail_of(key: &[u8]) -> u64 {
    match key.last_chunk() {
        Some(tail) => u64::from_be_bytes(*tail),
        None => key.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)),
    }
}

/// Reads on one snapshot. Implementations are cheap to share and never change what they show (S5).
pub trait Reader: Send + Sync {
    /// The value of one key.
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>>;

    /// The values of many keys, in the order asked. One round trip on a remote store. They may share
    /// memory with what was not asked for: what is to be kept is to be copied.
    fn get_many(&self, space: Space, keys: &[&[u8]]) -> Result<Vec<Option<Bytes>>> {
        keys.iter().map(|key| self.get(space, key)).collect()
    }

    /// Rows of `range`.
    fn scan(&self, space: Space, range: &Range, options: ScanOptions) -> Result<Page>;

    /// Hands the keys of `range` to `act`, in the order walked, until it says false. For those who
    /// need no page of them.
    fn for_each_key(
        &self,
        space: Space,
        range: &Range,
        direction: Direction,
        act: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<()> {
        let mut rest = range.clone();
        let rows_max = 256;
        let options = ScanOptions { direction, rows_max, keys_only: true, bytes_max: usize::MAX };
        loop {
            let page = self.scan(space, &rest, options)?;
            let is_wanted = page.rows.iter().all(|row| act(&row.key));
            let Some(last) = page.rows.last().filter(|_| is_wanted && page.is_cut) else {
                return Ok(());
            };
            match direction {
                Direction::Forward => rest.start = [&last.key[..], &[0]].concat(),
                Direction::Backward => rest.end = Some(last.key.to_vec()),
            }
        }
    }

    /// Hands those keys of `range` to `act` whose [`tail_of`] is wanted, in the order walked, until it
    /// says false or enough keys were looked at. For those who want few of many.
    fn sieve(
        &self,
        space: Space,
        range: &Range,
        direction: Direction,
        wanted: &Wanted,
        act: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<Sieved> {
        let mut sieved = Sieved::default();
        self.for_each_key(space, range, direction, &mut |key| sieved.look_at(key, wanted, act))?;
        Ok(sieved)
    }

    /// How many keys lie in `range`.
    fn count(&self, space: Space, range: &Range) -> Result<u64> {
        let options = ScanOptions { keys_only: true, ..ScanOptions::default() };
        Ok(self.scan(space, range, options)?.rows.len() as u64)
    }
}
