//! Goal: what the laboratory starts, it ends; and copies become right whenever the process that
//! keeps them dies.
//! Method: the real binary, asked to end in the middle of a run; renames with the follower killed
//! halfway and started again, and then every copy and counter compared with its source.
//!
//! With `COSMOLABE_LONG=1` a thousand users are renamed.

#![cfg(unix)]
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use client::Key;
use common::{PATIENCE, Server, cosmolabe, fail, succeed, text};
use lab::pipeline::LEASES;
use lab::target::{Tally, Target};
use model::partition_key::PartitionKey;
use serde_json::{Value, json};

/// A process that is killed if the test fails.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Whether a process has this text among its arguments.
fn is_running(argument: &str) -> bool {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.any(|line| String::from_utf8_lossy(&line).contains(argument))
}

fn entries(directory: &Path) -> usize {
    std::fs::read_dir(directory).unwrap().count()
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Sends a signal when the servers of the run have their directories, or when data is loaded.
fn ended_by(signal: &str, arguments: &[&str], servers: usize, when: impl Fn(&str) -> bool) {
    let directory = tempfile::tempdir().unwrap();
    let mut command = cosmolabe();
    command.args(arguments).env("TMPDIR", directory.path());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut run = Process(command.spawn().unwrap());
    wait_until("no directory", || entries(directory.path()) == servers);
    let found = std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().path());
    let found: Vec<PathBuf> = found.collect();
    assert!(found.iter().all(|path| is_running(text(path))));
    let mut said = BufReader::new(run.0.stderr.take().unwrap()).lines();
    if !when("") {
        assert!(said.by_ref().any(|line| when(&line.unwrap())), "the run said nothing");
    }
    let id = run.0.id().to_string();
    assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    let last = said.map(Result::unwrap).last().unwrap();
    assert_eq!(run.0.wait().unwrap().code(), Some(1));
    assert_eq!(last, format!("cosmolabe: ended by SIG{}", &signal[1..]));
    assert_eq!(entries(directory.path()), 0, "the directory is gone");
    assert!(!found.iter().any(|path| is_running(text(path))), "the servers are gone");
}

#[test]
fn a_run_that_is_ended_leaves_nothing_behind() {
    let run = ["lab", "run", "blog"];
    ended_by("-TERM", &run, 1, |_| true);
    ended_by("-INT", &run, 1, |_| true);
    ended_by("-TERM", &run, 1, |line| line.contains("v1: load"));
    let grow = ["lab", "growth", "blog", "--scales", "0.0006,0.001"];
    ended_by("-INT", &grow, 2, |line| line.contains("v1: load"));
}

/// The blog with so many users, and few posts, comments and likes of each.
fn small_blog(directory: &Path, users: usize) -> PathBuf {
    let blog = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads/blog");
    for file in std::fs::read_dir(&blog).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), directory.join(file.file_name())).unwrap();
    }
    let path = directory.join("workload.toml");
    let mut workload = std::fs::read_to_string(&path).unwrap();
    for (full, small) in [
        ("count = 100000", format!("count = {users}")),
        ("count = { min = 5, max = 50 }", "count = { min = 0, max = 2 }".to_owned()),
        ("count = { min = 0, max = 25 }", "count = { min = 0, max = 3 }".to_owned()),
        ("count = { min = 0, max = 100 }", "count = { min = 0, max = 3 }".to_owned()),
    ] {
        assert_eq!(workload.matches(full).count(), 1, "{full}");
        workload = workload.replace(full, &small);
    }
    std::fs::write(&path, workload).unwrap();
    path
}

/// The database of a model, asked by a client of its own.
struct There {
    target: Target,
    runtime: tokio::runtime::Runtime,
}

impl There {
    fn new(endpoint: &str, database: &str) -> There {
        let client = client::Client::new(endpoint, Key::development()).unwrap();
        let target = Target { client, database: database.to_owned() };
        There { target, runtime: tokio::runtime::Runtime::new().unwrap() }
    }

    fn rows(&self, container: &str, sql: &str) -> Vec<Value> {
        let query = self.target.container(container).query(sql, &[], -1);
        let mut tally = Tally::default();
        self.runtime.block_on(self.target.rows(sql, &query, &mut tally)).unwrap()
    }

    /// Copies of new names that have arrived.
    fn arrived(&self) -> u64 {
        let sql = "SELECT VALUE COUNT(1) FROM p WHERE STARTSWITH(p.userUsername, 'renamed-')";
        self.rows("posts", sql)[0].as_u64().unwrap()
    }

    /// Gives some users new names; how many copies of names have to follow.
    fn rename(&self, count: usize) -> u64 {
        let all = self.rows("users", "SELECT * FROM u WHERE IS_DEFINED(u.username)");
        let mut renamed: Vec<Value> = all.into_iter().take(count).collect();
        assert_eq!(renamed.len(), count);
        for (at, user) in renamed.iter_mut().enumerate() {
            user["username"] = json!(format!("renamed-{at}"));
            let key = PartitionKey::parse(&json!([user["id"]]).to_string()).unwrap();
            let request = self.target.container("users").upsert(&key, user.to_string());
            self.runtime.block_on(self.target.client.send(&request)).unwrap();
        }
        let ids: BTreeSet<&str> = renamed.iter().map(|user| user["id"].as_str().unwrap()).collect();
        let owners = self.rows("posts", "SELECT VALUE p.userId FROM p");
        owners.iter().filter(|id| ids.contains(id.as_str().unwrap())).count() as u64
    }
}

/// A process that follows, and has its leases.
fn follower(model: &str, there: &[&str]) -> Process {
    let mut command = cosmolabe();
    command.args(["lab", "follow"]).args(there).args(["--name", "follower"]);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
    let mut follower = Process(child.unwrap());
    let mut line = String::new();
    BufReader::new(follower.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with(&format!("{model}: following as follower, ")), "{line}");
    follower
}

fn renames_survive(model: &str, count: usize) {
    let directory = tempfile::tempdir().unwrap();
    let (data, files) = (directory.path().join("data"), directory.path().join("blog"));
    std::fs::create_dir(&files).unwrap();
    let workload = small_blog(&files, count + 5);
    let server = Server::with(&["--data-dir", text(&data), "--enforce-throughput", "false"]);
    let endpoint = format!("http://{}", server.client.address);
    let there = [text(&workload), "--model", model, "--scale", "1", "--endpoint", &endpoint];
    succeed(&[&["lab", "run", "--repeat", "1"], &there[..]].concat());

    let blog = There::new(&endpoint, &format!("lab-blog-{model}"));
    let due = blog.rename(count);
    assert!(due > count as u64, "{due} copies");
    assert_eq!(blog.arrived(), 0);

    // Killed when half of the copies are there.
    let mut follower = follower(model, &there);
    let begun = Instant::now();
    while blog.arrived() < due / 2 {
        assert!(begun.elapsed() < PATIENCE * 20, "the follower does nothing");
    }
    let id = follower.0.id().to_string();
    assert!(Command::new("kill").args(["-KILL", &id]).status().unwrap().success());
    assert!(!follower.0.wait().unwrap().success());
    assert!(blog.arrived() < due, "killed before all copies were there");
    // Its leases have an owner: nobody else takes them, and it takes them back.
    let follow = [&["lab", "follow", "--until-idle"], &there[..]].concat();
    let said = fail(1, &follow);
    assert!(said.contains("is being run by another process"), "{said}");
    let said = fail(1, &[&["lab", "verify"], &there[..]].concat());
    assert!(said.contains("names in posts, comments and likes"), "{said}");
    let begun = Instant::now();
    let said = succeed(&[&follow[..], &["--name", "follower"]].concat());
    let elapsed_ms = begun.elapsed().as_millis();
    let copied = said.lines().find(|line| line.contains(" changes, ")).unwrap();
    let words: Vec<&str> = copied.split(' ').collect();
    let number = |at: usize| words[at].parse::<f64>().unwrap();
    let page = count.min(100);
    assert!(number(1) >= page as f64, "the position of its page was not written: {copied}");
    assert!(number(words.len() - 2) <= elapsed_ms as f64, "{copied}");

    // When the reported lag is over, everything is right; and there is nothing left to do.
    let said = succeed(&[&["lab", "verify"], &there[..]].concat());
    assert!(said.ends_with("every copy is what its source says\n"), "{said}");
    assert_eq!(blog.arrived(), due);
    let said = succeed(&follow);
    assert_eq!(said.lines().count(), 1, "given back, and nothing is new: {said}");
    server.stop();
}

fn count() -> usize {
    match std::env::var("COSMOLABE_LONG").is_ok() {
        true => 1_000,
        false => 40,
    }
}

#[test]
fn renames_reach_every_copy_of_v2() {
    renames_survive("v2", count());
}

#[test]
fn renames_reach_every_copy_of_v3() {
    renames_survive("v3", count());
}

#[test]
fn leases_are_renewed_while_nothing_changes_and_given_back() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path());
    let endpoint = format!("http://{}", server.client.address);
    let there = ["hybrid", "--model", "hybrid", "--scale", "0.1", "--endpoint", &endpoint];
    succeed(&[&["lab", "run", "--repeat", "1"], &there[..]].concat());
    let database = There::new(&endpoint, "lab-hybrid-hybrid");
    let owners_and_times = || {
        let leases = database.rows(LEASES, "SELECT l.owner, l.renewed FROM l ORDER BY l.id");
        let pair = |lease: &Value| {
            (lease["owner"].as_str().unwrap().to_owned(), lease["renewed"].as_u64().unwrap())
        };
        leases.iter().map(pair).collect::<Vec<_>>()
    };
    let mut follower = follower("hybrid", &there);
    let taken = owners_and_times();
    assert!(!taken.is_empty() && taken.iter().all(|(owner, _)| owner == "follower"), "{taken:?}");
    wait_until("leases are not renewed", || {
        let now = owners_and_times();
        now.iter().zip(&taken).all(|(now, taken)| now.1 >= taken.1 + 10_000)
    });
    let id = follower.0.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    assert!(follower.0.wait().unwrap().success());
    let given_back = owners_and_times();
    assert!(given_back.iter().all(|(owner, _)| owner.is_empty()), "{given_back:?}");
    server.stop();
}

#[test]
fn followers_need_something_to_follow() {
    assert!(fail(2, &["lab", "follow", "blog"]).contains("needs --endpoint"));
    let said =
        fail(2, &["lab", "follow", "blog", "--model", "v1", "--endpoint", "http://127.0.0.1:1"]);
    assert!(said.contains("has no pipelines"), "{said}");
}
