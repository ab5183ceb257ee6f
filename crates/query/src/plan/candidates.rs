//! What the index could find of a filter.

// An expression of any form not named here says nothing; naming them would not say more.
#![allow(clippy::wildcard_enum_match_arm)]

use item::Value;
use sql::BinaryOp;
use text::Phrase;

use super::{Access, Constraint, FIXED_BYTES_MAX, Planner};
use crate::constraints::{Allowed, conjuncts, constraint};
use crate::expr::Expr;
use crate::full_text::Terms;
use crate::{Bound, Bounds, Direction, Path, Segment, Span};

/// Most keys of one candidate that are looked up one by one.
const LOOKUPS_MAX: usize = 1000;

/// Spans that hold every item which satisfies one conjunct of the filter.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Candidate {
    pub spans: Vec<Span>,
    /// Every item with a value in the spans satisfies the conjunct.
    pub is_exact: bool,
}

/// What the index could find of a filter.
#[derive(Debug)]
pub(super) struct FoundCandidates {
    candidates: Vec<Candidate>,
    /// They say all that the filter does, but for what the scope implies.
    are_exact: bool,
}

impl Candidate {
    /// Its span, if that is a single key.
    pub fn as_lookup(&self) -> Option<&Span> {
        match &self.spans[..] {
            [span] if span.is_lookup() => Some(span),
            _ => None,
        }
    }

    /// Reads its entries.
    pub fn access(&self) -> Access {
        let spans = self.spans.clone();
        // Which of several words an item has first is not for the index to say.
        let is_word = |span: &Span| matches!(span, Span::Word { .. });
        let are_words = spans.len() > 1 && spans.iter().any(is_word);
        match are_words || spans.iter().any(Span::is_manifold) {
            true => Access::Set { spans },
            false => Access::Entries { spans, also: Vec::new() },
        }
    }

    /// Whether all that have a value at all are let through: most of the items, probably.
    pub fn is_open(&self) -> bool {
        let is_open =
            |span: &Span| matches!(span, Span::Path { bounds, .. } if *bounds == Bounds::ALL);
        self.spans.iter().any(is_open)
    }

    /// Whether it consists of single keys.
    pub fn is_lookups(&self) -> bool {
        self.spans.iter().all(Span::is_lookup)
    }
}

impl Planner<'_> {
    /// What the index could find of each conjunct, single keys first. What the scope says already
    /// is left out.
    pub(super) fn candidates(&self) -> &[Candidate] {
        &self.found().candidates
    }

    /// The same if every conjunct is said by them, or by the scope, exactly.
    pub(super) fn exact_candidates(&self) -> Option<&[Candidate]> {
        let found = self.found();
        found.are_exact.then_some(&found.candidates)
    }

    fn found(&self) -> &FoundCandidates {
        self.found.get_or_init(|| self.find_candidates())
    }

    fn find_candidates(&self) -> FoundCandidates {
        let (mut found, mut are_exact): (Vec<Candidate>, _) = (Vec::new(), true);
        for (conjunct, said) in self.query.conditions() {
            found.extend(self.words(conjunct));
            let candidate = self.candidate(conjunct, said);
            are_exact &= candidate.as_ref().is_some_and(|candidate| candidate.is_exact);
            let Some(candidate) = candidate else { continue };
            if !self.is_implied(&candidate) && !merge(&mut found, &candidate) {
                found.push(candidate);
            }
        }
        found.sort_by_key(|candidate| (!candidate.is_lookups(), self.is_of_key(candidate)));
        FoundCandidates { candidates: found, are_exact }
    }

    /// Paths of which the filter or the scope leave one value, one that no index cuts.
    pub(super) fn equalities(&self) -> Vec<(Path, Value)> {
        let mut found: Vec<(Path, Value)> = Vec::new();
        let key =
            self.key_paths.iter().map(Path::of).zip(self.source.fixed_key().into_iter().flatten());
        found.extend(key.map(|(path, value)| (path, value.clone())));
        for said in self.query.conditions().filter_map(|(_, said)| said) {
            if let Allowed::Values(values) = &said.allowed
                && let [value] = &values[..]
            {
                found.push((said.path.clone(), value.clone()));
            }
        }
        let is_short =
            |value: &Value| value.as_str().is_none_or(|text| text.len() <= FIXED_BYTES_MAX);
        found.retain(|(path, value)| {
            is_term(value) && is_short(value) && !path.segments().contains(&Segment::Elements)
        });
        found
    }

    /// The composite index that serves the most of the filter, if it is more than one condition.
    pub(super) fn composite_candidate(&self, candidates: &[Candidate]) -> Option<Candidate> {
        let indexes = self.source.composites();
        // Most indexes begin with something else, which is told sooner than a span is made.
        let begins = |index: &&Vec<(Path, Direction)>| {
            index.first().is_some_and(|(path, _)| self.equal_value(path).is_some())
        };
        let spans = indexes.iter().filter(begins);
        let spans = spans.map(|index| self.composite_span(index, candidates));
        let served = |span: &Span| match span {
            Span::Composite { equal, bounds, .. } if !equal.is_empty() => {
                equal.len() + usize::from(*bounds != Bounds::ALL)
            }
            Span::Composite { .. } | Span::Path { .. } => 0,
            Span::Near { .. } | Span::Word { .. } => 0,
        };
        let usable = spans.filter(|span| served(span) > 1 && self.is_scoped(span));
        let best = usable.max_by_key(served)?;
        Some(Candidate { spans: vec![best], is_exact: false })
    }

    /// Whether it is about the partition key, which routing has used already.
    fn is_of_key(&self, candidate: &Candidate) -> bool {
        let is_key = |path: &Path| self.key_paths.iter().any(|names| path.is_names(names));
        path_of(candidate).is_some_and(is_key)
    }

    /// What the index could find of a conjunct that says this.
    fn candidate(&self, conjunct: &Expr, said: Option<&Constraint>) -> Option<Candidate> {
        if let Expr::Or(alternatives) = conjunct {
            return self.union(alternatives);
        }
        if let Some(candidate) = self.near(conjunct) {
            return Some(candidate);
        }
        let said = said?;
        let spans = spans(said)?;
        let is_indexed = self.source.is_indexed(&said.path);
        is_indexed.then_some(Candidate { spans, is_exact: said.is_exact })
    }

    /// Words that a text must have: each of them is a candidate, or one of them if one will do.
    fn words(&self, conjunct: &Expr) -> Vec<Candidate> {
        let Expr::TextMatch(found) = conjunct else { return Vec::new() };
        let Terms::Constant(phrases) = &found.terms else { return Vec::new() };
        let path = found.text.path(&self.query.slot_paths);
        let Some(path) = path.filter(|path| self.source.is_full_text(path)) else {
            return Vec::new();
        };
        let real = phrases.iter().filter(|phrase| !phrase.is_empty());
        let word = |stem: &str| Span::Word { path: path.clone(), stem: stem.to_owned() };
        let candidate = |spans| Candidate { spans, is_exact: false };
        if found.wants_all {
            let stems = real.filter_map(Phrase::exact_stems).flatten();
            return stems.map(|stem| candidate(vec![word(stem)])).collect();
        }
        let firsts = real.map(|phrase| phrase.exact_stems()?.next().map(word));
        let spans = firsts.collect::<Option<Vec<Span>>>().filter(|spans| !spans.is_empty());
        spans.map(candidate).into_iter().collect()
    }

    /// A geometry of the item that is to be near a constant one.
    fn near(&self, conjunct: &Expr) -> Option<Candidate> {
        let (path, geometry, meters) = nearness(conjunct, &self.query.slot_paths)?;
        let is_indexed = self.source.is_spatial(&path);
        let span = || Span::Near { path, geometry: geometry.clone(), meters };
        is_indexed.then(|| Candidate { spans: vec![span()], is_exact: false })
    }

    /// One candidate of each alternative, all together.
    fn union(&self, alternatives: &[Expr]) -> Option<Candidate> {
        let mut union = Candidate { spans: Vec::new(), is_exact: false };
        for alternative in alternatives {
            let parts = conjuncts(alternative);
            let candidates = parts.iter().filter_map(|part| {
                self.candidate(part, constraint(part, &self.query.slot_paths).as_ref())
            });
            let best = candidates.min_by_key(|candidate| !candidate.is_lookups())?;
            let new = best.spans.into_iter().filter(|span| !union.spans.contains(span));
            let new: Vec<Span> = new.collect();
            union.spans.extend(new);
        }
        (union.spans.len() <= LOOKUPS_MAX).then_some(union)
    }

    /// Whether the scope is one logical partition and the candidate says that it is that one.
    fn is_implied(&self, candidate: &Candidate) -> bool {
        let Some(key) = self.source.fixed_key() else { return false };
        let Some(Span::Path { path, bounds }) = candidate.as_lookup() else { return false };
        let mut parts = self.key_paths.iter().zip(key);
        parts.any(|(names, value)| {
            path.is_names(names) && bounds.single().is_some_and(|own| own.deep_eq(value))
        })
    }
}

/// What a conjunct says about how near a path is to a constant geometry, in metres.
fn nearness<'e>(conjunct: &'e Expr, slot_paths: &[Option<Path>]) -> Option<(Path, &'e Value, f64)> {
    match conjunct {
        Expr::Call(function, arguments)
            if matches!(function.name, "ST_WITHIN" | "ST_INTERSECTS") =>
        {
            let (path, geometry) = place_and_geometry(arguments, slot_paths)?;
            Some((path, geometry, 0.0))
        }
        Expr::Binary(BinaryOp::Less | BinaryOp::LessOrEqual, call, meters) => {
            distance(call, meters, slot_paths)
        }
        Expr::Binary(BinaryOp::Greater | BinaryOp::GreaterOrEqual, meters, call) => {
            distance(call, meters, slot_paths)
        }
        _ => None,
    }
}

fn distance<'e>(
    call: &'e Expr,
    meters: &Expr,
    slot_paths: &[Option<Path>],
) -> Option<(Path, &'e Value, f64)> {
    let Expr::Call(function, arguments) = call else { return None };
    if function.name != "ST_DISTANCE" {
        return None;
    }
    let (path, geometry) = place_and_geometry(arguments, slot_paths)?;
    Some((path, geometry, meters.as_constant()?.as_f64()?))
}

/// Of two arguments one is a path, the other a constant.
fn place_and_geometry<'e>(
    arguments: &'e [Expr],
    slot_paths: &[Option<Path>],
) -> Option<(Path, &'e Value)> {
    let [first, second] = arguments else { return None };
    let pair =
        |place: &Expr, other: &'e Expr| Some((place.path(slot_paths)?, other.as_constant()?));
    pair(first, second).or_else(|| pair(second, first))
}

/// Narrows a range by another of the same path; `false` if there is none to narrow.
///
/// Values inside arrays are left alone: two comparisons may be satisfied by two elements.
fn merge(found: &mut [Candidate], candidate: &Candidate) -> bool {
    let [Span::Path { path, bounds }] = &candidate.spans[..] else { return false };
    if bounds.single().is_some() || path.segments().contains(&Segment::Elements) {
        return false;
    }
    found.iter_mut().any(|own| match &mut own.spans[..] {
        [Span::Path { path: other, bounds: narrowed }] if other == path => {
            let is_narrowed = narrowed.complete(bounds);
            own.is_exact &= !is_narrowed || candidate.is_exact;
            is_narrowed
        }
        _ => false,
    })
}

/// The spans of a constraint; `None` if the index cannot tell the values apart.
fn spans(constraint: &Constraint) -> Option<Vec<Span>> {
    let span = |bounds: Bounds| Span::Path { path: constraint.path.clone(), bounds };
    match &constraint.allowed {
        Allowed::Range(bounds) => Some(vec![span(bounds.clone())]),
        Allowed::Values(values) => {
            if values.len() > LOOKUPS_MAX || !values.iter().all(is_term) {
                return None;
            }
            let mut values = values.clone();
            values.sort_by(Value::compare);
            values.dedup_by(|a, b| a.deep_eq(b));
            Some(values.into_iter().map(|value| span(Bounds::equal(value))).collect())
        }
    }
}

/// Whether an index entry can hold the value.
fn is_term(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) => true,
        Value::Number(number) => !number.is_nan(),
        Value::Undefined | Value::Array(_) | Value::Object(_) => false,
    }
}

impl Bounds {
    /// Takes over an end that is missing here, if it is of the same type; `false` if none was.
    fn complete(&mut self, other: &Bounds) -> bool {
        let kind = |bound: &Bound| match bound {
            Bound::Included(value) | Bound::Excluded(value) => value.kind(),
            Bound::Unbounded => None,
        };
        let is_open = |bound: &Bound| *bound == Bound::Unbounded;
        if is_open(&self.lower) && is_open(&other.upper) && kind(&other.lower) == kind(&self.upper)
        {
            self.lower = other.lower.clone();
            return true;
        }
        if is_open(&self.upper) && is_open(&other.lower) && kind(&other.upper) == kind(&self.lower)
        {
            self.upper = other.upper.clone();
            return true;
        }
        false
    }
}

/// The path of a span of one path.
pub(super) fn path_of(candidate: &Candidate) -> Option<&Path> {
    match &candidate.spans[..] {
        [Span::Path { path, .. }] => Some(path),
        _ => None,
    }
}

/// Whether an item has one entry at most in all of these spans.
pub(super) fn is_single(candidate: &Candidate) -> bool {
    candidate.spans.iter().all(|span| match span {
        Span::Path { path, bounds } => {
            bounds.single().is_some() && candidate.spans.len() == 1
                || !path.segments().contains(&Segment::Elements)
        }
        Span::Composite { .. } => true,
        Span::Near { .. } | Span::Word { .. } => false,
    })
}
