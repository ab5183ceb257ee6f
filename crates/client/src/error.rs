//! Why a request got no useful answer.

use std::time::Duration;

use crate::Reply;

/// Why a request got no useful answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server answered that it did not do it. Nothing has changed.
    #[error("{0}")]
    Refused(Box<Reply>),
    /// There is no answer. Whether the server did it is not known.
    #[error("no answer from the server")]
    NoAnswer(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// There was no answer in time. Whether the server did it is not known.
    #[error("no answer within {0:?}")]
    Timeout(Duration),
    /// The endpoint is not of the form `http://host:port`.
    #[error("{0:?} is no endpoint; write it like http://127.0.0.1:8081")]
    BadEndpoint(String),
    /// The text is no account key.
    #[error("an account key is base64 text")]
    BadKey,
    /// The answer is not what the protocol says.
    #[error("the answer is not understood: {0}")]
    Malformed(String),
}

impl Error {
    /// The status of a refusal.
    pub fn status(&self) -> Option<u16> {
        match self {
            Error::Refused(reply) => Some(reply.status),
            Error::NoAnswer(_) | Error::Timeout(_) => None,
            Error::BadEndpoint(_) | Error::BadKey | Error::Malformed(_) => None,
        }
    }
}
