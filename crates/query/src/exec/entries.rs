//! The entries of some spans, partition after partition, span after span.
//!
//! An item may have entries in several spans; it belongs to the first in which it has a value, so
//! that none comes twice. An item that is asked to have entries elsewhere too is found by leaping:
//! lists of one key come in the order of ordinals, and each list seeks what the others are at.
//!
//! Keys may be put to a test, and only items whose keys pass are loaded.

use std::collections::VecDeque;

use bytes::Bytes;
use item::{Item, Node};

use super::ahead::{Ahead, Beginning};
use super::sink::Sink;
use super::walk::{Candidate, Mark, Reader};
use crate::datum::Datum;
use crate::eval::{Env, holds};
use crate::plan::{Price, Test};
use crate::state::Place;
use crate::{Bounds, Direction, Error, Position, Segment, Span};

/// Entries of a list that are read at once. To seek costs as much as to read some hundred entries.
const LIST_ROWS: usize = 512;
/// Entries of a list that are read after a leap.
const LEAP_ROWS: usize = 64;
/// Entries whose keys are tested at once, at first and at most.
const TESTED_ROWS: std::ops::RangeInclusive<usize> = 64..=1024;

pub(super) struct EntryWalk<'a> {
    reader: Reader<'a>,
    spans: &'a [Span],
    also: &'a [Span],
    test: Option<&'a Test>,
    ahead: Ahead<Stretch<'a>>,
    partition: usize,
    span: usize,
    stretch: Stretch<'a>,
    /// The last key that was counted, if keys are.
    counted: Option<Bytes>,
}

/// An entry that was looked at.
struct Seen {
    position: Position,
    /// It did not fail a test.
    is_passed: bool,
    /// If it passed, is there, and is to be loaded.
    item: Option<Item>,
}

/// Some entries of a span with their items, and where it goes on.
#[derive(Default)]
struct Stretch<'a> {
    found: VecDeque<Seen>,
    after: Option<Position>,
    is_last: bool,
    /// The lists of `also` in the partition, once they were begun.
    lists: Vec<List<'a>>,
    /// Keys that were tested the last time.
    tested: usize,
}

impl Beginning for Stretch<'_> {
    fn rows(&self) -> usize {
        self.found.iter().filter(|seen| seen.is_passed).count()
    }

    fn bytes(&self) -> usize {
        let items = self.found.iter().filter_map(|seen| seen.item.as_ref());
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
        let counted = after.as_ref().map(|after| after.key.clone());
        let stretch = Stretch { after, ..Stretch::default() };
        let (test, ahead) = (None, Ahead::default());
        Ok(EntryWalk { reader, spans, also, test, ahead, partition, span, stretch, counted })
    }

    /// The same for entries whose keys pass.
    pub fn tested_by(self, test: &'a Test) -> EntryWalk<'a> {
        EntryWalk { test: Some(test), ..self }
    }

    pub fn next(&mut self, rows_max: usize) -> Result<Option<Candidate>, Error> {
        loop {
            let Some(seen) = self.stretch.found.pop_front() else {
                if !self.advance(rows_max)? {
                    return Ok(None);
                }
                continue;
            };
            self.count(&seen);
            let Seen { position, is_passed, item } = seen;
            let item = item.filter(|item| self.belongs_here(&position, item));
            // Whoever asks looks at the clock.
            let is_pause = !is_passed && self.stretch.found.is_empty();
            if item.is_none() && !is_pause {
                continue;
            }
            if let Some(item) = &item {
                self.reader.loaded(self.partition, item);
            }
            let (partition, range) = (self.partition, self.span as u32);
            let direction = Direction::Ascending;
            let mark = Mark::Terms { partition, range, position, direction };
            return Ok(Some(Candidate { item, mark }));
        }
    }

    /// See [`Walk::pass_on`](super::walk::Walk::pass_on). There is one span, and no test.
    pub fn pass_on(&mut self, sink: &mut Sink<'_>) -> Option<Mark> {
        debug_assert!(
            self.spans.len() == 1 && self.test.is_none(),
            "or the index has not said all"
        );
        let (mut items, mut bytes) = (0, 0);
        for seen in &mut self.stretch.found {
            let is_whole = seen.position.cut.is_none();
            let may_pass = |item: &mut Item| is_whole && sink.has_room_for(item.text_len());
            let Some(item) = seen.item.take_if(may_pass) else { break };
            items += 1;
            bytes += item.text_len();
            sink.offer(item.into_text());
        }
        let position = self.stretch.found.drain(..items).last()?.position;
        self.reader.visited(self.partition, &self.spans[self.span], items as u64);
        self.reader.ctx.meter().at(self.partition).items_read(items as u64, bytes);
        let (partition, range, direction) =
            (self.partition, self.span as u32, Direction::Ascending);
        Some(Mark::Terms { partition, range, position, direction })
    }

    /// Counts an entry that was needed.
    fn count(&mut self, seen: &Seen) {
        let is_counted = match self.test.map(|test| test.price) {
            None => true,
            Some(Price::Matches) => seen.is_passed,
            Some(Price::Keys) => {
                let is_new = self.counted.as_ref() != Some(&seen.position.key);
                if is_new {
                    self.counted = Some(seen.position.key.clone());
                }
                is_new
            }
        };
        if is_counted {
            self.reader.visited(self.partition, &self.spans[self.span], 1);
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
            self.counted = None;
        }
        if self.partition >= self.reader.source.partitions() || self.spans.is_empty() {
            return Ok(false);
        }
        let of = Of { span: &self.spans[self.span], also: self.also, test: self.test };
        let is_beginning = self.span == 0 && self.stretch.after.is_none();
        let stretch = std::mem::take(&mut self.stretch);
        self.stretch = match is_beginning {
            true => {
                self.ahead.take(self.reader, self.partition, rows_max, |reader, partition| {
                    Stretch::default().fetch(reader, partition, of, rows_max)
                })?
            }
            false => stretch.fetch(self.reader, self.partition, of, rows_max)?,
        };
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

    /// Tests read in batches of their own: whether one tells that it is the last depends on how many
    /// rows were wanted when it was read, which may have been ahead of time.
    pub fn is_exhausted(&self) -> bool {
        self.test.is_none()
            && self.stretch.found.is_empty()
            && self.stretch.is_last
            && self.span + 1 >= self.spans.len()
            && self.partition + 1 >= self.reader.source.partitions()
    }
}

/// What a stretch is of.
#[derive(Clone, Copy)]
struct Of<'a> {
    span: &'a Span,
    also: &'a [Span],
    test: Option<&'a Test>,
}

impl<'a> Stretch<'a> {
    /// What follows.
    fn fetch(
        mut self,
        reader: Reader<'_>,
        partition: usize,
        Of { span, also, test }: Of<'a>,
        rows_wanted: usize,
    ) -> Result<Stretch<'a>, Error> {
        if let Some(test) = test {
            return self.fetch_tested(reader, partition, span, test, rows_wanted);
        }
        // One more than is wanted, to know whether there is one.
        let rows_max = rows_wanted + 1;
        let mut entries = match also.is_empty() {
            true => self.entries(reader, partition, span, rows_max)?,
            false => {
                if self.lists.is_empty() {
                    self.lists = also.iter().map(|span| List::new(partition, span)).collect();
                }
                self.common_entries(reader, partition, span, rows_max)?
            }
        };
        let is_cut = entries.len() > rows_wanted;
        entries.truncate(rows_wanted);
        let count = entries.len();
        let found = reader.items_of(partition, entries)?;
        self.found.extend(found.map(|(position, item)| Seen { position, is_passed: true, item }));
        // The rest is read again when it is wanted. The lists stand where it begins, unless items came
        // short.
        let is_short = self.found.len() < count;
        if is_cut || is_short {
            self.end_here();
        }
        if is_short {
            self.lists.clear();
        }
        Ok(self)
    }

    /// Goes on behind what was found.
    fn end_here(&mut self) {
        (self.after, self.is_last) = (self.found.back().map(|seen| seen.position.clone()), false);
    }

    /// What follows, up to as many entries that pass as are wanted.
    fn fetch_tested(
        mut self,
        reader: Reader<'_>,
        partition: usize,
        span: &Span,
        test: &Test,
        rows_wanted: usize,
    ) -> Result<Stretch<'a>, Error> {
        let (first, most) = (*TESTED_ROWS.start(), *TESTED_ROWS.end());
        self.tested = (4 * self.tested).max(rows_wanted).clamp(first, most);
        let mut entries = self.entries(reader, partition, span, self.tested)?;
        let passed = test.passed(reader, &entries)?;
        let mut wanted = passed.iter().enumerate().filter(|(_, is_passed)| **is_passed);
        let past = wanted.nth(rows_wanted.max(1)).map_or(entries.len(), |(at, _)| at);
        let is_cut = past < entries.len();
        entries.truncate(past);
        let some = entries.iter().zip(&passed).filter(|(_, is_passed)| **is_passed);
        let some: Vec<Position> = some.map(|(entry, _)| entry.clone()).collect();
        let mut items = reader.items_of(partition, some)?;
        let mut is_short = false;
        for (position, is_passed) in entries.into_iter().zip(passed) {
            let item = match is_passed.then(|| items.next()) {
                None => None,
                Some(Some((_, item))) => item,
                Some(None) => {
                    is_short = true;
                    break;
                }
            };
            self.found.push_back(Seen { position, is_passed, item });
        }
        if is_cut || is_short {
            self.end_here();
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

impl Test {
    /// Which of these entries pass. One that does not hold its whole value does: its item tells.
    fn passed(&self, reader: Reader<'_>, entries: &[Position]) -> Result<Vec<bool>, Error> {
        let started = reader.ctx.now();
        let mut passed: Vec<bool> = Vec::with_capacity(entries.len());
        for (at, entry) in entries.iter().enumerate() {
            let is_passed = match passed.last() {
                Some(last) if entries[at - 1].key == entry.key => *last,
                _ => match reader.source.value_of(&entry.key) {
                    None => true,
                    Some(value) => {
                        let root = Datum::borrowed(&value);
                        let mut env = Env::with_root(reader.ctx, started, root);
                        self.hold(&mut env)?
                    }
                },
            };
            passed.push(is_passed);
        }
        Ok(passed)
    }

    fn hold<'e>(&'e self, env: &mut Env<'e>) -> Result<bool, Error> {
        for condition in &self.conditions {
            if !holds(condition, env)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Span {
    /// Whether an item has a value in the span. Others than paths are never one of several.
    pub(super) fn has(&self, root: Node<'_>) -> bool {
        match self {
            Span::Path { path, bounds } if *bounds == Bounds::ALL => !path.values(root).is_empty(),
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
