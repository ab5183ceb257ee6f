//! Why storage could not do what it was asked.

/// The result of a storage operation.
pub type Result<T> = std::result::Result<T, Error>;

/// Each variant is something the engine can act on.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The store refused or failed.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// Stored bytes contradict the format.
    #[error("damaged data in {space:?} at {key}: {what}")]
    Corrupt {
        /// Where.
        space: store::Space,
        /// The key, in hex.
        key: String,
        /// What is wrong with it.
        what: String,
    },
    /// Another item of the logical partition has the same unique key.
    #[error("unique key number {index} is taken")]
    UniqueKey {
        /// Which of the container's unique keys.
        index: usize,
    },
    /// The id is taken in this logical partition.
    #[error("id is taken")]
    IdTaken,
    /// The deadline passed.
    #[error("deadline passed")]
    Deadline,
}

impl Error {
    pub(crate) fn corrupt(space: store::Space, key: &[u8], what: impl ToString) -> Error {
        let key = key.iter().map(|b| format!("{b:02x}")).collect();
        Error::Corrupt { space, key, what: what.to_string() }
    }
}
