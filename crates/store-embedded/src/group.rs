//! What one drain of the queue changes, worked out without writing anything.
//!
//! Commits are applied in order to an overlay over the newest snapshot, so a later commit's
//! preconditions and merges see the earlier ones of the same drain (F1). A refused commit leaves no
//! trace. The last value of a key is all that is written.

use std::collections::HashMap;

use bytes::Bytes;
use store::{
    Commit, LogId, Merge, Positions, Precondition, Reader, Result, Space, check_preconditions,
};

/// Merged values kept in memory per space, so that hot counters are not read again.
const COUNTERS_MAX: usize = 1 << 16;

/// Room for so many changes per space is kept from drain to drain.
const CHANGES_KEPT: usize = 1 << 16;

/// Values by key; `None` is an absent key.
type Values = HashMap<Bytes, Option<Bytes>, foldhash::fast::RandomState>;

/// The changes of a drain, and the merged values remembered between drains.
#[derive(Default)]
pub(crate) struct Group {
    changes: [Values; Space::ALL.len()],
    counters: [Values; Space::ALL.len()],
    marks: HashMap<LogId, u64>,
}

impl Group {
    /// Applies a commit on top of those before it, or says why it is refused.
    pub(crate) fn apply(&mut self, reader: &dyn Reader, commit: &mut Commit) -> Result<()> {
        self.check(reader, &commit.preconditions)?;
        self.load(reader, &commit.merges)?;
        // Nothing below can fail, so a commit is never half applied.
        for write in commit.writes.drain(..) {
            let (space, key, value) = match write {
                store::Write::Put(space, key, value) => (space, key, Some(value)),
                store::Write::Delete(space, key) => (space, key, None),
            };
            self.changes[space as usize].insert(key, value);
        }
        for merge in commit.merges.drain(..) {
            self.merge(merge);
        }
        for mark in &commit.marks {
            let position = self.marks.entry(mark.log).or_default();
            *position = mark.position.max(*position);
        }
        Ok(())
    }

    /// Every changed key with its new value, once. Counters remember what they became.
    ///
    /// Keys come in order: neighbors share their way down the engine's tree, which then is in the
    /// processor's cache.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = (Space, Bytes, Option<Bytes>)> + '_ {
        let spaces = Space::ALL.into_iter().zip(self.changes.iter_mut());
        spaces.zip(self.counters.iter_mut()).flat_map(|((space, changes), counters)| {
            trim(counters);
            let mut sorted: Vec<_> = changes.drain().collect();
            shrink(changes);
            sorted.sort_unstable_by(|a, b| a.0.cmp(&b.0));
            sorted.into_iter().map(move |(key, value)| {
                if !counters.is_empty()
                    && let Some(counter) = counters.get_mut(&key)
                {
                    *counter = value.as_deref().map(copy);
                }
                (space, key, value)
            })
        })
    }

    /// The logs that move and where to, once each; forgotten afterwards.
    pub(crate) fn take_marks(&mut self) -> Vec<(LogId, u64)> {
        self.marks.drain().collect()
    }

    fn check(&self, reader: &dyn Reader, preconditions: &[Precondition]) -> Result<()> {
        check_preconditions(preconditions, |space, key| {
            let at = space as usize;
            match self.changes[at].get(key).or_else(|| self.counters[at].get(key)) {
                Some(value) => Ok(value.clone()),
                None => reader.get(space, key),
            }
        })
    }

    /// Makes sure that the old value of every merged key is known.
    fn load(&mut self, reader: &dyn Reader, merges: &[Merge]) -> Result<()> {
        for merge in merges {
            let counters = &mut self.counters[merge.space() as usize];
            if !counters.contains_key(merge.key()) {
                let value = reader.get(merge.space(), merge.key())?;
                counters.insert(copy(merge.key()), value);
            }
        }
        Ok(())
    }

    fn merge(&mut self, merge: Merge) {
        let at = merge.space() as usize;
        let changed = self.changes[at].get(merge.key());
        let old = changed.or_else(|| self.counters[at].get(merge.key())).cloned().flatten();
        let new = merge.apply(old.as_deref());
        self.changes[at].insert(merge.key().clone(), new);
    }
}

/// What is remembered is copied: a slice would keep the whole buffer it came in.
fn copy(bytes: &[u8]) -> Bytes {
    Bytes::copy_from_slice(bytes)
}

/// Gives the memory of an unusually large drain back.
fn shrink(changes: &mut Values) {
    if changes.capacity() > CHANGES_KEPT {
        changes.shrink_to(CHANGES_KEPT);
    }
}

/// Forgets the counters of a space when there are too many. It happens between drains, when the
/// snapshot has them all.
fn trim(counters: &mut Values) {
    if counters.len() > COUNTERS_MAX {
        counters.clear();
    }
}

/// The positions after `marks`.
pub(crate) fn advanced(positions: &Positions, marks: &[(LogId, u64)]) -> Positions {
    let mut positions = positions.clone();
    for &(log, position) in marks {
        positions.advance(log, position);
    }
    positions
}
