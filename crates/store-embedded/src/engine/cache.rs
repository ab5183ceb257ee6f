//! Blocks in memory, of all tables, up to a size.
//!
//! ```text
//!   table ─▶ shelf 0        shelf 1        …        a place per block, a lock per shelf
//!            [b · · b b]    []                      nothing on it, no places
//!                    ▲
//!                    hand: goes round over all shelves of all tables
//! ```
//!
//! To find a block is to look at its place, and to find neighbors takes one lock. When there is too
//! much, the hand takes what was not used since it came by; what was used more often it leaves for
//! as many rounds (a clock with counts, as PostgreSQL has it).
//!
//! Blocks that are written are kept too while there is room: what was just stored need not be read
//! again. So are blocks of tables that are opened, in the order of the files, which is how a disk is
//! read fastest.
//!
//! INVARIANTS
//! (C1) `bytes` is what all blocks and places on shelves and all [`Kept`] weigh, but for changes
//!      under way; `kept` is what the latter do.
//! (C2) The hand is locked before a shelf, and no two shelves are locked at once.
//!
//! WHY OURS   A map for all blocks costs a hash, a lock and a chain of places in memory that are in
//!            no cache of the processor, for each block; that was half of finding a row.

use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};

use base::CacheUsage;
use parking_lot::{Mutex, RwLock, RwLockReadGuard};

use super::block::Block;

/// Places of a shelf.
const SHELF: usize = 128;
/// Rounds for which a block that is used often is left in its place.
const USES_MAX: u8 = 3;
/// What a block costs beside its bytes.
const OVERHEAD_BYTES: usize = 96;

/// See the module header.
pub(crate) struct BlockCache {
    bytes: AtomicU64,
    /// What the hand cannot take.
    kept: AtomicU64,
    bytes_max: AtomicU64,
    /// Of tables that are no more.
    hits: AtomicU64,
    hand: Mutex<Hand>,
}

/// Where the hand is.
#[derive(Default)]
struct Hand {
    tables: Vec<Weak<Shelves>>,
    table: usize,
    shelf: usize,
    place: usize,
}

/// The places for the blocks of a table.
pub(crate) struct Shelves {
    cache: Arc<BlockCache>,
    shelves: Box<[Shelf]>,
    blocks: usize,
}

#[derive(Default)]
struct Shelf {
    /// As many as there are blocks, or none.
    places: RwLock<Vec<Place>>,
    hits: AtomicU64,
}

#[derive(Default)]
struct Place {
    block: Option<Arc<Block>>,
    uses: AtomicU8,
}

/// Blocks that are kept for a table that is not open yet.
pub(crate) struct Kept {
    cache: Arc<BlockCache>,
    blocks: Vec<(usize, Arc<Block>)>,
}

fn weight(block: &Block) -> u64 {
    (block.size() + OVERHEAD_BYTES) as u64
}

impl BlockCache {
    pub(crate) fn new(bytes_max: u64) -> BlockCache {
        BlockCache {
            bytes: AtomicU64::new(0),
            kept: AtomicU64::new(0),
            bytes_max: AtomicU64::new(bytes_max),
            hits: AtomicU64::new(0),
            hand: Mutex::default(),
        }
    }

    /// Empty places for the blocks of a table.
    pub(crate) fn shelves(self: &Arc<Self>, blocks: usize) -> Arc<Shelves> {
        let shelves = (0..blocks.div_ceil(SHELF)).map(|_| Shelf::default()).collect();
        let shelves = Arc::new(Shelves { cache: self.clone(), shelves, blocks });
        let mut hand = self.hand.lock();
        hand.tables.retain(|table| table.strong_count() > 0);
        hand.tables.push(Arc::downgrade(&shelves));
        drop(hand);
        shelves
    }

    /// Bytes that can be put without anything having to go.
    pub(crate) fn room(&self) -> u64 {
        self.bytes_max.load(Relaxed).saturating_sub(self.bytes.load(Relaxed))
    }

    /// Whether nothing has to go for a block of this size.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        (bytes + OVERHEAD_BYTES) as u64 <= self.room()
    }

    /// Lets the hand go on until there is not too much. If somebody else moves it, he does.
    fn make_room(&self) {
        if self.too_much() == 0 {
            return;
        }
        let Some(mut hand) = self.hand.try_lock() else { return };
        let rounds = usize::from(USES_MAX) + 2;
        let tables = hand.tables.iter().filter_map(Weak::upgrade);
        let shelves: usize = tables.map(|table| table.shelves.len() + 1).sum();
        for _ in 0..rounds * (shelves + 1) {
            let too_much = self.too_much();
            if too_much == 0 || hand.tables.is_empty() {
                return;
            }
            self.bytes.fetch_sub(hand.step(too_much), Relaxed);
        }
    }

    /// What on the shelves has to go.
    fn too_much(&self) -> u64 {
        let (bytes, kept) = (self.bytes.load(Relaxed), self.kept.load(Relaxed));
        bytes.saturating_sub(self.bytes_max.load(Relaxed).max(kept))
    }
}

impl Hand {
    /// Goes over one shelf, or to another table, and says how many bytes went: no more than are
    /// wanted, but for the last block.
    fn step(&mut self, wanted: u64) -> u64 {
        let table = self.tables.get(self.table).and_then(Weak::upgrade);
        match table.as_ref().map(|table| table.shelves.get(self.shelf)) {
            Some(Some(shelf)) => {
                let (bytes, place) = shelf.take_unused(self.place, wanted);
                self.place = place.unwrap_or(0);
                self.shelf += usize::from(place.is_none());
                return bytes;
            }
            Some(None) | None => self.table += 1,
        }
        (self.shelf, self.place) = (0, 0);
        if self.table >= self.tables.len() {
            self.table = 0;
        }
        0
    }
}

impl Shelf {
    /// Takes blocks that were not used, from a place on, until they weigh enough. Says what they
    /// weigh, and where it goes on if it does.
    fn take_unused(&self, from: usize, wanted: u64) -> (u64, Option<usize>) {
        let mut places = self.places.write();
        let mut bytes = 0;
        for at in from..places.len() {
            if bytes >= wanted {
                return (bytes, Some(at));
            }
            let place = &mut places[at];
            match *place.uses.get_mut() {
                0 => bytes += place.block.take().map_or(0, |block| weight(&block)),
                uses => *place.uses.get_mut() = uses - 1,
            }
        }
        (bytes + clear(&mut places), None)
    }
}

/// Takes the places off a shelf on which nothing is, and says what they weighed.
fn clear(places: &mut Vec<Place>) -> u64 {
    match places.iter().all(|place| place.block.is_none()) {
        true => places_weight(&std::mem::take(places)),
        false => 0,
    }
}

fn places_weight(places: &[Place]) -> u64 {
    std::mem::size_of_val(places) as u64
}

impl Shelves {
    /// The shelf of a block. Nothing is put on it or taken off while it is looked at.
    pub(crate) fn look_at(&self, number: usize) -> LookedAt<'_> {
        let shelf = &self.shelves[number / SHELF];
        let first = number / SHELF * SHELF;
        LookedAt { places: shelf.places.read(), first, hits: Cell::new(0), counter: &shelf.hits }
    }

    /// Whether a block has its place on the shelf of another.
    pub(crate) fn are_together(one: usize, other: usize) -> bool {
        one / SHELF == other / SHELF
    }

    pub(crate) fn get(&self, number: usize) -> Option<Arc<Block>> {
        self.look_at(number).get(number).cloned()
    }

    /// Whether a block is there, without using it.
    pub(crate) fn holds(&self, number: usize) -> bool {
        let places = self.shelves[number / SHELF].places.read();
        places.get(number % SHELF).is_some_and(|place| place.block.is_some())
    }

    pub(crate) fn put(&self, number: usize, block: Arc<Block>) {
        let bytes = weight(&block);
        if bytes > self.cache.bytes_max.load(Relaxed) {
            return;
        }
        // Counted first: the hand may take it at once.
        self.cache.bytes.fetch_add(bytes, Relaxed);
        match self.place(number, block) {
            true => self.cache.make_room(),
            false => drop(self.cache.bytes.fetch_sub(bytes, Relaxed)),
        }
    }

    /// Keeps a block that nobody asked for, if nothing has to go for it; says whether it does.
    pub(crate) fn put_if_room(&self, number: usize, block: Block) -> bool {
        let has_room = self.cache.has_room(block.size());
        if has_room {
            self.put(number, Arc::new(block));
        }
        has_room
    }

    /// Takes over what was kept for this table.
    pub(crate) fn adopt(&self, mut kept: Kept) {
        for (number, block) in std::mem::take(&mut kept.blocks) {
            let bytes = weight(&block);
            self.cache.kept.fetch_sub(bytes, Relaxed);
            if !self.place(number, block) {
                self.cache.bytes.fetch_sub(bytes, Relaxed);
            }
        }
        self.cache.make_room();
    }

    /// Forgets blocks that are soon of no use.
    pub(crate) fn forget(&self, numbers: Range<usize>) {
        for number in numbers {
            let mut places = self.shelves[number / SHELF].places.write();
            let block = places.get_mut(number % SHELF).and_then(|place| place.block.take());
            let bytes = block.map_or(0, |block| weight(&block) + clear(&mut places));
            self.cache.bytes.fetch_sub(bytes, Relaxed);
        }
    }

    /// Puts a block in its place; false if one is there.
    fn place(&self, number: usize, block: Arc<Block>) -> bool {
        let mut places = self.shelves[number / SHELF].places.write();
        if places.is_empty() {
            let len = SHELF.min(self.blocks - number / SHELF * SHELF);
            places.resize_with(len, Place::default);
            self.cache.bytes.fetch_add(places_weight(&places), Relaxed);
        }
        let place = &mut places[number % SHELF];
        let is_free = place.block.is_none();
        if is_free {
            *place = Place { block: Some(block), uses: AtomicU8::new(0) };
        }
        is_free
    }
}

impl Drop for Shelves {
    fn drop(&mut self) {
        for shelf in &mut self.shelves {
            let places = shelf.places.get_mut();
            let blocks = places.iter().filter_map(|place| place.block.as_deref());
            let bytes = blocks.map(weight).sum::<u64>() + places_weight(places);
            self.cache.bytes.fetch_sub(bytes, Relaxed);
            self.cache.hits.fetch_add(*shelf.hits.get_mut(), Relaxed);
        }
    }
}

/// A shelf that is looked at.
pub(crate) struct LookedAt<'a> {
    places: RwLockReadGuard<'a, Vec<Place>>,
    first: usize,
    hits: Cell<u64>,
    counter: &'a AtomicU64,
}

impl LookedAt<'_> {
    /// A block that has its place here.
    pub(crate) fn get(&self, number: usize) -> Option<&Arc<Block>> {
        let place = self.places.get(number - self.first)?;
        let block = place.block.as_ref()?;
        // Not a single step: that a use may be lost does no harm.
        let uses = place.uses.load(Relaxed);
        if uses < USES_MAX {
            place.uses.store(uses + 1, Relaxed);
        }
        self.hits.set(self.hits.get() + 1);
        Some(block)
    }
}

impl Drop for LookedAt<'_> {
    fn drop(&mut self) {
        self.counter.fetch_add(self.hits.get(), Relaxed);
    }
}

impl Kept {
    pub(crate) fn new(cache: Arc<BlockCache>) -> Kept {
        Kept { cache, blocks: Vec::new() }
    }

    /// Keeps a block if nothing has to go for it.
    pub(crate) fn put_if_room(&mut self, number: usize, bytes: &[u8]) {
        // With the places they will need.
        let places = (self.blocks.len() + SHELF) * size_of::<Place>();
        if !self.cache.has_room(bytes.len() + places) {
            return;
        }
        if let Some(block) = Block::new(bytes.to_vec()) {
            self.cache.kept.fetch_add(weight(&block), Relaxed);
            self.cache.bytes.fetch_add(weight(&block), Relaxed);
            self.blocks.push((number, Arc::new(block)));
        }
    }

    pub(crate) fn take(&mut self) -> Kept {
        Kept { cache: self.cache.clone(), blocks: std::mem::take(&mut self.blocks) }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let bytes = self.blocks.iter().map(|(_, block)| weight(block)).sum();
        self.cache.kept.fetch_sub(bytes, Relaxed);
        self.cache.bytes.fetch_sub(bytes, Relaxed);
    }
}

impl base::Cache for BlockCache {
    fn usage(&self) -> CacheUsage {
        let tables: Vec<_> = self.hand.lock().tables.iter().filter_map(Weak::upgrade).collect();
        let shelves = tables.iter().flat_map(|table| table.shelves.iter());
        let hits: u64 = shelves.map(|shelf| shelf.hits.load(Relaxed)).sum();
        CacheUsage {
            bytes: self.bytes.load(Relaxed),
            bytes_max: self.bytes_max.load(Relaxed),
            hits: hits + self.hits.load(Relaxed),
        }
    }

    fn resize(&self, bytes_max: u64) {
        self.bytes_max.store(bytes_max, Relaxed);
        self.make_room();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use base::{Cache as _, Random};

    use super::super::Entry;
    use super::super::block::BlockBuilder;
    use super::*;

    fn bytes() -> Vec<u8> {
        let mut builder = BlockBuilder::default();
        builder.push(b"key", Entry::Value(&[7; 1000]));
        builder.finish().to_vec()
    }

    fn block() -> Block {
        Block::new(bytes()).unwrap()
    }

    /// With room for so many blocks, and for places on so many shelves.
    fn cache(blocks: u64, shelves: u64) -> Arc<BlockCache> {
        let places = shelves * (SHELF * size_of::<Place>()) as u64;
        Arc::new(BlockCache::new(blocks * weight(&block()) + places))
    }

    fn held(shelves: &Shelves) -> Vec<usize> {
        (0..shelves.blocks).filter(|number| shelves.holds(*number)).collect()
    }

    /// What is on shelves, counted anew.
    fn weighed(shelves: &Shelves) -> u64 {
        let places: u64 = shelves.shelves.iter().map(|s| places_weight(&s.places.read())).sum();
        held(shelves).len() as u64 * weight(&block()) + places
    }

    #[test]
    fn what_is_written_never_drives_out_what_was_read() {
        let cache = cache(64, 2);
        let read = cache.shelves(SHELF);
        (0..20).for_each(|number| assert!(read.put_if_room(number, block())));
        let mut kept = Kept::new(cache.clone());
        (0..200).for_each(|number| kept.put_if_room(number, &bytes()));
        assert!(cache.room() < 3 * weight(&block()) + (SHELF * size_of::<Place>()) as u64);
        let written = cache.shelves(SHELF);
        written.adopt(kept.take());
        assert_eq!(held(&read), Vec::from_iter(0..20));
        assert!(held(&written).len() >= 40);
        while written.put_if_room(held(&written).len(), block()) {}
        read.forget(0..20);
        assert_eq!(weighed(&read), 0);
        assert!(written.put_if_room(SHELF - 1, block()));
        assert_eq!(cache.usage().bytes, weighed(&written));
        drop(written);
        kept.put_if_room(0, &bytes());
        assert_eq!(cache.usage().bytes, weight(&block()));
        drop(kept);
        assert_eq!(cache.usage(), CacheUsage { bytes: 0, bytes_max: cache.room(), hits: 0 });
    }

    #[test]
    fn what_is_used_stays_and_what_is_read_once_goes() {
        let cache = cache(100, 9);
        let hot = cache.shelves(50);
        (0..50).for_each(|number| hot.put(number, Arc::new(block())));
        let cold = cache.shelves(8 * SHELF);
        for number in 0..8 * SHELF {
            cold.put(number, Arc::new(block()));
            (0..50).for_each(|number| assert!(hot.get(number).is_some()));
        }
        assert_eq!(held(&hot).len(), 50);
        assert!(held(&cold).len() >= 50 && held(&cold).contains(&(8 * SHELF - 1)));
        assert_eq!(cache.usage().hits, 50 * 8 * SHELF as u64);
        drop(cold);
        assert_eq!(cache.usage().bytes, weighed(&hot));
        cache.resize(10 * weight(&block()));
        assert!(cache.usage().bytes <= 10 * weight(&block()), "used or not, there is too much");
    }

    #[test]
    fn a_block_that_is_larger_than_all_drives_nothing_out() {
        let cache = cache(10, 1);
        let shelves = cache.shelves(SHELF);
        (0..5).for_each(|number| shelves.put(number, Arc::new(block())));
        let mut builder = BlockBuilder::default();
        builder.push(b"key", Entry::Value(&[7; 100_000]));
        shelves.put(7, Arc::new(Block::new(builder.finish().to_vec()).unwrap()));
        assert_eq!(held(&shelves), Vec::from_iter(0..5));
    }

    #[test]
    fn it_agrees_with_a_count_whatever_happens() {
        let (cache, random) = (cache(300, 3), Random::from_seed(1));
        let mut tables: Vec<Arc<Shelves>> = Vec::new();
        let mut kept = Kept::new(cache.clone());
        for step in 0..20_000 {
            let any = |len: usize| (random.next() % len as u64) as usize;
            if tables.is_empty() || (tables.len() < 5 && any(100) == 0) {
                tables.push(cache.shelves(1 + any(700)));
            }
            let table = any(tables.len());
            let number = any(tables[table].blocks);
            match any(200) {
                0 => drop(tables.swap_remove(table)),
                1 => cache.resize(any(400) as u64 * weight(&block())),
                2 => tables.push(cache.shelves(50)),
                3 => tables.last().unwrap().adopt(kept.take()),
                4 => drop(kept.take()),
                5..10 => tables[table].forget(number..tables[table].blocks.min(number + 5)),
                10..100 => drop(tables[table].get(number)),
                100..110 if tables.last().unwrap().blocks > 40 => {
                    kept.put_if_room(any(40), &bytes());
                }
                _ => tables[table].put(number, Arc::new(block())),
            }
            let (usage, own) = (cache.usage(), cache.kept.load(Relaxed));
            assert!(usage.bytes <= usage.bytes_max.max(own));
            if step % 20 == 0 {
                let count: u64 = tables.iter().map(|table| weighed(table)).sum();
                assert_eq!(usage.bytes, count + own); // C1
            }
            tables.truncate(6);
        }
    }
}
