//! Why a request was not served: what the engine says, and what only HTTP can get wrong.

use std::sync::Arc;

use engine::Container;

/// The result of serving a request.
pub type Result<T> = std::result::Result<T, Failure>;

/// An outcome other than success. `status::status_of` gives each its number.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The engine refused, or failed.
    #[error(transparent)]
    Engine(#[from] engine::Error),
    /// Nobody we know signed this request.
    #[error("{0}")]
    Unauthorized(String),
    /// The resource exists in the protocol, this verb on it does not.
    #[error("The requested verb is not supported for this resource.")]
    MethodNotAllowed,
}

/// An error and, if it is known, the place in a container where it happened: clients learn their
/// session token also from failures.
#[derive(Debug)]
pub struct Failure {
    /// What went wrong.
    pub error: Error,
    /// Where.
    pub place: Option<Box<Place>>,
}

/// A container, and the physical partition of it that was asked.
pub struct Place {
    /// The container.
    pub container: Arc<Container>,
    /// The id of the physical partition; the first one if the request did not get that far.
    pub partition: u32,
}

impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Place({}, {})", self.container.rid(), self.partition)
    }
}

impl Failure {
    /// The failure of an operation on this part of a container.
    pub fn at(error: engine::Error, container: &Arc<Container>, partition: u32) -> Failure {
        Failure::from(error).within(container, partition)
    }

    /// Whether a deadline passed; who has waited that long is not made to wait any longer.
    pub fn is_timeout(&self) -> bool {
        matches!(self.error, Error::Engine(engine::Error::Timeout))
    }

    /// The same failure, known to have happened there.
    pub fn within(self, container: &Arc<Container>, partition: u32) -> Failure {
        let place = Place { container: container.clone(), partition };
        Failure { place: Some(Box::new(place)), ..self }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure { error, place: None }
    }
}

impl From<engine::Error> for Failure {
    fn from(error: engine::Error) -> Failure {
        Error::Engine(error).into()
    }
}

/// The request says something that can never be right.
pub fn invalid(sentence: impl Into<String>) -> Failure {
    engine::Error::Invalid(sentence.into()).into()
}

/// We know what is asked for and do not offer it.
pub fn not_supported(sentence: impl Into<String>) -> Failure {
    engine::Error::NotSupported(sentence.into()).into()
}

/// These credentials do not allow it.
pub fn forbidden(sentence: impl Into<String>) -> Failure {
    engine::Error::Forbidden(sentence.into()).into()
}

/// Nobody we know signed this request.
pub fn unauthorized(sentence: impl Into<String>) -> Failure {
    Error::Unauthorized(sentence.into()).into()
}

/// This verb does not exist there.
pub fn not_allowed<T>() -> Result<T> {
    Err(Error::MethodNotAllowed.into())
}
