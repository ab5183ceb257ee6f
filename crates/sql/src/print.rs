//! Tree → text.
//!
//! The text is canonical: keywords in capitals, strings in double quotes, every operand that is
//! itself an operator in parentheses. It parses back to the same tree (S1).

use std::fmt::{Display, Formatter, Result, Write};

use crate::keywords::is_plain_name;
use crate::{
    BinaryOp, Collection, Condition, Count, CountKind, From, Ident, Literal, OrderBy, OrderItem,
    Property, Query, Scalar, ScalarKind, SelectItem, Selection, SortDirection, Source, SourceKind,
    Step, SubqueryKind, UnaryOp,
};

/// Appends a string literal, which is also a JSON string.
pub fn quote(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c < ' ' => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// A string literal.
struct Quoted<'a>(&'a str);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let mut text = String::with_capacity(self.0.len() + 2);
        quote(&mut text, self.0);
        f.write_str(&text)
    }
}

/// Things with commas between them.
fn list<T>(
    f: &mut Formatter<'_>,
    items: &[T],
    mut item: impl FnMut(&mut Formatter<'_>, &T) -> Result,
) -> Result {
    separated(f, items, ", ", &mut item)
}

fn separated<T>(
    f: &mut Formatter<'_>,
    items: &[T],
    separator: &str,
    item: &mut impl FnMut(&mut Formatter<'_>, &T) -> Result,
) -> Result {
    for (at, value) in items.iter().enumerate() {
        if at > 0 {
            f.write_str(separator)?;
        }
        item(f, value)?;
    }
    Ok(())
}

impl Display for Query {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str("SELECT ")?;
        if self.select.distinct {
            f.write_str("DISTINCT ")?;
        }
        if let Some(top) = &self.select.top {
            write!(f, "TOP {top} ")?;
        }
        write!(f, "{}", self.select.selection)?;
        if let Some(from) = &self.from {
            write!(f, " {from}")?;
        }
        if let Some(filter) = &self.filter {
            write!(f, " WHERE {filter}")?;
        }
        if !self.group_by.is_empty() {
            f.write_str(" GROUP BY ")?;
            list(f, &self.group_by, |f, key| write!(f, "{key}"))?;
        }
        if let Some(order_by) = &self.order_by {
            write!(f, " {order_by}")?;
        }
        if let Some(clause) = &self.offset_limit {
            write!(f, " OFFSET {} LIMIT {}", clause.offset, clause.limit)?;
        }
        Ok(())
    }
}

impl Display for Condition {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{}", self.from)?;
        match &self.filter {
            Some(filter) => write!(f, " WHERE {filter}"),
            None => Ok(()),
        }
    }
}

impl Display for Selection {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Selection::Star => f.write_str("*"),
            Selection::Value { expression, alias } => {
                write!(f, "VALUE {expression}")?;
                write_alias(f, alias.as_ref())
            }
            Selection::List(items) => list(f, items, |f, SelectItem { expression, alias }| {
                write!(f, "{expression}")?;
                write_alias(f, alias.as_ref())
            }),
        }
    }
}

fn write_alias(f: &mut Formatter<'_>, alias: Option<&Ident>) -> Result {
    match alias {
        Some(alias) => write!(f, " AS {}", alias.name),
        None => Ok(()),
    }
}

impl Display for Count {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match &self.kind {
            CountKind::Literal(n) => write!(f, "{n}"),
            CountKind::Parameter(name) => f.write_str(name),
        }
    }
}

impl Display for From {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "FROM {}", self.first)?;
        self.joins.iter().try_for_each(|join| write!(f, " JOIN {join}"))
    }
}

impl Display for Source {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match &self.kind {
            SourceKind::Iterate { alias, collection } => {
                write!(f, "{} IN {collection}", alias.name)
            }
            SourceKind::Values { collection, alias } => {
                write!(f, "{collection}")?;
                write_alias(f, alias.as_ref())
            }
        }
    }
}

impl Display for Collection {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Collection::Query(query) => write!(f, "({query})"),
            Collection::Call(call) => write!(f, "{call}"),
            Collection::Path { root, steps } => {
                f.write_str(&root.name)?;
                steps.iter().try_for_each(|step| match step {
                    Step::Property(name) => write_property(f, name),
                    Step::Index(index) => write!(f, "[{index}]"),
                })
            }
        }
    }
}

fn write_property(f: &mut Formatter<'_>, name: &str) -> Result {
    if is_plain_name(name) { write!(f, ".{name}") } else { write!(f, "[{}]", Quoted(name)) }
}

impl Display for OrderBy {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let (words, items) = match self {
            OrderBy::Values(items) => ("ORDER BY ", items),
            OrderBy::Rank(items) => ("ORDER BY RANK ", items),
        };
        f.write_str(words)?;
        list(f, items, |f, OrderItem { expression, direction }| {
            write!(f, "{expression}")?;
            match direction {
                Some(SortDirection::Ascending) => f.write_str(" ASC"),
                Some(SortDirection::Descending) => f.write_str(" DESC"),
                None => Ok(()),
            }
        })
    }
}

/// An expression as an operand: in parentheses unless nothing can tear it apart.
struct Operand<'a>(&'a Scalar);

impl Display for Operand<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let is_whole = match &self.0.kind {
            ScalarKind::Literal(_)
            | ScalarKind::Parameter(_)
            | ScalarKind::Identifier(_)
            | ScalarKind::Property { .. }
            | ScalarKind::Index { .. }
            | ScalarKind::Array(_)
            | ScalarKind::Object(_)
            | ScalarKind::Call { .. }
            | ScalarKind::Subquery { .. } => true,
            ScalarKind::Unary { .. }
            | ScalarKind::Binary { .. }
            | ScalarKind::And(_)
            | ScalarKind::Or(_)
            | ScalarKind::In { .. }
            | ScalarKind::Between { .. }
            | ScalarKind::Like { .. }
            | ScalarKind::Conditional { .. } => false,
        };
        if is_whole { write!(f, "{}", self.0) } else { write!(f, "({})", self.0) }
    }
}

/// What a property is taken of. `1.x` would read as a number.
fn write_object(f: &mut Formatter<'_>, object: &Scalar) -> Result {
    if matches!(object.kind, ScalarKind::Literal(Literal::Number(_))) {
        return write!(f, "({object})");
    }
    write!(f, "{}", Operand(object))
}

impl Display for Scalar {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match &self.kind {
            ScalarKind::Literal(literal) => write!(f, "{literal}"),
            ScalarKind::Parameter(name) | ScalarKind::Identifier(name) => f.write_str(name),
            ScalarKind::Property { object, name } => {
                write_object(f, object)?;
                write_property(f, name)
            }
            ScalarKind::Index { object, index } => {
                write_object(f, object)?;
                write!(f, "[{index}]")
            }
            ScalarKind::Array(items) => {
                f.write_str("[")?;
                list(f, items, |f, item| write!(f, "{item}"))?;
                f.write_str("]")
            }
            ScalarKind::Object(properties) => {
                f.write_str("{")?;
                list(f, properties, |f, Property { name, value }| {
                    write!(f, "{}: {value}", Quoted(name))
                })?;
                f.write_str("}")
            }
            ScalarKind::Unary { op, operand } => write!(f, "{op}{}", Operand(operand)),
            ScalarKind::Binary { op, left, right } => {
                write!(f, "{} {op} {}", Operand(left), Operand(right))
            }
            ScalarKind::And(operands) => write_chain(f, operands, " AND "),
            ScalarKind::Or(operands) => write_chain(f, operands, " OR "),
            ScalarKind::In { negated, needle, items } => {
                write!(f, "{}{} IN (", Operand(needle), not(*negated))?;
                list(f, items, |f, item| write!(f, "{item}"))?;
                f.write_str(")")
            }
            ScalarKind::Between { negated, value, low, high } => {
                let (value, low, high) = (Operand(value), Operand(low), Operand(high));
                write!(f, "{value}{} BETWEEN {low} AND {high}", not(*negated))
            }
            ScalarKind::Like { negated, value, pattern, escape } => {
                write!(f, "{}{} LIKE {}", Operand(value), not(*negated), Operand(pattern))?;
                match escape {
                    Some(c) => write!(f, " ESCAPE {}", Quoted(c.encode_utf8(&mut [0; 4]))),
                    None => Ok(()),
                }
            }
            ScalarKind::Conditional { condition, yes, no } => {
                write!(f, "{} ? {} : {}", Operand(condition), Operand(yes), Operand(no))
            }
            ScalarKind::Call { udf, name, arguments } => {
                write!(f, "{}{name}(", if *udf { "udf." } else { "" })?;
                list(f, arguments, |f, argument| write!(f, "{argument}"))?;
                f.write_str(")")
            }
            ScalarKind::Subquery { kind, query } => write!(f, "{kind}({query})"),
        }
    }
}

fn not(negated: bool) -> &'static str {
    if negated { " NOT" } else { "" }
}

fn write_chain(f: &mut Formatter<'_>, operands: &[Scalar], separator: &str) -> Result {
    separated(f, operands, separator, &mut |f, operand| write!(f, "{}", Operand(operand)))
}

impl Display for Literal {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Literal::Undefined => f.write_str("undefined"),
            Literal::Null => f.write_str("null"),
            Literal::Bool(value) => write!(f, "{value}"),
            Literal::Number(n) => {
                // The shortest text that reads back, with an exponent where digits would be many.
                let text = format!("{n:?}");
                f.write_str(text.strip_suffix(".0").unwrap_or(&text))
            }
            Literal::String(text) => write!(f, "{}", Quoted(text)),
        }
    }
}

impl Display for UnaryOp {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(match self {
            UnaryOp::Minus => "-",
            UnaryOp::Plus => "+",
            UnaryOp::BitNot => "~",
            UnaryOp::Not => "NOT ",
        })
    }
}

impl Display for BinaryOp {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(match self {
            BinaryOp::Coalesce => "??",
            BinaryOp::Concat => "||",
            BinaryOp::BitOr => "|",
            BinaryOp::BitXor => "^",
            BinaryOp::BitAnd => "&",
            BinaryOp::Equal => "=",
            BinaryOp::NotEqual => "!=",
            BinaryOp::Less => "<",
            BinaryOp::LessOrEqual => "<=",
            BinaryOp::Greater => ">",
            BinaryOp::GreaterOrEqual => ">=",
            BinaryOp::ShiftLeft => "<<",
            BinaryOp::ShiftRight => ">>",
            BinaryOp::ShiftRightUnsigned => ">>>",
            BinaryOp::Add => "+",
            BinaryOp::Subtract => "-",
            BinaryOp::Multiply => "*",
            BinaryOp::Divide => "/",
            BinaryOp::Modulo => "%",
        })
    }
}

impl Display for SubqueryKind {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(match self {
            SubqueryKind::Scalar => "",
            SubqueryKind::Exists => "EXISTS",
            SubqueryKind::Array => "ARRAY",
            SubqueryKind::All => "ALL",
            SubqueryKind::First => "FIRST",
            SubqueryKind::Last => "LAST",
        })
    }
}
