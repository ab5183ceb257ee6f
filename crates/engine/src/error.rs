//! Why an operation did not happen. Each variant is an outcome a client can act on.

use std::time::Duration;

use model::RequestCharge;
use model::session::Lsn;

use crate::receipt::Receipt;

/// The result of an engine operation.
pub type Result<T> = std::result::Result<T, Error>;

/// See the module header. Nothing here is a status code; the gateway's table chooses one.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request says something that can never be right; the sentence says what.
    #[error("{0}")]
    Invalid(String),
    /// The query text is wrong; the document lists errors with their positions.
    #[error("{0}")]
    InvalidQuery(String),
    /// We know what is asked for and do not offer it.
    #[error("{0}")]
    NotSupported(String),
    /// The partition key of the request is not that of the item, or the item's would change.
    #[error("PartitionKey extracted from document doesn't match the one specified in the header.")]
    PartitionKeyMismatch,
    /// The operation needs a partition key and the request has none.
    #[error("PartitionKey value must be supplied for this operation.")]
    PartitionKeyMissing,
    /// The client knows another container under this name and must look again.
    #[error("The container was re-created: its resource id is no longer {sent}.")]
    ContainerRecreated {
        /// The resource id the client sent.
        sent: String,
    },
    /// Allowed to nobody with these credentials, or to nobody at all.
    #[error("{0}")]
    Forbidden(String),
    /// The logical partition has reached its largest size.
    #[error("Partition key reached maximum size of 20 GB.")]
    LogicalPartitionFull,
    /// The item, or the resource named last in the path, is absent.
    #[error("Entity with the specified id does not exist in the system.")]
    NotFound,
    /// The database, container or user above it is absent; clients refresh their caches.
    #[error("Owner resource does not exist")]
    OwnerNotFound,
    /// The client has seen more of this partition than we have.
    #[error("The read session is not available for the input session token.")]
    SessionNotAvailable {
        /// What the client has seen.
        seen: Lsn,
        /// What we have.
        at: Lsn,
    },
    /// The deadline passed; nothing was changed.
    #[error("The operation took longer than its deadline.")]
    Timeout,
    /// A script ended with an exception; everything it did is undone.
    #[error("{}", .0.message)]
    Script(Box<ScriptError>),
    /// A write was refused whose triggers had worked for it already.
    #[error("{}", .0.error)]
    AfterTriggers(Box<RefusedError>),
    /// The id is taken.
    #[error("Entity with the specified id already exists in the system.")]
    Conflict,
    /// Another item of the logical partition has the same unique key.
    #[error("Unique index constraint violation.")]
    UniqueKeyConflict,
    /// The physical partition is gone: it has split, or never was.
    #[error(
        "The partition key range '{id}' no longer exists. Refresh the ranges of the container."
    )]
    RangeGone {
        /// The range id the client sent.
        id: String,
    },
    /// The etag is no longer current.
    #[error("One of the specified pre-condition is not met.")]
    PreconditionFailed,
    /// The condition of a patch is false for the item.
    #[error("The condition of the patch is not met by the item.")]
    PatchConditionFailed,
    /// An item, request or transaction is over its limit; the sentence says which.
    #[error("{0}")]
    TooLarge(String),
    /// Another change of the same kind is under way.
    #[error("{0}")]
    Locked(String),
    /// Provisioned throughput is spent.
    #[error("Request rate is large. More Request Units may be needed, so no changes were made.")]
    Throttled {
        /// When to come back.
        retry_after: Duration,
    },
    /// A concurrent transaction won; the same request may succeed if sent again.
    #[error("Conflicting request to resource has been attempted. Retry to avoid conflicts.")]
    RetryWith,
    /// The server is too busy or going down; nothing was changed.
    #[error("The service is currently unavailable. Retry after a while.")]
    Unavailable,
    /// Stored bytes contradict the format, or the disk failed. Never guessed around.
    #[error("storage fault: {0}")]
    Fault(String),
}

/// A refusal, and what it cost to get there.
#[derive(Debug)]
pub struct RefusedError {
    /// Why.
    pub error: Error,
    /// The price of what was done.
    pub charge: RequestCharge,
    /// What the price is made of, if that was asked for.
    pub receipt: Option<Box<Receipt>>,
}

/// How a script ended.
#[derive(Debug)]
pub struct ScriptError {
    /// The number of the error that escaped, 0 if it had none.
    pub number: u32,
    /// What it said, and where in the script.
    pub message: String,
    /// What the script logged.
    pub log: String,
    /// The price of what it did.
    pub charge: RequestCharge,
    /// What the price is made of, if that was asked for.
    pub receipt: Option<Box<Receipt>>,
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Error {
        match error {
            store::Error::Conflict | store::Error::PreconditionFailed { .. } => Error::RetryWith,
            store::Error::Busy { .. } | store::Error::Closed => Error::Unavailable,
            store::Error::TooLarge { what, bytes, bytes_max } => Error::TooLarge(format!(
                "The {what} of this transaction has {bytes} bytes; the limit is {bytes_max}. \
                 Split it into smaller transactions."
            )),
            error @ (store::Error::Unknown
            | store::Error::Poisoned { .. }
            | store::Error::Unusable(_)
            | store::Error::Fault(_)) => Error::Fault(error.to_string()),
        }
    }
}
