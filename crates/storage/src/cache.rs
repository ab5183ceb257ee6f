//! Identities to items, kept in memory, ordered by publication.
//!
//! A point read that hits costs a hash and a reference count. The cache never locks out a writer
//! and never serves a reader something its view does not contain:
//!
//! ```text
//! C  = the last publication that changed anything in the identity's slot
//! F  = the publication of the view an entry was filled from
//! V  = the publication of the reader's view
//! ```
//!
//! INVARIANTS
//! (H1) An entry is used only if F ≥ C and V ≥ C: nothing in the slot changed since the fill, and
//!      the reader's view contains the last change.
//! (H2) C moves before the view that contains the change can be seen (`Commit::before_publish`).
//!
//! From H1 and H2: whoever sees a view V ≥ C reads the state of V, whoever holds an older view goes
//! to the store. Visibility (time to live) is decided after a hit, by the caller.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use base::CacheUsage;
use item::Item;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

const SLOTS: usize = 1 << 17;

#[derive(Clone)]
struct Entry {
    item: Item,
    filled: u64,
}

#[derive(Clone)]
struct ByBytes;

impl Weighter<Box<[u8]>, Entry> for ByBytes {
    fn weight(&self, key: &Box<[u8]>, entry: &Entry) -> u64 {
        (key.len() + entry.item.as_bytes().len() + 128) as u64
    }
}

impl base::Cache for ItemCache {
    fn usage(&self) -> CacheUsage {
        let (bytes, bytes_max) = (self.entries.weight(), self.entries.capacity());
        CacheUsage { bytes, bytes_max, hits: self.entries.hits() }
    }

    fn resize(&self, bytes_max: u64) {
        self.entries.set_capacity(bytes_max);
    }
}

/// See the module header.
pub struct ItemCache {
    entries: Cache<Box<[u8]>, Entry, ByBytes>,
    changes: Box<[AtomicU64]>,
    hasher: RandomState,
}

impl ItemCache {
    /// A cache of about so many bytes; 0 keeps nothing.
    pub fn new(bytes_max: u64) -> ItemCache {
        let items = (bytes_max / 1500).clamp(16, 1 << 24) as usize;
        ItemCache {
            entries: Cache::with_weighter(items, bytes_max, ByBytes),
            changes: (0..SLOTS).map(|_| AtomicU64::new(0)).collect(),
            hasher: RandomState::new(),
        }
    }

    fn slot(&self, key: &[u8]) -> &AtomicU64 {
        &self.changes[self.hasher.hash_one(key) as usize % SLOTS]
    }

    /// The item under an identity key, if the cache knows what a view numbered `sequence` holds.
    pub fn get(&self, key: &[u8], sequence: u64) -> Option<Item> {
        let entry = self.entries.get(key)?;
        let changed = self.slot(key).load(Ordering::Acquire);
        (entry.filled >= changed && sequence >= changed).then_some(entry.item)
    }

    /// Offers what a view numbered `sequence` holds. Ignored if something changed since.
    pub fn fill(&self, key: &[u8], item: &Item, sequence: u64) {
        if self.slot(key).load(Ordering::Acquire) <= sequence {
            let entry = Entry { item: item.clone(), filled: sequence };
            self.entries.insert(key.into(), entry);
        }
    }

    /// Notes a change that the view numbered `sequence` will be the first to contain (H2).
    pub fn change(&self, key: &[u8], item: Option<&Item>, sequence: u64) {
        self.slot(key).fetch_max(sequence, Ordering::Release);
        match item {
            Some(item) => {
                let entry = Entry { item: item.clone(), filled: sequence };
                self.entries.insert(key.into(), entry);
            }
            None => {
                self.entries.remove(key);
            }
        }
    }
}
