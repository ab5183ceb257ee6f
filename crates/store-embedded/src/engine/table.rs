//! A table: keys in order in a file that is written once and never changed.
//!
//! ```text
//!   block*  filter  index  footer                                            little-endian
//!   block   bytes (see `block`), xxh3 u64
//!   filter  bits (see `filter`), xxh3 u64                                     or nothing
//!   index   first key, last key of every block with the block's end, xxh3 u64
//!   footer  index at u64, filter at u64, blocks u64, xxh3 u64, MAGIC
//! ```
//!
//! Index and filter are kept in memory while the table is open: a key is one search there and one
//! block. A block is checked whenever it is read from the file.
//!
//! INVARIANTS
//! (B1) The file is complete and synced before anything refers to it.
//! (B2) A table that was replaced is deleted when nobody reads it any more.

use std::fs::File;
use std::io::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use store::{Direction, Error, Result, Sieved, Wanted};
use xxhash_rust::xxh3::xxh3_64;

use super::block::{Block, BlockBuilder, BlockCursor, Sieve, keys_of, mark_of_all};
use super::cache::{BlockCache, Kept, Shelves};
use super::filter::{Filter, hash};
use super::gather::Gather;
use super::index::{Index, put_key};
use super::{Entry, damaged, fault};

const MAGIC: &[u8; 8] = b"CLtable2";
const FOOTER_BYTES: usize = 40;
const SUM_BYTES: usize = 8;
/// So much is written to the file at once.
const WRITE_BYTES: usize = 1 << 20;
/// So much may wait for the disk: a large table must not make the journal wait behind it.
const UNSYNCED_BYTES_MAX: u64 = 16 << 20;
/// So much is read at once to fill the cache.
const WARM_BYTES: u64 = 1 << 20;

/// How a table is laid out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tuning {
    /// A block ends once it has so many bytes.
    pub(crate) block_bytes: usize,
    /// Whether single keys are looked for.
    pub(crate) has_filter: bool,
}

/// Writes a table.
pub(crate) struct TableWriter {
    path: PathBuf,
    kept: Kept,
    file: File,
    tuning: Tuning,
    buffer: Vec<u8>,
    /// Bytes in the file and in the buffer.
    length: u64,
    synced: u64,
    block: BlockBuilder,
    index: Vec<u8>,
    hashes: Vec<u64>,
    entries: u64,
    blocks: u64,
}

impl TableWriter {
    /// A table at this path. Its blocks are kept in the cache, as far as there is room.
    pub(crate) fn create(
        path: &Path,
        cache: Arc<BlockCache>,
        tuning: Tuning,
    ) -> Result<TableWriter> {
        let file = File::create(path).map_err(|e| fault(path, &e))?;
        Ok(TableWriter {
            path: path.to_owned(),
            kept: Kept::new(cache),
            file,
            tuning,
            buffer: Vec::with_capacity(WRITE_BYTES + (64 << 10)),
            length: 0,
            synced: 0,
            block: BlockBuilder::default(),
            index: Vec::new(),
            hashes: Vec::new(),
            entries: 0,
            blocks: 0,
        })
    }

    /// Adds a key behind all others.
    pub(crate) fn push(&mut self, key: &[u8], entry: Entry<'_>) -> Result<()> {
        if self.entries == 0 {
            put_key(&mut self.index, key);
        }
        if self.tuning.has_filter {
            self.hashes.push(hash(key));
        }
        self.block.push(key, entry);
        self.entries += 1;
        match self.block.size() >= self.tuning.block_bytes {
            true => self.end_block(),
            false => Ok(()),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Gives up: nothing of it is to stay.
    pub(crate) fn abandon(self) {
        // What stays behind is removed at the next start.
        let _ = std::fs::remove_file(&self.path);
    }

    /// Writes what is left and syncs (B1). The blocks that were kept are for the table.
    pub(crate) fn finish(&mut self) -> Result<Kept> {
        if !self.block.is_empty() {
            self.end_block()?;
        }
        let filter_at = self.length;
        if self.tuning.has_filter {
            let filter = Filter::of(&self.hashes);
            self.append_summed(filter.as_bytes());
        }
        let index_at = self.length;
        let index = std::mem::take(&mut self.index);
        self.append_summed(&index);
        let numbers = [index_at, filter_at, self.blocks];
        let footer: Vec<u8> = numbers.into_iter().flat_map(u64::to_le_bytes).collect();
        self.append_summed(&footer);
        self.buffer.extend_from_slice(MAGIC);
        self.write()?;
        self.file.sync_all().map_err(|e| fault(&self.path, &e))?;
        Ok(self.kept.take())
    }

    fn end_block(&mut self) -> Result<()> {
        put_key(&mut self.index, self.block.last_key());
        let bytes = self.block.finish();
        let sum = xxh3_64(bytes);
        self.buffer.extend_from_slice(bytes);
        self.buffer.extend_from_slice(&sum.to_le_bytes());
        self.length += (bytes.len() + SUM_BYTES) as u64;
        self.kept.put_if_room(self.blocks as usize, bytes);
        self.block.clear();
        self.index.extend_from_slice(&self.length.to_le_bytes());
        self.blocks += 1;
        match self.buffer.len() >= WRITE_BYTES {
            true => self.write(),
            false => Ok(()),
        }
    }

    fn append_summed(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
        self.buffer.extend_from_slice(&xxh3_64(bytes).to_le_bytes());
        self.length += (bytes.len() + SUM_BYTES) as u64;
    }

    fn write(&mut self) -> Result<()> {
        self.file.write_all(&self.buffer).map_err(|e| fault(&self.path, &e))?;
        self.buffer.clear();
        if self.length - self.synced > UNSYNCED_BYTES_MAX {
            self.file.sync_data().map_err(|e| fault(&self.path, &e))?;
            self.synced = self.length;
        }
        Ok(())
    }
}

/// An open table.
pub(crate) struct Table {
    number: u64,
    path: PathBuf,
    file: File,
    length: u64,
    index: Index,
    filter: Option<Filter>,
    blocks: Arc<Shelves>,
    is_replaced: AtomicBool,
}

/// What becomes of the blocks that a cursor reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reads {
    /// They are kept, because they will be read again.
    Again,
    /// They are forgotten, because they are on their way into another table.
    Last,
}

impl Table {
    /// Opens a table and checks all of it but its blocks.
    pub(crate) fn open(path: &Path, number: u64, cache: &Arc<BlockCache>) -> Result<Table> {
        let file = File::open(path).map_err(|e| damaged(path, &e.to_string()))?;
        let length = file.metadata().map_err(|e| damaged(path, &e.to_string()))?.len();
        let bad = || damaged(path, "a table is cut or has wrong bytes");
        let footer = Footer::read(&file, length).ok_or_else(bad)?;
        let index_end = length - FOOTER_BYTES as u64;
        let index = read_summed(&file, footer.index_at, index_end).ok_or_else(bad)?;
        let index = Index::parse(&index, footer.blocks).ok_or_else(bad)?;
        let filter = match footer.filter_at == footer.index_at {
            true => None,
            false => {
                let bytes = read_summed(&file, footer.filter_at, footer.index_at);
                Some(bytes.and_then(Filter::from_bytes).ok_or_else(bad)?)
            }
        };
        let (path, is_replaced) = (path.to_owned(), AtomicBool::new(false));
        let blocks = cache.shelves(index.len());
        Ok(Table { number, path, file, length, index, filter, blocks, is_replaced })
    }

    /// Has the blocks that were kept when it was written.
    pub(crate) fn adopt(&self, kept: Kept) {
        self.blocks.adopt(kept);
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Bytes on disk.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// From now on the file goes with its last reader (B2).
    pub(crate) fn set_replaced(&self) {
        self.is_replaced.store(true, Ordering::Relaxed);
    }

    /// What it says of a key, if anything. `hash` is the key's, for the filter.
    pub(crate) fn get<T>(
        &self,
        key: &[u8],
        hash: u64,
        take: impl FnOnce(&Block, Entry<'_>) -> T,
    ) -> Result<Option<T>> {
        if self.filter.as_ref().is_some_and(|filter| !filter.may_hold(hash)) {
            return Ok(None);
        }
        let number = self.index.block_of(key);
        if number == self.index.len() {
            return Ok(None);
        }
        if let Some(block) = self.blocks.look_at(number).get(number) {
            return Ok(block.get(key).map(|entry| take(block, entry)));
        }
        let block = self.block(number, Reads::Again)?;
        Ok(block.get(key).map(|entry| take(&block, entry)))
    }

    /// Gathers what it says of those keys that nobody newer knows. Neighbors are cheap. What is in
    /// no other table is most likely in the oldest: there the filter is not asked.
    pub(crate) fn gather(&self, gather: &mut Gather<'_>, is_oldest: bool) -> Result<()> {
        let filter = self.filter.as_ref().filter(|_| !is_oldest);
        let (mut places, mut near) = (Vec::with_capacity(gather.open().len()), 0);
        for (at, key) in gather.open() {
            if filter.is_some_and(|filter| !filter.may_hold(hash(key))) {
                continue;
            }
            let number = self.index.block_near(near, self.index.probe(key));
            if number < self.index.len() {
                places.push((at, number));
                near = number;
            }
        }
        for places in places.chunk_by(|(_, one), (_, other)| Shelves::are_together(*one, *other)) {
            let shelf = self.blocks.look_at(places[0].1);
            let mut missing = Vec::new();
            let mut blocks = Vec::with_capacity(places.len());
            for &(at, number) in places {
                match shelf.get(number) {
                    Some(block) => blocks.push((at, &**block)),
                    None => missing.push((at, number)),
                }
            }
            gather.take_all(&blocks);
            drop(shelf);
            for keys in missing.chunk_by(|(_, one), (_, other)| one == other) {
                let block = self.block(keys[0].1, Reads::Again)?;
                gather.take_all(&Vec::from_iter(keys.iter().map(|(at, _)| (*at, &*block))));
            }
        }
        gather.close();
        Ok(())
    }

    /// Whether a key between these (the second excluded) can be there.
    pub(crate) fn may_overlap(&self, start: &[u8], end: Option<&[u8]>) -> bool {
        self.index.last() >= start && end.is_none_or(|end| self.index.first() < end)
    }

    /// A cursor at the first key that is not before `key`.
    pub(crate) fn from(&self, key: &[u8], reads: Reads) -> Result<Cursor<'_>> {
        let number = self.index.block_of(key);
        let mut cursor = Cursor { table: self, number, reads, at: None };
        if number < self.index.len() {
            let block = BlockCursor::new(self.block(number, reads)?);
            cursor.at = block.from(key);
        }
        Ok(cursor)
    }

    /// A cursor at the last key before `key`, or at the very last one.
    pub(crate) fn before(&self, key: Option<&[u8]>, reads: Reads) -> Result<Cursor<'_>> {
        let number = key.map_or(self.index.len(), |key| self.index.block_of(key));
        let mut cursor = Cursor { table: self, number, reads, at: None };
        if let Some(key) = key
            && number < self.index.len()
        {
            let block = BlockCursor::new(self.block(number, reads)?);
            cursor.at = block.before(key);
        }
        if cursor.at.is_none() {
            cursor.turn_left(None)?;
        }
        Ok(cursor)
    }

    /// See [`store::Reader::sieve`]; what is deleted here is nowhere else.
    pub(crate) fn sieve(
        &self,
        (start, end): (&[u8], Option<&[u8]>),
        direction: Direction,
        wanted: &Wanted,
        act: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<Sieved> {
        let (mut sieve, mut keys) = (Sieve::default(), 0);
        let mark = mark_of_all(&wanted.tails);
        let first = self.index.block_of(start);
        let last = end.map_or(self.index.len(), |end| self.index.block_of(end));
        let mut blocks = first..self.index.len().min(last + 1);
        while let Some(number) = step(&mut blocks, direction) {
            let block = self.block(number, Reads::Again)?;
            // Where the range begins and ends; in between all keys are within it.
            let from = (number == first).then(|| block.interval_of(start));
            let to = end.filter(|_| number >= last).map(|end| block.interval_of(end));
            // The end itself is not in the range: an interval that begins there has nothing of it.
            let is_before_end = |to| end.is_none_or(|end| block.first_key(to) < end);
            let behind = |to| to + usize::from(is_before_end(to));
            let mut intervals = from.unwrap_or(0)..to.map_or(block.intervals(), behind);
            loop {
                let left = intervals.len();
                let next = match mark {
                    Some(mark) => block.next_marked(&mut intervals, direction, mark),
                    None => step(&mut intervals, direction),
                };
                keys += keys_of(left - intervals.len() - usize::from(next.is_some()));
                let Some(interval) = next else { break };
                let is_end = from == Some(interval) || to == Some(interval);
                let within = is_end.then_some((start, end));
                let tails = &wanted.tails;
                match mark {
                    Some(mark) => block.sieve_marked(interval, mark, within, tails, &mut sieve),
                    None => block.sieve(interval, within, tails, &mut sieve),
                }
                keys += sieve.looked_at;
                let mut found = 0..sieve.len();
                while let Some(at) = step(&mut found, direction) {
                    if !act(sieve.get(at)) {
                        return Ok(Sieved { keys, last: Some(sieve.get(at).to_vec()) });
                    }
                }
                if keys >= wanted.keys_max
                    && let Some(last) = block.ahead(interval, (start, end), direction)
                {
                    return Ok(Sieved { keys, last: Some(last) });
                }
            }
            let edge = match direction {
                Direction::Forward => block.intervals() - 1,
                Direction::Backward => 0,
            };
            if keys >= wanted.keys_max
                && !blocks.is_empty()
                && let Some(last) = block.ahead(edge, (start, end), direction)
            {
                return Ok(Sieved { keys, last: Some(last) });
            }
        }
        Ok(Sieved { keys, last: None })
    }

    fn block(&self, number: usize, reads: Reads) -> Result<Arc<Block>> {
        if let Some(block) = self.blocks.get(number) {
            return Ok(block);
        }
        let block = self.read_block(number)?;
        let block = Arc::new(block.ok_or_else(|| {
            Error::Fault(format!("{} has wrong bytes in block {number}", self.path.display()))
        })?);
        if reads == Reads::Again {
            self.blocks.put(number, block.clone());
        }
        Ok(block)
    }

    /// Reads blocks in the order of the file into the cache until they are `bytes`, the cache is full,
    /// or `is_wanted` says no. Returns how many bytes are left, if it went to the end. What cannot be
    /// read is found out by those who need it.
    pub(crate) fn warm(&self, bytes: u64, is_wanted: &dyn Fn() -> bool) -> Option<u64> {
        let mut left = bytes;
        let is_missing = |number: &usize| !self.blocks.holds(*number);
        let mut next = 0;
        while let Some(first) = (next..self.index.len()).find(is_missing) {
            let start = self.index.block_start(first);
            let is_near = |number: &usize| self.index.block_end(*number) - start <= WARM_BYTES;
            let end = (first + 1..self.index.len()).take_while(is_near).last().unwrap_or(first) + 1;
            let mut bytes = vec![0; (self.index.block_end(end - 1) - start) as usize];
            left = left.checked_sub(bytes.len() as u64)?;
            if !is_wanted() || read_at(&self.file, &mut bytes, start).is_err() {
                return None;
            }
            for number in first..end {
                let from = self.index.block_start(number) - start;
                let to = self.index.block_end(number) - start;
                let block = checked(bytes[from as usize..to as usize].to_vec());
                if !block.is_some_and(|block| self.blocks.put_if_room(number, block)) {
                    return None;
                }
            }
            next = end;
        }
        Some(left)
    }

    /// A block from the file; nothing if its sum is wrong.
    fn read_block(&self, number: usize) -> Result<Option<Block>> {
        let start = self.index.block_start(number);
        let length = (self.index.block_end(number) - start) as usize;
        let mut bytes = vec![0; length];
        read_at(&self.file, &mut bytes, start).map_err(|e| fault(&self.path, &e))?;
        Ok(checked(bytes))
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        if *self.is_replaced.get_mut() {
            // What stays behind is removed at the next start.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// The next number of a range, from either end.
fn step(numbers: &mut Range<usize>, direction: Direction) -> Option<usize> {
    match direction {
        Direction::Forward => numbers.next(),
        Direction::Backward => numbers.next_back(),
    }
}

/// Checks the sum.
fn checked(mut bytes: Vec<u8>) -> Option<Block> {
    let end = bytes.len().checked_sub(SUM_BYTES)?;
    if xxh3_64(&bytes[..end]).to_le_bytes() != bytes[end..] {
        return None;
    }
    bytes.truncate(end);
    Block::new(bytes)
}

struct Footer {
    index_at: u64,
    filter_at: u64,
    blocks: u64,
}

impl Footer {
    fn read(file: &File, length: u64) -> Option<Footer> {
        let start = length.checked_sub(FOOTER_BYTES as u64)?;
        let mut bytes = [0; FOOTER_BYTES];
        read_at(file, &mut bytes, start).ok()?;
        let (numbers, rest) = bytes.split_at(24);
        let (sum, magic) = rest.split_at(SUM_BYTES);
        let number =
            |at: usize| u64::from_le_bytes(numbers[at..at + 8].try_into().unwrap_or_default());
        let is_whole = magic == MAGIC && sum == xxh3_64(numbers).to_le_bytes();
        let footer = Footer { index_at: number(0), filter_at: number(8), blocks: number(16) };
        (is_whole && footer.filter_at <= footer.index_at && footer.index_at < start)
            .then_some(footer)
    }
}

fn read_summed(file: &File, start: u64, end: u64) -> Option<Vec<u8>> {
    let length = usize::try_from(end.checked_sub(start)?).ok()?;
    let mut bytes = vec![0; length];
    read_at(file, &mut bytes, start).ok()?;
    let sum_at = length.checked_sub(SUM_BYTES)?;
    let is_whole = xxh3_64(&bytes[..sum_at]).to_le_bytes() == bytes[sum_at..];
    bytes.truncate(sum_at);
    is_whole.then_some(bytes)
}

#[cfg(unix)]
fn read_at(file: &File, bytes: &mut [u8], at: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, at)
}

#[cfg(windows)]
fn read_at(file: &File, mut bytes: &mut [u8], mut at: u64) -> std::io::Result<()> {
    while !bytes.is_empty() {
        let read = std::os::windows::fs::FileExt::seek_read(file, bytes, at)?;
        if read == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        bytes = &mut bytes[read..];
        at += read as u64;
    }
    Ok(())
}

/// A place in a table, or behind its last or before its first key.
pub(crate) struct Cursor<'a> {
    table: &'a Table,
    /// The block it is in.
    number: usize,
    reads: Reads,
    at: Option<BlockCursor>,
}

impl Cursor<'_> {
    /// Key and entry here; nothing beyond the ends.
    pub(crate) fn get(&self) -> Option<(&[u8], Entry<'_>)> {
        self.at.as_ref().map(|at| (at.key(), at.entry()))
    }

    /// The key here; nothing beyond the ends.
    pub(crate) fn key(&self) -> Option<&[u8]> {
        self.at.as_ref().map(BlockCursor::key)
    }

    /// To the next key.
    pub(crate) fn next(&mut self) -> Result<()> {
        if self.at.as_mut().is_none_or(BlockCursor::next) {
            return Ok(());
        }
        let used = self.at.take();
        if self.reads == Reads::Last {
            self.table.blocks.forget(self.number..self.number + 1);
        }
        self.number += 1;
        if self.number < self.table.index.len() {
            self.at = Some(self.cursor(used)?.first());
        }
        Ok(())
    }

    /// To the key before.
    pub(crate) fn previous(&mut self) -> Result<()> {
        if self.at.as_mut().is_none_or(BlockCursor::previous) {
            return Ok(());
        }
        let used = self.at.take();
        self.turn_left(used)
    }

    fn turn_left(&mut self, used: Option<BlockCursor>) -> Result<()> {
        if let Some(number) = self.number.checked_sub(1) {
            self.number = number;
            self.at = Some(self.cursor(used)?.last());
        }
        Ok(())
    }

    /// For the block it is in now.
    fn cursor(&self, used: Option<BlockCursor>) -> Result<BlockCursor> {
        let block = self.table.block(self.number, self.reads)?;
        Ok(match used {
            Some(used) => used.moved(block),
            None => BlockCursor::new(block),
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::collections::BTreeMap;

    use base::Random;

    use super::*;

    type Model = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

    fn model(seed: u64, len: usize) -> Model {
        let random = Random::from_seed(seed);
        (0..len)
            .map(|_| {
                let key = format!("{:05}", random.next() % 20_000).into_bytes();
                let value = random.next() % 300;
                (key, (value > 30).then(|| vec![value as u8; value as usize]))
            })
            .collect()
    }

    fn write(path: &Path, model: &Model, tuning: Tuning) {
        let mut writer = TableWriter::create(path, Arc::new(BlockCache::new(0)), tuning).unwrap();
        for (key, value) in model {
            writer.push(key, value.as_deref().map_or(Entry::Deleted, Entry::Value)).unwrap();
        }
        drop(writer.finish().unwrap());
    }

    fn open(path: &Path) -> Result<Table> {
        Table::open(path, 1, &Arc::new(BlockCache::new(1 << 16)))
    }

    fn tunings() -> impl Iterator<Item = Tuning> + Clone {
        let tunings = [(200, true), (4096, false), (4096, true)];
        tunings.into_iter().map(|(block_bytes, has_filter)| Tuning { block_bytes, has_filter })
    }

    #[test]
    fn it_agrees_with_an_ordered_map() {
        let directory = tempfile::tempdir().unwrap();
        for (seed, tuning) in (0..).zip(tunings()) {
            let path = directory.path().join(format!("{seed}"));
            let model = model(seed, 3_000);
            write(&path, &model, tuning);
            let table = open(&path).unwrap();
            let mut cursor = table.from(b"", Reads::Again).unwrap();
            for (key, value) in &model {
                let (found, entry) = cursor.get().unwrap();
                assert_eq!((found, &entry.owned()), (key.as_slice(), value));
                cursor.next().unwrap();
            }
            assert!(cursor.get().is_none());
            let mut cursor = table.before(None, Reads::Last).unwrap();
            for key in model.keys().rev() {
                assert_eq!(cursor.key(), Some(key.as_slice()));
                cursor.previous().unwrap();
            }
            assert!(cursor.get().is_none());
            for number in 0..20_001 {
                let key = format!("{number:05}").into_bytes();
                let found = table.get(&key, hash(&key), |_, entry| entry.owned()).unwrap();
                assert_eq!(found, model.get(&key).cloned());
                let behind = model.range(key.clone()..).next().map(|(key, _)| key.as_slice());
                assert_eq!(table.from(&key, Reads::Again).unwrap().key(), behind);
                let before = model.range(..key.clone()).next_back().map(|(key, _)| key.as_slice());
                assert_eq!(table.before(Some(&key), Reads::Again).unwrap().key(), before);
            }
        }
    }

    /// Every key of a range with one of the tails, going on wherever the sieve stopped.
    fn sieved(
        table: &Table,
        (start, end): (&[u8], &[u8]),
        direction: Direction,
        wanted: &Wanted,
    ) -> (Vec<Vec<u8>>, usize) {
        let (mut start, mut end) = (start.to_vec(), end.to_vec());
        let (mut found, mut looked_at) = (Vec::new(), 0);
        while start < end {
            let mut act = |key: &[u8]| {
                found.push(key.to_vec());
                found.len() % 5 > 0
            };
            let range = (&start[..], Some(&end[..]));
            let sieved = table.sieve(range, direction, wanted, &mut act).unwrap();
            looked_at += sieved.keys;
            match (sieved.last, direction) {
                (None, _) => break,
                (Some(last), Direction::Forward) => start = [&last[..], &[0]].concat(),
                (Some(last), Direction::Backward) => end = last,
            }
        }
        (found, looked_at)
    }

    #[test]
    fn sieves_let_through_what_is_wanted() {
        let directory = tempfile::tempdir().unwrap();
        for (seed, tuning) in (0..30).zip(tunings().cycle()) {
            let random = Random::from_seed(seed);
            let below = |most: u64| random.next() % most;
            // Values that many share or none does, and tails of few or many logical partitions;
            // 40 and 40 + 256 have the same mark.
            let localities = [1, 3, 100, 600][below(4) as usize];
            let values = [5, 300, u64::MAX][below(3) as usize];
            let entry = |_| {
                let key = [
                    below(values).to_be_bytes(),
                    (below(localities) << 36 | below(9)).to_be_bytes(),
                ];
                (key.concat(), (below(9) > 0).then(Vec::new))
            };
            let model: Model = (0..[3, 100, 3_000][below(3) as usize]).map(entry).collect();
            let path = directory.path().join(format!("{seed}"));
            write(&path, &model, tuning);
            let table = open(&path).unwrap();
            for _ in 0..40 {
                let locality = below(localities + 1) << 36;
                let tails = match below(4) {
                    0 => locality..locality + 5,
                    1 => locality..locality + (3 << 36),
                    _ => locality..locality + (1 << 36),
                };
                let wanted = Wanted { tails, keys_max: [1, 40, 9_000][below(3) as usize] };
                let any = || match model.keys().nth(below(model.len() as u64) as usize) {
                    Some(key) if below(3) > 0 => key.clone(),
                    _ => below(values).to_be_bytes().to_vec(),
                };
                let (start, end) =
                    if below(4) == 0 { (vec![], vec![255; 9]) } else { (any(), any()) };
                if start >= end {
                    continue;
                }
                let live =
                    model.range(start.clone()..end.clone()).filter(|(_, value)| value.is_some());
                let mut expect: Vec<_> = live.clone().map(|(key, _)| key.clone()).collect();
                expect.retain(|key| wanted.tails.contains(&store::tail_of(key)));
                for direction in [Direction::Forward, Direction::Backward] {
                    let (found, looked_at) = sieved(&table, (&start, &end), direction, &wanted);
                    assert_eq!(found, expect, "seed {seed}, {wanted:?}, {direction:?}");
                    assert!(looked_at >= live.clone().count());
                    expect.reverse();
                }
            }
        }
    }

    #[test]
    fn a_cache_is_filled_as_far_as_it_goes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("table");
        write(&path, &model(3, 3_000), Tuning { block_bytes: 1024, has_filter: false });
        let held =
            |table: &Table| (0..table.index.len()).filter(|n| table.blocks.holds(*n)).count();
        let opened = |bytes| Table::open(&path, 1, &Arc::new(BlockCache::new(bytes))).unwrap();
        let table = opened(8 << 20);
        assert_eq!(table.warm(8 << 20, &|| false), None);
        assert_eq!(held(&table), 0);
        let blocks = table.index.block_end(table.index.len() - 1);
        assert_eq!(table.warm(8 << 20, &|| true), Some((8 << 20) - blocks));
        assert_eq!(table.warm(0, &|| true), Some(0), "nothing is left to do");
        assert_eq!(held(&table), table.index.len());
        let table = opened(128 << 10);
        assert_eq!(table.warm(8 << 20, &|| true), None);
        assert!(held(&table) > 0 && held(&table) < table.index.len());
        let table = opened(8 << 20);
        assert_eq!(table.warm(1000, &|| true), None);
        assert_eq!(held(&table), 0, "a piece is read as a whole");
    }

    #[test]
    fn many_keys_are_found_like_single_ones() {
        let directory = tempfile::tempdir().unwrap();
        for (seed, tuning) in (0..).zip(tunings()) {
            let path = directory.path().join(format!("{seed}"));
            let mut model = model(seed, 3_000);
            model.insert(b"05555".to_vec(), Some(vec![1; 100_000]));
            write(&path, &model, tuning);
            let random = Random::from_seed(seed);
            // Some blocks come and go.
            let table = Table::open(&path, 1, &Arc::new(BlockCache::new(100 << 10))).unwrap();
            for round in 0..200 {
                let mut keys: Vec<Vec<u8>> = (0..random.next() % 300)
                    .map(|_| format!("{:05}", random.next() % 20_010).into_bytes())
                    .chain((round % 9 == 0).then(|| b"05555".to_vec()))
                    .collect();
                if round % 4 != 0 {
                    keys.sort();
                }
                let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
                let mut gather = Gather::new(&keys);
                gather.ask(|key| (key[4] == b'7').then_some(Entry::Value(b"newer")));
                table.gather(&mut gather, round % 2 == 0).unwrap();
                for (key, found) in keys.iter().zip(gather.finish()) {
                    let expected = match key[4] {
                        b'7' => Some(b"newer".to_vec()),
                        _ => model.get(*key).cloned().flatten(),
                    };
                    assert_eq!(found.as_deref(), expected.as_deref());
                }
            }
        }
    }

    #[test]
    fn no_flipped_byte_is_believed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("table");
        let model = model(7, 300);
        let tuning = Tuning { block_bytes: 1024, has_filter: true };
        write(&path, &model, tuning);
        let whole = std::fs::read(&path).unwrap();
        for at in (0..whole.len()).step_by(11) {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            std::fs::write(&path, bytes).unwrap();
            let Ok(table) = open(&path) else { continue };
            let read = model.keys().map(|key| table.get(key, hash(key), |_, entry| entry.owned()));
            let is_noticed = read.zip(model.values()).any(|(read, value)| match read {
                Ok(found) => {
                    assert_eq!(found.as_ref(), Some(value), "byte {at}");
                    false
                }
                Err(_) => true,
            });
            assert!(is_noticed, "byte {at} of {}", whole.len());
        }
        for length in [0, 1, 39, 40, whole.len() / 2, whole.len() - 1] {
            std::fs::write(&path, &whole[..length]).unwrap();
            assert!(open(&path).is_err(), "{length} bytes");
        }
    }

    #[test]
    fn a_replaced_table_goes_with_its_last_reader() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("table");
        write(&path, &model(1, 10), tunings().next().unwrap());
        drop(open(&path).unwrap());
        let table = Arc::new(open(&path).unwrap());
        let reader = table.clone();
        table.set_replaced();
        drop(table);
        assert!(reader.from(b"", Reads::Again).unwrap().key().is_some() && path.exists());
        drop(reader);
        assert!(!path.exists());
    }
}
