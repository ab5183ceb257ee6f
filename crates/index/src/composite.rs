//! Composite indexes: terms over the combination of several values.
//!
//! ```text
//! {8 bytes of hash of paths and directions}{value}{value}…
//! ```
//!
//! The values of descending paths have all bytes inverted, so one scan in key order serves the
//! ORDER BY of the index, and the same scan backwards its opposite. The hash instead of a number
//! keeps the terms of an index apart from those of another that takes its place in the policy.
//!
//! Strings are cut earlier than in other terms, because up to eight of them share a key.

use item::Node;
use model::container::{CompositeIndex, Order};

use crate::encode::{self, Decoded, Scalar, decode};
use crate::ordinal::hash128;
use crate::path::Path;
use crate::policy::Policy;
use crate::range::{Bounds, TermRange, after, value_range};
use crate::terms::Terms;

/// Bytes of a string that a composite term keeps.
pub const STRING_BYTES_MAX: usize = 128;

const ID_BYTES: usize = 8;

/// One composite index of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Composite {
    id: [u8; ID_BYTES],
    paths: Vec<(Vec<String>, Order)>,
}

impl Composite {
    pub(crate) fn new(index: &CompositeIndex) -> Self {
        let path = |(path, order): &(model::container::PropertyPath, Order)| {
            (path.segments().to_vec(), *order)
        };
        let paths: Vec<_> = index.paths.iter().map(path).collect();
        Composite { id: id_of(&paths), paths }
    }

    /// The front of its terms.
    pub fn id(&self) -> &[u8] {
        &self.id
    }

    /// The property names of each path, and its direction.
    pub fn paths(&self) -> &[(Vec<String>, Order)] {
        &self.paths
    }

    /// Reads the values of a term, without its ordinal; `None` if it is none of this index.
    pub fn decode(&self, term: &[u8]) -> Option<Vec<Decoded>> {
        let mut rest = term.strip_prefix(&self.id)?.to_vec();
        let mut values = Vec::with_capacity(self.paths.len());
        for (_, order) in &self.paths {
            invert_if(*order, &mut rest);
            let (value, used) = decode(&rest)?;
            rest.drain(..used);
            invert_if(*order, &mut rest);
            values.push(value);
        }
        rest.is_empty().then_some(values)
    }

    /// Where the first value ends of which a term does not hold all; `None` if there is none.
    /// `values` is the term without the front of the index.
    pub fn cut(&self, values: &[u8]) -> Option<usize> {
        let mut at = 0;
        for (_, order) in &self.paths {
            let inverted = if *order == Order::Descending { 0xFF } else { 0x00 };
            let (length, is_exact) = encode::extent(values.get(at..)?, inverted)?;
            at += length;
            if !is_exact {
                return Some(at);
            }
        }
        None
    }

    fn write_term(&self, root: Node<'_>, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.id);
        for (path, order) in &self.paths {
            let start = out.len();
            let node = root.path(path.iter().map(String::as_str));
            encode::write_limited(&Scalar::of(node), STRING_BYTES_MAX, out);
            invert_if(*order, &mut out[start..]);
        }
    }
}

impl Policy {
    /// The composite terms of an item: one per composite index, missing values as undefined, of
    /// arrays and objects the type.
    pub fn composite_terms(&self, root: Node<'_>) -> Terms {
        let composites = if self.is_consistent() { self.composites() } else { &[] };
        if composites.is_empty() {
            return Terms::default();
        }
        let mut terms = Terms::with_capacity(composites.len(), 64 * composites.len());
        for composite in composites {
            terms.push(true, |out| composite.write_term(root, out));
        }
        terms.finish()
    }
}

/// The terms with these values at the first paths and a predicate on the path after them. With
/// fewer values than paths, the paths that are left are free.
pub fn composite_range(
    composite: &Composite,
    equal: &[Scalar<'_>],
    last: &Bounds<'_>,
) -> TermRange {
    let mut start = composite.id.to_vec();
    let mut exact = true;
    for (scalar, (_, order)) in equal.iter().zip(&composite.paths) {
        let from = start.len();
        encode::write_limited(scalar, STRING_BYTES_MAX, &mut start);
        invert_if(*order, &mut start[from..]);
        exact &= scalar.is_exact(STRING_BYTES_MAX);
    }
    let Some((_, order)) = composite.paths.get(equal.len()) else {
        return TermRange { end: after(start.clone()), start, exact };
    };
    let values = directed(value_range(last, STRING_BYTES_MAX), *order);
    let end = [&start[..], &values.end].concat();
    start.extend_from_slice(&values.start);
    TermRange { start, end, exact: exact && values.exact }
}

/// Inverting turns `start <= x < end` around. Keys that begin with an end are on its far side, in
/// both directions. No inverted encoding begins with FF, because none begins with 00.
fn directed(mut range: TermRange, order: Order) -> TermRange {
    if order == Order::Ascending {
        return range;
    }
    invert_if(order, &mut range.start);
    invert_if(order, &mut range.end);
    let end = if range.start.is_empty() { vec![0xFF] } else { after(range.start) };
    TermRange { start: after(range.end), end, exact: range.exact }
}

fn invert_if(order: Order, bytes: &mut [u8]) {
    if order == Order::Descending {
        bytes.iter_mut().for_each(|byte| *byte = !*byte);
    }
}

fn id_of(paths: &[(Vec<String>, Order)]) -> [u8; ID_BYTES] {
    let mut bytes = Vec::new();
    for (path, order) in paths {
        bytes.extend(Path::of_properties(path.iter().map(String::as_str)).to_bytes());
        bytes.push(u8::from(*order == Order::Descending));
    }
    ((hash128(&bytes) >> 64) as u64).to_be_bytes()
}
