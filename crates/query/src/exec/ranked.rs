//! Rows in an order no index brings: by expressions, by nearness, by relevance.
//!
//! ```text
//! statistics   every row in scope, whatever the filter says: how long texts are, how rare terms
//! scores       every row that passes, if ranks are fused: a rank depends on all of them
//! rows         every row that passes, with its key; the sorter keeps what the page can use
//! ```
//!
//! Ties are broken by partition, then by ordinal, then by the order of rows within an item.

use std::collections::HashMap;

use bytes::Bytes;
use item::Item;

use super::walk::Candidate;
use super::{Run, project_kept};
use crate::datum::Datum;
use crate::eval::{Env, Flow, eval};
use crate::expr::Block;
use crate::full_text::Statistics;
use crate::ranking::{Component, Ranking, Score, fuse};
use crate::{Direction, Error, Page, PageEnd, State, key};

/// Items asked for at once while statistics are gathered.
const BATCH_ROWS: usize = 256;

/// Bytes a value of DISTINCT costs besides its keys and its text.
const VALUE_BYTES: usize = 96;

/// What a ranking must know before it can tell the key of a row.
#[derive(Default)]
pub(super) struct Knowledge {
    /// One for each component; those that need none keep it empty.
    statistics: Vec<Statistics>,
    /// The fused score of each row, in the order in which rows are visited.
    fused: Option<Vec<f64>>,
}

/// Of equal rows the one that comes first, by the row.
#[derive(Default)]
struct Firsts {
    rows: HashMap<Vec<u8>, (Vec<u8>, Bytes)>,
    bytes: usize,
}

impl Run<'_> {
    /// All rows first, in the order of the ranking.
    pub(super) fn ranked(&self, resume: Option<&State>) -> Result<Page, Error> {
        let Some(ranking) = &self.plan.query.ranking else { return self.streamed(resume) };
        let sink = self.sink(resume);
        if sink.is_over() {
            return Ok(sink.into_page(None, PageEnd::Exhausted));
        }
        let knowledge = self.knowledge(ranking)?;
        let mut sorter = self.sorter(&sink, resume)?;
        let (mut firsts, mut number) = (Firsts::default(), 0);
        self.for_each_row(&mut |env, query, candidate| {
            let Some(ranking) = &query.ranking else { return Ok(Flow::Stop) };
            let mut key = ranking.key(&knowledge, number, env)?;
            number += 1;
            let projection = &query.block.projection;
            if query.block.distinct {
                let Some(value) = projection.value(env)? else { return Ok(Flow::Continue) };
                firsts.add(key::canonical(&value), key, super::write_value(&value)?);
                self.reader().check_memory(firsts.bytes)?;
                return Ok(Flow::Continue);
            }
            write_tie(candidate, number, &mut key);
            if sorter.wants(&key)
                && let Some(row) = project_kept(projection, candidate.item.as_ref(), env)?
            {
                sorter.insert(key, row);
            }
            Ok(Flow::Continue)
        })?;
        for (value, (order, row)) in firsts.rows {
            let key = [order, value].concat();
            if sorter.wants(&key) {
                sorter.insert(key, row);
            }
        }
        self.drained(sorter, sink)
    }

    fn knowledge(&self, ranking: &Ranking) -> Result<Knowledge, Error> {
        let components = ranking.components();
        let statistics = self.statistics(components)?;
        if components.len() < 2 {
            return Ok(Knowledge { statistics, fused: None });
        }
        let mut scores = Vec::new();
        self.for_each_row(&mut |env, query, _| {
            let components = query.ranking.as_ref().map_or(&[][..], Ranking::components);
            let mut row = Vec::with_capacity(components.len());
            for (component, statistics) in components.iter().zip(&statistics) {
                row.push(component.score.value(statistics, env)?);
            }
            scores.push(row);
            self.reader().check_memory(scores.len() * (components.len() * 16 + 32))?;
            Ok(Flow::Continue)
        })?;
        Ok(Knowledge { statistics, fused: Some(fuse(components, &scores)) })
    }

    fn statistics(&self, components: &[Component]) -> Result<Vec<Statistics>, Error> {
        let mut statistics = vec![Statistics::default(); components.len()];
        let needs_none = |component: &Component| matches!(component.score, Score::Nearness(_));
        if components.iter().all(needs_none) {
            return Ok(statistics);
        }
        let block = Block { filter: None, ..self.plan.query.block.clone() };
        self.for_each_item(&mut |item| {
            let mut env = self.env_of(Datum::Node(item.root()));
            block.for_each_row(&mut env, &mut |env| {
                for (component, statistics) in components.iter().zip(&mut statistics) {
                    let Score::Relevance(score) = &component.score else { continue };
                    statistics.add(&score.terms, &score.tokens(env)?.unwrap_or_default());
                }
                Ok(Flow::Continue)
            })?;
            Ok(())
        })?;
        Ok(statistics)
    }

    /// Every item in scope.
    fn for_each_item(
        &self,
        visit: &mut dyn FnMut(&Item) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut count = 0;
        for partition in 0..self.source.partitions() {
            let mut after = None;
            loop {
                let batch = self.source.scan(self.ctx, partition, after, BATCH_ROWS)?;
                for item in &batch.rows {
                    self.ctx.meter().at(partition).item_scanned(item.text_len());
                    visit(item)?;
                    count += 1;
                    if self.is_late(count) {
                        return Err(Error::Deadline);
                    }
                }
                after = batch.rows.last().map(Item::ordinal).or(after);
                if batch.is_last || batch.rows.is_empty() {
                    break;
                }
            }
        }
        Ok(())
    }
}

impl Ranking {
    fn components(&self) -> &[Component] {
        if let Ranking::Scores(components) = self { components } else { &[] }
    }

    /// Bytes that sort as the ranking wants the current row, which is the one of this number. No
    /// score sorts as undefined, below all scores.
    pub(super) fn key<'e>(
        &'e self,
        knowledge: &Knowledge,
        number: usize,
        env: &mut Env<'e>,
    ) -> Result<Vec<u8>, Error> {
        let mut out = Vec::new();
        match self {
            Ranking::Values(keys) => {
                for (key, direction) in keys {
                    write_directed(&eval(key, env)?, *direction, &mut out);
                }
            }
            Ranking::Scores(components) => {
                let score = match (&knowledge.fused, &components[..]) {
                    (Some(fused), _) => fused.get(number).copied(),
                    (None, [only]) => {
                        let none = Statistics::default();
                        let statistics = knowledge.statistics.first().unwrap_or(&none);
                        only.score.value(statistics, env)?
                    }
                    (None, _) => None,
                };
                let score = score.map_or(Datum::UNDEFINED, Datum::number);
                write_directed(&score, Direction::Descending, &mut out);
            }
        }
        Ok(out)
    }
}

fn write_directed(value: &Datum<'_>, direction: Direction, out: &mut Vec<u8>) {
    let start = out.len();
    key::write(value, out);
    if direction == Direction::Descending {
        out[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

/// Appends what tells rows of equal order apart. Numbers of rows only decide within an item.
fn write_tie(candidate: &Candidate, number: usize, key: &mut Vec<u8>) {
    key.extend_from_slice(&(candidate.mark.partition() as u32).to_be_bytes());
    key.extend_from_slice(&candidate.ordinal().unwrap_or(0).to_be_bytes());
    key.extend_from_slice(&(number as u64).to_be_bytes());
}

impl Firsts {
    fn add(&mut self, value: Vec<u8>, order: Vec<u8>, row: Bytes) {
        let bytes = value.len() + order.len() + row.len() + VALUE_BYTES;
        match self.rows.get_mut(&value) {
            Some((first, _)) if *first <= order => {}
            Some((first, _)) => *first = order,
            None => {
                self.rows.insert(value, (order, row));
                self.bytes += bytes;
            }
        }
    }
}
