//! The built-in functions: one table with names and arities, one file per family of bodies.
//!
//! Rules common to all: an undefined argument makes the result undefined and the body is not
//! called; a wrong type gives undefined. Exceptions are [`Body::Total`] and [`Body::Lazy`].

mod arrays;
mod date_format;
mod dates;
mod math;
mod regex;
mod spatial;
mod strings;
mod table;
mod types;

use std::collections::HashMap;
use std::sync::LazyLock;

use base::Ctx;
use item::Value;

use crate::datum::Datum;
use crate::eval::Env;

/// A built-in function.
#[derive(Debug)]
pub(crate) struct Function {
    /// As documented.
    pub name: &'static str,
    /// Fewest arguments.
    pub least: usize,
    /// Most arguments.
    pub most: usize,
    pub body: Body,
}

/// Any number of arguments.
pub(crate) const MANY: usize = usize::MAX;

/// What a function does with its arguments.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Body {
    /// Called with defined arguments only.
    Strict(fn(&[Datum<'_>]) -> Value),
    /// Called with undefined arguments too.
    Total(fn(&[Datum<'_>]) -> Value),
    /// Picks, by its first argument, which other one to evaluate.
    Lazy(fn(&Datum<'_>, usize) -> Option<usize>),
    /// Depends on the row or the time.
    Timed(fn(&Env<'_>, &[Datum<'_>]) -> Value),
    /// Depends on chance.
    Drawn(fn(&Ctx) -> Value),
    /// Becomes an expression of its own when it is bound.
    Bound,
}

impl Body {
    /// Whether equal arguments always give equal results.
    pub fn is_pure(&self) -> bool {
        match self {
            Body::Strict(_) | Body::Total(_) | Body::Lazy(_) => true,
            Body::Timed(_) | Body::Drawn(_) | Body::Bound => false,
        }
    }
}

/// The function of this name, in any case.
pub(crate) fn find(name: &str) -> Option<&'static Function> {
    static BY_NAME: LazyLock<HashMap<String, &'static Function>> = LazyLock::new(|| {
        table::FUNCTIONS.iter().map(|f| (f.name.to_ascii_uppercase(), f)).collect()
    });
    BY_NAME.get(&name.to_ascii_uppercase()).copied()
}

/// The number an argument is, if it is an integer that 64 bits hold. The largest of those is a
/// number that is one more, the nearest there is.
fn integer(argument: &Datum<'_>) -> Option<i64> {
    let number = argument.as_f64()?;
    let is_held = (-9_223_372_036_854_775_808.0..=9_223_372_036_854_775_808.0).contains(&number);
    whole(argument).filter(|_| is_held)
}

/// The number an argument is, if it is an integer; one that 64 bits do not hold is as large as they
/// can.
fn whole(argument: &Datum<'_>) -> Option<i64> {
    let number = argument.as_f64()?;
    (number.fract() == 0.0).then_some(number as i64)
}

/// An absent optional argument is `Some(None)`, one of the wrong type is `None`.
fn optional<'a, 'd, T>(
    arguments: &'a [Datum<'d>],
    at: usize,
    read: impl FnOnce(&'a Datum<'d>) -> Option<T>,
) -> Option<Option<T>> {
    match arguments.get(at) {
        Some(argument) => read(argument).map(Some),
        None => Some(None),
    }
}

fn number(value: Option<f64>) -> Value {
    value.map_or(Value::Undefined, Value::Number)
}

fn string(value: Option<String>) -> Value {
    value.map_or(Value::Undefined, Value::from)
}

fn boolean(value: Option<bool>) -> Value {
    value.map_or(Value::Undefined, Value::Bool)
}
