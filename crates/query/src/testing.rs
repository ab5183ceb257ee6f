//! A naive source in memory, for tests of this crate and of what is built on it.

use base::Ctx;
use bytes::Bytes;
use item::{Draft, Item, Stamp, Value};

use crate::{Batch, Bounds, Direction, Path, Point, Position, Source, SourceError};

/// An item with this body and ordinal; panics if the body is not a JSON object.
pub fn item(body: &str, ordinal: u64) -> Item {
    let rid = format!("AAAAAIAAAAAB{ordinal:012}");
    let self_link = format!("dbs/AAAAAA==/colls/AAAAAIAAAAA=/docs/{rid}/");
    let stamp = Stamp {
        rid: &rid,
        self_link: &self_link,
        etag: "00000000-0000-0000-0000-000000000000",
        ts: 1_700_000_000,
        lsn: ordinal,
        position: 0,
        ordinal,
        is_indexed: true,
    };
    Draft::parse(body.as_bytes()).expect("the body of a test item is a JSON object").stamp(&stamp)
}

/// Items in a vector, dealt out to partitions. Every call walks all of them.
#[derive(Clone, Debug)]
pub struct VecSource {
    partitions: Vec<Vec<Item>>,
    partition_key_paths: Vec<Path>,
    /// Whether paths have a range index.
    pub is_indexed: bool,
    /// Paths that have none all the same.
    pub excluded: Vec<Path>,
    /// The composite indexes.
    pub composites: Vec<Vec<(Path, Direction)>>,
    /// What [`Source::is_key_fixed`] answers.
    pub is_key_fixed: bool,
    /// Bytes of a string that a key keeps.
    pub string_bytes_max: usize,
}

impl VecSource {
    /// A source of these items, in the order of their ordinals, dealt out to so many partitions.
    /// Everything is indexed.
    pub fn new(items: impl IntoIterator<Item = Item>, partitions: usize) -> VecSource {
        let mut dealt = vec![Vec::new(); partitions];
        for (at, item) in items.into_iter().enumerate() {
            dealt[at % partitions].push(item);
        }
        dealt.iter_mut().for_each(|items| items.sort_by_key(Item::ordinal));
        VecSource {
            partitions: dealt,
            partition_key_paths: vec![Path::of(["id"])],
            is_indexed: true,
            excluded: Vec::new(),
            composites: Vec::new(),
            is_key_fixed: false,
            string_bytes_max: 64,
        }
    }

    /// The same with other partition key paths than `/id`.
    pub fn keyed(mut self, paths: &[Vec<String>]) -> VecSource {
        self.partition_key_paths = paths.iter().map(Path::of).collect();
        self
    }

    fn is_point(&self, item: &Item, point: &Point) -> bool {
        let has_key = |key: &Vec<Value>| {
            let mut parts = self.partition_key_paths.iter().zip(key);
            parts.all(|(path, part)| path.value(item.root()).deep_eq(part))
        };
        item.id().as_deref() == Some(point.id.as_str()) && point.key.as_ref().is_none_or(has_key)
    }

    /// The entries of a path in one partition, in order.
    fn entries(&self, partition: usize, path: &Path, bounds: &Bounds) -> Vec<(Position, Item)> {
        let mut entries: Vec<(Position, Item)> = Vec::new();
        for item in &self.partitions[partition] {
            for node in path.values(item.root()) {
                let value = node.to_value();
                let (key, is_exact) = self.key(&value);
                let position = Position { key, ordinal: item.ordinal(), is_exact };
                // What was cut may be anything that begins alike.
                if bounds.contains(&value) || !is_exact {
                    entries.push((position, item.clone()));
                }
            }
        }
        entries.sort_by(|(a, _), (b, _)| (&a.key, a.ordinal).cmp(&(&b.key, b.ordinal)));
        entries.dedup_by(|(a, _), (b, _)| a == b);
        entries
    }

    /// Order-preserving bytes of a value, and whether they hold all of it.
    fn key(&self, value: &Value) -> (Bytes, bool) {
        let mut key = vec![value.kind().map_or(0, |kind| kind as u8 + 1)];
        let mut is_exact = true;
        match value {
            Value::Bool(value) => key.push(u8::from(*value)),
            Value::Number(number) => {
                let bits = (number + 0.0).to_bits();
                let sign = 1 << 63;
                let ordered = if bits & sign == 0 { bits | sign } else { !bits };
                key.extend_from_slice(&ordered.to_be_bytes());
            }
            Value::String(text) => {
                is_exact = text.len() <= self.string_bytes_max;
                key.extend(text.bytes().take(self.string_bytes_max));
                key.push(if is_exact { 0 } else { 0xff });
            }
            Value::Undefined | Value::Null | Value::Array(_) | Value::Object(_) => {}
        }
        (key.into(), is_exact)
    }
}

/// The first rows of what is left, and whether that is all.
fn batch<T>(mut rows: Vec<T>, rows_max: usize) -> Batch<T> {
    let is_last = rows.len() <= rows_max;
    rows.truncate(rows_max);
    Batch { rows, is_last }
}

impl Source for VecSource {
    fn partitions(&self) -> usize {
        self.partitions.len()
    }

    fn is_key_fixed(&self) -> bool {
        self.is_key_fixed
    }

    fn scan(
        &self,
        ctx: &Ctx,
        partition: usize,
        after: Option<u64>,
        rows_max: usize,
    ) -> Result<Batch<Item>, SourceError> {
        let items = self.partitions[partition].iter();
        let rest = items.filter(|item| after.is_none_or(|after| item.ordinal() > after));
        let batch = batch(rest.cloned().collect(), rows_max);
        batch.rows.iter().for_each(|item| ctx.meter().item_scanned(item.text_len()));
        Ok(batch)
    }

    fn points(
        &self,
        ctx: &Ctx,
        partition: usize,
        points: &[Point],
        after: Option<u64>,
        rows_max: usize,
    ) -> Result<Batch<Item>, SourceError> {
        let items = self.partitions[partition].iter();
        let rest = items.filter(|item| after.is_none_or(|after| item.ordinal() > after));
        let found = rest.filter(|item| points.iter().any(|point| self.is_point(item, point)));
        let batch = batch(found.cloned().collect(), rows_max);
        batch.rows.iter().for_each(|item| ctx.meter().item_read(item.text_len()));
        Ok(batch)
    }

    fn is_indexed(&self, path: &Path) -> bool {
        self.is_indexed && !self.excluded.contains(path)
    }

    fn has_composite(&self, keys: &[(Path, Direction)]) -> bool {
        self.composites.iter().any(|index| {
            let same_paths = index.iter().map(|(p, _)| p).eq(keys.iter().map(|(p, _)| p));
            let same = |(own, other): (&(Path, Direction), &(Path, Direction))| own.1 == other.1;
            let mut directions = index.iter().zip(keys).map(same);
            let first = directions.next();
            same_paths && directions.all(|same| Some(same) == first)
        })
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
    ) -> Result<Batch<(Position, Item)>, SourceError> {
        let mut entries = self.entries(partition, path, bounds);
        if direction == Direction::Descending {
            entries.reverse();
        }
        entries.retain(|(position, _)| {
            after.is_none_or(|after| {
                let order = (&position.key, position.ordinal).cmp(&(&after.key, after.ordinal));
                if direction == Direction::Ascending { order.is_gt() } else { order.is_lt() }
            })
        });
        let batch = batch(entries, rows_max);
        ctx.meter().terms_read(batch.rows.len() as u64);
        batch.rows.iter().for_each(|(_, item)| ctx.meter().item_read(item.text_len()));
        Ok(batch)
    }

    fn lacking(
        &self,
        ctx: &Ctx,
        partition: usize,
        path: &Path,
        direction: Direction,
        after: Option<u64>,
        rows_max: usize,
    ) -> Result<Batch<Item>, SourceError> {
        let items = self.partitions[partition].iter();
        let mut lacking: Vec<Item> =
            items.filter(|item| path.values(item.root()).is_empty()).cloned().collect();
        if direction == Direction::Descending {
            lacking.reverse();
        }
        lacking.retain(|item| {
            after.is_none_or(|after| match direction {
                Direction::Ascending => item.ordinal() > after,
                Direction::Descending => item.ordinal() < after,
            })
        });
        let batch = batch(lacking, rows_max);
        batch.rows.iter().for_each(|item| ctx.meter().item_read(item.text_len()));
        Ok(batch)
    }
}
