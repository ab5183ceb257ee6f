//! The price of a page of a query, from the work each physical partition did for it.
//!
//! ```text
//! Q0                  for a partition that is sought afresh
//! Q0 / 10             for one that goes on from where an earlier page ended
//! 0.05 RU             for each equality filter beyond the third, for each of them
//! k                   for an index entry visited
//! a + b per KB        for an item loaded through the index
//! sa + sb per KB      for an item scanned for want of an index
//! k                   for a row that only feeds an aggregate, under the profile `modern`
//! ```

use base::{Meter, MeterReading};
use model::RequestCharge;

use super::{Bill, Profile, Work, fuel};

/// Q0, visiting one physical partition: 2.58 RU.
const PARTITION: u64 = 5_418_000;
/// Going on in one: a tenth of that.
const RESUMED: u64 = PARTITION / 10;
/// k, one index entry visited: 0.0032 RU.
const ENTRY: u64 = 6_720;
/// a and b, one item loaded: 0.085 RU, and 0.091 RU per KB.
const LOADED: (u64, u64) = (178_500, 191_100);
/// sa and sb, one item scanned: 0.020 RU, and 0.0071 RU per KB.
const SCANNED: (u64, u64) = (42_000, 14_910);
/// An equality filter beyond those in Q0: 0.05 RU.
const FILTER: u64 = 105_000;
/// Equality filters in Q0.
const FILTERS_FREE: usize = 3;

/// What the price of a query depends on besides its work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    /// The price list.
    pub profile: Profile,
    /// Equality filters of the query.
    pub filters: usize,
    /// Its rows only feed aggregates, and the index knows which they are.
    pub is_covered: bool,
}

/// The price of a page, and the share of each partition in it.
pub(crate) fn query(
    wants_receipt: bool,
    meter: &Meter,
    terms: Terms,
) -> (Bill, Vec<RequestCharge>) {
    let mut readings = meter.partitions();
    // A query that needs no partition is still read and answered by one.
    if readings.iter().all(|reading| reading.partitions_visited + reading.pages_resumed == 0) {
        readings.resize(readings.len().max(1), MeterReading::default());
        readings[0].partitions_visited = 1;
    }
    let parts: Vec<_> = readings.iter().map(|reading| lines(reading, terms)).collect();
    let mut bill = Bill::new(wants_receipt);
    for at in 0..LINES {
        let count = parts.iter().map(|lines| lines[at].1).sum();
        let sum = parts.iter().map(|lines| lines[at].2).sum();
        if count > 0 {
            bill.add_sum(parts[0][at].0.clone(), count, RequestCharge::from_raw(sum));
        }
    }
    let share =
        |lines: &[Line; LINES]| RequestCharge::from_raw(lines.iter().map(|line| line.2).sum());
    let mut shares: Vec<RequestCharge> = parts.iter().map(share).collect();
    let steps = meter.read().fuel;
    if steps > 0 {
        bill.add_sum(Work::Fuel, steps, fuel(steps));
        shares[0] += fuel(steps);
    }
    (bill, shares)
}

/// What, how many, and their price.
type Line = (Work, u64, u64);
const LINES: usize = 9;

fn lines(reading: &MeterReading, terms: Terms) -> [Line; LINES] {
    let pages = reading.partitions_visited + reading.pages_resumed;
    let filters = pages * terms.filters.saturating_sub(FILTERS_FREE) as u64;
    let is_told = terms.profile == Profile::Modern && terms.is_covered;
    let (told, loaded, loaded_bytes) = match is_told {
        true => (reading.items_read, 0, 0),
        false => (0, reading.items_read, reading.bytes_read),
    };
    let per_kb = |price: u64, bytes: u64| (price * bytes + 512) / 1024;
    let scanned_bytes = reading.bytes_scanned;
    [
        (Work::Partitions, reading.partitions_visited, PARTITION * reading.partitions_visited),
        (Work::PagesResumed, reading.pages_resumed, RESUMED * reading.pages_resumed),
        (Work::Filters, filters, FILTER * filters),
        (Work::Entries, reading.terms_read, ENTRY * reading.terms_read),
        (Work::Told, told, ENTRY * told),
        (Work::Loaded, loaded, LOADED.0 * loaded),
        (Work::LoadedBytes, loaded_bytes, per_kb(LOADED.1, loaded_bytes)),
        (Work::Scanned, reading.items_scanned, SCANNED.0 * reading.items_scanned),
        (Work::ScannedBytes, scanned_bytes, per_kb(SCANNED.1, scanned_bytes)),
    ]
}
