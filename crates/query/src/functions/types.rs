//! Type checks and conditional functions. Type checks are boolean for undefined too.

use item::{Kind, Value};

use super::dates;
use crate::datum::Datum;

pub(super) fn is_defined(arguments: &[Datum<'_>]) -> Value {
    Value::Bool(!arguments[0].is_undefined())
}

fn is_kind(arguments: &[Datum<'_>], kind: Kind) -> Value {
    Value::Bool(arguments[0].kind() == Some(kind))
}

pub(super) fn is_array(arguments: &[Datum<'_>]) -> Value {
    is_kind(arguments, Kind::Array)
}

pub(super) fn is_bool(arguments: &[Datum<'_>]) -> Value {
    is_kind(arguments, Kind::Bool)
}

pub(super) fn is_null(arguments: &[Datum<'_>]) -> Value {
    is_kind(arguments, Kind::Null)
}

pub(super) fn is_number(arguments: &[Datum<'_>]) -> Value {
    is_kind(arguments, Kind::Number)
}

pub(super) fn is_object(arguments: &[Datum<'_>]) -> Value {
    is_kind(arguments, Kind::Object)
}

pub(super) fn is_string(arguments: &[Datum<'_>]) -> Value {
    is_kind(arguments, Kind::String)
}

pub(super) fn is_primitive(arguments: &[Datum<'_>]) -> Value {
    let kind = arguments[0].kind();
    Value::Bool(matches!(kind, Some(Kind::Null | Kind::Bool | Kind::Number | Kind::String)))
}

pub(super) fn is_integer(arguments: &[Datum<'_>]) -> Value {
    Value::Bool(super::integer(&arguments[0]).is_some())
}

pub(super) fn is_finite_number(arguments: &[Datum<'_>]) -> Value {
    Value::Bool(arguments[0].as_f64().is_some_and(f64::is_finite))
}

pub(super) fn is_datetime(arguments: &[Datum<'_>]) -> Value {
    Value::Bool(arguments[0].as_str().is_some_and(|text| dates::parse(&text).is_some()))
}

/// `IIF(condition, a, b)`: only `true` selects a.
pub(super) fn iif(condition: &Datum<'_>, _: usize) -> Option<usize> {
    Some(if condition.is_true() { 1 } else { 2 })
}

/// `CHOOSE(i, e1, …)`: one-based.
pub(super) fn choose(index: &Datum<'_>, arguments: usize) -> Option<usize> {
    let index = usize::try_from(super::integer(index)?).ok()?;
    (1..arguments).contains(&index).then_some(index)
}
