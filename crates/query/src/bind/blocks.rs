//! Binding the clauses of a query or subquery.

use std::collections::HashSet;
use std::sync::Arc;

use sql::{
    Code, Collection, Ident, Query, Scalar, ScalarKind, SelectItem, Selection, Source, SourceKind,
    Step, UnaryOp,
};

use super::{Alias, Binder, GroupScope, is_aggregate};
use crate::expr::{Block, Expr, Grouping, Projection, RowSource};
use crate::{Error, Path};

impl Binder<'_> {
    /// The outermost block. Its names stay in scope for ORDER BY.
    pub(super) fn main_block(&mut self, query: &Query) -> Result<Block, Error> {
        let block = self.open_block(query, true)?;
        self.main_paths = self.paths_in_scope();
        Ok(block)
    }

    /// A block inside another, which leaves nothing behind.
    pub(super) fn inner_block(&mut self, query: &Query, reads_items: bool) -> Result<Block, Error> {
        check_subquery(query)?;
        let (slot, group) = (self.next_slot, self.group.take());
        let block = self.open_block(query, reads_items);
        let is_stage = block.as_ref().is_ok_and(|block| reads_items && block.is_blocking());
        if is_stage && self.stages.is_empty() {
            self.stage_paths = self.paths_in_scope();
        }
        self.frames.pop();
        self.next_slot = slot;
        self.group = group;
        block
    }

    fn open_block(&mut self, query: &Query, reads_items: bool) -> Result<Block, Error> {
        let base = self.next_slot;
        self.frames.push(Vec::new());
        let sources = match &query.from {
            Some(from) => self.sources(from, reads_items)?,
            None => Vec::new(),
        };
        let filter = query.filter.as_ref().map(|filter| self.scalar(filter)).transpose()?;
        // The item itself belongs to the block that reads items.
        let own = if reads_items { 0 } else { base };
        let (projection, grouping) = self.projection(query, own)?;
        Ok(Block { base, sources, filter, grouping, projection, distinct: query.select.distinct })
    }

    /// The filter and the sources of a patch condition.
    pub(super) fn condition(&mut self, condition: &sql::Condition) -> Result<Block, Error> {
        let base = self.next_slot;
        self.frames.push(Vec::new());
        let sources = self.sources(&condition.from, true)?;
        let filter = condition.filter.as_ref().map(|filter| self.scalar(filter)).transpose()?;
        let projection = Projection::Value(Expr::Constant(item::Value::Bool(true)));
        Ok(Block { base, sources, filter, grouping: None, projection, distinct: false })
    }

    fn sources(&mut self, from: &sql::From, reads_items: bool) -> Result<Vec<RowSource>, Error> {
        let mut sources = Vec::new();
        for (at, source) in from.sources().enumerate() {
            sources.extend(self.source(source, reads_items && at == 0)?);
        }
        Ok(sources)
    }

    /// Binds a source and its alias. The container itself is slot 0 and takes no slot of its own.
    fn source(&mut self, source: &Source, reads_items: bool) -> Result<Option<RowSource>, Error> {
        let (alias, is_iteration) = match &source.kind {
            SourceKind::Iterate { alias, .. } => (Some(alias), true),
            SourceKind::Values { alias, .. } => (alias.as_ref(), false),
        };
        let row_source = match source.collection() {
            Collection::Query(query) => {
                let reads_items = reads_items && reads_container(query);
                let block = self.inner_block(query, reads_items)?;
                if reads_items && block.is_blocking() {
                    return self.stage(block, alias, is_iteration);
                }
                let block = Box::new(block);
                if is_iteration { RowSource::RowElements(block) } else { RowSource::Rows(block) }
            }
            Collection::Call(call) => RowSource::Elements(self.scalar(call)?),
            Collection::Path { root, steps } => {
                let (expr, path) = self.collection(root, steps, reads_items)?;
                if matches!(expr, Expr::Slot(0)) && !is_iteration {
                    self.add_alias(alias.unwrap_or(root), 0, path)?;
                    return Ok(None);
                }
                let name = alias.cloned().or_else(|| implicit_alias(root, steps));
                let slot = self.take_slot();
                if let Some(name) = name {
                    let path = if is_iteration { path.map(Path::elements) } else { path };
                    self.add_alias(&name, slot, path)?;
                }
                return Ok(Some(if is_iteration {
                    RowSource::Elements(expr)
                } else {
                    RowSource::Value(expr)
                }));
            }
        };
        let slot = self.take_slot();
        if let Some(alias) = alias {
            self.add_alias(alias, slot, None)?;
        }
        Ok(Some(row_source))
    }

    /// Sets a block aside that must have all items before its first row. For the blocks around it
    /// its rows take the place of the items.
    fn stage(
        &mut self,
        block: Block,
        alias: Option<&Ident>,
        is_iteration: bool,
    ) -> Result<Option<RowSource>, Error> {
        self.stages.push(block);
        let slot = if is_iteration { self.take_slot() } else { 0 };
        if let Some(alias) = alias {
            self.add_alias(alias, slot, None)?;
        }
        Ok(is_iteration.then_some(RowSource::Elements(Expr::Slot(0))))
    }

    fn take_slot(&mut self) -> usize {
        self.next_slot += 1;
        self.next_slot - 1
    }

    /// The expression of a source path, and its path from the item if it has one.
    fn collection(
        &mut self,
        root: &Ident,
        steps: &[Step],
        reads_items: bool,
    ) -> Result<(Expr, Option<Path>), Error> {
        let (slot, mut path) = match self.find(&root.name) {
            Some(alias) => (alias.slot, alias.path.clone()),
            None if reads_items => (0, Some(Path::root())),
            None => return Err(unresolved(&root.name, root.span)),
        };
        let mut expr = Expr::Slot(slot);
        for step in steps {
            (expr, path) = match step {
                Step::Property(name) => {
                    let is_computed = self.computed(&expr, name).is_some();
                    let path = path.filter(|_| !is_computed).map(|path| path.property(&**name));
                    (self.member(expr, name)?, path)
                }
                Step::Index(index) => (Expr::Element(Box::new(expr), *index as usize), None),
            };
        }
        Ok((expr, path))
    }

    fn add_alias(&mut self, name: &Ident, slot: usize, path: Option<Path>) -> Result<(), Error> {
        let frame = self.frames.last_mut().expect("a block is open while its sources are bound");
        if frame.iter().any(|alias| alias.name == name.name) {
            let message = format!("The alias '{}' is used more than once.", name.name);
            return Err(sql::Error::at(Code::Other, name.span, message).into());
        }
        frame.push(Alias { name: name.name.clone(), slot, path });
        Ok(())
    }

    fn projection(
        &mut self,
        query: &Query,
        base: usize,
    ) -> Result<(Projection, Option<Grouping>), Error> {
        if query.group_by.is_empty() && !selects_aggregate(&query.select.selection) {
            return Ok((self.selection(query)?, None));
        }
        let mut keys = Vec::with_capacity(query.group_by.len());
        for key in &query.group_by {
            keys.push(self.group_key(key)?);
        }
        let scope = GroupScope { base, keys: query.group_by.clone(), aggregates: Vec::new() };
        self.group = Some(scope);
        let projection = self.selection(query);
        let aggregates = self.group.take().map(|scope| scope.aggregates).unwrap_or_default();
        Ok((projection?, Some(Grouping { keys, aggregates })))
    }

    fn group_key(&mut self, key: &Scalar) -> Result<Expr, Error> {
        if matches!(key.kind, ScalarKind::Subquery { .. }) {
            let message = "A subquery is not allowed in 'GROUP BY'.";
            return Err(sql::Error::at(Code::Other, key.span, message).into());
        }
        let bound = self.scalar(key)?;
        if bound.as_constant().is_some() {
            let message = "An expression in 'GROUP BY' must contain at least one property.";
            return Err(sql::Error::at(Code::Other, key.span, message).into());
        }
        Ok(bound)
    }

    fn selection(&mut self, query: &Query) -> Result<Projection, Error> {
        match &query.select.selection {
            Selection::Star => self.star(query),
            Selection::Value { expression, .. } => Ok(Projection::Value(self.scalar(expression)?)),
            Selection::List(items) => self.select_list(items),
        }
    }

    fn star(&mut self, query: &Query) -> Result<Projection, Error> {
        if !query.group_by.is_empty() {
            let message = "'SELECT *' is not allowed with GROUP BY.";
            return Err(sql::Error::at(Code::StarWithGroupBy, query.span, message).into());
        }
        let has_one_source = query.from.as_ref().is_some_and(|from| from.joins.is_empty());
        if !has_one_source {
            let message = "'SELECT *' is only valid with a single input set.";
            return Err(sql::Error::at(Code::Other, query.span, message).into());
        }
        let alias = self.frames.last().and_then(|frame| frame.first());
        // A subquery without alias takes the slot just before the next one.
        let slot = alias.map_or(self.next_slot - 1, |alias| alias.slot);
        Ok(Projection::Value(Expr::Slot(slot)))
    }

    fn select_list(&mut self, items: &[SelectItem]) -> Result<Projection, Error> {
        let mut names = HashSet::new();
        let mut properties = Vec::with_capacity(items.len());
        for (item, name) in items.iter().zip(output_names(items)) {
            if !names.insert(name.clone()) {
                let message = format!("The output name '{name}' is used more than once.");
                return Err(sql::Error::at(Code::Other, item.expression.span, message).into());
            }
            properties.push((Arc::from(name), self.scalar(&item.expression)?));
        }
        Ok(Projection::Object(properties))
    }

    /// A subquery in scalar position. `ALL` looks for a row that does not satisfy its condition.
    pub(super) fn scalar_subquery(
        &mut self,
        kind: sql::SubqueryKind,
        query: &Query,
    ) -> Result<Expr, Error> {
        let mut block = self.inner_block(query, false)?;
        if kind == sql::SubqueryKind::All {
            block.filter = Some(match block.filter.take() {
                Some(filter) => Expr::Unary(UnaryOp::Not, Box::new(filter)),
                None => Expr::Constant(item::Value::Bool(false)),
            });
        }
        Ok(Expr::Subquery(kind, Box::new(block)))
    }
}

/// The error for a name that is nothing in scope.
pub(super) fn unresolved(name: &str, span: sql::Span) -> Error {
    let message = format!("Identifier '{name}' could not be resolved.");
    sql::Error::at(Code::Unresolved, span, message).into()
}

/// Whether the rows of a query come from the container.
pub(super) fn reads_container(query: &Query) -> bool {
    match query.from.as_ref().map(|from| from.first.collection()) {
        None => false,
        Some(Collection::Path { .. }) => true,
        Some(Collection::Call(_)) => false,
        Some(Collection::Query(query)) => reads_container(query),
    }
}

/// What a source without alias is called: the last property of its path, else its first word.
fn implicit_alias(root: &Ident, steps: &[Step]) -> Option<Ident> {
    match steps.last() {
        None => Some(root.clone()),
        Some(Step::Property(name)) => Some(Ident::new(name.clone(), root.span)),
        Some(Step::Index(_)) => None,
    }
}

/// The names of the properties a select list makes.
pub(crate) fn output_names(items: &[SelectItem]) -> Vec<String> {
    let mut unnamed = 0;
    let name = |item: &SelectItem| {
        if let Some(alias) = &item.alias {
            return alias.name.clone();
        }
        match &item.expression.kind {
            ScalarKind::Property { name, .. } | ScalarKind::Identifier(name) => name.clone(),
            _ => {
                unnamed += 1;
                format!("${unnamed}")
            }
        }
    };
    items.iter().map(name).collect()
}

fn selects_aggregate(selection: &Selection) -> bool {
    match selection {
        Selection::Star => false,
        Selection::Value { expression, .. } => has_aggregate(expression),
        Selection::List(items) => items.iter().any(|item| has_aggregate(&item.expression)),
    }
}

/// Whether an expression has an aggregate that is not inside a subquery.
pub(crate) fn has_aggregate(scalar: &Scalar) -> bool {
    match &scalar.kind {
        ScalarKind::Subquery { .. } => false,
        ScalarKind::Call { udf: false, name, .. } if is_aggregate(name) => true,
        kind => {
            let mut found = false;
            kind.for_each_child(&mut |child| found = found || has_aggregate(child));
            found
        }
    }
}

fn check_subquery(query: &Query) -> Result<(), Error> {
    let refuse = |code, message: &str| Err(sql::Error::at(code, query.span, message).into());
    if query.select.top.is_some() {
        return refuse(Code::TopInSubquery, "'TOP' is not supported in subqueries.");
    }
    match &query.order_by {
        Some(sql::OrderBy::Values(_)) => {
            return refuse(Code::OrderByInSubquery, "'ORDER BY' is not supported in subqueries.");
        }
        Some(sql::OrderBy::Rank(_)) => {
            return refuse(Code::RankInSubquery, "'ORDER BY RANK' is not supported in subqueries.");
        }
        None => {}
    }
    if query.offset_limit.is_some() {
        let message = "'OFFSET LIMIT' clause is not supported in subqueries.";
        return refuse(Code::OffsetInSubquery, message);
    }
    Ok(())
}
