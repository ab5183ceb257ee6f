//! A naive source in memory, for tests of this crate and of what is built on it.

use base::Ctx;
use bytes::Bytes;
use item::{Draft, Item, Stamp, Value};

use crate::{Batch, Bounds, Direction, Path, Point, Position, Sizes, Source, SourceError, Span};

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
    /// What [`Source::fixed_key`] answers.
    pub fixed_key: Option<Vec<Value>>,
    /// What [`Source::sizes`] says of itself.
    pub is_exact: bool,
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
            fixed_key: None,
            is_exact: true,
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

    /// The entries of a span in one partition, in order.
    fn span(&self, partition: usize, span: &Span) -> Vec<Position> {
        let items = self.partitions[partition].iter();
        let mut entries: Vec<Position> = match span {
            Span::Path { path, bounds } => {
                items.flat_map(|item| self.entries_of(item, path, bounds)).collect()
            }
            Span::Composite { keys, equal, bounds } => {
                items.filter_map(|item| self.composite(item, keys, equal, bounds)).collect()
            }
        };
        entries.sort_by(|a, b| (&a.key, a.ordinal).cmp(&(&b.key, b.ordinal)));
        entries.dedup();
        entries
    }

    fn entries_of(&self, item: &Item, path: &Path, bounds: &Bounds) -> Vec<Position> {
        let mut entries = Vec::new();
        for node in path.values(item.root()) {
            let value = node.to_value();
            let (key, is_exact) = self.key(&value);
            let cut = (!is_exact).then_some(key.len());
            // What was cut may be anything that begins alike.
            if bounds.contains(&value) || !is_exact {
                entries.push(Position { key, ordinal: item.ordinal(), cut });
            }
        }
        entries
    }

    fn composite(
        &self,
        item: &Item,
        keys: &[(Path, Direction)],
        equal: &[Value],
        bounds: &Bounds,
    ) -> Option<Position> {
        let (mut bytes, mut cut) = (Vec::new(), None);
        for (at, (path, direction)) in keys.iter().enumerate() {
            let value = match path.value(item.root()) {
                Value::Array(_) | Value::Object(_) => Value::Undefined,
                other => other,
            };
            let (mut key, is_exact) = self.key(&value);
            if *direction == Direction::Descending {
                key = key.iter().map(|byte| !byte).collect();
            }
            bytes.extend_from_slice(&key);
            if !is_exact {
                cut = cut.or(Some(bytes.len()));
            }
            let is_within = match equal.get(at) {
                Some(own) => own.deep_eq(&value),
                None if at == equal.len() && *bounds != Bounds::ALL => {
                    !value.is_undefined() && bounds.contains(&value)
                }
                None => true,
            };
            if !is_within && is_exact {
                return None;
            }
        }
        Some(Position { key: bytes.into(), ordinal: item.ordinal(), cut })
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

    fn fixed_key(&self) -> Option<&[Value]> {
        self.fixed_key.as_deref()
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

    fn composites(&self) -> Vec<Vec<(Path, Direction)>> {
        self.composites.clone()
    }

    fn entries(
        &self,
        ctx: &Ctx,
        partition: usize,
        span: &Span,
        direction: Direction,
        after: Option<&Position>,
        rows_max: usize,
    ) -> Result<Batch<Position>, SourceError> {
        let mut entries = self.span(partition, span);
        if direction == Direction::Descending {
            entries.reverse();
        }
        entries.retain(|position| {
            after.is_none_or(|after| {
                let order = (&position.key, position.ordinal).cmp(&(&after.key, after.ordinal));
                if direction == Direction::Ascending { order.is_gt() } else { order.is_lt() }
            })
        });
        let batch = batch(entries, rows_max);
        ctx.meter().terms_read(batch.rows.len() as u64);
        Ok(batch)
    }

    fn items(
        &self,
        ctx: &Ctx,
        partition: usize,
        ordinals: &[u64],
    ) -> Result<Vec<Option<Item>>, SourceError> {
        let all = &self.partitions[partition];
        let find = |ordinal: &u64| all.iter().find(|item| item.ordinal() == *ordinal).cloned();
        let items: Vec<Option<Item>> = ordinals.iter().map(find).collect();
        items.iter().flatten().for_each(|item| ctx.meter().item_read(item.text_len()));
        Ok(items)
    }

    fn may_lack(&self, partition: usize, path: &Path) -> Result<bool, SourceError> {
        let lacks = |item: &Item| path.values(item.root()).is_empty();
        Ok(self.partitions[partition].iter().any(lacks))
    }

    fn probe(&self, span: &Span, most: usize) -> Result<usize, SourceError> {
        let entries = (0..self.partitions.len()).map(|partition| self.span(partition, span).len());
        Ok(entries.sum::<usize>().min(most))
    }

    fn count(&self, ctx: &Ctx, partition: usize, span: &Span) -> Result<Option<u64>, SourceError> {
        let entries = self.span(partition, span);
        ctx.meter().terms_read(entries.len() as u64);
        let is_exact = entries.iter().all(|entry| entry.cut.is_none());
        Ok(is_exact.then_some(entries.len() as u64))
    }

    fn sizes(&self) -> Result<Sizes, SourceError> {
        let items = self.partitions.iter().map(|items| items.len() as u64).sum();
        Ok(Sizes { scope: items, partitions: items, is_exact: self.is_exact })
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
