//! Raw counts of work. Lower layers count; one place above prices.
//!
//! Work is counted where it was done: each physical partition of an operation has counts of its
//! own, for each is priced, and limited, for itself.

use std::cell::{Cell, RefCell};
use std::ops::AddAssign;

/// Counts the work of one operation. Shared by reference, counted on one thread.
#[derive(Debug, Default)]
pub struct Meter {
    /// By the number of the partition within the operation.
    partitions: RefCell<Vec<MeterReading>>,
    items_returned: Cell<u64>,
    fuel: Cell<u64>,
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
    /// Physical partitions that were sought afresh.
    pub partitions_visited: u64,
    /// Further pages of physical partitions that went on from where an earlier page ended.
    pub pages_resumed: u64,
    /// Steps of scripts and user-defined functions.
    pub fuel: u64,
}

impl AddAssign for MeterReading {
    fn add_assign(&mut self, other: MeterReading) {
        self.terms_read += other.terms_read;
        self.items_read += other.items_read;
        self.items_scanned += other.items_scanned;
        self.bytes_read += other.bytes_read;
        self.bytes_scanned += other.bytes_scanned;
        self.items_returned += other.items_returned;
        self.partitions_visited += other.partitions_visited;
        self.pages_resumed += other.pages_resumed;
        self.fuel += other.fuel;
    }
}

/// The meter of one partition of an operation.
#[derive(Clone, Copy, Debug)]
pub struct PartitionMeter<'a> {
    meter: &'a Meter,
    partition: usize,
}

impl Meter {
    /// The counts of one partition, by its number within the operation.
    pub fn at(&self, partition: usize) -> PartitionMeter<'_> {
        PartitionMeter { meter: self, partition }
    }

    /// Counts items handed to the caller.
    pub fn items_returned(&self, n: u64) {
        self.items_returned.set(self.items_returned.get() + n);
    }

    /// Counts steps of scripts and user-defined functions.
    pub fn fuel(&self, steps: u64) {
        self.fuel.set(self.fuel.get() + steps);
    }

    /// What has been counted so far.
    pub fn read(&self) -> MeterReading {
        let mut sum = MeterReading {
            items_returned: self.items_returned.get(),
            fuel: self.fuel.get(),
            ..MeterReading::default()
        };
        self.partitions.borrow().iter().for_each(|reading| sum += *reading);
        sum
    }

    /// What was counted so far, moved to a meter of its own.
    pub fn take(&self) -> Meter {
        let moved = Meter::default();
        moved.partitions.swap(&self.partitions);
        moved.items_returned.swap(&self.items_returned);
        moved.fuel.swap(&self.fuel);
        moved
    }

    /// Counts what another meter has counted.
    pub fn add(&self, other: &Meter) {
        for (partition, reading) in other.partitions.borrow().iter().enumerate() {
            if *reading != MeterReading::default() {
                self.at(partition).count(|own| *own += *reading);
            }
        }
        self.items_returned(other.items_returned.get());
        self.fuel(other.fuel.get());
    }

    /// What has been counted in each partition. Those after the last that did anything are absent.
    pub fn partitions(&self) -> Vec<MeterReading> {
        self.partitions.borrow().clone()
    }
}

impl PartitionMeter<'_> {
    /// Counts index entries visited.
    pub fn terms_read(self, n: u64) {
        self.count(|reading| reading.terms_read += n);
    }

    /// Counts one item loaded through the index or by identity.
    pub fn item_read(self, bytes: usize) {
        self.items_read(1, bytes);
    }

    /// Counts items loaded, with the bytes of all of them.
    pub fn items_read(self, items: u64, bytes: usize) {
        self.count(|reading| {
            reading.items_read += items;
            reading.bytes_read += bytes as u64;
        });
    }

    /// Counts one item met by a scan.
    pub fn item_scanned(self, bytes: usize) {
        self.count(|reading| {
            reading.items_scanned += 1;
            reading.bytes_scanned += bytes as u64;
        });
    }

    /// Counts the partition as sought afresh.
    pub fn visited(self) {
        self.count(|reading| reading.partitions_visited += 1);
    }

    /// Counts a page that goes on from where an earlier one ended.
    pub fn resumed(self) {
        self.count(|reading| reading.pages_resumed += 1);
    }

    fn count(self, change: impl FnOnce(&mut MeterReading)) {
        let mut partitions = self.meter.partitions.borrow_mut();
        if partitions.len() <= self.partition {
            partitions.resize(self.partition + 1, MeterReading::default());
        }
        change(&mut partitions[self.partition]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_partition_is_counted_for_itself() {
        let meter = Meter::default();
        meter.at(2).item_read(100);
        meter.at(0).terms_read(3);
        meter.at(2).item_scanned(7);
        meter.items_returned(1);
        meter.fuel(9);
        let parts = meter.partitions();
        assert_eq!(parts[0], MeterReading { terms_read: 3, ..MeterReading::default() });
        assert_eq!(parts[1], MeterReading::default());
        assert_eq!((parts[2].items_read, parts[2].bytes_scanned), (1, 7));
        let sum = meter.read();
        assert_eq!((sum.terms_read, sum.bytes_read, sum.items_scanned), (3, 100, 1));
        assert_eq!((sum.items_returned, sum.fuel), (1, 9));
        let moved = meter.take();
        assert_eq!(meter.read(), MeterReading::default());
        meter.at(1).visited();
        meter.add(&moved);
        assert_eq!(meter.partitions()[2], parts[2]);
        assert_eq!(meter.read(), MeterReading { partitions_visited: 1, ..sum });
    }
}
