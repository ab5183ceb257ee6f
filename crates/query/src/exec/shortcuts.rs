//! Aggregates answered by the index.

use item::{Item, Kind, Value};

use super::Run;
use super::entries::count_common;
use crate::datum::Datum;
use crate::eval::Groups;
use crate::expr::Grouping;
use crate::plan::{Extreme, Shortcut};
use crate::{Bounds, Direction, Error, Path, Position, Span};

/// Entries read at once.
const ENTRIES: usize = 1024;

impl Run<'_> {
    /// The values of all aggregates, unless it turns out that items must be read.
    pub(super) fn shortcut(&self, shortcut: &Shortcut) -> Result<Option<Vec<Value>>, Error> {
        let count = self.plan.query.block.grouping.as_ref().map_or(0, |g| g.aggregates.len());
        let all = |number: u64| vec![Value::Number(number as f64); count];
        match shortcut {
            Shortcut::Items(items) => Ok(Some(all(*items))),
            Shortcut::Entries(lists) => Ok(self.entries(lists)?.map(all)),
            Shortcut::Values { span, aggregates } => self.values(span, aggregates),
            Shortcut::Groups { .. } => Ok(None),
        }
    }

    /// Counts the entries of each key of a span. One item of a group is read, for its values; where
    /// the index takes a value for absent, all of them are, for they may differ.
    pub(super) fn count_groups(
        &self,
        span: &Span,
        paths: &[Path],
        groups: &mut Groups,
    ) -> Result<bool, Error> {
        let Some(grouping) = &self.plan.query.block.grouping else { return Ok(false) };
        for partition in 0..self.source.partitions() {
            let mut after: Option<Position> = None;
            let mut members: Vec<u64> = Vec::new();
            loop {
                let ascending = Direction::Ascending;
                let last = after.as_ref();
                let batch =
                    self.source.entries(self.ctx, partition, span, ascending, last, ENTRIES)?;
                let is_last = batch.is_last || batch.rows.is_empty();
                self.reader().visited(partition, span, batch.rows.len() as u64);
                for entry in batch.rows {
                    if entry.cut.is_some() {
                        return Ok(false);
                    }
                    if after.as_ref().is_some_and(|after| after.key != entry.key) {
                        self.add_group(partition, paths, &members, grouping, groups)?;
                        members.clear();
                    }
                    members.push(entry.ordinal);
                    after = Some(entry);
                }
                self.reader().check_memory(members.len() * size_of::<u64>())?;
                if is_last {
                    break;
                }
            }
            self.add_group(partition, paths, &members, grouping, groups)?;
        }
        Ok(true)
    }

    fn add_group(
        &self,
        partition: usize,
        paths: &[Path],
        members: &[u64],
        grouping: &Grouping,
        groups: &mut Groups,
    ) -> Result<(), Error> {
        let Some(first) = members.first() else { return Ok(()) };
        let items = self.source.items(self.ctx, partition, &[*first])?;
        let is_scalar = |item: &Item| {
            paths.iter().all(|path| {
                path.node(item.root())
                    .is_some_and(|node| !matches!(node.kind(), Kind::Array | Kind::Object))
            })
        };
        if let [Some(item)] = &items[..]
            && is_scalar(item)
        {
            self.reader().loaded(partition, item);
            return self.add_members(item, members.len(), grouping, groups);
        }
        let mut rest = members;
        while !rest.is_empty() {
            let some = &rest[..rest.len().min(ENTRIES)];
            let items = self.source.items(self.ctx, partition, some)?;
            for item in items.iter().flatten() {
                self.reader().loaded(partition, item);
                self.add_members(item, 1, grouping, groups)?;
            }
            rest = &rest[items.len()..];
        }
        Ok(())
    }

    fn add_members(
        &self,
        item: &Item,
        count: usize,
        grouping: &Grouping,
        groups: &mut Groups,
    ) -> Result<(), Error> {
        let mut env = self.env_of(Datum::Node(item.root()));
        self.reader().check_memory(groups.add_count(grouping, &mut env, count as u64)?)
    }

    /// How many items have entries in all lists.
    fn entries(&self, lists: &[Vec<Span>]) -> Result<Option<u64>, Error> {
        let mut sum = 0;
        for partition in 0..self.source.partitions() {
            let count = match lists {
                [spans] => self.count_all(partition, spans)?,
                _ => {
                    let spans: Vec<&Span> = lists.iter().flatten().collect();
                    count_common(self.reader(), partition, &spans)?
                }
            };
            let Some(count) = count else { return Ok(None) };
            sum += count;
        }
        Ok(Some(sum))
    }

    fn count_all(&self, partition: usize, spans: &[Span]) -> Result<Option<u64>, Error> {
        let mut sum = 0;
        for span in spans {
            let Some(count) = self.source.count(self.ctx, partition, span)? else {
                return Ok(None);
            };
            self.ctx.meter().at(partition).terms_read(count);
            sum += count;
        }
        Ok(Some(sum))
    }

    fn values(&self, span: &Span, aggregates: &[Extreme]) -> Result<Option<Vec<Value>>, Error> {
        let Span::Path { path, bounds } = span else { return Ok(None) };
        if *bounds == Bounds::ALL && aggregates.iter().any(|kind| *kind != Extreme::Count) {
            // One array or object makes an extreme undefined: rare, and not worth a second way.
            for kind in [Value::array(Vec::new()), Value::Object(Default::default())] {
                let span = Span::Path { path: path.clone(), bounds: Bounds::equal(kind) };
                if self.source.probe(&span, 1)? > 0 {
                    return Ok(None);
                }
            }
        }
        let mut values = Vec::with_capacity(aggregates.len());
        for kind in aggregates {
            let value = match kind {
                Extreme::Count => {
                    self.entries(&[vec![span.clone()]])?.map(|count| Value::Number(count as f64))
                }
                Extreme::Least => self.extreme(span, path, Direction::Ascending)?,
                Extreme::Greatest => self.extreme(span, path, Direction::Descending)?,
            };
            let Some(value) = value else { return Ok(None) };
            values.push(value);
        }
        Ok(Some(values))
    }

    /// The first value of a span over all partitions; undefined if there is none.
    fn extreme(
        &self,
        span: &Span,
        path: &Path,
        direction: Direction,
    ) -> Result<Option<Value>, Error> {
        let mut best = Value::Undefined;
        for partition in 0..self.source.partitions() {
            let batch = self.source.entries(self.ctx, partition, span, direction, None, 1)?;
            let Some(entry) = batch.rows.first() else { continue };
            if entry.cut.is_some() {
                return Ok(None);
            }
            let items = self.source.items(self.ctx, partition, &[entry.ordinal])?;
            let Some(Some(item)) = items.first() else { return Ok(None) };
            self.reader().visited(partition, span, 1);
            self.reader().loaded(partition, item);
            let value = path.value(Item::root(item));
            let order = super::directed(value.compare(&best), direction);
            if best.is_undefined() || order.is_lt() {
                best = value;
            }
        }
        Ok(Some(best))
    }
}
