//! What operations cost: the only place that prices work.
//!
//! Point operations follow the published size tables: piecewise linear between their rows, on a
//! grid of 1/21 RU for reads and 4/21 RU for writes; each index term changed costs one write
//! quantum. Everything is integers, so a charge is the same on every machine and in every order.

use base::MeterReading;
use model::RequestCharge;
use model::container::ContainerDefinition;
use storage::upkeep::Derived;

use crate::Error;

/// A point read that finds nothing, or nothing newer.
pub const MISS: RequestCharge = RequestCharge::ONE;
/// Reads and writes of databases, containers, offers and the like.
pub const METADATA: RequestCharge = RequestCharge::ONE;
/// A write refused for a version or an identity that is taken: 26/21 RU.
const REFUSED_WRITE: RequestCharge = RequestCharge::from_raw(26 * 100_000);
/// A request refused for lack of throughput: 8/21 RU.
const THROTTLED: RequestCharge = RequestCharge::from_raw(8 * 100_000);
/// Each operation of a patch: 0.4 RU.
const PATCH_OPERATION: RequestCharge = RequestCharge::from_raw(840_000);

/// Visiting one physical partition: 2.58 RU.
const QUERY_PARTITION: u64 = 5_418_000;
/// One index entry visited: 0.0032 RU.
const QUERY_TERM: u64 = 6_720;
/// One item loaded: 0.085 RU, and 0.091 RU per KB.
const QUERY_ITEM: (u64, u64) = (178_500, 191_100);
/// One item scanned: 0.020 RU, and 0.0071 RU per KB.
const QUERY_SCANNED: (u64, u64) = (42_000, 14_910);

/// (KB, read units) of the published table.
const READ: [(u64, u64); 12] = [
    (1, 21),
    (2, 22),
    (4, 24),
    (8, 28),
    (16, 35),
    (32, 46),
    (64, 100),
    (128, 209),
    (256, 426),
    (512, 860),
    (1024, 3064),
    (2048, 6128),
];

/// (KB, quarter write quanta) of the published table; the last two rows are not whole quanta.
const WRITE: [(u64, u64); 12] = [
    (1, 26 * 4),
    (2, 33 * 4),
    (4, 35 * 4),
    (8, 37 * 4),
    (16, 50 * 4),
    (32, 59 * 4),
    (64, 119 * 4),
    (128, 253 * 4),
    (256, 516 * 4),
    (512, 969 * 4),
    (1024, 13_125),
    (2048, 26_250),
];

/// The segment of a table that holds `bytes`, as a fraction: (numerator, denominator).
fn interpolate(table: &[(u64, u64)], bytes: u64) -> (u64, u64) {
    let (first_kb, first) = table[0];
    if bytes <= first_kb * 1024 {
        return (first, 1);
    }
    let at = table.iter().position(|(kb, _)| bytes <= kb * 1024).unwrap_or(table.len() - 1);
    let ((a, b), (c, d)) = (table[at - 1], table[at]);
    let width = (c - a) * 1024;
    (b * width + (d - b) * (bytes - a * 1024), width)
}

/// Read units of an item, rounded down.
fn read_base(bytes: usize) -> u64 {
    let (numerator, denominator) = interpolate(&READ, bytes as u64);
    numerator / denominator
}

/// Write quanta of an item, rounded half up.
fn write_base(bytes: usize) -> u64 {
    let (numerator, denominator) = interpolate(&WRITE, bytes as u64);
    (2 * numerator + 4 * denominator) / (8 * denominator)
}

/// What the price of a write depends on: the size of a version and what it contributes.
#[derive(Clone, Copy)]
pub(crate) struct Size<'a> {
    /// Bytes of its text.
    pub bytes: usize,
    /// Its terms.
    pub derived: &'a Derived,
}

/// A point read.
pub fn point_read(bytes: usize) -> RequestCharge {
    RequestCharge::READ_UNIT * read_base(bytes)
}

/// A create or a delete.
pub(crate) fn write(definition: &ContainerDefinition, size: Size<'_>) -> RequestCharge {
    let derived = size.derived;
    let terms = index::charge_terms(definition, &derived.terms) + derived.texts.len() as u32;
    RequestCharge::WRITE_QUANTUM * (write_base(size.bytes) + u64::from(terms))
}

/// A replacement.
pub(crate) fn rewrite(old: Size<'_>, new: Size<'_>) -> RequestCharge {
    let sides = [old.derived, new.derived].map(|side| (&side.terms, &side.composites));
    let texts = index::changed_terms(&old.derived.texts, &new.derived.texts);
    let terms = index::charge_difference(sides[0], sides[1]) + texts;
    let pairs = old.derived.uniques.iter().zip(&new.derived.uniques);
    let uniques = 2 * pairs.filter(|(old, new)| old != new).count() as u64;
    let bases = write_base(old.bytes) + write_base(new.bytes);
    RequestCharge::WRITE_QUANTUM * (bases + u64::from(terms) + uniques)
}

/// What the operations of a patch add to its replacement.
pub(crate) fn patch(operations: usize) -> RequestCharge {
    PATCH_OPERATION * operations as u64
}

/// A page of a read feed or change feed.
pub(crate) fn feed(sizes: impl Iterator<Item = usize>) -> RequestCharge {
    let sum: RequestCharge = sizes.map(point_read).sum();
    sum.max(MISS)
}

/// A page of a query, from the work it did.
pub(crate) fn query(meter: &MeterReading) -> RequestCharge {
    let sized = |(each, per_kb): (u64, u64), count: u64, bytes: u64| {
        each * count + (bytes * per_kb + 512) / 1024
    };
    RequestCharge::from_raw(
        QUERY_PARTITION * meter.partitions_visited.max(1)
            + QUERY_TERM * meter.terms_read
            + sized(QUERY_ITEM, meter.items_read, meter.bytes_read)
            + sized(QUERY_SCANNED, meter.items_scanned, meter.bytes_scanned),
    )
}

/// One run of a stored procedure or trigger: 0.15 RU.
pub(crate) const SCRIPT: RequestCharge = RequestCharge::from_raw(315_000);
/// Interpreter steps that cost 1 RU.
const STEPS_PER_UNIT: u64 = 2_000_000;

/// What the steps of a script cost.
pub(crate) fn fuel(steps: u64) -> RequestCharge {
    RequestCharge::from_raw(steps * RequestCharge::ONE.raw() / STEPS_PER_UNIT)
}

/// What a failed request reports.
pub fn of_failure(error: &Error) -> RequestCharge {
    match error {
        Error::Conflict
        | Error::UniqueKeyConflict
        | Error::PreconditionFailed
        | Error::PatchConditionFailed => REFUSED_WRITE,
        Error::Throttled { .. } => THROTTLED,
        Error::Script(error) => error.charge,
        Error::Invalid(_)
        | Error::InvalidQuery(_)
        | Error::NotSupported(_)
        | Error::PartitionKeyMismatch
        | Error::PartitionKeyMissing
        | Error::ContainerRecreated { .. }
        | Error::Forbidden(_)
        | Error::LogicalPartitionFull
        | Error::NotFound
        | Error::OwnerNotFound
        | Error::SessionNotAvailable { .. }
        | Error::RangeGone { .. }
        | Error::TooLarge(_)
        | Error::Locked(_)
        | Error::RetryWith
        | Error::Timeout => MISS,
        Error::Unavailable | Error::Fault(_) => RequestCharge::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_follow_the_published_table() {
        for (kb, text) in [(1, "1"), (2, "1.05"), (4, "1.14"), (8, "1.33"), (16, "1.67")] {
            assert_eq!(point_read(kb * 1024).to_string(), text, "{kb} KB");
        }
        for (kb, units) in [(32, 46), (64, 100), (128, 209), (512, 860), (2048, 6128)] {
            assert_eq!(point_read(kb * 1024), RequestCharge::READ_UNIT * units, "{kb} KB");
        }
        assert_eq!(point_read(1810).to_string(), "1", "a 1.8 KB item costs one unit");
        assert_eq!(point_read(10), RequestCharge::ONE);
    }

    #[test]
    fn write_bases_follow_the_published_table() {
        for (kb, quanta) in [(1, 26), (2, 33), (4, 35), (32, 59), (512, 969), (1024, 3281)] {
            assert_eq!(write_base(kb * 1024), quanta, "{kb} KB");
        }
        assert_eq!(write_base(100), 26);
        assert_eq!(write_base(1746), 31);
    }
}
