//! Kills a writing process at random moments and looks at what is left.
//!
//! The test starts itself as a child that commits from many threads and prints what was answered.
//! With `Sync` every answered commit must be there. With `Relaxed` the end may be missing, which a
//! kill alone does not bring about, so the journal is cut as a power loss would. Always: no commit is
//! there in part, counts agree, and no position comes twice.

mod common;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use base::Random;
use common::{check_sums, journal, journal_bytes, numbered, numbers, options};
use store::{Durability, LogId, Store};
use store_embedded::{EmbeddedStore, Options, POSITIONS_GAP};

const LOGS: u32 = 8;
const DIRECTORY: &str = "STORE_CRASH_DIRECTORY";
const IS_RELAXED: &str = "STORE_CRASH_RELAXED";

/// Not a test: the process that is killed.
#[test]
fn child() {
    let Some(directory) = std::env::var_os(DIRECTORY) else {
        return;
    };
    let store = open(Path::new(&directory), std::env::var_os(IS_RELAXED).is_some());
    std::thread::scope(|scope| {
        for log in 0..LOGS {
            let store = &store;
            scope.spawn(move || {
                for number in store.view().position(LogId(log)) + 1.. {
                    store.commit(numbered(log, number)).wait().expect("the disk works");
                    let mut out = std::io::stdout().lock();
                    writeln!(out, "answered {log} {number}").and_then(|()| out.flush()).ok();
                }
            });
        }
    });
}

/// Journals are small, so that kills fall into the making and merging of tables too.
fn open(path: &Path, is_relaxed: bool) -> EmbeddedStore {
    let durability = if is_relaxed { Durability::Relaxed } else { Durability::Sync };
    let options = Options { durability, journal_bytes_max: 256 << 10, ..options() };
    EmbeddedStore::open(path, options).expect("the store opens")
}

/// Runs a child for a moment, kills it, and returns the newest answered number of each log.
fn run_and_kill(path: &Path, is_relaxed: bool, random: &Random) -> [u64; LOGS as usize] {
    let mut command = Command::new(std::env::current_exe().expect("known"));
    command.args(["child", "--exact", "--nocapture"]).env(DIRECTORY, path);
    if is_relaxed {
        command.env(IS_RELAXED, "1");
    }
    let mut child = command.stdout(Stdio::piped()).spawn().expect("started");
    let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let (started, has_started) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut answered = [0; LOGS as usize];
        for line in lines.map_while(std::io::Result::ok) {
            let words: Vec<&str> = line.split(' ').collect();
            if let ["answered", log, number] = words[..] {
                let log: usize = log.parse().expect("a number");
                answered[log] = number.parse().expect("a number");
                started.send(()).ok();
            }
        }
        answered
    });
    has_started.recv_timeout(Duration::from_secs(60)).expect("the child commits");
    std::thread::sleep(Duration::from_millis(random.next() % 400));
    child.kill().expect("killed");
    child.wait().expect("ended");
    reader.join().expect("read")
}

#[test]
fn every_answered_commit_survives_a_kill() {
    let directory = tempfile::tempdir().expect("temporary");
    let path = directory.path().join("store");
    let random = Random::from_entropy();
    for round in 0..4 {
        let mut answered = run_and_kill(&path, false, &random);
        if round % 2 == 1 {
            // A second process recovers, goes on and is killed too.
            answered = run_and_kill(&path, false, &random);
        }
        let store = open(&path, false);
        let view = store.view();
        assert!(!store.recovered().was_clean && !store.recovered().may_have_lost);
        for log in 0..LOGS {
            let position = view.position(LogId(log));
            assert!(position >= answered[log as usize], "S4: lost in round {round}");
            assert!(numbers(&view, log).into_iter().eq(1..=position), "S3");
        }
        check_sums(&view, LOGS);
    }
}

#[test]
fn a_relaxed_store_loses_only_the_end() {
    let directory = tempfile::tempdir().expect("temporary");
    let path = directory.path().join("store");
    let random = Random::from_entropy();
    let mut used = [0; LOGS as usize];
    for _ in 0..4 {
        let answered = run_and_kill(&path, true, &random);
        lose_the_end(&path, &random);
        let store = open(&path, true);
        let view = store.view();
        assert!(store.recovered().may_have_lost);
        assert_eq!(store.recovered().positions_skipped, POSITIONS_GAP);
        for log in 0..LOGS {
            let at = log as usize;
            used[at] = answered[at].max(used[at]);
            let position = view.position(LogId(log));
            // A log that lost everything it ever had starts anew only if nothing was answered.
            assert!(position > used[at] || numbers(&view, log).is_empty(), "F3");
            assert_loses_only_ends(&numbers(&view, log));
        }
        check_sums(&view, LOGS);
    }
}

/// Cuts up to a tenth off the journal, as a power loss would.
fn lose_the_end(path: &Path, random: &Random) {
    let length = journal_bytes(path).len() as u64;
    let lost = random.next() % (length / 10 + 1);
    let file = std::fs::File::options().write(true).open(journal(path)).expect("writable");
    file.set_len(length - lost).expect("cut");
}

/// Every run of numbers starts where a process began, right behind a position moved by the gap.
fn assert_loses_only_ends(numbers: &[u64]) {
    for pair in numbers.windows(2) {
        assert!(
            pair[1] == pair[0] + 1 || pair[1] > pair[0] + POSITIONS_GAP,
            "S4: a hole: {pair:?}"
        );
    }
}
