//! The syntax tree.
//!
//! Parentheses and the two spellings of property access (`.name`, `["name"]`) leave no trace: what
//! means the same is the same tree. Equality ignores spans.
//!
//! `AND` and `OR` chains are one node with many operands, because machine-made filters have
//! thousands of them; every other binary operator has two.

use crate::Span;
use crate::limits::HEIGHT_MAX;

/// Gives a struct an equality that does not look at where it stands.
macro_rules! equal_but_for_span {
    ($($name:ident { $($field:ident),+ })+) => {
        $(impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                $(self.$field == other.$field)&&+
            }
        })+
    };
}

equal_but_for_span! {
    Query { select, from, filter, group_by, order_by, offset_limit }
    Ident { name }
    Count { kind }
    Source { kind }
    Scalar { kind }
}

/// A whole query, or a subquery.
#[derive(Clone, Debug)]
pub struct Query {
    /// What comes out.
    pub select: Select,
    /// Where rows come from; without it the query runs once over an empty row.
    pub from: Option<From>,
    /// The WHERE condition.
    pub filter: Option<Scalar>,
    /// The GROUP BY keys, possibly none.
    pub group_by: Vec<Scalar>,
    /// The ORDER BY clause.
    pub order_by: Option<OrderBy>,
    /// The OFFSET … LIMIT … clause.
    pub offset_limit: Option<OffsetLimit>,
    /// From SELECT to the last token.
    pub span: Span,
}

/// `FROM … WHERE …`: the condition of a conditional patch.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// Names the item.
    pub from: From,
    /// What must hold.
    pub filter: Option<Scalar>,
}

/// The SELECT clause.
#[derive(Clone, Debug, PartialEq)]
pub struct Select {
    /// DISTINCT was written.
    pub distinct: bool,
    /// The TOP count.
    pub top: Option<Count>,
    /// The projection.
    pub selection: Selection,
}

/// What a SELECT clause projects.
#[derive(Clone, Debug, PartialEq)]
pub enum Selection {
    /// `*`
    Star,
    /// `VALUE expression`; the alias is accepted and has no effect.
    Value {
        /// The projected expression.
        expression: Scalar,
        /// An alias without effect.
        alias: Option<Ident>,
    },
    /// `e1 AS a, e2, …`
    List(Vec<SelectItem>),
}

/// One expression of a select list.
#[derive(Clone, Debug, PartialEq)]
pub struct SelectItem {
    /// The projected expression.
    pub expression: Scalar,
    /// Its explicit name.
    pub alias: Option<Ident>,
}

/// A name and its place.
#[derive(Clone, Debug)]
pub struct Ident {
    /// The name.
    pub name: String,
    /// Where it stands.
    pub span: Span,
}

/// The count of TOP, OFFSET or LIMIT.
#[derive(Clone, Debug)]
pub struct Count {
    /// A number or a parameter.
    pub kind: CountKind,
    /// Where it stands.
    pub span: Span,
}

/// How a count is given.
#[derive(Clone, Debug, PartialEq)]
pub enum CountKind {
    /// In the text.
    Literal(u32),
    /// By a parameter, `@` included.
    Parameter(String),
}

/// The FROM clause.
#[derive(Clone, Debug, PartialEq)]
pub struct From {
    /// The first source.
    pub first: Source,
    /// The joined ones, in order.
    pub joins: Vec<Source>,
}

/// One source of rows.
#[derive(Clone, Debug)]
pub struct Source {
    /// What it is.
    pub kind: SourceKind,
    /// Where it stands.
    pub span: Span,
}

/// The two forms of a source.
#[derive(Clone, Debug, PartialEq)]
pub enum SourceKind {
    /// `alias IN collection`: one row per element of each array.
    Iterate {
        /// The name of an element.
        alias: Ident,
        /// Where the arrays are.
        collection: Collection,
    },
    /// `collection AS alias`: one row per value.
    Values {
        /// Where the values are.
        collection: Collection,
        /// The name of a value.
        alias: Option<Ident>,
    },
}

/// What a source reads.
#[derive(Clone, Debug, PartialEq)]
pub enum Collection {
    /// A path that starts at the container or at an alias.
    Path {
        /// The container word or an alias.
        root: Ident,
        /// The steps after it.
        steps: Vec<Step>,
    },
    /// A subquery.
    Query(Box<Query>),
    /// A call whose result is iterated.
    Call(Box<Scalar>),
}

/// One step of a source path.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// `.name` or `["name"]`
    Property(String),
    /// `[3]`
    Index(u32),
}

/// The ORDER BY clause.
#[derive(Clone, Debug, PartialEq)]
pub enum OrderBy {
    /// By values.
    Values(Vec<OrderItem>),
    /// `RANK`: by scoring functions, which are calls.
    Rank(Vec<OrderItem>),
}

/// One key of an ORDER BY clause.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderItem {
    /// The key.
    pub expression: Scalar,
    /// The written direction.
    pub direction: Option<SortDirection>,
}

/// `ASC` or `DESC`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortDirection {
    /// Smallest first.
    Ascending,
    /// Largest first.
    Descending,
}

/// The OFFSET … LIMIT … clause.
#[derive(Clone, Debug, PartialEq)]
pub struct OffsetLimit {
    /// Rows to skip.
    pub offset: Count,
    /// Rows to take.
    pub limit: Count,
}

/// A scalar expression.
#[derive(Clone, Debug)]
pub struct Scalar {
    /// What it is.
    pub kind: ScalarKind,
    /// Where it stands.
    pub span: Span,
    /// Nodes on the longest path to a leaf.
    height: u32,
}

/// The forms of a scalar expression.
#[derive(Clone, Debug, PartialEq)]
pub enum ScalarKind {
    /// A constant.
    Literal(Literal),
    /// `@name`, with the `@`.
    Parameter(String),
    /// A bare name.
    Identifier(String),
    /// `object.name` or `object["name"]`
    Property {
        /// What has the property.
        object: Box<Scalar>,
        /// Its name.
        name: String,
    },
    /// `object[index]` with anything but a string literal.
    Index {
        /// What is indexed.
        object: Box<Scalar>,
        /// By what.
        index: Box<Scalar>,
    },
    /// `[a, b]`
    Array(Vec<Scalar>),
    /// `{"a": b}`
    Object(Vec<Property>),
    /// A prefix operator.
    Unary {
        /// Which one.
        op: UnaryOp,
        /// Its operand.
        operand: Box<Scalar>,
    },
    /// An infix operator.
    Binary {
        /// Which one.
        op: BinaryOp,
        /// Left operand.
        left: Box<Scalar>,
        /// Right operand.
        right: Box<Scalar>,
    },
    /// `a AND b AND …`, at least two.
    And(Vec<Scalar>),
    /// `a OR b OR …`, at least two.
    Or(Vec<Scalar>),
    /// `needle [NOT] IN (a, b)`
    In {
        /// NOT was written.
        negated: bool,
        /// What is looked for.
        needle: Box<Scalar>,
        /// Where.
        items: Vec<Scalar>,
    },
    /// `value [NOT] BETWEEN low AND high`
    Between {
        /// NOT was written.
        negated: bool,
        /// What is tested.
        value: Box<Scalar>,
        /// Inclusive lower bound.
        low: Box<Scalar>,
        /// Inclusive upper bound.
        high: Box<Scalar>,
    },
    /// `value [NOT] LIKE pattern [ESCAPE 'x']`
    Like {
        /// NOT was written.
        negated: bool,
        /// What is tested.
        value: Box<Scalar>,
        /// The pattern.
        pattern: Box<Scalar>,
        /// The escape character.
        escape: Option<char>,
    },
    /// `condition ? yes : no`
    Conditional {
        /// Decides.
        condition: Box<Scalar>,
        /// Taken if it is `true`.
        yes: Box<Scalar>,
        /// Taken otherwise.
        no: Box<Scalar>,
    },
    /// `name(arguments)` or `udf.name(arguments)`
    Call {
        /// `udf.` was written.
        udf: bool,
        /// The name as written.
        name: String,
        /// The arguments.
        arguments: Vec<Scalar>,
    },
    /// A subquery in scalar position.
    Subquery {
        /// What is made of its rows.
        kind: SubqueryKind,
        /// The subquery.
        query: Box<Query>,
    },
}

/// A constant.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// `undefined`
    Undefined,
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// A number; the parser makes no negative ones.
    Number(f64),
    /// A string, unescaped.
    String(String),
}

/// One property of an object literal.
#[derive(Clone, Debug, PartialEq)]
pub struct Property {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: Scalar,
}

/// Prefix operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOp {
    /// `-`
    Minus,
    /// `+`
    Plus,
    /// `~`
    BitNot,
    /// `NOT`
    Not,
}

/// Infix operators with two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryOp {
    /// `??`
    Coalesce,
    /// `||`
    Concat,
    /// `|`
    BitOr,
    /// `^`
    BitXor,
    /// `&`
    BitAnd,
    /// `=`
    Equal,
    /// `!=`, `<>`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `<<`
    ShiftLeft,
    /// `>>`
    ShiftRight,
    /// `>>>`
    ShiftRightUnsigned,
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Modulo,
}

/// What is made of the rows of a subquery in scalar position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubqueryKind {
    /// `(q)`: the only row, or undefined.
    Scalar,
    /// `EXISTS(q)`
    Exists,
    /// `ARRAY(q)`
    Array,
    /// `ALL(q)`
    All,
    /// `FIRST(q)`
    First,
    /// `LAST(q)`
    Last,
}

impl Scalar {
    /// An expression at a place.
    pub fn new(kind: ScalarKind, span: Span) -> Scalar {
        let height = 1 + kind.children_height();
        Scalar { kind, span, height }
    }

    /// Nodes on the longest path to a leaf, subqueries included.
    pub fn height(&self) -> u32 {
        self.height
    }

    /// Whether recursion over it is safe (S2).
    pub(crate) fn is_too_high(&self) -> bool {
        self.height > HEIGHT_MAX
    }
}

impl ScalarKind {
    fn children_height(&self) -> u32 {
        let mut height = 0;
        self.for_each_child(&mut |child| height = height.max(child.height));
        height
    }

    /// Calls `visit` with every direct operand, and with every expression of a direct subquery.
    pub fn for_each_child<'a>(&'a self, visit: &mut dyn FnMut(&'a Scalar)) {
        match self {
            ScalarKind::Literal(_) | ScalarKind::Parameter(_) | ScalarKind::Identifier(_) => {}
            ScalarKind::Property { object, .. } => visit(object),
            ScalarKind::Unary { operand, .. } => visit(operand),
            ScalarKind::Index { object: a, index: b }
            | ScalarKind::Binary { left: a, right: b, .. }
            | ScalarKind::Like { value: a, pattern: b, .. } => {
                visit(a);
                visit(b);
            }
            ScalarKind::Between { value: a, low: b, high: c, .. }
            | ScalarKind::Conditional { condition: a, yes: b, no: c } => {
                visit(a);
                visit(b);
                visit(c);
            }
            ScalarKind::Array(items) | ScalarKind::And(items) | ScalarKind::Or(items) => {
                items.iter().for_each(visit);
            }
            ScalarKind::Call { arguments, .. } => arguments.iter().for_each(visit),
            ScalarKind::Object(properties) => properties.iter().for_each(|p| visit(&p.value)),
            ScalarKind::In { needle, items, .. } => {
                visit(needle);
                items.iter().for_each(visit);
            }
            ScalarKind::Subquery { query, .. } => query.for_each_scalar(visit),
        }
    }
}

impl Query {
    /// Whether a user-defined function is called anywhere in it.
    pub fn calls_functions(&self) -> bool {
        fn note(scalar: &Scalar, found: &mut bool) {
            *found |= matches!(scalar.kind, ScalarKind::Call { udf: true, .. });
            scalar.kind.for_each_child(&mut |child| note(child, found));
        }
        let mut found = false;
        self.for_each_scalar(&mut |scalar| note(scalar, &mut found));
        found
    }

    /// Calls `visit` with every expression that stands directly in a clause of the query or of a
    /// subquery in its FROM clause.
    pub fn for_each_scalar<'a>(&'a self, visit: &mut dyn FnMut(&'a Scalar)) {
        match &self.select.selection {
            Selection::Star => {}
            Selection::Value { expression, .. } => visit(expression),
            Selection::List(items) => items.iter().for_each(|item| visit(&item.expression)),
        }
        if let Some(from) = &self.from {
            from.sources().for_each(|source| match source.collection() {
                Collection::Path { .. } => {}
                Collection::Query(query) => query.for_each_scalar(visit),
                Collection::Call(call) => visit(call),
            });
        }
        self.filter.iter().for_each(&mut *visit);
        self.group_by.iter().for_each(&mut *visit);
        match &self.order_by {
            Some(OrderBy::Values(items) | OrderBy::Rank(items)) => {
                items.iter().for_each(|item| visit(&item.expression));
            }
            None => {}
        }
    }
}

impl From {
    /// Every source, in order.
    pub fn sources(&self) -> impl Iterator<Item = &Source> {
        std::iter::once(&self.first).chain(&self.joins)
    }
}

impl Source {
    /// What the source reads.
    pub fn collection(&self) -> &Collection {
        match &self.kind {
            SourceKind::Iterate { collection, .. } | SourceKind::Values { collection, .. } => {
                collection
            }
        }
    }
}

impl OrderItem {
    /// The direction that applies.
    pub fn effective_direction(&self) -> SortDirection {
        self.direction.unwrap_or(SortDirection::Ascending)
    }
}

impl Ident {
    /// A name at a place.
    pub fn new(name: impl Into<String>, span: Span) -> Ident {
        Ident { name: name.into(), span }
    }
}
