//! Blocks that were read lately, of all tables, up to a size. Blocks that are written are kept too
//! while there is room: what was just stored need not be read again.

use std::sync::Arc;

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::block::Block;

/// What a block costs beside its bytes.
const OVERHEAD_BYTES: usize = 96;

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

    /// Keeps a block that was written, if nothing has to go for it.
    pub(crate) fn put_if_room(&self, table: u64, number: u32, bytes: &[u8]) {
        let weight = (bytes.len() + OVERHEAD_BYTES) as u64;
        let has_room = self.blocks.weight() + weight < self.blocks.capacity();
        if let Some(block) = has_room.then(|| Block::new(bytes.to_vec())).flatten() {
            self.put(table, number, Arc::new(block));
        }
    }

    /// Forgets blocks of a table that is no more, or soon will be.
    pub(crate) fn forget(&self, table: u64, blocks: std::ops::Range<u32>) {
        for number in blocks {
            self.blocks.remove(&(table, number));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Entry;
    use super::super::block::BlockBuilder;
    use super::*;

    #[test]
    fn what_is_written_never_drives_out_what_was_read() {
        let mut builder = BlockBuilder::default();
        builder.push(b"key", Entry::Value(&[7; 1000]));
        let bytes = builder.finish().to_vec();
        let cache = BlockCache::new(64 << 10);
        (0..20).for_each(|number| cache.put_if_room(1, number, &bytes));
        assert!((0..20).all(|number| cache.get(1, number).is_some()));
        (0..200).for_each(|number| cache.put_if_room(2, number, &bytes));
        assert!((0..20).all(|number| cache.get(1, number).is_some()));
        assert!(cache.get(2, 199).is_none());
        cache.forget(1, 0..20);
        assert!((0..20).all(|number| cache.get(1, number).is_none()));
        cache.put_if_room(3, 0, &bytes);
        assert!(cache.get(3, 0).is_some());
    }
}
