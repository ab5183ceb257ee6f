//! How a query reads its items.
//!
//! From the best to the last resort:
//!
//! ```text
//! Points       ids and partition keys are known
//! OrderedTerms the terms of the ORDER BY path, in order
//! TermLookup   equality on an indexed path
//! TermRange    a range of an indexed path
//! Scan         everything in scope
//! ```
//!
//! The choice depends on the query, the indexing policy and the scope, never on data, so that all
//! pages of a query have one plan.

mod display;

use crate::constraints::{Allowed, Constraint, conjuncts, constraint};
use crate::expr::Expr;
use crate::routing::{Pin, routing};
use crate::{Bound, BoundQuery, Bounds, Direction, Error, Path, Point, Source};

/// Most values of an IN list that become lookups of their own.
const LOOKUPS_MAX: usize = 1000;

/// A query with a way to run it.
#[derive(Clone, Debug)]
pub struct Plan {
    pub(crate) query: BoundQuery,
    pub(crate) access: Access,
    /// Rows are sorted in memory, because the access does not bring them in order.
    pub(crate) sorts: bool,
}

impl Plan {
    /// What a continuation must carry to resume this plan.
    pub(crate) fn fingerprint(&self) -> u64 {
        let is_ordered =
            matches!(self.access, Access::Ordered { .. }) && !self.query.block.distinct;
        let unfiltered = self.query.unfiltered_fingerprint.filter(|_| is_ordered);
        unfiltered.unwrap_or(self.query.fingerprint)
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
    Terms {
        path: Path,
        ranges: Vec<Bounds>,
    },
    Ordered {
        path: Path,
        bounds: Bounds,
        direction: Direction,
        with_lacking: bool,
    },
    Scan,
}

impl Access {
    /// The direction in which ordinals go where keys are equal.
    pub fn direction(&self) -> Direction {
        if let Access::Ordered { direction, .. } = self { *direction } else { Direction::Ascending }
    }
}

/// Chooses how to run a query over a source.
pub fn plan(
    query: BoundQuery,
    partition_key_paths: &[Vec<String>],
    source: &dyn Source,
) -> Result<Plan, Error> {
    check_order(&query, source)?;
    let planner = Planner { query: &query, key_paths: partition_key_paths, source };
    let access = planner.access();
    let sorts = !query.order.is_empty() && !matches!(access, Access::Ordered { .. });
    Ok(Plan { query, access, sorts })
}

/// Sorting needs an index, as in the service: there is no silent sort of a whole container.
fn check_order(query: &BoundQuery, source: &dyn Source) -> Result<(), Error> {
    match &query.order[..] {
        [] => Ok(()),
        [(path, _)] if source.is_indexed(path) => Ok(()),
        [(path, _)] => Err(Error::OrderByNotIndexed { path: path.clone() }),
        keys if source.has_composite(keys) => Ok(()),
        _ => Err(Error::NoCompositeIndex),
    }
}

struct Planner<'a> {
    query: &'a BoundQuery,
    key_paths: &'a [Vec<String>],
    source: &'a dyn Source,
}

impl Planner<'_> {
    fn access(&self) -> Access {
        if !self.query.reads_items {
            return Access::Once;
        }
        let filter = self.query.block.filter.as_ref();
        if filter.and_then(Expr::as_constant).is_some_and(|value| value.as_bool() != Some(true)) {
            return Access::Nothing;
        }
        let constraints = self.constraints();
        self.points()
            .or_else(|| self.ordered(&constraints))
            .or_else(|| self.lookup(&constraints))
            .or_else(|| self.range(&constraints))
            .unwrap_or(Access::Scan)
    }

    fn constraints(&self) -> Vec<Constraint> {
        let Some(filter) = &self.query.block.filter else { return Vec::new() };
        let found = conjuncts(filter).into_iter();
        found.filter_map(|conjunct| constraint(conjunct, &self.query.slot_paths)).collect()
    }

    /// Every alternative names ids, and their partition keys are known.
    fn points(&self) -> Option<Access> {
        let pins = routing(self.query, self.key_paths).pins;
        if pins.is_empty() {
            return Some(Access::Nothing);
        }
        let is_full = |pin: &Pin| pin.key.len() == self.key_paths.len() && !pin.key.is_empty();
        let mut points = Vec::new();
        for pin in pins {
            let key = match is_full(&pin) {
                true => Some(pin.key),
                false if self.source.is_key_fixed() => None,
                false => return None,
            };
            points.extend(pin.ids?.into_iter().map(|id| Point { key: key.clone(), id }));
        }
        Some(Access::Points(points))
    }

    /// One ORDER BY key: its terms come in the right order.
    fn ordered(&self, constraints: &[Constraint]) -> Option<Access> {
        let [(path, direction)] = &self.query.order[..] else { return None };
        let bounds = constraints.iter().filter(|c| c.path == *path).find_map(Constraint::bounds);
        Some(Access::Ordered {
            path: path.clone(),
            // A comparison is not satisfied by an absent value.
            with_lacking: bounds.is_none(),
            bounds: bounds.unwrap_or(Bounds::ALL),
            direction: *direction,
        })
    }

    /// An equality on an indexed path, preferably one that says more than the scope already does.
    fn lookup(&self, constraints: &[Constraint]) -> Option<Access> {
        let usable = || {
            let lookups = constraints.iter().filter_map(Constraint::lookups);
            lookups.filter(|(path, _)| self.source.is_indexed(path))
        };
        let is_key = |path: &Path| self.key_paths.iter().any(|key| path.is_names(key));
        let best = usable()
            .find(|(path, _)| !is_key(path))
            .or_else(|| usable().next().filter(|_| !self.source.is_key_fixed()));
        best.map(|(path, ranges)| Access::Terms { path: path.clone(), ranges })
    }

    /// A range of an indexed path, preferably one with two ends.
    fn range(&self, constraints: &[Constraint]) -> Option<Access> {
        let mut usable: Vec<(&Path, Bounds)> = Vec::new();
        for constraint in constraints.iter().filter(|c| self.source.is_indexed(&c.path)) {
            let Allowed::Range(bounds) = &constraint.allowed else { continue };
            match usable.iter_mut().find(|(path, _)| **path == constraint.path) {
                Some((_, own)) => own.complete(bounds),
                None => usable.push((&constraint.path, bounds.clone())),
            }
        }
        let closed = usable.iter().find(|(_, bounds)| bounds.is_closed());
        let (path, bounds) = closed.or(usable.first())?;
        Some(Access::Terms { path: (*path).clone(), ranges: vec![bounds.clone()] })
    }
}

impl Constraint {
    /// The range of values the constraint allows, if it excludes absent ones.
    fn bounds(&self) -> Option<Bounds> {
        match &self.allowed {
            Allowed::Range(bounds) => Some(bounds.clone()),
            Allowed::Values(values) => match &values[..] {
                [value] if !value.is_undefined() => Some(Bounds::equal(value.clone())),
                _ => None,
            },
        }
    }

    /// One range for each value, sorted and without repeats, if terms can tell them apart.
    fn lookups(&self) -> Option<(&Path, Vec<Bounds>)> {
        let Allowed::Values(values) = &self.allowed else { return None };
        let is_term = |value: &item::Value| match value {
            item::Value::Null | item::Value::Bool(_) | item::Value::String(_) => true,
            item::Value::Number(number) => !number.is_nan(),
            item::Value::Undefined | item::Value::Array(_) | item::Value::Object(_) => false,
        };
        if values.len() > LOOKUPS_MAX || !values.iter().all(is_term) {
            return None;
        }
        let mut values = values.clone();
        values.sort_by(item::Value::compare);
        values.dedup_by(|a, b| a.deep_eq(b));
        Some((&self.path, values.into_iter().map(Bounds::equal).collect()))
    }
}

impl Bounds {
    fn is_closed(&self) -> bool {
        self.lower != Bound::Unbounded && self.upper != Bound::Unbounded
    }

    /// Takes over an end that is missing here, if it is of the same type.
    fn complete(&mut self, other: &Bounds) {
        let kind = |bound: &Bound| match bound {
            Bound::Included(value) | Bound::Excluded(value) => value.kind(),
            Bound::Unbounded => None,
        };
        if self.lower == Bound::Unbounded && kind(&other.lower) == kind(&self.upper) {
            self.lower = other.lower.clone();
        }
        if self.upper == Bound::Unbounded && kind(&other.upper) == kind(&self.lower) {
            self.upper = other.upper.clone();
        }
    }
}
