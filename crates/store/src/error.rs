//! Why a store could not do what it was asked.

use std::time::Duration;

/// The result of a store operation.
pub type Result<T> = std::result::Result<T, Error>;

/// Each variant is something the caller can act on.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// Key number `index` among the preconditions did not hold. Nothing was written.
    #[error("precondition {index} does not hold")]
    PreconditionFailed {
        /// Position in `Commit::preconditions`.
        index: usize,
    },
    /// A concurrent commit won. The same commit may succeed if sent again.
    #[error("conflicting commit")]
    Conflict,
    /// The queue is full; come back later.
    #[error("store is busy")]
    Busy {
        /// When trying again is worthwhile.
        retry_after: Duration,
    },
    /// The connection broke while committing; ask `resolve`.
    #[error("outcome of the commit is unknown")]
    Unknown,
    /// A key, value or commit is over `limits()`.
    #[error("{what} of {bytes} bytes is over the limit of {bytes_max}")]
    TooLarge {
        /// "key", "value" or "commit".
        what: &'static str,
        /// Its size.
        bytes: usize,
        /// What is allowed.
        bytes_max: usize,
    },
    /// An earlier write to disk failed. Writes stop until the process is restarted.
    #[error("the store stopped writing after a fault: {reason}")]
    Poisoned {
        /// What the disk said.
        reason: String,
    },
    /// The data directory cannot be used; the sentence says what to do.
    #[error("{0}")]
    Unusable(String),
    /// The disk or the engine failed.
    #[error("storage fault: {0}")]
    Fault(String),
    /// The store is closing.
    #[error("the store is closed")]
    Closed,
}
