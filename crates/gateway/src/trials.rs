//! Which queries are worth trying where they keep other requests waiting.
//!
//! Most queries are over before a change of threads would be, others never are, and which it is
//! hardly changes from one execution to the next. So the last time is remembered, by text; texts
//! that share a place only mislead each other.

use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};

const PLACES: usize = 1 << 12;

/// See the module header.
pub struct Trials {
    is_slow: Box<[AtomicBool]>,
    hasher: RandomState,
}

impl Default for Trials {
    fn default() -> Trials {
        let is_slow = (0..PLACES).map(|_| AtomicBool::new(false)).collect();
        Trials { is_slow, hasher: RandomState::new() }
    }
}

impl Trials {
    /// What is remembered of this kind of work.
    pub fn of(&self, kind: impl Hash) -> &AtomicBool {
        &self.is_slow[self.hasher.hash_one(kind) as usize % PLACES]
    }
}

/// Whether work of this kind took long the last time.
pub fn was_slow(trial: &AtomicBool) -> bool {
    trial.load(Ordering::Relaxed)
}

/// Remembers how it was this time.
pub fn remember(trial: &AtomicBool, is_slow: bool) {
    if was_slow(trial) != is_slow {
        trial.store(is_slow, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_time_counts() {
        let trials = Trials::default();
        assert!(!was_slow(trials.of("SELECT 1")));
        remember(trials.of("SELECT 1"), true);
        assert!(was_slow(trials.of("SELECT 1")));
        remember(trials.of("SELECT 1"), false);
        assert!(!was_slow(trials.of("SELECT 1")));
    }
}
