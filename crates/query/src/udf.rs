//! User-defined functions: the port through which a query calls them.
//!
//! A query knows of a function no more than its name. It may do anything with its arguments, so it
//! is called for rows only, never while a query is bound or planned, and says nothing to an index.

use item::{Node, Value};

use crate::Error;
use crate::datum::Datum;
use crate::eval::{Env, eval};
use crate::expr::Expr;

/// Calls the functions of a query.
pub trait Udf {
    /// The result of the function at this place in [`functions`](crate::BoundQuery::functions).
    /// No argument is undefined; the result may be.
    fn call(&self, function: usize, arguments: &[Argument<'_>]) -> Result<Value, UdfError>;

    /// Steps that all calls took so far.
    fn fuel(&self) -> u64 {
        0
    }
}

/// An argument of a function, where it lies.
#[derive(Clone, Copy, Debug)]
pub enum Argument<'a> {
    /// Inside an item, or all of it.
    Node(Node<'a>),
    /// Anything else.
    Value(&'a Value),
}

/// Why a function gave no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UdfError {
    /// It failed, and says why to the client.
    #[error("{0}")]
    Failed(String),
    /// It did not end in time.
    #[error("The function did not finish in time.")]
    Deadline,
}

/// For queries that call none.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFunctions;

impl Udf for NoFunctions {
    fn call(&self, _: usize, _: &[Argument<'_>]) -> Result<Value, UdfError> {
        Err(UdfError::Failed("User-defined functions cannot be called here.".to_owned()))
    }
}

/// Arguments of a call that needs no allocation.
const FEW: usize = 4;

static UNDEFINED: Value = Value::Undefined;

/// The result of a call in the current row. With an undefined argument the function is not called.
pub(crate) fn call<'a>(
    function: usize,
    arguments: &'a [Expr],
    env: &mut Env<'a>,
) -> Result<Datum<'a>, Error> {
    if arguments.len() > FEW {
        return call_with_many(function, arguments, env);
    }
    let mut values = [const { Datum::UNDEFINED }; FEW];
    for (value, argument) in values.iter_mut().zip(arguments) {
        *value = eval(argument, env)?;
        if value.is_undefined() {
            return Ok(Datum::UNDEFINED);
        }
    }
    let mut given = [Argument::Value(&UNDEFINED); FEW];
    for (argument, value) in given.iter_mut().zip(&values) {
        *argument = value.as_argument();
    }
    Ok(env.functions.call(function, &given[..arguments.len()])?.into())
}

fn call_with_many<'a>(
    function: usize,
    arguments: &'a [Expr],
    env: &mut Env<'a>,
) -> Result<Datum<'a>, Error> {
    let mut values = Vec::with_capacity(arguments.len());
    for argument in arguments {
        let value = eval(argument, env)?;
        if value.is_undefined() {
            return Ok(Datum::UNDEFINED);
        }
        values.push(value);
    }
    let given: Vec<Argument<'_>> = values.iter().map(Datum::as_argument).collect();
    Ok(env.functions.call(function, &given)?.into())
}

impl Datum<'_> {
    fn as_argument(&self) -> Argument<'_> {
        match self {
            Datum::Node(node) => Argument::Node(*node),
            Datum::Value(value) => Argument::Value(value),
        }
    }
}

impl From<UdfError> for Error {
    fn from(error: UdfError) -> Error {
        match error {
            UdfError::Failed(message) => Error::Function(message),
            UdfError::Deadline => Error::Deadline,
        }
    }
}
