//! Raw counts of work. Lower layers count; one place above prices.

use std::cell::Cell;

/// Counts the work of one operation. Shared by reference, counted on one thread.
#[derive(Debug, Default)]
pub struct Meter {
    terms_read: Cell<u64>,
    items_read: Cell<u64>,
    items_scanned: Cell<u64>,
    bytes_read: Cell<u64>,
    bytes_scanned: Cell<u64>,
    items_returned: Cell<u64>,
    partitions_visited: Cell<u64>,
}

/// What a [`Meter`] showed at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeterReading {
    /// Index entries visited by ordered or range traversal.
    pub terms_read: u64,
    /// Items loaded through the index or by identity.
    pub items_read: u64,
    /// Items met by a scan without a usable index.
    pub items_scanned: u64,
    /// Bytes of the items loaded.
    pub bytes_read: u64,
    /// Bytes of the items scanned.
    pub bytes_scanned: u64,
    /// Items that reached the caller.
    pub items_returned: u64,
    /// Physical partitions that did any of this.
    pub partitions_visited: u64,
}

fn add(cell: &Cell<u64>, n: u64) {
    cell.set(cell.get() + n);
}

impl Meter {
    /// Counts index entries visited.
    pub fn terms_read(&self, n: u64) {
        add(&self.terms_read, n);
    }

    /// Counts one item loaded through the index or by identity.
    pub fn item_read(&self, bytes: usize) {
        add(&self.items_read, 1);
        add(&self.bytes_read, bytes as u64);
    }

    /// Counts one item met by a scan.
    pub fn item_scanned(&self, bytes: usize) {
        add(&self.items_scanned, 1);
        add(&self.bytes_scanned, bytes as u64);
    }

    /// Counts items handed to the caller.
    pub fn items_returned(&self, n: u64) {
        add(&self.items_returned, n);
    }

    /// Counts one physical partition visited.
    pub fn partition_visited(&self) {
        add(&self.partitions_visited, 1);
    }

    /// What has been counted so far.
    pub fn read(&self) -> MeterReading {
        MeterReading {
            terms_read: self.terms_read.get(),
            items_read: self.items_read.get(),
            items_scanned: self.items_scanned.get(),
            bytes_read: self.bytes_read.get(),
            bytes_scanned: self.bytes_scanned.get(),
            items_returned: self.items_returned.get(),
            partitions_visited: self.partitions_visited.get(),
        }
    }
}
