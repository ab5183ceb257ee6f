//! One item for each key of a span: enough for what is said of distinct values.
//!
//! Entries of a key that was met are passed over without looking at their items, and leapt over
//! when they are many. Keys that do not hold their whole value are met as often as they come.

use std::collections::VecDeque;

use bytes::Bytes;
use item::Item;

use super::walk::{Candidate, Mark, Reader};
use crate::{Direction, Error, Path, Position, Span};

/// Entries read at once.
const ENTRIES: usize = 256;
/// After so many entries of one key the rest of them is leapt over.
const LEAP: usize = 32;

pub(super) struct KeyWalk<'a> {
    reader: Reader<'a>,
    span: &'a Span,
    /// One item without the path belongs to the result too.
    lacking: Option<&'a Path>,
    partition: usize,
    after: Option<Position>,
    last_key: Option<Bytes>,
    /// Entries whose items are to be looked at.
    fresh: Vec<Position>,
    buffer: VecDeque<Item>,
    is_last: bool,
}

impl<'a> KeyWalk<'a> {
    pub fn new(reader: Reader<'a>, span: &'a Span, lacking: Option<&'a Path>) -> KeyWalk<'a> {
        let (fresh, buffer) = (Vec::new(), VecDeque::new());
        let (partition, after, last_key, is_last) = (0, None, None, false);
        KeyWalk { reader, span, lacking, partition, after, last_key, fresh, buffer, is_last }
    }

    pub fn next(&mut self) -> Result<Option<Candidate>, Error> {
        while self.buffer.is_empty() {
            if !self.fresh.is_empty() {
                self.load()?;
                continue;
            }
            if self.is_last {
                self.partition += 1;
                (self.after, self.last_key, self.is_last) = (None, None, false);
            }
            if self.partition >= self.reader.source.partitions() {
                return Ok(None);
            }
            if self.after.is_none() {
                self.fetch_lacking()?;
            }
            self.fetch()?;
        }
        let partition = self.partition;
        Ok(self.buffer.pop_front().map(|item| {
            let mark = Mark::Items { partition, ordinal: item.ordinal() };
            Candidate { item: Some(item), mark }
        }))
    }

    fn fetch_lacking(&mut self) -> Result<(), Error> {
        let Reader { ctx, source, .. } = self.reader;
        let Some(path) = self.lacking else { return Ok(()) };
        if source.may_lack(self.partition, path)? {
            let ascending = Direction::Ascending;
            let batch = source.lacking(ctx, self.partition, path, ascending, None, 1)?;
            batch.rows.iter().for_each(|item| self.reader.loaded(self.partition, item));
            self.buffer.extend(batch.rows);
        }
        Ok(())
    }

    fn fetch(&mut self) -> Result<(), Error> {
        let Reader { ctx, source, .. } = self.reader;
        let (partition, ascending) = (self.partition, Direction::Ascending);
        let after = self.after.as_ref();
        let batch = source.entries(ctx, partition, self.span, ascending, after, ENTRIES)?;
        self.is_last = batch.is_last || batch.rows.is_empty();
        self.reader.visited(partition, self.span, batch.rows.len() as u64);
        let last = batch.rows.last().cloned();
        let mut alike = 0;
        for entry in batch.rows {
            alike += 1;
            if entry.cut.is_some() || self.last_key.as_ref() != Some(&entry.key) {
                self.last_key = Some(entry.key.clone());
                self.fresh.push(entry);
                alike = 0;
            }
        }
        self.after = match last {
            Some(last) if alike >= LEAP => Some(Position { ordinal: u64::MAX, ..last }),
            other => other,
        };
        Ok(())
    }

    /// Looks at the items of some fresh entries.
    fn load(&mut self) -> Result<(), Error> {
        let reader = self.reader;
        let found = reader.items_of(self.partition, self.fresh.clone())?;
        self.fresh.drain(..found.len());
        for (_, item) in found {
            item.iter().for_each(|item| reader.loaded(self.partition, item));
            self.buffer.extend(item);
        }
        Ok(())
    }
}
