//! Why a query did not run.

use crate::{Path, SourceError};

/// Why a query did not run. All but the last two are the client's mistake or ours to extend: a
/// 400 with a sentence.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text is wrong, at a place in it.
    #[error(transparent)]
    Text(#[from] sql::Error),
    /// The query is right but this server does not execute it yet.
    #[error("The query uses {what}, which this server does not support yet.")]
    Unsupported {
        /// What it is, as the middle of a sentence.
        what: String,
        /// Where it stands.
        span: Option<sql::Span>,
    },
    /// ORDER BY a path without a range index.
    #[error("The index path corresponding to the specified order-by item is excluded.")]
    OrderByNotIndexed {
        /// The path.
        path: Path,
    },
    /// ORDER BY several paths without a composite index for them.
    #[error(
        "The order by query does not have a corresponding composite index that it can be served from."
    )]
    NoCompositeIndex,
    /// The query is refused while it runs: a result JSON cannot hold, a scalar subquery with
    /// several rows.
    #[error("{0}")]
    Refused(&'static str),
    /// A user-defined function failed.
    #[error("{0}")]
    Function(String),
    /// The continuation belongs to another query, or is damaged.
    #[error("The continuation does not belong to this query.")]
    WrongState,
    /// A blocking operator holds more than its memory bound.
    #[error("The query needs more than {bytes_max} bytes of memory.")]
    TooLarge {
        /// The bound.
        bytes_max: usize,
    },
    /// A blocking operator or a user-defined function did not end before the deadline, so there is
    /// no page to return.
    #[error("The query did not finish in time.")]
    Deadline,
    /// The source failed.
    #[error("source failed")]
    Source(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// Something we do not execute yet, at a place.
    pub(crate) fn unsupported(what: impl Into<String>, span: sql::Span) -> Error {
        Error::Unsupported { what: what.into(), span: Some(span) }
    }

    /// The text that goes into the message of a 400, in the one of the two forms the service has
    /// for it: `{"errors":[…]}` with code and place, or `{"Errors":["…"]}`.
    pub fn to_document(&self) -> String {
        if let Error::Text(error) = self {
            return error.to_document();
        }
        let mut text = String::from(r#"{"Errors":["#);
        sql::quote(&mut text, &self.to_string());
        text.push_str("]}");
        text
    }
}

impl From<SourceError> for Error {
    fn from(error: SourceError) -> Error {
        match error {
            SourceError::Deadline => Error::Deadline,
            SourceError::Failed(error) => Error::Source(error),
        }
    }
}
