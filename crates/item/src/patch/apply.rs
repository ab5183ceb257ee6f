//! Applying a patch to a copy of an item.

use std::sync::Arc;

use super::pointer::index;
use super::{Operation, Patch, PatchError, Pointer};
use crate::draft::Draft;
use crate::node::Node;
use crate::value::Value;
use crate::{IngestError, SYSTEM_PROPERTIES};

const NOT_FOUND: &str = "there is nothing to change";
const NO_PARENT: &str = "there is no object or array to change";
const NO_POSITION: &str = "the array has no such position";
const NOT_A_NUMBER: &str = "only a number can be incremented";
const OVERFLOW: &str = "the number becomes too large";
const INSIDE_ITSELF: &str = "a value cannot be moved into itself";

/// Applies all operations of a patch to an item, or none.
///
/// `protected` are the partition key paths of the container, by segment; `id` and the system
/// properties are protected everywhere. The condition is not looked at.
pub fn apply(
    patch: &Patch,
    item: Node<'_>,
    protected: &[Vec<String>],
) -> Result<Draft, PatchError> {
    let mut root = item.to_value();
    for (operation, index) in patch.operations.iter().zip(0..) {
        check_protected(operation, protected, index)?;
        let change = run(&mut root, operation);
        change.map_err(|Refusal { path, what }| PatchError::Target { index, path, what })?;
    }
    if root.as_object().is_none() {
        return Err(IngestError::NotAnObject.into());
    }
    Ok(Draft::from_value(&root)?)
}

/// P1
fn check_protected(
    operation: &Operation,
    protected: &[Vec<String>],
    index: usize,
) -> Result<(), PatchError> {
    let touches = |path: &&Pointer| {
        let own = path.segments().first().map_or("", String::as_str);
        let is_fixed = own == "id" || SYSTEM_PROPERTIES.contains(&own);
        is_fixed || protected.iter().any(|key| path.touches(key))
    };
    match operation.paths().into_iter().flatten().find(touches) {
        Some(path) => Err(PatchError::Protected { index, path: path.to_string() }),
        None => Ok(()),
    }
}

impl Operation {
    /// The paths it touches.
    fn paths(&self) -> [Option<&Pointer>; 2] {
        match self {
            Operation::Add { path, .. }
            | Operation::Set { path, .. }
            | Operation::Replace { path, .. }
            | Operation::Remove { path }
            | Operation::Increment { path, .. } => [Some(path), None],
            Operation::Move { from, path } => [Some(from), Some(path)],
        }
    }
}

/// An operation that does not fit the item.
struct Refusal {
    path: String,
    what: &'static str,
}

fn refuse(path: &Pointer, what: &'static str) -> Refusal {
    Refusal { path: path.to_string(), what }
}

fn run(root: &mut Value, operation: &Operation) -> Result<(), Refusal> {
    match operation {
        Operation::Add { path, value } => put(root, path, value.clone(), AtIndex::Inserts),
        Operation::Set { path, value } => put(root, path, value.clone(), AtIndex::Overwrites),
        Operation::Replace { path, value } => {
            *find(root, path.segments()).ok_or(refuse(path, NOT_FOUND))? = value.clone();
            Ok(())
        }
        Operation::Remove { path } => take(root, path).map(drop),
        Operation::Increment { path, by } => increment(root, path, *by),
        Operation::Move { from, path } => relocate(root, from, path),
    }
}

/// What putting a value at an existing position of an array does.
#[derive(Clone, Copy, PartialEq)]
enum AtIndex {
    Inserts,
    Overwrites,
}

fn put(root: &mut Value, path: &Pointer, value: Value, at_index: AtIndex) -> Result<(), Refusal> {
    let (parents, last) = path.split();
    match find(root, parents) {
        Some(Value::Object(object)) => {
            Arc::make_mut(object).insert(last, value);
            Ok(())
        }
        Some(Value::Array(elements)) => put_element(Arc::make_mut(elements), last, value, at_index)
            .ok_or_else(|| refuse(path, NO_POSITION)),
        _ => Err(refuse(path, NO_PARENT)),
    }
}

fn put_element(
    elements: &mut Vec<Value>,
    segment: &str,
    value: Value,
    at_index: AtIndex,
) -> Option<()> {
    let at = if segment == "-" { elements.len() } else { index(segment)? };
    if at > elements.len() {
        return None;
    }
    match at_index {
        AtIndex::Overwrites if at < elements.len() => elements[at] = value,
        AtIndex::Inserts | AtIndex::Overwrites => elements.insert(at, value),
    }
    Some(())
}

fn take(root: &mut Value, path: &Pointer) -> Result<Value, Refusal> {
    let (parents, last) = path.split();
    let taken = match find(root, parents) {
        Some(Value::Object(object)) => Arc::make_mut(object).remove(last),
        Some(Value::Array(elements)) => {
            let at = index(last).filter(|&at| at < elements.len());
            at.map(|at| Arc::make_mut(elements).remove(at))
        }
        _ => None,
    };
    taken.ok_or_else(|| refuse(path, NOT_FOUND))
}

fn increment(root: &mut Value, path: &Pointer, by: f64) -> Result<(), Refusal> {
    match find(root, path.segments()) {
        Some(Value::Number(number)) if (*number + by).is_finite() => {
            *number += by;
            Ok(())
        }
        Some(Value::Number(_)) => Err(refuse(path, OVERFLOW)),
        Some(_) => Err(refuse(path, NOT_A_NUMBER)),
        None => create_number(root, path, by),
    }
}

/// Only a member comes into being by being incremented; an array has its positions or not.
fn create_number(root: &mut Value, path: &Pointer, by: f64) -> Result<(), Refusal> {
    match find(root, path.split().0) {
        Some(Value::Object(_)) => put(root, path, Value::Number(by), AtIndex::Inserts),
        Some(Value::Array(_)) => Err(refuse(path, NO_POSITION)),
        _ => Err(refuse(path, NO_PARENT)),
    }
}

/// A move onto itself changes nothing, not even the order of members.
fn relocate(root: &mut Value, from: &Pointer, path: &Pointer) -> Result<(), Refusal> {
    if path.is_inside(from) {
        return Err(refuse(path, INSIDE_ITSELF));
    }
    if path == from {
        return find(root, from.segments()).map(|_| ()).ok_or_else(|| refuse(from, NOT_FOUND));
    }
    let value = take(root, from)?;
    put(root, path, value, AtIndex::Inserts)
}

fn find<'v>(root: &'v mut Value, segments: &[String]) -> Option<&'v mut Value> {
    segments.iter().try_fold(root, |value, segment| match value {
        Value::Object(object) => Arc::make_mut(object).get_mut(segment),
        Value::Array(elements) => Arc::make_mut(elements).get_mut(index(segment)?),
        Value::Undefined | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            None
        }
    })
}
