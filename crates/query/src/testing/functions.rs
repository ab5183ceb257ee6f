//! User-defined functions written in Rust.

use std::cell::RefCell;

use item::{Kind, Object, Value};

use crate::{Argument, BoundQuery, Schema, Udf, UdfError};

/// The functions that queries of tests can call, for one query.
///
/// ```text
/// same(v)       v
/// add(a, b)     the sum of two numbers, two strings in a row, else undefined
/// isLarge(v)    whether a number is above 1; undefined for anything but a number
/// tags(item)    the array `tags` of an object, or an empty one
/// count(…)      how many arguments there are
/// nothing()     undefined
/// infinite()    a number JSON does not have
/// fail(v)       fails, and says so
/// linger(v)     runs out of time
/// ```
#[derive(Debug)]
pub struct TestFunctions {
    names: Vec<String>,
    calls: RefCell<Vec<String>>,
}

impl TestFunctions {
    /// All names.
    pub const NAMES: [&str; 9] =
        ["same", "add", "isLarge", "tags", "count", "nothing", "infinite", "fail", "linger"];

    /// A container that has them.
    pub fn schema() -> Schema {
        let functions = TestFunctions::NAMES.map(str::to_owned).to_vec();
        Schema { functions, ..Schema::default() }
    }

    /// Those of one query.
    pub fn of(query: &BoundQuery) -> TestFunctions {
        TestFunctions { names: query.functions().to_vec(), calls: RefCell::default() }
    }

    /// The calls so far, such as `add(1,2)`.
    pub fn calls(&self) -> Vec<String> {
        self.calls.borrow().clone()
    }
}

impl Udf for TestFunctions {
    fn call(&self, function: usize, arguments: &[Argument<'_>]) -> Result<Value, UdfError> {
        let name = self.names[function].as_str();
        let values: Vec<Value> = arguments.iter().map(value).collect();
        let text: Vec<String> = values.iter().map(Value::to_json).collect();
        self.calls.borrow_mut().push(format!("{name}({})", text.join(",")));
        assert!(values.iter().all(|value| !value.is_undefined()), "{name} of undefined");
        match name {
            "fail" => Err(UdfError::Failed(format!("fail({}) failed.", text.join(",")))),
            "linger" => Err(UdfError::Deadline),
            _ => Ok(result(name, &values)),
        }
    }
}

fn value(argument: &Argument<'_>) -> Value {
    match argument {
        Argument::Node(node) => node.to_value(),
        Argument::Value(value) => Value::clone(value),
    }
}

fn result(name: &str, values: &[Value]) -> Value {
    match (name, values) {
        ("same", [value]) => value.clone(),
        ("add", [Value::Number(a), Value::Number(b)]) => Value::Number(a + b),
        ("add", [Value::String(a), Value::String(b)]) => Value::from(format!("{a}{b}")),
        ("isLarge", [Value::Number(number)]) => Value::Bool(*number > 1.0),
        ("tags", [Value::Object(object)]) => tags(object),
        ("count", values) => Value::Number(values.len() as f64),
        ("infinite", _) => Value::Number(f64::INFINITY),
        _ => Value::Undefined,
    }
}

fn tags(object: &Object) -> Value {
    let tags = object.get("tags");
    if tags.kind() == Some(Kind::Array) { tags.clone() } else { Value::array(Vec::new()) }
}
