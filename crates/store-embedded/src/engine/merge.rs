//! Several places read as one ordered map: of equal keys the newest place is right.

use std::cmp::Ordering;

use store::{Direction, Result};

use super::{Entry, table, tree};

/// A place that is walked.
pub(crate) enum Source<'a> {
    Tree(tree::Cursor<'a>),
    Table(table::Cursor<'a>),
}

impl Source<'_> {
    fn key(&self) -> Option<&[u8]> {
        match self {
            Source::Tree(cursor) => cursor.key(),
            Source::Table(cursor) => cursor.key(),
        }
    }

    fn get(&self) -> Option<(&[u8], Entry<'_>)> {
        match self {
            Source::Tree(cursor) => cursor.get(),
            Source::Table(cursor) => cursor.get(),
        }
    }

    fn step(&mut self, direction: Direction) -> Result<()> {
        match (self, direction) {
            (Source::Tree(cursor), Direction::Forward) => cursor.next(),
            (Source::Tree(cursor), Direction::Backward) => cursor.previous(),
            (Source::Table(cursor), Direction::Forward) => return cursor.next(),
            (Source::Table(cursor), Direction::Backward) => return cursor.previous(),
        }
        Ok(())
    }
}

/// Places walked together, up to a key.
///
/// INVARIANTS
/// (M1) Sources are in order of age, newest first, and each has a key within the limit.
/// (M2) `first` has the key that comes first, and is the newest of those that have it; `equal` are
///      the others.
pub(crate) struct Merged<'a> {
    sources: Vec<Source<'a>>,
    direction: Direction,
    /// Forward: the first key that is too far. Backward: the last that is not.
    limit: Option<&'a [u8]>,
    first: usize,
    equal: Vec<usize>,
}

impl<'a> Merged<'a> {
    /// Walks cursors that were placed by the caller, newest first.
    pub(crate) fn new(
        sources: Vec<Source<'a>>,
        direction: Direction,
        limit: Option<&'a [u8]>,
    ) -> Merged<'a> {
        let mut merged = Merged { sources, direction, limit, first: 0, equal: Vec::new() };
        for at in (0..merged.sources.len()).rev() {
            merged.drop_if_done(at);
        }
        merged.find_first();
        merged
    }

    /// The key that comes next, and what the newest place that has it says.
    pub(crate) fn get(&self) -> Option<(&[u8], Entry<'_>)> {
        self.sources.get(self.first).and_then(Source::get)
    }

    /// Past that key, everywhere.
    pub(crate) fn step(&mut self) -> Result<()> {
        // Older places lie behind newer ones: going backwards, those not yet visited keep their number.
        while let Some(at) = self.equal.pop() {
            self.sources[at].step(self.direction)?;
            self.drop_if_done(at);
        }
        if let Some(source) = self.sources.get_mut(self.first) {
            source.step(self.direction)?;
            self.drop_if_done(self.first);
        }
        self.find_first();
        Ok(())
    }

    fn drop_if_done(&mut self, at: usize) {
        let is_within =
            self.sources[at].key().is_some_and(|key| match (self.limit, self.direction) {
                (None, _) => true,
                (Some(limit), Direction::Forward) => key < limit,
                (Some(limit), Direction::Backward) => key >= limit,
            });
        if !is_within {
            self.sources.remove(at);
        }
    }

    fn find_first(&mut self) {
        self.first = 0;
        if self.sources.len() < 2 {
            return;
        }
        for at in 1..self.sources.len() {
            let [this, best] = [at, self.first].map(|at| self.sources[at].key());
            let order = match self.direction {
                Direction::Forward => this.cmp(&best),
                Direction::Backward => best.cmp(&this),
            };
            match order {
                Ordering::Greater => {}
                Ordering::Equal => self.equal.push(at),
                Ordering::Less => {
                    self.first = at;
                    self.equal.clear();
                }
            }
        }
    }
}
