//! What can be set when a store is opened.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use store::Durability;

/// Settings of a store. The defaults suit a server with two gigabytes to spare.
#[derive(Clone, Debug)]
pub struct Options {
    /// When commits count as done, unless they say otherwise.
    pub durability: Durability,
    /// Memory for blocks read from disk.
    pub cache_bytes: u64,
    /// Bytes of journals that may wait to become tables: half of them while the other half is being
    /// written. It bounds what is in memory and the time an open takes after a crash; a group may
    /// exceed it.
    pub journal_bytes_max: u64,
    /// Commits that may wait; one more is answered with `Busy`.
    pub queue_commits_max: usize,
    /// Bytes that may wait. A commit that finds the queue empty is always taken.
    pub queue_bytes_max: usize,
    /// Faults that tests inject.
    pub faults: Faults,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            durability: Durability::Sync,
            cache_bytes: 256 << 20,
            journal_bytes_max: 128 << 20,
            queue_commits_max: 8_192,
            queue_bytes_max: 64 << 20,
            faults: Faults::default(),
        }
    }
}

/// Switches by which a test makes the disk fail or wait. Off unless a test turns them.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    fail_writes: Arc<AtomicBool>,
    hold_writes: Arc<AtomicBool>,
    is_holding: Arc<AtomicBool>,
}

impl Faults {
    /// From now on every write to the journal fails.
    pub fn fail_writes(&self) {
        self.fail_writes.store(true, Ordering::SeqCst);
    }

    /// Makes the committer wait before its next write, or go on.
    pub fn hold_writes(&self, hold: bool) {
        self.hold_writes.store(hold, Ordering::SeqCst);
    }

    /// Returns when the committer waits because of `hold_writes`.
    pub fn wait_until_held(&self) {
        while !self.is_holding.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    pub(crate) fn are_writes_failing(&self) -> bool {
        self.fail_writes.load(Ordering::Relaxed)
    }

    pub(crate) fn are_writes_held(&self) -> bool {
        self.hold_writes.load(Ordering::Relaxed)
    }

    pub(crate) fn wait_while_held(&self) {
        while self.are_writes_held() {
            self.is_holding.store(true, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(1));
        }
        self.is_holding.store(false, Ordering::Relaxed);
    }
}
