//! Operators on values.

use item::Value;
use sql::{BinaryOp, UnaryOp};

use crate::datum::Datum;

/// A prefix operator.
pub(super) fn unary<'a>(op: UnaryOp, operand: &Datum<'_>) -> Datum<'a> {
    if op == UnaryOp::Not {
        return operand.as_bool().map_or(Datum::UNDEFINED, |value| Datum::bool(!value));
    }
    let Some(number) = operand.as_f64() else { return Datum::UNDEFINED };
    Datum::number(match op {
        UnaryOp::Minus => -number,
        UnaryOp::Plus | UnaryOp::Not => number,
        UnaryOp::BitNot => f64::from(!to_i32(number)),
    })
}

/// An infix operator on two evaluated operands.
pub(super) fn binary<'a>(op: BinaryOp, left: &Datum<'_>, right: &Datum<'_>) -> Datum<'a> {
    let value = match op {
        BinaryOp::Equal => equal(left, right).map(Value::Bool),
        BinaryOp::NotEqual => equal(left, right).map(|equal| Value::Bool(!equal)),
        BinaryOp::Less => left.partial_compare(right).map(|order| Value::Bool(order.is_lt())),
        BinaryOp::LessOrEqual => left.partial_compare(right).map(|o| Value::Bool(o.is_le())),
        BinaryOp::Greater => left.partial_compare(right).map(|order| Value::Bool(order.is_gt())),
        BinaryOp::GreaterOrEqual => left.partial_compare(right).map(|o| Value::Bool(o.is_ge())),
        BinaryOp::Concat => concat(left, right),
        BinaryOp::Add
        | BinaryOp::Subtract
        | BinaryOp::Multiply
        | BinaryOp::Divide
        | BinaryOp::Modulo
        | BinaryOp::BitAnd
        | BinaryOp::BitOr
        | BinaryOp::BitXor
        | BinaryOp::ShiftLeft
        | BinaryOp::ShiftRight
        | BinaryOp::ShiftRightUnsigned
        | BinaryOp::Coalesce => number(op, left, right).map(Value::Number),
    };
    value.unwrap_or_default().into()
}

/// Three-valued AND of two operands, `None` being undefined.
pub(super) fn and(left: Option<bool>, right: Option<bool>) -> Option<bool> {
    match (left, right) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        (None, _) | (_, None) => None,
    }
}

/// Undefined equals nothing, not even itself; values of different types are just not equal.
fn equal(left: &Datum<'_>, right: &Datum<'_>) -> Option<bool> {
    (!left.is_undefined() && !right.is_undefined()).then(|| left.deep_eq(right))
}

fn concat(left: &Datum<'_>, right: &Datum<'_>) -> Option<Value> {
    Some(Value::from(format!("{}{}", left.as_str()?, right.as_str()?)))
}

fn number(op: BinaryOp, left: &Datum<'_>, right: &Datum<'_>) -> Option<f64> {
    let (left, right) = (left.as_f64()?, right.as_f64()?);
    Some(match op {
        BinaryOp::Add => left + right,
        BinaryOp::Subtract => left - right,
        BinaryOp::Multiply => left * right,
        BinaryOp::Divide => left / right,
        BinaryOp::Modulo => left % right,
        BinaryOp::BitAnd => f64::from(to_i32(left) & to_i32(right)),
        BinaryOp::BitOr => f64::from(to_i32(left) | to_i32(right)),
        BinaryOp::BitXor => f64::from(to_i32(left) ^ to_i32(right)),
        BinaryOp::ShiftLeft => f64::from(to_i32(left).wrapping_shl(to_i32(right) as u32)),
        BinaryOp::ShiftRight => f64::from(to_i32(left).wrapping_shr(to_i32(right) as u32)),
        BinaryOp::ShiftRightUnsigned => {
            f64::from((to_i32(left) as u32).wrapping_shr(to_i32(right) as u32))
        }
        BinaryOp::Coalesce
        | BinaryOp::Concat
        | BinaryOp::Equal
        | BinaryOp::NotEqual
        | BinaryOp::Less
        | BinaryOp::LessOrEqual
        | BinaryOp::Greater
        | BinaryOp::GreaterOrEqual => return None,
    })
}

/// A number as 32 bits, the JavaScript way: toward zero, modulo 2³².
fn to_i32(number: f64) -> i32 {
    if !number.is_finite() {
        return 0;
    }
    // The remainder is exact and below 2³², so both conversions are.
    (number.trunc() % 4_294_967_296.0) as i64 as u32 as i32
}
