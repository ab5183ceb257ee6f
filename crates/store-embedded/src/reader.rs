//! Reading one state of the engine.

use std::sync::Arc;

use bytes::Bytes;
use store::{Direction, Page, Range, Reader, Result, Row, ScanOptions, Sieved, Space, Wanted};

use crate::engine::block::Block;
use crate::engine::filter::hash;
use crate::engine::gather::Gather;
use crate::engine::merge::{Merged, Source};
use crate::engine::table::{Reads, Table};
use crate::engine::tree::Tree;
use crate::engine::{Entry, Part, State};

/// A state, which never changes (S5).
pub(crate) struct SnapshotReader {
    state: Arc<State>,
}

/// Which keys, and which way.
struct Walk<'a> {
    part: Part,
    start: &'a [u8],
    end: Option<&'a [u8]>,
    direction: Direction,
}

impl SnapshotReader {
    pub(crate) fn new(state: Arc<State>) -> SnapshotReader {
        SnapshotReader { state }
    }

    /// Every key of a part with its value, in order.
    pub(crate) fn for_each(
        &self,
        part: Part,
        mut act: impl FnMut(&[u8], &[u8]) -> Result<()>,
    ) -> Result<()> {
        let walk = Walk { part, start: &[], end: None, direction: Direction::Forward };
        self.walk(&walk, |key, entry| act(key, entry.bytes()).map(|()| true))
    }

    /// Hands keys that are there to `act`, in order, until it says false.
    fn walk(
        &self,
        walk: &Walk<'_>,
        mut act: impl FnMut(&[u8], Entry<'_>) -> Result<bool>,
    ) -> Result<()> {
        let mut merged = self.merged(walk)?;
        while let Some((key, entry)) = merged.get() {
            if !matches!(entry, Entry::Deleted) && !act(key, entry)? {
                break;
            }
            merged.step()?;
        }
        Ok(())
    }

    fn merged<'a>(&'a self, walk: &Walk<'a>) -> Result<Merged<'a>> {
        let tables = &self.state.tables[walk.part as usize];
        let mut sources = Vec::with_capacity(tables.len() + 3);
        for tree in self.trees(walk.part) {
            sources.push(Source::Tree(match walk.direction {
                Direction::Forward => tree.from(walk.start),
                Direction::Backward => tree.before(walk.end),
            }));
        }
        for table in tables.iter().filter(|table| table.may_overlap(walk.start, walk.end)) {
            sources.push(Source::Table(match walk.direction {
                Direction::Forward => table.from(walk.start, Reads::Again)?,
                Direction::Backward => table.before(walk.end, Reads::Again)?,
            }));
        }
        let limit = match walk.direction {
            Direction::Forward => walk.end,
            Direction::Backward => Some(walk.start),
        };
        Ok(Merged::new(sources, walk.direction, limit))
    }

    /// The table that all keys of a walk are in, if it is one: most of what rests is.
    fn only_table(&self, walk: &Walk<'_>) -> Option<&Table> {
        let is_in = |key: &[u8]| walk.end.is_none_or(|end| key < end);
        if self.trees(walk.part).any(|tree| tree.from(walk.start).key().is_some_and(is_in)) {
            return None;
        }
        let tables = self.state.tables[walk.part as usize].iter();
        let mut tables = tables.filter(|table| table.may_overlap(walk.start, walk.end));
        tables.next().filter(|_| tables.next().is_none()).map(|table| &**table)
    }

    /// The value of a key, on its own: it may be kept, and must not keep its block.
    fn find(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>> {
        for tree in self.trees(Part::ALL[space as usize]) {
            if let Some(entry) = tree.get(key) {
                return Ok(match entry {
                    Entry::Deleted => None,
                    Entry::Value(value) => Some(Bytes::copy_from_slice(value)),
                    Entry::Shared(value) => Some(value.clone()),
                });
            }
        }
        let tables = &self.state.tables[space as usize];
        if tables.is_empty() {
            return Ok(None);
        }
        let value = |_: &Block, entry: Entry<'_>| match entry {
            Entry::Deleted => None,
            Entry::Value(_) | Entry::Shared(_) => Some(Bytes::copy_from_slice(entry.bytes())),
        };
        let hash = hash(key);
        for table in tables.iter() {
            if let Some(value) = table.get(key, hash, value)? {
                return Ok(value);
            }
        }
        Ok(None)
    }

    /// What of a part is in memory, newest first.
    fn trees(&self, part: Part) -> impl Iterator<Item = &Tree> {
        let memories = [Some(&self.state.memory), self.state.sealed.as_ref()];
        memories.into_iter().flatten().flat_map(move |memory| memory.trees(part))
    }
}

impl Reader for SnapshotReader {
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>> {
        self.find(space, key)
    }

    fn get_many(&self, space: Space, keys: &[&[u8]]) -> Result<Vec<Option<Bytes>>> {
        let mut gather = Gather::new(keys);
        for tree in self.trees(Part::ALL[space as usize]) {
            gather.ask(|key| tree.get(key));
        }
        let mut tables = self.state.tables[space as usize].iter();
        while let Some(table) = tables.next().filter(|_| !gather.is_done()) {
            table.gather(&mut gather, tables.len() == 0)?;
        }
        Ok(gather.finish())
    }

    fn scan(&self, space: Space, range: &Range, options: ScanOptions) -> Result<Page> {
        let mut rows = Rows::new(options);
        if !range.is_empty() {
            self.walk(&walk(space, range, options.direction), |key, entry| {
                Ok(rows.push(key, entry))
            })?;
        }
        Ok(rows.finish())
    }

    fn for_each_key(
        &self,
        space: Space,
        range: &Range,
        direction: Direction,
        act: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<()> {
        match range.is_empty() {
            true => Ok(()),
            false => self.walk(&walk(space, range, direction), |key, _| Ok(act(key))),
        }
    }

    fn sieve(
        &self,
        space: Space,
        range: &Range,
        direction: Direction,
        wanted: &Wanted,
        act: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<Sieved> {
        if range.is_empty() {
            return Ok(Sieved::default());
        }
        let walk = walk(space, range, direction);
        if let Some(table) = self.only_table(&walk) {
            return table.sieve((walk.start, walk.end), direction, wanted, act);
        }
        let mut sieved = Sieved::default();
        self.walk(&walk, |key, _| Ok(sieved.look_at(key, wanted, act)))?;
        Ok(sieved)
    }

    fn count(&self, space: Space, range: &Range) -> Result<u64> {
        let mut count = 0;
        if !range.is_empty() {
            self.walk(&walk(space, range, Direction::Forward), |_, _| {
                count += 1;
                Ok(true)
            })?;
        }
        Ok(count)
    }
}

fn walk(space: Space, range: &Range, direction: Direction) -> Walk<'_> {
    let (start, end) = (range.start.as_slice(), range.end.as_deref());
    Walk { part: Part::ALL[space as usize], start, end, direction }
}

/// Values beyond this size get a buffer of their own: whoever keeps one shall not keep its page.
const PACKED_BYTES_MAX: usize = 256;

/// Makes a page. Keys and small values of a page share one buffer.
struct Rows {
    options: ScanOptions,
    packed: Vec<u8>,
    rows: Vec<Packed>,
    bytes: usize,
    is_cut: bool,
}

struct Packed {
    key_end: usize,
    value: Value,
}

enum Value {
    /// It follows its key and ends there.
    Packed(usize),
    Own(Bytes),
}

impl Rows {
    fn new(options: ScanOptions) -> Rows {
        let rows = Vec::with_capacity(options.rows_max.min(64));
        Rows { options, packed: Vec::new(), rows, bytes: 0, is_cut: false }
    }

    /// Adds a row and says whether there is room for another.
    fn push(&mut self, key: &[u8], entry: Entry<'_>) -> bool {
        self.packed.extend_from_slice(key);
        let key_end = self.packed.len();
        let entry = if self.options.keys_only { Entry::Deleted } else { entry };
        let value_bytes = entry.bytes().len();
        let value = match entry {
            Entry::Shared(value) => Value::Own(value.clone()),
            Entry::Value(value) if value.len() > PACKED_BYTES_MAX => {
                Value::Own(Bytes::copy_from_slice(value))
            }
            Entry::Value(_) | Entry::Deleted => {
                self.packed.extend_from_slice(entry.bytes());
                Value::Packed(self.packed.len())
            }
        };
        self.rows.push(Packed { key_end, value });
        self.bytes = self.bytes.saturating_add(key.len() + value_bytes);
        self.is_cut =
            self.rows.len() >= self.options.rows_max || self.bytes >= self.options.bytes_max;
        !self.is_cut
    }

    fn finish(self) -> Page {
        let packed = Bytes::from(self.packed);
        let mut start = 0;
        let rows = self.rows.into_iter().map(|row| {
            let key = packed.slice(start..row.key_end);
            start = row.key_end;
            let value = match row.value {
                Value::Own(value) => value,
                Value::Packed(end) if end == start => Bytes::new(),
                Value::Packed(end) => {
                    let value = packed.slice(start..end);
                    start = end;
                    value
                }
            };
            Row { key, value }
        });
        Page { rows: rows.collect(), is_cut: self.is_cut }
    }
}
