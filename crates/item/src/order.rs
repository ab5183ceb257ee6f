//! Comparing values: JSON equality, and the total order in which queries sort.

use std::cmp::Ordering;
use std::collections::HashMap;

use crate::value::{Object, Value};

/// Members from which on equality looks names up in a map.
const WIDE_MIN: usize = 32;

impl Value {
    /// JSON equality: numbers numerically, arrays in order, objects whatever their order.
    ///
    /// Undefined equals undefined; `NaN` equals nothing.
    pub fn deep_eq(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Undefined, Value::Undefined) | (Value::Null, Value::Null) => true,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Number(a), Value::Number(b)) => a == b,
            (Value::String(a), Value::String(b)) => a == b,
            (Value::Array(a), Value::Array(b)) => {
                a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| a.deep_eq(b))
            }
            (Value::Object(a), Value::Object(b)) => objects_equal(a, b),
            _ => false,
        }
    }

    /// The order of values of all kinds:
    ///
    /// ```text
    /// undefined < null < false < true < numbers < strings < arrays < objects
    /// ```
    ///
    /// Strings are ordered by their UTF-8 bytes. Arrays are equal among themselves, and so are
    /// objects. `NaN` comes before all other numbers, so that the order is total.
    pub fn compare(&self, other: &Value) -> Ordering {
        match (self, other) {
            (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
            (Value::Number(a), Value::Number(b)) => compare_numbers(*a, *b),
            (Value::String(a), Value::String(b)) => a.as_bytes().cmp(b.as_bytes()),
            _ => self.rank().cmp(&other.rank()),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Value::Undefined => 0,
            Value::Null => 1,
            Value::Bool(_) => 2,
            Value::Number(_) => 3,
            Value::String(_) => 4,
            Value::Array(_) => 5,
            Value::Object(_) => 6,
        }
    }
}

fn compare_numbers(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| b.is_nan().cmp(&a.is_nan()))
}

fn objects_equal(a: &Object, b: &Object) -> bool {
    if a.len() != b.len() {
        return false;
    }
    if a.len() < WIDE_MIN {
        return a.iter().all(|(name, value)| b.contains(name) && value.deep_eq(b.get(name)));
    }
    let others: HashMap<&str, &Value> = b.iter().collect();
    a.iter().all(|(name, value)| others.get(name).is_some_and(|other| value.deep_eq(other)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value {
        Value::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn kinds_have_one_order() {
        let ascending = [
            Value::Undefined,
            value("null"),
            value("false"),
            value("true"),
            Value::Number(f64::NAN),
            Value::Number(f64::NEG_INFINITY),
            value("-1"),
            value("0"),
            value("1e300"),
            value(r#""""#),
            value(r#""Z""#),
            value(r#""a""#),
            value(r#""é""#),
            value(r#""\uffff""#),
            value(r#""😀""#),
            value("[]"),
            value("{}"),
        ];
        for (i, a) in ascending.iter().enumerate() {
            for (j, b) in ascending.iter().enumerate() {
                assert_eq!(a.compare(b), i.cmp(&j), "{a:?} and {b:?}");
            }
        }
        assert_eq!(value("[1]").compare(&value("[]")), Ordering::Equal);
        assert_eq!(value(r#"{"a":1}"#).compare(&value("{}")), Ordering::Equal);
        assert_eq!(Value::Number(0.0).compare(&Value::Number(-0.0)), Ordering::Equal);
    }

    #[test]
    fn equality_ignores_the_order_of_members_only() {
        let check = |a: &str, b: &str, expect: bool| {
            assert_eq!(value(a).deep_eq(&value(b)), expect, "{a} and {b}");
            assert_eq!(value(b).deep_eq(&value(a)), expect, "{b} and {a}");
        };
        check(r#"{"a":1,"b":[1,2]}"#, r#"{"b":[1.0,2],"a":1}"#, true);
        check(r#"{"a":1}"#, r#"{"a":1,"b":null}"#, false);
        check(r#"{"a":1}"#, r#"{"b":1}"#, false);
        check("[1,2]", "[2,1]", false);
        check("0", "-0", true);
        check("null", "false", false);
        check(r#""1""#, "1", false);
    }

    #[test]
    fn wide_objects_are_equal_in_any_order() {
        let pair = |i: usize| (format!("n{i}").into(), Value::Number(i as f64));
        let forth: Object = (0..100).map(pair).collect();
        let back: Object = (0..100).rev().map(pair).collect();
        assert!(Value::object(forth.clone()).deep_eq(&Value::object(back.clone())));
        let mut other = back;
        other.insert("n7", Value::Null);
        assert!(!Value::object(forth).deep_eq(&Value::object(other)));
    }
}
