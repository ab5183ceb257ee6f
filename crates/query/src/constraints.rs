//! What a filter says about the value at a path, in a form an index or a router can use.
//!
//! A constraint is necessary, not sufficient: an item that does not satisfy it cannot satisfy the
//! filter. The filter is evaluated on every item all the same.

// An expression of any form not named here says nothing; naming them would not say more.
#![allow(clippy::wildcard_enum_match_arm)]

use item::{Kind, Value};
use sql::{BinaryOp, UnaryOp};

use crate::expr::{Expr, LikePattern};
use crate::{Bound, Bounds, Path};

/// What one conjunct says about one path.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Constraint {
    pub path: Path,
    pub allowed: Allowed,
    /// Every value allowed satisfies the conjunct, not only the other way round.
    pub is_exact: bool,
}

/// The values that can satisfy a conjunct.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Allowed {
    /// One of these; undefined if the path must be absent.
    Values(Vec<Value>),
    /// One in this range.
    Range(Bounds),
}

/// The operands of a filter that must all hold.
pub(crate) fn conjuncts(filter: &Expr) -> Vec<&Expr> {
    fn add<'e>(filter: &'e Expr, found: &mut Vec<&'e Expr>) {
        match filter {
            Expr::And(operands) => operands.iter().for_each(|operand| add(operand, found)),
            other => found.push(other),
        }
    }
    let mut found = Vec::new();
    add(filter, &mut found);
    found
}

/// What a conjunct says, if it is of a form we know.
pub(crate) fn constraint(expr: &Expr, slot_paths: &[Option<Path>]) -> Option<Constraint> {
    let path = |expr: &Expr| expr.path(slot_paths);
    let values = |path: Path, values: Vec<Value>| {
        Some(Constraint { path, allowed: Allowed::Values(values), is_exact: true })
    };
    match expr {
        Expr::Slot(_) | Expr::Property(..) => values(path(expr)?, vec![Value::Bool(true)]),
        Expr::Binary(op, left, right) => comparison(*op, left, right, slot_paths)
            .or_else(|| comparison(flipped(*op)?, right, left, slot_paths)),
        Expr::Unary(UnaryOp::Not, operand) => {
            values(path(is_defined_argument(operand)?)?, vec![Value::Undefined])
        }
        Expr::In { negated: false, needle, items } => {
            let items: Option<Vec<_>> = items.iter().map(|i| i.as_constant().cloned()).collect();
            let mut items = items?;
            items.retain(|item| !item.is_undefined());
            values(path(needle)?, items)
        }
        Expr::Between { negated: false, value, low, high } => {
            let (low, high) = (primitive(low)?, primitive(high)?);
            let lower = Bound::Included(low.clone());
            let upper = Bound::Included(high.clone());
            let allowed = Allowed::Range(Bounds { lower, upper });
            (low.kind() == high.kind()).then_some(Constraint {
                path: path(value)?,
                allowed,
                is_exact: true,
            })
        }
        Expr::Like { negated: false, value, pattern: LikePattern::Constant(pattern) } => {
            let found = prefixed(path(value)?, &pattern.prefix())?;
            Some(Constraint { is_exact: false, ..found })
        }
        Expr::Call(function, arguments) => call(function.name, arguments, slot_paths),
        _ => None,
    }
}

fn is_defined_argument(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::Call(function, arguments) if function.name == "IS_DEFINED" => arguments.first(),
        _ => None,
    }
}

/// A constant of a type that comparisons and index terms order.
fn primitive(expr: &Expr) -> Option<&Value> {
    expr.as_constant().filter(|value| match value.kind() {
        Some(Kind::Null | Kind::Bool | Kind::String) => true,
        Some(Kind::Number) => value.as_f64().is_some_and(|number| !number.is_nan()),
        Some(Kind::Array | Kind::Object) | None => false,
    })
}

/// The operator with its operands exchanged.
fn flipped(op: BinaryOp) -> Option<BinaryOp> {
    Some(match op {
        BinaryOp::Equal => BinaryOp::Equal,
        BinaryOp::Less => BinaryOp::Greater,
        BinaryOp::LessOrEqual => BinaryOp::GreaterOrEqual,
        BinaryOp::Greater => BinaryOp::Less,
        BinaryOp::GreaterOrEqual => BinaryOp::LessOrEqual,
        _ => return None,
    })
}

fn comparison(
    op: BinaryOp,
    left: &Expr,
    right: &Expr,
    slot_paths: &[Option<Path>],
) -> Option<Constraint> {
    if op == BinaryOp::Equal
        && right.as_constant() == Some(&Value::Bool(false))
        && let Some(argument) = is_defined_argument(left)
    {
        let allowed = Allowed::Values(vec![Value::Undefined]);
        return Some(Constraint { path: argument.path(slot_paths)?, allowed, is_exact: true });
    }
    if op == BinaryOp::Equal
        && let Some(constraint) = beginning(left, right, slot_paths)
    {
        return Some(constraint);
    }
    let path = left.path(slot_paths)?;
    let value = primitive(right)?.clone();
    let unbounded = Bound::Unbounded;
    let allowed = match op {
        BinaryOp::Equal => Allowed::Values(vec![value]),
        BinaryOp::Less => {
            Allowed::Range(Bounds { lower: unbounded, upper: Bound::Excluded(value) })
        }
        BinaryOp::LessOrEqual => {
            Allowed::Range(Bounds { lower: unbounded, upper: Bound::Included(value) })
        }
        BinaryOp::Greater => {
            Allowed::Range(Bounds { lower: Bound::Excluded(value), upper: unbounded })
        }
        BinaryOp::GreaterOrEqual => {
            Allowed::Range(Bounds { lower: Bound::Included(value), upper: unbounded })
        }
        _ => return None,
    };
    Some(Constraint { path, allowed, is_exact: true })
}

fn call(name: &str, arguments: &[Expr], slot_paths: &[Option<Path>]) -> Option<Constraint> {
    let path = arguments.first()?.path(slot_paths)?;
    let is_plain = match arguments.get(2) {
        None => true,
        Some(flag) => flag.as_constant() == Some(&Value::Bool(false)),
    };
    match name {
        "STARTSWITH" if is_plain => prefixed(path, arguments[1].as_constant()?.as_str()?),
        "StringEquals" if is_plain => {
            let text = arguments[1].as_constant()?.as_str()?;
            let allowed = Allowed::Values(vec![Value::from(text)]);
            Some(Constraint { path, allowed, is_exact: true })
        }
        "ARRAY_CONTAINS" if is_plain => {
            let value = primitive(&arguments[1])?.clone();
            let (path, allowed) = (path.elements(), Allowed::Values(vec![value]));
            Some(Constraint { path, allowed, is_exact: true })
        }
        // The item itself is an object always, and has no entry.
        _ if path.segments().is_empty() => None,
        _ => Some(Constraint { path, allowed: of_type(name)?, is_exact: true }),
    }
}

/// The values that a check of their type lets through. Arrays and objects are not told apart.
fn of_type(name: &str) -> Option<Allowed> {
    let from = |least: Value| {
        Allowed::Range(Bounds { lower: Bound::Included(least), upper: Bound::Unbounded })
    };
    match name {
        "IS_DEFINED" => Some(Allowed::Range(Bounds::ALL)),
        "IS_NULL" => Some(Allowed::Values(vec![Value::Null])),
        "IS_BOOL" | "IS_BOOLEAN" => {
            Some(Allowed::Values(vec![Value::Bool(false), Value::Bool(true)]))
        }
        "IS_NUMBER" => Some(from(Value::Number(f64::MIN))),
        "IS_STRING" => Some(from(Value::from(""))),
        _ => None,
    }
}

/// `LEFT(path, n) = 'text'` and `SUBSTRING(path, 0, n) = 'text'`, where the text has n characters.
fn beginning(left: &Expr, right: &Expr, slot_paths: &[Option<Path>]) -> Option<Constraint> {
    let Expr::Call(function, arguments) = left else { return None };
    let number = |at: usize| arguments.get(at)?.as_constant()?.as_f64();
    let length = match function.name {
        "LEFT" => number(1)?,
        "SUBSTRING" if number(1)? == 0.0 => number(2)?,
        _ => return None,
    };
    let text = right.as_constant()?.as_str()?;
    // What is cut through a pair of surrogates ends in a character that the text does not have.
    let is_whole = text.encode_utf16().count() as f64 == length && !text.ends_with('\u{fffd}');
    is_whole.then(|| prefixed(arguments[0].path(slot_paths)?, text)).flatten()
}

/// Strings that begin with a prefix: from the prefix to where its last character is the next one.
fn prefixed(path: Path, prefix: &str) -> Option<Constraint> {
    if prefix.is_empty() {
        return None;
    }
    let upper = successor(prefix).map_or(Bound::Unbounded, |s| Bound::Excluded(Value::from(s)));
    let lower = Bound::Included(Value::from(prefix));
    let allowed = Allowed::Range(Bounds { lower, upper });
    Some(Constraint { path, allowed, is_exact: true })
}

/// The smallest string greater than all that begin with `prefix`.
fn successor(prefix: &str) -> Option<String> {
    let mut chars: Vec<char> = prefix.chars().collect();
    while let Some(last) = chars.pop() {
        let next = match last {
            char::MAX => continue,
            '\u{d7ff}' => '\u{e000}',
            other => char::from_u32(other as u32 + 1)?,
        };
        chars.push(next);
        return Some(chars.into_iter().collect());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn successors() {
        assert_eq!(successor("ab").as_deref(), Some("ac"));
        assert_eq!(successor("a\u{10ffff}").as_deref(), Some("b"));
        assert_eq!(successor("\u{10ffff}"), None);
        assert_eq!(successor("\u{d7ff}").as_deref(), Some("\u{e000}"));
    }
}
