//! Why a body was refused, and why stored bytes were.

use crate::{DEPTH_MAX, ITEM_BYTES_MAX};

/// Why a body did not become an item. Offsets count bytes from the start of the input.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IngestError {
    /// The input is not JSON: the client has to mend it at `offset`.
    #[error("{what} at byte {offset}")]
    Syntax {
        /// Where the input stops being JSON.
        offset: usize,
        /// What is wrong there, as the beginning of a sentence.
        what: &'static str,
    },
    /// A number is beyond the range of binary64.
    #[error("number at byte {offset} is beyond the range of a 64-bit float")]
    Number {
        /// Where the number begins.
        offset: usize,
    },
    /// Arrays and objects are nested too deeply.
    #[error("nesting exceeds {DEPTH_MAX} levels at byte {offset}")]
    TooDeep {
        /// Where the first array or object too many begins.
        offset: usize,
    },
    /// The canonical text, system properties included, is too long.
    #[error("item of at least {bytes} bytes exceeds the limit of {ITEM_BYTES_MAX} bytes")]
    TooLarge {
        /// How long the text had become when it was refused.
        bytes: usize,
    },
    /// The body is JSON, but not an object.
    #[error("an item must be a JSON object")]
    NotAnObject,
}

impl IngestError {
    pub(crate) fn syntax(offset: usize, what: &'static str) -> IngestError {
        IngestError::Syntax { offset, what }
    }
}

/// Stored bytes that cannot be an item.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("stored item is damaged: {what}")]
pub struct Corrupt {
    /// Which part of the format they contradict.
    pub what: &'static str,
}
