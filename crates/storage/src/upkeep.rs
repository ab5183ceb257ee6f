//! The keys an item needs besides its body and feed entry, as a pure function.
//!
//! A write applies the difference of two such lists, so replacing an item with an equal body costs
//! no index writes. `verify` calls the same function and compares with what is stored.

use bytes::Bytes;
use item::{Node, Ttl};
use model::container::path::PropertyPath;
use model::partition_key::{Component, PartitionKey};

use crate::keys::Place;
use crate::shape::{LogicalKey, Shape};

/// Longest run of unique-key values kept in a key as it is; longer ones are hashed.
const UNIQUE_BYTES_MAX: usize = 1024;

/// One version of an item, as far as its keys depend on it.
#[derive(Clone, Copy)]
pub struct Version<'a> {
    /// The body.
    pub root: Node<'a>,
    /// Its ordinal.
    pub ordinal: u64,
    /// Its last write, in seconds since 1970.
    pub ts: u32,
    /// Its own time to live.
    pub ttl: Ttl,
    /// Whether queries shall find it.
    pub is_indexed: bool,
}

/// All keys of `Space::Term` that a version has under the policy in force. Sorted, no duplicates.
pub fn term_keys(
    shape: &Shape,
    place: &Place,
    key: &LogicalKey,
    version: Version<'_>,
) -> Vec<Bytes> {
    let mut keys = Vec::with_capacity(24);
    policy_keys(&shape.policy, place, version, &mut keys);
    other_keys(shape, place, key, version, &mut keys);
    sorted(keys)
}

/// All keys that a version may have while policies are being changed (P3).
pub fn possible_term_keys(
    shape: &Shape,
    place: &Place,
    key: &LogicalKey,
    version: Version<'_>,
) -> Vec<Bytes> {
    let mut keys = term_keys(shape, place, key, version);
    for policy in &shape.retired {
        policy_keys(policy, place, version, &mut keys);
    }
    sorted(keys)
}

fn sorted(mut keys: Vec<Bytes>) -> Vec<Bytes> {
    keys.sort_unstable();
    keys.dedup();
    keys
}

fn policy_keys(policy: &index::Policy, place: &Place, version: Version<'_>, keys: &mut Vec<Bytes>) {
    if !version.is_indexed || !policy.is_consistent() {
        return;
    }
    let ordinal = version.ordinal;
    keys.extend(policy.terms(version.root).iter().map(|term| place.term(term, ordinal)));
    keys.push(place.term(&index::ts_term(version.ts), ordinal));
    let composites = policy.composite_terms(version.root);
    keys.extend(composites.iter().map(|term| place.composite(term, ordinal)));
}

fn other_keys(
    shape: &Shape,
    place: &Place,
    key: &LogicalKey,
    version: Version<'_>,
    keys: &mut Vec<Bytes>,
) {
    if let Ttl::Seconds(seconds) = version.ttl {
        keys.push(place.expiry(version.ts.saturating_add(seconds), version.ordinal));
    }
    for (number, values) in unique_values(shape, version.root).iter().enumerate() {
        keys.push(place.unique(number as u8, &key.bytes, values, version.ordinal));
    }
}

/// The values of each unique key of the container. Missing, null and non-scalar all count as null.
/// Long values end in a hash: whoever finds an equal key compares the items.
pub fn unique_values(shape: &Shape, root: Node<'_>) -> Vec<Vec<u8>> {
    let uniques = shape.definition.unique_keys.iter();
    uniques.map(|unique| shortened(exact_unique_values(&unique.paths, root))).collect()
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
