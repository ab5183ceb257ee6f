//! Backups and compactions asked of a running server, through files in its data directory.
//!
//! ```text
//!   requests/backup-{id}.json       {"out": "/backups/monday"}      written by the command
//!   requests/backup-{id}.running    the same, taken by the server
//!   requests/backup-{id}.done       {"error": null} or why not      removed by the command
//!   requests/compact-{id}.json      {}                              and so on
//! ```
//!
//! Whoever may write to the data directory could as well copy it, so no further permission is
//! asked for. Every step is a rename: a file is there whole or not at all.
//!
//! INVARIANTS
//! (R1) A request that was taken is answered, also if the server stops before it is done; after a
//!      crash the next start answers it, and the command notices by itself that the lock is free.
//! (R2) A backup has its name only when it is complete. Until then it is `{out}.{id}.partial`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use base::Random;
use base::worker::{Signal, Worker};
use serde::{Deserialize, Serialize};
use store::Store;

use crate::database::is_in_use;

const DIRECTORY: &str = "requests";
const ASKED: &str = "json";
const RUNNING: &str = "running";
const DONE: &str = "done";

/// How often the server looks for requests.
const WATCH_PERIOD: Duration = Duration::from_millis(200);
/// How often a command looks for its answer.
const POLL_PERIOD: Duration = Duration::from_millis(50);
/// How long a server may take to begin.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often a command asks whether the server still lives.
const LOCK_PERIOD: Duration = Duration::from_secs(1);

/// What can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Backup,
    Compaction,
}

impl Kind {
    /// How names of its files begin.
    fn prefix(self) -> &'static str {
        match self {
            Kind::Backup => "backup-",
            Kind::Compaction => "compact-",
        }
    }

    /// What it is called.
    fn name(self) -> &'static str {
        match self {
            Kind::Backup => "backup",
            Kind::Compaction => "compaction",
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Nothing {}

#[derive(Debug, Serialize, Deserialize)]
struct Asked {
    out: PathBuf,
}

#[derive(Debug, Serialize, Deserialize)]
struct Answer {
    error: Option<String>,
}

/// Copies one consistent state of a store to `out`, which must not exist (R2).
pub fn checkpoint(store: &dyn Store, out: &Path, id: &str) -> Result<()> {
    if out.exists() {
        bail!("{} exists already. Choose another --out.", out.display());
    }
    let partial = partial_of(out, id);
    let copied = store.checkpoint(&partial).map_err(anyhow::Error::from);
    let moved = copied.and_then(|()| Ok(std::fs::rename(&partial, out)?));
    if moved.is_err() {
        remove_partial(out, id);
    }
    moved.with_context(|| format!("{} cannot be written", out.display()))
}

/// Where a backup is while it is made.
pub fn partial_of(out: &Path, id: &str) -> PathBuf {
    let mut name: OsString = out.as_os_str().to_owned();
    name.push(format!(".{id}.partial"));
    name.into()
}

/// A name for one backup.
pub fn new_id() -> String {
    format!("{:016x}", Random::from_entropy().next())
}

fn remove_partial(out: &Path, id: &str) {
    // It may never have been made; and if it stays, its name says what it is.
    let _ = std::fs::remove_dir_all(partial_of(out, id));
}

/// The server's side: looks for requests and carries them out on a thread of its own.
pub struct Watcher {
    worker: Worker,
    /// The request being carried out.
    current: Arc<Mutex<Option<Request>>>,
}

impl Watcher {
    /// Watches a data directory. Requests left behind by an earlier server are answered (R1).
    pub fn start(data_dir: &Path, store: Arc<dyn Store>) -> Watcher {
        let directory = data_dir.join(DIRECTORY);
        answer_leftovers(&directory);
        let current: Arc<Mutex<Option<Request>>> = Arc::default();
        let theirs = current.clone();
        let worker = Worker::spawn("requests", move |signal: &Signal| {
            while signal.wait(WATCH_PERIOD) {
                for request in requests(&directory, ASKED) {
                    carry_out(request, &*store, &theirs);
                }
            }
        });
        Watcher { worker, current }
    }

    /// Ends watching. What is under way is given up: it takes as long as the data is large, and
    /// whoever stops a server wants it stopped.
    pub fn stop(self) {
        let current = self.current.lock().expect("no code panics while holding this lock").take();
        match current {
            None => drop(self.worker),
            Some(request) => {
                request.answer(Some(request.interrupted("was stopped")));
                // Joining would wait for the work. The thread ends with the process.
                std::mem::forget(self.worker);
            }
        }
    }
}

/// One request, by the path of its file without the ending that says how far it is.
#[derive(Clone, Debug)]
struct Request {
    kind: Kind,
    base: PathBuf,
    id: String,
}

impl Request {
    fn new(kind: Kind, directory: &Path, id: &str) -> Request {
        let base = directory.join(format!("{}{id}", kind.prefix()));
        Request { kind, base, id: id.to_owned() }
    }

    /// Why there is no answer but this one.
    fn interrupted(&self, how: &str) -> String {
        format!("the server {how} before the {} was complete", self.kind.name())
    }

    fn file(&self, state: &str) -> PathBuf {
        self.base.with_extension(state)
    }

    fn is(&self, state: &str) -> bool {
        self.file(state).exists()
    }

    /// Leaves the answer for the command.
    fn answer(&self, error: Option<String>) {
        let answered = write(&self.file(DONE), &Answer { error });
        // The command waits for `done`; it must be there before `running` goes.
        let removed = std::fs::remove_file(self.file(RUNNING));
        if let Err(error) = answered.and(removed.map_err(Into::into)) {
            tracing::warn!(error = format!("{error:#}"), "a request was not answered");
        }
    }
}

/// Requests in one state, in the order of their names.
fn requests(directory: &Path, state: &str) -> Vec<Request> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    let request = |name: &String| {
        let (stem, _) = name.rsplit_once('.').filter(|(_, end)| *end == state)?;
        let of_kind =
            |kind: Kind| Some(Request::new(kind, directory, stem.strip_prefix(kind.prefix())?));
        [Kind::Backup, Kind::Compaction].into_iter().find_map(of_kind)
    };
    names.iter().filter_map(request).collect()
}

/// What an earlier server took and did not finish, and answers nobody fetched.
fn answer_leftovers(directory: &Path) {
    for request in requests(directory, DONE) {
        let _ = std::fs::remove_file(request.file(DONE));
    }
    for request in requests(directory, RUNNING) {
        if let Ok(Asked { out }) = read(&request.file(RUNNING)) {
            remove_partial(&out, &request.id);
        }
        request.answer(Some(request.interrupted("stopped")));
    }
}

fn carry_out(request: Request, store: &dyn Store, current: &Mutex<Option<Request>>) {
    if std::fs::rename(request.file(ASKED), request.file(RUNNING)).is_err() {
        return; // Its command has given up.
    }
    let set = |value| *current.lock().expect("no code panics while holding this lock") = value;
    set(Some(request.clone()));
    let done = match request.kind {
        Kind::Backup => read::<Asked>(&request.file(RUNNING))
            .and_then(|Asked { out }| checkpoint(store, &out, &request.id)),
        Kind::Compaction => store.compact().map_err(Into::into),
    };
    let is_ours = current.lock().expect("no code panics while holding this lock").take().is_some();
    if !is_ours {
        return; // Stopped: the answer has been given.
    }
    match done {
        Ok(()) => {
            tracing::info!(id = request.id, "{} complete", request.kind.name());
            request.answer(None);
        }
        Err(error) => {
            tracing::error!(error = format!("{error:#}"), "{} failed", request.kind.name());
            request.answer(Some(format!("{error:#}")));
        }
    }
}

/// The command's side: has the server that uses `data_dir` make a backup and waits for it.
///
/// `out` is absolute: the server has a working directory of its own. `progress` is called from time
/// to time while the backup is made.
pub fn ask(data_dir: &Path, out: &Path, id: &str, mut progress: impl FnMut()) -> Result<()> {
    let asked = Asked { out: out.to_owned() };
    let result = ask_for(Kind::Backup, data_dir, id, &asked, &mut progress);
    if result.is_err() {
        remove_partial(out, id);
    }
    result
}

/// Has the server that uses `data_dir` write everything to tables and compact them, and waits.
pub fn ask_to_compact(data_dir: &Path) -> Result<()> {
    ask_for(Kind::Compaction, data_dir, &new_id(), &Nothing {}, &mut || {})
}

fn ask_for(
    kind: Kind,
    data_dir: &Path,
    id: &str,
    asked: &impl Serialize,
    progress: &mut impl FnMut(),
) -> Result<()> {
    let directory = data_dir.join(DIRECTORY);
    match std::fs::create_dir(&directory) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            return Err(error).with_context(|| format!("{} cannot be made", directory.display()));
        }
        Ok(()) | Err(_) => {}
    }
    let request = Request::new(kind, &directory, id);
    write(&request.file(ASKED), asked)?;
    let result = wait(data_dir, &request, progress);
    for state in [ASKED, RUNNING, DONE] {
        let _ = std::fs::remove_file(request.file(state));
    }
    result
}

fn wait(data_dir: &Path, request: &Request, progress: &mut impl FnMut()) -> Result<()> {
    let asked = Instant::now();
    let mut looked = Instant::now();
    loop {
        std::thread::sleep(POLL_PERIOD);
        // `done` is looked for last: it is written before `running` goes.
        let (is_asked, is_running) = (request.is(ASKED), request.is(RUNNING));
        if request.is(DONE) {
            return match read::<Answer>(&request.file(DONE))?.error {
                None => Ok(()),
                Some(error) => bail!("{error}"),
            };
        }
        if is_asked && asked.elapsed() > PATIENCE {
            bail!(
                "{} is in use by a process that takes no requests, such as an import. Try again \
                 when it has ended.",
                data_dir.display()
            );
        }
        if looked.elapsed() > LOCK_PERIOD {
            looked = Instant::now();
            if !is_in_use(data_dir) && !request.is(DONE) {
                bail!("{}", request.interrupted("stopped")); // R1
            }
        }
        if !is_asked && !is_running && !request.is(RUNNING) && !request.is(DONE) {
            bail!("the request was removed from {}", data_dir.join(DIRECTORY).display());
        }
        progress();
    }
}

/// Writes a small file so that it appears whole.
fn write(path: &Path, value: &impl Serialize) -> Result<()> {
    let new = path.with_extension("new");
    std::fs::write(&new, serde_json::to_vec(value)?)
        .and_then(|()| std::fs::rename(&new, path))
        .with_context(|| format!("{} cannot be written", path.display()))
}

fn read<T: for<'a> Deserialize<'a>>(path: &Path) -> Result<T> {
    let text = std::fs::read(path).with_context(|| format!("{} is missing", path.display()))?;
    serde_json::from_slice(&text).with_context(|| format!("{} is not understood", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> Arc<dyn Store> {
        Arc::new(store_memory::MemoryStore::new())
    }

    /// A data directory that is locked, as if a server used it.
    fn locked() -> (tempfile::TempDir, std::fs::File) {
        let directory = tempfile::tempdir().unwrap();
        let lock = std::fs::File::create(directory.path().join("LOCK")).unwrap();
        lock.lock().unwrap();
        (directory, lock)
    }

    fn is_empty(directory: &Path) -> bool {
        std::fs::read_dir(directory).unwrap().next().is_none()
    }

    #[test]
    fn a_watcher_makes_what_is_asked_for() {
        let (data, _lock) = locked();
        let out = data.path().join("copy");
        let watcher = Watcher::start(data.path(), store());
        ask(data.path(), &out, "1", || {}).unwrap();
        assert!(out.join("memory.dump").exists());
        let again = ask(data.path(), &out, "2", || {}).unwrap_err();
        assert!(again.to_string().contains("exists already"), "{again:#}");
        assert!(is_empty(&data.path().join(DIRECTORY)));
        watcher.stop();
    }

    #[test]
    fn a_watcher_compacts() {
        let (data, _lock) = locked();
        let watcher = Watcher::start(data.path(), store());
        ask_to_compact(data.path()).unwrap();
        assert!(is_empty(&data.path().join(DIRECTORY)));
        watcher.stop();
        let gone = ask_to_compact(&data.path().join("gone")).unwrap_err();
        assert!(gone.to_string().contains("cannot be made"), "{gone:#}");
    }

    #[test]
    fn a_server_that_dies_is_noticed() {
        let (data, lock) = locked();
        drop(lock);
        let error = ask(data.path(), &data.path().join("copy"), "1", || {}).unwrap_err();
        assert!(error.to_string().contains("stopped before"), "{error:#}");
        assert!(is_empty(&data.path().join(DIRECTORY)));
    }

    #[test]
    fn a_server_that_stops_gives_up_its_backup() {
        let (data, _lock) = locked();
        let directory = data.path().join(DIRECTORY);
        std::fs::create_dir(&directory).unwrap();
        let watcher = Watcher::start(data.path(), store());
        let request = Request::new(Kind::Backup, &directory, "7");
        write(&request.file(RUNNING), &Asked { out: data.path().join("copy") }).unwrap();
        *watcher.current.lock().unwrap() = Some(request.clone());
        watcher.stop();
        let answer: Answer = read(&request.file(DONE)).unwrap();
        assert!(answer.error.is_some_and(|error| error.contains("was stopped"))); // R1
        assert!(!request.is(RUNNING));
    }

    #[test]
    fn leftovers_are_answered_and_removed() {
        let (data, _lock) = locked();
        let directory = data.path().join(DIRECTORY);
        std::fs::create_dir(&directory).unwrap();
        let out = data.path().join("copy");
        std::fs::create_dir(partial_of(&out, "7")).unwrap();
        let request = Request::new(Kind::Backup, &directory, "7");
        write(&request.file(RUNNING), &Asked { out: out.clone() }).unwrap();
        answer_leftovers(&directory);
        let answer: Answer = read(&request.file(DONE)).unwrap();
        assert!(answer.error.is_some_and(|error| error.contains("stopped")));
        assert!(!partial_of(&out, "7").exists() && !request.is(RUNNING));
        answer_leftovers(&directory);
        assert!(is_empty(&directory));
    }
}
