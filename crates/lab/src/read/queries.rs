//! Queries of steps and checks: their grammar, their names, their parameters.
//!
//! What functions there are, and what they take, is known to the server alone.

use std::collections::{BTreeMap, BTreeSet};

use sql::{
    Collection, Count, CountKind, Query, Scalar, ScalarKind, Selection, Source, SourceKind, Step,
};
use toml::Spanned;

use super::{Checked, Reader};
use crate::file;

impl Reader<'_> {
    /// A query of a step, with the parameters that it is given.
    pub(super) fn sql(
        &self,
        text: &Spanned<String>,
        given: &BTreeMap<String, file::Json>,
    ) -> Checked<String> {
        let query = self.parsed(text)?;
        let used = parameters(&query);
        if let Some((name, value)) = given.iter().find(|(name, _)| !used.contains(*name)) {
            return self.fail(value.span(), format!("the query has no parameter `{name}`"));
        }
        match used.iter().find(|name| !given.contains_key(*name)) {
            Some(name) => self.fail(text.span(), format!("`parameters` lacks `{name}`")),
            None => Ok(text.get_ref().clone()),
        }
    }

    /// A query of a check, whose rows are `{k, v}`; `k` will do where rows are counted.
    pub(super) fn sql_of_side(&self, side: &file::Side) -> Checked<String> {
        let query = self.parsed(&side.sql)?;
        if let Some(name) = parameters(&query).first() {
            return self.fail(side.sql.span(), format!("a check has no parameters: `{name}`"));
        }
        let wanted: &[&str] = if side.tally { &["k"] } else { &["k", "v"] };
        let Some(names) = output_names(&query) else { return Ok(side.sql.get_ref().clone()) };
        match wanted.iter().find(|name| !names.contains(&(**name).to_owned())) {
            Some(name) => self.fail(
                side.sql.span(),
                format!("rows lack `{name}`: SELECT … AS k, … AS v; with `tally`, `k` alone"),
            ),
            None => Ok(side.sql.get_ref().clone()),
        }
    }

    fn parsed(&self, text: &Spanned<String>) -> Checked<Query> {
        let checked = sql::parse(text.get_ref()).map_err(|error| error.to_string());
        let checked = checked.and_then(|query| {
            Scopes::default().query(&query, true)?;
            match query.calls_functions() {
                true => Err("a workload has no user-defined functions".to_owned()),
                false => Ok(query),
            }
        });
        self.at(text.span(), checked.map_err(|message| format!("the query is wrong: {message}")))
    }
}

/// The parameters that a query mentions.
fn parameters(query: &Query) -> BTreeSet<String> {
    fn note(scalar: &Scalar, found: &mut BTreeSet<String>) {
        if let ScalarKind::Parameter(name) = &scalar.kind {
            found.insert(name.clone());
        }
        if let ScalarKind::Subquery { query, .. } = &scalar.kind {
            note_counts(query, found);
        }
        scalar.kind.for_each_child(&mut |child| note(child, found));
    }
    let mut found = BTreeSet::new();
    note_counts(query, &mut found);
    query.for_each_scalar(&mut |scalar| note(scalar, &mut found));
    found
}

/// Those of TOP, OFFSET and LIMIT.
fn note_counts(query: &Query, found: &mut BTreeSet<String>) {
    let window = query.offset_limit.iter().flat_map(|window| [&window.offset, &window.limit]);
    for Count { kind, .. } in query.select.top.iter().chain(window) {
        if let CountKind::Parameter(name) = kind {
            found.insert(name.clone());
        }
    }
    for source in query.from.iter().flat_map(sql::From::sources) {
        if let Collection::Query(query) = source.collection() {
            note_counts(query, found);
        }
    }
}

/// The properties that rows have; none if that depends on the items.
fn output_names(query: &Query) -> Option<Vec<String>> {
    match &query.select.selection {
        Selection::Star => None,
        Selection::List(items) => {
            let names = items.iter().map(|item| match (&item.alias, &item.expression.kind) {
                (Some(alias), _) => alias.name.clone(),
                (None, ScalarKind::Property { name, .. } | ScalarKind::Identifier(name)) => {
                    name.clone()
                }
                (None, _) => String::new(),
            });
            Some(names.collect())
        }
        Selection::Value { expression, .. } => {
            if let ScalarKind::Object(properties) = &expression.kind {
                return Some(properties.iter().map(|property| property.name.clone()).collect());
            }
            let is_no_object =
                matches!(expression.kind, ScalarKind::Literal(_) | ScalarKind::Array(_));
            is_no_object.then(Vec::new)
        }
    }
}

/// The names that stand for something, by query and the queries around it.
#[derive(Default)]
struct Scopes(Vec<Vec<String>>);

impl Scopes {
    /// Resolves the names of a query. Where it reads items, any name is that of the container.
    fn query(&mut self, query: &Query, reads_items: bool) -> Result<(), String> {
        self.0.push(Vec::new());
        for source in query.from.iter().flat_map(sql::From::sources) {
            self.source(source, reads_items)?;
        }
        let mut expressions: Vec<&Scalar> = Vec::new();
        // Expressions of queries in FROM have been resolved where they stand.
        let plain = Query { from: None, ..query.clone() };
        plain.for_each_scalar(&mut |scalar| expressions.push(scalar));
        expressions.into_iter().try_for_each(|scalar| self.scalar(scalar))?;
        self.0.pop();
        Ok(())
    }

    fn source(&mut self, source: &Source, reads_items: bool) -> Result<(), String> {
        let alias = match &source.kind {
            SourceKind::Iterate { alias, .. } => Some(alias.name.clone()),
            SourceKind::Values { alias, .. } => alias.as_ref().map(|alias| alias.name.clone()),
        };
        let implied = match source.collection() {
            Collection::Query(query) => {
                self.query(query, reads_items)?;
                None
            }
            Collection::Call(call) => {
                self.scalar(call)?;
                None
            }
            Collection::Path { root, steps } => {
                if !reads_items {
                    self.resolve(&root.name)?;
                }
                match steps.last() {
                    None => Some(root.name.clone()),
                    Some(Step::Property(name)) => Some(name.clone()),
                    Some(Step::Index(_)) => None,
                }
            }
        };
        let scope = self.0.last_mut().expect("a query has been entered");
        scope.extend(alias.or(implied));
        Ok(())
    }

    fn scalar(&mut self, scalar: &Scalar) -> Result<(), String> {
        if let ScalarKind::Identifier(name) = &scalar.kind {
            return self.resolve(name);
        }
        if let ScalarKind::Subquery { query, .. } = &scalar.kind {
            return self.query(query, false);
        }
        let mut children = Vec::new();
        scalar.kind.for_each_child(&mut |child| children.push(child));
        children.into_iter().try_for_each(|child| self.scalar(child))
    }

    fn resolve(&self, name: &str) -> Result<(), String> {
        let known: Vec<&str> = self.0.iter().flatten().map(String::as_str).collect();
        match known.contains(&name) {
            true => Ok(()),
            false if known.is_empty() => Err(format!("`{name}` means nothing without FROM")),
            false => Err(format!("`{name}` means nothing here; there are {}", known.join(", "))),
        }
    }
}
