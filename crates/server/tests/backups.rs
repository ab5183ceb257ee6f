//! Goal: a backup is one consistent moment, whoever makes it, and a restored one is a database.
//! Method: the real binary; clients that write one item after the other while it is copied.

#![allow(clippy::unwrap_used)]

mod common;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use common::{Client, Server, fail, run, stderr, succeed, text, write_items};
use serde_json::json;

fn import(data: &Path, count: usize) {
    let file = write_items(&data.with_extension("ndjson"), count);
    let flags = ["--partition-key", "/pk", "--data-dir", text(data)];
    succeed(&[&["import", "db/c", text(&file)], &flags[..]].concat());
}

#[test]
fn a_stopped_database_is_copied_and_restored() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    import(&path("data"), 500);
    let (data, copy, restored) = (path("data"), path("below/copy"), path("restored"));
    succeed(&["backup", "--data-dir", text(&data), "--out", text(&copy)]);
    succeed(&["restore", "--from", text(&copy), "--data-dir", text(&restored)]);
    let said = succeed(&["verify", "--data-dir", text(&restored)]);
    assert!(said.contains("verified 500 items"), "{said}");
    let export = |data: &Path| succeed(&["export", "db/c", "--data-dir", text(data)]);
    assert_eq!(export(&data), export(&restored));
    let server = Server::start(&restored);
    assert_eq!(server.client.upsert(&json!({"id": "new", "pk": "a"})).unwrap().status, 201);
    server.stop();
}

#[test]
fn a_running_server_is_copied_while_clients_write() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    import(&path("data"), 2_000);
    let server = Server::start(&path("data"));
    let writers = Writers::default();
    let (before, after) = std::thread::scope(|scope| {
        writers.start(scope, &server.client);
        writers.wait_for(20);
        let before = writers.written();
        let data = path("data");
        succeed(&["backup", "--data-dir", text(&data), "--out", text(&path("copy"))]);
        let after = writers.written();
        writers.wait_for(after + 5);
        writers.stop.store(true, Ordering::Relaxed);
        (before, after)
    });
    assert!(!path("data/requests").exists() || is_empty(&path("data/requests")));
    server.stop();
    let restored = path("restored");
    succeed(&["restore", "--from", text(&path("copy")), "--data-dir", text(&restored)]);
    let said = succeed(&["verify", "--data-dir", text(&restored)]);
    assert!(said.contains("nothing is wrong"), "{said}");
    // One moment: what was written before is in it, and of each writer a prefix.
    let copied = writer_items(&restored);
    assert!(copied.iter().sum::<usize>() >= before, "{copied:?} < {before}");
    assert!(copied.iter().sum::<usize>() <= after + copied.len(), "{copied:?} > {after}");
}

fn is_empty(directory: &Path) -> bool {
    std::fs::read_dir(directory).unwrap().next().is_none()
}

/// How many items of each writer are in a database; panics if one is missing in between.
fn writer_items(data: &Path) -> Vec<usize> {
    let text = succeed(&["export", "db/c", "--data-dir", text(data)]);
    (0..Writers::COUNT)
        .map(|writer| {
            let prefix = format!("{{\"id\":\"w{writer}-");
            let number = |line: &str| line.strip_prefix(&prefix)?.split('"').next()?.parse().ok();
            let mut numbers: Vec<usize> = text.lines().filter_map(number).collect();
            numbers.sort();
            assert_eq!(numbers, (0..numbers.len()).collect::<Vec<_>>(), "writer {writer}");
            numbers.len()
        })
        .collect()
}

/// Clients that write one item after the other until told to stop.
#[derive(Default)]
struct Writers {
    stop: AtomicBool,
    written: AtomicUsize,
}

impl Writers {
    const COUNT: usize = 3;

    fn start<'s>(&'s self, scope: &'s std::thread::Scope<'s, '_>, client: &'s Client) {
        for writer in 0..Self::COUNT {
            scope.spawn(move || {
                for n in 0.. {
                    if self.stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let item = json!({"id": format!("w{writer}-{n}"), "pk": "a"});
                    assert_eq!(client.upsert(&item).unwrap().status, 201);
                    self.written.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    }

    fn written(&self) -> usize {
        self.written.load(Ordering::Relaxed)
    }

    fn wait_for(&self, written: usize) {
        while self.written() < written {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

#[test]
fn nothing_is_overwritten() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    import(&path("data"), 5);
    let (data, copy) = (path("data"), path("copy"));
    succeed(&["backup", "--data-dir", text(&data), "--out", text(&copy)]);
    let said = fail(1, &["backup", "--data-dir", text(&data), "--out", text(&copy)]);
    assert!(said.contains("exists already"), "{said}");
    let said = fail(1, &["restore", "--from", text(&copy), "--data-dir", text(&data)]);
    assert!(said.contains("is not empty"), "{said}");
    let said = fail(1, &["restore", "--from", text(directory.path()), "--data-dir", "x"]);
    assert!(said.contains("no complete backup"), "{said}");
    // An empty directory, such as a mounted volume, is fine.
    std::fs::create_dir(path("volume")).unwrap();
    succeed(&["restore", "--from", text(&copy), "--data-dir", text(&path("volume"))]);
}

#[test]
fn a_backup_that_cannot_be_opened_is_not_restored() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    import(&path("data"), 5);
    let (copy, to) = (path("copy"), path("to"));
    succeed(&["backup", "--data-dir", text(&path("data")), "--out", text(&copy)]);
    std::fs::write(copy.join("FORMAT"), "cosmolabe 99\n").unwrap();
    let said = fail(1, &["restore", "--from", text(&copy), "--data-dir", text(&to)]);
    assert!(said.contains("newer version"), "{said}");
    assert!(!to.exists());
}

#[test]
fn a_server_that_is_killed_does_not_leave_a_backup() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    import(&path("data"), 5);
    let server = Server::start(&path("data"));
    // Stopped, the server holds its lock but carries nothing out.
    server.signal("-STOP");
    let (data, copy) = (path("data"), path("copy"));
    let waiting = std::thread::spawn(move || {
        run(&["backup", "--data-dir", text(&data), "--out", text(&copy)])
    });
    while !path("data/requests").exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    server.kill();
    let output = waiting.join().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("stopped before"), "{}", stderr(&output));
    assert!(!path("copy").exists() && is_empty(&path("data/requests")));
    Server::start(&path("data")).stop();
}

#[test]
fn damage_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    import(&data, 2_000);
    let files = std::fs::read_dir(data.join("engine")).unwrap().map(|entry| entry.unwrap().path());
    let tables = files.filter(|path| path.extension().is_some_and(|end| end == "tbl"));
    let largest = tables.max_by_key(|path| path.metadata().unwrap().len()).expect("a table");
    let mut bytes = std::fs::read(&largest).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x55;
    std::fs::write(&largest, bytes).unwrap();
    fail(1, &["verify", "--data-dir", text(&data)]);
}
