//! Snapshots and positions under concurrent commits.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::{Harness, b, content, put, writes};
use crate::{Commit, LogId, Mark, Space, View, Write};

const WRITERS: u32 = 4;
const COMMITS: u64 = 150;

/// S5: old views, kept while others write, flush and compact.
pub fn a_view_never_changes(harness: &Harness) {
    let f = harness.fresh();
    let mut kept: Vec<(View, Vec<_>)> = Vec::new();
    for round in 0..6 {
        let set = |n: u32| put(Space::ALL[n as usize % 5], &n.to_string(), &round.to_string());
        let unset = |n: u32| Write::Delete(Space::ALL[n as usize % 5], b(n.to_string()));
        let all = (0..60).map(|n| if n % 6 == round { unset(n) } else { set(n) }).collect();
        f.store.commit(writes(all)).wait().unwrap();
        let view = f.store.view();
        let shown = content(&view);
        kept.push((view, shown));
        if round % 2 == 1 {
            f.store.compact().unwrap();
        }
        for (view, shown) in &kept {
            assert_eq!(&content(view), shown);
        }
    }
}

/// S3: in every view a log's position is the number its newest commit wrote, however threads race.
pub fn snapshot_and_positions_are_one_pair(harness: &Harness) {
    let f = harness.fresh();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|log| {
                let store = &f.store;
                scope.spawn(move || {
                    let numbers = (1..=COMMITS).map(|n| store.commit(numbered(log, n)));
                    // Some are waited for at once, some pile up.
                    let tickets: Vec<_> = numbers.collect();
                    tickets.into_iter().for_each(|ticket| ticket.wait().unwrap());
                })
            })
            .collect();
        let readers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    while !is_done.load(Ordering::Relaxed) {
                        assert_is_pair(&f.store.view());
                    }
                })
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        is_done.store(true, Ordering::Relaxed);
        readers.into_iter().for_each(|reader| reader.join().unwrap());
    });
    let view = f.store.view();
    assert_is_pair(&view);
    for log in 0..WRITERS {
        assert_eq!(view.position(LogId(log * 100)), COMMITS);
    }
}

/// Writes the same number to two spaces and as the position of a log.
fn numbered(log: u32, number: u64) -> Commit {
    let (key, value) = (b(log.to_string()), b(number.to_be_bytes()));
    Commit {
        writes: vec![
            Write::Put(Space::Item, key.clone(), value.clone()),
            Write::Put(Space::Log, key, value),
        ],
        marks: vec![Mark { log: LogId(log * 100), position: number }],
        ..Commit::default()
    }
}

fn assert_is_pair(view: &View) {
    for log in 0..WRITERS {
        let number = |space| {
            let value = view.reader().get(space, log.to_string().as_bytes()).unwrap();
            value.map_or(0, |value| u64::from_be_bytes(value[..].try_into().unwrap()))
        };
        let position = view.position(LogId(log * 100));
        assert_eq!(number(Space::Item), position, "S3");
        assert_eq!(number(Space::Log), position, "S1");
    }
}

/// S6: whatever a view contains, its hook has run; and hooks run in order.
pub fn hooks_run_before_the_view_in_commit_order(harness: &Harness) {
    let f = harness.fresh();
    let seen = std::sync::Arc::new(Mutex::new(Vec::new()));
    let newest = std::sync::Arc::new(AtomicU64::new(0));
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                let position = f.store.view().position(LogId(0));
                assert!(newest.load(Ordering::SeqCst) >= position, "S6");
            }
        });
        let tickets: Vec<_> = (1..=COMMITS)
            .map(|number| {
                let (seen, newest) = (seen.clone(), newest.clone());
                let hook = move |sequence| {
                    seen.lock().unwrap().push((number, sequence));
                    newest.store(number, Ordering::SeqCst);
                };
                f.store
                    .commit(Commit { before_publish: Some(Box::new(hook)), ..numbered(0, number) })
            })
            .collect();
        tickets.into_iter().for_each(|ticket| ticket.wait().unwrap());
        is_done.store(true, Ordering::Relaxed);
    });
    let seen = seen.lock().unwrap();
    assert!(seen.iter().map(|&(number, _)| number).eq(1..=COMMITS));
    assert!(seen.is_sorted_by_key(|&(_, sequence)| sequence));
    assert_eq!(seen.last().unwrap().1, f.store.view().sequence());
}

/// A later view has a larger number, and contains what resolved before it was taken.
pub fn sequences_grow(harness: &Harness) {
    let f = harness.fresh();
    let mut last = f.store.view().sequence();
    for number in 1..=20 {
        f.store.commit(numbered(0, number)).wait().unwrap();
        let view = f.store.view();
        assert!(view.sequence() > last);
        assert_eq!(view.position(LogId(0)), number);
        last = view.sequence();
    }
}
