//! Goal: a script that goes on and on stands behind everything else, and nothing after it does.
//! Method: the niceness of this process's threads while such a script runs, and afterwards. The one
//! test of this file, because the threads of others would be seen too.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)] // A test that cannot go on fails there.

mod common;

use std::sync::mpsc;
use std::time::Duration;

use common::{Shelf, call, eventually, execute, procedure};
use script::{Limits, Pool, PoolOptions, Session};

/// The niceness of every script thread.
fn niceness() -> Vec<i32> {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    let stats = threads.filter_map(|thread| {
        // A thread may end in between.
        std::fs::read_to_string(thread.unwrap().path().join("stat")).ok()
    });
    let niceness = |stat: String| {
        let (name, rest) = stat.split_once('(').unwrap().1.rsplit_once(") ").unwrap();
        let is_ours = name.starts_with("script-") && name != "script-watchdog";
        is_ours.then(|| rest.split(' ').nth(16).unwrap().parse().unwrap())
    };
    stats.filter_map(niceness).collect()
}

#[test]
fn a_long_script_stands_behind_all_others() {
    let limits = Limits { run: Duration::from_secs(60), ..Limits::default() };
    let pool = Pool::new(PoolOptions { threads: 1, limits });
    let short = call("function () {}", procedure(&[]));
    execute(&pool, &Shelf::default(), short.clone()).unwrap();
    // A thread that is just starting still has the name of the one that started it.
    eventually("a script thread waits", || niceness() == [10]);
    let (sender, receiver) = mpsc::channel();
    let long = call("function () { for (;;); }", procedure(&[]));
    let work = move |session: &mut Session<'_, common::Desk>| session.execute(long);
    let running = pool.submit(Shelf::default().open(), None, work, move |answer| {
        drop(sender.send(answer));
    });
    eventually("a thread got tired", || niceness() == [19]);
    drop(running);
    receiver.recv().unwrap().unwrap().unwrap_err();
    execute(&pool, &Shelf::default(), short).unwrap();
    eventually("nobody is tired any more", || niceness() == [10]);
}
