//! Memory for caches goes where it is of use.
//!
//! There are two caches: items as they are served, for reads by id, and the blocks that items and
//! index are read from, for everything else. Which of them is of more use depends on what is asked:
//! every second a little memory moves to the one that answers more from each byte it holds. Both
//! keep a part whatever happens, so that a change of load is noticed. Memory for blocks that is free
//! is filled with what is on the disk.

use std::sync::Arc;
use std::time::Duration;

use base::worker::Worker;
use base::{Cache, CacheUsage};
use store_embedded::EmbeddedStore;

/// What is moved, and least parts of each, in sixteenths of the whole.
const PARTS: u64 = 16;
const ITEMS_MIN: u64 = 2;
const BLOCKS_MIN: u64 = 4;
/// The part of items at first.
const ITEMS_FIRST: u64 = 8;
/// An item that is found saves looking for two blocks, and a copy.
const BLOCKS_PER_ITEM: u64 = 3;
/// Fewer hits in a second say nothing.
const HITS_MIN: u64 = 1000;
const INTERVAL: Duration = Duration::from_secs(1);

/// Bytes for items and for blocks at first.
pub fn first(bytes: u64) -> (u64, u64) {
    let items = bytes / PARTS * ITEMS_FIRST;
    (items, bytes - items)
}

/// Moves memory between the caches until it is dropped.
pub fn start(items: Arc<dyn Cache>, store: Arc<EmbeddedStore>) -> Worker {
    Worker::spawn("caches", move |signal| {
        let blocks = store.cache();
        let is_wanted = || !signal.is_stopping();
        store.warm(is_wanted);
        let mut before = (items.usage(), blocks.usage());
        let total = before.0.bytes_max + before.1.bytes_max;
        while signal.wait(INTERVAL) {
            let now = (items.usage(), blocks.usage());
            let of_late = |now: CacheUsage, before: CacheUsage| CacheUsage {
                // Those of a table that is just being dropped are missed for a moment.
                hits: now.hits.saturating_sub(before.hits),
                ..now
            };
            let next = moved(total, of_late(now.0, before.0), of_late(now.1, before.1));
            before = now;
            let Some((items_max, blocks_max)) = next else { continue };
            tracing::debug!(items_max, blocks_max, "memory of caches moved");
            // The one that shrinks goes first.
            if items_max < now.0.bytes_max {
                items.resize(items_max);
                blocks.resize(blocks_max);
                store.warm(is_wanted);
            } else {
                blocks.resize(blocks_max);
                items.resize(items_max);
            }
        }
    })
}

/// The new sizes of the caches, given what they did since the last time; `None` if all is well.
fn moved(total: u64, items: CacheUsage, blocks: CacheUsage) -> Option<(u64, u64)> {
    if items.hits + blocks.hits < HITS_MIN {
        return None;
    }
    let part = total / PARTS;
    // Hits per byte, compared crosswise.
    let of_items = u128::from(items.hits * BLOCKS_PER_ITEM) * u128::from(blocks.bytes.max(1));
    let of_blocks = u128::from(blocks.hits) * u128::from(items.bytes.max(1));
    let is_full = |cache: CacheUsage| cache.bytes + part / 2 >= cache.bytes_max;
    // One that is a little better today may be a little worse tomorrow.
    let is_better = |one: u128, other: u128| one > other + other / 4;
    let items_max = if is_better(of_items, of_blocks) && is_full(items) {
        (items.bytes_max + part).min(total - BLOCKS_MIN * part)
    } else if is_better(of_blocks, of_items) && is_full(blocks) {
        items.bytes_max.saturating_sub(part).max(ITEMS_MIN * part)
    } else {
        items.bytes_max
    };
    (items_max != items.bytes_max).then_some((items_max, total - items_max))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn full(mib: u64, hits: u64) -> CacheUsage {
        CacheUsage { bytes: mib * MIB, bytes_max: mib * MIB, hits }
    }

    /// The sizes after so many seconds of the same load.
    fn settled(items_hits: u64, blocks_hits: u64) -> (u64, u64) {
        let (mut items, mut blocks) = first(256 * MIB);
        for _ in 0..100 {
            let usage = |bytes, hits| CacheUsage { bytes, bytes_max: bytes, hits };
            let next = moved(256 * MIB, usage(items, items_hits), usage(blocks, blocks_hits));
            (items, blocks) = next.unwrap_or((items, blocks));
            assert_eq!(items + blocks, 256 * MIB);
        }
        (items / MIB, blocks / MIB)
    }

    #[test]
    fn memory_goes_where_the_hits_are() {
        assert_eq!(settled(100_000, 0), (192, 64));
        assert_eq!(settled(0, 100_000), (32, 224));
        let (items, blocks) = settled(10_000, 30_000);
        assert!(items.abs_diff(blocks) <= 32, "{items} {blocks}");
    }

    #[test]
    fn it_stays_where_it_is() {
        let moved = |items, blocks| moved(256 * MIB, items, blocks);
        assert_eq!(moved(full(160, 100), full(96, 500)), None, "hardly anything happened");
        assert_eq!(moved(full(128, 10_000), full(128, 30_000)), None, "both are of like use");
        let empty = CacheUsage { bytes: 0, ..full(96, 100_000) };
        assert_eq!(moved(full(160, 0), empty), None, "there is room");
        assert_eq!(moved(full(192, 100_000), full(64, 0)), None, "the rest is kept");
    }
}
