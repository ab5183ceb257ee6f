//! Points and scans.

use bytes::Bytes;

use super::{Harness, b, put, writes};
use crate::{Direction, Range, Reader, ScanOptions, Space, Write};

fn keys(reader: &dyn Reader, range: &Range, options: ScanOptions) -> (Vec<String>, bool) {
    let page = reader.scan(Space::Term, range, options).unwrap();
    let keys = page.rows.iter().map(|row| String::from_utf8(row.key.to_vec()).unwrap());
    (keys.collect(), page.is_cut)
}

/// Rows a to e, every direction and bound.
pub fn scans_walk_both_ways_within_bounds(harness: &Harness) {
    let f = harness.fresh();
    let rows = ["a", "b", "c", "d", "e"].map(|key| put(Space::Term, key, "12345"));
    f.store.commit(writes(rows.to_vec())).wait().unwrap();
    let view = f.store.view();
    let check = |start: &str, end: Option<&str>, options: ScanOptions, expect: &str, cut: bool| {
        let range = Range { start: start.into(), end: end.map(|end| end.as_bytes().to_vec()) };
        let (found, is_cut) = keys(view.reader(), &range, options);
        assert_eq!(found.concat(), expect, "{range:?} {options:?}");
        assert_eq!(is_cut, cut, "{range:?} {options:?}");
    };
    let all = ScanOptions::default();
    let back = ScanOptions { direction: Direction::Backward, ..all };
    check("", None, all, "abcde", false);
    check("", None, back, "edcba", false);
    check("b", Some("d"), all, "bc", false);
    check("b", Some("d"), back, "cb", false);
    check("bb", Some("dd"), all, "cd", false);
    check("bb", None, back, "edc", false);
    check("", Some("c"), back, "ba", false);
    // Rows: at least one, at most as many as asked for.
    check("", None, ScanOptions { rows_max: 0, ..all }, "a", true);
    check("", None, ScanOptions { rows_max: 1, ..back }, "e", true);
    check("", None, ScanOptions { rows_max: 4, ..all }, "abcd", true);
    check("", None, ScanOptions { rows_max: 6, ..all }, "abcde", false);
    // Bytes: a row is six; the scan stops with the row that reaches the bound.
    check("", None, ScanOptions { bytes_max: 0, ..all }, "a", true);
    check("", None, ScanOptions { bytes_max: 6, ..back }, "e", true);
    check("", None, ScanOptions { bytes_max: 7, ..all }, "ab", true);
    check("", None, ScanOptions { bytes_max: 31, ..all }, "abcde", false);
    // Without values a row is one.
    let bare = ScanOptions { keys_only: true, bytes_max: 3, ..all };
    check("", None, bare, "abc", true);
    let page = view.reader().scan(Space::Term, &Range::prefix("b"), bare).unwrap();
    assert!(page.rows[0].value.is_empty());
    let page = view.reader().scan(Space::Term, &Range::prefix("b"), all).unwrap();
    assert_eq!(page.rows[0].value, "12345");
}

/// Empty and inverted ranges, empty spaces, ranges between keys.
pub fn scans_of_nothing_are_empty(harness: &Harness) {
    let f = harness.fresh();
    f.store.commit(writes(vec![put(Space::Term, "m", "1")])).wait().unwrap();
    let view = f.store.view();
    let ranges = [
        Range::new("m", "m"),
        Range::new("z", "a"),
        Range::new("", ""),
        Range::new("a", "b"),
        Range::new("m\0", "n"),
        Range::prefix([255, 255]),
    ];
    for range in &ranges {
        for direction in [Direction::Forward, Direction::Backward] {
            let options = ScanOptions { direction, ..ScanOptions::default() };
            assert_eq!(keys(view.reader(), range, options), (vec![], false), "{range:?}");
        }
        assert_eq!(view.reader().count(Space::Term, range).unwrap(), 0);
    }
    assert_eq!(view.reader().count(Space::Log, &Range::prefix("")).unwrap(), 0);
}

/// A resumed scan starts behind the longest key there is.
pub fn bounds_longer_than_a_key_are_fine(harness: &Harness) {
    let f = harness.fresh();
    let max = f.store.limits().key_bytes_max;
    let longest = vec![b'k'; max];
    let rows = [Bytes::from(longest.clone()), b("k"), b("l")];
    let rows = rows.map(|key| Write::Put(Space::Term, key, Bytes::new())).to_vec();
    f.store.commit(writes(rows)).wait().unwrap();
    let view = f.store.view();
    let behind = [&longest[..], &[0]].concat();
    let count = |range: &Range| view.reader().count(Space::Term, range).unwrap();
    assert_eq!(count(&Range { start: behind.clone(), end: None }), 1);
    assert_eq!(count(&Range { start: longest.clone(), end: None }), 2);
    assert_eq!(count(&Range::new("", behind)), 2);
    assert_eq!(count(&Range::new("", longest.clone())), 1);
    assert_eq!(count(&Range::prefix(longest)), 1);
}

/// Present and absent keys, repeated ones too.
pub fn many_points_come_in_the_order_asked(harness: &Harness) {
    let f = harness.fresh();
    let rows = ["a", "b", "c"].map(|key| put(Space::Key, key, key)).to_vec();
    f.store.commit(writes(rows)).wait().unwrap();
    let view = f.store.view();
    let keys: [&[u8]; 6] = [b"c", b"x", b"a", b"c", b"", b"b"];
    let found = view.reader().get_many(Space::Key, &keys).unwrap();
    let expect = [Some(b("c")), None, Some(b("a")), Some(b("c")), None, Some(b("b"))];
    assert_eq!(found, expect);
    assert_eq!(view.reader().get_many(Space::Key, &[]).unwrap(), []);
}

/// Over many keys, on every kind of range.
pub fn counting_agrees_with_scanning(harness: &Harness) {
    let f = harness.fresh();
    let rows = (0..2_000u32).map(|n| Write::Put(Space::Log, b(n.to_be_bytes()), b("v"))).collect();
    f.store.commit(writes(rows)).wait().unwrap();
    let gone = (500..700u32).map(|n| Write::Delete(Space::Log, b(n.to_be_bytes()))).collect();
    f.store.commit(writes(gone)).wait().unwrap();
    let view = f.store.view();
    for (start, end) in [(0u32, 2_000u32), (490, 510), (510, 690), (690, 710), (1_999, 5_000)] {
        let range = Range::new(start.to_be_bytes(), end.to_be_bytes());
        let expect = (start..end.min(2_000)).filter(|n| !(500..700).contains(n)).count();
        assert_eq!(view.reader().count(Space::Log, &range).unwrap(), expect as u64);
        let page = view.reader().scan(Space::Log, &range, ScanOptions::default()).unwrap();
        assert_eq!(page.rows.len(), expect);
    }
}
