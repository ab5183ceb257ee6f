//! Syntax tree → bound query: names become slots, parameters become constants, function names
//! become functions.
//!
//! Every error that does not depend on data is found here, with its place in the text, even if no
//! row is ever read.

// An expression of any form not named here says nothing; naming them would not say more.
#![allow(clippy::wildcard_enum_match_arm)]

pub(crate) mod blocks;
mod computed;
mod fold;
mod scalars;
mod search;

pub use computed::check_computed;

use std::sync::Arc;

use base::Ctx;
use sql::{Code, Count, CountKind, OrderBy, OrderItem, Scalar, Selection, SortDirection, Span};

use crate::aggregate::AggregateKind;
use crate::constraints::{Constraint, conjuncts, constraint};
use crate::expr::{Block, Expr};
use crate::functions;
use crate::ranking::Ranking;
use crate::state::{fingerprint, hash};
use crate::{Direction, Error, Parameters, Path, Schema, Segment};

/// A query whose names are resolved, with its parameters in it.
#[derive(Clone, Debug)]
pub struct BoundQuery {
    pub(crate) block: Block,
    /// Blocks that run over the rows of the one before, the first over those of `block`. Most
    /// queries have none.
    pub(crate) outer: Vec<Block>,
    /// It reads the container; otherwise it runs once over nothing.
    pub(crate) reads_items: bool,
    /// The ORDER BY keys.
    pub(crate) order: Vec<(Path, Direction)>,
    /// An order that is none of paths, or one that must see all rows; it wins over `order`.
    pub(crate) ranking: Option<Ranking>,
    pub(crate) window: Window,
    /// For each slot of the main block its path from the item, if it has one.
    pub(crate) slot_paths: Vec<Option<Path>>,
    /// What each conjunct of the main block's filter says about a path, if it says anything.
    constraints: Vec<Option<Constraint>>,
    pub(crate) fingerprint: u64,
    /// Identifies a client's rewritten ORDER BY query without its filter, see [`resumable`].
    pub(crate) unfiltered_fingerprint: Option<u64>,
    pub(crate) printed: Arc<Printed>,
    functions: Vec<String>,
}

impl BoundQuery {
    /// Whether it has a WHERE clause.
    pub fn has_filter(&self) -> bool {
        self.printed.filter.is_some()
    }

    /// Whether its rows come from items; otherwise it runs once over nothing.
    pub fn reads_items(&self) -> bool {
        self.reads_items
    }

    /// How many aggregates it has for each group.
    pub fn grouped_aggregates(&self) -> usize {
        let grouping = self.block.grouping.as_ref().filter(|grouping| !grouping.keys.is_empty());
        grouping.map_or(0, |grouping| grouping.aggregates.len())
    }

    /// The user-defined functions it calls, each once, by first use. [`Udf`](crate::Udf) calls them by
    /// their place here.
    pub fn functions(&self) -> &[String] {
        &self.functions
    }

    /// The conjuncts of the main block's filter, with what they say about paths.
    pub(crate) fn conditions(&self) -> impl Iterator<Item = (&Expr, Option<&Constraint>)> {
        let conjuncts = self.block.filter.as_ref().map(conjuncts).unwrap_or_default();
        conjuncts.into_iter().zip(self.constraints.iter().map(Option::as_ref))
    }

    /// The block whose rows come out.
    pub(crate) fn last_block(&self) -> &Block {
        self.outer.last().unwrap_or(&self.block)
    }
}

/// What is printed of a query, which is the same whatever its parameters are.
#[derive(Debug)]
pub struct Printed {
    /// The hash of the canonical text.
    hash: u64,
    /// That of the text without the filter, see [`resumable`].
    unfiltered_hash: Option<u64>,
    /// A client wrote it that merges an ORDER BY itself.
    pub(crate) is_merged: bool,
    /// The canonical text of projection and filter, for people.
    pub(crate) projection: String,
    pub(crate) filter: Option<String>,
}

impl Printed {
    /// Prints a query.
    pub fn of(query: &sql::Query) -> Printed {
        let hash = |query: &sql::Query| hash(query.to_string().as_bytes());
        Printed {
            hash: hash(query),
            unfiltered_hash: resumable(query).map(|query| hash(&query)),
            is_merged: is_merged(query),
            projection: query.select.selection.to_string(),
            filter: query.filter.as_ref().map(Scalar::to_string),
        }
    }
}

/// Which rows of the result come out: TOP, OFFSET and LIMIT together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    /// Rows to skip.
    pub offset: u64,
    /// Where to stop, counted from the first row of the result.
    pub end: Option<u64>,
}

/// Resolves the names of a query over a container without policies.
pub fn bind(query: &sql::Query, parameters: &Parameters) -> Result<BoundQuery, Error> {
    bind_with(query, parameters, Schema::EMPTY)
}

/// Resolves the names of a query over a container with these policies.
pub fn bind_with(
    query: &sql::Query,
    parameters: &Parameters,
    schema: &Schema,
) -> Result<BoundQuery, Error> {
    bind_printed(query, &Arc::new(Printed::of(query)), parameters, schema)
}

/// The same for a query that was printed before.
pub fn bind_printed(
    query: &sql::Query,
    printed: &Arc<Printed>,
    parameters: &Parameters,
    schema: &Schema,
) -> Result<BoundQuery, Error> {
    let mut binder = Binder::new(parameters, schema);
    let block = binder.main_block(query)?;
    let Order { paths, ranking } = binder.order(query, &block)?;
    let has_stages = !binder.stages.is_empty();
    let mut blocks = binder.stages;
    blocks.push(block);
    let block = blocks.remove(0);
    let slot_paths = if has_stages { binder.stage_paths } else { binder.main_paths };
    let conjuncts = block.filter.as_ref().map(conjuncts).unwrap_or_default();
    let constraints = conjuncts.iter().map(|conjunct| constraint(conjunct, &slot_paths)).collect();
    Ok(BoundQuery {
        reads_items: blocks::reads_container(query),
        block,
        outer: blocks,
        order: paths,
        ranking,
        window: Window::new(&counts(query, parameters)?),
        slot_paths,
        constraints,
        fingerprint: fingerprint(printed.hash, parameters),
        unfiltered_fingerprint: printed.unfiltered_hash.map(|hash| fingerprint(hash, parameters)),
        printed: printed.clone(),
        functions: binder.functions,
    })
}

/// Clients that merge an ORDER BY themselves write a resume filter of their own into the query and
/// send the last continuation along: the filter differs from page to page. A place in the order of
/// one key means the same under any filter, so these queries are recognized without theirs.
fn resumable(query: &sql::Query) -> Option<sql::Query> {
    let is_ordered_once = matches!(&query.order_by, Some(OrderBy::Values(keys)) if keys.len() == 1);
    (is_merged(query) && is_ordered_once).then(|| sql::Query { filter: None, ..query.clone() })
}

/// Whether a client wrote a query that merges an ORDER BY itself.
fn is_merged(query: &sql::Query) -> bool {
    match &query.select.selection {
        Selection::List(items) => items
            .iter()
            .any(|item| item.alias.as_ref().is_some_and(|alias| alias.name == "orderByItems")),
        Selection::Star | Selection::Value { .. } => false,
    }
}

/// The counts of TOP, OFFSET and LIMIT, each if it is written.
pub(crate) struct Counts {
    pub top: Option<u64>,
    pub offset_limit: Option<(u64, u64)>,
}

/// Reads the counts of a query, with parameters resolved.
pub(crate) fn counts(query: &sql::Query, parameters: &Parameters) -> Result<Counts, Error> {
    let binder = Binder::new(parameters, Schema::EMPTY);
    let top = query.select.top.as_ref().map(|top| binder.count(top, Code::TopCount)).transpose()?;
    let Some(clause) = &query.offset_limit else { return Ok(Counts { top, offset_limit: None }) };
    let offset = binder.count(&clause.offset, Code::OffsetCount)?;
    let limit = binder.count(&clause.limit, Code::LimitCount)?;
    Ok(Counts { top, offset_limit: Some((offset, limit)) })
}

/// Resolves the names of a patch condition: the filter over slot 0 and the slots of its sources.
pub(crate) fn bind_condition(
    condition: &sql::Condition,
    parameters: &Parameters,
) -> Result<Block, Error> {
    Binder::new(parameters, Schema::EMPTY).condition(condition)
}

struct Binder<'p> {
    parameters: &'p Parameters,
    schema: &'p Schema,
    /// For folding constants.
    ctx: Ctx,
    /// The names in scope, innermost block last.
    frames: Vec<Vec<Alias>>,
    /// The next slot.
    next_slot: usize,
    /// Set while the select list of a grouped block is bound.
    group: Option<GroupScope>,
    /// Blocks that must run before the main block, in order.
    stages: Vec<Block>,
    main_paths: Vec<Option<Path>>,
    /// For each slot of the first stage its path.
    stage_paths: Vec<Option<Path>>,
    /// The user-defined functions met so far.
    functions: Vec<String>,
}

/// An ORDER BY clause. A ranking wins over paths.
#[derive(Default)]
struct Order {
    paths: Vec<(Path, Direction)>,
    ranking: Option<Ranking>,
}

struct Alias {
    name: String,
    slot: usize,
    path: Option<Path>,
}

/// What the select list of a grouped block may use.
struct GroupScope {
    /// Slots from here on belong to the block and exist only before grouping.
    base: usize,
    keys: Vec<Scalar>,
    aggregates: Vec<(AggregateKind, Expr)>,
}

impl Window {
    fn new(counts: &Counts) -> Window {
        let Counts { top, offset_limit } = *counts;
        let Some((offset, limit)) = offset_limit else { return Window { offset: 0, end: top } };
        let end = top.map_or(offset + limit, |top| top.min(offset + limit));
        Window { offset, end: Some(end) }
    }
}

impl<'p> Binder<'p> {
    fn new(parameters: &'p Parameters, schema: &'p Schema) -> Binder<'p> {
        Binder {
            parameters,
            schema,
            ctx: Ctx::background(),
            frames: Vec::new(),
            next_slot: 1,
            group: None,
            stages: Vec::new(),
            main_paths: Vec::new(),
            stage_paths: Vec::new(),
            functions: Vec::new(),
        }
    }

    /// For each slot in scope its path from the item, if it has one.
    fn paths_in_scope(&self) -> Vec<Option<Path>> {
        let mut paths = vec![None; self.next_slot];
        // Behind a stage, slot 0 is no item.
        paths[0] = self.stages.is_empty().then(Path::root);
        for alias in self.frames.iter().flatten() {
            paths[alias.slot] = alias.path.clone();
        }
        paths
    }

    fn find(&self, name: &str) -> Option<&Alias> {
        let innermost_first = self.frames.iter().rev();
        innermost_first.flat_map(|frame| frame.iter()).find(|alias| alias.name == name)
    }

    fn count(&self, count: &Count, code: Code) -> Result<u64, Error> {
        let name = match &count.kind {
            CountKind::Literal(n) => return Ok(u64::from(*n)),
            CountKind::Parameter(name) => name,
        };
        let number = self.parameter(name, count.span)?.as_f64();
        let is_count = |n: &f64| n.fract() == 0.0 && (0.0..=sql::limits::COUNT_MAX).contains(n);
        match number.filter(is_count) {
            Some(n) => Ok(n as u64),
            None => {
                let message = "The count value provided must be a non-negative integer.";
                Err(sql::Error::at(code, count.span, message).into())
            }
        }
    }

    fn parameter(&self, name: &str, span: Span) -> Result<&item::Value, Error> {
        self.parameters.get(name).ok_or_else(|| {
            let message = format!("The parameter '{name}' was not supplied.");
            sql::Error::at(Code::Unresolved, span, message).into()
        })
    }

    /// The ORDER BY keys. With aggregates there is one row, and nothing to sort.
    fn order(&mut self, query: &sql::Query, block: &Block) -> Result<Order, Error> {
        let items = match &query.order_by {
            None => return Ok(Order::default()),
            Some(OrderBy::Rank(items) | OrderBy::Values(items)) => items,
        };
        if !query.group_by.is_empty() {
            let message = "'ORDER BY' is not supported together with 'GROUP BY'.";
            return Err(sql::Error::at(Code::Other, items[0].expression.span, message).into());
        }
        let order = match &query.order_by {
            Some(OrderBy::Rank(items)) => Order::ranked(self.rank(query, items)?),
            _ => match self.nearest(items)?.or(self.by_known_score(items)?) {
                Some(ranking) => Order::ranked(ranking),
                None => self.order_by_values(items, !is_distinct_in_order(query, items))?,
            },
        };
        Ok(if block.grouping.is_some() { Order::default() } else { order })
    }

    /// By paths if all keys are paths of the item. Computed properties and rows of an inner query
    /// are sorted as they come out, and so are rows of which only the first of equals comes out.
    fn order_by_values(&mut self, items: &[OrderItem], needs_all: bool) -> Result<Order, Error> {
        let mut keys = Vec::with_capacity(items.len());
        let mut paths = Vec::with_capacity(items.len());
        for item in items {
            let key = self.scalar(&item.expression)?;
            let is_one = |path: &Path| {
                !path.segments().is_empty() && !path.segments().contains(&Segment::Elements)
            };
            let path = key.path(&self.main_paths).filter(is_one);
            let is_sortable = path.is_some() || self.is_computed(&item.expression);
            if !is_sortable && self.stages.is_empty() {
                return Err(not_a_path());
            }
            paths.extend(path.map(|path| (path, direction(item))));
            keys.push((key, direction(item)));
        }
        let is_of_paths = paths.len() == keys.len();
        let ranking = (needs_all || !is_of_paths).then_some(Ranking::Values(keys));
        Ok(Order { paths: if is_of_paths { paths } else { Vec::new() }, ranking })
    }
}

impl Order {
    fn ranked(ranking: Ranking) -> Order {
        Order { paths: Vec::new(), ranking: Some(ranking) }
    }
}

/// Whether equal rows are neighbors in the order: rows may repeat, or each has its keys in it.
fn is_distinct_in_order(query: &sql::Query, items: &[OrderItem]) -> bool {
    let rows: Vec<&Scalar> = match &query.select.selection {
        _ if !query.select.distinct => return true,
        Selection::Star => return true,
        Selection::Value { expression, .. } => vec![expression],
        Selection::List(items) => items.iter().map(|item| &item.expression).collect(),
    };
    items.iter().all(|item| rows.iter().any(|row| is_part(&item.expression, row)))
}

/// Whether a path leads into a value, or is it.
fn is_part(path: &Scalar, value: &Scalar) -> bool {
    path == value
        || match &path.kind {
            sql::ScalarKind::Property { object, .. } => is_part(object, value),
            _ => false,
        }
}

fn not_a_path() -> Error {
    let message = "Unsupported ORDER BY clause. ORDER BY item expression could not be mapped to a \
                   document path.";
    sql::Error { code: Code::OrderByNotPath, message: message.to_owned(), span: None }.into()
}

fn direction(item: &OrderItem) -> Direction {
    match item.effective_direction() {
        SortDirection::Ascending => Direction::Ascending,
        SortDirection::Descending => Direction::Descending,
    }
}

impl Expr {
    /// The path from the item to the value, if the expression is nothing but one.
    pub(crate) fn path(&self, slot_paths: &[Option<Path>]) -> Option<Path> {
        match self {
            Expr::Slot(slot) => slot_paths.get(*slot)?.clone(),
            Expr::Property(object, name) => Some(object.path(slot_paths)?.property(name.clone())),
            _ => None,
        }
    }
}

/// Whether a function of this name exists, aggregates included.
pub(crate) fn is_aggregate(name: &str) -> bool {
    functions::find(name).is_none() && AggregateKind::from_name(name).is_some()
}
