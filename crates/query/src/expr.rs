//! Bound expressions and blocks: what remains of a query when every name is resolved.
//!
//! Names became slots. Slot 0 is the item; each further source of a block takes the next slot, and
//! a block inside another goes on where the outer one stands:
//!
//! ```text
//! FROM c JOIN t IN c.tags WHERE EXISTS(SELECT VALUE 1 FROM u IN t.users)
//!      0      1                                            2
//! ```

use std::sync::Arc;

use item::Value;
use sql::{BinaryOp, SubqueryKind, UnaryOp};

use crate::aggregate::AggregateKind;
use crate::eval::like::Pattern;
use crate::full_text::{Prose, TextMatch};
use crate::functions::Function;
use crate::vectors::Distance;

/// A bound scalar expression.
#[derive(Clone, Debug)]
pub(crate) enum Expr {
    Constant(Value),
    Slot(usize),
    Property(Box<Expr>, Arc<str>),
    Element(Box<Expr>, usize),
    Array(Vec<Expr>),
    /// Each name once.
    Object(Vec<(Arc<str>, Expr)>),
    Unary(UnaryOp, Box<Expr>),
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    And(Vec<Expr>),
    Or(Vec<Expr>),
    In {
        negated: bool,
        needle: Box<Expr>,
        items: Vec<Expr>,
    },
    Between {
        negated: bool,
        value: Box<Expr>,
        low: Box<Expr>,
        high: Box<Expr>,
    },
    Like {
        negated: bool,
        value: Box<Expr>,
        pattern: LikePattern,
    },
    Conditional(Box<[Expr; 3]>),
    Call(&'static Function, Vec<Expr>),
    /// A user-defined function, by its place among those the query uses.
    Udf(usize, Vec<Expr>),
    /// VectorDistance.
    Distance(Box<Distance>),
    /// FullTextContains and its relatives.
    TextMatch(Box<TextMatch>),
    /// Relevance by statistics that are known, and length.
    Prose(Box<Prose>),
    /// The result of an aggregate of the block, after grouping.
    Aggregate(usize),
    /// A key of the group.
    GroupKey(usize),
    Subquery(SubqueryKind, Box<Block>),
}

/// The pattern of a LIKE: read once if it is constant.
#[derive(Clone, Debug)]
pub(crate) enum LikePattern {
    Constant(Pattern),
    Dynamic { pattern: Box<Expr>, escape: Option<char> },
}

/// A query or subquery without its ordering and windows.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    /// Slots taken before the first source.
    pub base: usize,
    /// Each takes the next slot.
    pub sources: Vec<RowSource>,
    pub filter: Option<Expr>,
    pub grouping: Option<Grouping>,
    pub projection: Projection,
    pub distinct: bool,
}

/// Where the rows of a slot come from.
#[derive(Clone, Debug)]
pub(crate) enum RowSource {
    /// The value, if it is defined.
    Value(Expr),
    /// Each element of the array.
    Elements(Expr),
    /// Each row of a subquery.
    Rows(Box<Block>),
    /// Each element of each array among the rows of a subquery.
    RowElements(Box<Block>),
}

/// What happens between filter and projection when rows are grouped.
#[derive(Clone, Debug)]
pub(crate) struct Grouping {
    /// Without keys all rows are one group, which is there even without rows.
    pub keys: Vec<Expr>,
    pub aggregates: Vec<(AggregateKind, Expr)>,
}

/// What comes out for each row or group.
#[derive(Clone, Debug)]
pub(crate) enum Projection {
    /// The value itself; undefined gives no row.
    Value(Expr),
    /// An object; undefined properties are left out.
    Object(Vec<(Arc<str>, Expr)>),
}

impl Projection {
    /// Whether it is the item as a whole.
    pub fn is_item(&self) -> bool {
        matches!(self, Projection::Value(Expr::Slot(0)))
    }
}

impl Block {
    /// Whether the first row can come out only when all rows are in.
    pub fn is_blocking(&self) -> bool {
        self.distinct || self.grouping.is_some()
    }
}

impl Expr {
    /// The value of an expression that is a constant.
    pub fn as_constant(&self) -> Option<&Value> {
        if let Expr::Constant(value) = self { Some(value) } else { None }
    }
}
