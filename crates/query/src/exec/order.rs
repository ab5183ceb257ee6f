//! The order of a query as bytes that sort.

use item::Node;

use crate::key;
use crate::{Direction, Path};

/// The keys of an ORDER BY.
#[derive(Clone, Copy)]
pub(super) struct Order<'a> {
    pub keys: &'a [(Path, Direction)],
}

impl Order<'_> {
    /// Bytes that sort as the query wants its rows.
    pub fn key(&self, root: Node<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(root, &mut out);
        out
    }

    /// Appends the key. Arrays are all alike, and so are objects, as in the index.
    pub fn write(&self, root: Node<'_>, out: &mut Vec<u8>) {
        for (path, direction) in self.keys {
            let start = out.len();
            key::write_kind_or_scalar(path.node(root), out);
            if *direction == Direction::Descending {
                out[start..].iter_mut().for_each(|byte| *byte = !*byte);
            }
        }
    }
}
