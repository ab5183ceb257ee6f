//! Items that have an entry in any of some spans, in the order of their ordinals.
//!
//! For spans in which an item may have several entries: cells of a map, elements of an array. The
//! ordinals of a partition are collected and sorted first; they are small.

use std::collections::VecDeque;

use item::Item;

use super::walk::{Candidate, Mark, Reader};
use crate::state::Place;
use crate::{Direction, Error, Span};

/// Entries read at once.
const ENTRIES: usize = 1024;

pub(super) struct SetWalk<'a> {
    reader: Reader<'a>,
    spans: &'a [Span],
    partition: usize,
    after: Option<u64>,
    /// Ordinals of the partition that were not asked for yet, ascending; `None` if not collected.
    ordinals: Option<VecDeque<u64>>,
    buffer: VecDeque<Item>,
}

impl<'a> SetWalk<'a> {
    pub fn new(
        reader: Reader<'a>,
        spans: &'a [Span],
        place: Option<&Place>,
    ) -> Result<SetWalk<'a>, Error> {
        let (partition, after) = match place {
            None => (0, None),
            Some(Place::Items { partition, after, .. }) => (*partition, Some(*after)),
            Some(_) => return Err(Error::WrongState),
        };
        let buffer = VecDeque::new();
        Ok(SetWalk { reader, spans, partition, after, ordinals: None, buffer })
    }

    pub fn next(&mut self, rows_max: usize) -> Result<Option<Candidate>, Error> {
        while self.buffer.is_empty() {
            if self.partition >= self.reader.source.partitions() {
                return Ok(None);
            }
            let mut ordinals = match self.ordinals.take() {
                Some(ordinals) => ordinals,
                None => self.collect()?,
            };
            let wanted: Vec<u64> = ordinals.drain(..rows_max.min(ordinals.len())).collect();
            if wanted.is_empty() {
                (self.partition, self.after) = (self.partition + 1, None);
                continue;
            }
            let Reader { ctx, source, .. } = self.reader;
            let items = source.items(ctx, self.partition, &wanted)?;
            wanted[items.len()..].iter().rev().for_each(|&ordinal| ordinals.push_front(ordinal));
            self.ordinals = Some(ordinals);
            let items = items.into_iter().flatten();
            self.buffer.extend(items.filter(|item| self.reader.passes(item)));
        }
        let partition = self.partition;
        Ok(self.buffer.pop_front().map(|item| {
            self.reader.loaded(partition, &item);
            let mark = Mark::Items { partition, ordinal: item.ordinal() };
            Candidate { item: Some(item), mark }
        }))
    }

    fn collect(&self) -> Result<VecDeque<u64>, Error> {
        let Reader { ctx, source, .. } = self.reader;
        let mut ordinals = Vec::new();
        for span in self.spans {
            let mut after = None;
            loop {
                let ascending = Direction::Ascending;
                let position = after.as_ref();
                let batch =
                    source.entries(ctx, self.partition, span, ascending, position, ENTRIES)?;
                let is_last = batch.is_last || batch.rows.is_empty();
                self.reader.visited(self.partition, span, batch.rows.len() as u64);
                let fresh = batch.rows.iter().map(|entry| entry.ordinal);
                ordinals.extend(fresh.filter(|o| self.after.is_none_or(|after| *o > after)));
                self.reader.check_memory(ordinals.len() * size_of::<u64>())?;
                after = batch.rows.into_iter().next_back();
                if is_last {
                    break;
                }
            }
        }
        ordinals.sort_unstable();
        ordinals.dedup();
        Ok(ordinals.into())
    }

    pub fn is_exhausted(&self) -> bool {
        let is_collected = self.ordinals.as_ref().is_some_and(VecDeque::is_empty);
        let is_last_partition = self.partition + 1 >= self.reader.source.partitions();
        self.buffer.is_empty() && is_collected && is_last_partition
    }
}
