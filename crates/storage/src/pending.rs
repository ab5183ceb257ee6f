//! Decided but not yet published writes of one logical partition.
//!
//! A writer that holds the partition's lock reads *pending, then view*: what earlier writers have
//! enqueued counts, although no reader sees it yet. So writers of one key pipeline into one sync.
//!
//! INVARIANTS
//! (W1) All writes of a logical partition happen under its lock, so an entry is never older than a
//!      view's value for its key.
//! (W2) An entry leaves only when a view that contains it has been seen.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use store::{Range, Row, ScanOptions, Space, View};

use crate::Result;

/// The publication a commit is part of, once it is known.
#[derive(Clone, Debug)]
pub struct Publication(Arc<AtomicU64>);

impl Publication {
    /// Not yet published.
    pub fn new() -> Publication {
        Publication(Arc::new(AtomicU64::new(u64::MAX)))
    }

    /// Views from `sequence` on contain the commit.
    pub fn set(&self, sequence: u64) {
        self.0.store(sequence, Ordering::Release);
    }

    fn is_in(&self, view: &View) -> bool {
        self.0.load(Ordering::Acquire) <= view.sequence()
    }
}

impl Default for Publication {
    fn default() -> Publication {
        Publication::new()
    }
}

/// One pending value: `None` is a deletion.
#[derive(Clone, Debug)]
struct Entry {
    value: Option<Bytes>,
    publication: Publication,
}

/// The pending writes of one logical partition.
#[derive(Debug, Default)]
pub struct Pending {
    entries: BTreeMap<(Space, Bytes), Entry>,
}

impl Pending {
    /// Whether nothing is pending.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Forgets what `view` contains (W2).
    pub fn prune(&mut self, view: &View) {
        self.entries.retain(|_, entry| !entry.publication.is_in(view));
    }

    /// Notes a write that has been enqueued.
    pub fn note(
        &mut self,
        space: Space,
        key: Bytes,
        value: Option<Bytes>,
        publication: &Publication,
    ) {
        let entry = Entry { value, publication: publication.clone() };
        self.entries.insert((space, key), entry);
    }

    /// The newest value of a key: pending, else in `view`.
    pub fn get(&self, view: &View, space: Space, key: &[u8]) -> Result<Option<Bytes>> {
        if !self.entries.is_empty()
            && let Some(entry) = self.entries.get(&(space, Bytes::copy_from_slice(key)))
        {
            return Ok(entry.value.clone());
        }
        Ok(view.reader().get(space, key)?)
    }

    /// The newest rows of a small range: `view` with the pending writes laid over it.
    pub fn scan(&self, view: &View, space: Space, range: &Range) -> Result<Vec<Row>> {
        let stored = view.reader().scan(space, range, ScanOptions::default())?.rows;
        if self.entries.is_empty() {
            return Ok(stored);
        }
        let mut rows: BTreeMap<Bytes, Bytes> =
            stored.into_iter().map(|row| (row.key, row.value)).collect();
        for ((_, key), entry) in
            self.entries.iter().filter(|((s, k), _)| *s == space && range.contains(k))
        {
            match &entry.value {
                Some(value) => rows.insert(key.clone(), value.clone()),
                None => rows.remove(key),
            };
        }
        Ok(rows.into_iter().map(|(key, value)| Row { key, value }).collect())
    }
}
