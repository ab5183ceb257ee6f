//! Evaluating bound expressions.
//!
//! Problems with types are never errors: they give undefined. What can fail is a scalar subquery
//! with several rows, and a user-defined function.

mod blocks;
pub(crate) mod like;
mod operators;
mod write;

use base::{Ctx, Timestamp};
use item::{Object, Value};
use sql::{BinaryOp, SubqueryKind};

use crate::Error;
use crate::datum::Datum;
use crate::expr::{Expr, LikePattern};
use crate::functions::Body;
use crate::udf::{self, NoFunctions, Udf};
use like::Pattern;

pub(crate) use blocks::{Flow, Groups, Visit};
pub(crate) use write::{write_projection, write_value};

/// What expressions are evaluated in.
pub(crate) struct Env<'a> {
    pub ctx: &'a Ctx,
    /// The time at which the query began.
    pub started: Timestamp,
    /// The user-defined functions.
    pub functions: &'a dyn Udf,
    /// The ordinal of the item.
    pub ordinal: u64,
    /// The values of the slots, innermost last.
    pub slots: Vec<Datum<'a>>,
    /// The results of the aggregates of the current group.
    pub aggregates: Vec<Value>,
    /// The keys of the current group.
    pub keys: Vec<Value>,
}

impl<'a> Env<'a> {
    /// An environment without rows, in a query that begins now.
    pub fn new(ctx: &'a Ctx) -> Env<'a> {
        Env::starting_at(ctx, ctx.now())
    }

    /// An environment whose slot 0 is this value, in a query that began at `started`.
    pub fn with_root(ctx: &'a Ctx, started: Timestamp, root: Datum<'a>) -> Env<'a> {
        let mut env = Env::starting_at(ctx, started);
        env.slots.push(root);
        env
    }

    fn starting_at(ctx: &'a Ctx, started: Timestamp) -> Env<'a> {
        Env {
            ctx,
            started,
            functions: &NoFunctions,
            ordinal: 0,
            slots: Vec::new(),
            aggregates: Vec::new(),
            keys: Vec::new(),
        }
    }
}

/// The value of an expression.
///
/// Every arm is a call, so that the frame of this function, which recursion repeats, is small.
pub(crate) fn eval<'a>(expr: &'a Expr, env: &mut Env<'a>) -> Result<Datum<'a>, Error> {
    match expr {
        Expr::Constant(value) => Ok(Datum::borrowed(value)),
        Expr::Slot(slot) => Ok(env.slots[*slot].clone()),
        Expr::Property(object, name) => eval(object, env).map(|object| object.get(name)),
        Expr::Element(array, index) => eval(array, env).map(|array| array.at(*index)),
        Expr::Array(items) => array(items, env),
        Expr::Object(properties) => object(properties, env).map(Datum::from),
        Expr::Unary(op, operand) => eval(operand, env).map(|value| operators::unary(*op, &value)),
        Expr::Binary(BinaryOp::Coalesce, left, right) => coalesce(left, right, env),
        Expr::Binary(op, left, right) => binary(*op, left, right, env),
        Expr::And(operands) => chain(operands, false, env),
        Expr::Or(operands) => chain(operands, true, env),
        Expr::In { negated, needle, items } => {
            is_in(needle, items, env).map(|found| negate(*negated, found))
        }
        Expr::Between { negated, value, low, high } => between(*negated, value, low, high, env),
        Expr::Like { negated, value, pattern } => {
            is_like(value, pattern, env).map(|fits| negate(*negated, fits))
        }
        Expr::Conditional(parts) => conditional(parts, env),
        Expr::Call(function, arguments) => call(&function.body, arguments, env),
        Expr::Udf(function, arguments) => udf::call(*function, arguments, env),
        Expr::Distance(distance) => distance.value(env),
        Expr::TextMatch(text_match) => text_match.value(env),
        Expr::Prose(prose) => prose.value(env),
        Expr::Aggregate(at) => Ok(env.aggregates[*at].clone().into()),
        Expr::GroupKey(at) => Ok(env.keys[*at].clone().into()),
        Expr::Subquery(kind, block) => subquery(*kind, block, env),
    }
}

/// Whether an expression is true. What is not true decides an AND here: undefined or false makes no
/// difference, and the index passes over such items too.
pub(crate) fn holds<'a>(expr: &'a Expr, env: &mut Env<'a>) -> Result<bool, Error> {
    let (operands, decisive) = if let Expr::And(operands) = expr {
        (operands, false)
    } else if let Expr::Or(operands) = expr {
        (operands, true)
    } else {
        return Ok(eval(expr, env)?.is_true());
    };
    for operand in operands {
        if holds(operand, env)? == decisive {
            return Ok(decisive);
        }
    }
    Ok(!decisive)
}

fn coalesce<'a>(left: &'a Expr, right: &'a Expr, env: &mut Env<'a>) -> Result<Datum<'a>, Error> {
    let left = eval(left, env)?;
    if left.is_undefined() { eval(right, env) } else { Ok(left) }
}

fn binary<'a>(
    op: BinaryOp,
    left: &'a Expr,
    right: &'a Expr,
    env: &mut Env<'a>,
) -> Result<Datum<'a>, Error> {
    let left = eval(left, env)?;
    Ok(operators::binary(op, &left, &eval(right, env)?))
}

fn between<'a>(
    negated: bool,
    value: &'a Expr,
    low: &'a Expr,
    high: &'a Expr,
    env: &mut Env<'a>,
) -> Result<Datum<'a>, Error> {
    let value = eval(value, env)?;
    let low = operators::binary(BinaryOp::GreaterOrEqual, &value, &eval(low, env)?);
    let high = operators::binary(BinaryOp::LessOrEqual, &value, &eval(high, env)?);
    Ok(negate(negated, operators::and(low.as_bool(), high.as_bool())))
}

fn conditional<'a>(parts: &'a [Expr; 3], env: &mut Env<'a>) -> Result<Datum<'a>, Error> {
    let [condition, yes, no] = parts;
    if eval(condition, env)?.is_true() { eval(yes, env) } else { eval(no, env) }
}

fn array<'a>(items: &'a [Expr], env: &mut Env<'a>) -> Result<Datum<'a>, Error> {
    let mut values = Vec::with_capacity(items.len());
    for item in items {
        let value = eval(item, env)?;
        if !value.is_undefined() {
            values.push(value.to_value());
        }
    }
    Ok(Value::array(values).into())
}

/// An object of the properties that are defined.
pub(crate) fn object<'a>(
    properties: &'a [(std::sync::Arc<str>, Expr)],
    env: &mut Env<'a>,
) -> Result<Value, Error> {
    let mut object = Object::with_capacity(properties.len());
    for (name, expr) in properties {
        let value = eval(expr, env)?;
        if !value.is_undefined() {
            object.insert(name.clone(), value.to_value());
        }
    }
    Ok(Value::object(object))
}

/// A chain of AND (`decisive` false) or OR (`decisive` true): one decisive operand decides, and
/// without one anything but a boolean makes it undefined.
fn chain<'a>(operands: &'a [Expr], decisive: bool, env: &mut Env<'a>) -> Result<Datum<'a>, Error> {
    let mut is_defined = true;
    for operand in operands {
        match eval(operand, env)?.as_bool() {
            Some(value) if value == decisive => return Ok(Datum::bool(decisive)),
            Some(_) => {}
            None => is_defined = false,
        }
    }
    Ok(truth(is_defined.then_some(!decisive)))
}

fn is_in<'a>(
    needle: &'a Expr,
    items: &'a [Expr],
    env: &mut Env<'a>,
) -> Result<Option<bool>, Error> {
    let needle = eval(needle, env)?;
    if needle.is_undefined() {
        return Ok(None);
    }
    for item in items {
        if eval(item, env)?.deep_eq(&needle) {
            return Ok(Some(true));
        }
    }
    Ok(Some(false))
}

fn is_like<'a>(
    value: &'a Expr,
    pattern: &'a LikePattern,
    env: &mut Env<'a>,
) -> Result<Option<bool>, Error> {
    let value = eval(value, env)?;
    let Some(text) = value.as_str() else { return Ok(None) };
    Ok(match pattern {
        LikePattern::Constant(pattern) => Some(pattern.matches(&text)),
        LikePattern::Dynamic { pattern, escape } => {
            let pattern = eval(pattern, env)?;
            pattern.as_str().map(|pattern| Pattern::new(&pattern, *escape).matches(&text))
        }
    })
}

fn truth<'a>(value: Option<bool>) -> Datum<'a> {
    value.map_or(Datum::UNDEFINED, Datum::bool)
}

fn negate<'a>(negated: bool, value: Option<bool>) -> Datum<'a> {
    truth(value.map(|value| value != negated))
}

fn call<'a>(body: &Body, arguments: &'a [Expr], env: &mut Env<'a>) -> Result<Datum<'a>, Error> {
    let mut values = Vec::with_capacity(arguments.len());
    match body {
        Body::Lazy(choose) => {
            let first = eval(&arguments[0], env)?;
            return match choose(&first, arguments.len()) {
                Some(at) => eval(&arguments[at], env),
                None => Ok(Datum::UNDEFINED),
            };
        }
        Body::Strict(_) | Body::Total(_) | Body::Timed(_) | Body::Drawn(_) | Body::Bound => {
            for argument in arguments {
                values.push(eval(argument, env)?);
            }
        }
    }
    let has_undefined = values.iter().any(Datum::is_undefined);
    Ok(match body {
        Body::Total(function) => function(&values).into(),
        _ if has_undefined => Datum::UNDEFINED,
        Body::Strict(function) => function(&values).into(),
        Body::Timed(function) => function(env, &values).into(),
        Body::Drawn(function) => function(env.ctx).into(),
        Body::Lazy(_) | Body::Bound => Datum::UNDEFINED,
    })
}

fn subquery<'a>(
    kind: SubqueryKind,
    block: &'a crate::expr::Block,
    env: &mut Env<'a>,
) -> Result<Datum<'a>, Error> {
    let mut rows: Vec<Value> = Vec::new();
    let wanted = match kind {
        SubqueryKind::Exists | SubqueryKind::First | SubqueryKind::All => 1,
        SubqueryKind::Scalar => 2,
        SubqueryKind::Array | SubqueryKind::Last => usize::MAX,
    };
    blocks::run(block, env, &mut |row| {
        rows.push(row);
        if rows.len() < wanted { Flow::Continue } else { Flow::Stop }
    })?;
    Ok(match kind {
        SubqueryKind::Exists => Datum::bool(!rows.is_empty()),
        // The condition was negated when it was bound: a row is one that does not satisfy it.
        SubqueryKind::All => Datum::bool(rows.is_empty()),
        SubqueryKind::Array => Value::array(rows).into(),
        SubqueryKind::Scalar if rows.len() > 1 => {
            return Err(Error::Refused("A scalar subquery returned more than one row."));
        }
        SubqueryKind::Scalar | SubqueryKind::First | SubqueryKind::Last => {
            rows.pop().unwrap_or_default().into()
        }
    })
}
