//! The port through which a query reads items. The engine implements it over one snapshot.
//!
//! A source stands for the physical partitions in scope of one query, narrowed to the logical
//! partitions the request or the filter pins. What it hands out:
//!
//! * Only visible items of the scope: nothing deleted, nothing expired, nothing the scope excludes.
//! * Bounded batches. A batch may be shorter than asked for, and empty only when it is the last:
//!   the query asks again, from where it stands, until [`Batch::is_last`].
//! * It counts in the meter of `ctx` which partitions it opened, and whether afresh or past a
//!   position. Entries and items are counted by the query as it uses them: what is read ahead is
//!   on nobody's bill, so that a charge does not depend on the size of batches.
//!
//! Positions travel in continuations. They mean a place between entries, not an entry: resuming
//! after a position whose item is gone, or that never was an item, is fine.
//!
//! INVARIANTS (owed by the implementor)
//! (Q1) Ordinals are unique within a partition, at least 1 and below `u64::MAX`.
//! (Q2) Key bytes of [`Position`] sort as the values they stand for (those of a composite index in
//!      its directions), and equal values have equal keys in every partition. The key of a value
//!      that was cut is never the key of a whole one.
//! (Q3) While one query runs over one source, equal calls give equal answers.

use base::Ctx;
use bytes::Bytes;
use item::{Item, Value};

use crate::{Path, Segment};

/// Longest key of a [`Position`]: eight cut strings in a composite index. A continuation holds one.
pub const KEY_BYTES_MAX: usize = 2100;

/// Where items come from. Several threads may read different partitions of it at once.
pub trait Source: Sync {
    /// How many physical partitions are in scope. They are numbered from 0 in range order.
    fn partitions(&self) -> usize;

    /// The scope, if it is one logical partition: then an id names at most one item, and every item
    /// has these values. The values at the partition key paths, [`Value::Undefined`] where there is
    /// none.
    fn fixed_key(&self) -> Option<&[Value]>;

    /// Items in ascending order of their ordinals, strictly after `after`.
    fn scan(
        &self,
        ctx: &Ctx,
        partition: usize,
        after: Option<u64>,
        rows_max: usize,
    ) -> Result<Batch<Item>, SourceError>;

    /// Of these items those that exist, as [`scan`](Source::scan) would return them. A point whose
    /// key lives in another partition, or outside the scope, is passed over.
    fn points(
        &self,
        ctx: &Ctx,
        partition: usize,
        points: &[Point],
        after: Option<u64>,
        rows_max: usize,
    ) -> Result<Batch<Item>, SourceError>;

    /// Whether spans of this path can be read now: it is in the indexing policy, and its terms are
    /// complete and current.
    fn is_indexed(&self, path: &Path) -> bool;

    /// Whether spans near a geometry at this path can be read now.
    fn is_spatial(&self, path: &Path) -> bool;

    /// Whether spans of words at this path can be read now.
    fn is_full_text(&self, path: &Path) -> bool;

    /// The composite indexes that can be read now.
    fn composites(&self) -> &[Vec<(Path, Direction)>];

    /// Entries of the index in ascending (key, ordinal) order or exactly the reverse, strictly past
    /// `after` in that direction.
    ///
    /// Entries of items outside the scope are left out as far as the ordinal tells; an entry may
    /// stand for an item that [`items`](Source::items) does not return. A term that does not hold
    /// its whole value (a long string was cut) gives a position that is not exact; such an item
    /// may lie outside the span and the query looks at it again, but an item within the span is
    /// never left out.
    fn entries(
        &self,
        ctx: &Ctx,
        partition: usize,
        span: &Span,
        direction: Direction,
        after: Option<&Position>,
        rows_max: usize,
    ) -> Result<Batch<Position>, SourceError>;

    /// The value that the key of an entry of a path stands for; `None` if it does not hold all of it.
    fn value_of(&self, key: &[u8]) -> Option<Value>;

    /// The ordinals of [`entries`](Source::entries) of a span of one key, ascending. For those who
    /// need nothing else.
    fn ordinals(
        &self,
        ctx: &Ctx,
        partition: usize,
        span: &Span,
        after: Option<&Position>,
        rows_max: usize,
    ) -> Result<Ordinals, SourceError> {
        let ascending = Direction::Ascending;
        Ok(Ordinals::of(self.entries(ctx, partition, span, ascending, after, rows_max)?))
    }

    /// The items at the first of these ordinals, each if it is visible and in scope: as many as may be
    /// held at once, at least one.
    fn items(
        &self,
        ctx: &Ctx,
        partition: usize,
        ordinals: &[u64],
    ) -> Result<Vec<Option<Item>>, SourceError>;

    /// Items without a value at `path`, in order of their ordinals in `direction`, strictly past
    /// `after` in that direction.
    fn lacking(
        &self,
        ctx: &Ctx,
        partition: usize,
        path: &Path,
        direction: Direction,
        after: Option<u64>,
        rows_max: usize,
    ) -> Result<Batch<Item>, SourceError>;

    /// Whether an indexed path may be without a value in some item of the partition. `false` only
    /// if it is known, from counters, that all have one.
    fn may_lack(&self, partition: usize, path: &Path) -> Result<bool, SourceError>;

    /// How many entries a span has, over all partitions, counted up to `most`. A probe of the
    /// planner; it is not metered.
    fn probe(&self, span: &Span, most: usize) -> Result<usize, SourceError>;

    /// How many entries of a span one partition has, if every one of them stands for an item in
    /// scope with a value in the span.
    fn count(&self, ctx: &Ctx, partition: usize, span: &Span) -> Result<Option<u64>, SourceError>;

    /// What counters say about the number of items.
    fn sizes(&self) -> Result<Sizes, SourceError>;
}

/// Numbers of items, from counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// In scope, more or less.
    pub scope: u64,
    /// In the physical partitions of the scope.
    pub partitions: u64,
    /// The number in scope is exact, and every entry of the index stands for an item, if not for
    /// one of another logical partition.
    pub is_exact: bool,
}

/// Neighbouring entries of one index.
#[derive(Clone, Debug, PartialEq)]
pub enum Span {
    /// Items that have a value within `bounds` at `path`.
    ///
    /// All JSON types are there, in the order null, booleans, numbers, strings, arrays, objects;
    /// arrays have one key, and so have objects.
    Path {
        /// Where the value is.
        path: Path,
        /// Which values.
        bounds: Bounds,
    },
    /// Items in the order of a composite index: all items, since it knows absent values too.
    Composite {
        /// Which index.
        keys: Vec<(Path, Direction)>,
        /// The values at its first paths.
        equal: Vec<Value>,
        /// What the path after them may be. Unbounded means absent values too.
        bounds: Bounds,
    },
    /// Items with a geometry at `path` that may be near another; one may have several entries.
    Near {
        /// Where the geometry is.
        path: Path,
        /// The other, as GeoJSON.
        geometry: Value,
        /// How far away they may be; 0 if they are to share a point.
        meters: f64,
    },
    /// Items with a text at `path` that has a word.
    Word {
        /// Where the text is.
        path: Path,
        /// The stem of the word.
        stem: String,
    },
}

impl Span {
    /// Whether an item may have several entries in it.
    pub fn is_manifold(&self) -> bool {
        match self {
            Span::Path { path, bounds } => {
                bounds.single().is_none() && path.segments().contains(&Segment::Elements)
            }
            Span::Composite { .. } | Span::Word { .. } => false,
            Span::Near { .. } => true,
        }
    }

    /// Whether visiting its entries is counted: a single key is sought, not walked.
    pub fn is_counted(&self) -> bool {
        match self {
            Span::Path { bounds, .. } => bounds.single().is_none(),
            Span::Composite { .. } | Span::Near { .. } => true,
            Span::Word { .. } => false,
        }
    }

    /// Whether its entries come in the order of their ordinals: they have one key.
    pub fn is_lookup(&self) -> bool {
        match self {
            Span::Path { bounds, .. } => bounds.single().is_some(),
            Span::Composite { keys, equal, .. } => keys.len() == equal.len(),
            Span::Near { .. } => false,
            Span::Word { .. } => true,
        }
    }
}

/// Some of the rows of an answer.
#[derive(Clone, Debug)]
pub struct Batch<T> {
    /// The rows, in order.
    pub rows: Vec<T>,
    /// No row follows these.
    pub is_last: bool,
}

/// The identity of one item.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The full partition key, one value for each path, [`Value::Undefined`] where the item has
    /// none; `None` if the scope fixes it.
    pub key: Option<Vec<Value>>,
    /// The id.
    pub id: String,
}

/// Which way to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Smallest first.
    Ascending,
    /// Largest first.
    Descending,
}

/// A set of neighbouring values.
///
/// Both bounds, if given, are primitive and of one type. With one bound the set goes on to the end
/// of the type of that bound, as comparisons do; without any it is every value of every type.
#[derive(Clone, Debug, PartialEq)]
pub struct Bounds {
    /// Where the set begins.
    pub lower: Bound,
    /// Where it ends.
    pub upper: Bound,
}

/// One end of [`Bounds`].
pub type Bound = std::ops::Bound<Value>;

/// A place among the [`entries`](Source::entries) of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// Order-preserving bytes of the values, without path or index.
    pub key: Bytes,
    /// The item's ordinal.
    pub ordinal: u64,
    /// Where the first value ends of which the key does not hold all, if there is one: items whose
    /// keys are alike up to there may have different values and come in any order.
    pub cut: Option<usize>,
}

/// Some [`ordinals`](Source::ordinals).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ordinals {
    /// They.
    pub ordinals: Vec<u64>,
    /// The last entry, to go on from.
    pub last: Option<Position>,
    /// Nothing follows.
    pub is_last: bool,
    /// The key does not hold the whole value.
    pub is_cut: bool,
}

impl Ordinals {
    /// The ordinals of entries.
    pub fn of(entries: Batch<Position>) -> Ordinals {
        Ordinals {
            ordinals: entries.rows.iter().map(|entry| entry.ordinal).collect(),
            is_cut: entries.rows.iter().any(|entry| entry.cut.is_some()),
            is_last: entries.is_last,
            last: entries.rows.into_iter().next_back(),
        }
    }
}

impl Position {
    /// The place of an entry whose key holds everything.
    pub fn exact(key: Bytes, ordinal: u64) -> Position {
        Position { key, ordinal, cut: None }
    }
}

/// A source could not answer.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The deadline of the context is over.
    #[error("deadline is over")]
    Deadline,
    /// What lies below failed; the engine knows what it put here.
    #[error("source failed")]
    Failed(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Bounds {
    /// Every value of every type.
    pub const ALL: Bounds =
        Bounds { lower: std::ops::Bound::Unbounded, upper: std::ops::Bound::Unbounded };

    /// Exactly this value.
    pub fn equal(value: Value) -> Bounds {
        Bounds { lower: Bound::Included(value.clone()), upper: Bound::Included(value) }
    }

    /// Whether the value, which is not undefined, is in the set.
    pub fn contains(&self, value: &Value) -> bool {
        let same_type = |bound: &Value| bound.kind() == value.kind();
        let above = match &self.lower {
            Bound::Included(bound) => same_type(bound) && value.compare(bound).is_ge(),
            Bound::Excluded(bound) => same_type(bound) && value.compare(bound).is_gt(),
            Bound::Unbounded => true,
        };
        above
            && match &self.upper {
                Bound::Included(bound) => same_type(bound) && value.compare(bound).is_le(),
                Bound::Excluded(bound) => same_type(bound) && value.compare(bound).is_lt(),
                Bound::Unbounded => true,
            }
    }

    /// The one value in the set, if it was made for one.
    pub fn single(&self) -> Option<&Value> {
        match (&self.lower, &self.upper) {
            (Bound::Included(lower), Bound::Included(upper)) if lower == upper => Some(lower),
            _ => None,
        }
    }
}
