//! Blocks that were read lately, of all tables, up to a size. Blocks that are written are kept too
//! while there is room: what was just stored need not be read again. So are blocks of tables that
//! are opened, in the order of the files, which is how a disk is read fastest.

use std::sync::Arc;

use base::CacheUsage;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::block::Block;

/// What a block costs beside its bytes.
const OVERHEAD_BYTES: usize = 96;

/// Room that is left in each part of the cache.
const SLACK_BYTES: u64 = 16 << 10;

/// A block of a table: their numbers.
type Place = (u64, u32);

#[derive(Clone)]
struct ByBytes;

impl Weighter<Place, Arc<Block>> for ByBytes {
    fn weight(&self, _: &Place, block: &Arc<Block>) -> u64 {
        (block.size() + OVERHEAD_BYTES) as u64
    }
}

/// See the module header. Numbers of tables are never used twice, so nothing in it can be stale.
pub(crate) struct BlockCache {
    blocks: Cache<Place, Arc<Block>, ByBytes>,
}

impl BlockCache {
    pub(crate) fn new(bytes_max: u64) -> BlockCache {
        let blocks = (bytes_max / 8192).clamp(64, 1 << 22) as usize;
        BlockCache { blocks: Cache::with_weighter(blocks, bytes_max, ByBytes) }
    }

    pub(crate) fn get(&self, table: u64, block: u32) -> Option<Arc<Block>> {
        self.blocks.get(&(table, block))
    }

    pub(crate) fn put(&self, table: u64, number: u32, block: Arc<Block>) {
        self.blocks.insert((table, number), block);
    }

    /// Whether it holds a block, without using it.
    pub(crate) fn holds(&self, table: u64, number: u32) -> bool {
        self.blocks.contains_key(&(table, number))
    }

    /// Whether nothing has to go for a block of this size.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        (bytes + OVERHEAD_BYTES) as u64 <= self.room()
    }

    /// Bytes that can be put without anything having to go. The cache consists of parts that are
    /// full one by one; what they may differ by is not counted.
    pub(crate) fn room(&self) -> u64 {
        let capacity = self.blocks.capacity();
        let slack = (self.blocks.num_shards() as u64 * SLACK_BYTES).min(capacity / 16);
        capacity.saturating_sub(self.blocks.weight() + slack)
    }

    /// Keeps a block that nobody asked for, if nothing has to go for it; says whether it does.
    pub(crate) fn put_if_room(&self, table: u64, number: u32, block: Block) -> bool {
        let has_room = self.has_room(block.size());
        if has_room {
            self.put(table, number, Arc::new(block));
        }
        has_room
    }

    /// Forgets blocks of a table that is no more, or soon will be.
    pub(crate) fn forget(&self, table: u64, blocks: std::ops::Range<u32>) {
        for number in blocks {
            self.blocks.remove(&(table, number));
        }
    }
}

impl base::Cache for BlockCache {
    fn usage(&self) -> CacheUsage {
        let (bytes, bytes_max) = (self.blocks.weight(), self.blocks.capacity());
        CacheUsage { bytes, bytes_max, hits: self.blocks.hits() }
    }

    fn resize(&self, bytes_max: u64) {
        self.blocks.set_capacity(bytes_max);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::super::Entry;
    use super::super::block::BlockBuilder;
    use super::*;

    #[test]
    fn what_is_written_never_drives_out_what_was_read() {
        let mut builder = BlockBuilder::default();
        builder.push(b"key", Entry::Value(&[7; 1000]));
        let bytes = builder.finish().to_vec();
        let block = || Block::new(bytes.clone()).unwrap();
        let cache = BlockCache::new(64 << 10);
        (0..20).for_each(|number| assert!(cache.put_if_room(1, number, block())));
        assert!((0..20).all(|number| cache.get(1, number).is_some()));
        assert!(!(0..200).all(|number| cache.put_if_room(2, number, block())));
        assert!((0..20).all(|number| cache.get(1, number).is_some()));
        assert!(cache.get(2, 199).is_none());
        cache.forget(1, 0..20);
        assert!((0..20).all(|number| cache.get(1, number).is_none()));
        assert!(cache.put_if_room(3, 0, block()));
        assert!(cache.get(3, 0).is_some());
    }
}
