//! The contract, as tests that every store passes.
//!
//! A store's crate says how it is opened and lists the cases with one line:
//!
//! ```text
//!   store::contract!(harness);         // fn harness() -> store::suite::Harness
//! ```
//!
//! LAYOUT     `commits`: order, atomicity, preconditions, merges, limits, tickets. `views`: snapshots
//!            and positions under concurrent commits. `reads`: points and scans. `model`: random
//!            operations against ordered maps. `copies`: reopening, checkpoints, compaction.
//!
//! ELSEWHERE  What only one store can be made to do (a full queue, a failing disk, a killed process)
//!            is tested by that store.

#![allow(clippy::unwrap_used, reason = "tests, compiled as a library")]

pub mod commits;
pub mod copies;
pub mod model;
pub mod reads;
pub mod views;

use std::path::Path;

use bytes::Bytes;
use tempfile::TempDir;

use crate::{Commit, Range, ScanOptions, Space, Store, View, Write};

/// How the suite gets at a kind of store.
#[derive(Clone, Copy)]
pub struct Harness {
    /// Opens the store in a directory, again if it exists. A store without files ignores it.
    pub open: fn(&Path) -> Box<dyn Store>,
    /// Opens what `checkpoint` wrote.
    pub open_copy: fn(&Path) -> Box<dyn Store>,
    /// Whether what was committed is there after reopening.
    pub is_persistent: bool,
    /// How many random runs the model case makes.
    pub model_runs: u32,
}

/// A store in a directory that is removed with it.
pub struct Fixture {
    /// The store.
    pub store: Box<dyn Store>,
    harness: Harness,
    directory: TempDir,
}

impl Harness {
    /// An empty store.
    pub fn fresh(&self) -> Fixture {
        let directory = tempfile::tempdir().unwrap();
        let store = (self.open)(&directory.path().join("store"));
        Fixture { store, harness: *self, directory }
    }
}

impl Fixture {
    /// Closes the store and opens it again. Every view of it must be gone.
    pub fn reopened(self) -> Fixture {
        drop(self.store);
        let store = (self.harness.open)(&self.directory.path().join("store"));
        Fixture { store, ..self }
    }

    /// A store with what `checkpoint` copies.
    pub fn copied(&self, name: &str) -> Box<dyn Store> {
        let path = self.directory.path().join(name);
        self.store.checkpoint(&path).unwrap();
        (self.harness.open_copy)(&path)
    }
}

/// Bytes from anything like bytes.
pub(crate) fn b(bytes: impl AsRef<[u8]>) -> Bytes {
    Bytes::copy_from_slice(bytes.as_ref())
}

/// A put.
pub(crate) fn put(space: Space, key: &str, value: &str) -> Write {
    Write::Put(space, b(key), b(value))
}

/// A commit of writes alone.
pub(crate) fn writes(writes: Vec<Write>) -> Commit {
    Commit { writes, ..Commit::default() }
}

/// The value of a key as text.
pub(crate) fn text(view: &View, space: Space, key: &str) -> Option<String> {
    let value = view.reader().get(space, key.as_bytes()).unwrap();
    value.map(|value| String::from_utf8(value.to_vec()).unwrap())
}

/// Everything a view shows.
pub(crate) fn content(view: &View) -> Vec<(Space, Bytes, Bytes)> {
    let everything = Range { start: Vec::new(), end: None };
    let rows = |space| {
        let page = view.reader().scan(space, &everything, ScanOptions::default()).unwrap();
        page.rows.into_iter().map(move |row| (space, row.key, row.value))
    };
    Space::ALL.into_iter().flat_map(rows).collect()
}

/// Makes a test of every case of the suite.
#[macro_export]
macro_rules! contract {
    ($harness:path) => {
        $crate::contract_cases! { $harness;
            commits::a_commit_is_applied_whole_over_all_spaces,
            commits::a_refused_commit_leaves_no_trace,
            commits::commits_take_effect_in_the_order_of_calls,
            commits::an_awaited_commit_that_nobody_waits_for_is_begun,
            commits::those_who_wait_help_each_other,
            commits::a_precondition_names_the_first_that_does_not_hold,
            commits::a_precondition_sees_commits_not_waited_for,
            commits::sums_add_up_and_vanish_at_zero,
            commits::sums_follow_puts_and_deletes,
            commits::the_larger_number_stays,
            commits::concurrent_sums_lose_nothing,
            commits::keys_are_bounded,
            commits::values_and_commits_are_bounded,
            commits::a_ticket_can_be_awaited,
            commits::a_dropped_ticket_does_not_undo,
            commits::tokens_resolve,
            views::a_view_never_changes,
            views::snapshot_and_positions_are_one_pair,
            views::hooks_run_before_the_view_in_commit_order,
            views::sequences_grow,
            reads::scans_walk_both_ways_within_bounds,
            reads::scans_of_nothing_are_empty,
            reads::bounds_longer_than_a_key_are_fine,
            reads::many_points_come_in_the_order_asked,
            reads::counting_agrees_with_scanning,
            model::random_operations_agree_with_ordered_maps,
            copies::reopening_keeps_everything,
            copies::a_checkpoint_opens_as_an_equal_store,
            copies::a_checkpoint_taken_while_writing_is_one_state,
            copies::a_checkpoint_needs_a_new_directory,
            copies::flush_and_compact_change_nothing,
            copies::statistics_count_commits,
        }
    };
}

/// The tests behind `contract!`.
#[doc(hidden)]
#[macro_export]
macro_rules! contract_cases {
    ($harness:path; $($module:ident::$case:ident,)*) => {
        $(#[test]
        fn $case() {
            $crate::suite::$module::$case(&$harness());
        })*
    };
}
