//! Items in the order of a path, merged over all partitions.
//!
//! ```text
//! ascending    items without the path, partition after partition │ terms, merged
//! descending   terms, merged │ items without the path, partition after partition
//! ```
//!
//! Ties are broken by partition, then by ordinal (descending in a descending walk). Because keys
//! are comparable across partitions, one (key, partition, ordinal) is enough to resume all of
//! them: those before the partition go on past the key, those after it begin at the key.
//!
//! Keys that do not hold their whole value come in runs of equal keys. A run is taken from all
//! partitions together and sorted by the values themselves; inside it, progress is a count.

use std::cmp::Ordering;
use std::collections::VecDeque;

use bytes::Bytes;
use item::Item;

use super::directed;
use super::walk::{Candidate, Mark, Reader};
use crate::state::Place;
use crate::{Bounds, Direction, Error, Path, Position};

pub(super) struct OrderedWalk<'a> {
    reader: Reader<'a>,
    path: &'a Path,
    bounds: &'a Bounds,
    direction: Direction,
    phases: VecDeque<Phase>,
    cursors: Vec<Cursor>,
    run: Run,
    lacking: LackingCursor,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Lacking,
    Terms,
}

/// The terms of one partition.
#[derive(Default)]
struct Cursor {
    after: Option<Position>,
    buffer: VecDeque<(Position, Item)>,
    is_last: bool,
}

/// Items of one key that does not hold the whole value, sorted.
#[derive(Default)]
struct Run {
    key: Bytes,
    /// Items taken out so far.
    done: u32,
    /// Items that earlier pages finished.
    skip: u32,
    items: VecDeque<(usize, Item)>,
}

#[derive(Default)]
struct LackingCursor {
    partition: usize,
    after: Option<u64>,
    buffer: VecDeque<Item>,
    is_last: bool,
}

impl<'a> OrderedWalk<'a> {
    pub fn new(
        reader: Reader<'a>,
        path: &'a Path,
        bounds: &'a Bounds,
        direction: Direction,
        with_lacking: bool,
        place: Option<&Place>,
    ) -> Result<OrderedWalk<'a>, Error> {
        let mut phases = VecDeque::from(match direction {
            Direction::Ascending => [Phase::Lacking, Phase::Terms],
            Direction::Descending => [Phase::Terms, Phase::Lacking],
        });
        phases.retain(|phase| with_lacking || *phase == Phase::Terms);
        let cursors = (0..reader.source.partitions()).map(|_| Cursor::default()).collect();
        let (run, lacking) = (Run::default(), LackingCursor::default());
        let mut walk =
            OrderedWalk { reader, path, bounds, direction, phases, cursors, run, lacking };
        if let Some(place) = place {
            walk.resume(place)?;
        }
        Ok(walk)
    }

    fn resume(&mut self, place: &Place) -> Result<(), Error> {
        match place {
            Place::Lacking { partition, after, .. } => {
                self.enter(Phase::Lacking)?;
                self.lacking.partition = *partition;
                self.lacking.after = Some(*after);
            }
            Place::Terms { partition, key, ordinal, .. } => {
                self.enter(Phase::Terms)?;
                let (before_all, past_all) = self.edges();
                for (at, cursor) in self.cursors.iter_mut().enumerate() {
                    let ordinal = match at.cmp(partition) {
                        Ordering::Less => past_all,
                        Ordering::Equal => *ordinal,
                        Ordering::Greater => before_all,
                    };
                    let key = key.clone();
                    cursor.after = Some(Position { key, ordinal, is_exact: true });
                }
            }
            Place::Run { key, items, .. } => {
                self.enter(Phase::Terms)?;
                let (ordinal, _) = self.edges();
                for cursor in &mut self.cursors {
                    cursor.after = Some(Position { key: key.clone(), ordinal, is_exact: true });
                }
                self.run.key = key.clone();
                self.run.skip = *items;
            }
            Place::Items { .. } | Place::Replay => return Err(Error::WrongState),
        }
        Ok(())
    }

    /// Drops the phases before this one.
    fn enter(&mut self, phase: Phase) -> Result<(), Error> {
        while self.phases.front().is_some_and(|first| *first != phase) {
            self.phases.pop_front();
        }
        if self.phases.is_empty() { Err(Error::WrongState) } else { Ok(()) }
    }

    /// Ordinals that lie before and past all items, in the direction of the walk (Q1).
    fn edges(&self) -> (u64, u64) {
        match self.direction {
            Direction::Ascending => (0, u64::MAX),
            Direction::Descending => (u64::MAX, 0),
        }
    }

    pub fn next(&mut self, rows_max: usize) -> Result<Option<Candidate>, Error> {
        while let Some(phase) = self.phases.front() {
            let candidate = match phase {
                Phase::Lacking => self.next_lacking(rows_max)?,
                Phase::Terms => self.next_term(rows_max)?,
            };
            if candidate.is_some() {
                return Ok(candidate);
            }
            self.phases.pop_front();
        }
        Ok(None)
    }

    pub fn is_exhausted(&self) -> bool {
        let terms_done = || {
            self.run.items.is_empty()
                && self.cursors.iter().all(|cursor| cursor.buffer.is_empty() && cursor.is_last)
        };
        let lacking_done = || {
            let lacking = &self.lacking;
            let is_last_partition = lacking.partition + 1 >= self.cursors.len();
            lacking.buffer.is_empty() && lacking.is_last && is_last_partition
        };
        match self.phases.iter().collect::<Vec<_>>()[..] {
            [] => true,
            [Phase::Terms] => terms_done(),
            [Phase::Lacking] => lacking_done(),
            _ => false,
        }
    }

    fn next_lacking(&mut self, rows_max: usize) -> Result<Option<Candidate>, Error> {
        while self.lacking.buffer.is_empty() {
            let cursor = &mut self.lacking;
            if cursor.is_last {
                (cursor.partition, cursor.after, cursor.is_last) =
                    (cursor.partition + 1, None, false);
            }
            if cursor.partition >= self.cursors.len() {
                return Ok(None);
            }
            let (partition, after) = (cursor.partition, cursor.after);
            let Reader { ctx, source } = self.reader;
            let batch =
                source.lacking(ctx, partition, self.path, self.direction, after, rows_max)?;
            cursor.after = batch.rows.last().map(Item::ordinal).or(after);
            cursor.is_last = batch.is_last || batch.rows.is_empty();
            cursor.buffer.extend(batch.rows);
        }
        let (partition, direction) = (self.lacking.partition, self.direction);
        Ok(self.lacking.buffer.pop_front().map(|item| {
            let mark = Mark::Lacking { partition, ordinal: item.ordinal(), direction };
            Candidate { item: Some(item), mark }
        }))
    }

    fn next_term(&mut self, rows_max: usize) -> Result<Option<Candidate>, Error> {
        loop {
            if let Some(candidate) = self.next_of_run() {
                return Ok(Some(candidate));
            }
            let Some(partition) = self.best(rows_max)? else { return Ok(None) };
            let cursor = &mut self.cursors[partition];
            let Some((position, _)) = cursor.buffer.front() else { return Ok(None) };
            if !position.is_exact {
                let key = position.key.clone();
                self.collect_run(key, rows_max)?;
                continue;
            }
            let direction = self.direction;
            return Ok(cursor.buffer.pop_front().map(|(position, item)| {
                let mark = Mark::Terms { partition, range: 0, position, direction };
                Candidate { item: Some(item), mark }
            }));
        }
    }

    /// The partition whose next term comes first.
    fn best(&mut self, rows_max: usize) -> Result<Option<usize>, Error> {
        let share = (rows_max / self.cursors.len().max(1)).max(1);
        let mut best: Option<usize> = None;
        for partition in 0..self.cursors.len() {
            self.fill(partition, share)?;
            let head = |at: usize| self.cursors[at].buffer.front().map(|(p, _)| &p.key);
            let Some(key) = head(partition) else { continue };
            let is_better = match best.and_then(head) {
                Some(other) => directed(key.cmp(other), self.direction).is_lt(),
                None => true,
            };
            if is_better {
                best = Some(partition);
            }
        }
        Ok(best)
    }

    /// Makes sure a cursor has a term if there is one.
    fn fill(&mut self, partition: usize, rows_max: usize) -> Result<(), Error> {
        let cursor = &mut self.cursors[partition];
        if !cursor.buffer.is_empty() || cursor.is_last {
            return Ok(());
        }
        let batch = self.reader.source.range(
            self.reader.ctx,
            partition,
            self.path,
            self.bounds,
            self.direction,
            cursor.after.as_ref(),
            rows_max,
        )?;
        if let Some((position, _)) = batch.rows.last() {
            cursor.after = Some(position.clone());
        }
        cursor.is_last = batch.is_last || batch.rows.is_empty();
        cursor.buffer.extend(batch.rows);
        Ok(())
    }

    /// Takes all items of a key and sorts them by their values.
    fn collect_run(&mut self, key: Bytes, rows_max: usize) -> Result<(), Error> {
        let mut items = Vec::new();
        for partition in 0..self.cursors.len() {
            loop {
                self.fill(partition, rows_max)?;
                let buffer = &mut self.cursors[partition].buffer;
                match buffer.pop_front() {
                    Some((position, item)) if position.key == key => {
                        items.push((self.path.value(item.root()), partition, item));
                    }
                    Some(other) => {
                        buffer.push_front(other);
                        break;
                    }
                    None => break,
                }
            }
        }
        let direction = self.direction;
        items.sort_by(|(a, a_partition, a_item), (b, b_partition, b_item)| {
            directed(a.compare(b), direction)
                .then(a_partition.cmp(b_partition))
                .then(directed(a_item.ordinal().cmp(&b_item.ordinal()), direction))
        });
        let skip = if self.run.key == key { std::mem::take(&mut self.run.skip) } else { 0 };
        let items = items.into_iter().map(|(_, partition, item)| (partition, item));
        self.run = Run { key, done: skip, skip: 0, items: items.skip(skip as usize).collect() };
        Ok(())
    }

    fn next_of_run(&mut self) -> Option<Candidate> {
        let (partition, item) = self.run.items.pop_front()?;
        let mark = Mark::Run { partition, key: self.run.key.clone(), index: self.run.done };
        self.run.done += 1;
        Some(Candidate { item: Some(item), mark })
    }
}
