//! Reading typed fields out of a JSON body. An explicit null is an absent property.

use serde_json::{Map, Value};

use super::error::DefinitionError;
use super::path::{PathError, PropertyPath};

/// A JSON object.
pub(super) type Object = Map<String, Value>;
/// What parsing a part yields.
pub(super) type Parsed<T> = Result<T, DefinitionError>;

/// The property, unless it is absent or null.
pub(super) fn get<'a>(object: &'a Object, name: &str) -> Option<&'a Value> {
    object.get(name).filter(|value| !value.is_null())
}

pub(super) fn as_object<'a>(value: &'a Value, property: &'static str) -> Parsed<&'a Object> {
    value.as_object().ok_or(DefinitionError::Invalid { property, expected: "an object" })
}

pub(super) fn as_array<'a>(value: &'a Value, property: &'static str) -> Parsed<&'a [Value]> {
    let array = value.as_array().map(Vec::as_slice);
    array.ok_or(DefinitionError::Invalid { property, expected: "an array" })
}

pub(super) fn as_str<'a>(value: &'a Value, property: &'static str) -> Parsed<&'a str> {
    value.as_str().ok_or(DefinitionError::Invalid { property, expected: "a string" })
}

pub(super) fn as_bool(value: &Value, property: &'static str) -> Parsed<bool> {
    value.as_bool().ok_or(DefinitionError::Invalid { property, expected: "a boolean" })
}

/// An integer within bounds; `5.0` is one.
pub(super) fn as_integer(
    value: &Value,
    property: &'static str,
    (min, max): (i64, i64),
) -> Parsed<i64> {
    let number = value.as_f64().filter(|number| number.fract() == 0.0);
    let number = number.ok_or(DefinitionError::Invalid { property, expected: "an integer" })?;
    match number >= min as f64 && number <= max as f64 {
        true => Ok(number as i64),
        false => Err(DefinitionError::Range { property, min, max }),
    }
}

/// The elements of an optional array.
pub(super) fn list<'a>(
    object: &'a Object,
    name: &str,
    property: &'static str,
) -> Parsed<&'a [Value]> {
    get(object, name).map_or(Ok(&[]), |value| as_array(value, property))
}

/// A required member of an object that is itself an element of a list.
pub(super) fn require<'a>(
    object: &'a Object,
    name: &str,
    property: &'static str,
) -> Parsed<&'a Value> {
    get(object, name).ok_or(DefinitionError::Missing { property })
}

pub(super) fn check_count(
    property: &'static str,
    count: usize,
    (min, max): (usize, usize),
) -> Parsed<()> {
    match (min..=max).contains(&count) {
        true => Ok(()),
        false => Err(DefinitionError::Count { property, count, min, max }),
    }
}

pub(super) fn property_path(value: &Value, property: &'static str) -> Parsed<PropertyPath> {
    let text = as_str(value, property)?;
    PropertyPath::parse(text).map_err(|source| bad_path(property, text, source))
}

pub(super) fn bad_path(property: &'static str, path: &str, source: PathError) -> DefinitionError {
    DefinitionError::Path { property, path: path.to_owned(), source }
}

/// Sets a default in an echoed object.
pub(super) fn fill(object: &mut Object, name: &str, value: impl Into<Value>) {
    if get(object, name).is_none() {
        object.insert(name.to_owned(), value.into());
    }
}
