//! Where rows end: DISTINCT, then TOP, OFFSET and LIMIT, then the page.

use std::collections::HashSet;

use bytes::Bytes;
use item::Value;

use crate::bind::Window;
use crate::eval::canonical;
use crate::{Error, Page, PageEnd, PageLimits, Plan, State};

/// What became of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Taken or passed over; more are welcome.
    More,
    /// Not taken: the page has no room for it.
    Full,
    /// No further row can come out.
    Over,
}

pub(super) struct Sink<'a> {
    plan: &'a Plan,
    limits: PageLimits,
    window: Window,
    /// Rows of the result met so far, on all pages.
    seen: u64,
    /// Rows before this one came out on earlier pages, and are met again.
    replayed: u64,
    distinct: HashSet<Vec<u8>>,
    distinct_bytes: usize,
    rows: Vec<Bytes>,
    bytes: usize,
}

impl<'a> Sink<'a> {
    /// A sink that goes on after `seen` rows, which come again if the query replays.
    pub fn new(plan: &'a Plan, limits: PageLimits, seen: u64, replays: bool) -> Sink<'a> {
        Sink {
            plan,
            limits,
            window: plan.query.window,
            seen: if replays { 0 } else { seen },
            replayed: if replays { seen } else { 0 },
            distinct: HashSet::new(),
            distinct_bytes: 0,
            rows: Vec::new(),
            bytes: 0,
        }
    }

    /// Takes a row; `value` is asked for only if rows are compared.
    pub fn offer(
        &mut self,
        row: Bytes,
        value: impl FnOnce() -> Result<Option<Value>, Error>,
    ) -> Result<Verdict, Error> {
        if self.is_over() {
            return Ok(Verdict::Over);
        }
        let comes_out = self.seen >= self.window.offset && self.seen >= self.replayed;
        if comes_out && !self.has_room(row.len()) {
            return Ok(Verdict::Full);
        }
        if self.plan.query.block.distinct && !self.is_new(value()?)? {
            return Ok(Verdict::More);
        }
        self.seen += 1;
        if comes_out {
            self.bytes += row.len();
            self.rows.push(row);
        }
        Ok(if self.is_over() { Verdict::Over } else { Verdict::More })
    }

    /// Every row the window allows has been met.
    pub fn is_over(&self) -> bool {
        self.window.end.is_some_and(|end| self.seen >= end)
    }

    fn has_room(&self, bytes: usize) -> bool {
        let fits = self.bytes + bytes <= self.limits.bytes_max || self.rows.is_empty();
        self.rows.len() < self.limits.rows_max.max(1) && fits
    }

    /// Why no further row can be taken, if so.
    pub fn is_full(&self) -> Option<PageEnd> {
        if self.rows.len() >= self.limits.rows_max.max(1) {
            Some(PageEnd::Rows)
        } else if self.bytes >= self.limits.bytes_max && !self.rows.is_empty() {
            Some(PageEnd::Bytes)
        } else {
            None
        }
    }

    fn is_new(&mut self, value: Option<Value>) -> Result<bool, Error> {
        let identity = canonical(&value.unwrap_or_default());
        self.distinct_bytes += identity.len() + 48;
        if self.distinct_bytes > self.limits.memory_bytes_max {
            return Err(Error::TooLarge { bytes_max: self.limits.memory_bytes_max });
        }
        Ok(self.distinct.insert(identity))
    }

    /// How many rows can still be of use: what a walk should ask for, at most.
    pub fn wanted(&self) -> usize {
        let room = (self.limits.rows_max.max(1) - self.rows.len()) as u64;
        let skipped = self.window.offset.max(self.replayed).saturating_sub(self.seen);
        let left = self.window.end.map_or(u64::MAX, |end| end - self.seen.min(end));
        usize::try_from((room + skipped).min(left)).unwrap_or(usize::MAX)
    }

    pub fn seen(&self) -> u64 {
        self.seen
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub fn into_page(self, state: Option<State>, end: PageEnd) -> Page {
        Page { rows: self.rows, state, end }
    }
}
