//! The entries of some spans, partition after partition, span after span.
//!
//! An item may have entries in several spans; it belongs to the first in which it has a value, so
//! that none comes twice. An item that is asked to have entries elsewhere too is found by leaping:
//! lists of one key come in the order of ordinals, and each list seeks what the others are at.

use std::collections::VecDeque;

use item::{Item, Node};

use super::ahead::{Ahead, Beginning};
use super::walk::{Candidate, Found, Mark, Reader};
use crate::state::Place;
use crate::{Direction, Error, Position, Segment, Span};

/// Entries of a list that are read at once. To seek costs as much as to read some hundred entries.
const LIST_ROWS: usize = 512;
/// Entries of a list that are read after a leap.
const LEAP_ROWS: usize = 64;

pub(super) struct EntryWalk<'a> {
    reader: Reader<'a>,
    spans: &'a [Span],
    also: &'a [Span],
    ahead: Ahead<Stretch<'a>>,
    partition: usize,
    span: usize,
    stretch: Stretch<'a>,
}

/// Some entries of a span with their items, and where it goes on.
#[derive(Default)]
struct Stretch<'a> {
    found: VecDeque<Found>,
    after: Option<Position>,
    is_last: bool,
    /// The lists of `also` in the partition, once they were begun.
    lists: Vec<List<'a>>,
}

impl Beginning for Stretch<'_> {
    fn rows(&self) -> usize {
        self.found.len()
    }

    fn bytes(&self) -> usize {
        let items = self.found.iter().filter_map(|(_, item)| item.as_ref());
        items.map(Item::text_len).sum()
    }
}

impl<'a> EntryWalk<'a> {
    pub fn new(
        reader: Reader<'a>,
        spans: &'a [Span],
        also: &'a [Span],
        place: Option<&Place>,
    ) -> Result<EntryWalk<'a>, Error> {
        let (partition, span, after) = match place {
            None => (0, 0, None),
            Some(Place::Terms { partition, range, key, ordinal, .. }) => {
                (*partition, *range as usize, Some(Position::exact(key.clone(), *ordinal)))
            }
            Some(_) => return Err(Error::WrongState),
        };
        let stretch = Stretch { after, ..Stretch::default() };
        let ahead = Ahead::default();
        Ok(EntryWalk { reader, spans, also, ahead, partition, span, stretch })
    }

    pub fn next(&mut self, rows_max: usize) -> Result<Option<Candidate>, Error> {
        loop {
            let Some((position, item)) = self.stretch.found.pop_front() else {
                if !self.advance(rows_max)? {
                    return Ok(None);
                }
                continue;
            };
            self.reader.visited(self.partition, &self.spans[self.span], 1);
            let Some(item) = item.filter(|item| self.belongs_here(&position, item)) else {
                continue;
            };
            self.reader.loaded(self.partition, &item);
            let (partition, range) = (self.partition, self.span as u32);
            let direction = Direction::Ascending;
            let mark = Mark::Terms { partition, range, position, direction };
            return Ok(Some(Candidate { item: Some(item), mark }));
        }
    }

    /// Fetches from the next span that is not done; `false` if there is none.
    fn advance(&mut self, rows_max: usize) -> Result<bool, Error> {
        if self.stretch.is_last {
            self.span += 1;
            (self.stretch.after, self.stretch.is_last) = (None, false);
        }
        if self.span >= self.spans.len() {
            (self.partition, self.span) = (self.partition + 1, 0);
            self.stretch = Stretch::default();
        }
        if self.partition >= self.reader.source.partitions() || self.spans.is_empty() {
            return Ok(false);
        }
        let (span, also) = (&self.spans[self.span], self.also);
        let is_beginning = self.span == 0 && self.stretch.after.is_none();
        let stretch = std::mem::take(&mut self.stretch);
        self.stretch = match is_beginning {
            true => {
                self.ahead.take(self.reader, self.partition, rows_max, |reader, partition| {
                    Stretch::default().fetch(reader, partition, (span, also), rows_max)
                })?
            }
            false => stretch.fetch(self.reader, self.partition, (span, also), rows_max)?,
        };
        if also.is_empty() && self.stretch.found.len() >= rows_max {
            // As it would be if no more had been asked for, ahead of time.
            self.stretch.is_last = false;
        }
        Ok(true)
    }

    /// Whether the item has no value in an earlier span. A key that holds its whole value tells
    /// spans of one path apart by itself.
    fn belongs_here(&self, position: &Position, item: &Item) -> bool {
        let is_clear = position.cut.is_none() && self.are_disjoint();
        if self.spans.len() == 1 || is_clear {
            return true;
        }
        let first = self.spans.iter().position(|span| span.has(item.root()));
        first == Some(self.span)
    }

    /// Whether no item can have entries in two of the spans: they are different keys of one path
    /// without arrays.
    fn are_disjoint(&self) -> bool {
        let [Span::Path { path, .. }, ..] = self.spans else { return false };
        !path.segments().contains(&Segment::Elements)
            && self.spans.iter().all(|span| match span {
                Span::Path { path: other, bounds } => other == path && bounds.single().is_some(),
                Span::Composite { .. } | Span::Near { .. } | Span::Word { .. } => false,
            })
    }

    pub fn is_exhausted(&self) -> bool {
        self.stretch.found.is_empty()
            && self.stretch.is_last
            && self.span + 1 >= self.spans.len()
            && self.partition + 1 >= self.reader.source.partitions()
    }
}

impl<'a> Stretch<'a> {
    /// What follows.
    fn fetch(
        mut self,
        reader: Reader<'_>,
        partition: usize,
        (span, also): (&'a Span, &'a [Span]),
        rows_wanted: usize,
    ) -> Result<Stretch<'a>, Error> {
        let entries = match also.is_empty() {
            true => self.entries(reader, partition, span, rows_wanted)?,
            false => {
                if self.lists.is_empty() {
                    self.lists = also.iter().map(|span| List::new(partition, span)).collect();
                }
                self.common_entries(reader, partition, span, rows_wanted)?
            }
        };
        let count = entries.len();
        self.found.extend(reader.items_of(partition, entries)?);
        if self.found.len() < count {
            // The rest is read again when it is wanted, and so are the lists.
            (self.after, self.is_last) = (self.found.back().map(|(entry, _)| entry.clone()), false);
            self.lists.clear();
        }
        Ok(self)
    }

    fn entries(
        &mut self,
        reader: Reader<'_>,
        partition: usize,
        span: &Span,
        rows_max: usize,
    ) -> Result<Vec<Position>, Error> {
        let Reader { ctx, source, .. } = reader;
        let (ascending, after) = (Direction::Ascending, self.after.as_ref());
        let batch = source.entries(ctx, partition, span, ascending, after, rows_max)?;
        self.is_last = batch.is_last || batch.rows.is_empty();
        self.after = batch.rows.last().cloned().or(self.after.take());
        Ok(batch.rows)
    }

    /// Entries whose items have entries in all the other lists, as many as are wanted.
    fn common_entries(
        &mut self,
        reader: Reader<'_>,
        partition: usize,
        span: &Span,
        rows_wanted: usize,
    ) -> Result<Vec<Position>, Error> {
        let Reader { ctx, source, .. } = reader;
        let batch = source.ordinals(ctx, partition, span, self.after.as_ref(), LIST_ROWS)?;
        self.is_last = batch.is_last || batch.ordinals.is_empty();
        let Some(last) = batch.last else { return Ok(Vec::new()) };
        let at = |ordinal: u64| Position { ordinal, ..last.clone() };
        let mut found = Vec::new();
        let mut least = 0;
        for ordinal in batch.ordinals {
            if found.len() >= rows_wanted {
                // The rest is read again when it is wanted.
                (self.after, self.is_last) = (found.last().cloned(), false);
                return Ok(found);
            }
            if ordinal < least {
                continue;
            }
            match leap(reader, &mut self.lists, ordinal)? {
                Some(other) if other == ordinal => found.push(at(ordinal)),
                Some(other) => least = other,
                None => {
                    self.is_last = true;
                    break;
                }
            }
        }
        // The lists are past what lies between.
        self.after = Some(at(last.ordinal.max(least.saturating_sub(1))));
        Ok(found)
    }
}

impl Span {
    /// Whether an item has a value in the span. Others than paths are never one of several.
    pub(super) fn has(&self, root: Node<'_>) -> bool {
        match self {
            Span::Path { path, bounds } => {
                path.values(root).iter().any(|node| bounds.contains(&node.to_value()))
            }
            Span::Composite { .. } | Span::Near { .. } | Span::Word { .. } => true,
        }
    }
}

/// How many items of a partition have entries in all lists of one key each; `None` if an entry
/// does not hold its whole value.
pub(super) fn count_common(
    reader: Reader<'_>,
    partition: usize,
    spans: &[&Span],
) -> Result<Option<u64>, Error> {
    let mut lists: Vec<List<'_>> = spans.iter().map(|span| List::new(partition, span)).collect();
    let (mut count, mut from) = (0, 0);
    while let Some(ordinal) = common(reader, &mut lists, from)? {
        if lists.iter().any(|list| list.is_cut) {
            return Ok(None);
        }
        count += 1;
        from = ordinal + 1;
    }
    reader.ctx.meter().at(partition).terms_read(count);
    Ok(Some(count))
}

/// The first ordinal from `from` on that all lists have.
fn common(reader: Reader<'_>, lists: &mut [List<'_>], mut from: u64) -> Result<Option<u64>, Error> {
    loop {
        match leap(reader, lists, from)? {
            Some(ordinal) if ordinal == from => return Ok(Some(ordinal)),
            Some(ordinal) => from = ordinal,
            None => return Ok(None),
        }
    }
}

/// `from` if all lists have it, else some greater ordinal below which they have nothing in common;
/// `None` if nothing follows.
fn leap(reader: Reader<'_>, lists: &mut [List<'_>], from: u64) -> Result<Option<u64>, Error> {
    for list in lists {
        match list.seek(reader, from)? {
            Some(ordinal) if ordinal == from => {}
            other => return Ok(other),
        }
    }
    Ok(Some(from))
}

/// The ordinals of one key in one partition, ascending.
struct List<'a> {
    partition: usize,
    span: &'a Span,
    /// Empty whenever more is read.
    buffer: VecDeque<u64>,
    /// The last entry read.
    last: Option<Position>,
    is_last: bool,
    /// Entries to read next: few after a leap, more while the list is read on.
    rows_max: usize,
    /// Its key does not hold the whole value.
    is_cut: bool,
}

impl<'a> List<'a> {
    fn new(partition: usize, span: &'a Span) -> List<'a> {
        let (buffer, rows_max) = (VecDeque::new(), LEAP_ROWS);
        let (last, is_last, is_cut) = (None, false, false);
        List { partition, span, buffer, last, is_last, rows_max, is_cut }
    }

    /// The first ordinal from `from` on.
    fn seek(&mut self, reader: Reader<'_>, from: u64) -> Result<Option<u64>, Error> {
        loop {
            while let Some(&first) = self.buffer.front() {
                if first >= from {
                    return Ok(Some(first));
                }
                self.buffer.pop_front();
            }
            if self.is_last {
                return Ok(None);
            }
            self.fetch(reader, from)?;
        }
    }

    fn fetch(&mut self, reader: Reader<'_>, from: u64) -> Result<(), Error> {
        let after = self.last.take().map(|last| {
            let is_leap = from > last.ordinal + 1;
            self.rows_max = if is_leap { LEAP_ROWS } else { (4 * self.rows_max).min(LIST_ROWS) };
            let ordinal = last.ordinal.max(from.saturating_sub(1));
            Position { ordinal, ..last }
        });
        let Reader { ctx, source, .. } = reader;
        let (partition, span) = (self.partition, self.span);
        let found = source.ordinals(ctx, partition, span, after.as_ref(), self.rows_max)?;
        self.is_last = found.is_last || found.ordinals.is_empty();
        self.is_cut |= found.is_cut;
        self.buffer = found.ordinals.into();
        self.last = found.last.or(after);
        Ok(())
    }
}
