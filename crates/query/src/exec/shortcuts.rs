//! Aggregates answered by the index.

use item::{Item, Value};

use super::Run;
use super::entries::count_common;
use crate::plan::{Extreme, Shortcut};
use crate::{Bounds, Direction, Error, Path, Span};

impl Run<'_> {
    /// The values of all aggregates, unless it turns out that items must be read.
    pub(super) fn shortcut(&self, shortcut: &Shortcut) -> Result<Option<Vec<Value>>, Error> {
        let count = self.plan.query.block.grouping.as_ref().map_or(0, |g| g.aggregates.len());
        let all = |number: u64| vec![Value::Number(number as f64); count];
        match shortcut {
            Shortcut::Items(items) => Ok(Some(all(*items))),
            Shortcut::Entries(lists) => Ok(self.entries(lists)?.map(all)),
            Shortcut::Values { span, aggregates } => self.values(span, aggregates),
        }
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
            let value = path.value(Item::root(item));
            let order = super::directed(value.compare(&best), direction);
            if best.is_undefined() || order.is_lt() {
                best = value;
            }
        }
        Ok(Some(best))
    }
}
