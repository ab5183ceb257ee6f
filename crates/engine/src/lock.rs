//! The lock of a logical partition: fair, keyed exactly, waited for without a thread.
//!
//! A writer takes the lock asynchronously at the edge, then carries the guard down to where it
//! decides and enqueues; it never holds the lock while waiting for the disk. Behind the lock are
//! the partition's pending writes (`storage::pending`), so whoever decides sees them.
//!
//! INVARIANTS
//! (L1) There is at most one entry per logical partition while anybody holds, waits for, or has
//!      pending writes under it.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use parking_lot::Mutex;
use storage::pending::Pending;
use storage::shape::LogicalKey;
use store::View;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

use crate::Container;

const SHARDS: usize = 64;
/// A shard is swept when it has grown to twice what was left by the last sweep, at least to this.
const SWEEP_AT: usize = 256;

type Entry = Arc<AsyncMutex<Pending>>;

#[derive(Default)]
struct Shard {
    entries: HashMap<(u32, Box<[u8]>), Entry>,
    sweep_at: usize,
}

/// All locks that anybody cares about.
pub(crate) struct Locks {
    shards: Vec<Mutex<Shard>>,
    hasher: RandomState,
}

/// The lock of one logical partition, held. Dropping it lets the next writer in.
pub struct PartitionGuard {
    pub(crate) pending: OwnedMutexGuard<Pending>,
    pub(crate) container: Arc<Container>,
    pub(crate) key: LogicalKey,
}

impl PartitionGuard {
    /// The container this is a lock of.
    pub fn container(&self) -> &Arc<Container> {
        &self.container
    }
}

impl Locks {
    pub fn new() -> Locks {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        Locks { shards, hasher: RandomState::new() }
    }

    /// The entry of a logical partition, made if need be (L1: under the shard's lock).
    pub fn entry(&self, container: u32, key: &[u8], view: impl FnOnce() -> View) -> Entry {
        let at = self.hasher.hash_one((container, key)) as usize % SHARDS;
        let mut shard = self.shards[at].lock();
        if shard.entries.len() >= shard.sweep_at.max(SWEEP_AT) {
            shard.sweep(&view());
        }
        shard.entries.entry((container, key.into())).or_default().clone()
    }

    /// Forgets entries that nobody uses.
    pub fn sweep(&self, view: &View) {
        self.shards.iter().for_each(|shard| shard.lock().sweep(view));
    }
}

impl Shard {
    fn sweep(&mut self, view: &View) {
        self.entries.retain(|_, entry| {
            let is_shared = Arc::strong_count(entry) > 1;
            is_shared
                || !entry.try_lock().is_ok_and(|mut pending| {
                    pending.prune(view);
                    pending.is_empty()
                })
        });
        self.sweep_at = self.entries.len() * 2;
    }
}
