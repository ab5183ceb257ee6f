//! The index of one logical partition, made when it is asked for.
//!
//! The entries of a range of keys are everybody's: those of one logical partition are sieved out of
//! them. Once that has cost as much as reading the logical partition would, it is read instead, and
//! its entries are derived from its items. They are the same entries, so one can change to that
//! anywhere.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use base::Ctx;
use index::Scalar;
use item::Item;
use parking_lot::Mutex;
use query::{Batch, Direction, Path, Position, Span};

use super::{Answer, ContainerSource, ROWS, Terms, check_deadline, failed, index_path};

/// To look at so many entries costs as much as to read an item.
const ENTRIES_PER_ITEM: u64 = 8;
/// A logical partition of up to so many items is small.
const ITEMS_SMALL: i64 = 1000;
/// One of more is small if its physical partition has so many times more.
const ITEMS_FACTOR: i64 = 16;
/// Most items, and most bytes of them, that are held.
const ITEMS_MAX: i64 = 50_000;
const BYTES_MAX: i64 = 32 << 20;

/// What was read of the logical partition, and what was derived from it.
#[derive(Default)]
pub(super) struct Logical {
    /// In the order of their ordinals; `None` if it is not small enough.
    items: OnceLock<Option<Vec<Item>>>,
    entries: Mutex<Vec<(Span, Arc<Vec<Position>>)>>,
    /// Entries that were looked at to find the own ones, and after how many that is enough.
    sieved: AtomicU64,
    sieved_max: OnceLock<u64>,
}

impl Logical {
    /// Notes that so many entries more were looked at.
    pub fn sieved(&self, entries: usize) {
        self.sieved.fetch_add(entries as u64, Ordering::Relaxed);
    }

    /// An item that was read already.
    pub fn item(&self, ordinal: u64) -> Option<Item> {
        let items = self.items.get()?.as_ref()?;
        let at = items.binary_search_by_key(&ordinal, Item::ordinal).ok()?;
        Some(items[at].clone())
    }
}

impl ContainerSource<'_> {
    /// Entries of a span of a path, if the logical partition is small enough to tell them.
    pub(super) fn own_entries(
        &self,
        ctx: &Ctx,
        partition: usize,
        (span, terms): (&Span, &Terms),
        direction: Direction,
        after: Option<&Position>,
        rows_max: usize,
    ) -> Answer<Option<Batch<Position>>> {
        let Span::Path { path, .. } = span else { return Ok(None) };
        // The time of the last write has an index of its own.
        if path.is_names(&["_ts".to_owned()]) || self.own_items(ctx, partition)?.is_none() {
            return Ok(None);
        }
        let entries = self.derived(partition, path, span, terms);
        Ok(Some(window(&entries, direction, after, rows_max.max(1))))
    }

    /// Whether reading the logical partition would have been cheaper by now.
    pub(super) fn is_sieved_enough(&self, partition: usize) -> Answer<bool> {
        let most = match self.logical.sieved_max.get() {
            Some(most) => *most,
            None => {
                let most = self.sieved_max(partition)?;
                *self.logical.sieved_max.get_or_init(|| most)
            }
        };
        Ok(self.logical.sieved.load(Ordering::Relaxed) >= most)
    }

    fn sieved_max(&self, partition: usize) -> Answer<u64> {
        let Some((key, _)) = &self.fixed else { return Ok(u64::MAX) };
        if !self.is_small(partition)? {
            return Ok(u64::MAX);
        }
        let [items, _] = self.reader(partition).totals(Some(key)).map_err(failed)?;
        Ok((items.max(0) as u64).saturating_mul(ENTRIES_PER_ITEM))
    }

    fn own_items(&self, ctx: &Ctx, partition: usize) -> Answer<Option<&Vec<Item>>> {
        if let Some(items) = self.logical.items.get() {
            return Ok(items.as_ref());
        }
        let items = match self.is_small(partition)? {
            true => Some(self.read_own(ctx, partition)?),
            false => None,
        };
        Ok(self.logical.items.get_or_init(|| items).as_ref())
    }

    fn is_small(&self, partition: usize) -> Answer<bool> {
        let Some((key, _)) = &self.fixed else { return Ok(false) };
        let reader = self.reader(partition);
        let [items, bytes] = reader.totals(Some(key)).map_err(failed)?;
        let all = reader.totals(None).map_err(failed)?[0];
        let is_less = items <= ITEMS_SMALL || items.saturating_mul(ITEMS_FACTOR) <= all;
        Ok(is_less && items <= ITEMS_MAX && bytes <= BYTES_MAX)
    }

    fn read_own(&self, ctx: &Ctx, partition: usize) -> Answer<Vec<Item>> {
        let reader = self.reader(partition);
        let (mut from, to) = self.ordinals();
        let mut items = Vec::new();
        loop {
            check_deadline(ctx)?;
            let found = reader.items(from, to, ROWS, 4 << 20).map_err(failed)?;
            items.extend(found.items.into_iter().filter(|item| self.is_found(&reader, item)));
            match found.last.filter(|_| found.is_cut) {
                Some(last) => from = last + 1,
                None => return Ok(items),
            }
        }
    }

    /// The entries the items have in a span, in order.
    fn derived(
        &self,
        partition: usize,
        path: &Path,
        span: &Span,
        terms: &Terms,
    ) -> Arc<Vec<Position>> {
        let mut known = self.logical.entries.lock();
        if let Some((_, entries)) = known.iter().find(|(own, _)| own == span) {
            return entries.clone();
        }
        let (place, own_path) = (&self.partition(partition).place, index_path(path));
        let items = self.logical.items.get().and_then(Option::as_ref);
        let mut entries: Vec<Position> = Vec::new();
        for item in items.into_iter().flatten() {
            for node in path.values(item.root()) {
                let term = index::term(&own_path, &Scalar::of(Some(node)));
                let key = place.term(&term, item.ordinal());
                if terms.ranges.iter().any(|range| range.contains(&key)) {
                    entries.push(terms.position(&key, item.ordinal()));
                }
            }
        }
        entries.sort_by(|a, b| (&a.key, a.ordinal).cmp(&(&b.key, b.ordinal)));
        entries.dedup();
        let entries = Arc::new(entries);
        known.push((span.clone(), entries.clone()));
        entries
    }
}

/// Some of the entries past a position.
fn window(
    entries: &[Position],
    direction: Direction,
    after: Option<&Position>,
    rows_max: usize,
) -> Batch<Position> {
    let place = |position: &Position| (position.key.clone(), position.ordinal);
    let rest = match (direction, after.map(place)) {
        (_, None) => entries,
        (Direction::Ascending, Some(after)) => {
            &entries[entries.partition_point(|own| place(own) <= after)..]
        }
        (Direction::Descending, Some(after)) => {
            &entries[..entries.partition_point(|own| place(own) < after)]
        }
    };
    let rows = match direction {
        Direction::Ascending => rest.iter().take(rows_max).cloned().collect(),
        Direction::Descending => rest.iter().rev().take(rows_max).cloned().collect(),
    };
    Batch { rows, is_last: rest.len() <= rows_max }
}
