//! Array functions.

use std::cmp::Ordering;
use std::collections::HashSet;

use item::{Kind, Object, Value};

use super::{boolean, integer, number, optional};
use crate::datum::Datum;
use crate::key::canonical;

/// The elements of an argument as values.
fn values(argument: &Datum<'_>) -> Option<Vec<Value>> {
    Some(argument.elements()?.iter().map(Datum::to_value).collect())
}

fn array(elements: Option<Vec<Value>>) -> Value {
    elements.map_or(Value::Undefined, Value::array)
}

pub(super) fn concat(arguments: &[Datum<'_>]) -> Value {
    let parts: Option<Vec<_>> = arguments.iter().map(values).collect();
    array(parts.map(|parts| parts.concat()))
}

pub(super) fn length(arguments: &[Datum<'_>]) -> Value {
    number(arguments[0].elements().map(|elements| elements.len() as f64))
}

/// Its third argument may be undefined, unlike the others.
pub(super) fn contains(arguments: &[Datum<'_>]) -> Value {
    let found = || {
        let elements = arguments[0].elements()?;
        let wanted = &arguments[1];
        let partial = match arguments.get(2) {
            Some(partial) if !partial.is_undefined() => partial.as_bool()?,
            _ => false,
        };
        wanted.kind()?;
        let is_partial = partial && wanted.kind() == Some(Kind::Object);
        Some(elements.iter().any(|element| match is_partial {
            true => has_properties(&element.to_value(), &wanted.to_value()),
            false => element.deep_eq(wanted),
        }))
    };
    boolean(found())
}

/// Whether an element has every property of an object with equal value.
fn has_properties(element: &Value, wanted: &Value) -> bool {
    element.as_object().is_some()
        && wanted.as_object().is_some_and(|wanted| {
            wanted.iter().all(|(name, value)| element.get(name).deep_eq(value))
        })
}

/// One answer decides; without it an undefined value makes the result undefined.
fn contains_several(arguments: &[Datum<'_>], decisive: bool) -> Value {
    let Some(elements) = arguments[0].elements() else { return Value::Undefined };
    let wanted = &arguments[1..];
    let decides = wanted
        .iter()
        .filter(|value| !value.is_undefined())
        .any(|value| elements.iter().any(|element| element.deep_eq(value)) == decisive);
    let is_defined = wanted.iter().all(|value| !value.is_undefined());
    boolean(if decides { Some(decisive) } else { is_defined.then_some(!decisive) })
}

pub(super) fn contains_any(arguments: &[Datum<'_>]) -> Value {
    // An empty array contains nothing, whatever the values are.
    if arguments[0].elements().is_some_and(|elements| elements.is_empty()) {
        return Value::Bool(false);
    }
    contains_several(arguments, true)
}

pub(super) fn contains_all(arguments: &[Datum<'_>]) -> Value {
    contains_several(arguments, false)
}

pub(super) fn slice(arguments: &[Datum<'_>]) -> Value {
    let part = || {
        let elements = values(&arguments[0])?;
        let count = elements.len() as i64;
        let start = integer(&arguments[1])?;
        let start = if start < 0 { (count + start.max(-count)).max(0) } else { start.min(count) };
        let length = optional(arguments, 2, integer)?.unwrap_or(count).clamp(0, count - start);
        Some(elements[start as usize..(start + length) as usize].to_vec())
    };
    array(part())
}

/// The elements if all are numbers.
fn numbers(argument: &Datum<'_>) -> Option<Vec<f64>> {
    argument.elements()?.iter().map(Datum::as_f64).collect()
}

pub(super) fn sum(arguments: &[Datum<'_>]) -> Value {
    number(numbers(&arguments[0]).map(|numbers| numbers.iter().sum::<f64>() + 0.0))
}

pub(super) fn average(arguments: &[Datum<'_>]) -> Value {
    let numbers = numbers(&arguments[0]).filter(|numbers| !numbers.is_empty());
    number(numbers.map(|numbers| numbers.iter().sum::<f64>() / numbers.len() as f64))
}

pub(super) fn median(arguments: &[Datum<'_>]) -> Value {
    let numbers = numbers(&arguments[0]).filter(|numbers| !numbers.is_empty());
    number(numbers.map(|mut numbers| {
        numbers.sort_by(f64::total_cmp);
        let middle = numbers.len() / 2;
        match numbers.len() % 2 {
            1 => numbers[middle],
            _ => (numbers[middle - 1] + numbers[middle]) / 2.0,
        }
    }))
}

/// The extreme by the order of types; undefined if an element is not primitive.
fn extreme(argument: &Datum<'_>, better: Ordering) -> Value {
    let Some(elements) = values(argument) else { return Value::Undefined };
    let is_primitive = |v: &Value| !matches!(v.kind(), Some(Kind::Array | Kind::Object));
    if !elements.iter().all(is_primitive) {
        return Value::Undefined;
    }
    let pick = |a: Value, b: Value| if b.compare(&a) == better { b } else { a };
    elements.into_iter().reduce(pick).unwrap_or_default()
}

pub(super) fn max(arguments: &[Datum<'_>]) -> Value {
    extreme(&arguments[0], Ordering::Greater)
}

pub(super) fn min(arguments: &[Datum<'_>]) -> Value {
    extreme(&arguments[0], Ordering::Less)
}

/// The elements without repeats, and their identities.
fn distinct(argument: &Datum<'_>) -> Option<(Vec<Value>, HashSet<Vec<u8>>)> {
    let mut seen = HashSet::new();
    let mut elements = values(argument)?;
    elements.retain(|element| seen.insert(canonical(element)));
    Some((elements, seen))
}

pub(super) fn set_union(arguments: &[Datum<'_>]) -> Value {
    let union = || {
        let (mut elements, seen) = distinct(&arguments[0])?;
        let (others, _) = distinct(&arguments[1])?;
        elements.extend(others.into_iter().filter(|other| !seen.contains(&canonical(other))));
        Some(elements)
    };
    array(union())
}

pub(super) fn set_intersect(arguments: &[Datum<'_>]) -> Value {
    let intersection = || {
        let (_, seen) = distinct(&arguments[0])?;
        let (mut elements, _) = distinct(&arguments[1])?;
        elements.retain(|element| seen.contains(&canonical(element)));
        Some(elements)
    };
    array(intersection())
}

pub(super) fn set_difference(arguments: &[Datum<'_>]) -> Value {
    let difference = || {
        let (mut elements, _) = distinct(&arguments[0])?;
        let (_, others) = distinct(&arguments[1])?;
        elements.retain(|element| !others.contains(&canonical(element)));
        Some(elements)
    };
    array(difference())
}

pub(super) fn set_equal(arguments: &[Datum<'_>]) -> Value {
    let both = distinct(&arguments[0]).zip(distinct(&arguments[1]));
    boolean(both.map(|((_, a), (_, b))| a == b))
}

pub(super) fn object_to_array(arguments: &[Datum<'_>]) -> Value {
    let pairs = || {
        let value = arguments[0].to_value();
        let object = value.as_object()?;
        let key_name = optional(arguments, 1, Datum::as_str)?.unwrap_or("k".into());
        let value_name = optional(arguments, 2, Datum::as_str)?.unwrap_or("v".into());
        let pair = |(name, value): (&str, &Value)| {
            let mut pair = Object::with_capacity(2);
            pair.insert(&*key_name, Value::from(name));
            pair.insert(&*value_name, value.clone());
            Value::object(pair)
        };
        Some(object.iter().map(pair).collect())
    };
    array(pairs())
}
