//! Which indexes a query uses, and which it could use: judged from its shape alone, so that the
//! answer is the same whatever the data.

use super::tested::asked_of;
use super::{Access, Plan, is_served};
use crate::constraints::{Allowed, Constraint};
use crate::expr::Expr;
use crate::{Direction, Path, Segment, Source, Span};

/// What a query does with indexes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexUse {
    /// Indexes it uses.
    pub used: Vec<IndexMention>,
    /// Indexes that are not there and would help.
    pub potential: Vec<IndexMention>,
}

/// One index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexMention {
    /// The expression it serves; empty for an order.
    pub filter: String,
    /// Its path as in an indexing policy, or those of a composite index with their directions.
    pub paths: Vec<String>,
}

impl Plan {
    /// Which indexes the query uses, and which it could.
    pub fn index_use(&self, source: &dyn Source) -> IndexUse {
        let constraints = self.constraints();
        let mut found = IndexUse::default();
        for constraint in &constraints {
            let mention = IndexMention {
                filter: constraint.to_string(),
                paths: vec![policy_path(&constraint.path)],
            };
            found.mention(source.is_indexed(&constraint.path), mention);
        }
        for path in self.tested_paths() {
            let filter = format!("{path} key by key");
            let mention = IndexMention { filter, paths: vec![policy_path(&path)] };
            found.mention(source.is_indexed(&path), mention);
        }
        if let [(path, _)] = &self.query.order[..]
            && constraints.iter().all(|constraint| constraint.path != *path)
        {
            let mention = IndexMention { filter: String::new(), paths: vec![policy_path(path)] };
            found.mention(true, mention);
        }
        if let Access::Ordered { span: Span::Composite { keys, .. }, .. } = &self.access {
            found.mention(true, IndexMention { filter: String::new(), paths: directed(keys) });
        }
        let indexes = source.composites();
        for keys in self.useful_composites(&constraints) {
            if !indexes.iter().any(|index| is_served(index, &keys)) {
                let filter = constraints.iter().map(Constraint::to_string).collect::<Vec<_>>();
                let mention = IndexMention { filter: filter.join(" AND "), paths: directed(&keys) };
                found.mention(false, mention);
            }
        }
        found
    }

    fn constraints(&self) -> Vec<Constraint> {
        self.query.conditions().filter_map(|(_, said)| said.cloned()).collect()
    }

    fn tested_paths(&self) -> Vec<Path> {
        let unsaid = self.query.conditions().filter(|(_, said)| said.is_none());
        let path = |conjunct: &Expr| Some(asked_of(conjunct, &self.query.slot_paths)?.0);
        unsaid.filter_map(|(conjunct, _)| path(conjunct)).collect()
    }

    /// Equalities first, then the order or one range: one index for each range.
    fn useful_composites(&self, constraints: &[Constraint]) -> Vec<Vec<(Path, Direction)>> {
        let is_scalar = |path: &Path| !path.segments().contains(&Segment::Elements);
        let plain: Vec<&Constraint> =
            constraints.iter().filter(|constraint| is_scalar(&constraint.path)).collect();
        let mut equal: Vec<(Path, Direction)> = Vec::new();
        let mut ranges: Vec<(Path, Direction)> = Vec::new();
        for constraint in plain {
            let list = match constraint.allowed {
                Allowed::Values(_) => &mut equal,
                Allowed::Range(_) => &mut ranges,
            };
            if list.iter().all(|(path, _)| *path != constraint.path) {
                list.push((constraint.path.clone(), Direction::Ascending));
            }
        }
        if equal.is_empty() {
            return Vec::new();
        }
        let is_fixed = |path: &Path| equal.iter().any(|(own, _)| own == path);
        let order: Vec<_> =
            self.query.order.iter().filter(|(path, _)| !is_fixed(path)).cloned().collect();
        if !order.is_empty() {
            return vec![[&equal[..], &order].concat()];
        }
        match ranges.is_empty() {
            true if equal.len() > 1 => vec![equal],
            true => Vec::new(),
            false => {
                let with = |range: (Path, Direction)| [&equal[..], &[range]].concat();
                ranges.into_iter().map(with).collect()
            }
        }
    }
}

impl IndexUse {
    fn mention(&mut self, is_used: bool, mention: IndexMention) {
        let list = if is_used { &mut self.used } else { &mut self.potential };
        if !list.contains(&mention) {
            list.push(mention);
        }
    }
}

fn policy_path(path: &Path) -> String {
    format!("{path}/?")
}

fn directed(keys: &[(Path, Direction)]) -> Vec<String> {
    let text = |(path, direction): &(Path, Direction)| match direction {
        Direction::Ascending => format!("{path} ASC"),
        Direction::Descending => format!("{path} DESC"),
    };
    keys.iter().map(text).collect()
}

impl std::fmt::Display for Constraint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.allowed {
            Allowed::Range(bounds) => write!(f, "{}{bounds}", self.path),
            Allowed::Values(values) => match &values[..] {
                [value] => write!(f, "{} = {value}", self.path),
                _ => write!(f, "{} in {} values", self.path, values.len()),
            },
        }
    }
}
