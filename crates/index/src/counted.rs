//! At which paths an item is counted.
//!
//! An item is counted once at every path of properties where it has an indexed value, and once at
//! the root. Paths through elements of arrays are not counted: no ORDER BY can name them. `_ts` is
//! not counted either, because every indexed item has it.
//!
//! INVARIANTS
//! (N1) A term for "undefined" does not count. So items count the same at a path under all
//!      policies that index it, and a count stays right while one policy takes over from another.

use crate::encode::tag;
use crate::path::{ROOT, measure};
use crate::terms::{Side, Terms, merge};

/// Reports the paths at which a write changes what is counted: 1 where the item has a value only
/// afterwards, -1 where it had one only before. A side is `None` if there is no indexed item.
/// Paths are in the order of their bytes, each once. Linear in both sides.
///
/// ```
/// let terms = |text: &str| {
///     let draft = item::Draft::parse(text.as_bytes()).expect("an item");
///     index::Policy::compile(&Default::default()).terms(draft.root())
/// };
/// let (old, new) = (terms(r#"{"id":"1","a":1,"b":[2]}"#), terms(r#"{"id":"1","b":3,"c":4}"#));
/// let mut changes = Vec::new();
/// index::path_changes(Some(&old), Some(&new), |path, change| changes.push((path, change)));
/// let bytes = |name| index::Path::of_properties([name]).to_bytes();
/// assert_eq!(changes, [(&bytes("a")[..], -1), (&bytes("c")[..], 1)]);
/// ```
pub fn path_changes<'a>(
    old: Option<&'a Terms>,
    new: Option<&'a Terms>,
    mut report: impl FnMut(&'a [u8], i64),
) {
    let paths = |terms: Option<&'a Terms>| terms.into_iter().flat_map(Terms::counted_paths);
    merge(paths(old), paths(new), |side, path| match side {
        Side::Old => report(path, -1),
        Side::New => report(path, 1),
    });
}

impl Terms {
    /// The paths at which an item with these terms is counted, the root first, in the order of
    /// their bytes.
    pub fn counted_paths(&self) -> impl Iterator<Item = &[u8]> {
        let mut last: &[u8] = &[];
        let below = self.iter().filter_map(move |term| {
            if !last.is_empty() && term.starts_with(last) {
                return None; // No path begins with another (X2), so it is the same one.
            }
            let (length, has_elements) = measure(term);
            let (path, value) = term.split_at(length);
            last = path;
            (!has_elements && value.first() != Some(&tag::UNDEFINED)).then_some(path)
        });
        std::iter::once(ROOT).chain(below)
    }
}

#[cfg(test)]
mod tests {
    use item::Draft;
    use model::container::IndexingPolicy;
    use serde_json::{Value, json};

    use crate::{Path, Policy, Terms, path_changes};

    fn terms(policy: &Value, body: &Value) -> Terms {
        let policy = Policy::compile(&IndexingPolicy::parse(policy).unwrap());
        policy.terms(Draft::parse(body.to_string().as_bytes()).unwrap().root())
    }

    fn bytes(path: &str) -> Vec<u8> {
        Path::of_properties(path.split('/').filter(|name| !name.is_empty())).to_bytes()
    }

    fn check(policy: Value, body: Value, expect: &[&str]) {
        let terms = terms(&policy, &body);
        let counted: Vec<_> = terms.counted_paths().collect();
        let mut expect: Vec<_> = expect.iter().map(|path| bytes(path)).collect();
        expect.sort();
        assert_eq!(counted, expect, "{body}");
    }

    #[test]
    fn every_path_of_properties_counts_once() {
        check(json!({}), json!({"id": "1"}), &["", "id"]);
        check(
            json!({}),
            json!({"id": "1", "a": null, "b": {"c": [], "d": {}}, "e": [1, [2], {"f": 3}, {"f": 4}]}),
            &["", "id", "a", "b", "b/c", "b/d", "e"],
        );
        let long = "x".repeat(1000);
        check(json!({}), json!({"id": "1", &long: 1}), &["", "id", &long]);
        check(json!({}), json!({"id": "1", "a\0": 1, "a": 2}), &["", "id", "a\0", "a"]);
    }

    #[test]
    fn missing_and_excluded_paths_do_not_count() {
        let policy = json!({
            "includedPaths": [{"path": "/a/?"}, {"path": "/b/?"}, {"path": "/c/[]/?"}],
            "excludedPaths": [{"path": "/*"}],
        });
        // N1
        check(policy, json!({"id": "1", "a": 1, "c": [1], "d": 1}), &["", "id", "a"]);
    }

    #[test]
    fn changes() {
        let policy = json!({});
        let old = terms(&policy, &json!({"id": "1", "a": 1, "b": 1}));
        let new = terms(&policy, &json!({"id": "1", "a": "x", "c": {"d": [1, 2]}}));
        let collect = |old: Option<&Terms>, new: Option<&Terms>| {
            let mut changes = Vec::new();
            path_changes(old, new, |path, change| changes.push((path.to_vec(), change)));
            changes
        };
        let change = |path: &str, change: i64| (bytes(path), change);
        let moved = [change("b", -1), change("c", 1), change("c/d", 1)];
        assert_eq!(collect(Some(&old), Some(&new)), moved);
        assert_eq!(collect(Some(&old), Some(&old)), []);
        assert_eq!(collect(None, None), []);
        let all = ["", "a", "b", "id"];
        assert_eq!(collect(None, Some(&old)), all.map(|path| change(path, 1)));
        assert_eq!(collect(Some(&old), None), all.map(|path| change(path, -1)));
    }
}
