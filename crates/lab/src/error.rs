//! Why a run did not come to an end.

/// Why a run did not come to an end.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server did not do what it was asked.
    #[error("{what}")]
    Request {
        /// What was asked.
        what: String,
        /// Its answer, or that there was none.
        #[source]
        source: client::Error,
    },
    /// A step cannot be carried out with the values it got.
    #[error("{what}: {message}")]
    Step {
        /// Which one.
        what: String,
        /// Why not.
        message: String,
    },
    /// A database with the name of this run exists.
    #[error("the database {0} exists already; delete it, or let --replace do so")]
    Exists(String),
    /// Pipelines cause each other changes without end.
    #[error("the pipelines of model {0} are never done: they cause each other changes")]
    Endless(String),
    /// Somebody else has the lease of a pipeline.
    #[error("the pipeline {0} is being run by another process")]
    Leased(String),
    /// Loaded data could not be brought to rest.
    #[error("the server does not come to rest: {0}")]
    Unsettled(String),
}
