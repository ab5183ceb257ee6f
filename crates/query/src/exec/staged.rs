//! Queries over the rows of an inner query that must be complete first.
//!
//! ```text
//! SELECT VALUE COUNT(1) FROM (SELECT DISTINCT c.city FROM c) x
//!
//! items ──▶ first block ──rows──▶ next block … ──rows──▶ last block ──▶ page
//! ```
//!
//! Each block takes the rows of the one before as its items. All rows are in memory, bounded as in
//! every operator that must know them all; a later page runs everything again and goes on past the
//! number of the last row.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use item::Value;

use super::ranked::Knowledge;
use super::{Run, write_value};
use crate::datum::Datum;
use crate::eval::{Env, Flow, Groups};
use crate::expr::Block;
use crate::{Error, Page, State, key};

/// Bytes a row costs besides its text.
const ROW_BYTES: usize = 64;

/// The rows of a block while its input comes in.
struct Stage<'b> {
    block: &'b Block,
    groups: Option<Groups>,
    /// Where each distinct row is.
    seen: HashMap<Vec<u8>, usize>,
    rows: Vec<Row>,
    bytes: usize,
}

/// A row, and what it is sorted by, if it is.
struct Row {
    order: Vec<u8>,
    value: Value,
}

impl Run<'_> {
    /// Stage after stage, then the page.
    pub(super) fn staged(&self, resume: Option<&State>) -> Result<Page, Error> {
        let mut rows = self.first_stage()?;
        for block in &self.plan.query.outer {
            rows = self.next_stage(block, &rows)?;
        }
        let sink = self.sink(resume);
        let mut sorter = self.sorter(&sink, resume)?;
        for (number, Row { mut order, value }) in rows.into_iter().enumerate() {
            order.extend_from_slice(&(number as u64).to_be_bytes());
            if sorter.wants(&order) {
                sorter.insert(order, write_value(&value)?);
            }
        }
        self.drained(sorter, sink)
    }

    fn first_stage(&self) -> Result<Vec<Row>, Error> {
        let mut stage = Stage::new(&self.plan.query.block);
        let mut env = self.env_of(Datum::UNDEFINED);
        let indexed = match &self.plan.shortcut {
            Some(shortcut) => self.shortcut(shortcut)?,
            None => None,
        };
        if let Some(aggregates) = indexed {
            stage.push_group(Vec::new(), aggregates, &mut env)?;
            return Ok(stage.rows);
        }
        let reader = self.reader();
        self.for_each_row(&mut |env, query, _| {
            stage.add(&query.block, Vec::new(), env)?;
            reader.check_memory(stage.bytes)?;
            Ok(Flow::Continue)
        })?;
        stage.finish(&mut env)
    }

    fn next_stage(&self, block: &Block, rows: &[Row]) -> Result<Vec<Row>, Error> {
        let mut stage = Stage::new(block);
        let is_last = std::ptr::eq(block, self.plan.query.last_block());
        let ranking = self.plan.query.ranking.as_ref().filter(|_| is_last);
        let (reader, knowledge) = (self.reader(), Knowledge::default());
        for row in rows {
            let mut env = self.env_of(Datum::borrowed(&row.value));
            block.for_each_row(&mut env, &mut |env| {
                let order = match ranking {
                    Some(ranking) => ranking.key(&knowledge, 0, env)?,
                    None => Vec::new(),
                };
                stage.add(block, order, env)?;
                reader.check_memory(stage.bytes)?;
                Ok(Flow::Continue)
            })?;
        }
        stage.finish(&mut self.env_of(Datum::UNDEFINED))
    }
}

impl<'b> Stage<'b> {
    fn new(block: &'b Block) -> Stage<'b> {
        let groups = block.grouping.as_ref().map(Groups::new);
        Stage { block, groups, seen: HashMap::new(), rows: Vec::new(), bytes: 0 }
    }

    /// Takes the current row. The block is that of the stage, for as long as the row is there.
    fn add<'e>(
        &mut self,
        block: &'e Block,
        order: Vec<u8>,
        env: &mut Env<'e>,
    ) -> Result<(), Error> {
        match (&mut self.groups, &block.grouping) {
            (Some(groups), Some(grouping)) => self.bytes = groups.add(grouping, env)?,
            _ => {
                let value = block.projection.value(env)?;
                self.push(order, value);
            }
        }
        Ok(())
    }

    fn push(&mut self, order: Vec<u8>, value: Option<Value>) {
        let Some(value) = value else { return };
        let identity = key::canonical(&value);
        let bytes = 2 * identity.len() + order.len() + ROW_BYTES;
        if self.block.distinct {
            match self.seen.entry(identity) {
                Entry::Vacant(place) => {
                    place.insert(self.rows.len());
                }
                Entry::Occupied(place) => {
                    let first = &mut self.rows[*place.get()].order;
                    *first = std::mem::take(first).min(order);
                    return;
                }
            }
        }
        self.bytes += bytes;
        self.rows.push(Row { order, value });
    }

    fn push_group(
        &mut self,
        keys: Vec<Value>,
        aggregates: Vec<Value>,
        env: &mut Env<'b>,
    ) -> Result<(), Error> {
        let value = self.block.projection.group_value(env, keys, aggregates)?;
        self.push(Vec::new(), value);
        Ok(())
    }

    fn finish(mut self, env: &mut Env<'b>) -> Result<Vec<Row>, Error> {
        let groups = self.groups.take().into_iter().flat_map(Groups::finish);
        let mut groups: Vec<_> = groups.collect();
        // The numbers of rows must be the same on every page.
        groups.sort_by(|(a, ..), (b, ..)| a.cmp(b));
        for (_, keys, aggregates) in groups {
            self.push_group(keys, aggregates, env)?;
        }
        Ok(self.rows)
    }
}
