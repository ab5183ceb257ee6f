//! The keys an item needs besides its body and feed entry, as pure functions.
//!
//! What a version contributes to the index is derived from its body once ([`Derived`]); a write
//! applies the difference of two lists of keys, so replacing an item with an equal body costs no
//! index writes. `verify` calls the same functions and compares with what is stored.

use bytes::Bytes;
use index::Terms;
use item::{Node, Ttl};
use model::container::path::PropertyPath;
use model::partition_key::{Component, PartitionKey};

use crate::keys::Place;
use crate::shape::{LogicalKey, Shape};

/// Longest run of unique-key values kept in a key as it is; longer ones are hashed.
const UNIQUE_BYTES_MAX: usize = 1024;

/// What the body of a version contributes to the index under the policy in force. Deriving it is
/// most of the work of a write, so it is done once and used for keys, uniqueness and charge.
pub struct Derived {
    /// The index terms.
    pub terms: Terms,
    /// One term per composite index.
    pub composites: Terms,
    /// A term per cell in which a geometry lies.
    pub spatials: Terms,
    /// One term per token of each text with a full-text index.
    pub texts: Terms,
    /// The values of each unique key. Missing, null and non-scalar all count as null. Long values
    /// end in a hash: whoever finds an equal key compares the items.
    pub uniques: Vec<Vec<u8>>,
}

impl Derived {
    /// Reads a body.
    pub fn of(shape: &Shape, root: Node<'_>) -> Derived {
        let uniques = shape.definition.unique_keys.iter();
        Derived {
            uniques: uniques
                .map(|unique| shortened(exact_unique_values(&unique.paths, root)))
                .collect(),
            ..Derived::under(&shape.policy, root)
        }
    }

    /// What it contributes under a policy, without unique keys.
    pub fn under(policy: &index::Policy, root: Node<'_>) -> Derived {
        Derived {
            terms: policy.terms(root),
            composites: policy.composite_terms(root),
            spatials: policy.spatial_terms(root),
            texts: policy.text_terms(root),
            uniques: Vec::new(),
        }
    }
}

/// One version of an item, as far as its keys depend on more than its body.
#[derive(Clone, Copy)]
pub struct Version {
    /// Its ordinal.
    pub ordinal: u64,
    /// Its last write, in seconds since 1970.
    pub ts: u32,
    /// Its own time to live.
    pub ttl: Ttl,
    /// Whether queries shall find it.
    pub is_indexed: bool,
}

/// The terms by which a version is found and counted; `None` if it is not indexed.
pub fn indexed_terms<'a>(
    shape: &Shape,
    is_indexed: bool,
    derived: &'a Derived,
) -> Option<&'a Terms> {
    (is_indexed && shape.policy.is_consistent()).then_some(&derived.terms)
}

/// All keys of `Space::Term` that a version has under the policy in force. Sorted, no duplicates.
pub fn term_keys(
    shape: &Shape,
    place: &Place,
    key: &LogicalKey,
    version: Version,
    derived: &Derived,
) -> Vec<Bytes> {
    let mut keys = Vec::with_capacity(derived.terms.len() + derived.uniques.len() + 4);
    if let Some(terms) = indexed_terms(shape, version.is_indexed, derived) {
        let index = [terms, &derived.composites, &derived.spatials, &derived.texts];
        push_terms(place, version, index, &mut keys);
    }
    if let Ttl::Seconds(seconds) = version.ttl {
        keys.push(place.expiry(version.ts.saturating_add(seconds), version.ordinal));
    }
    for (number, values) in derived.uniques.iter().enumerate() {
        keys.push(place.unique(number as u8, &key.bytes, values, version.ordinal));
    }
    sorted(keys)
}

/// All keys that a version may have while policies are being changed (P3).
pub fn possible_term_keys(
    shape: &Shape,
    place: &Place,
    key: &LogicalKey,
    version: Version,
    (root, derived): (Node<'_>, &Derived),
) -> Vec<Bytes> {
    let mut keys = term_keys(shape, place, key, version, derived);
    for policy in shape.retired.iter().filter(|p| version.is_indexed && p.is_consistent()) {
        let (terms, composites) = (policy.terms(root), policy.composite_terms(root));
        let (spatials, texts) = (policy.spatial_terms(root), policy.text_terms(root));
        push_terms(place, version, [&terms, &composites, &spatials, &texts], &mut keys);
    }
    sorted(keys)
}

fn push_terms(
    place: &Place,
    version: Version,
    [terms, composites, spatials, texts]: [&Terms; 4],
    keys: &mut Vec<Bytes>,
) {
    let ordinal = version.ordinal;
    keys.extend(terms.iter().map(|term| place.term(term, ordinal)));
    keys.push(place.term(&index::ts_term(version.ts), ordinal));
    keys.extend(composites.iter().map(|term| place.composite(term, ordinal)));
    keys.extend(spatials.iter().map(|term| place.spatial(term, ordinal)));
    keys.extend(texts.iter().map(|term| place.text(term, ordinal)));
}

fn sorted(mut keys: Vec<Bytes>) -> Vec<Bytes> {
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// The values at the paths of one unique key, in full.
pub fn exact_unique_values(paths: &[PropertyPath], root: Node<'_>) -> Vec<u8> {
    let value = |path: &PropertyPath| scalar(root.path(path.segments().iter().map(String::as_str)));
    PartitionKey(paths.iter().map(value).collect()).to_bytes()
}

fn shortened(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes.len() > UNIQUE_BYTES_MAX {
        let hash = index::hash128(&bytes);
        bytes.truncate(UNIQUE_BYTES_MAX - 16);
        bytes.extend_from_slice(&hash.to_be_bytes());
    }
    bytes
}

fn scalar(node: Option<Node<'_>>) -> Component {
    let value = node.and_then(|node| {
        let bool = || node.as_bool().map(Component::Bool);
        let number = || node.as_f64().map(Component::Number);
        bool().or_else(number).or_else(|| node.as_str().map(|s| Component::String(s.into_owned())))
    });
    value.unwrap_or(Component::Null)
}

/// What to remove and what to add to get from one sorted list of keys to another.
pub fn difference(old: &[Bytes], new: &[Bytes]) -> (Vec<Bytes>, Vec<Bytes>) {
    let missing = |from: &[Bytes], of: &[Bytes]| -> Vec<Bytes> {
        from.iter().filter(|key| of.binary_search(key).is_err()).cloned().collect()
    };
    (missing(old, new), missing(new, old))
}
