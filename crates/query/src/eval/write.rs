//! Rows as JSON text.

// An expression of any form not named here says nothing; naming them would not say more.
#![allow(clippy::wildcard_enum_match_arm)]

use std::sync::Arc;

use item::{Kind, Value};

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

/// Bytes that are equal exactly for equal values: DISTINCT and GROUP BY compare these.
pub(crate) fn canonical(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    write_canonical(value, &mut out);
    out
}

/// Appends [`canonical`] bytes. They end by themselves, so that several can follow each other.
pub(super) fn write_canonical(value: &Value, out: &mut Vec<u8>) {
    match value.kind() {
        None => out.push(b'u'),
        // Their JSON text would be that of null.
        Some(Kind::Number) if !is_finite(value) => out.extend_from_slice(
            value.as_f64().map_or(String::new(), |number| format!("{number};")).as_bytes(),
        ),
        Some(Kind::Null | Kind::Bool | Kind::Number | Kind::String) => {
            value.write_json(out);
            out.push(b';');
        }
        Some(Kind::Array) => {
            out.push(b'[');
            let elements = value.as_array().unwrap_or_default();
            elements.iter().for_each(|element| write_canonical(element, out));
            out.push(b']');
        }
        Some(Kind::Object) => {
            out.push(b'{');
            let mut members: Vec<_> = value.as_object().map_or(Vec::new(), |o| o.iter().collect());
            members.sort_by_key(|(name, _)| *name);
            for (name, value) in members {
                Value::from(name).write_json(out);
                write_canonical(value, out);
            }
            out.push(b'}');
        }
    }
}
