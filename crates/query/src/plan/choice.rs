//! Which of the ways is taken.
//!
//! A probe counts the entries of a span up to a limit. Limits grow in rounds, so that a selective
//! condition is found after a few dozen entries however many the others have.

use super::candidates::Candidate;
use super::{Access, Planner, Price, Strategy};
use crate::{Error, Sizes, Span};

/// Entries counted in each round of probes.
const ROUNDS: [usize; 3] = [32, 256, 1024];
/// Up to so many items are sorted rather than read in order.
const SORTED_ITEMS_MAX: usize = 1024;
/// Reading an item in passing costs as much as so many entries of an index.
const ENTRIES_PER_ITEM: u64 = 4;
/// Rows wanted of a query that does not say how many.
const ROWS_WANTED: u64 = 1000;
/// A logical partition of up to so many items is sorted in passing.
const SORTED_SCAN_MAX: u64 = 50_000;
/// Entries of others that may be passed for each item of a larger one.
const SIEVED_PER_ITEM: u64 = 16;
/// One of smaller size always is.
const SMALL_PARTITION: u64 = 64;

/// The way past all candidates: keys that are tested, if there are any, else everything.
fn last(alternatives: &[Access]) -> usize {
    let tested = alternatives.iter().position(|access| matches!(access, Access::Tested { .. }));
    tested.unwrap_or(alternatives.len() - 1)
}

/// Whether entries of a composite index are read, unordered.
fn is_composite(access: &Access) -> bool {
    let Access::Entries { spans, .. } = access else { return false };
    matches!(&spans[..], [Span::Composite { .. }])
}

impl Planner<'_> {
    /// The number of the way to go. If that is a range whose keys can be tested, they are.
    pub(super) fn choose(
        &self,
        candidates: &[Candidate],
        alternatives: &[Access],
    ) -> Result<usize, Error> {
        let chosen = self.chosen(candidates, alternatives)?;
        let last = last(alternatives);
        match (&alternatives[chosen], &alternatives[last]) {
            (Access::Entries { spans, also }, Access::Tested { span, .. })
                if also.is_empty() && spans[..] == [span.clone()] =>
            {
                Ok(last)
            }
            _ => Ok(chosen),
        }
    }

    fn chosen(&self, candidates: &[Candidate], alternatives: &[Access]) -> Result<usize, Error> {
        if alternatives.len() == 1 {
            return Ok(0);
        }
        if let Some(at) = alternatives.iter().position(|a| matches!(a, Access::Keys { .. })) {
            return Ok(at);
        }
        match (&alternatives[0], self.strategy) {
            (Access::Ordered { .. }, Strategy::Literal) => Ok(0),
            (Access::Ordered { span, .. }, Strategy::Least) => {
                self.sorted(span, candidates, alternatives)
            }
            (_, Strategy::Literal) => self.literal(candidates, alternatives),
            (_, Strategy::Least) => self.unsorted(candidates, alternatives),
        }
    }

    /// Single keys if there are any, all of them together; else the narrowest range.
    fn literal(&self, candidates: &[Candidate], alternatives: &[Access]) -> Result<usize, Error> {
        if let Some(at) = alternatives.iter().position(is_composite) {
            return Ok(at);
        }
        let lookups = candidates.iter().take_while(|candidate| candidate.is_lookups()).count();
        match (candidates.len(), lookups) {
            (0, _) if self.is_sieve_long()? => Ok(alternatives.len() - 1),
            (0, _) => Ok(last(alternatives)),
            _ if self.has_intersection(candidates) => Ok(candidates.len()),
            (_, 0) => Ok(self.fewest(candidates)?.map_or(0, |(at, _)| at)),
            _ => Ok(0),
        }
    }

    fn unsorted(&self, candidates: &[Candidate], alternatives: &[Access]) -> Result<usize, Error> {
        let lookups = candidates.iter().take_while(|candidate| candidate.is_lookups()).count();
        if let Some(at) = alternatives.iter().position(is_composite) {
            return Ok(at);
        }
        match (candidates.len(), lookups) {
            (0, _) => self.tested_or_scan(alternatives),
            // The entries of a key within a logical partition are its own; those of a range are
            // everybody's.
            (_, 0) if self.source.fixed_key().is_some() => {
                self.range_or_scan(candidates, alternatives)
            }
            (1, _) if !candidates[0].is_open() => Ok(0),
            _ => match self.fewest(candidates)? {
                Some((at, _)) => Ok(at),
                None if lookups >= 2 && self.has_intersection(candidates) => Ok(candidates.len()),
                None if candidates[0].is_open() => Ok(alternatives.len() - 1),
                None => Ok(0),
            },
        }
    }

    fn has_intersection(&self, candidates: &[Candidate]) -> bool {
        candidates.iter().filter_map(Candidate::as_lookup).nth(1).is_some()
    }

    /// Within a logical partition: a range if it has fewer entries than the partition has items.
    fn range_or_scan(
        &self,
        candidates: &[Candidate],
        alternatives: &[Access],
    ) -> Result<usize, Error> {
        let items = self.source.sizes()?.scope;
        let most = usize::try_from(items).unwrap_or(usize::MAX).min(ROUNDS[2]);
        for (at, candidate) in candidates.iter().enumerate() {
            if self.entries(candidate, most)? < most {
                return Ok(at);
            }
        }
        self.tested_or_scan(alternatives)
    }

    /// Keys are tested, unless nearly all of many pass: those lead all over the items.
    fn tested_or_scan(&self, alternatives: &[Access]) -> Result<usize, Error> {
        let (at, scan) = (last(alternatives), alternatives.len() - 1);
        let Access::Tested { span, test } = &alternatives[at] else { return Ok(at) };
        let is_less = match test.price {
            Price::Keys => !self.is_sieve_long()?,
            Price::Matches => self.source.probe(span, ROUNDS[2])? < ROUNDS[2],
        };
        Ok(if is_less { at } else { scan })
    }

    /// Whether the scope is a logical partition too large to be read whole, whose entries are few
    /// among those of others.
    fn is_sieve_long(&self) -> Result<bool, Error> {
        if self.source.fixed_key().is_none() {
            return Ok(false);
        }
        let Sizes { scope, partitions, .. } = self.source.sizes()?;
        Ok(scope > SORTED_SCAN_MAX && partitions > scope.saturating_mul(SIEVED_PER_ITEM))
    }

    /// The candidate with the fewest entries, and how many; `None` if all have many.
    fn fewest(&self, candidates: &[Candidate]) -> Result<Option<(usize, usize)>, Error> {
        for most in ROUNDS {
            let mut fewest: Option<(usize, usize)> = None;
            for (at, candidate) in candidates.iter().enumerate() {
                let entries = self.entries(candidate, most)?;
                if entries < most && fewest.is_none_or(|(_, least)| entries < least) {
                    fewest = Some((at, entries));
                }
            }
            if fewest.is_some() {
                return Ok(fewest);
            }
        }
        Ok(None)
    }

    /// Entries of a candidate, counted up to `most`.
    fn entries(&self, candidate: &Candidate, most: usize) -> Result<usize, Error> {
        let mut entries = 0;
        for span in &candidate.spans {
            entries += self.source.probe(span, most - entries)?;
            if entries >= most {
                break;
            }
        }
        Ok(entries)
    }

    /// Reads in order, unless the filter or the scope leave so little that sorting it is less work.
    fn sorted(
        &self,
        span: &Span,
        candidates: &[Candidate],
        alternatives: &[Access],
    ) -> Result<usize, Error> {
        let scan = alternatives.len() - 1;
        let is_tight = matches!(span, Span::Composite { equal, .. } if !equal.is_empty());
        if is_tight && self.is_scoped(span) {
            return Ok(0);
        }
        let lookups: Vec<Candidate> =
            candidates.iter().take_while(|candidate| candidate.is_lookups()).cloned().collect();
        if let Some((at, entries)) = self.fewest(&lookups)?
            && entries <= SORTED_ITEMS_MAX
        {
            return Ok(1 + at);
        }
        if self.source.fixed_key().is_none() {
            return Ok(0);
        }
        let Sizes { scope, partitions, .. } = self.source.sizes()?;
        let wanted = self.query.window.end.unwrap_or(ROWS_WANTED);
        let in_order = wanted.saturating_mul(partitions) / scope.max(1);
        let is_scan_less = in_order.min(partitions) > scope.saturating_mul(ENTRIES_PER_ITEM);
        let sorts = scope <= SMALL_PARTITION || is_scan_less && scope <= SORTED_SCAN_MAX;
        Ok(if sorts { scan } else { 0 })
    }
}
