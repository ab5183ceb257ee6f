//! Where a query's items come from: a selection of physical partitions at one view.

use std::ops::Bound;
use std::sync::Arc;

use base::Ctx;
use bytes::Bytes;
use index::{Scalar, TermRange};
use item::{Item, Kind, Value};
use model::container::Order;
use model::container::path::Segment;
use model::partition_key::{Component, PartitionKey};
use query::{Batch, Bounds, Direction, Path, Point, Position, Source, SourceError};
use storage::keys::{self, locality_bounds};
use storage::scan::PartitionReader;
use storage::shape::{LogicalKey, Partition};
use storage::visibility::{Erasure, Visibility};
use store::{Range, ScanOptions, View};

use crate::container::Selection;
use crate::{Container, Core};

/// Rows looked at between two looks at the clock.
const ROWS: usize = 256;

pub(crate) struct ContainerSource<'a> {
    pub core: &'a Core,
    pub container: &'a Container,
    pub selection: Selection,
    pub view: View,
    pub erasures: Arc<Vec<Erasure>>,
    pub now: u32,
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
        let view = core.store.view();
        let erasures = container.published_erasures(&view);
        ContainerSource { core, container, selection, view, erasures, now }
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

    /// The selection's one logical partition, if it is one.
    fn fixed_key(&self) -> Option<LogicalKey> {
        let key = self.selection.key.as_ref()?;
        let layout = &self.container.layout;
        let is_complete = layout.key_definition.is_complete(key);
        is_complete.then(|| LogicalKey::new(layout, key.clone()))
    }

    /// Whether queries over this selection find an item.
    fn is_found(&self, reader: &PartitionReader<'_>, item: &Item) -> bool {
        item.is_indexed()
            && (self.selection.is_whole()
                || reader
                    .key_of(item)
                    .is_some_and(|key| self.selection.contains(self.container, &key)))
    }

    fn ordinals(&self) -> (u64, u64) {
        self.fixed_key().map_or((0, 1 << 60), |key| locality_bounds(key.locality))
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
                rows_max: rows_max.clamp(1, ROWS),
                bytes_max: 4 << 20,
                keys_only: false,
            };
            let found = reader.items_by(from, to, options).map_err(failed)?;
            for item in found.items {
                ctx.meter().item_scanned(item.text_len());
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

    fn is_key_fixed(&self) -> bool {
        self.fixed_key().is_some()
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
        items.iter().for_each(|item| ctx.meter().item_read(item.text_len()));
        Ok(Batch { rows: items, is_last })
    }

    fn is_indexed(&self, path: &Path) -> bool {
        let shape = self.container.shape.read();
        let path = index_path(path);
        shape.policy.is_indexed(&path) && shape.retired.iter().all(|p| p.is_indexed(&path))
    }

    fn has_composite(&self, keys: &[(Path, Direction)]) -> bool {
        let shape = self.container.shape.read();
        let serves = |policy: &index::Policy| {
            policy.composites().iter().any(|composite| is_served(composite, keys))
        };
        serves(&shape.policy) && shape.retired.iter().all(serves)
    }

    fn range(
        &self,
        ctx: &Ctx,
        partition: usize,
        path: &Path,
        bounds: &Bounds,
        direction: Direction,
        after: Option<&Position>,
        rows_max: usize,
    ) -> Answer<Batch<(Position, Item)>> {
        let Some(bounds) = index_bounds(bounds) else {
            return Ok(Batch { rows: Vec::new(), is_last: true });
        };
        let path = index_path(path);
        let prefix_len = 7 + path.to_bytes().len();
        let is_seek = matches!(bounds, index::Bounds::Equal(_));
        let terms = index::range(&path, &bounds);
        let mut range = self.term_range(partition, &path, &terms, is_seek, direction, after);
        let reader = self.reader(partition);
        let fixed = self.fixed_key().map(|key| locality_bounds(key.locality));
        let mut rows = Vec::new();
        while !range.is_empty() {
            check_deadline(ctx)?;
            let wanted = (rows_max - rows.len()).clamp(1, ROWS);
            let page =
                reader.term_rows(&range, store_direction(direction), wanted).map_err(failed)?;
            if !is_seek {
                ctx.meter().terms_read(page.rows.len() as u64);
            }
            for row in &page.rows {
                let Some(ordinal) = keys::ordinal_of(&row.key) else { continue };
                if fixed.is_some_and(|(from, to)| ordinal < from || ordinal >= to) {
                    continue;
                }
                let Some(item) = reader.by_ordinal(ordinal).map_err(failed)? else { continue };
                ctx.meter().item_read(item.text_len());
                if self.is_found(&reader, &item) {
                    let key = row.key.slice(prefix_len..row.key.len() - 8);
                    rows.push((position(key, ordinal), item));
                }
            }
            let Some(last) = page.rows.last().filter(|_| page.is_cut) else {
                return Ok(Batch { rows, is_last: true });
            };
            if rows.len() >= rows_max.min(ROWS) {
                return Ok(Batch { rows, is_last: false });
            }
            match direction {
                Direction::Ascending => range.start = [&last.key[..], &[0]].concat(),
                Direction::Descending => range.end = Some(last.key.to_vec()),
            }
        }
        Ok(Batch { rows, is_last: true })
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

impl ContainerSource<'_> {
    /// The keys to walk: the terms of a predicate, past a position, and for an equality within one
    /// logical partition only those of its locality.
    fn term_range(
        &self,
        partition: usize,
        path: &index::Path,
        terms: &TermRange,
        is_seek: bool,
        direction: Direction,
        after: Option<&Position>,
    ) -> Range {
        let place = &self.partition(partition).place;
        let mut range = place.terms(&terms.start, &terms.end);
        if let Some(key) = self.fixed_key().filter(|_| is_seek && terms.exact) {
            let (from, to) = locality_bounds(key.locality);
            range = Range::new(place.term(&terms.start, from), place.term(&terms.start, to));
        }
        if let Some(after) = after {
            let term = [&path.to_bytes()[..], &after.key].concat();
            let key = place.term(&term, after.ordinal);
            match direction {
                Direction::Ascending => {
                    range.start = range.start.max([&key[..], &[0]].concat());
                }
                Direction::Descending => {
                    let key = key.to_vec();
                    range.end = Some(range.end.map_or(key.clone(), |end| end.min(key)));
                }
            }
        }
        range
    }
}

fn position(key: Bytes, ordinal: u64) -> Position {
    let is_exact = index::encode::decode(&key).is_some_and(|(decoded, _)| decoded.exact);
    Position { key, ordinal, is_exact }
}

fn is_served(composite: &index::Composite, keys: &[(Path, Direction)]) -> bool {
    let paths = composite.paths();
    let same = |flip: bool| {
        paths.len() == keys.len()
            && paths.iter().zip(keys).all(|((names, order), (path, direction))| {
                let is_descending = (*direction == Direction::Descending) != flip;
                path.is_names(names) && (*order == Order::Descending) == is_descending
            })
    };
    same(false) || same(true)
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
