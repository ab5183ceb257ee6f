//! Aggregates that the index answers: counts, and extremes of one path.

use item::Value;

use super::candidates::{Candidate, is_single, path_of};
use super::{Access, Bounds, Planner, Strategy};
use crate::aggregate::AggregateKind;
use crate::expr::{Expr, Projection};
use crate::{Direction, Error, Path, Segment, Span};

/// How the index answers all aggregates of a query. It may turn out, from entries that do not hold
/// their whole value, that it cannot; then the items are read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shortcut {
    /// Every aggregate counts items, and this many there are.
    Items(u64),
    /// Every aggregate counts the items with an entry in all of these lists of spans.
    Entries(Vec<Vec<Span>>),
    /// Every aggregate is about the values of one span.
    Values { span: Span, aggregates: Vec<Extreme> },
    /// Every aggregate counts the items of groups, and each key of the span is a group: its last
    /// paths are what is grouped by.
    Groups { span: Span, paths: Vec<Path> },
}

/// What is asked about the values of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extreme {
    Count,
    Least,
    Greatest,
}

impl Planner<'_> {
    /// The shortcut for a query that consists of nothing but aggregates.
    pub(super) fn shortcut(&self) -> Result<Option<Shortcut>, Error> {
        let block = &self.query.block;
        let Some(grouping) = &block.grouping else { return Ok(None) };
        if !self.query.reads_items || !block.sources.is_empty() {
            return Ok(None);
        }
        let Some(candidates) = self.exact_candidates() else { return Ok(None) };
        let aggregates = &grouping.aggregates[..];
        if !grouping.keys.is_empty() {
            let is_counted = aggregates.iter().all(counts_rows);
            return if is_counted { self.groups(&grouping.keys, candidates) } else { Ok(None) };
        }
        if aggregates.iter().all(counts_rows) {
            return self.count(candidates);
        }
        self.values(aggregates, candidates)
    }

    /// A composite index that consists of what the filter fixes and what is grouped by.
    fn groups(&self, keys: &[Expr], candidates: &[Candidate]) -> Result<Option<Shortcut>, Error> {
        let paths = keys.iter().map(|key| key.path(&self.query.slot_paths));
        let Some(paths) = paths.collect::<Option<Vec<Path>>>() else { return Ok(None) };
        let conditions: Option<Vec<&Path>> = candidates.iter().map(path_of).collect();
        let Some(conditions) = conditions else { return Ok(None) };
        let is_fit = |index: &&Vec<(Path, Direction)>| {
            let fixed = index.len().saturating_sub(paths.len());
            let (front, back) = index.split_at(fixed);
            front.len() == conditions.len()
                && front.iter().all(|(path, _)| conditions.contains(&path))
                && front.iter().all(|(path, _)| self.equal_value(path).is_some())
                && back.iter().all(|(path, _)| paths.contains(path))
                && paths.iter().all(|path| back.iter().any(|(own, _)| own == path))
        };
        let Some(index) = self.source.composites().iter().find(is_fit) else {
            return Ok(None);
        };
        let span = self.composite_span(index, candidates);
        let is_whole =
            matches!(&span, Span::Composite { equal, .. } if equal.len() == conditions.len());
        if !is_whole || self.source.fixed_key().is_some() || !self.source.sizes()?.is_exact {
            return Ok(None);
        }
        Ok(Some(Shortcut::Groups { span, paths }))
    }

    fn count(&self, candidates: &[Candidate]) -> Result<Option<Shortcut>, Error> {
        let sizes = self.source.sizes()?;
        if !sizes.is_exact {
            return Ok(None);
        }
        if candidates.is_empty() {
            return Ok(Some(Shortcut::Items(sizes.scope)));
        }
        if let Some(span) = self.covering(candidates) {
            return Ok(Some(Shortcut::Entries(vec![vec![span]])));
        }
        let mut lists: Vec<Vec<Span>> = Vec::new();
        for candidate in candidates {
            if !is_single(candidate) {
                return Ok(None);
            }
            lists.push(candidate.spans.clone());
        }
        if let Some(key) = self.source.fixed_key() {
            let Some(own) = self.key_spans(key) else { return Ok(None) };
            lists.extend(own.into_iter().map(|span| vec![span]));
        }
        let is_one = lists.len() == 1;
        let are_lookups = lists.iter().all(|list| matches!(&list[..], [span] if span.is_lookup()));
        Ok((is_one || are_lookups).then_some(Shortcut::Entries(lists)))
    }

    /// Distinct values of one path, which is all that the rows and the filter are about: one item
    /// for each of them will do.
    pub(super) fn keys(&self) -> Option<Access> {
        let block = &self.query.block;
        let is_plain = block.distinct && block.grouping.is_none() && block.sources.is_empty();
        let is_literal = self.strategy == Strategy::Literal;
        if !is_plain
            || is_literal
            || self.query.ranking.is_some()
            || self.source.fixed_key().is_some()
        {
            return None;
        }
        let path = self.only_path(&block.projection)?;
        let is_ordered = self.query.order.iter().all(|(own, _)| *own == path);
        let is_exact = || self.source.sizes().is_ok_and(|sizes| sizes.is_exact);
        if !is_ordered || !self.source.is_indexed(&path) || !is_exact() {
            return None;
        }
        let bounds = match self.exact_candidates()? {
            [] => None,
            [one] if path_of(one) == Some(&path) => match &one.spans[..] {
                [Span::Path { bounds, .. }] => Some(bounds.clone()),
                _ => return None,
            },
            _ => return None,
        };
        let lacking = bounds.is_none().then(|| path.clone());
        let span = Span::Path { path, bounds: bounds.unwrap_or(Bounds::ALL) };
        Some(Access::Keys { span, lacking })
    }

    /// The one path that a projection is made of, if nothing else is in it.
    fn only_path(&self, projection: &Projection) -> Option<Path> {
        let path = match projection {
            Projection::Value(expr) => expr.path(&self.query.slot_paths),
            Projection::Object(properties) => match &properties[..] {
                [(_, expr)] => expr.path(&self.query.slot_paths),
                _ => None,
            },
        }?;
        let is_plain = !path.segments().is_empty() && !path.segments().contains(&Segment::Elements);
        is_plain.then_some(path)
    }

    /// The span of a composite index that holds exactly what all candidates and the scope leave.
    fn covering(&self, candidates: &[Candidate]) -> Option<Span> {
        let paths: Vec<&Path> = candidates.iter().map(path_of).collect::<Option<_>>()?;
        let best = self.composite_candidate(candidates)?.spans.pop()?;
        let Span::Composite { keys, equal, bounds } = &best else { return None };
        let served = equal.len() + usize::from(*bounds != Bounds::ALL);
        let is_served = |path: &&Path| keys[..served].iter().any(|(own, _)| own == *path);
        // Two conditions on one path are more than an index can hold.
        let is_once = |path: &&Path| paths.iter().filter(|other| *other == path).count() == 1;
        paths.iter().all(|path| is_served(path) && is_once(path)).then_some(best)
    }

    /// Entries that tell the logical partition from others that lie with it.
    fn key_spans(&self, key: &[Value]) -> Option<Vec<Span>> {
        let span = |(names, value): (&Vec<String>, &Value)| {
            let path = Path::of(names);
            let is_whole = value.as_str().is_none_or(|text| text.len() <= super::FIXED_BYTES_MAX);
            let is_indexed = self.source.is_indexed(&path) && is_whole && !value.is_undefined();
            is_indexed.then(|| Span::Path { path, bounds: Bounds::equal(value.clone()) })
        };
        self.key_paths.iter().zip(key).map(span).collect()
    }

    /// All aggregates are about one path, and so is the filter, if there is one.
    fn values(
        &self,
        aggregates: &[(AggregateKind, Expr)],
        candidates: &[Candidate],
    ) -> Result<Option<Shortcut>, Error> {
        let paths = aggregates.iter().map(|(_, argument)| argument.path(&self.query.slot_paths));
        let Some(paths) = paths.collect::<Option<Vec<Path>>>() else { return Ok(None) };
        let [path, rest @ ..] = &paths[..] else { return Ok(None) };
        let is_plain = !path.segments().contains(&Segment::Elements) && !path.segments().is_empty();
        if !is_plain || rest.iter().any(|other| other != path) || !self.source.is_indexed(path) {
            return Ok(None);
        }
        let bounds = match candidates {
            [] => Bounds::ALL,
            [one] if path_of(one) == Some(path) => match &one.spans[..] {
                [Span::Path { bounds, .. }] => bounds.clone(),
                _ => return Ok(None),
            },
            _ => return Ok(None),
        };
        let kinds: Option<Vec<Extreme>> =
            aggregates.iter().map(|(kind, _)| extreme(*kind)).collect();
        let Some(kinds) = kinds else { return Ok(None) };
        if self.source.fixed_key().is_some() || !self.source.sizes()?.is_exact {
            return Ok(None);
        }
        let span = Span::Path { path: path.clone(), bounds };
        Ok(Some(Shortcut::Values { span, aggregates: kinds }))
    }
}

/// COUNT of something that is always there.
fn counts_rows((kind, argument): &(AggregateKind, Expr)) -> bool {
    let is_defined = argument.as_constant().is_some_and(|value| !value.is_undefined());
    *kind == AggregateKind::Count && (is_defined || matches!(argument, Expr::Slot(0)))
}

fn extreme(kind: AggregateKind) -> Option<Extreme> {
    match kind {
        AggregateKind::Count => Some(Extreme::Count),
        AggregateKind::Min => Some(Extreme::Least),
        AggregateKind::Max => Some(Extreme::Greatest),
        AggregateKind::CountIf
        | AggregateKind::Sum
        | AggregateKind::Average
        | AggregateKind::MakeList
        | AggregateKind::MakeSet => None,
    }
}
