//! Reading items of a physical partition: by identity, by ordinal, in order.

use bytes::Bytes;
use item::Item;
use model::container::path::Segment;
use model::partition_key::PartitionKey;
use store::{Direction, Range, ScanOptions, Sieved, Space, View, Wanted};

use crate::cache::ItemCache;
use crate::keys;
use crate::shape::{Layout, LogicalKey, Partition, partition_key_of};
use crate::verify::read_sums;
use crate::visibility::Visibility;
use crate::{Error, Result};

/// Reads of one physical partition at one view, with what is gone left out.
#[derive(Clone, Copy)]
pub struct PartitionReader<'a> {
    /// The container's place.
    pub layout: &'a Layout,
    /// The partition.
    pub partition: &'a Partition,
    /// The state read.
    pub view: &'a View,
    /// Which stored items are present.
    pub visibility: Visibility<'a>,
}

/// Some items of a scan.
pub struct Items {
    /// The items, in ordinal order.
    pub items: Vec<Item>,
    /// The ordinal of the last row looked at, present or not.
    pub last: Option<u64>,
    /// Whether rows may remain.
    pub is_cut: bool,
}

impl PartitionReader<'_> {
    /// Whether a stored item is present.
    pub fn is_visible(&self, item: &Item) -> bool {
        let key = || self.key_of(item);
        self.visibility.gone(item, self.partition.number, key).is_none()
    }

    /// The partition key of a stored item.
    pub fn key_of(&self, item: &Item) -> Option<PartitionKey> {
        partition_key_of(&self.layout.key_definition, item.root()).ok()
    }

    /// The item with an identity, through the cache.
    pub fn point(&self, cache: &ItemCache, key: &LogicalKey, id: &str) -> Result<Option<Item>> {
        let place = &self.partition.place;
        let identity = place.identity(&key.identity(id));
        let sequence = self.view.sequence();
        if let Some(item) = cache.get(&identity, sequence) {
            return Ok(Some(item).filter(|item| self.is_visible(item)));
        }
        let Some(value) = self.view.reader().get(Space::Key, &identity)? else { return Ok(None) };
        let ordinal = keys::ordinal_of(&value)
            .ok_or_else(|| Error::corrupt(Space::Key, &identity, "not an ordinal"))?;
        let item = self.stored(ordinal)?.ok_or_else(|| {
            Error::corrupt(Space::Key, &identity, "the identity points to no item")
        })?;
        cache.fill(&identity, &item, sequence);
        Ok(Some(item).filter(|item| self.is_visible(item)))
    }

    fn stored(&self, ordinal: u64) -> Result<Option<Item>> {
        let key = self.partition.place.item(ordinal);
        let bytes = self.view.reader().get(Space::Item, &key)?;
        bytes.map(|bytes| item(bytes, &key)).transpose()
    }

    /// The item at an ordinal, if present.
    pub fn by_ordinal(&self, ordinal: u64) -> Result<Option<Item>> {
        Ok(self.stored(ordinal)?.filter(|item| self.is_visible(item)))
    }

    /// Adds the items at ordinals to those found, in the order asked, as far as present and kept.
    /// Neighbors are cheap.
    pub fn by_ordinals(
        &self,
        ordinals: &[u64],
        keep: impl Fn(&Item) -> bool,
        found: &mut Vec<Option<Item>>,
    ) -> Result<()> {
        let place = &self.partition.place;
        let present = |bytes: Option<Bytes>, key: &[u8]| -> Result<Option<Item>> {
            let Some(bytes) = bytes else { return Ok(None) };
            Ok(Some(item(bytes, key)?).filter(|item| self.is_visible(item) && keep(item)))
        };
        let get = |keys: &[&[u8]]| self.view.reader().get_many(Space::Item, keys);
        if ordinals.is_sorted() {
            let (keys, key_bytes) = place.items_at(ordinals.iter().copied());
            let keys: Vec<&[u8]> = keys.chunks_exact(key_bytes).collect();
            for (bytes, key) in get(&keys)?.into_iter().zip(keys) {
                found.push(present(bytes, key)?);
            }
            return Ok(());
        }
        // Asked for in their order, most are near the one before.
        let mut order: Vec<(u64, usize)> = ordinals.iter().copied().zip(found.len()..).collect();
        order.sort_unstable();
        let (keys, key_bytes) = place.items_at(order.iter().map(|(ordinal, _)| *ordinal));
        let keys: Vec<&[u8]> = keys.chunks_exact(key_bytes).collect();
        found.resize(found.len() + ordinals.len(), None);
        for ((bytes, key), (_, at)) in get(&keys)?.into_iter().zip(keys).zip(order) {
            found[at] = present(bytes, key)?;
        }
        Ok(())
    }

    /// Present items with ordinals in `from..to`, ascending; looks at no more than `rows_max` rows.
    pub fn items(&self, from: u64, to: u64, rows_max: usize, bytes_max: usize) -> Result<Items> {
        let options = ScanOptions { rows_max, bytes_max, ..ScanOptions::default() };
        self.items_by(from, to, options)
    }

    /// Present items with ordinals in `from..to`, either way.
    pub fn items_by(&self, from: u64, to: u64, options: ScanOptions) -> Result<Items> {
        let range = self.partition.place.items(from, to);
        let page = self.view.reader().scan(Space::Item, &range, options)?;
        let mut items = Vec::with_capacity(page.rows.len());
        let mut last = None;
        for row in page.rows {
            let item = Item::from_bytes(row.value)
                .map_err(|e| Error::corrupt(Space::Item, &row.key, e))?;
            last = keys::ordinal_of(&row.key);
            if self.is_visible(&item) {
                items.push(item);
            }
        }
        Ok(Items { items, last, is_cut: page.is_cut })
    }

    /// How many terms a range has.
    pub fn count_terms(&self, range: &Range) -> Result<u64> {
        Ok(self.view.reader().count(Space::Term, range)?)
    }

    /// Items and bytes of the physical partition, or of one logical partition in it.
    pub fn totals(&self, key: Option<&LogicalKey>) -> Result<[i64; 2]> {
        let place = &self.partition.place;
        let counter = match key {
            Some(key) => place.logical_totals(&key.bytes),
            None => place.totals(),
        };
        Ok(read_sums(self.view.reader().get(Space::Meta, &counter)?))
    }

    /// How many indexed items have a value at a path of properties, gone or not. To be relied on if
    /// the path is indexed under the policy and all retired ones; 0 for paths through elements.
    pub fn items_with_path(&self, path: &index::Path) -> Result<u64> {
        match is_time(path) {
            true => self.indexed_items(),
            false => self.path_count(path),
        }
    }

    /// How many items are indexed, gone or not: all but those that were written with the directive
    /// to leave them out. To be relied on if the policy and all retired ones have an index.
    pub fn indexed_items(&self) -> Result<u64> {
        self.path_count(&index::Path::default())
    }

    fn path_count(&self, path: &index::Path) -> Result<u64> {
        let key = self.partition.place.path_count(&path.to_bytes());
        let [count, _] = read_sums(self.view.reader().get(Space::Meta, &key)?);
        // While a policy changes, what is removed may not have been counted yet (N2).
        Ok(count.max(0) as u64)
    }

    /// Hands the term keys of a range to `act`, in order or reverse, until it says false.
    pub fn for_each_term(
        &self,
        range: &Range,
        direction: Direction,
        act: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<()> {
        Ok(self.view.reader().for_each_key(Space::Term, range, direction, act)?)
    }

    /// Hands those term keys of a range to `act` whose ordinals are wanted.
    pub fn sieve_terms(
        &self,
        range: &Range,
        direction: Direction,
        wanted: &Wanted,
        act: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<Sieved> {
        Ok(self.view.reader().sieve(Space::Term, range, direction, wanted, act)?)
    }

    /// Term keys of a range, in order or reverse.
    pub fn term_rows(
        &self,
        range: &Range,
        direction: Direction,
        rows_max: usize,
    ) -> Result<store::Page> {
        let options = ScanOptions { direction, rows_max, keys_only: true, bytes_max: usize::MAX };
        Ok(self.view.reader().scan(Space::Term, range, options)?)
    }
}

fn item(bytes: Bytes, key: &[u8]) -> Result<Item> {
    Item::from_bytes(bytes).map_err(|e| Error::corrupt(Space::Item, key, e))
}

/// Every indexed item has `_ts`, so it is not counted.
fn is_time(path: &index::Path) -> bool {
    matches!(&path.segments[..], [Segment::Property(name)] if name == "_ts")
}
