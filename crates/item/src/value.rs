//! Owned values, for evaluating expressions and building results.
//!
//! Clones are cheap: what is larger than a number is shared. Objects keep the order of their
//! members, because clients see it.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::error::IngestError;
use crate::json::Json;
use crate::node::Kind;
use crate::number::write_number;
use crate::string::write_string;

/// A JSON value, or undefined.
///
/// `==` compares structure, the order of members included; JSON equality is
/// [`deep_eq`](Value::deep_eq).
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    /// No value: a property that is absent, an operation that makes no sense.
    #[default]
    Undefined,
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number
    Number(f64),
    /// A string
    String(Arc<str>),
    /// Elements by position
    Array(Arc<Vec<Value>>),
    /// Members by name
    Object(Arc<Object>),
}

impl Value {
    /// Parses JSON text of any kind, strictly, as [`Json::parse`] does.
    pub fn parse(text: &[u8]) -> Result<Value, IngestError> {
        Json::parse(text).map(|json| json.root().to_value())
    }

    /// A string value.
    pub fn string(text: impl Into<Arc<str>>) -> Value {
        Value::String(text.into())
    }

    /// An array value.
    pub fn array(elements: Vec<Value>) -> Value {
        Value::Array(Arc::new(elements))
    }

    /// An object value.
    pub fn object(object: Object) -> Value {
        Value::Object(Arc::new(object))
    }

    /// Appends canonical JSON text.
    ///
    /// Undefined has none: nothing is written, and undefined members and elements are left out.
    /// Numbers JSON cannot express are `null`, as in JavaScript.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        match self {
            Value::Undefined => {}
            Value::Null => out.extend_from_slice(b"null"),
            Value::Bool(true) => out.extend_from_slice(b"true"),
            Value::Bool(false) => out.extend_from_slice(b"false"),
            Value::Number(number) if number.is_finite() => write_number(out, *number),
            Value::Number(_) => out.extend_from_slice(b"null"),
            Value::String(text) => {
                write_string(out, text);
            }
            Value::Array(elements) => write_array(out, elements),
            Value::Object(object) => object.write_json(out),
        }
    }

    /// Canonical JSON text; empty for undefined.
    pub fn to_json(&self) -> String {
        let mut out = Vec::new();
        self.write_json(&mut out);
        String::from_utf8(out).expect("JSON is written in UTF-8")
    }

    /// Its JSON type; `None` for undefined.
    pub fn kind(&self) -> Option<Kind> {
        match self {
            Value::Undefined => None,
            Value::Null => Some(Kind::Null),
            Value::Bool(_) => Some(Kind::Bool),
            Value::Number(_) => Some(Kind::Number),
            Value::String(_) => Some(Kind::String),
            Value::Array(_) => Some(Kind::Array),
            Value::Object(_) => Some(Kind::Object),
        }
    }

    /// Whether there is no value.
    pub fn is_undefined(&self) -> bool {
        matches!(self, Value::Undefined)
    }

    /// Whether it is `null`.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// The boolean it is.
    pub fn as_bool(&self) -> Option<bool> {
        if let Value::Bool(value) = self { Some(*value) } else { None }
    }

    /// The number it is.
    pub fn as_f64(&self) -> Option<f64> {
        if let Value::Number(number) = self { Some(*number) } else { None }
    }

    /// The string it is.
    pub fn as_str(&self) -> Option<&str> {
        if let Value::String(text) = self { Some(text) } else { None }
    }

    /// The elements of the array it is.
    pub fn as_array(&self) -> Option<&[Value]> {
        if let Value::Array(elements) = self { Some(elements) } else { None }
    }

    /// The object it is.
    pub fn as_object(&self) -> Option<&Object> {
        if let Value::Object(object) = self { Some(object) } else { None }
    }

    /// The member called `name`; undefined if there is none.
    pub fn get(&self, name: &str) -> &Value {
        self.as_object().map_or(&Value::Undefined, |object| object.get(name))
    }

    /// The element at `index`; undefined if there is none.
    pub fn at(&self, index: usize) -> &Value {
        self.as_array().and_then(|elements| elements.get(index)).unwrap_or(&Value::Undefined)
    }
}

fn write_array(out: &mut Vec<u8>, elements: &[Value]) {
    out.push(b'[');
    let mut separator: &[u8] = b"";
    for element in elements.iter().filter(|element| !element.is_undefined()) {
        out.extend_from_slice(separator);
        element.write_json(out);
        separator = b",";
    }
    out.push(b']');
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_json())
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value::Bool(value)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Value {
        Value::Number(number)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::String(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::String(text.into())
    }
}

impl From<Vec<Value>> for Value {
    fn from(elements: Vec<Value>) -> Value {
        Value::array(elements)
    }
}

impl From<Object> for Value {
    fn from(object: Object) -> Value {
        Value::object(object)
    }
}

/// Members in order, each name once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Object {
    members: Vec<(Arc<str>, Value)>,
}

/// Members from which on collecting hashes names instead of comparing them.
const WIDE_MIN: usize = 32;

impl Object {
    /// An object without members.
    pub fn new() -> Object {
        Object::default()
    }

    /// An object without members and with room for some.
    pub fn with_capacity(members: usize) -> Object {
        Object { members: Vec::with_capacity(members) }
    }

    /// How many members there are.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The member called `name`; undefined if there is none. Linear in the number of members.
    pub fn get(&self, name: &str) -> &Value {
        self.position(name).map_or(&Value::Undefined, |at| &self.members[at].1)
    }

    /// The member called `name`, to change in place.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Value> {
        self.position(name).map(|at| &mut self.members[at].1)
    }

    /// Whether there is a member called `name`.
    pub fn contains(&self, name: &str) -> bool {
        self.position(name).is_some()
    }

    /// Sets a member: in place if the name is there, else at the end.
    pub fn insert(&mut self, name: impl Into<Arc<str>>, value: Value) {
        let name = name.into();
        match self.position(&name) {
            Some(at) => self.members[at].1 = value,
            None => self.members.push((name, value)),
        }
    }

    /// Takes a member out; the others keep their order.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        self.position(name).map(|at| self.members.remove(at).1)
    }

    /// The members in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.members.iter().map(|(name, value)| (&**name, value))
    }

    /// Appends a member whose name the caller knows to be new.
    pub(crate) fn push_distinct(&mut self, name: Arc<str>, value: Value) {
        self.members.push((name, value));
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.members.iter().position(|(own, _)| **own == *name)
    }

    fn write_json(&self, out: &mut Vec<u8>) {
        out.push(b'{');
        let mut separator: &[u8] = b"";
        for (name, value) in self.iter().filter(|(_, value)| !value.is_undefined()) {
            out.extend_from_slice(separator);
            write_string(out, name);
            out.push(b':');
            value.write_json(out);
            separator = b",";
        }
        out.push(b'}');
    }
}

/// Where a name is given twice, the last value wins at the place of the first.
impl FromIterator<(Arc<str>, Value)> for Object {
    fn from_iter<I: IntoIterator<Item = (Arc<str>, Value)>>(members: I) -> Object {
        let mut object = Object::new();
        let mut places: HashMap<Arc<str>, usize> = HashMap::new();
        for (name, value) in members {
            if object.len() < WIDE_MIN {
                object.insert(name, value);
                continue;
            }
            if places.is_empty() {
                let names = object.members.iter().map(|(name, _)| name.clone());
                places = names.zip(0..).collect();
            }
            match places.get(&name) {
                Some(&at) => object.members[at].1 = value,
                None => {
                    places.insert(name.clone(), object.len());
                    object.push_distinct(name, value);
                }
            }
        }
        object
    }
}
