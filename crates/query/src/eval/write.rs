//! Rows as JSON text.

// An expression of any form not named here says nothing; naming them would not say more.
#![allow(clippy::wildcard_enum_match_arm)]

use std::sync::Arc;

use item::Value;

use super::{Env, eval};
use crate::Error;
use crate::datum::Datum;
use crate::expr::{Expr, Projection};

/// Appends the row that a projection makes of the current row; `false` if there is none.
///
/// Parts that come from the item are copied as text, without becoming values.
pub(crate) fn write_projection<'a>(
    projection: &'a Projection,
    env: &mut Env<'a>,
    out: &mut Vec<u8>,
) -> Result<bool, Error> {
    match projection {
        Projection::Value(expr) => write_expr(expr, env, out),
        Projection::Object(properties) => write_object(properties, env, out).map(|()| true),
    }
}

fn write_expr<'a>(expr: &'a Expr, env: &mut Env<'a>, out: &mut Vec<u8>) -> Result<bool, Error> {
    match expr {
        Expr::Object(properties) => write_object(properties, env, out).map(|()| true),
        Expr::Array(items) => write_array(items, env, out).map(|()| true),
        _ => write_datum(&eval(expr, env)?, out),
    }
}

fn write_object<'a>(
    properties: &'a [(Arc<str>, Expr)],
    env: &mut Env<'a>,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    out.push(b'{');
    let empty = out.len();
    for (name, expr) in properties {
        let start = out.len();
        if start > empty {
            out.push(b',');
        }
        Value::String(name.clone()).write_json(out);
        out.push(b':');
        if !write_expr(expr, env, out)? {
            out.truncate(start);
        }
    }
    out.push(b'}');
    Ok(())
}

fn write_array<'a>(items: &'a [Expr], env: &mut Env<'a>, out: &mut Vec<u8>) -> Result<(), Error> {
    out.push(b'[');
    let empty = out.len();
    for item in items {
        let start = out.len();
        if start > empty {
            out.push(b',');
        }
        if !write_expr(item, env, out)? {
            out.truncate(start);
        }
    }
    out.push(b']');
    Ok(())
}

fn write_datum(datum: &Datum<'_>, out: &mut Vec<u8>) -> Result<bool, Error> {
    match datum {
        Datum::Node(node) => {
            out.extend_from_slice(node.raw().as_bytes());
            Ok(true)
        }
        Datum::Value(value) => write_value(value, out),
    }
}

/// Appends a value; `false` if it is undefined.
pub(crate) fn write_value(value: &Value, out: &mut Vec<u8>) -> Result<bool, Error> {
    if !is_finite(value) {
        let message = "The query produced a number that JSON cannot represent.";
        return Err(Error::Refused(message));
    }
    value.write_json(out);
    Ok(!value.is_undefined())
}

fn is_finite(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_finite(),
        Value::Array(elements) => elements.iter().all(is_finite),
        Value::Object(object) => object.iter().all(|(_, value)| is_finite(value)),
        Value::Undefined | Value::Null | Value::Bool(_) | Value::String(_) => true,
    }
}
