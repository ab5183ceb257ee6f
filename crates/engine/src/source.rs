//! Where a query's items come from: a selection of physical partitions at one view.

mod logical;

use std::cell::Cell;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base::Ctx;
use bytes::Bytes;
use index::Scalar;
use index::geometry::Geometry;
use item::{Item, Kind, Value};
use model::container::Order;
use model::container::path::Segment;
use model::partition_key::{Component, PartitionKey};
use query::{
    Batch, Bounds, Direction, Ordinals, Path, Point, Position, Sizes, Source, SourceError, Span,
};
use storage::keys::{self, locality_bounds};
use storage::scan::PartitionReader;
use storage::shape::{LogicalKey, Partition, Shape, has_partition_key};
use storage::visibility::{Erasure, Visibility};
use store::{Range, ScanOptions, View, Wanted};

use crate::container::Selection;
use crate::{Container, Core};
use logical::Logical;

/// Items looked at between two looks at the clock.
const ROWS: usize = 256;
/// Bytes of items that are held at once, and items that are read before it is known how large they
/// are.
const BATCH_BYTES: usize = 4 << 20;
const ITEMS_FIRST: usize = 2;
/// Index entries looked at between two looks at the clock.
const ENTRIES: usize = 1024;
/// The same for entries of which few are wanted.
const SIEVED: usize = 8192;

pub(crate) struct ContainerSource<'a> {
    core: &'a Core,
    container: &'a Container,
    pub selection: Selection,
    pub view: View,
    erasures: Arc<Vec<Erasure>>,
    now: u32,
    /// As it was before the view was taken: what it calls complete is complete in the view.
    shape: Arc<Shape>,
    composites: Arc<Composites>,
    /// The selection's one logical partition, if it is one, and the values of its key.
    fixed: Option<(LogicalKey, Vec<Value>)>,
    /// Which partitions of the selection were opened.
    opened: Vec<AtomicBool>,
    logical: Logical,
}

type Answer<T> = std::result::Result<T, SourceError>;

fn failed(error: storage::Error) -> SourceError {
    SourceError::Failed(Box::new(error))
}

fn check_deadline(ctx: &Ctx) -> Answer<()> {
    if ctx.deadline().is_over() { Err(SourceError::Deadline) } else { Ok(()) }
}

impl<'a> ContainerSource<'a> {
    pub fn new(core: &'a Core, container: &'a Container, selection: Selection, now: u32) -> Self {
        let shape = container.shape.read().clone();
        let composites = Composites::of(container, &shape);
        let view = core.store.view();
        let erasures = container.published_erasures(&view);
        let key = selection.logical_key(container);
        let fixed = key.map(|key| {
            let values = values_of(&key.key);
            (key, values)
        });
        let opened = selection.partitions.iter().map(|_| AtomicBool::new(false)).collect();
        let logical = Logical::default();
        ContainerSource {
            core,
            container,
            selection,
            view,
            erasures,
            now,
            shape,
            composites,
            fixed,
            opened,
            logical,
        }
    }

    /// Counts a partition when it is first used: sought afresh, or gone on with past a position.
    fn open(&self, ctx: &Ctx, partition: usize, is_resumed: bool) {
        if self.opened[partition].swap(true, Ordering::Relaxed) {
            return;
        }
        match is_resumed {
            true => ctx.meter().at(partition).resumed(),
            false => ctx.meter().at(partition).visited(),
        }
    }

    /// The logical partition that is all of the scope, if there is one.
    pub fn logical_key(&self) -> Option<&LogicalKey> {
        self.fixed.as_ref().map(|(key, _)| key)
    }

    /// Counts items that counters told of: as many entries, in all partitions.
    pub fn counted(&self, ctx: &Ctx, items: u64) {
        (0..self.partitions()).for_each(|partition| self.open(ctx, partition, false));
        if self.partitions() > 0 {
            ctx.meter().at(0).terms_read(items);
        }
    }

    fn partition(&self, index: usize) -> &'a Partition {
        &self.container.layout.partitions[usize::from(self.selection.partitions[index])]
    }

    fn reader(&self, index: usize) -> PartitionReader<'_> {
        PartitionReader {
            layout: &self.container.layout,
            partition: self.partition(index),
            view: &self.view,
            visibility: Visibility {
                erasures: &self.erasures,
                ..self.container.visibility(self.now, &[])
            },
        }
    }

    /// Whether queries over this selection find an item.
    fn is_found(&self, reader: &PartitionReader<'_>, item: &Item) -> bool {
        if !item.is_indexed() {
            return false;
        }
        if let Some(key) = &self.selection.key {
            return has_partition_key(&self.container.layout.key_definition, item.root(), key);
        }
        let contains = |key: PartitionKey| self.selection.contains(self.container, &key);
        self.selection.is_whole() || reader.key_of(item).is_some_and(contains)
    }

    fn ordinals(&self) -> (u64, u64) {
        self.locality().unwrap_or((0, 1 << 60))
    }

    /// The ordinals among which those of the fixed logical partition are.
    fn locality(&self) -> Option<(u64, u64)> {
        self.fixed.as_ref().map(|(key, _)| locality_bounds(key.locality))
    }

    /// Items of the selection past `after` that pass `keep`, in ordinal order.
    fn walk(
        &self,
        ctx: &Ctx,
        index: usize,
        direction: Direction,
        after: Option<u64>,
        rows_max: usize,
        keep: impl Fn(&Item) -> bool,
    ) -> Answer<Batch<Item>> {
        self.open(ctx, index, after.is_some());
        let reader = self.reader(index);
        let (mut from, mut to) = self.ordinals();
        match (direction, after) {
            (Direction::Ascending, Some(after)) => from = from.max(after + 1),
            (Direction::Descending, Some(after)) => to = to.min(after),
            (Direction::Ascending | Direction::Descending, None) => {}
        }
        let mut rows = Vec::new();
        loop {
            check_deadline(ctx)?;
            let options = ScanOptions {
                direction: store_direction(direction),
                // One more than is wanted may be asked for.
                rows_max: rows_max.clamp(1, ROWS + 1),
                bytes_max: 4 << 20,
                keys_only: false,
            };
            let found = reader.items_by(from, to, options).map_err(failed)?;
            for item in found.items {
                if self.is_found(&reader, &item) && keep(&item) {
                    rows.push(item);
                }
            }
            let Some(last) = found.last.filter(|_| found.is_cut) else {
                return Ok(Batch { rows, is_last: true });
            };
            if !rows.is_empty() {
                return Ok(Batch { rows, is_last: false });
            }
            match direction {
                Direction::Ascending => from = last + 1,
                Direction::Descending => to = last,
            }
        }
    }
}

impl Source for ContainerSource<'_> {
    fn partitions(&self) -> usize {
        self.selection.partitions.len()
    }

    fn fixed_key(&self) -> Option<&[Value]> {
        self.fixed.as_ref().map(|(_, values)| &values[..])
    }

    fn scan(
        &self,
        ctx: &Ctx,
        partition: usize,
        after: Option<u64>,
        rows_max: usize,
    ) -> Answer<Batch<Item>> {
        self.walk(ctx, partition, Direction::Ascending, after, rows_max, |_| true)
    }

    fn points(
        &self,
        ctx: &Ctx,
        partition: usize,
        points: &[Point],
        after: Option<u64>,
        rows_max: usize,
    ) -> Answer<Batch<Item>> {
        self.open(ctx, partition, after.is_some());
        let reader = self.reader(partition);
        let number = self.partition(partition).number;
        let mut items: Vec<Item> = Vec::new();
        for point in points {
            check_deadline(ctx)?;
            let key = match &point.key {
                Some(values) => Some(key_of(values)),
                None => self.selection.key.clone(),
            };
            let Some(key) = key.filter(|key| self.selection.contains(self.container, key)) else {
                continue;
            };
            let key = LogicalKey::new(&self.container.layout, key);
            if key.partition != number {
                continue;
            }
            let found = reader.point(&self.core.cache, &key, &point.id).map_err(failed)?;
            items.extend(found.filter(|item| {
                item.is_indexed() && after.is_none_or(|after| item.ordinal() > after)
            }));
        }
        items.sort_by_key(Item::ordinal);
        items.dedup_by_key(|item| item.ordinal());
        let is_last = items.len() <= rows_max;
        items.truncate(rows_max.max(1));
        Ok(Batch { rows: items, is_last })
    }

    fn is_indexed(&self, path: &Path) -> bool {
        self.shape.is_complete(&index_path(path))
    }

    fn is_spatial(&self, path: &Path) -> bool {
        let path = index_path(path);
        self.shape.policy.is_spatial(&path)
            && self.shape.retired.iter().all(|p| p.is_spatial(&path))
    }

    fn is_full_text(&self, path: &Path) -> bool {
        let has = |policy: &index::Policy| {
            policy.full_texts().iter().any(|text| path.is_names(text.path()))
        };
        has(&self.shape.policy) && self.shape.retired.iter().all(has)
    }

    fn composites(&self) -> &[Vec<(Path, Direction)>] {
        &self.composites.keys
    }

    fn entries(
        &self,
        ctx: &Ctx,
        partition: usize,
        span: &Span,
        direction: Direction,
        after: Option<&Position>,
        rows_max: usize,
    ) -> Answer<Batch<Position>> {
        self.open(ctx, partition, after.is_some());
        let Some(terms) = self.terms(partition, span) else {
            return Ok(Batch { rows: Vec::new(), is_last: true });
        };
        let reader = self.reader(partition);
        let locality = self.locality();
        // Within a logical partition a range brings everybody's entries: read many to find few.
        let is_sieve = locality.is_some() && !terms.is_narrow;
        let rows_max = rows_max.clamp(1, ENTRIES);
        let (from, to) = locality.unwrap_or((0, u64::MAX));
        let keys_max = if is_sieve { SIEVED } else { ENTRIES };
        let wanted = Wanted { tails: from..to, keys_max };
        let mut found = Entries::default();
        for mut range in terms.past(after, direction) {
            while !range.is_empty() {
                check_deadline(ctx)?;
                if is_sieve && self.is_sieved_enough(partition)? {
                    if !found.rows.is_empty() {
                        return Ok(found.batch(false));
                    }
                    let own = (span, &terms);
                    let own = self.own_entries(ctx, partition, own, direction, after, rows_max)?;
                    if let Some(batch) = own {
                        return Ok(batch);
                    }
                }
                let mut act = |key: &[u8]| {
                    if let Some(ordinal) = keys::ordinal_of(key) {
                        found.push(&terms, key, ordinal);
                    }
                    found.rows.len() < rows_max
                };
                let way = store_direction(direction);
                let sieved = reader.sieve_terms(&range, way, &wanted, &mut act).map_err(failed)?;
                self.logical.sieved(if is_sieve { sieved.keys } else { 0 });
                if found.rows.len() >= rows_max {
                    return Ok(found.batch(false));
                }
                let Some(mut last) = sieved.last else { break };
                match direction {
                    Direction::Ascending => {
                        last.push(0);
                        range.start = last;
                    }
                    Direction::Descending => range.end = Some(last),
                }
            }
        }
        Ok(found.batch(true))
    }

    fn value_of(&self, key: &[u8]) -> Option<Value> {
        let (decoded, _) = index::encode::decode(key)?;
        match decoded.scalar {
            _ if !decoded.exact => None,
            Scalar::Null => Some(Value::Null),
            Scalar::Bool(bool) => Some(Value::Bool(bool)),
            Scalar::Number(number) => Some(Value::Number(number)),
            Scalar::String(text) => Some(Value::from(&*text)),
            Scalar::Undefined | Scalar::Array | Scalar::Object => None,
        }
    }

    fn ordinals(
        &self,
        ctx: &Ctx,
        partition: usize,
        span: &Span,
        after: Option<&Position>,
        rows_max: usize,
    ) -> Answer<Ordinals> {
        if let Some(found) = self.ordinals_of_key(ctx, partition, span, after, rows_max)? {
            return Ok(found);
        }
        let ascending = Direction::Ascending;
        Ok(Ordinals::of(self.entries(ctx, partition, span, ascending, after, rows_max)?))
    }

    fn items(&self, ctx: &Ctx, partition: usize, ordinals: &[u64]) -> Answer<Vec<Option<Item>>> {
        let own = |ordinal: &u64| self.logical.item(*ordinal).map(Some);
        if let Some(found) = ordinals.iter().map(own).collect::<Option<Vec<_>>>() {
            return Ok(found);
        }
        let reader = self.reader(partition);
        let mut found: Vec<Option<Item>> = Vec::with_capacity(ordinals.len());
        let mut bytes = 0;
        while found.len() < ordinals.len() && bytes < BATCH_BYTES {
            check_deadline(ctx)?;
            // The first tell how large the others are.
            let most = match found.len() {
                0 => ITEMS_FIRST,
                len => ((BATCH_BYTES - bytes) / (bytes / len).max(64)).clamp(1, ROWS),
            };
            let before = found.len();
            let rest = &ordinals[before..];
            let next = &rest[..most.min(rest.len())];
            // Those of others were read, too.
            let read = Cell::new(0);
            let is_found = |item: &Item| {
                read.set(read.get() + item.text_len());
                self.is_found(&reader, item)
            };
            reader.by_ordinals(next, is_found, &mut found).map_err(failed)?;
            bytes += read.get();
        }
        Ok(found)
    }

    fn may_lack(&self, partition: usize, path: &Path) -> Answer<bool> {
        let reader = self.reader(partition);
        let with_path = reader.items_with_path(&index_path(path)).map_err(failed)?;
        Ok(with_path < reader.indexed_items().map_err(failed)?)
    }

    fn probe(&self, span: &Span, most: usize) -> Answer<usize> {
        let mut count = 0;
        for partition in 0..self.partitions() {
            let Some(terms) = self.terms(partition, span) else { continue };
            let reader = self.reader(partition);
            for range in &terms.ranges {
                if count >= most {
                    return Ok(count);
                }
                let forward = store::Direction::Forward;
                let mut act = |_: &[u8]| {
                    count += 1;
                    count < most
                };
                reader.for_each_term(range, forward, &mut act).map_err(failed)?;
            }
        }
        Ok(count)
    }

    fn count(&self, ctx: &Ctx, partition: usize, span: &Span) -> Answer<Option<u64>> {
        self.open(ctx, partition, false);
        let Some(terms) = self.terms(partition, span) else { return Ok(Some(0)) };
        // What is fixed in a composite index is all of the key, or it would not be asked.
        let is_shared = self.fixed.is_some() && terms.composite.is_none();
        if !terms.is_exact || is_shared {
            return Ok(None);
        }
        check_deadline(ctx)?;
        let reader = self.reader(partition);
        let mut count = 0;
        for range in &terms.ranges {
            count += reader.count_terms(range).map_err(failed)?;
        }
        Ok(Some(count))
    }

    fn sizes(&self) -> Answer<Sizes> {
        let (mut scope, mut partitions) = (0, 0);
        let mut is_exact = self.is_all_visible();
        for partition in 0..self.partitions() {
            let reader = self.reader(partition);
            let all = reader.totals(None).map_err(failed)?[0].max(0) as u64;
            partitions += all;
            is_exact = is_exact && reader.indexed_items().map_err(failed)? == all;
            scope += match &self.fixed {
                Some((key, _)) => reader.totals(Some(key)).map_err(failed)?[0].max(0) as u64,
                None => all,
            };
        }
        Ok(Sizes { scope, partitions, is_exact })
    }

    fn lacking(
        &self,
        ctx: &Ctx,
        partition: usize,
        path: &Path,
        direction: Direction,
        after: Option<u64>,
        rows_max: usize,
    ) -> Answer<Batch<Item>> {
        let names: Vec<&str> = path
            .segments()
            .iter()
            .filter_map(|segment| match segment {
                query::Segment::Property(name) => Some(&**name),
                query::Segment::Elements => None,
            })
            .collect();
        let lacks = |item: &Item| item.root().path(names.iter().copied()).is_none();
        self.walk(ctx, partition, direction, after, rows_max, lacks)
    }
}

/// The terms of a span in one partition.
struct Terms {
    /// Where they are: apart, ascending.
    ranges: Vec<Range>,
    /// Bytes before the values.
    front: usize,
    composite: Option<index::Composite>,
    /// All are of the fixed logical partition, as far as the ordinal tells.
    is_narrow: bool,
    /// Every one of them stands for a value in the span.
    is_exact: bool,
    /// The key up to the values, for positions.
    prefix: Vec<u8>,
}

impl Terms {
    /// What is left of the ranges past a position, in the direction of reading.
    fn past(&self, after: Option<&Position>, direction: Direction) -> Vec<Range> {
        let mut ranges = self.ranges.clone();
        if direction == Direction::Descending {
            ranges.reverse();
        }
        let Some(after) = after else { return ranges };
        let mut key = [&self.prefix[..], &after.key].concat();
        key.extend_from_slice(&after.ordinal.to_be_bytes());
        if direction == Direction::Ascending {
            key.push(0);
        }
        for range in &mut ranges {
            match direction {
                Direction::Ascending if range.start < key => range.start.clone_from(&key),
                Direction::Ascending => {}
                Direction::Descending => {
                    let end = range.end.take().map_or(key.clone(), |end| end.min(key.clone()));
                    range.end = Some(end);
                }
            }
        }
        ranges
    }

    fn position(&self, key: &[u8], ordinal: u64) -> Position {
        let values = self.values_of(key);
        Position { key: Bytes::copy_from_slice(values), ordinal, cut: self.cut(values) }
    }

    /// What of a key is its values.
    fn values_of<'k>(&self, key: &'k [u8]) -> &'k [u8] {
        &key[self.front..key.len() - 8]
    }

    fn cut(&self, values: &[u8]) -> Option<usize> {
        match &self.composite {
            Some(composite) => composite.cut(values),
            None => index::encode::cut(values),
        }
    }
}

/// Entries that were found. Their keys share one buffer, and equal keys one place in it.
#[derive(Default)]
struct Entries {
    keys: Vec<u8>,
    rows: Vec<Entry>,
}

#[derive(Clone, Copy)]
struct Entry {
    key_start: usize,
    key_end: usize,
    ordinal: u64,
    cut: Option<usize>,
}

impl Entries {
    fn push(&mut self, terms: &Terms, key: &[u8], ordinal: u64) {
        let values = terms.values_of(key);
        let last = self.rows.last().filter(|row| &self.keys[row.key_start..row.key_end] == values);
        let entry = match last {
            Some(last) => Entry { ordinal, ..*last },
            None => {
                let key_start = self.keys.len();
                self.keys.extend_from_slice(values);
                let (key_end, cut) = (self.keys.len(), terms.cut(values));
                Entry { key_start, key_end, ordinal, cut }
            }
        };
        self.rows.push(entry);
    }

    fn batch(self, is_last: bool) -> Batch<Position> {
        let keys = Bytes::from(self.keys);
        let position = |row: Entry| {
            let Entry { key_start, key_end, ordinal, cut } = row;
            Position { key: keys.slice(key_start..key_end), ordinal, cut }
        };
        Batch { rows: self.rows.into_iter().map(position).collect(), is_last }
    }
}

impl ContainerSource<'_> {
    /// The ordinals of a span, if all its entries are next to each other and have one key.
    fn ordinals_of_key(
        &self,
        ctx: &Ctx,
        partition: usize,
        span: &Span,
        after: Option<&Position>,
        rows_max: usize,
    ) -> Answer<Option<Ordinals>> {
        let Some(terms) = self.terms(partition, span) else { return Ok(None) };
        let ranges = terms.past(after, Direction::Ascending);
        let [range] = &ranges[..] else { return Ok(None) };
        if self.locality().is_some() && !terms.is_narrow {
            return Ok(None);
        }
        self.open(ctx, partition, after.is_some());
        check_deadline(ctx)?;
        let rows_max = rows_max.clamp(1, ENTRIES);
        let (mut ordinals, mut first, mut is_one_key) = (Vec::new(), None, true);
        let mut act = |key: &[u8]| {
            let Some(ordinal) = keys::ordinal_of(key) else { return true };
            let first = first.get_or_insert_with(|| terms.position(key, ordinal));
            is_one_key = first.key == terms.values_of(key);
            ordinals.push(ordinal);
            is_one_key && ordinals.len() < rows_max
        };
        let reader = self.reader(partition);
        if !range.is_empty() {
            reader.for_each_term(range, store::Direction::Forward, &mut act).map_err(failed)?;
        }
        let is_last = ordinals.len() < rows_max;
        let is_cut = first.as_ref().is_some_and(|first| first.cut.is_some());
        let last = ordinals.last().zip(first);
        let last = last.map(|(&ordinal, first)| Position { ordinal, ..first });
        Ok(is_one_key.then_some(Ordinals { ordinals, last, is_last, is_cut }))
    }

    /// The terms of a span; `None` if nothing can be in it.
    fn terms(&self, partition: usize, span: &Span) -> Option<Terms> {
        let place = &self.partition(partition).place;
        match span {
            Span::Path { path, bounds } => {
                let bounds = index_bounds(bounds)?;
                let path = index_path(path);
                let is_seek = matches!(bounds, index::Bounds::Equal(_));
                let found = index::range(&path, &bounds);
                let prefix = place.terms(&path.to_bytes(), &[]).start;
                let is_narrow = is_seek && found.exact && self.fixed.is_some();
                let range = match self.locality().filter(|_| is_narrow) {
                    Some((from, to)) => {
                        Range::new(place.term(&found.start, from), place.term(&found.start, to))
                    }
                    None => place.terms(&found.start, &found.end),
                };
                let front = prefix.len();
                let is_exact = found.exact;
                let ranges = vec![range];
                Some(Terms { ranges, front, composite: None, is_narrow, is_exact, prefix })
            }
            Span::Composite { keys, equal, bounds } => {
                let composite = self.composites.of_keys(keys)?.clone();
                let equal: Vec<Scalar<'_>> = equal.iter().filter_map(scalar).collect();
                let bounds = match *bounds == Bounds::ALL {
                    true => index::Bounds::All,
                    false => index_bounds(bounds)?,
                };
                let found = index::composite_range(&composite, &equal, &bounds);
                let range = place.composites(&found.start, &found.end);
                let prefix = place.composites(composite.id(), &[]).start;
                let (front, is_exact) = (prefix.len(), found.exact);
                let is_narrow = false;
                let (ranges, composite) = (vec![range], Some(composite));
                Some(Terms { ranges, front, composite, is_narrow, is_exact, prefix })
            }
            Span::Word { path, stem } => {
                let path = index_path(path);
                let found = index::full_text_range(&path, stem);
                let range = match self.locality() {
                    Some((from, to)) if found.exact => {
                        Range::new(place.text(&found.start, from), place.text(&found.start, to))
                    }
                    _ => place.texts(&found.start, &found.end),
                };
                let prefix = place.texts(&path.to_bytes(), &[]).start;
                Some(Terms {
                    ranges: vec![range],
                    front: prefix.len(),
                    composite: None,
                    is_narrow: found.exact && self.fixed.is_some(),
                    is_exact: false,
                    prefix,
                })
            }
            Span::Near { path, geometry, meters } => {
                // Nothing is near what is no geometry.
                let geometry = Geometry::read(geometry).ok()?;
                let path = index_path(path);
                let region = index::Region::around(&geometry, *meters);
                let found = index::spatial_ranges(&path, &region);
                let range = |terms: &index::TermRange| place.spatials(&terms.start, &terms.end);
                let prefix = place.spatials(&path.to_bytes(), &[]).start;
                Some(Terms {
                    ranges: found.iter().map(range).collect(),
                    front: prefix.len(),
                    composite: None,
                    is_narrow: false,
                    is_exact: false,
                    prefix,
                })
            }
        }
    }

    /// Whether nothing stored in the selection is invisible, and it is made of whole partitions,
    /// physical or logical, that are indexed.
    fn is_all_visible(&self) -> bool {
        let is_indexed = self.shape.is_complete(&index::Path::default());
        let is_regular = self.selection.is_whole() || self.fixed.is_some();
        is_indexed && is_regular && self.shape.default_ttl().is_none() && self.erasures.is_empty()
    }
}

/// The composite indexes of a container that can be read while it has a shape.
pub(crate) struct Composites {
    /// As long as it is held here, a change of the container makes another one.
    shape: Arc<Shape>,
    keys: Vec<Vec<(Path, Direction)>>,
    indexes: Vec<index::Composite>,
}

impl Composites {
    /// Those of the container, which keeps them.
    fn of(container: &Container, shape: &Arc<Shape>) -> Arc<Composites> {
        let own = container.composites.load_full();
        if let Some(own) = own.filter(|own| Arc::ptr_eq(&own.shape, shape)) {
            return own;
        }
        let is_current = |composite: &&index::Composite| {
            shape.retired.iter().all(|policy| policy.composites().contains(composite))
        };
        let indexes = shape.policy.composites().iter().filter(is_current).cloned();
        let indexes: Vec<index::Composite> = indexes.collect();
        let keys = indexes.iter().map(keys_of).collect();
        let own = Arc::new(Composites { shape: shape.clone(), keys, indexes });
        container.composites.store(Some(own.clone()));
        own
    }

    fn of_keys(&self, keys: &[(Path, Direction)]) -> Option<&index::Composite> {
        let at = self.keys.iter().position(|own| own == keys)?;
        self.indexes.get(at)
    }
}

/// The paths of a composite index with their directions.
fn keys_of(composite: &index::Composite) -> Vec<(Path, Direction)> {
    let key = |(names, order): &(Vec<String>, Order)| {
        let direction = match order {
            Order::Ascending => Direction::Ascending,
            Order::Descending => Direction::Descending,
        };
        (Path::of(names), direction)
    };
    composite.paths().iter().map(key).collect()
}

/// The values of a partition key.
fn values_of(key: &PartitionKey) -> Vec<Value> {
    let value = |component: &Component| match component {
        Component::Undefined => Value::Undefined,
        Component::Null => Value::Null,
        Component::Bool(bool) => Value::Bool(*bool),
        Component::Number(number) => Value::Number(*number),
        Component::String(text) => Value::from(text.as_str()),
    };
    key.0.iter().map(value).collect()
}

fn store_direction(direction: Direction) -> store::Direction {
    match direction {
        Direction::Ascending => store::Direction::Forward,
        Direction::Descending => store::Direction::Backward,
    }
}

fn index_path(path: &Path) -> index::Path {
    let segment = |segment: &query::Segment| match segment {
        query::Segment::Property(name) => Segment::Property(name.to_string()),
        query::Segment::Elements => Segment::Elements,
    };
    index::Path::new(path.segments().iter().map(segment).collect())
}

/// The partition key of a point's values. Arrays and objects count as undefined, as in routing.
pub(crate) fn key_of(values: &[Value]) -> PartitionKey {
    let component = |value: &Value| match value {
        Value::Null => Component::Null,
        Value::Bool(bool) => Component::Bool(*bool),
        Value::Number(number) => Component::Number(*number),
        Value::String(text) => Component::String(text.to_string()),
        Value::Undefined | Value::Array(_) | Value::Object(_) => Component::Undefined,
    };
    PartitionKey(values.iter().map(component).collect())
}

fn scalar(value: &Value) -> Option<Scalar<'_>> {
    Some(match value {
        Value::Null => Scalar::Null,
        Value::Bool(bool) => Scalar::Bool(*bool),
        Value::Number(number) => Scalar::Number(*number),
        Value::String(text) => Scalar::string(text),
        Value::Array(_) => Scalar::Array,
        Value::Object(_) => Scalar::Object,
        Value::Undefined => return None,
    })
}

/// The index's bounds for a query's. `None` if no value can satisfy them.
fn index_bounds(bounds: &Bounds) -> Option<index::Bounds<'_>> {
    if let Some(value) = bounds.single() {
        return Some(match value.kind()? {
            Kind::Array | Kind::Object => index::Bounds::OfKind(value.kind()?),
            Kind::Null | Kind::Bool | Kind::Number | Kind::String => {
                index::Bounds::Equal(scalar(value)?)
            }
        });
    }
    let bound = |bound: &'_ Bound<Value>| -> Option<Bound<Scalar<'_>>> {
        Some(match bound {
            Bound::Included(value) => Bound::Included(owned(scalar(value)?)),
            Bound::Excluded(value) => Bound::Excluded(owned(scalar(value)?)),
            Bound::Unbounded => Bound::Unbounded,
        })
    };
    match (&bounds.lower, &bounds.upper) {
        (Bound::Unbounded, Bound::Unbounded) => Some(index::Bounds::Defined),
        (lower, upper) => Some(index::Bounds::Between(bound(lower)?, bound(upper)?)),
    }
}

fn owned(scalar: Scalar<'_>) -> Scalar<'static> {
    match scalar {
        Scalar::String(text) => Scalar::String(text.into_owned().into()),
        Scalar::Undefined => Scalar::Undefined,
        Scalar::Null => Scalar::Null,
        Scalar::Bool(bool) => Scalar::Bool(bool),
        Scalar::Number(number) => Scalar::Number(number),
        Scalar::Array => Scalar::Array,
        Scalar::Object => Scalar::Object,
    }
}
