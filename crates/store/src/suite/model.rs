//! Random operations, on a store and on ordered maps.
//!
//! The model applies each commit to `BTreeMap`s with the same rules; every read must agree, on the
//! newest view and on old ones that were kept. A failing run is shrunk to a short list of steps.

use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::{Fixture, Harness, b};
use crate::{
    Commit, Direction, LogId, Mark, Merge, Precondition, Range, ScanOptions, Space, View, Wanted,
    Write, tail_of,
};

/// One step of a run.
#[derive(Clone, Debug)]
enum Step {
    /// Several commits, sent before the first is waited for.
    Commits(Vec<Plan>),
    Scan(Space, Range, ScanOptions),
    Get(Space, Bytes),
    Count(Space, Range),
    KeepView,
    Flush,
    Compact,
    Reopen,
}

/// A commit that can be built twice.
#[derive(Clone, Debug)]
struct Plan {
    preconditions: Vec<Precondition>,
    writes: Vec<Write>,
    merges: Vec<Merge>,
}

/// What the store should contain.
#[derive(Clone, Default)]
struct Model {
    spaces: [BTreeMap<Bytes, Bytes>; Space::ALL.len()],
    position: u64,
}

/// Long runs of random steps leave the store and the model equal.
pub fn random_operations_agree_with_ordered_maps(harness: &Harness) {
    let config =
        Config { cases: harness.model_runs, failure_persistence: None, ..Config::default() };
    let steps = prop::collection::vec(step(), 1..60);
    TestRunner::new(config)
        .run(&steps, |steps| {
            run(harness, steps);
            Ok(())
        })
        .unwrap();
}

fn run(harness: &Harness, steps: Vec<Step>) {
    let mut fixture = harness.fresh();
    let mut model = Model::default();
    let mut kept: Vec<(View, Model)> = Vec::new();
    for step in steps {
        match step {
            Step::Commits(plans) => commit_all(&fixture, &mut model, plans),
            Step::KeepView => kept.push((fixture.store.view(), model.clone())),
            Step::Flush => fixture.store.flush().unwrap(),
            Step::Compact => fixture.store.compact().unwrap(),
            Step::Reopen if harness.is_persistent => {
                kept.clear();
                fixture = fixture.reopened();
            }
            Step::Reopen => {}
            read @ (Step::Scan(..) | Step::Get(..) | Step::Count(..)) => {
                check(&fixture.store.view(), &model, &read);
                kept.iter().for_each(|(view, model)| check(view, model, &read));
            }
        }
    }
    kept.push((fixture.store.view(), model));
    for (view, model) in &kept {
        for space in Space::ALL {
            let everything = Range { start: Vec::new(), end: None };
            check(view, model, &Step::Scan(space, everything, ScanOptions::default()));
        }
        assert_eq!(view.position(LogId(7)), model.position);
    }
}

fn commit_all(fixture: &Fixture, model: &mut Model, plans: Vec<Plan>) {
    let mut sent = Vec::new();
    for plan in plans {
        let position = model.position + 1;
        let commit = Commit {
            preconditions: plan.preconditions.clone(),
            writes: plan.writes.clone(),
            merges: plan.merges.clone(),
            marks: vec![Mark { log: LogId(7), position }],
            ..Commit::default()
        };
        sent.push((fixture.store.commit(commit), model.apply(&plan)));
    }
    for (ticket, expected) in sent {
        assert_eq!(ticket.wait().is_ok(), expected);
    }
}

impl Model {
    /// Applies the plan if its preconditions hold; says whether they do.
    fn apply(&mut self, plan: &Plan) -> bool {
        let get = |space: Space, key: &Bytes| self.spaces[space as usize].get(key);
        let holds = |p: &Precondition| p.holds(get(p.space(), p.key()).map(|value| &value[..]));
        if !plan.preconditions.iter().all(holds) {
            return false;
        }
        for write in &plan.writes {
            self.set(write.space(), write.key(), write.value().cloned());
        }
        for merge in &plan.merges {
            let old = self.spaces[merge.space() as usize].get(merge.key()).cloned();
            self.set(merge.space(), merge.key(), merge.apply(old.as_deref()));
        }
        self.position += 1;
        true
    }

    fn set(&mut self, space: Space, key: &Bytes, value: Option<Bytes>) {
        match value {
            Some(value) => self.spaces[space as usize].insert(key.clone(), value),
            None => self.spaces[space as usize].remove(key),
        };
    }

    /// The rows a scan should return, worked out the slow way.
    fn scan(
        &self,
        space: Space,
        range: &Range,
        options: &ScanOptions,
    ) -> (Vec<(Bytes, Bytes)>, bool) {
        let mut rows: Vec<(Bytes, Bytes)> = self.spaces[space as usize]
            .iter()
            .filter(|(key, _)| range.contains(key))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        if options.direction == Direction::Backward {
            rows.reverse();
        }
        if options.keys_only {
            rows.iter_mut().for_each(|(_, value)| value.clear());
        }
        let mut bytes = 0;
        for at in 0..rows.len() {
            bytes += rows[at].0.len() + rows[at].1.len();
            if at + 1 >= options.rows_max || bytes >= options.bytes_max {
                rows.truncate(at + 1);
                return (rows, true);
            }
        }
        (rows, false)
    }
}

fn check(view: &View, model: &Model, step: &Step) {
    match step {
        Step::Get(space, key) => {
            let found = view.reader().get(*space, key).unwrap();
            assert_eq!(found.as_ref(), model.spaces[*space as usize].get(key));
        }
        Step::Count(space, range) => {
            let expect = model.scan(*space, range, &ScanOptions::default()).0.len();
            assert_eq!(view.reader().count(*space, range).unwrap(), expect as u64);
        }
        Step::Scan(space, range, options) => {
            let page = view.reader().scan(*space, range, *options).unwrap();
            let rows: Vec<_> = page.rows.into_iter().map(|row| (row.key, row.value)).collect();
            assert_eq!((rows, page.is_cut), model.scan(*space, range, options));
            check_walk(view, model, *space, range, options);
            check_sieve(view, model, *space, range, options);
        }
        Step::Commits(_) | Step::KeepView | Step::Flush | Step::Compact | Step::Reopen => {}
    }
}

/// As many keys as rows are asked for, one by one.
fn check_walk(view: &View, model: &Model, space: Space, range: &Range, options: &ScanOptions) {
    let mut keys = Vec::new();
    let mut act = |key: &[u8]| {
        keys.push(Bytes::copy_from_slice(key));
        keys.len() < options.rows_max
    };
    view.reader().for_each_key(space, range, options.direction, &mut act).unwrap();
    let options = ScanOptions { bytes_max: usize::MAX, ..*options };
    let expect = model.scan(space, range, &options).0.into_iter().map(|(key, _)| key);
    assert!(keys.into_iter().eq(expect), "{range:?}");
}

/// Keys by their tails, going on wherever the sieve stopped.
fn check_sieve(view: &View, model: &Model, space: Space, range: &Range, options: &ScanOptions) {
    let options = ScanOptions { rows_max: usize::MAX, bytes_max: usize::MAX, ..*options };
    let wanted = Wanted { tails: 3..0x6200, keys_max: 2 };
    let (mut rest, mut found, mut looked_at) = (range.clone(), Vec::new(), 0);
    loop {
        let mut act = |key: &[u8]| {
            found.push(Bytes::copy_from_slice(key));
            !found.len().is_multiple_of(3)
        };
        let sieved = view.reader().sieve(space, &rest, options.direction, &wanted, &mut act);
        let sieved = sieved.unwrap();
        looked_at += sieved.keys;
        match (sieved.last, options.direction) {
            (None, _) => break,
            (Some(last), Direction::Forward) => rest.start = [&last[..], &[0]].concat(),
            (Some(last), Direction::Backward) => rest.end = Some(last),
        }
    }
    let all = model.scan(space, range, &options).0;
    assert!(looked_at >= all.len(), "{looked_at} keys of {}", all.len());
    let keys = all.into_iter().map(|(key, _)| key);
    let expect = keys.filter(|key| wanted.tails.contains(&tail_of(key)));
    assert!(found.iter().cloned().eq(expect), "{range:?} {found:?}");
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => prop::collection::vec(plan(), 1..6).prop_map(Step::Commits),
        6 => (space(), range(), options()).prop_map(|(s, r, o)| Step::Scan(s, r, o)),
        3 => (space(), key()).prop_map(|(s, k)| Step::Get(s, k)),
        2 => (space(), range()).prop_map(|(s, r)| Step::Count(s, r)),
        1 => Just(Step::KeepView),
        1 => prop_oneof![Just(Step::Flush), Just(Step::Compact), Just(Step::Reopen)],
    ]
}

fn space() -> impl Strategy<Value = Space> {
    prop::sample::select(Space::ALL.to_vec())
}

/// Few short keys, so that they meet; edge bytes, so that order matters.
fn key() -> impl Strategy<Value = Bytes> {
    let byte = prop::sample::select(vec![0u8, 1, b'a', b'b', 0xfe, 0xff]);
    prop::collection::vec(byte, 1..4).prop_map(b)
}

fn value() -> impl Strategy<Value = Bytes> {
    prop::collection::vec(any::<u8>(), 0..40).prop_map(b)
}

fn range() -> impl Strategy<Value = Range> {
    let bound = || prop_oneof![Just(Vec::new()), key().prop_map(|key| key.to_vec())];
    prop_oneof![
        3 => (bound(), bound()).prop_map(|(start, end)| Range { start, end: Some(end) }),
        1 => bound().prop_map(|start| Range { start, end: None }),
        1 => bound().prop_map(Range::prefix),
    ]
}

fn options() -> impl Strategy<Value = ScanOptions> {
    let most = || prop_oneof![Just(usize::MAX), 0..60usize];
    (any::<bool>(), most(), most(), any::<bool>()).prop_map(|(is_back, rows, bytes, keys_only)| {
        let direction = if is_back { Direction::Backward } else { Direction::Forward };
        ScanOptions { direction, rows_max: rows, bytes_max: bytes, keys_only }
    })
}

fn plan() -> impl Strategy<Value = Plan> {
    let write = prop_oneof![
        3 => (space(), key(), value()).prop_map(|(s, k, v)| Write::Put(s, k, v)),
        1 => (space(), key()).prop_map(|(s, k)| Write::Delete(s, k)),
    ];
    // Small numbers, so that sums come back to zero.
    let merge = prop_oneof![
        (key(), -1..2i64, -1..2i64).prop_map(|(k, x, y)| Merge::Add(Space::Meta, k, [x, y])),
        (key(), 0..9u64).prop_map(|(k, n)| Merge::Max(Space::Log, k, n)),
    ];
    let precondition = prop_oneof![
        3 => (space(), key()).prop_map(|(s, k)| Precondition::Absent(s, k)),
        1 => (space(), key(), value()).prop_map(|(s, k, v)| Precondition::Equals(s, k, v)),
    ];
    let preconditions = prop_oneof![
        3 => Just(Vec::new()),
        1 => prop::collection::vec(precondition, 1..3),
    ];
    let writes = prop::collection::vec(write, 0..8);
    let merges = prop::collection::vec(merge, 0..3);
    (preconditions, writes, merges).prop_map(|(preconditions, writes, merges)| Plan {
        preconditions,
        writes,
        merges,
    })
}
