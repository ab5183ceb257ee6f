//! A value while an expression is evaluated: borrowed from the item or the plan where possible.

use std::borrow::Cow;
use std::cmp::Ordering;

use item::{Kind, Node, Value};

/// A value, wherever it lives.
#[derive(Clone, Debug)]
pub(crate) enum Datum<'a> {
    /// Inside an item.
    Node(Node<'a>),
    /// Anything else, undefined included.
    Value(Cow<'a, Value>),
}

impl<'a> Datum<'a> {
    pub const UNDEFINED: Datum<'static> = Datum::Value(Cow::Owned(Value::Undefined));

    pub fn borrowed(value: &'a Value) -> Datum<'a> {
        Datum::Value(Cow::Borrowed(value))
    }

    pub fn number(number: f64) -> Datum<'a> {
        Value::Number(number).into()
    }

    pub fn bool(value: bool) -> Datum<'a> {
        Value::Bool(value).into()
    }

    /// Its JSON type; `None` for undefined.
    pub fn kind(&self) -> Option<Kind> {
        match self {
            Datum::Node(node) => Some(node.kind()),
            Datum::Value(value) => value.kind(),
        }
    }

    pub fn is_undefined(&self) -> bool {
        self.kind().is_none()
    }

    pub fn is_true(&self) -> bool {
        self.as_bool() == Some(true)
    }

    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Datum::Node(node) => node.as_bool(),
            Datum::Value(value) => value.as_bool(),
        }
    }

    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Datum::Node(node) => node.as_f64(),
            Datum::Value(value) => value.as_f64(),
        }
    }

    pub fn as_str(&self) -> Option<Cow<'_, str>> {
        match self {
            Datum::Node(node) => node.as_str(),
            Datum::Value(value) => value.as_str().map(Cow::Borrowed),
        }
    }

    /// The property of this name, or undefined.
    pub fn get(self, name: &str) -> Datum<'a> {
        match self {
            Datum::Node(node) => node.get(name).map_or(Datum::UNDEFINED, Datum::Node),
            Datum::Value(Cow::Borrowed(value)) => Datum::borrowed(value.get(name)),
            Datum::Value(Cow::Owned(value)) => value.get(name).clone().into(),
        }
    }

    /// The element at this index, or undefined.
    pub fn at(self, index: usize) -> Datum<'a> {
        match self {
            Datum::Node(node) => node.at(index).map_or(Datum::UNDEFINED, Datum::Node),
            Datum::Value(Cow::Borrowed(value)) => Datum::borrowed(value.at(index)),
            Datum::Value(Cow::Owned(value)) => value.at(index).clone().into(),
        }
    }

    /// The elements of an array; `None` for everything else.
    pub fn elements(&self) -> Option<Vec<Datum<'a>>> {
        match self {
            Datum::Node(node) if node.kind() == Kind::Array => {
                Some(node.elements().map(Datum::Node).collect())
            }
            Datum::Node(_) => None,
            Datum::Value(Cow::Borrowed(value)) => {
                Some(value.as_array()?.iter().map(Datum::borrowed).collect())
            }
            Datum::Value(Cow::Owned(value)) => {
                Some(value.as_array()?.iter().map(|v| v.clone().into()).collect())
            }
        }
    }

    /// An owned copy, cheap unless it is a node.
    pub fn to_value(&self) -> Value {
        match self {
            Datum::Node(node) => node.to_value(),
            Datum::Value(value) => Value::clone(value),
        }
    }

    /// Equality of JSON values. Primitives are compared where they are.
    pub fn deep_eq(&self, other: &Datum<'_>) -> bool {
        match (self.kind(), other.kind()) {
            (a, b) if a != b => false,
            (Some(Kind::Null) | None, _) => true,
            (Some(Kind::Bool), _) => self.as_bool() == other.as_bool(),
            (Some(Kind::Number), _) => self.as_f64() == other.as_f64(),
            (Some(Kind::String), _) => self.as_str() == other.as_str(),
            (Some(Kind::Array | Kind::Object), _) => self.to_value().deep_eq(&other.to_value()),
        }
    }

    /// The order of two primitives of one type; `None` for anything else.
    pub fn partial_compare(&self, other: &Datum<'_>) -> Option<Ordering> {
        match (self.kind()?, other.kind()?) {
            (a, b) if a != b => None,
            (Kind::Null, _) => Some(Ordering::Equal),
            (Kind::Bool, _) => self.as_bool().partial_cmp(&other.as_bool()),
            (Kind::Number, _) => self.as_f64()?.partial_cmp(&other.as_f64()?),
            (Kind::String, _) => Some(self.as_str()?.as_bytes().cmp(other.as_str()?.as_bytes())),
            (Kind::Array | Kind::Object, _) => None,
        }
    }
}

impl From<Value> for Datum<'_> {
    fn from(value: Value) -> Self {
        Datum::Value(Cow::Owned(value))
    }
}
