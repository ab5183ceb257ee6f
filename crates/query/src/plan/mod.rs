//! How a query reads its items.
//!
//! ```text
//! Points    ids and partition keys are known
//! Ordered   entries of an index in the order of the ORDER BY, merged over partitions
//! Lookup    entries of single keys: equality, IN, alternatives; several lists may be intersected
//! Range     entries of a range of keys
//! Test      entries of a path whose keys pass a condition
//! Scan      everything in scope
//! ```
//!
//! Every way that could serve a query is written down first ([`Planner::alternatives`]); that
//! depends on the query, the indexing policy and the scope. Which of them is taken ([`choice`])
//! depends on data too, on counters and bounded probes, never on time. A continuation names the
//! way by its fingerprint, so that all pages of a query go the same one.
//!
//! Some aggregates are answered without looking at an item ([`shortcut`]).

mod advice;
mod candidates;
mod choice;
mod display;
mod shortcut;
mod tested;

use std::cell::OnceCell;
use std::cmp::Reverse;

use crate::constraints::{Allowed, Constraint};
use crate::routing::{Pin, Routing, routing};
use crate::state::hash;
use crate::{
    Bound, BoundQuery, Bounds, Direction, Error, Path, Point, Segment, Source, Span, State,
};
pub use advice::{IndexMention, IndexUse};
use candidates::{Candidate, FoundCandidates};
pub(crate) use shortcut::{Extreme, Shortcut};
pub(crate) use tested::{Price, Test};

/// A query with a way to run it.
#[derive(Clone, Debug)]
pub struct Plan {
    pub(crate) query: BoundQuery,
    pub(crate) access: Access,
    pub(crate) shortcut: Option<Shortcut>,
    /// Rows are sorted, because the access does not bring them in order.
    pub(crate) sorts: bool,
    /// What else the index knows of the filter: of each of these lists an item has a value in one
    /// span, or it need not be loaded.
    pub(crate) probes: Vec<Vec<Span>>,
    pub(crate) strategy: Strategy,
    lookups: usize,
    is_covered: bool,
    /// An entry that holds its whole value says all that the filter asks.
    pub(crate) is_told: bool,
}

/// What a plan is made for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// The least work: aggregates from the index, little sorted rather than much walked, partitions
    /// merged as far as rows are wanted.
    #[default]
    Least,
    /// The work a price list can count: rows of aggregates are loaded, orders are walked, and each
    /// partition of an ordered query serves a first page of its own.
    Literal,
}

impl Plan {
    /// Which query a continuation must be of to resume this plan.
    pub(crate) fn fingerprint(&self) -> u64 {
        let is_ordered = !self.sorts && !self.query.order.is_empty();
        let unfiltered =
            self.query.unfiltered_fingerprint.filter(|_| is_ordered && !self.query.block.distinct);
        unfiltered.unwrap_or(self.query.fingerprint)
    }

    /// How many conditions of the filter are single keys, or lists of them.
    pub fn lookups(&self) -> usize {
        self.lookups
    }

    /// Whether rows of equal order come with the greatest ordinal first; told to clients that merge
    /// an ORDER BY themselves, who go on past the last row they had.
    pub fn is_reversed(&self) -> Option<bool> {
        let (_, first) = self.query.order.first().filter(|_| self.query.printed.is_merged)?;
        let direction = match &self.access {
            Access::Ordered { direction, .. } => direction,
            Access::Points(_) | Access::Entries { .. } | Access::Tested { .. } => first,
            Access::Set { .. } | Access::Keys { .. } | Access::Scan => first,
            Access::Once | Access::Nothing => first,
        };
        Some(*direction == Direction::Descending)
    }

    /// Items that counters told of, without a look at any.
    pub fn items_counted(&self) -> Option<u64> {
        match self.shortcut {
            Some(Shortcut::Items(items)) => Some(items),
            Some(Shortcut::Entries(_) | Shortcut::Values { .. } | Shortcut::Groups { .. })
            | None => None,
        }
    }

    /// Whether rows only feed aggregates or are told apart, and the index knows which they are.
    pub fn is_covered(&self) -> bool {
        self.is_covered
    }
}

/// Where the items come from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Access {
    /// From nowhere: one empty row.
    Once,
    /// The filter can never hold.
    Nothing,
    Points(Vec<Point>),
    /// The entries of these spans, one span after the other. An item belongs to the first span it
    /// has a value in. With `also`, only items that have entries in all of those too.
    Entries {
        spans: Vec<Span>,
        also: Vec<Span>,
    },
    /// The entries of a span whose keys pass a test, or do not hold all that it takes to tell.
    Tested {
        span: Span,
        test: Test,
    },
    /// Items with entries in any of these spans, in the order of their ordinals.
    Set {
        spans: Vec<Span>,
    },
    /// One item for each key of a span, and one without a value at the path.
    Keys {
        span: Span,
        lacking: Option<Path>,
    },
    /// The entries of a span in order, and items without a value at the path.
    Ordered {
        span: Span,
        direction: Direction,
        lacking: Option<Path>,
    },
    Scan,
}

impl Access {
    /// The direction in which ordinals go where keys are equal.
    pub fn direction(&self) -> Direction {
        if let Access::Ordered { direction, .. } = self { *direction } else { Direction::Ascending }
    }

    /// Columns of the index it reads, if that is a composite one.
    fn columns(&self) -> usize {
        let Access::Ordered { span: Span::Composite { keys, .. }, .. } = self else { return 0 };
        keys.len()
    }

    /// Whether entries of a span lead to its items: all of them have one.
    fn reads(&self, span: &Span) -> bool {
        let tells = |own: &Span| own.tells(span);
        match self {
            Access::Entries { spans, also } => {
                spans.iter().all(tells) || also.iter().any(tells) || spans.contains(span)
            }
            Access::Set { spans } => spans.contains(span),
            Access::Keys { span: own, .. }
            | Access::Tested { span: own, .. }
            | Access::Ordered { span: own, .. } => own.tells(span),
            Access::Once | Access::Nothing | Access::Points(_) | Access::Scan => false,
        }
    }

    /// Names the access in continuations. Ranges of one order share a name: a place in the order
    /// means the same in all of them.
    pub fn fingerprint(&self) -> u32 {
        let text = if let Access::Ordered { span: Span::Path { path, .. }, direction, .. } = self {
            format!("{path}{direction}")
        } else if let Access::Ordered {
            span: Span::Composite { keys, equal, .. }, direction, ..
        } = self
        {
            format!("{keys:?}{}{direction}", equal.len())
        } else {
            self.to_string()
        };
        hash(text.as_bytes()) as u32
    }
}

impl Span {
    /// Whether every item with an entry here has one in another span too.
    fn tells(&self, other: &Span) -> bool {
        if self == other {
            return true;
        }
        let Span::Composite { keys, equal, bounds } = self else { return false };
        let Span::Path { path, bounds: wanted } = other else { return false };
        match keys.iter().position(|(own, _)| own == path) {
            Some(at) if at < equal.len() => wanted.single() == Some(&equal[at]),
            Some(at) => at == equal.len() && *bounds != Bounds::ALL && bounds == wanted,
            None => false,
        }
    }
}

/// Chooses how to run a query over a source, or finds the way an earlier page went.
pub fn plan(
    query: BoundQuery,
    partition_key_paths: &[Vec<String>],
    source: &dyn Source,
    resume: Option<&State>,
) -> Result<Plan, Error> {
    let routing = routing(&query, partition_key_paths);
    plan_by(query, &routing, source, resume, Strategy::Least)
}

/// Chooses how to run a query by a strategy. Where it leads to is known already.
pub fn plan_by(
    query: BoundQuery,
    routing: &Routing<'_>,
    source: &dyn Source,
    resume: Option<&State>,
    strategy: Strategy,
) -> Result<Plan, Error> {
    check_order(&query, source)?;
    let planner = Planner { strategy, ..Planner::new(&query, routing, source) };
    // What is known as a whole before the first row comes out may be read in any way.
    let is_blocking =
        query.block.distinct || query.block.grouping.is_some() || query.ranking.is_some();
    let access = planner.access(resume.filter(|_| !is_blocking).map(|state| state.access))?;
    let shortcut = match strategy {
        Strategy::Least => planner.shortcut()?,
        Strategy::Literal => None,
    };
    let (probes, lookups) = (planner.probes(&access), planner.lookups());
    let (is_covered, is_told) = (planner.is_covered(), planner.is_told(&access));
    let sorts = !query.order.is_empty() && !matches!(access, Access::Ordered { .. });
    Ok(Plan { query, access, shortcut, sorts, probes, strategy, lookups, is_covered, is_told })
}

/// Every plan that could serve a query, for tests that compare them.
pub(crate) fn all_plans(
    query: &BoundQuery,
    partition_key_paths: &[Vec<String>],
    source: &dyn Source,
) -> Vec<Plan> {
    let routing = routing(query, partition_key_paths);
    let planner = Planner::new(query, &routing, source);
    let plan = |access: Access| {
        let sorts = !query.order.is_empty() && !matches!(access, Access::Ordered { .. });
        let probes = planner.probes(&access);
        let (strategy, lookups) = (Strategy::Least, planner.lookups());
        let (is_covered, is_told) = (planner.is_covered(), planner.is_told(&access));
        let (query, shortcut) = (query.clone(), None);
        Plan { query, access, shortcut, sorts, probes, strategy, lookups, is_covered, is_told }
    };
    let mut plans: Vec<Plan> =
        planner.alternatives(planner.candidates()).into_iter().map(plan).collect();
    plans.extend(plan_by(query.clone(), &routing, source, None, Strategy::Literal));
    plans
}

/// Sorting needs an index, as in the service: there is no silent sort of a whole container.
fn check_order(query: &BoundQuery, source: &dyn Source) -> Result<(), Error> {
    match &query.order[..] {
        [] => Ok(()),
        [(path, _)] if source.is_indexed(path) => Ok(()),
        [(path, _)] => Err(Error::OrderByNotIndexed { path: path.clone() }),
        keys if source.composites().iter().any(|index| is_served(index, keys)) => Ok(()),
        _ => Err(Error::NoCompositeIndex),
    }
}

/// Whether an index has exactly these keys, all as they are or all reversed.
fn is_served(index: &[(Path, Direction)], keys: &[(Path, Direction)]) -> bool {
    index.len() == keys.len() && scan_direction(index, keys).is_some()
}

/// The direction in which an index brings its first keys in this order.
fn scan_direction(index: &[(Path, Direction)], keys: &[(Path, Direction)]) -> Option<Direction> {
    let same_paths = index.len() >= keys.len()
        && index.iter().zip(keys).all(|((own, _), (other, _))| own == other);
    let mut turned = index.iter().zip(keys).map(|((_, own), (_, other))| own != other);
    let is_turned = turned.next()?;
    let is_uniform = same_paths && turned.all(|turned| turned == is_turned);
    is_uniform.then_some(if is_turned { Direction::Descending } else { Direction::Ascending })
}

struct Planner<'a> {
    query: &'a BoundQuery,
    routing: &'a Routing<'a>,
    key_paths: &'a [Vec<String>],
    source: &'a dyn Source,
    strategy: Strategy,
    /// Paths of which filter or scope leave one value, one that no index cuts.
    equal: Vec<(Path, item::Value)>,
    found: OnceCell<FoundCandidates>,
}

impl<'a> Planner<'a> {
    fn new(query: &'a BoundQuery, routing: &'a Routing<'a>, source: &'a dyn Source) -> Planner<'a> {
        let (strategy, key_paths) = (Strategy::Least, routing.key_paths);
        let (equal, found) = (Vec::new(), OnceCell::new());
        let mut planner = Planner { query, routing, key_paths, source, strategy, equal, found };
        planner.equal = planner.equalities();
        planner
    }

    fn access(&self, earlier: Option<u32>) -> Result<Access, Error> {
        let candidates = self.candidates();
        let mut alternatives = self.alternatives(candidates);
        let chosen = match earlier {
            None => self.choose(candidates, &alternatives)?,
            Some(fingerprint) => alternatives
                .iter()
                .position(|access| access.fingerprint() == fingerprint)
                .ok_or(Error::WrongState)?,
        };
        Ok(alternatives.swap_remove(chosen))
    }

    /// Every way that could serve the query: a single one that is best whatever the data, or the
    /// ordered one if there is one, one for each candidate, a composite index that serves several,
    /// their intersection, keys that pass a test, and a scan.
    fn alternatives(&self, candidates: &[Candidate]) -> Vec<Access> {
        if let Some(access) = self.obvious() {
            return vec![access];
        }
        let mut all: Vec<Access> = self.ordered(candidates).into_iter().collect();
        all.extend(self.keys());
        if self.query.unfiltered_fingerprint.is_some() && !all.is_empty() {
            return all;
        }
        let composite = self.composite_candidate(candidates);
        all.extend(candidates.iter().chain(&composite).map(Candidate::access));
        all.extend(intersection(candidates));
        all.extend(self.tested());
        all.push(Access::Scan);
        all
    }

    /// What the index knows of the filter besides what led to an item.
    fn probes(&self, access: &Access) -> Vec<Vec<Span>> {
        let is_path = |span: &Span| matches!(span, Span::Path { .. });
        let mut probes: Vec<Vec<Span>> = Vec::new();
        for candidate in self.candidates() {
            let is_new = candidate.spans.iter().all(|span| is_path(span) && !access.reads(span));
            if is_new {
                probes.push(candidate.spans.clone());
            }
        }
        probes
    }

    /// How many conditions of the filter are single keys, or lists of them.
    fn lookups(&self) -> usize {
        let said = self.query.conditions().filter_map(|(_, said)| said);
        said.filter(|said| matches!(said.allowed, Allowed::Values(_))).count()
    }

    fn is_covered(&self) -> bool {
        let block = &self.query.block;
        let is_aggregate = block.grouping.is_some() || block.distinct;
        is_aggregate && block.sources.is_empty() && self.exact_candidates().is_some()
    }

    /// See [`Plan::is_told`]. What the scope implies, every item in it satisfies.
    fn is_told(&self, access: &Access) -> bool {
        let span = match access {
            Access::Ordered { span, .. } => span,
            Access::Entries { spans, also } if also.is_empty() && spans.len() == 1 => &spans[0],
            Access::Entries { .. } | Access::Set { .. } | Access::Keys { .. } => return false,
            Access::Tested { .. } => return false,
            Access::Once | Access::Nothing | Access::Points(_) | Access::Scan => return false,
        };
        let is_said = |candidate: &Candidate| match &candidate.spans[..] {
            [own @ Span::Path { path, bounds }] => {
                span.tells(own) && bounds.are_short() && path.is_short()
            }
            _ => false,
        };
        let block = &self.query.block;
        block.filter.is_some()
            && block.sources.is_empty()
            && self.exact_candidates().is_some_and(|candidates| candidates.iter().all(is_said))
    }

    fn obvious(&self) -> Option<Access> {
        if !self.query.reads_items {
            return Some(Access::Once);
        }
        let is_never = |value: &item::Value| value.as_bool() != Some(true);
        let mut conjuncts = self.query.conditions().map(|(conjunct, _)| conjunct);
        if conjuncts.any(|conjunct| conjunct.as_constant().is_some_and(is_never)) {
            return Some(Access::Nothing);
        }
        self.points()
    }

    /// Every alternative of the filter names ids, and their partition keys are known.
    fn points(&self) -> Option<Access> {
        let pins = &self.routing.pins;
        if pins.is_empty() {
            return Some(Access::Nothing);
        }
        let is_full = |pin: &Pin| pin.key.len() == self.key_paths.len() && !pin.key.is_empty();
        let mut points = Vec::new();
        for pin in pins {
            let key = match is_full(pin) {
                true => Some(pin.key.clone()),
                false if self.source.fixed_key().is_some() => None,
                false => return None,
            };
            let ids = pin.ids.as_ref()?.iter().cloned();
            points.extend(ids.map(|id| Point { key: key.clone(), id }));
        }
        Some(Access::Points(points))
    }

    /// The index that brings items in the order of the query: the composite index that most of the
    /// filter fixes the front of, or the terms of the one path.
    fn ordered(&self, candidates: &[Candidate]) -> Option<Access> {
        let order = &self.query.order;
        if order.is_empty() {
            return None;
        }
        let indexes = self.source.composites();
        let composites = indexes.iter().filter_map(|index| self.composite(index, candidates));
        // Of several the one with the least behind the order.
        let best = composites.max_by_key(|(fixed, access)| (*fixed, Reverse(access.columns())));
        if let Some((fixed, access)) = best
            && (fixed > 0 || order.len() > 1)
        {
            return Some(access);
        }
        let [(path, direction)] = &order[..] else { return None };
        let bounds = bounds_of(path, candidates);
        Some(Access::Ordered {
            // A comparison is not satisfied by an absent value.
            lacking: bounds.is_none().then(|| path.clone()),
            span: Span::Path { path: path.clone(), bounds: bounds.unwrap_or(Bounds::ALL) },
            direction: *direction,
        })
    }

    /// A composite index whose first paths the filter fixes, and whose next ones are the order.
    fn composite(
        &self,
        index: &[(Path, Direction)],
        candidates: &[Candidate],
    ) -> Option<(usize, Access)> {
        let span = self.composite_span(index, candidates);
        let Span::Composite { equal, .. } = &span else { return None };
        let (fixed, rest) = index.split_at(equal.len());
        // What is fixed needs no order.
        let is_fixed = |path: &Path| fixed.iter().any(|(own, _)| own == path);
        let is_free = |(path, _): &&(Path, Direction)| !is_fixed(path);
        let order: Vec<_> = self.query.order.iter().filter(is_free).cloned().collect();
        let direction = match &order[..] {
            [] => self.query.order.first().map(|(_, direction)| *direction)?,
            keys => scan_direction(rest, keys)?,
        };
        // To clients that merge, rows of equal order come by their ordinals, and by nothing else.
        if self.query.printed.is_merged && rest.len() > order.len() {
            return None;
        }
        Some((fixed.len(), Access::Ordered { span, direction, lacking: None }))
    }

    /// As much of a composite index as the filter leaves.
    fn composite_span(&self, index: &[(Path, Direction)], candidates: &[Candidate]) -> Span {
        let values = index.iter().map_while(|(path, _)| self.equal_value(path).cloned());
        let equal: Vec<item::Value> = values.collect();
        let next = index.get(equal.len());
        let bounds = next.and_then(|(path, _)| bounds_of(path, candidates));
        Span::Composite { keys: index.to_vec(), equal, bounds: bounds.unwrap_or(Bounds::ALL) }
    }

    /// The one value a path can have.
    fn equal_value(&self, path: &Path) -> Option<&item::Value> {
        self.equal.iter().find(|(own, _)| own == path).map(|(_, value)| value)
    }

    /// Whether a span of a composite index holds entries of the scope only, as far as the filter
    /// can tell: the scope is not one logical partition, or its key is among what is fixed.
    fn is_scoped(&self, span: &Span) -> bool {
        let Span::Composite { keys, equal, .. } = span else { return false };
        let has =
            |names: &Vec<String>| keys[..equal.len()].iter().any(|(path, _)| path.is_names(names));
        self.source.fixed_key().is_none() || self.key_paths.iter().all(has)
    }
}

/// The longest string that counts as fixed in front of a composite index: one that no index cuts.
const FIXED_BYTES_MAX: usize = 100;

impl Path {
    /// Whether no index has it abbreviated.
    fn is_short(&self) -> bool {
        let bytes = self.segments().iter().map(|segment| match segment {
            Segment::Property(name) => name.len() + 2,
            Segment::Elements => 2,
        });
        bytes.sum::<usize>() <= FIXED_BYTES_MAX
    }
}

impl Bounds {
    /// Whether no index cuts what is at the ends.
    fn are_short(&self) -> bool {
        [&self.lower, &self.upper].into_iter().all(|bound| match bound {
            Bound::Included(value) | Bound::Excluded(value) => {
                value.as_str().is_none_or(|text| text.len() <= FIXED_BYTES_MAX)
            }
            Bound::Unbounded => true,
        })
    }
}

/// The neighbouring values a path can have.
fn bounds_of(path: &Path, candidates: &[Candidate]) -> Option<Bounds> {
    candidates.iter().find_map(|candidate| match &candidate.spans[..] {
        [Span::Path { path: own, bounds }] if own == path => Some(bounds.clone()),
        _ => None,
    })
}

/// All single keys together, if there are several.
fn intersection(candidates: &[Candidate]) -> Option<Access> {
    let mut lookups = candidates.iter().filter_map(Candidate::as_lookup);
    let first = lookups.next()?.clone();
    let also: Vec<Span> = lookups.cloned().collect();
    (!also.is_empty()).then(|| Access::Entries { spans: vec![first], also })
}
