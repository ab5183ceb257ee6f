//! Blocks that were read lately, of all tables, up to a size.

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
}
