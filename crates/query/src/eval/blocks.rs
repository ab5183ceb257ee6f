//! Running a block over the current row: the sources, the filter, the groups, the projection.

use std::collections::{HashMap, HashSet};

use item::Value;

use super::{Env, eval, holds, object};
use crate::Error;
use crate::aggregate::Accumulator;
use crate::datum::Datum;
use crate::expr::{Block, Grouping, Projection, RowSource};
use crate::key::{self, canonical};

/// Whether the receiver of rows wants more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    Continue,
    Stop,
}

/// Runs a subquery and hands out its rows.
pub(super) fn run<'a>(
    block: &'a Block,
    env: &mut Env<'a>,
    emit: &mut dyn FnMut(Value) -> Flow,
) -> Result<(), Error> {
    let mut seen = HashSet::new();
    let mut emit = |value: Value| {
        let is_new = !block.distinct || seen.insert(canonical(&value));
        if is_new { emit(value) } else { Flow::Continue }
    };
    match &block.grouping {
        None => block.for_each_row(env, &mut |env| {
            Ok(block.projection.value(env)?.map_or(Flow::Continue, &mut emit))
        })?,
        Some(grouping) => {
            let mut groups = Groups::new(grouping);
            block
                .for_each_row(env, &mut |env| groups.add(grouping, env).map(|_| Flow::Continue))?;
            let mut groups: Vec<_> = groups.finish().collect();
            groups.sort_by(|(a, ..), (b, ..)| a.cmp(b));
            for (_, keys, aggregates) in groups {
                let value = block.projection.group_value(env, keys, aggregates)?;
                if value.map_or(Flow::Continue, &mut emit) == Flow::Stop {
                    break;
                }
            }
            return Ok(());
        }
    };
    Ok(())
}

/// Called for every row of a block that passes its filter, with the row in the slots.
pub(crate) type Visit<'a, 'v> = &'v mut dyn FnMut(&mut Env<'a>) -> Result<Flow, Error>;

impl Block {
    /// Visits every row that passes the filter. The slots of the block are set during a visit and
    /// gone afterwards.
    pub fn for_each_row<'a>(
        &'a self,
        env: &mut Env<'a>,
        visit: Visit<'a, '_>,
    ) -> Result<Flow, Error> {
        // Slots above the base are left over from nobody: blocks end as they began.
        env.slots.truncate(self.base);
        self.source(0, env, visit)
    }

    /// Binds source number `at` and those after it.
    fn source<'a>(
        &'a self,
        at: usize,
        env: &mut Env<'a>,
        visit: Visit<'a, '_>,
    ) -> Result<Flow, Error> {
        let Some(source) = self.sources.get(at) else { return self.filtered(env, visit) };
        for value in source.values(env)? {
            env.slots.push(value);
            let flow = self.source(at + 1, env, visit);
            env.slots.truncate(self.base + at);
            if flow? == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        Ok(Flow::Continue)
    }

    fn filtered<'a>(&'a self, env: &mut Env<'a>, visit: Visit<'a, '_>) -> Result<Flow, Error> {
        let passes = match &self.filter {
            Some(filter) => holds(filter, env)?,
            None => true,
        };
        if passes { visit(env) } else { Ok(Flow::Continue) }
    }
}

impl RowSource {
    /// The values of the slot for the current row.
    fn values<'a>(&'a self, env: &mut Env<'a>) -> Result<Vec<Datum<'a>>, Error> {
        match self {
            RowSource::Value(expr) => {
                let value = eval(expr, env)?;
                Ok(if value.is_undefined() { Vec::new() } else { vec![value] })
            }
            RowSource::Elements(expr) => Ok(eval(expr, env)?.elements().unwrap_or_default()),
            RowSource::Rows(block) => rows(block, env),
            RowSource::RowElements(block) => {
                let rows = rows(block, env)?;
                Ok(rows.iter().filter_map(Datum::elements).flatten().collect())
            }
        }
    }
}

fn rows<'a>(block: &'a Block, env: &mut Env<'a>) -> Result<Vec<Datum<'a>>, Error> {
    let mut rows = Vec::new();
    run(block, env, &mut |row| {
        rows.push(row.into());
        Flow::Continue
    })?;
    Ok(rows)
}

impl Projection {
    /// What comes out for the current row, if anything does.
    pub fn value<'a>(&'a self, env: &mut Env<'a>) -> Result<Option<Value>, Error> {
        match self {
            Projection::Value(expr) => {
                let value = eval(expr, env)?.to_value();
                Ok((!value.is_undefined()).then_some(value))
            }
            Projection::Object(properties) => object(properties, env).map(Some),
        }
    }

    /// What comes out for a group.
    pub fn group_value<'a>(
        &'a self,
        env: &mut Env<'a>,
        keys: Vec<Value>,
        aggregates: Vec<Value>,
    ) -> Result<Option<Value>, Error> {
        // A block inside the projection of a group may have groups of its own.
        let outer_keys = std::mem::replace(&mut env.keys, keys);
        let outer_aggregates = std::mem::replace(&mut env.aggregates, aggregates);
        let value = self.value(env);
        env.keys = outer_keys;
        env.aggregates = outer_aggregates;
        value
    }
}

/// The groups of a block while its rows come in.
#[derive(Default)]
pub(crate) struct Groups {
    places: HashMap<Vec<u8>, usize>,
    groups: Vec<Group>,
    /// The key of the current row.
    key: Vec<u8>,
    bytes: usize,
}

struct Group {
    keys: Vec<Value>,
    accumulators: Vec<Accumulator>,
}

impl Groups {
    /// No groups yet; without keys there is one from the start.
    pub fn new(grouping: &Grouping) -> Groups {
        let mut groups = Groups::default();
        if grouping.keys.is_empty() {
            groups.open(grouping, Vec::new());
        }
        groups
    }

    /// Adds the current row, and returns roughly how many bytes the groups hold now.
    pub fn add<'a>(&mut self, grouping: &'a Grouping, env: &mut Env<'a>) -> Result<usize, Error> {
        let at = self.group(grouping, env)?;
        for (index, (_, argument)) in grouping.aggregates.iter().enumerate() {
            let value = eval(argument, env)?;
            self.bytes += self.groups[at].accumulators[index].add(&value);
        }
        Ok(self.bytes)
    }

    /// Adds as many rows like the current one to aggregates that only count, and returns roughly how
    /// many bytes the groups hold now.
    pub fn add_count<'a>(
        &mut self,
        grouping: &'a Grouping,
        env: &mut Env<'a>,
        rows: u64,
    ) -> Result<usize, Error> {
        let at = self.group(grouping, env)?;
        let accumulators = &mut self.groups[at].accumulators;
        accumulators.iter_mut().for_each(|accumulator| accumulator.add_count(rows));
        Ok(self.bytes)
    }

    /// The group of the current row.
    fn group<'a>(&mut self, grouping: &'a Grouping, env: &mut Env<'a>) -> Result<usize, Error> {
        self.key.clear();
        for expr in &grouping.keys {
            key::write(&eval(expr, env)?, &mut self.key);
        }
        if let Some(at) = self.places.get(&self.key) {
            return Ok(*at);
        }
        let keys = grouping.keys.iter().map(|expr| Ok(eval(expr, env)?.to_value()));
        let keys = keys.collect::<Result<Vec<_>, Error>>()?;
        Ok(self.open(grouping, keys))
    }

    fn open(&mut self, grouping: &Grouping, keys: Vec<Value>) -> usize {
        self.bytes += 2 * self.key.len() + 64;
        let kinds = grouping.aggregates.iter();
        let accumulators = kinds.map(|(kind, _)| Accumulator::new(*kind)).collect();
        self.groups.push(Group { keys, accumulators });
        self.places.insert(self.key.clone(), self.groups.len() - 1);
        self.groups.len() - 1
    }

    /// The key bytes, keys and results of each group, in no order.
    pub fn finish(self) -> impl Iterator<Item = (Vec<u8>, Vec<Value>, Vec<Value>)> {
        let mut groups: Vec<Option<Group>> = self.groups.into_iter().map(Some).collect();
        self.places.into_iter().filter_map(move |(key, at)| {
            let Group { keys, accumulators } = groups[at].take()?;
            let results = accumulators.into_iter().map(Accumulator::finish).collect();
            Some((key, keys, results))
        })
    }
}
