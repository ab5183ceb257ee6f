//! What the tests of the embedded store share: numbered commits, and pictures of a crash.

#![allow(dead_code, reason = "each test uses a part")]

use std::path::{Path, PathBuf};

use bytes::Bytes;
use store::{Commit, LogId, Mark, Merge, Range, ScanOptions, Space, Store, View, Write};
use store_embedded::{EmbeddedStore, Options};

/// Settings for tests: a small cache.
pub fn options() -> Options {
    Options { cache_bytes: 8 << 20, ..Options::default() }
}

/// Opens a store that must open.
pub fn open(path: &Path) -> EmbeddedStore {
    EmbeddedStore::open(path, options()).expect("the store opens")
}

/// The sentence with which a directory is refused.
pub fn refusal(path: &Path) -> String {
    match EmbeddedStore::open(path, options()) {
        Err(store::Error::Unusable(sentence)) => sentence,
        Err(error) => panic!("refused for another reason: {error}"),
        Ok(_) => panic!("{} was opened", path.display()),
    }
}

/// Bytes that do not compress.
pub fn noise(seed: u64, length: usize) -> Bytes {
    let random = base::Random::from_seed(seed);
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        bytes.extend_from_slice(&random.next().to_le_bytes());
    }
    bytes.truncate(length);
    bytes.into()
}

/// Commit `number` of `log`: the same key in four spaces, terms, and counts of all commits.
pub fn numbered(log: u32, number: u64) -> Commit {
    let key = key(log, number);
    let value = noise(number << 8 | u64::from(log), 300 + number as usize % 700);
    let mut writes = vec![
        Write::Put(Space::Item, key.clone(), value),
        Write::Put(Space::Key, key.clone(), Bytes::from_static(b"identity")),
        Write::Put(Space::Log, key.clone(), Bytes::new()),
    ];
    for term in 0..5u8 {
        writes.push(Write::Put(Space::Term, [&key[..], &[term]].concat().into(), Bytes::new()));
    }
    Commit {
        writes,
        merges: vec![Merge::Add(Space::Meta, "sum".into(), [1, number as i64])],
        marks: vec![Mark { log: LogId(log), position: number }],
        ..Commit::default()
    }
}

fn key(log: u32, number: u64) -> Bytes {
    [&log.to_be_bytes()[..], &number.to_be_bytes()].concat().into()
}

/// The numbers of the commits of `log` that a view contains. Panics if one is there in part.
pub fn numbers(view: &View, log: u32) -> Vec<u64> {
    let rows = |space| {
        let range = Range::prefix(log.to_be_bytes());
        view.reader().scan(space, &range, ScanOptions::default()).expect("scans work").rows
    };
    let items = rows(Space::Item);
    let numbers: Vec<u64> = items
        .iter()
        .map(|row| u64::from_be_bytes(row.key[4..].try_into().expect("8 bytes")))
        .collect();
    for (row, &number) in items.iter().zip(&numbers) {
        let value = noise(number << 8 | u64::from(log), 300 + number as usize % 700);
        assert_eq!(row.value, value, "S1: item {number} of {log}");
    }
    assert!(rows(Space::Key).iter().map(|row| &row.key).eq(items.iter().map(|row| &row.key)));
    assert!(rows(Space::Log).iter().map(|row| &row.key).eq(items.iter().map(|row| &row.key)));
    assert_eq!(rows(Space::Term).len(), 5 * items.len(), "S1: terms of {log}");
    numbers
}

/// Checks that the counts agree with the commits that are there.
pub fn check_sums(view: &View, logs: u32) {
    let all: Vec<u64> = (0..logs).flat_map(|log| numbers(view, log)).collect();
    let sum = view.reader().get(Space::Meta, b"sum").expect("reads work").unwrap_or_default();
    let expect = match all.len() {
        0 => Vec::new(),
        count => {
            [(count as i64).to_le_bytes(), (all.iter().sum::<u64>() as i64).to_le_bytes()].concat()
        }
    };
    assert_eq!(sum, expect, "S1: counts");
}

/// Copies the files of a running store, as a kill would leave them.
pub fn crash_image(from: &Path, to: &Path) {
    std::fs::create_dir(to).expect("new directory");
    for entry in std::fs::read_dir(from).expect("readable") {
        let entry = entry.expect("readable");
        let target = to.join(entry.file_name());
        match entry.file_type().expect("readable").is_dir() {
            true => crash_image(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).expect("copied")),
        }
    }
}

/// The newest journal of a store that is not open.
pub fn journal(store: &Path) -> PathBuf {
    let entries = std::fs::read_dir(store.join("engine")).expect("readable");
    let journals = entries.map(|entry| entry.expect("readable").path());
    let journals = journals.filter(|path| path.extension().is_some_and(|end| end == "jnl"));
    journals.max().expect("a journal")
}

/// The journal without the zeros behind it.
pub fn journal_bytes(store: &Path) -> Vec<u8> {
    let mut bytes = std::fs::read(journal(store)).expect("readable");
    let length = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    bytes.truncate(length);
    bytes
}

/// Commits numbers of log 0 one by one.
pub fn commit_numbers(store: &EmbeddedStore, numbers: impl IntoIterator<Item = u64>) {
    for number in numbers {
        store.commit(numbered(0, number)).wait().expect("the disk works");
    }
}
