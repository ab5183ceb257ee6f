//! Running a plan, one page at a time.
//!
//! ```text
//! walk ──items──▶ block ──rows──▶ sink ──▶ page       rows come out as items come in
//!  │                 └───▶ sorter ──▶ sink ──▶ page    ORDER BY, DISTINCT, GROUP BY
//!  └── where we are                └── TOP, OFFSET, LIMIT, size of the page
//! ```
//!
//! A walk brings candidates in an order that can be resumed. The block of the query makes rows of
//! each. The sink decides which rows come out and when the page is full. Grouping, DISTINCT and
//! sorting look at all rows before the first comes out; they resume past the key of the last.

mod ahead;
mod entries;
mod keys;
mod members;
mod order;
mod ordered;
mod ranked;
mod set;
mod shortcuts;
mod sink;
mod sorter;
mod staged;
mod walk;

use std::cmp::Ordering;

use base::{Ctx, Timestamp};
use bytes::Bytes;
use item::{Item, Value};

use crate::datum::Datum;
use crate::eval::{Env, Flow, Groups, write_projection};
use crate::expr::{Grouping, Projection};
use crate::key;
use crate::plan::Shortcut;
use crate::state::Place;
use crate::udf::{NoFunctions, Udf};
use crate::{BoundQuery, Direction, Error, Page, PageEnd, PageLimits, Plan, Source, State};
use order::Order;
use sink::{Sink, Verdict};
use sorter::Sorter;
use walk::{Candidate, Mark, Reader, Walk};

/// Candidates between two looks at the clock.
const CANDIDATES_PER_CHECK: usize = 32;

/// Runs one page of a plan, from the beginning or from where an earlier page stopped.
///
/// The plan must be the one of the earlier pages, made over a source of the same scope; the data
/// may have changed. A page may be empty and still have a state.
///
/// A query that calls user-defined functions fails: [`execute_with`] is for those.
pub fn execute(
    ctx: &Ctx,
    plan: &Plan,
    source: &dyn Source,
    resume: Option<&State>,
    limits: PageLimits,
) -> Result<Page, Error> {
    execute_with(ctx, plan, source, resume, limits, &NoFunctions)
}

/// The same for a query that calls functions.
///
/// Time that is up between two items ends the page; a function that runs out of time fails it.
pub fn execute_with(
    ctx: &Ctx,
    plan: &Plan,
    source: &dyn Source,
    resume: Option<&State>,
    limits: PageLimits,
    functions: &dyn Udf,
) -> Result<Page, Error> {
    if resume.is_some_and(|state| state.fingerprint != plan.fingerprint()) {
        return Err(Error::WrongState);
    }
    let run = Run { ctx, started: ctx.now(), plan, source, limits, functions };
    match () {
        () if !plan.query.outer.is_empty() => run.staged(resume),
        () if plan.query.ranking.is_some() => run.ranked(resume),
        () if plan.query.block.grouping.is_some() => run.grouped(resume),
        () if plan.sorts || plan.query.block.distinct => run.sorted(resume),
        // Rows that come from no item have no place of their own.
        () if !plan.query.reads_items => run.sorted(resume),
        () => run.streamed(resume),
    }
}

struct Run<'a> {
    ctx: &'a Ctx,
    started: Timestamp,
    plan: &'a Plan,
    source: &'a dyn Source,
    limits: PageLimits,
    functions: &'a dyn Udf,
}

/// Called with a row, the query it is a row of, and the item it comes from.
type Visit<'v> =
    &'v mut dyn for<'e> FnMut(&mut Env<'e>, &'e BoundQuery, &Candidate) -> Result<Flow, Error>;

/// How far a streamed page got.
struct Progress {
    mark: Mark,
    /// Rows of the item that are done.
    rows: u32,
    /// All of its rows are done.
    is_finished: bool,
}

impl<'a> Run<'a> {
    fn reader(&self) -> Reader<'a> {
        let (probes, memory_bytes_max) = (&self.plan.probes[..], self.limits.memory_bytes_max);
        Reader { ctx: self.ctx, source: self.source, probes, memory_bytes_max }
    }

    fn sink(&self, resume: Option<&State>) -> Sink<'a> {
        Sink::new(self.plan, self.limits, resume.map_or(0, |state| state.seen))
    }

    /// Rows come out as items come in.
    fn streamed(&self, resume: Option<&State>) -> Result<Page, Error> {
        let mut sink = self.sink(resume);
        if sink.is_over() {
            return Ok(sink.into_page(None, PageEnd::Exhausted));
        }
        let mut walk = Walk::new(self.reader(), self.plan, resume.map(|state| &state.place))?;
        let mut skip = walk.rows_done();
        let mut progress: Option<Progress> = None;
        let (mut count, mut misses) = (0, 0);
        let is_plain = self.plan.is_told && self.plan.query.block.projection.is_item();
        loop {
            if is_plain
                && skip.is_none()
                && let Some(mark) = walk.pass_on(&mut sink)
            {
                if sink.is_over() || (sink.is_full().is_some() && walk.is_exhausted()) {
                    return Ok(sink.into_page(None, PageEnd::Exhausted));
                }
                progress = Some(Progress { mark, rows: 1, is_finished: true });
                if let Some(end) = sink.is_full() {
                    return Ok(self.stopped(sink, progress, end));
                }
                if self.ctx.deadline().is_over() {
                    return self.out_of_time(sink, progress);
                }
                misses = 0;
            }
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
            if self.is_late(count) {
                return self.out_of_time(sink, progress);
            }
        }
    }

    /// A page without progress would be asked for again and again.
    fn out_of_time(&self, sink: Sink<'a>, progress: Option<Progress>) -> Result<Page, Error> {
        if progress.is_none() {
            return Err(Error::Deadline);
        }
        Ok(self.stopped(sink, progress, PageEnd::Deadline))
    }

    fn stopped(&self, sink: Sink<'a>, progress: Option<Progress>, end: PageEnd) -> Page {
        let place = match progress {
            Some(Progress { mark, rows, is_finished }) => mark.place(rows, is_finished),
            None => Place::Replay,
        };
        sink.into_page(Some(place), end)
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
        if skip == 0 && self.is_told(candidate) && block.projection.is_item() {
            let item = candidate.item.as_ref();
            let verdict = item.map_or(Verdict::More, |item| sink.offer(item.text()));
            return Ok((verdict, u32::from(verdict != Verdict::Full)));
        }
        let mut env = self.env(candidate);
        let mut verdict = Verdict::More;
        let mut rows = 0;
        self.for_each_row_of(candidate, &mut env, &mut |env| {
            if rows < skip {
                rows += 1;
                return Ok(Flow::Continue);
            }
            // A row behind the last one is looked for, so that the last page knows that it is.
            if sink.is_full().is_some() {
                verdict = Verdict::Full;
                return Ok(Flow::Stop);
            }
            if let Some(row) = project(&block.projection, candidate.item.as_ref(), env)? {
                verdict = sink.offer(row);
            }
            if verdict == Verdict::Full {
                return Ok(Flow::Stop);
            }
            rows += 1;
            Ok(if verdict == Verdict::Over { Flow::Stop } else { Flow::Continue })
        })?;
        Ok((verdict, rows))
    }

    /// Whether the filter need not be asked: the index has said it all.
    fn is_told(&self, candidate: &Candidate) -> bool {
        let is_whole =
            matches!(&candidate.mark, Mark::Terms { position, .. } if position.cut.is_none());
        is_whole && self.plan.is_told
    }

    /// Visits the rows of one item that pass the filter.
    fn for_each_row_of<'e>(
        &self,
        candidate: &Candidate,
        env: &mut Env<'e>,
        visit: crate::eval::Visit<'e, '_>,
    ) -> Result<Flow, Error>
    where
        'a: 'e,
    {
        if candidate.item.is_none() && self.plan.query.reads_items {
            return Ok(Flow::Continue);
        }
        match self.is_told(candidate) {
            true => visit(env),
            false => self.plan.query.block.for_each_row(env, visit),
        }
    }

    fn env<'e>(&self, candidate: &'e Candidate) -> Env<'e>
    where
        'a: 'e,
    {
        let root = match &candidate.item {
            Some(item) => Datum::Node(item.root()),
            None => Datum::UNDEFINED,
        };
        let mut env = self.env_of(root);
        env.ordinal = candidate.ordinal().unwrap_or(0);
        env
    }

    /// An environment whose slot 0 is this value.
    fn env_of<'e>(&self, root: Datum<'e>) -> Env<'e>
    where
        'a: 'e,
    {
        Env { functions: self.functions, ..Env::with_root(self.ctx, self.started, root) }
    }

    /// Whether it is time to look at the clock, and the clock says that time is up. Calls of
    /// functions may be long.
    fn is_late(&self, candidates: usize) -> bool {
        let calls = !self.plan.query.functions().is_empty();
        (calls || candidates.is_multiple_of(CANDIDATES_PER_CHECK)) && self.ctx.deadline().is_over()
    }

    /// Calls `visit` with every row of every candidate, for operators that need them all.
    fn for_each_row(&self, visit: Visit<'_>) -> Result<(), Error> {
        let mut walk = Walk::new(self.reader(), self.plan, None)?;
        let mut count = 0;
        while let Some(candidate) = walk.next(usize::MAX)? {
            let mut env = self.env(&candidate);
            let flow = self.for_each_row_of(&candidate, &mut env, &mut |env| {
                visit(env, &self.plan.query, &candidate)
            })?;
            if flow == Flow::Stop {
                break;
            }
            count += 1;
            if self.is_late(count) {
                return Err(Error::Deadline);
            }
        }
        Ok(())
    }

    fn sorter(&self, sink: &Sink<'_>, resume: Option<&State>) -> Result<Sorter, Error> {
        let place = resume.map(|state| &state.place);
        Sorter::new(sink.wanted(), self.limits.memory_bytes_max, place)
    }

    fn drained(&self, sorter: Sorter, mut sink: Sink<'a>) -> Result<Page, Error> {
        match sorter.drain(&mut sink)? {
            Some((place, end)) => Ok(sink.into_page(Some(place), end)),
            None => Ok(sink.into_page(None, PageEnd::Exhausted)),
        }
    }

    /// Groups first, in the order of their keys.
    fn grouped(&self, resume: Option<&State>) -> Result<Page, Error> {
        let block = &self.plan.query.block;
        let Some(grouping) = &block.grouping else { return self.streamed(resume) };
        let sink = self.sink(resume);
        let mut sorter = self.sorter(&sink, resume)?;
        let mut env = self.env_of(Datum::UNDEFINED);
        let mut take = |key: Vec<u8>, keys, aggregates| -> Result<(), Error> {
            let value = block.projection.group_value(&mut env, keys, aggregates)?;
            let Some(value) = value else { return Ok(()) };
            let key = if block.distinct { key::canonical(&value) } else { key };
            if sorter.wants(&key) {
                sorter.insert(key, write_value(&value)?);
            }
            Ok(())
        };
        let indexed = match &self.plan.shortcut {
            Some(shortcut) => self.shortcut(shortcut)?,
            None => None,
        };
        if let Some(aggregates) = indexed {
            take(Vec::new(), Vec::new(), aggregates)?;
            return self.drained(sorter, sink);
        }
        let mut groups = Groups::new(grouping);
        let is_counted = match &self.plan.shortcut {
            Some(Shortcut::Groups { span, paths }) => {
                self.count_groups(span, paths, &mut groups)?
            }
            _ => false,
        };
        if !is_counted {
            groups = self.groups(grouping)?;
        }
        for (key, keys, aggregates) in groups.finish() {
            take(key, keys, aggregates)?;
        }
        self.drained(sorter, sink)
    }

    /// The groups of all rows.
    fn groups(&self, grouping: &Grouping) -> Result<Groups, Error> {
        let mut groups = Groups::new(grouping);
        let reader = self.reader();
        self.for_each_row(&mut |env, query, _| {
            if let Some(grouping) = &query.block.grouping {
                reader.check_memory(groups.add(grouping, env)?)?;
            }
            Ok(Flow::Continue)
        })?;
        Ok(groups)
    }

    /// All rows first, in order; ties by partition, then by ordinal. Rows that are to be distinct
    /// are told apart by themselves instead.
    fn sorted(&self, resume: Option<&State>) -> Result<Page, Error> {
        let sink = self.sink(resume);
        if sink.is_over() {
            return Ok(sink.into_page(None, PageEnd::Exhausted));
        }
        let mut sorter = self.sorter(&sink, resume)?;
        let order = Order { keys: &self.plan.query.order };
        let comes_in_order = !self.plan.sorts && !order.keys.is_empty();
        let mut row_number: (u64, u32) = (0, 0);
        self.for_each_row(&mut |env, query, candidate| {
            let mut key = Vec::new();
            if let Some(item) = &candidate.item {
                order.write(item.root(), &mut key);
            }
            if comes_in_order && sorter.is_beyond(&key) {
                return Ok(Flow::Stop);
            }
            let projection = &query.block.projection;
            if query.block.distinct {
                let Some(value) = projection.value(env)? else { return Ok(Flow::Continue) };
                key::write_value(&value, &mut key);
                if sorter.wants(&key) {
                    sorter.insert(key, write_value(&value)?);
                }
                return Ok(Flow::Continue);
            }
            let ordinal = candidate.ordinal().unwrap_or(0);
            row_number =
                if row_number.0 == ordinal { (ordinal, row_number.1 + 1) } else { (ordinal, 0) };
            self.write_tie(candidate, row_number.1, &mut key);
            if sorter.wants(&key)
                && let Some(row) = project_kept(projection, candidate.item.as_ref(), env)?
            {
                sorter.insert(key, row);
            }
            Ok(Flow::Continue)
        })?;
        self.drained(sorter, sink)
    }

    /// Appends what tells rows of equal order apart.
    fn write_tie(&self, candidate: &Candidate, row: u32, key: &mut Vec<u8>) {
        let first = self.plan.query.order.first().map(|(_, direction)| *direction);
        let ordinal = candidate.ordinal().unwrap_or(0);
        let ordinal = if first == Some(Direction::Descending) { !ordinal } else { ordinal };
        key.extend_from_slice(&(candidate.mark.partition() as u32).to_be_bytes());
        key.extend_from_slice(&ordinal.to_be_bytes());
        key.extend_from_slice(&row.to_be_bytes());
    }
}

/// An ordering read in a direction.
fn directed(ordering: Ordering, direction: Direction) -> Ordering {
    match direction {
        Direction::Ascending => ordering,
        Direction::Descending => ordering.reverse(),
    }
}

/// The text of the current row, for somebody who keeps it: an item has a copy, since what it was
/// read with may be much more.
fn project_kept<'a>(
    projection: &'a Projection,
    item: Option<&Item>,
    env: &mut Env<'a>,
) -> Result<Option<Bytes>, Error> {
    let row = project(projection, item, env)?;
    Ok(match projection.is_item() {
        true => row.map(|row| Bytes::copy_from_slice(&row)),
        false => row,
    })
}

/// The text of the current row. The item itself is not copied.
fn project<'a>(
    projection: &'a Projection,
    item: Option<&Item>,
    env: &mut Env<'a>,
) -> Result<Option<Bytes>, Error> {
    if let Some(item) = item.filter(|_| projection.is_item()) {
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
