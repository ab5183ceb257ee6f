//! Which stored items count as present.
//!
//! An item can be stored and yet gone: its time to live is over, or its partition key was deleted
//! after it was written. Such an item is invisible at once, everywhere, and removed later by
//! background work; a write to its identity behaves as if it were absent.

use item::{Item, Ttl};
use model::partition_key::PartitionKey;

/// A deletion by partition key: everything under `key` (or a prefix of it) up to `lsn` is gone.
#[derive(Clone, Debug, PartialEq)]
pub struct Erasure {
    /// The key, or its first levels.
    pub key: PartitionKey,
    /// Number of the physical partition it applies to.
    pub partition: u16,
    /// Position of the deletion in that partition's log.
    pub lsn: u64,
}

impl Erasure {
    fn covers(&self, partition: u16, key: &PartitionKey, lsn: u64) -> bool {
        self.partition == partition && lsn <= self.lsn && key.0.starts_with(&self.key.0)
    }
}

/// Why an item is not visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gone {
    /// Its time to live is over.
    Expired,
    /// Its partition key was deleted.
    Erased,
}

/// Decides visibility at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Visibility<'a> {
    /// The time, in seconds since 1970.
    pub now: u32,
    /// The container's default: `None` is off, negative means on without a default.
    pub default_ttl: Option<i32>,
    /// Deletions by partition key in force.
    pub erasures: &'a [Erasure],
}

impl Visibility<'_> {
    /// Why an item is gone, or `None` if it is present. `key` is asked for only when needed.
    pub fn gone(
        &self,
        item: &Item,
        partition: u16,
        key: impl FnOnce() -> Option<PartitionKey>,
    ) -> Option<Gone> {
        if self.expiry(item).is_some_and(|at| at <= self.now) {
            return Some(Gone::Expired);
        }
        if self.erasures.is_empty() {
            return None;
        }
        let key = key()?;
        let erased = self.erasures.iter().any(|e| e.covers(partition, &key, item.lsn()));
        erased.then_some(Gone::Erased)
    }

    /// When an item expires under the container's setting, in seconds since 1970.
    pub fn expiry(&self, item: &Item) -> Option<u32> {
        let default = self.default_ttl?;
        match item.ttl() {
            Ttl::Never => None,
            Ttl::Seconds(seconds) => Some(item.ts().saturating_add(seconds)),
            Ttl::Absent | Ttl::Invalid if default > 0 => {
                Some(item.ts().saturating_add(default as u32))
            }
            Ttl::Absent | Ttl::Invalid => None,
        }
    }
}
