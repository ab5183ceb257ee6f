//! Partial updates of an item: reading a patch, and applying it.
//!
//! A patch is at most [`OPERATIONS_MAX`] operations, applied in order to a copy of the item; the
//! first that fails fails them all. The condition is query text over the current item, which the
//! engine evaluates before it applies anything.
//!
//! (P1) No operation touches `id`, the partition key or a system property, nor anything they are
//!      inside of or that is inside of them.
//! (P2) A patched item passes the same limits as one sent whole.

mod apply;
mod parse;
mod pointer;

pub use apply::apply;
pub use parse::parse;
pub use pointer::Pointer;

use crate::error::IngestError;
use crate::value::Value;

/// Operations in one patch.
pub const OPERATIONS_MAX: usize = 10;

/// A checked request to change some properties of an item.
#[derive(Clone, Debug, PartialEq)]
pub struct Patch {
    /// What to do, in order: 1 to [`OPERATIONS_MAX`].
    pub operations: Vec<Operation>,
    /// `from c where …`: the patch is applied only to an item for which this holds.
    pub condition: Option<String>,
}

/// One step of a patch.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// Creates or overwrites a member; inserts into an array.
    Add {
        /// The member or array position.
        path: Pointer,
        /// What to put there.
        value: Value,
    },
    /// Creates or overwrites a member or array element; appends to an array.
    Set {
        /// The member or array position.
        path: Pointer,
        /// What to put there.
        value: Value,
    },
    /// Overwrites what is there.
    Replace {
        /// The member or element; it must exist.
        path: Pointer,
        /// What to put there.
        value: Value,
    },
    /// Takes out what is there; array elements close up.
    Remove {
        /// The member or element; it must exist.
        path: Pointer,
    },
    /// Adds to a number; an absent member is created.
    Increment {
        /// The member or element; it must be a number if it exists.
        path: Pointer,
        /// How much to add.
        by: f64,
    },
    /// Takes a value out and adds it elsewhere.
    Move {
        /// Where the value is; it must exist.
        from: Pointer,
        /// Where to add it, once it is taken out; not inside `from`.
        path: Pointer,
    },
}

/// Why a patch was refused. All but [`PatchError::Result`] name the operation, counted from zero.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PatchError {
    /// The body is not a patch at all.
    #[error("{what}")]
    Body {
        /// What it should have been.
        what: &'static str,
    },
    /// There are no operations, or too many.
    #[error("a patch has 1 to {OPERATIONS_MAX} operations, this one {count}")]
    Count {
        /// How many there are.
        count: usize,
    },
    /// An operation is none of those supported.
    #[error("operation {index}: '{op}' is not supported")]
    UnknownOperation {
        /// Which operation.
        index: usize,
        /// What it calls itself.
        op: String,
    },
    /// An operation lacks something or has it in the wrong form.
    #[error("operation {index}: {what}")]
    Operation {
        /// Which operation.
        index: usize,
        /// What it should have been.
        what: &'static str,
    },
    /// An operation touches what only a replace or the service may set.
    #[error("operation {index}: '{path}' cannot be patched")]
    Protected {
        /// Which operation.
        index: usize,
        /// The path it may not touch.
        path: String,
    },
    /// An operation does not fit the item as it is.
    #[error("operation {index}: {what} at '{path}'")]
    Target {
        /// Which operation.
        index: usize,
        /// The path it failed at.
        path: String,
        /// What is wrong there.
        what: &'static str,
    },
    /// The patched item would not be valid.
    #[error(transparent)]
    Result(#[from] IngestError),
}
