//! Items in the order of an index, merged over all partitions.
//!
//! ```text
//! ascending    items without the path, partition after partition │ entries, merged
//! descending   entries, merged │ items without the path, partition after partition
//! ```
//!
//! Ties are broken by partition, then by ordinal (descending in a descending walk). Because keys
//! are comparable across partitions, one (key, partition, ordinal) is enough to resume all of
//! them: those before the partition go on past the key, those after it begin at the key.
//!
//! Keys that do not hold their whole value come in runs of keys that begin alike. A run is taken
//! from all partitions together and sorted by the values themselves; inside it, progress is a
//! count.

use std::cmp::Ordering;
use std::collections::VecDeque;

use bytes::Bytes;
use item::Item;

use super::ahead::spread;
use super::directed;
use super::members::Members;
use super::order::Order;
use super::sink::Sink;
use super::walk::{Candidate, Found, Mark, Reader};
use crate::state::Place;
use crate::{Direction, Error, Path, Position, Span};

pub(super) struct OrderedWalk<'a> {
    reader: Reader<'a>,
    span: &'a Span,
    direction: Direction,
    order: Order<'a>,
    phases: VecDeque<Phase>,
    cursors: Vec<Cursor>,
    run: Run,
    lacking: LackingCursor<'a>,
    pages: Pages,
    /// Cursors were filled for the first time.
    is_begun: bool,
}

/// Whether every partition serves pages of its own, as to a client that merges them: each is paid
/// for whole, whatever of it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pages {
    None,
    /// As soon as it is known how many rows are wanted.
    Soon,
    /// Of so many items.
    Of(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Lacking,
    Entries,
}

/// The entries of one partition.
#[derive(Default)]
struct Cursor {
    after: Option<Position>,
    buffer: VecDeque<Found>,
    is_last: bool,
    /// Entries of the buffer that are counted already, being of a page that was served.
    paid: usize,
    /// Pages served.
    pages: u32,
    /// Entries to read next: the more, the longer it goes on.
    batch: usize,
    /// What is known about the items to come.
    members: Members,
}

/// Pages of a partition are so many times its share of the rows wanted.
const PAGE_SHARES: usize = 5;
/// Pages end early at so many bytes.
const PAGE_BYTES_MAX: usize = 4 << 20;
/// Entries read at once, at most.
const ENTRIES_MAX: usize = 256;

/// Items whose keys begin alike and do not hold the whole value, sorted.
#[derive(Default)]
struct Run {
    front: Bytes,
    /// Items taken out so far.
    done: u32,
    /// Items that earlier pages finished.
    skip: u32,
    items: VecDeque<(usize, Item)>,
}

struct LackingCursor<'a> {
    path: Option<&'a Path>,
    partition: usize,
    after: Option<u64>,
    buffer: VecDeque<Item>,
    is_last: bool,
}

/// How far a cursor is to be filled.
#[derive(Clone, Copy)]
enum Fill {
    /// Until it stands at an entry, reading so many at once.
    Entry(usize),
    /// Until it has a page of so many items.
    Page(usize),
}

impl Cursor {
    /// Reads on as far as is wanted, or to the end.
    fn fill(
        &mut self,
        reader: Reader<'_>,
        partition: usize,
        (span, direction): (&Span, Direction),
        fill: Fill,
    ) -> Result<(), Error> {
        let entries_max = match fill {
            Fill::Entry(entries) => entries,
            Fill::Page(items) => items.min(ENTRIES_MAX),
        };
        while !self.is_last && !self.is_filled(fill) {
            self.fetch(reader, partition, (span, direction), entries_max)?;
        }
        Ok(())
    }

    fn is_filled(&self, fill: Fill) -> bool {
        match fill {
            Fill::Entry(_) => !self.buffer.is_empty(),
            Fill::Page(items) => {
                let found = self.buffer.iter().filter_map(|found| found.1.as_ref());
                let sizes = found.map(Item::text_len);
                let (count, bytes) = sizes.fold((0, 0), |sum, size| (sum.0 + 1, sum.1 + size));
                count >= items || bytes >= PAGE_BYTES_MAX
            }
        }
    }

    /// Reads some more entries.
    fn fetch(
        &mut self,
        reader: Reader<'_>,
        partition: usize,
        (span, direction): (&Span, Direction),
        rows_max: usize,
    ) -> Result<(), Error> {
        let entries_max = self.batch.max(rows_max);
        let Reader { ctx, source, .. } = reader;
        let after = self.after.as_ref();
        // One more than is wanted, to know whether there is one.
        let mut batch = source.entries(ctx, partition, span, direction, after, entries_max + 1)?;
        self.is_last = batch.is_last || batch.rows.is_empty();
        if batch.rows.len() > entries_max {
            batch.rows.truncate(entries_max);
            self.is_last = false;
        }
        self.after = batch.rows.last().cloned().or(self.after.take());
        self.members.learn(reader, partition)?;
        let count = batch.rows.len();
        let found = reader.items_among(partition, batch.rows, &mut self.members)?;
        if found.len() < count {
            // The rest is read again when it is wanted.
            (self.after, self.is_last) = (found.last().map(|(entry, _)| entry.clone()), false);
        }
        self.buffer.extend(found);
        self.batch = match self.members.is_known() {
            // Nothing is loaded in vain any more, so that much can be read at once.
            true => (8 * entries_max).min(4 * ENTRIES_MAX),
            false => (2 * entries_max).min(ENTRIES_MAX),
        };
        Ok(())
    }
}

impl<'a> OrderedWalk<'a> {
    pub fn new(
        reader: Reader<'a>,
        span: &'a Span,
        direction: Direction,
        lacking: Option<&'a Path>,
        order: Order<'a>,
        place: Option<&Place>,
    ) -> Result<OrderedWalk<'a>, Error> {
        let mut phases = VecDeque::from(match direction {
            Direction::Ascending => [Phase::Lacking, Phase::Entries],
            Direction::Descending => [Phase::Entries, Phase::Lacking],
        });
        phases.retain(|phase| lacking.is_some() || *phase == Phase::Entries);
        let cursors = (0..reader.source.partitions()).map(|_| Cursor::default()).collect();
        let lacking = LackingCursor {
            path: lacking,
            partition: 0,
            after: None,
            buffer: VecDeque::new(),
            is_last: false,
        };
        let run = Run::default();
        let (pages, is_begun) = (Pages::None, false);
        let mut walk = OrderedWalk {
            reader,
            span,
            direction,
            order,
            phases,
            cursors,
            run,
            lacking,
            pages,
            is_begun,
        };
        if let Some(place) = place {
            walk.resume(place)?;
        }
        Ok(walk)
    }

    /// Has each partition serve pages of its own.
    pub fn serve_pages(&mut self) {
        self.pages = Pages::Soon;
    }

    /// Says how many rows are wanted; the first time decides about pages.
    pub fn want(&mut self, rows: usize) {
        if self.pages == Pages::Soon {
            let share = rows.div_ceil(self.cursors.len().max(1));
            self.pages = Pages::Of(share.saturating_mul(PAGE_SHARES).min(rows));
        }
    }

    fn resume(&mut self, place: &Place) -> Result<(), Error> {
        match place {
            Place::Lacking { partition, after, .. } => {
                self.enter(Phase::Lacking)?;
                self.lacking.partition = *partition;
                self.lacking.after = Some(*after);
            }
            Place::Terms { partition, key, ordinal, .. } => {
                self.enter(Phase::Entries)?;
                let (before_all, past_all) = self.edges();
                for (at, cursor) in self.cursors.iter_mut().enumerate() {
                    let ordinal = match at.cmp(partition) {
                        Ordering::Less => past_all,
                        Ordering::Equal => *ordinal,
                        Ordering::Greater => before_all,
                    };
                    cursor.after = Some(Position::exact(key.clone(), ordinal));
                }
            }
            Place::Run { key, items, .. } => {
                self.enter(Phase::Entries)?;
                let before = self.before_run(key);
                for cursor in &mut self.cursors {
                    cursor.after = Some(before.clone());
                }
                self.run.front = key.clone();
                self.run.skip = *items;
            }
            Place::Items { .. } | Place::Replay | Place::Sorted { .. } => {
                return Err(Error::WrongState);
            }
        }
        Ok(())
    }

    /// The position before all keys that begin with `front`, in the direction of the walk. No key
    /// goes on with FF.
    fn before_run(&self, front: &Bytes) -> Position {
        match self.direction {
            Direction::Ascending => Position::exact(front.clone(), 0),
            Direction::Descending => {
                Position::exact([front, &[0xFF][..]].concat().into(), u64::MAX)
            }
        }
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
                Phase::Entries => self.next_entry(rows_max)?,
            };
            if candidate.is_some() {
                return Ok(candidate);
            }
            self.phases.pop_front();
        }
        Ok(None)
    }

    /// See [`Walk::pass_on`](super::walk::Walk::pass_on). Partitions are not merged here.
    pub fn pass_on(&mut self, sink: &mut Sink<'_>) -> Option<Mark> {
        let is_plain = self.cursors.len() == 1 && self.run.items.is_empty();
        if !is_plain || self.phases.front() != Some(&Phase::Entries) {
            return None;
        }
        // One partition serves no pages of its own, so nothing is paid yet.
        let cursor = &mut self.cursors[0];
        let (mut items, mut bytes) = (0, 0);
        for (position, item) in &mut cursor.buffer {
            let is_whole = position.cut.is_none();
            let may_pass = |item: &mut Item| is_whole && sink.has_room_for(item.text_len());
            let Some(item) = item.take_if(may_pass) else { break };
            items += 1;
            bytes += item.text_len();
            sink.offer(item.into_text());
        }
        let (position, _) = cursor.buffer.drain(..items).last()?;
        self.reader.visited(0, self.span, items as u64);
        self.reader.ctx.meter().at(0).items_read(items as u64, bytes);
        let direction = self.direction;
        Some(Mark::Terms { partition: 0, range: 0, position, direction })
    }

    pub fn is_exhausted(&self) -> bool {
        let entries_done = || {
            let is_done = |cursor: &Cursor| cursor.buffer.is_empty() && cursor.is_last;
            self.run.items.is_empty() && self.cursors.iter().all(is_done)
        };
        let lacking_done = || {
            let lacking = &self.lacking;
            let is_last_partition = lacking.partition + 1 >= self.cursors.len();
            lacking.buffer.is_empty() && lacking.is_last && is_last_partition
        };
        match self.phases.iter().collect::<Vec<_>>()[..] {
            [] => true,
            [Phase::Entries] => entries_done(),
            [Phase::Lacking] => lacking_done(),
            [Phase::Entries, Phase::Lacking] => entries_done() && !self.may_lack(),
            _ => false,
        }
    }

    /// Whether items may come that have no value at the path.
    fn may_lack(&self) -> bool {
        let may_lack =
            |partition, path| self.reader.source.may_lack(partition, path).unwrap_or(true);
        let mut partitions = 0..self.cursors.len();
        self.lacking.path.is_some_and(|path| partitions.any(|partition| may_lack(partition, path)))
    }

    fn next_lacking(&mut self, rows_max: usize) -> Result<Option<Candidate>, Error> {
        let Some(path) = self.lacking.path else { return Ok(None) };
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
            let Reader { ctx, source, .. } = self.reader;
            if !source.may_lack(partition, path)? {
                cursor.is_last = true;
                continue;
            }
            let batch =
                source.lacking(ctx, partition, path, self.direction, after, rows_max + 1)?;
            cursor.after = batch.rows.last().map(Item::ordinal).or(after);
            cursor.is_last = batch.is_last || batch.rows.is_empty();
            cursor.buffer.extend(batch.rows.into_iter().filter(|item| self.reader.passes(item)));
        }
        let (partition, direction) = (self.lacking.partition, self.direction);
        Ok(self.lacking.buffer.pop_front().map(|item| {
            self.reader.visited(partition, self.span, 1);
            self.reader.loaded(partition, &item);
            let mark = Mark::Lacking { partition, ordinal: item.ordinal(), direction };
            Candidate { item: Some(item), mark }
        }))
    }

    fn next_entry(&mut self, rows_max: usize) -> Result<Option<Candidate>, Error> {
        loop {
            if let Some(candidate) = self.next_of_run() {
                return Ok(Some(candidate));
            }
            let Some(partition) = self.best(rows_max)? else { return Ok(None) };
            let Some((position, _)) = self.cursors[partition].buffer.front() else {
                return Ok(None);
            };
            if let Some(cut) = position.cut {
                let front = position.key.slice(..cut);
                self.collect_run(front, rows_max)?;
                continue;
            }
            if let Some((position, Some(item))) = self.take(partition) {
                let direction = self.direction;
                let mark = Mark::Terms { partition, range: 0, position, direction };
                return Ok(Some(Candidate { item: Some(item), mark }));
            }
        }
    }

    /// Takes the next entry of a partition, and counts it unless it was.
    fn take(&mut self, partition: usize) -> Option<Found> {
        let cursor = &mut self.cursors[partition];
        let found = cursor.buffer.pop_front()?;
        match cursor.paid {
            0 => self.pay(partition, &found),
            _ => cursor.paid -= 1,
        }
        Some(found)
    }

    fn pay(&self, partition: usize, (_, item): &Found) {
        self.reader.visited(partition, self.span, 1);
        if let Some(item) = item {
            self.reader.loaded(partition, item);
        }
    }

    /// The partition whose next entry comes first.
    fn best(&mut self, rows_max: usize) -> Result<Option<usize>, Error> {
        let share = (rows_max / self.cursors.len().max(1)).max(1);
        if !std::mem::replace(&mut self.is_begun, true) {
            self.begin(share)?;
        }
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

    /// Fills all cursors at once, if there are threads for it.
    fn begin(&mut self, share: usize) -> Result<(), Error> {
        let (order, fill) = ((self.span, self.direction), self.fill_of(share));
        let mut parts: Vec<(usize, &mut Cursor)> = self.cursors.iter_mut().enumerate().collect();
        let done = spread(self.reader, &mut parts, |reader, (partition, cursor)| {
            cursor.fill(reader, *partition, order, fill)
        });
        for (result, meter) in done.into_iter().flatten() {
            self.reader.ctx.meter().add(&meter);
            result?;
        }
        Ok(())
    }

    fn fill_of(&self, share: usize) -> Fill {
        match self.pages {
            Pages::Of(items) => Fill::Page(items),
            Pages::None | Pages::Soon => Fill::Entry(share),
        }
    }

    /// Makes sure a cursor stands at an entry if there is one.
    fn fill(&mut self, partition: usize, share: usize) -> Result<(), Error> {
        let order = (self.span, self.direction);
        if let Pages::Of(items_max) = self.pages
            && self.cursors[partition].paid == 0
        {
            let fill = Fill::Page(items_max);
            self.cursors[partition].fill(self.reader, partition, order, fill)?;
            self.pay_page(partition, items_max);
        }
        self.cursors[partition].fill(self.reader, partition, order, Fill::Entry(share))
    }

    /// Counts all of a page of a partition.
    fn pay_page(&mut self, partition: usize, items_max: usize) {
        let cursor = &self.cursors[partition];
        let mut items = 0;
        let page = cursor.buffer.iter().take_while(|found| {
            let is_open = items < items_max;
            items += usize::from(found.1.is_some());
            is_open
        });
        let paid = page.map(|found| self.pay(partition, found)).count();
        if paid > 0 && cursor.pages > 0 {
            self.reader.ctx.meter().at(partition).resumed();
        }
        let cursor = &mut self.cursors[partition];
        cursor.paid = paid;
        cursor.pages += u32::from(paid > 0);
    }

    /// Takes all items whose keys begin with `front` and sorts them by their values.
    fn collect_run(&mut self, front: Bytes, rows_max: usize) -> Result<(), Error> {
        let mut items = Vec::new();
        let mut bytes = 0;
        for partition in 0..self.cursors.len() {
            loop {
                self.fill(partition, rows_max)?;
                let next = self.cursors[partition].buffer.front();
                if !next.is_some_and(|(position, _)| position.key.starts_with(&front)) {
                    break;
                }
                let Some((_, Some(item))) = self.take(partition) else { continue };
                bytes += item.text_len() + 128;
                self.reader.check_memory(bytes)?;
                items.push((self.order.key(item.root()), partition, item));
            }
        }
        let direction = self.direction;
        items.sort_by(|(a, a_partition, a_item), (b, b_partition, b_item)| {
            a.cmp(b)
                .then(a_partition.cmp(b_partition))
                .then(directed(a_item.ordinal().cmp(&b_item.ordinal()), direction))
        });
        let skip = if self.run.front == front { std::mem::take(&mut self.run.skip) } else { 0 };
        let items = items.into_iter().map(|(_, partition, item)| (partition, item));
        self.run = Run { front, done: skip, skip: 0, items: items.skip(skip as usize).collect() };
        Ok(())
    }

    fn next_of_run(&mut self) -> Option<Candidate> {
        let (partition, item) = self.run.items.pop_front()?;
        let mark = Mark::Run { partition, key: self.run.front.clone(), index: self.run.done };
        self.run.done += 1;
        Some(Candidate { item: Some(item), mark })
    }
}
