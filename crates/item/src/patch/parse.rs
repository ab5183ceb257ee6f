//! From a request body to a checked patch.

use super::{OPERATIONS_MAX, Operation, Patch, PatchError, Pointer};
use crate::value::Value;

/// Reads a patch: a bare array of operations, or `{"condition": …, "operations": […]}`.
pub fn parse(body: &Value) -> Result<Patch, PatchError> {
    let operations = if body.as_array().is_some() { body } else { body.get("operations") };
    let what = "a patch must be an array of operations or an object with 'operations'";
    let operations = operations.as_array().ok_or(PatchError::Body { what })?;
    if operations.is_empty() || operations.len() > OPERATIONS_MAX {
        return Err(PatchError::Count { count: operations.len() });
    }
    let operations = operations.iter().zip(0..).map(|(value, index)| operation(value, index));
    Ok(Patch { operations: operations.collect::<Result<_, _>>()?, condition: condition(body)? })
}

fn condition(body: &Value) -> Result<Option<String>, PatchError> {
    let condition = body.get("condition");
    match condition.as_str() {
        Some(text) => Ok(Some(text.to_owned())),
        None if condition.is_undefined() || condition.is_null() => Ok(None),
        None => Err(PatchError::Body { what: "the condition of a patch must be a string" }),
    }
}

fn operation(value: &Value, index: usize) -> Result<Operation, PatchError> {
    let fields = Fields { value, index };
    let op = value.get("op").as_str().ok_or(fields.refuse("'op' must be a string"))?;
    match op {
        "add" => Ok(Operation::Add { path: fields.path()?, value: fields.value()? }),
        "set" => Ok(Operation::Set { path: fields.path()?, value: fields.value()? }),
        "replace" => Ok(Operation::Replace { path: fields.path()?, value: fields.value()? }),
        "remove" => Ok(Operation::Remove { path: fields.path()? }),
        "incr" => Ok(Operation::Increment { path: fields.path()?, by: fields.number()? }),
        "move" => Ok(Operation::Move { from: fields.from()?, path: fields.path()? }),
        _ => Err(PatchError::UnknownOperation { index, op: op.to_owned() }),
    }
}

/// The fields of an operation, each refused by name.
struct Fields<'a> {
    value: &'a Value,
    index: usize,
}

impl Fields<'_> {
    fn path(&self) -> Result<Pointer, PatchError> {
        let path = self.value.get("path").as_str().and_then(Pointer::parse);
        path.ok_or(self.refuse("'path' must be a JSON pointer such as '/a/b'"))
    }

    fn from(&self) -> Result<Pointer, PatchError> {
        let from = self.value.get("from").as_str().and_then(Pointer::parse);
        from.ok_or(self.refuse("'from' must be a JSON pointer such as '/a/b'"))
    }

    fn value(&self) -> Result<Value, PatchError> {
        let value = self.value.get("value");
        if value.is_undefined() {
            Err(self.refuse("'value' is missing"))
        } else {
            Ok(value.clone())
        }
    }

    fn number(&self) -> Result<f64, PatchError> {
        self.value.get("value").as_f64().ok_or(self.refuse("'value' must be a number"))
    }

    fn refuse(&self, what: &'static str) -> PatchError {
        PatchError::Operation { index: self.index, what }
    }
}
