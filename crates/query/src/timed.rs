//! A source that tells how long it was read, for clients that ask where the time of a query goes.
//!
//! Beside the one it reads from, so that others pay nothing for it. Times of several threads add up.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use base::Ctx;
use item::{Item, Value};

use crate::source::{Ordinals, SourceError};
use crate::{Batch, Direction, Path, Point, Position, Sizes, Source, Span};

/// A source with its times.
pub struct Timed<'a> {
    source: &'a dyn Source,
    index: AtomicU64,
    items: AtomicU64,
}

/// Where the time of a page went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// To understand the query.
    pub compile: Duration,
    /// To plan it.
    pub plan: Duration,
    /// To read entries of the index.
    pub index: Duration,
    /// To read items.
    pub items: Duration,
}

impl<'a> Timed<'a> {
    /// Times reads of a source from now on.
    pub fn new(source: &'a dyn Source) -> Timed<'a> {
        Timed { source, index: AtomicU64::new(0), items: AtomicU64::new(0) }
    }

    /// The times of a page that was planned in so long, and read from here since.
    pub fn times(&self, plan: Duration) -> Times {
        let time = |nanoseconds: &AtomicU64| Duration::from_nanos(nanoseconds.load(Relaxed));
        let (index, items) = (time(&self.index), time(&self.items));
        Times { compile: Duration::ZERO, plan, index, items }
    }
}

fn add<T>(sum: &AtomicU64, read: impl FnOnce() -> T) -> T {
    let started = Instant::now();
    let found = read();
    sum.fetch_add(started.elapsed().as_nanos() as u64, Relaxed);
    found
}

impl Source for Timed<'_> {
    fn partitions(&self) -> usize {
        self.source.partitions()
    }

    fn fixed_key(&self) -> Option<&[Value]> {
        self.source.fixed_key()
    }

    fn scan(
        &self,
        ctx: &Ctx,
        partition: usize,
        after: Option<u64>,
        rows_max: usize,
    ) -> Result<Batch<Item>, SourceError> {
        add(&self.items, || self.source.scan(ctx, partition, after, rows_max))
    }

    fn points(
        &self,
        ctx: &Ctx,
        partition: usize,
        points: &[Point],
        after: Option<u64>,
        rows_max: usize,
    ) -> Result<Batch<Item>, SourceError> {
        add(&self.items, || self.source.points(ctx, partition, points, after, rows_max))
    }

    fn is_indexed(&self, path: &Path) -> bool {
        self.source.is_indexed(path)
    }

    fn is_spatial(&self, path: &Path) -> bool {
        self.source.is_spatial(path)
    }

    fn is_full_text(&self, path: &Path) -> bool {
        self.source.is_full_text(path)
    }

    fn composites(&self) -> &[Vec<(Path, Direction)>] {
        self.source.composites()
    }

    fn entries(
        &self,
        ctx: &Ctx,
        partition: usize,
        span: &Span,
        direction: Direction,
        after: Option<&Position>,
        rows_max: usize,
    ) -> Result<Batch<Position>, SourceError> {
        add(&self.index, || self.source.entries(ctx, partition, span, direction, after, rows_max))
    }

    fn value_of(&self, key: &[u8]) -> Option<Value> {
        self.source.value_of(key)
    }

    fn ordinals(
        &self,
        ctx: &Ctx,
        partition: usize,
        span: &Span,
        after: Option<&Position>,
        rows_max: usize,
    ) -> Result<Ordinals, SourceError> {
        add(&self.index, || self.source.ordinals(ctx, partition, span, after, rows_max))
    }

    fn items(
        &self,
        ctx: &Ctx,
        partition: usize,
        ordinals: &[u64],
    ) -> Result<Vec<Option<Item>>, SourceError> {
        add(&self.items, || self.source.items(ctx, partition, ordinals))
    }

    fn lacking(
        &self,
        ctx: &Ctx,
        partition: usize,
        path: &Path,
        direction: Direction,
        after: Option<u64>,
        rows_max: usize,
    ) -> Result<Batch<Item>, SourceError> {
        add(&self.items, || self.source.lacking(ctx, partition, path, direction, after, rows_max))
    }

    fn may_lack(&self, partition: usize, path: &Path) -> Result<bool, SourceError> {
        self.source.may_lack(partition, path)
    }

    fn probe(&self, span: &Span, most: usize) -> Result<usize, SourceError> {
        self.source.probe(span, most)
    }

    fn count(&self, ctx: &Ctx, partition: usize, span: &Span) -> Result<Option<u64>, SourceError> {
        add(&self.index, || self.source.count(ctx, partition, span))
    }

    fn sizes(&self) -> Result<Sizes, SourceError> {
        self.source.sizes()
    }
}
