//! Where rows end: TOP, OFFSET and LIMIT, then the page.

use bytes::Bytes;

use crate::bind::Window;
use crate::{Page, PageEnd, PageLimits, Plan, State};

/// Rows that there is room for from the beginning.
const ROWS_FIRST: usize = 32;

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
    rows: Vec<Bytes>,
    bytes: usize,
}

impl<'a> Sink<'a> {
    /// A sink that goes on after `seen` rows.
    pub fn new(plan: &'a Plan, limits: PageLimits, seen: u64) -> Sink<'a> {
        let rows = Vec::with_capacity(limits.rows_max.min(ROWS_FIRST));
        Sink { plan, limits, window: plan.query.window, seen, rows, bytes: 0 }
    }

    /// Takes a row.
    pub fn offer(&mut self, row: Bytes) -> Verdict {
        if self.is_over() {
            return Verdict::Over;
        }
        let comes_out = self.seen >= self.window.offset;
        if comes_out && !self.has_room(row.len()) {
            return Verdict::Full;
        }
        self.seen += 1;
        if comes_out {
            self.bytes += row.len();
            self.rows.push(row);
        }
        if self.is_over() { Verdict::Over } else { Verdict::More }
    }

    /// Every row the window allows has been met.
    pub fn is_over(&self) -> bool {
        self.window.end.is_some_and(|end| self.seen >= end)
    }

    /// Whether a row of so many bytes would be taken or passed over.
    pub fn has_room_for(&self, bytes: usize) -> bool {
        !self.is_over() && (self.seen < self.window.offset || self.has_room(bytes))
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

    /// How many rows can still be of use: what a walk should ask for, at most.
    pub fn wanted(&self) -> usize {
        let room = (self.limits.rows_max.max(1) - self.rows.len()) as u64;
        let skipped = self.window.offset.saturating_sub(self.seen);
        let left = self.window.end.map_or(u64::MAX, |end| end - self.seen.min(end));
        usize::try_from((room + skipped).min(left)).unwrap_or(usize::MAX)
    }

    pub fn seen(&self) -> u64 {
        self.seen
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The page, to be gone on with from a place.
    pub fn into_page(self, place: Option<crate::state::Place>, end: PageEnd) -> Page {
        let state = place.map(|place| State {
            fingerprint: self.plan.fingerprint(),
            access: self.plan.access.fingerprint(),
            seen: self.seen,
            place,
        });
        Page { rows: self.rows, state, end }
    }
}
