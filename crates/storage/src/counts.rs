//! How many items have a value at each path, and how many are indexed at all.
//!
//! A write changes the sums of the paths that appear in its item or vanish from it
//! ([`PathChanges`]); the store merges them, so concurrent writers need no lock. What an item
//! counts at comes from its terms: see `index::path_changes`.
//!
//! INVARIANTS
//! (N1) Writers count the old and the new version under the policy in force, whatever terms the old
//!      one has. So at a path that the policy and all retired ones index (P3), where an item counts
//!      the same under each, the count is right at any time.
//! (N2) At other paths the count is right once [`corrections`] were added, which happens before the
//!      last retired policy goes. From the change of the policy on every write adds what it changes;
//!      what was missing before is therefore the difference, at any one view, between what its
//!      items say and what it counts.
//! (N3) Stored items count until they are removed, visible or not.

use std::collections::BTreeMap;

use bytes::Bytes;
use index::Terms;
use item::Item;
use store::{Merge, Range, ScanOptions, Space, View};

use crate::keys::{self, Place};
use crate::verify::read_sums;
use crate::{Error, Result};

/// Rows and bytes read at a time.
const PAGE: ScanOptions = ScanOptions {
    direction: store::Direction::Forward,
    rows_max: 1000,
    bytes_max: 8 << 20,
    keys_only: false,
};

/// What the writes of one transaction change about the counts.
#[derive(Default)]
pub struct PathChanges<'a> {
    changes: Vec<(&'a [u8], i64)>,
}

impl<'a> PathChanges<'a> {
    /// Notes a write: the terms of an item before and after it. `None` is an item that is absent or
    /// not indexed.
    pub fn note(&mut self, old: Option<&'a Terms>, new: Option<&'a Terms>) {
        index::path_changes(old, new, |path, change| self.changes.push((path, change)));
    }

    /// One sum per path that changes. The keys share one buffer.
    pub fn into_merges(mut self, place: &Place) -> Vec<Merge> {
        self.sum();
        let bytes = self.changes.iter().map(|(path, _)| keys::PATH_COUNT_PREFIX_BYTES + path.len());
        let mut buffer = Vec::with_capacity(bytes.sum());
        self.changes.iter().for_each(|(path, _)| place.write_path_count(path, &mut buffer));
        let mut rest = Bytes::from(buffer);
        let merge = |&(path, change): &(&[u8], i64)| {
            let key = rest.split_to(keys::PATH_COUNT_PREFIX_BYTES + path.len());
            Merge::Add(Space::Meta, key, [change, 0])
        };
        self.changes.iter().map(merge).collect()
    }

    /// Of several items some may share a path; the paths of one are sorted and distinct already.
    fn sum(&mut self) {
        self.changes.sort_unstable_by_key(|(path, _)| *path);
        self.changes.dedup_by(|next, kept| {
            let is_same = next.0 == kept.0;
            kept.1 += if is_same { next.1 } else { 0 };
            is_same
        });
        self.changes.retain(|(_, change)| *change != 0);
    }
}

/// Counts of one physical partition, taken from its items.
#[derive(Default)]
pub struct Tally {
    counts: BTreeMap<Vec<u8>, i64>,
}

/// A count that is not what the items make.
#[derive(Debug, PartialEq, Eq)]
pub struct Difference {
    /// The bytes of the path.
    pub path: Vec<u8>,
    /// What is stored.
    pub stored: i64,
    /// What the items make.
    pub counted: i64,
}

impl Tally {
    /// Counts one indexed item.
    pub fn add(&mut self, terms: &Terms) {
        for path in terms.counted_paths() {
            match self.counts.get_mut(path) {
                Some(count) => *count += 1,
                None => drop(self.counts.insert(path.to_vec(), 1)),
            }
        }
    }

    /// Everything that differs from the counts stored in a view.
    pub fn differences(mut self, view: &View, place: &Place) -> Result<Vec<Difference>> {
        let mut differences = Vec::new();
        let mut compare = |path: Vec<u8>, stored: i64, counted: i64| {
            if stored != counted {
                differences.push(Difference { path, stored, counted });
            }
        };
        for_each_row(view, Space::Meta, place.all_path_counts(), |key, value| {
            let path = key[keys::PATH_COUNT_PREFIX_BYTES..].to_vec();
            let counted = self.counts.remove(&path).unwrap_or(0);
            compare(path, read_sums(Some(value.clone()))[0], counted);
            Ok(())
        })?;
        self.counts.into_iter().for_each(|(path, counted)| compare(path, 0, counted));
        Ok(differences)
    }
}

/// What to add to the counts of a physical partition so that they are those of a policy (N2).
///
/// `view` must contain every write decided before the policy came into force.
pub fn corrections(view: &View, place: &Place, policy: &index::Policy) -> Result<Vec<Merge>> {
    let mut tally = Tally::default();
    for_each_row(view, Space::Item, place.all_items(), |key, value| {
        let item = Item::from_bytes(value.clone());
        let item = item.map_err(|error| Error::corrupt(Space::Item, key, error))?;
        if item.is_indexed() && policy.is_consistent() {
            tally.add(&policy.terms(item.root()));
        }
        Ok(())
    })?;
    let merge = |difference: Difference| {
        let change = difference.counted - difference.stored;
        Merge::Add(Space::Meta, place.path_count(&difference.path), [change, 0])
    };
    Ok(tally.differences(view, place)?.into_iter().map(merge).collect())
}

fn for_each_row(
    view: &View,
    space: Space,
    mut range: Range,
    mut act: impl FnMut(&[u8], &Bytes) -> Result<()>,
) -> Result<()> {
    loop {
        let page = view.reader().scan(space, &range, PAGE)?;
        page.rows.iter().try_for_each(|row| act(&row.key, &row.value))?;
        match page.rows.last() {
            Some(last) if page.is_cut => range.start = [&last.key[..], &[0]].concat(),
            Some(_) | None => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use item::Draft;
    use model::container::IndexingPolicy;

    use super::*;

    fn terms(text: &str) -> Terms {
        let policy = index::Policy::compile(&IndexingPolicy::default());
        policy.terms(Draft::parse(text.as_bytes()).unwrap().root())
    }

    #[test]
    fn the_items_of_a_transaction_share_their_sums() {
        let place = Place::new(1, 2);
        let (a, b) = (terms(r#"{"id":"1","a":1}"#), terms(r#"{"id":"2","b":1}"#));
        let mut changes = PathChanges::default();
        changes.note(None, Some(&a));
        changes.note(None, Some(&b));
        changes.note(Some(&a), None);
        changes.note(Some(&a), Some(&b));
        let add = |path: &[&str], sum| {
            let path = index::Path::of_properties(path.iter().copied());
            Merge::Add(Space::Meta, place.path_count(&path.to_bytes()), [sum, 0])
        };
        let expect = [add(&[], 1), add(&["a"], -1), add(&["b"], 2), add(&["id"], 1)];
        assert_eq!(changes.into_merges(&place), expect);
        assert_eq!(PathChanges::default().into_merges(&place), []);
    }
}
