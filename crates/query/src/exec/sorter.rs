//! Rows that must all be known before the first comes out: sorted by their keys, as many as the
//! page can hold.
//!
//! No two rows have the same key, so a key is a place: the next page takes the rows past it,
//! whatever has changed meanwhile. Of a key too long for a continuation the front is remembered,
//! and how many rows that begin with it are done.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::sink::{Sink, Verdict};
use crate::state::{Place, SORT_KEY_BYTES_MAX};
use crate::{Error, PageEnd};

pub(super) struct Sorter {
    rows: BTreeMap<Vec<u8>, Bytes>,
    /// Rows that can be of use; those with greater keys go.
    rows_max: usize,
    bytes: usize,
    bytes_max: usize,
    /// Rows were let go for lack of memory, not because they are of no use.
    is_short: bool,
    /// The last key that came out on an earlier page, or its front.
    after: Option<Vec<u8>>,
    /// Rows with that front that are done; 0 if the key is whole.
    front_rows: u32,
}

/// Bytes that a row costs besides key and text.
const ROW_BYTES: usize = 96;

impl Sorter {
    /// Takes rows past a place, as many as `rows_wanted` of which the page can use.
    pub fn new(
        rows_wanted: usize,
        bytes_max: usize,
        place: Option<&Place>,
    ) -> Result<Sorter, Error> {
        let (after, front_rows) = match place {
            None => (None, 0),
            Some(Place::Sorted { key, rows }) => (Some(key.to_vec()), *rows),
            Some(_) => return Err(Error::WrongState),
        };
        // One more, to know whether there is one.
        let rows_max = rows_wanted.saturating_add(1).saturating_add(front_rows as usize);
        let rows = BTreeMap::new();
        Ok(Sorter { rows, rows_max, bytes: 0, bytes_max, is_short: false, after, front_rows })
    }

    /// Whether a row with this key would be kept, so that others need not be made.
    pub fn wants(&self, key: &[u8]) -> bool {
        let is_past = match &self.after {
            None => true,
            Some(front) if self.front_rows > 0 => key > front.as_slice() || key.starts_with(front),
            Some(after) => key > after.as_slice(),
        };
        is_past && !self.is_beyond(key)
    }

    /// Whether neither this key nor a greater one would be kept.
    pub fn is_beyond(&self, key: &[u8]) -> bool {
        let is_full = self.rows.len() >= self.rows_max || self.is_short;
        is_full && self.rows.last_key_value().is_some_and(|(last, _)| key >= last.as_slice())
    }

    /// Keeps a row, unless one with its key is there.
    pub fn insert(&mut self, key: Vec<u8>, row: Bytes) {
        let bytes = key.len() + row.len() + ROW_BYTES;
        if self.rows.insert(key, row).is_none() {
            self.bytes += bytes;
        }
        while self.rows.len() > self.rows_max {
            self.drop_last();
        }
        while self.bytes > self.bytes_max && self.rows.len() > 1 {
            self.drop_last();
            self.is_short = true;
        }
    }

    fn drop_last(&mut self) {
        if let Some((key, row)) = self.rows.pop_last() {
            self.bytes = self.bytes.saturating_sub(key.len() + row.len() + ROW_BYTES);
        }
    }

    /// Offers the rows to the page. The place is where to go on, if anything is left.
    pub fn drain(mut self, sink: &mut Sink<'_>) -> Result<Option<(Place, PageEnd)>, Error> {
        let mut last: Option<Place> = None;
        let mut skip = self.front_rows;
        let front = self.after.take().unwrap_or_default();
        let rows = std::mem::take(&mut self.rows);
        for (key, row) in rows {
            if skip > 0 && key.starts_with(&front) {
                skip -= 1;
                last = Some(place_after(&key, last));
                continue;
            }
            let is_full = sink.is_full();
            let verdict = if is_full.is_some() { Verdict::Full } else { sink.offer(row) };
            match verdict {
                Verdict::More => last = Some(place_after(&key, last)),
                Verdict::Over => return Ok(None),
                Verdict::Full => {
                    return Ok(last.map(|place| (place, is_full.unwrap_or(PageEnd::Bytes))));
                }
            }
        }
        match last {
            Some(place) if self.is_short && !sink.is_empty() => Ok(Some((place, PageEnd::Bytes))),
            _ if self.is_short => Err(Error::TooLarge { bytes_max: self.bytes_max }),
            _ => Ok(None),
        }
    }
}

/// The place past a row, given the place past the row before it.
fn place_after(key: &[u8], before: Option<Place>) -> Place {
    let Some(front) = key.get(..SORT_KEY_BYTES_MAX) else {
        return Place::Sorted { key: Bytes::copy_from_slice(key), rows: 0 };
    };
    let rows = match before {
        Some(Place::Sorted { key, rows }) if rows > 0 && key == front => rows + 1,
        _ => 1,
    };
    Place::Sorted { key: Bytes::copy_from_slice(front), rows }
}
