//! Running a plan, one page at a time.
//!
//! ```text
//! walk ──items──▶ block ──rows──▶ sink ──▶ page
//!  │                               │
//!  └── where we are                └── distinct, TOP, OFFSET, LIMIT, size of the page
//! ```
//!
//! A walk brings candidates in an order that can be resumed. The block of the query makes rows of
//! each. The sink decides which rows come out and when the page is full. Grouping and sorting take
//! all rows before the first comes out; they, and DISTINCT, resume by running again and passing
//! over what was seen.

mod ordered;
mod sink;
mod walk;

use std::cmp::Ordering;

use base::{Ctx, Timestamp};
use bytes::Bytes;
use item::{Item, Value};

use crate::datum::Datum;
use crate::eval::{Env, Flow, Groups, write_projection};
use crate::expr::{Expr, Projection};
use crate::state::Place;
use crate::{BoundQuery, Direction, Error, Page, PageEnd, PageLimits, Plan, Source, State};
use sink::{Sink, Verdict};
use walk::{Candidate, Mark, Walk};

/// Candidates between two looks at the clock.
const CANDIDATES_PER_CHECK: usize = 32;

/// Runs one page of a plan, from the beginning or from where an earlier page stopped.
///
/// The plan must be the one of the earlier pages, made over a source of the same scope; the data
/// may have changed. A page may be empty and still have a state.
pub fn execute(
    ctx: &Ctx,
    plan: &Plan,
    source: &dyn Source,
    resume: Option<&State>,
    limits: PageLimits,
) -> Result<Page, Error> {
    if resume.is_some_and(|state| state.fingerprint != plan.fingerprint()) {
        return Err(Error::WrongState);
    }
    let run = Run { ctx, started: ctx.now(), plan, source, limits };
    match () {
        () if plan.query.block.grouping.is_some() => run.grouped(resume),
        () if plan.sorts => run.sorted(resume),
        () => run.streamed(resume),
    }
}

struct Run<'a> {
    ctx: &'a Ctx,
    started: Timestamp,
    plan: &'a Plan,
    source: &'a dyn Source,
    limits: PageLimits,
}

/// Called with a row, the query it is a row of, and the item it comes from.
type Visit<'v> =
    &'v mut dyn for<'e> FnMut(&mut Env<'e>, &'e BoundQuery, &Candidate) -> Result<(), Error>;

/// How far a streamed page got.
struct Progress {
    mark: Mark,
    /// Rows of the item that are done.
    rows: u32,
    /// All of its rows are done.
    is_finished: bool,
}

impl<'a> Run<'a> {
    fn sink(&self, resume: Option<&State>) -> Sink<'a> {
        let replays = self.replays();
        Sink::new(self.plan, self.limits, resume.map_or(0, |state| state.seen), replays)
    }

    /// Whether a later page starts from the beginning.
    fn replays(&self) -> bool {
        let block = &self.plan.query.block;
        block.distinct || block.grouping.is_some() || self.plan.sorts
    }

    fn walk(&self, place: Option<&Place>) -> Result<Walk<'a>, Error> {
        let place = place.filter(|_| !self.replays());
        Walk::new(self.ctx, self.plan, self.source, place)
    }

    /// Rows come out as items come in.
    fn streamed(&self, resume: Option<&State>) -> Result<Page, Error> {
        let mut sink = self.sink(resume);
        if sink.is_over() {
            return Ok(sink.into_page(None, PageEnd::Exhausted));
        }
        let mut walk = self.walk(resume.map(|state| &state.place))?;
        let mut skip = walk.rows_done();
        let mut progress: Option<Progress> = None;
        let (mut count, mut misses) = (0, 0);
        loop {
            // A filter that lets little through would ask for one item at a time; asking for as
            // many as were in vain so far reads at most twice what is needed.
            let candidate = match walk.next(sink.wanted().max(misses)) {
                Ok(Some(candidate)) => candidate,
                Ok(None) => return Ok(sink.into_page(None, PageEnd::Exhausted)),
                Err(Error::Deadline) => return self.out_of_time(sink, progress),
                Err(error) => return Err(error),
            };
            count += 1;
            let seen = sink.seen();
            let skipped = skip.take().map_or(0, |done| done.of(&candidate));
            let (verdict, rows) = self.rows_of(&candidate, skipped, &mut sink)?;
            if verdict == Verdict::Over {
                return Ok(sink.into_page(None, PageEnd::Exhausted));
            }
            misses = if sink.seen() == seen { misses + 1 } else { 0 };
            let is_finished = verdict == Verdict::More;
            let full = sink.is_full();
            progress = Some(Progress { mark: candidate.mark, rows, is_finished });
            if verdict != Verdict::More || full.is_some() {
                if is_finished && walk.is_exhausted() {
                    return Ok(sink.into_page(None, PageEnd::Exhausted));
                }
                let end = full.unwrap_or(PageEnd::Bytes);
                return Ok(self.stopped(sink, progress, end));
            }
            if count % CANDIDATES_PER_CHECK == 0 && self.ctx.deadline().is_over() {
                return self.out_of_time(sink, progress);
            }
        }
    }

    /// A page without progress would be asked for again and again.
    fn out_of_time(&self, sink: Sink<'a>, progress: Option<Progress>) -> Result<Page, Error> {
        if progress.is_none() || self.replays() && sink.is_empty() {
            return Err(Error::Deadline);
        }
        Ok(self.stopped(sink, progress, PageEnd::Deadline))
    }

    /// Without joins an item gives at most one row.
    fn makes_one_row(&self) -> bool {
        self.plan.query.block.sources.is_empty()
    }

    fn stopped(&self, sink: Sink<'a>, progress: Option<Progress>, end: PageEnd) -> Page {
        let place = match progress {
            _ if self.replays() => Place::Replay,
            Some(Progress { mark, rows, is_finished }) => mark.place(rows, is_finished),
            None => Place::Replay,
        };
        let state = State { fingerprint: self.plan.fingerprint(), seen: sink.seen(), place };
        sink.into_page(Some(state), end)
    }

    /// Offers the rows of one item to the sink; the first `skip` were offered on an earlier page.
    /// Returns the last verdict and how many rows are done.
    fn rows_of(
        &self,
        candidate: &Candidate,
        skip: u32,
        sink: &mut Sink<'a>,
    ) -> Result<(Verdict, u32), Error> {
        let block = &self.plan.query.block;
        let mut env = self.env(candidate);
        let mut verdict = Verdict::More;
        let mut rows = 0;
        block.for_each_row(&mut env, &mut |env| {
            if rows < skip {
                rows += 1;
                return Ok(Flow::Continue);
            }
            if let Some(row) = project(&block.projection, candidate.item.as_ref(), env)? {
                verdict = sink.offer(row, || block.projection.value(env))?;
            }
            if verdict == Verdict::Full {
                return Ok(Flow::Stop);
            }
            rows += 1;
            let stop = verdict == Verdict::Over || sink.is_full().is_some();
            Ok(if stop { Flow::Stop } else { Flow::Continue })
        })?;
        if verdict == Verdict::More && sink.is_full().is_some() && !self.makes_one_row() {
            // Rows of this item may be left.
            verdict = Verdict::Full;
        }
        Ok((verdict, rows))
    }

    fn env<'e>(&self, candidate: &'e Candidate) -> Env<'e>
    where
        'a: 'e,
    {
        let root = match &candidate.item {
            Some(item) => Datum::Node(item.root()),
            None => Datum::UNDEFINED,
        };
        let mut env = Env::with_root(self.ctx, self.started, root);
        env.ordinal = candidate.ordinal().unwrap_or(0);
        env
    }

    /// Calls `visit` with every row of every candidate, for operators that need them all.
    fn for_each_row(&self, visit: Visit<'_>) -> Result<(), Error> {
        let mut walk = self.walk(None)?;
        let mut count = 0;
        while let Some(candidate) = walk.next(usize::MAX)? {
            let mut env = self.env(&candidate);
            self.plan.query.block.for_each_row(&mut env, &mut |env| {
                visit(env, &self.plan.query, &candidate)?;
                Ok(Flow::Continue)
            })?;
            count += 1;
            if count % CANDIDATES_PER_CHECK == 0 && self.ctx.deadline().is_over() {
                return Err(Error::Deadline);
            }
        }
        Ok(())
    }

    fn check_memory(&self, bytes: usize) -> Result<(), Error> {
        let bytes_max = self.limits.memory_bytes_max;
        if bytes <= bytes_max { Ok(()) } else { Err(Error::TooLarge { bytes_max }) }
    }

    /// Groups first, in the order of their first rows.
    fn grouped(&self, resume: Option<&State>) -> Result<Page, Error> {
        let block = &self.plan.query.block;
        let Some(grouping) = &block.grouping else { return self.streamed(resume) };
        let mut sink = self.sink(resume);
        let mut groups = Groups::new(grouping);
        self.for_each_row(&mut |env, query, _| match &query.block.grouping {
            Some(grouping) => self.check_memory(groups.add(grouping, env)?),
            None => Ok(()),
        })?;
        let mut env = Env::with_root(self.ctx, self.started, Datum::UNDEFINED);
        for (keys, aggregates) in groups.finish() {
            let value = block.projection.group_value(&mut env, keys, aggregates)?;
            let Some(value) = value else { continue };
            let row = write_value(&value)?;
            match sink.offer(row, || Ok(Some(value)))? {
                Verdict::More => {}
                Verdict::Over => break,
                Verdict::Full => {
                    let end = sink.is_full().unwrap_or(PageEnd::Bytes);
                    return Ok(self.stopped(sink, None, end));
                }
            }
        }
        Ok(sink.into_page(None, PageEnd::Exhausted))
    }

    /// All rows first, then in order; ties by partition, then by ordinal.
    fn sorted(&self, resume: Option<&State>) -> Result<Page, Error> {
        let mut sink = self.sink(resume);
        let mut rows = self.sortable_rows()?;
        rows.sort_by(|a, b| self.compare(a, b));
        for SortableRow { row, value, .. } in rows {
            match sink.offer(row, || Ok(Some(value)))? {
                Verdict::More => {}
                Verdict::Over => break,
                Verdict::Full => {
                    let end = sink.is_full().unwrap_or(PageEnd::Bytes);
                    return Ok(self.stopped(sink, None, end));
                }
            }
        }
        Ok(sink.into_page(None, PageEnd::Exhausted))
    }

    fn sortable_rows(&self) -> Result<Vec<SortableRow>, Error> {
        let mut rows: Vec<SortableRow> = Vec::new();
        let mut bytes = 0;
        self.for_each_row(&mut |env, query, candidate| {
            let Some(item) = &candidate.item else { return Ok(()) };
            let keys = query.order.iter().map(|(path, _)| path.value(item.root())).collect();
            let Some(value) = query.block.projection.value(env)? else { return Ok(()) };
            let row = write_value(&value)?;
            bytes += 2 * row.len() + 128;
            let (partition, ordinal) = (candidate.mark.partition(), item.ordinal());
            rows.push(SortableRow { keys, partition, ordinal, row, value });
            self.check_memory(bytes)
        })?;
        Ok(rows)
    }

    fn compare(&self, a: &SortableRow, b: &SortableRow) -> Ordering {
        let order = &self.plan.query.order;
        let keys = order.iter().zip(a.keys.iter().zip(&b.keys));
        let by_keys = keys.map(|((_, direction), (a, b))| directed(a.compare(b), *direction));
        let first = order.first().map_or(Direction::Ascending, |(_, direction)| *direction);
        by_keys
            .fold(Ordering::Equal, Ordering::then)
            .then(a.partition.cmp(&b.partition))
            .then(directed(a.ordinal.cmp(&b.ordinal), first))
    }
}

struct SortableRow {
    keys: Vec<Value>,
    partition: usize,
    ordinal: u64,
    row: Bytes,
    value: Value,
}

/// An ordering read in a direction.
fn directed(ordering: Ordering, direction: Direction) -> Ordering {
    match direction {
        Direction::Ascending => ordering,
        Direction::Descending => ordering.reverse(),
    }
}

/// The text of the current row. The item itself is not copied.
fn project<'a>(
    projection: &'a Projection,
    item: Option<&Item>,
    env: &mut Env<'a>,
) -> Result<Option<Bytes>, Error> {
    if let (Projection::Value(Expr::Slot(0)), Some(item)) = (projection, item) {
        return Ok(Some(item.text()));
    }
    let mut out = Vec::new();
    let has_row = write_projection(projection, env, &mut out)?;
    Ok(has_row.then(|| out.into()))
}

fn write_value(value: &Value) -> Result<Bytes, Error> {
    let mut out = Vec::new();
    crate::eval::write_value(value, &mut out)?;
    Ok(out.into())
}
