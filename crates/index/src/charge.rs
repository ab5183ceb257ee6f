//! How many terms an item is charged for.
//!
//! The charge counts differently from the index: two per leaf, one per partition key path, one per
//! composite index and unique key, one per token of a text. A leaf is a distinct (path, value) with
//! a scalar, however long it is, or an empty array or object. The type terms of other arrays and
//! objects, "undefined" and `_ts` are free.

use item::Node;
use model::container::ContainerDefinition;
use model::partition_key::PropertyPath;

use crate::policy::Policy;
use crate::terms::{Terms, merge};

/// The indexed leaves of an item, equal ones counted once. Without an index `id` is still one:
/// the item is found by it.
pub fn leaf_count(policy: &Policy, root: Node<'_>) -> u32 {
    leaves(&policy.terms(root))
}

/// T: the terms an item is charged for when it is created or deleted. `terms` are those of the
/// container's policy.
pub fn charge_terms(definition: &ContainerDefinition, terms: &Terms) -> u32 {
    let is_charged = |path: &&PropertyPath| !path.is_property("id");
    let keys = definition.partition_key.paths.iter().filter(is_charged).count();
    let others = keys + definition.indexing.composite.len() + definition.unique_keys.len();
    2 * leaves(terms) + others as u32
}

/// Δ: the terms a replacement is charged for, those removed and those added. Each side is the
/// terms and composite terms of an item; a changed unique key adds two, which the caller knows.
pub fn charge_difference(old: (&Terms, &Terms), new: (&Terms, &Terms)) -> u32 {
    let (mut leaves, mut composites) = (0, 0);
    merge(old.0.leaves(), new.0.leaves(), |_, _| leaves += 1);
    let missing = |from: &Terms, of: &Terms| {
        let is_missing = |hash: &&u128| of.long_leaves().binary_search(hash).is_err();
        from.long_leaves().iter().filter(is_missing).count() as u32
    };
    leaves += missing(old.0, new.0) + missing(new.0, old.0);
    merge(old.1.iter(), new.1.iter(), |_, _| composites += 1);
    2 * leaves + composites
}

/// How many terms are on one side only.
pub fn changed_terms(old: &Terms, new: &Terms) -> u32 {
    let mut changed = 0;
    merge(old.iter(), new.iter(), |_, _| changed += 1);
    changed
}

/// An indexed item has at least its id; no terms at all mean no index.
fn leaves(terms: &Terms) -> u32 {
    (terms.leaves().count() + terms.long_leaves().len()).max(1) as u32
}
