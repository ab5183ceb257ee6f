//! Reopening, checkpoints, compaction, figures.

use std::sync::atomic::{AtomicBool, Ordering};

use super::{Fixture, Harness, b, content, put, writes};
use crate::{Commit, Durability, LogId, Mark, Merge, Space, Write};

/// A bit of everything.
fn fill(fixture: &Fixture) {
    for n in 1..=50u64 {
        let all = Space::ALL.map(|space| put(space, &n.to_string(), &"v".repeat(n as usize)));
        let commit = Commit {
            merges: vec![Merge::Add(Space::Meta, b("sum"), [1, n as i64])],
            marks: vec![
                Mark { log: LogId(2), position: n },
                Mark { log: LogId(80), position: n * 9 },
            ],
            durability: (n % 2 == 0).then_some(Durability::Relaxed),
            ..writes(all.to_vec())
        };
        drop(fixture.store.commit(commit));
    }
    let gone = Space::ALL.map(|space| Write::Delete(space, b("7"))).to_vec();
    fixture.store.commit(writes(gone)).wait().unwrap();
}

/// Content and positions survive an orderly close, again and again; sums go on where they were.
pub fn reopening_keeps_everything(harness: &Harness) {
    if !harness.is_persistent {
        return;
    }
    let mut f = harness.fresh();
    assert!(f.store.recovered().was_clean);
    fill(&f);
    for round in 1..=3 {
        let shown = content(&f.store.view());
        f = f.reopened();
        let view = f.store.view();
        assert!(f.store.recovered().was_clean);
        assert_eq!(content(&view), shown);
        assert_eq!((view.position(LogId(2)), view.position(LogId(80))), (50, 450));
        drop(view);
        let merges = vec![Merge::Add(Space::Meta, b("sum"), [1, 0])];
        f.store.commit(Commit { merges, ..Commit::default() }).wait().unwrap();
        let sum = f.store.view().reader().get(Space::Meta, b"sum").unwrap().unwrap();
        assert_eq!(sum[..8], (50i64 + round).to_le_bytes());
    }
}

/// The copy has the content and the positions, and is a store like any other.
pub fn a_checkpoint_opens_as_an_equal_store(harness: &Harness) {
    let f = harness.fresh();
    fill(&f);
    let copy = f.copied("copy");
    assert_eq!(content(&copy.view()), content(&f.store.view()));
    for log in [2, 80, 3] {
        assert_eq!(copy.view().position(LogId(log)), f.store.view().position(LogId(log)));
    }
    assert!(copy.recovered().was_clean);
    copy.commit(writes(vec![put(Space::Item, "new", "1")])).wait().unwrap();
    assert_ne!(content(&copy.view()), content(&f.store.view()));
    let empty = harness.fresh();
    assert_eq!(content(&empty.copied("copy").view()), []);
}

/// S3 holds in the copy: it is one state, not a smear over time.
pub fn a_checkpoint_taken_while_writing_is_one_state(harness: &Harness) {
    let f = harness.fresh();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 1u64.. {
                let all = Space::ALL.map(|space| put(space, "n", &n.to_string())).to_vec();
                let marks = vec![Mark { log: LogId(1), position: n }];
                f.store.commit(Commit { marks, ..writes(all) }).wait().unwrap();
                if is_done.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        for round in 0..3 {
            let view = f.copied(&format!("copy {round}")).view();
            let position = view.position(LogId(1)).to_string();
            for (space, _, value) in content(&view) {
                assert_eq!(value, position, "{space:?}");
            }
        }
        is_done.store(true, Ordering::Relaxed);
    });
}

/// Nothing is overwritten.
pub fn a_checkpoint_needs_a_new_directory(harness: &Harness) {
    let f = harness.fresh();
    let path = f.directory.path().join("copy");
    f.store.checkpoint(&path).unwrap();
    assert!(f.store.checkpoint(&path).is_err());
    (harness.open_copy)(&path);
}

/// Maintenance is invisible.
pub fn flush_and_compact_change_nothing(harness: &Harness) {
    let f = harness.fresh();
    f.store.flush().unwrap();
    f.store.compact().unwrap();
    fill(&f);
    let shown = content(&f.store.view());
    f.store.flush().unwrap();
    assert_eq!(content(&f.store.view()), shown);
    f.store.compact().unwrap();
    assert_eq!(content(&f.store.view()), shown);
    assert_eq!(f.store.view().position(LogId(80)), 450);
}

/// Refused commits do not count.
pub fn statistics_count_commits(harness: &Harness) {
    let f = harness.fresh();
    assert_eq!(f.store.statistics().commits, 0);
    fill(&f);
    let absent = vec![crate::Precondition::Absent(Space::Item, b("8"))];
    f.store.commit(Commit { preconditions: absent, ..Commit::default() }).wait().unwrap_err();
    let figures = f.store.statistics();
    assert_eq!(figures.commits, 51);
    assert!(figures.groups >= 1 && figures.groups <= 52);
    assert!(figures.bytes > 0);
}
