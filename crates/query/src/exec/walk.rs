//! Bringing candidates in an order that can be resumed.

use std::collections::VecDeque;

use base::Ctx;
use bytes::Bytes;
use item::Item;

use super::entries::EntryWalk;
use super::keys::KeyWalk;
use super::members::Members;
use super::order::Order;
use super::ordered::OrderedWalk;
use super::set::SetWalk;
use super::sink::Sink;
use crate::plan::Access;
use crate::state::Place;
use crate::{Direction, Error, Plan, Point, Position, Source, Span, Strategy};

/// Most items asked for at once.
const BATCH_ROWS_MAX: usize = 256;

/// An item that may have rows.
pub(super) struct Candidate {
    /// `None` for a query without FROM, and where entries were looked at in vain for a while.
    pub item: Option<Item>,
    pub mark: Mark,
}

impl Candidate {
    pub fn ordinal(&self) -> Option<u64> {
        self.item.as_ref().map(Item::ordinal)
    }
}

/// Where a candidate stood.
#[derive(Clone, Debug)]
pub(super) enum Mark {
    Once,
    Items { partition: usize, ordinal: u64 },
    Terms { partition: usize, range: u32, position: Position, direction: Direction },
    Run { partition: usize, key: Bytes, index: u32 },
    Lacking { partition: usize, ordinal: u64, direction: Direction },
}

impl Mark {
    pub fn partition(&self) -> usize {
        match self {
            Mark::Once => 0,
            Mark::Items { partition, .. }
            | Mark::Terms { partition, .. }
            | Mark::Run { partition, .. }
            | Mark::Lacking { partition, .. } => *partition,
        }
    }

    /// Where to go on: after the item if it is finished, else at it with `rows` of its rows done.
    pub fn place(self, rows: u32, is_finished: bool) -> Place {
        let rows = if is_finished { 0 } else { rows };
        let past = |ordinal: u64, direction| match direction {
            _ if is_finished => ordinal,
            Direction::Ascending => ordinal - 1,
            Direction::Descending => ordinal + 1,
        };
        match self {
            Mark::Once => Place::Replay,
            Mark::Items { partition, ordinal } => {
                Place::Items { partition, after: past(ordinal, Direction::Ascending), rows }
            }
            Mark::Terms { partition, range, position, direction } => {
                let ordinal = past(position.ordinal, direction);
                Place::Terms { partition, range, key: position.key, ordinal, rows }
            }
            Mark::Run { key, index, .. } => {
                Place::Run { key, items: index + u32::from(is_finished), rows }
            }
            Mark::Lacking { partition, ordinal, direction } => {
                Place::Lacking { partition, after: past(ordinal, direction), rows }
            }
        }
    }
}

/// A sequence of candidates.
pub(super) struct Walk<'a> {
    kind: Kind<'a>,
    rows_done: Option<RowsDone>,
}

/// An earlier page stopped inside an item: the first candidate, unless it has gone since.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowsDone {
    /// Which item it was, if that is known.
    ordinal: Option<u64>,
    rows: u32,
}

impl RowsDone {
    /// How many rows of the first candidate are done.
    pub fn of(self, first: &Candidate) -> u32 {
        let is_same = self.ordinal.is_none() || self.ordinal == first.ordinal();
        if is_same { self.rows } else { 0 }
    }
}

enum Kind<'a> {
    Nothing,
    Once { is_done: bool },
    Items(ItemWalk<'a>),
    Entries(EntryWalk<'a>),
    Keys(KeyWalk<'a>),
    Set(SetWalk<'a>),
    Ordered(Box<OrderedWalk<'a>>),
}

/// The source with the context it counts in.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    pub ctx: &'a Ctx,
    pub source: &'a dyn Source,
    /// What items must have besides what leads to them.
    pub probes: &'a [Vec<Span>],
    /// Bytes that what is held at once may have.
    pub memory_bytes_max: usize,
}

/// An entry that leads to an item, if the item is there and is to be loaded.
pub(super) type Found = (Position, Option<Item>);

impl Reader<'_> {
    /// The items of the first entries, with them.
    pub fn items_of(
        &self,
        partition: usize,
        entries: Vec<Position>,
    ) -> Result<impl ExactSizeIterator<Item = Found>, Error> {
        let ordinals: Vec<u64> = entries.iter().map(|entry| entry.ordinal).collect();
        let items = self.source.items(self.ctx, partition, &ordinals)?;
        let pairs = entries.into_iter().zip(items);
        Ok(pairs.map(|(entry, item)| (entry, item.filter(|item| self.passes(item)))))
    }

    /// The first entries, with the items of those that may be wanted.
    pub fn items_among(
        &self,
        partition: usize,
        entries: Vec<Position>,
        members: &mut Members,
    ) -> Result<Vec<Found>, Error> {
        let ordinals = entries.iter().map(|entry| entry.ordinal);
        let ordinals: Vec<u64> = ordinals.filter(|ordinal| members.may_have(*ordinal)).collect();
        let mut items = self.source.items(self.ctx, partition, &ordinals)?.into_iter();
        let mut found = Vec::with_capacity(entries.len());
        for entry in entries {
            let mut item = None;
            if members.may_have(entry.ordinal) {
                let Some(next) = items.next() else { break };
                item = next.filter(|item| self.passes(item));
                members.note(item.is_some());
            }
            found.push((entry, item));
        }
        Ok(found)
    }

    /// Whether the index would let an item through to where it is loaded.
    pub fn passes(&self, item: &Item) -> bool {
        let has_any = |spans: &Vec<Span>| spans.iter().any(|span| span.has(item.root()));
        self.probes.iter().all(has_any)
    }

    /// Counts entries of a span that were needed. Those of a single key are free.
    pub fn visited(&self, partition: usize, span: &Span, entries: u64) {
        if span.is_counted() {
            self.ctx.meter().at(partition).terms_read(entries);
        }
    }

    /// Counts an item that was needed.
    pub fn loaded(&self, partition: usize, item: &Item) {
        self.ctx.meter().at(partition).item_read(item.text_len());
    }

    pub fn check_memory(&self, bytes: usize) -> Result<(), Error> {
        let bytes_max = self.memory_bytes_max;
        if bytes <= bytes_max { Ok(()) } else { Err(Error::TooLarge { bytes_max }) }
    }
}

impl<'a> Walk<'a> {
    pub fn new(
        reader: Reader<'a>,
        plan: &'a Plan,
        place: Option<&Place>,
    ) -> Result<Walk<'a>, Error> {
        let partitions = reader.source.partitions();
        if place.is_some_and(|place| place.partition() >= partitions.max(1)) {
            return Err(Error::WrongState);
        }
        let kind = match &plan.access {
            Access::Nothing => Kind::Nothing,
            Access::Once => Kind::Once { is_done: false },
            Access::Points(points) => Kind::Items(ItemWalk::new(reader, Some(points), place)?),
            Access::Scan => {
                let walk = ItemWalk::new(reader, None, place)?;
                // Items of one logical partition, and items that are all wanted, are found.
                let is_search =
                    plan.query.block.filter.is_some() && reader.source.fixed_key().is_none();
                Kind::Items(ItemWalk { is_search, ..walk })
            }
            Access::Entries { spans, also } => {
                Kind::Entries(EntryWalk::new(reader, spans, also, place)?)
            }
            Access::Tested { span, test } => {
                let spans = std::slice::from_ref(span);
                Kind::Entries(EntryWalk::new(reader, spans, &[], place)?.tested_by(test))
            }
            Access::Set { spans } => Kind::Set(SetWalk::new(reader, spans, place)?),
            Access::Keys { span, lacking } => {
                Kind::Keys(KeyWalk::new(reader, span, lacking.as_ref()))
            }
            Access::Ordered { span, direction, lacking } => {
                let order = Order { keys: &plan.query.order };
                let lacking = lacking.as_ref();
                let mut walk = OrderedWalk::new(reader, span, *direction, lacking, order, place)?;
                if plan.strategy == Strategy::Literal && place.is_none() && partitions > 1 {
                    walk.serve_pages();
                }
                Kind::Ordered(Box::new(walk))
            }
        };
        let direction = plan.access.direction();
        let rows_done = place.and_then(|place| place.rows_done(direction));
        Ok(Walk { kind, rows_done })
    }

    pub fn rows_done(&self) -> Option<RowsDone> {
        self.rows_done
    }

    /// The next candidate. `wanted` is how many rows can be of use, so that no more are read.
    pub fn next(&mut self, wanted: usize) -> Result<Option<Candidate>, Error> {
        let rows_max = wanted.clamp(1, BATCH_ROWS_MAX);
        match &mut self.kind {
            Kind::Nothing => Ok(None),
            Kind::Once { is_done } => {
                let is_first = !std::mem::replace(is_done, true);
                Ok(is_first.then_some(Candidate { item: None, mark: Mark::Once }))
            }
            Kind::Items(walk) => walk.next(rows_max),
            Kind::Entries(walk) => walk.next(rows_max),
            Kind::Keys(walk) => walk.next(),
            Kind::Set(walk) => walk.next(rows_max),
            Kind::Ordered(walk) => {
                walk.want(wanted);
                walk.next(rows_max)
            }
        }
    }

    /// Hands on items as they are, of those at hand whose entries hold their whole values: as many
    /// as there is room for. Returns where the last one stood.
    pub fn pass_on(&mut self, sink: &mut Sink<'_>) -> Option<Mark> {
        match &mut self.kind {
            Kind::Entries(walk) => walk.pass_on(sink),
            Kind::Ordered(walk) => walk.pass_on(sink),
            Kind::Nothing | Kind::Once { .. } | Kind::Items(_) | Kind::Keys(_) | Kind::Set(_) => {
                None
            }
        }
    }

    /// Whether it is known that no candidate follows.
    pub fn is_exhausted(&self) -> bool {
        match &self.kind {
            Kind::Nothing => true,
            Kind::Once { is_done } => *is_done,
            Kind::Items(walk) => walk.is_exhausted(),
            Kind::Entries(walk) => walk.is_exhausted(),
            // Its rows are sorted before they come out.
            Kind::Keys(_) => false,
            Kind::Set(walk) => walk.is_exhausted(),
            Kind::Ordered(walk) => walk.is_exhausted(),
        }
    }
}

impl Place {
    fn partition(&self) -> usize {
        match self {
            Place::Items { partition, .. }
            | Place::Terms { partition, .. }
            | Place::Lacking { partition, .. } => *partition,
            Place::Run { .. } | Place::Replay | Place::Sorted { .. } => 0,
        }
    }

    fn rows_done(&self, direction: Direction) -> Option<RowsDone> {
        let next = |ordinal: u64| match direction {
            Direction::Ascending => ordinal.saturating_add(1),
            Direction::Descending => ordinal.saturating_sub(1),
        };
        let (ordinal, rows) = match self {
            Place::Items { after, rows, .. } => (Some(after.saturating_add(1)), *rows),
            Place::Terms { ordinal, rows, .. } => (Some(next(*ordinal)), *rows),
            Place::Lacking { after, rows, .. } => (Some(next(*after)), *rows),
            Place::Run { rows, .. } => (None, *rows),
            Place::Replay | Place::Sorted { .. } => return None,
        };
        Some(RowsDone { ordinal, rows })
    }
}

/// Items in ordinal order, partition after partition: a scan or a list of points.
struct ItemWalk<'a> {
    reader: Reader<'a>,
    points: Option<&'a [Point]>,
    partition: usize,
    after: Option<u64>,
    buffer: VecDeque<Item>,
    is_last: bool,
    /// A filter is tried on every item, for want of an index.
    is_search: bool,
}

impl<'a> ItemWalk<'a> {
    fn new(
        reader: Reader<'a>,
        points: Option<&'a [Point]>,
        place: Option<&Place>,
    ) -> Result<ItemWalk<'a>, Error> {
        let (partition, after) = match place {
            None => (0, None),
            Some(Place::Items { partition, after, .. }) => (*partition, Some(*after)),
            Some(_) => return Err(Error::WrongState),
        };
        let buffer = VecDeque::new();
        let (is_last, is_search) = (false, false);
        Ok(ItemWalk { reader, points, partition, after, buffer, is_last, is_search })
    }

    fn next(&mut self, rows_max: usize) -> Result<Option<Candidate>, Error> {
        while self.buffer.is_empty() {
            if self.is_last {
                (self.partition, self.after, self.is_last) = (self.partition + 1, None, false);
            }
            if self.partition >= self.reader.source.partitions() {
                return Ok(None);
            }
            self.fetch(rows_max)?;
        }
        let partition = self.partition;
        Ok(self.buffer.pop_front().map(|item| {
            match self.is_search {
                true => self.reader.ctx.meter().at(partition).item_scanned(item.text_len()),
                false if self.reader.passes(&item) => self.reader.loaded(partition, &item),
                false => {}
            }
            let mark = Mark::Items { partition, ordinal: item.ordinal() };
            Candidate { item: Some(item), mark }
        }))
    }

    /// Reads one more than is wanted, to know whether there is one.
    fn fetch(&mut self, rows_max: usize) -> Result<(), Error> {
        let Reader { ctx, source, .. } = self.reader;
        let rows_max = rows_max + 1;
        let batch = match self.points {
            Some(points) => source.points(ctx, self.partition, points, self.after, rows_max)?,
            None => source.scan(ctx, self.partition, self.after, rows_max)?,
        };
        self.after = batch.rows.last().map(Item::ordinal).or(self.after);
        self.is_last = batch.is_last || batch.rows.is_empty();
        self.buffer.extend(batch.rows);
        Ok(())
    }

    fn is_exhausted(&self) -> bool {
        let is_last_partition = self.partition + 1 >= self.reader.source.partitions();
        self.buffer.is_empty() && self.is_last && is_last_partition
    }
}
