//! A JSON text of any kind that is not going to be an item: a request body to be taken apart.

use crate::builder::{Settings, Tape};
use crate::error::IngestError;
use crate::node::Node;
use crate::scan;

/// A parsed JSON text: canonical, with the same access to its values as an item.
///
/// A batch, for instance, is parsed once; each operation's body is then
/// `Draft::parse(node.raw().as_bytes())`.
#[derive(Clone, Debug)]
pub struct Json {
    tape: Tape,
}

impl Json {
    /// Parses one JSON value of any kind, by the rules of [`Draft::parse`](crate::Draft::parse)
    /// but without its size limit and without dropping system properties.
    pub fn parse(text: &[u8]) -> Result<Json, IngestError> {
        scan::parse(text, Settings::PLAIN, 0).map(|tape| Json { tape })
    }

    /// The outermost value.
    pub fn root(&self) -> Node<'_> {
        self.tape.root()
    }
}
