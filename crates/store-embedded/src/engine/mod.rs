//! The engine under the committer: ordered maps on disk, written in groups, read by snapshot.
//!
//! A log-structured merge tree without versions of keys. There is one writer, it writes groups, and
//! every group makes a new [`State`]; a state never changes, so a snapshot is a reference to one.
//!
//! ```text
//!   group ─▶ journal, synced ─▶ new memory tree ─▶ new state
//!
//!   state    memory    tree         what the newest journal holds            per part, newest
//!            sealed    tree         on its way into tables                   first: the first
//!            tables    3 … 2 … 1    files, each of some age                  that knows a key
//!                                                                            is right
//! ```
//!
//! PARTS      the five spaces, and positions: {log u32 big-endian} -> position u64 little-endian.
//!
//! INVARIANTS
//! (E1) What memory and sealed hold is in journals that the manifest has not left behind.
//! (E2) Locks are taken in the order journal, manifest, state. Files are written under none of the
//!      last; nobody who reads takes any.
//! (E3) Among the tables of a part, each is newer as a whole than those behind it.
//!
//! LAYOUT     `journal`, `memory`, `tree` (what it is made of), `block`, `filter`, `table` (files), `cache` (blocks read),
//!            `manifest` (which files count), `merge` (reading several places as one), `gather` (many keys), `work` (what
//!            runs in the background: memory into tables, tables into fewer).
//!
//! WHY OURS   The engine below was fjall until reads had become most of what a query costs. Knowing
//!            that there is one writer and that it writes sorted groups, memory needs no skip list
//!            and keys no versions (ADR 13).

pub(crate) mod block;
pub(crate) mod cache;
pub(crate) mod filter;
pub(crate) mod gather;
mod index;
pub(crate) mod journal;
pub(crate) mod manifest;
pub(crate) mod memory;
pub(crate) mod merge;
pub(crate) mod table;
pub(crate) mod tree;
mod work;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use store::{Error, LogId, Positions, Result, Space};

use self::cache::BlockCache;
use self::journal::{Changes, Journal, Replayed};
use self::manifest::Manifest;
use self::memory::Memory;
use self::table::Table;
use self::tree::Edit;
use crate::Options;
use crate::directory::Stop;
use crate::reader::SnapshotReader;

/// How many ordered maps there are.
pub(crate) const PARTS: usize = 6;

/// Tables of one part beyond which writing waits for merging.
const TABLES_MAX: usize = 24;

/// An ordered map of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Part {
    Meta = 0,
    Item = 1,
    Key = 2,
    Term = 3,
    Log = 4,
    Position = 5,
}

impl Part {
    pub(crate) const ALL: [Part; PARTS] =
        [Part::Meta, Part::Item, Part::Key, Part::Term, Part::Log, Part::Position];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Part::Meta => "meta",
            Part::Item => "item",
            Part::Key => "key",
            Part::Term => "term",
            Part::Log => "log",
            Part::Position => "position",
        }
    }

    pub(crate) fn from_number(number: u8) -> Option<Part> {
        Part::ALL.get(usize::from(number)).copied()
    }
}

/// A key and what becomes of it; without a value it is deleted.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) key: Bytes,
    pub(crate) value: Option<Bytes>,
}

impl Change {
    pub(crate) fn edit(&self) -> Edit<'_> {
        let entry = self.value.as_ref().map_or(Entry::Deleted, Entry::Shared);
        Edit { key: &self.key, entry }
    }
}

/// What a place says of a key it knows.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Entry<'a> {
    /// It is not there, whatever older places say.
    Deleted,
    /// Its value.
    Value(&'a [u8]),
    /// Its value, in a buffer that can be shared.
    Shared(&'a Bytes),
}

impl<'a> Entry<'a> {
    /// The value's bytes; none of a deleted key.
    pub(crate) fn bytes(self) -> &'a [u8] {
        match self {
            Entry::Deleted => &[],
            Entry::Value(value) => value,
            Entry::Shared(value) => value,
        }
    }
}

#[cfg(test)]
impl Entry<'_> {
    /// The value, on its own; nothing of a deleted key.
    pub(crate) fn owned(self) -> Option<Vec<u8>> {
        match self {
            Entry::Deleted => None,
            Entry::Value(_) | Entry::Shared(_) => Some(self.bytes().to_vec()),
        }
    }
}

/// Tables of one part, newest first.
pub(crate) type Tables = Arc<[Arc<Table>]>;

/// Everything there is, at one moment. See the module header.
#[derive(Clone, Default)]
pub(crate) struct State {
    pub(crate) memory: Arc<Memory>,
    pub(crate) sealed: Option<Arc<Memory>>,
    pub(crate) tables: [Tables; PARTS],
}

/// The open engine. Dropping it ends its threads.
pub(crate) struct Engine {
    core: Arc<Core>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// What the writer and the background threads share.
struct Core {
    directory: PathBuf,
    cache: Arc<BlockCache>,
    /// A journal is full at so many bytes.
    journal_bytes_max: u64,
    next_number: AtomicU64,
    journal: Mutex<Journal>,
    manifest: Mutex<Manifest>,
    now: Mutex<Now>,
    changed: Condvar,
    /// Held by whoever writes memory into tables, or merges tables of a part.
    flushing: Mutex<()>,
    merging: [Mutex<()>; PARTS],
    /// Tables that were replaced and may still be read.
    replaced: Mutex<Vec<Arc<Table>>>,
    is_stopping: AtomicBool,
    /// Told when tables have changed, so that new views use them.
    on_change: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

struct Now {
    state: Arc<State>,
    /// The journal behind those that hold what is sealed, and the bytes of those.
    journal_behind_sealed: u64,
    sealed_bytes: u64,
    /// Why background work stopped.
    fault: Option<String>,
    written_at: Instant,
    /// A merge failed; none is tried before this.
    merges_after: Option<Instant>,
}

impl Engine {
    pub(crate) fn cache(&self) -> Arc<BlockCache> {
        self.core.cache.clone()
    }

    /// Reads blocks into the cache while there is room for them and `is_wanted` says yes: those
    /// that lead to items first.
    pub(crate) fn warm(&self, is_wanted: &dyn Fn() -> bool) {
        let state = self.core.now.lock().state.clone();
        let parts = [Part::Meta, Part::Key, Part::Term, Part::Item];
        let mut tables = parts.into_iter().flat_map(|part| state.tables[part as usize].iter());
        let _ = tables.try_fold(self.core.cache.room(), |left, table| table.warm(left, is_wanted));
    }

    /// Opens or creates the engine's files in `directory`.
    pub(crate) fn open(directory: &Path, stop: Stop, options: &Options) -> Result<Engine> {
        let core = Arc::new(Core::open(directory, stop, options)?);
        let threads = Mutex::new(vec![
            spawn("flusher", &core, Core::run_flusher)?,
            spawn("merger", &core, Core::run_merger)?,
            spawn("small merger", &core, Core::run_small_merger)?,
        ]);
        Ok(Engine { core, threads })
    }

    /// Has `act` called whenever tables have changed. Once.
    pub(crate) fn on_change(&self, act: impl Fn() + Send + Sync + 'static) {
        let _ = self.core.on_change.set(Box::new(act));
    }

    /// The newest state.
    pub(crate) fn snapshot(&self) -> SnapshotReader {
        SnapshotReader::new(self.core.now.lock().state.clone())
    }

    /// Writes one group, whose changes ascend by key in every space, and syncs if asked to.
    pub(crate) fn write(
        &self,
        changes: impl Iterator<Item = (Space, Bytes, Option<Bytes>)>,
        marks: &[(LogId, u64)],
        is_synced: bool,
    ) -> Result<()> {
        let mut all = Changes::default();
        for (space, key, value) in changes {
            all[space as usize].push(Change { key, value });
        }
        all[Part::Position as usize] = positions_as_changes(marks);
        self.core.write(&all, is_synced)
    }

    /// Whether a group can be written without waiting for work in the background: neither for a new
    /// journal, which is near, nor for merges.
    pub(crate) fn has_room(&self) -> bool {
        let is_far = self.core.journal.lock().length() < self.core.journal_bytes_max / 16 * 15;
        let now = self.core.now.lock();
        is_far && now.state.tables.iter().all(|tables| tables.len() < TABLES_MAX)
    }

    /// Writes positions alone, synced.
    pub(crate) fn write_positions(&self, marks: &[(LogId, u64)]) -> Result<()> {
        self.write(std::iter::empty(), marks, true)
    }

    /// The stored position of every log.
    pub(crate) fn positions(&self) -> Result<Positions> {
        let mut positions = Positions::default();
        self.snapshot().for_each(Part::Position, |key, value| {
            let (log, position) = decode_position(key, value)
                .ok_or_else(|| damaged(&self.core.directory, "a log position is malformed"))?;
            positions.advance(log, position);
            Ok(())
        })?;
        Ok(positions)
    }

    /// Syncs everything written so far.
    pub(crate) fn sync(&self) -> Result<()> {
        self.core.journal.lock().sync()
    }

    /// Fills an empty space in ascending order of keys.
    pub(crate) fn ingest(
        &self,
        space: Space,
        rows: impl Iterator<Item = Result<store::Row>>,
    ) -> Result<()> {
        self.core.ingest(Part::ALL[space as usize], rows)
    }

    /// Writes everything in memory to tables, so that no journal is needed.
    pub(crate) fn flush_tables(&self) -> Result<()> {
        self.core.flush_all()
    }

    /// Rewrites all tables without what is deleted or replaced.
    pub(crate) fn compact(&self) -> Result<()> {
        self.core.flush_all()?;
        Part::ALL.into_iter().try_for_each(|part| self.core.merge_all(part))
    }

    /// Deletes the files of replaced tables that nobody reads any more.
    pub(crate) fn drop_replaced(&self) {
        self.core.drop_replaced();
    }

    /// Bytes the tables and journals occupy.
    pub(crate) fn disk_bytes(&self) -> u64 {
        let state = self.core.now.lock().state.clone();
        let tables = state.tables.iter().flat_map(|tables| tables.iter());
        tables.map(|table| table.length()).sum::<u64>() + self.journal_bytes()
    }

    /// Bytes of the journals that the next open would have to replay.
    pub(crate) fn journal_bytes(&self) -> u64 {
        let newest = self.core.journal.lock().length();
        newest + self.core.now.lock().sealed_bytes
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.core.is_stopping.store(true, Ordering::Relaxed);
        // Under the lock, so that no thread is between looking and sleeping.
        drop(self.core.now.lock());
        self.core.changed.notify_all();
        for thread in self.threads.lock().drain(..) {
            // What it panicked over was noted as a fault.
            let _ = thread.join();
        }
    }
}

impl Core {
    fn open(directory: &Path, stop: Stop, options: &Options) -> Result<Core> {
        std::fs::create_dir_all(directory).map_err(|e| fault(directory, &e))?;
        let cache = Arc::new(BlockCache::new(options.cache_bytes));
        let mut manifest = match (Manifest::read(directory)?, stop) {
            (Some(manifest), _) => manifest,
            (None, Stop::Clean) => return Err(damaged(directory, "its list of tables is missing")),
            (None, Stop::New | Stop::UncleanSync | Stop::UncleanRelaxed) => create(directory)?,
        };
        let tables = open_tables(directory, &manifest, &cache)?;
        let journals = remove_strangers(directory, &manifest)?;
        let is_missing = journals.first().is_none_or(|&(number, _)| number != manifest.journal);
        // The list that names a journal is written after it, but for the very first.
        if is_missing && manifest.next > manifest.journal {
            return Err(damaged(directory, "a journal is missing"));
        }
        let newest = journals.last().map_or(0, |&(number, _)| number);
        manifest.next = manifest.next.max(newest + 1);
        let (memory, replayed) = replay(&journals, stop)?;
        let journal = Journal::create(directory, manifest.next, replayed)?;
        let next_number = AtomicU64::new(manifest.next + 1);
        if replayed.bytes == 0 {
            leave_behind(directory, &journals, &mut manifest, journal.number())?;
        }
        let now = Now {
            state: Arc::new(State { memory: Arc::new(memory), sealed: None, tables }),
            journal_behind_sealed: 0,
            sealed_bytes: 0,
            fault: None,
            written_at: Instant::now(),
            merges_after: None,
        };
        Ok(Core {
            directory: directory.to_owned(),
            cache,
            journal_bytes_max: options.journal_bytes_max / 2,
            next_number,
            journal: Mutex::new(journal),
            manifest: Mutex::new(manifest),
            now: Mutex::new(now),
            changed: Condvar::new(),
            flushing: Mutex::new(()),
            merging: Default::default(),
            replaced: Mutex::default(),
            is_stopping: AtomicBool::new(false),
            on_change: OnceLock::new(),
        })
    }

    fn write(&self, changes: &Changes, is_synced: bool) -> Result<()> {
        let mut journal = self.journal.lock();
        self.wait_until(|now| now.state.tables.iter().all(|tables| tables.len() <= TABLES_MAX))?;
        if changes.iter().all(Vec::is_empty) {
            return if is_synced { journal.sync() } else { Ok(()) };
        }
        journal.append(changes)?;
        if is_synced {
            journal.start_sync();
        }
        // While the disk is busy. Nobody sees it before the disk is done.
        let memory = self.now.lock().state.memory.clone();
        let memory = memory.with(changes);
        if is_synced {
            journal.sync()?;
        }
        let mut now = self.now.lock();
        now.state = Arc::new(State { memory: Arc::new(memory), ..State::clone(&now.state) });
        now.written_at = Instant::now();
        drop(now);
        match journal.length() >= self.journal_bytes_max {
            true => self.seal(&mut journal),
            false => Ok(()),
        }
    }

    /// Hands memory to the flusher and begins a new journal, unless the flusher is still busy with
    /// the last and there is room to go on.
    fn seal(&self, journal: &mut Journal) -> Result<()> {
        let has_room = journal.length() < 2 * self.journal_bytes_max;
        if has_room && self.now.lock().state.sealed.is_some() {
            return Ok(());
        }
        self.wait_until(|now| now.state.sealed.is_none())?;
        self.seal_now(journal)
    }

    fn seal_now(&self, journal: &mut Journal) -> Result<()> {
        journal.sync()?; // J2
        let behind = Replayed { sequence: journal.sequence(), bytes: 0 };
        let next = Journal::create(&self.directory, self.number(), behind)?;
        let full = std::mem::replace(journal, next);
        let memory = self.now.lock().state.memory.clone();
        let sealed = Some(Arc::new(memory.settled()));
        let mut now = self.now.lock();
        let tables = now.state.tables.clone();
        now.state = Arc::new(State { memory: Arc::default(), sealed, tables });
        now.journal_behind_sealed = journal.number();
        now.sealed_bytes = full.length();
        drop(now);
        self.changed.notify_all();
        Ok(())
    }

    /// Waits until background work has got so far, or fails if it stopped.
    fn wait_until(&self, is_done: impl Fn(&Now) -> bool) -> Result<()> {
        let mut now = self.now.lock();
        loop {
            if let Some(fault) = &now.fault {
                return Err(Error::Fault(fault.clone()));
            }
            if is_done(&now) {
                return Ok(());
            }
            // Woken when something has changed; the bound is for a thread that died.
            self.changed.wait_for(&mut now, Duration::from_millis(100));
        }
    }

    /// A number for a new file.
    fn number(&self) -> u64 {
        self.next_number.fetch_add(1, Ordering::Relaxed)
    }

    fn table_path(&self, number: u64) -> PathBuf {
        table_path(&self.directory, number)
    }
}

fn spawn(name: &str, core: &Arc<Core>, run: fn(&Core)) -> Result<JoinHandle<()>> {
    let core = core.clone();
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || run(&core))
        .map_err(|e| Error::Fault(format!("cannot start the {name}: {e}")))
}

/// A new engine's manifest, durably there before any other file.
fn create(directory: &Path) -> Result<Manifest> {
    for ending in ["tbl", "jnl"] {
        if !numbered_files(directory, ending)?.is_empty() {
            return Err(damaged(directory, "its list of tables is missing"));
        }
    }
    let manifest = Manifest { next: 1, journal: 1, ..Manifest::default() };
    manifest.write(directory)?;
    Ok(manifest)
}

fn open_tables(
    directory: &Path,
    manifest: &Manifest,
    cache: &Arc<BlockCache>,
) -> Result<[Tables; PARTS]> {
    let mut all: [Tables; PARTS] = Default::default();
    for (tables, numbers) in all.iter_mut().zip(&manifest.tables) {
        let opened: Result<Vec<_>> = numbers
            .iter()
            .map(|&number| Table::open(&table_path(directory, number), number, cache))
            .map(|table| table.map(Arc::new))
            .collect();
        *tables = opened?.into();
    }
    Ok(all)
}

/// Removes files that the manifest does not name: the work of a process that was killed. Gives the
/// journals that count.
fn remove_strangers(directory: &Path, manifest: &Manifest) -> Result<Vec<(u64, PathBuf)>> {
    for (number, path) in numbered_files(directory, "tbl")? {
        if !manifest.tables.iter().flatten().any(|&known| known == number) {
            std::fs::remove_file(&path).map_err(|e| fault(&path, &e))?;
        }
    }
    let (kept, old): (Vec<_>, Vec<_>) =
        journal::journals(directory)?.into_iter().partition(|&(n, _)| n >= manifest.journal);
    for (_, path) in old {
        std::fs::remove_file(&path).map_err(|e| fault(&path, &e))?;
    }
    Ok(kept)
}

/// What the journals hold.
fn replay(journals: &[(u64, PathBuf)], stop: Stop) -> Result<(Memory, Replayed)> {
    let mut memory = Memory::default();
    let replayed = journal::replay(journals, stop, |changes| {
        memory = memory.with(&changes);
    })?;
    Ok((memory, replayed))
}

/// Removes journals that hold nothing.
fn leave_behind(
    directory: &Path,
    journals: &[(u64, PathBuf)],
    manifest: &mut Manifest,
    next: u64,
) -> Result<()> {
    manifest.journal = next;
    manifest.next = next + 1;
    manifest.write(directory)?;
    for (_, path) in journals {
        std::fs::remove_file(path).map_err(|e| fault(path, &e))?;
    }
    Ok(())
}

fn positions_as_changes(marks: &[(LogId, u64)]) -> Vec<Change> {
    let mut changes: Vec<Change> = marks
        .iter()
        .map(|(log, position)| Change {
            key: Bytes::copy_from_slice(&log.0.to_be_bytes()),
            value: Some(Bytes::copy_from_slice(&position.to_le_bytes())),
        })
        .collect();
    changes.sort_unstable_by(|a, b| a.key.cmp(&b.key));
    changes
}

fn decode_position(key: &[u8], value: &[u8]) -> Option<(LogId, u64)> {
    let log = u32::from_be_bytes(key.try_into().ok()?);
    let position = u64::from_le_bytes(value.try_into().ok()?);
    (LogId(log) < LogId::END).then_some((LogId(log), position))
}

fn table_path(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("{number:08}.tbl"))
}

/// Files named by a number, with this ending, in order.
fn numbered_files(directory: &Path, ending: &str) -> Result<Vec<(u64, PathBuf)>> {
    let entries = std::fs::read_dir(directory).map_err(|e| fault(directory, &e))?;
    let mut files: Vec<(u64, PathBuf)> = Vec::new();
    for entry in entries {
        let path = entry.map_err(|e| fault(directory, &e))?.path();
        if path.extension().is_some_and(|end| end == ending)
            && let Some(number) = path.file_stem().and_then(|stem| stem.to_str()?.parse().ok())
        {
            files.push((number, path));
        }
    }
    files.sort();
    Ok(files)
}

/// Makes new names in a directory durable.
#[cfg(unix)]
fn sync_directory(path: &Path) -> Result<()> {
    File::open(path).and_then(|directory| directory.sync_all()).map_err(|e| fault(path, &e))
}

#[cfg(not(unix))]
fn sync_directory(_: &Path) -> Result<()> {
    Ok(())
}

/// A fault while running.
pub(crate) fn fault(path: &Path, error: &std::io::Error) -> Error {
    Error::Fault(format!("{}: {error}", path.display()))
}

/// Files that contradict themselves.
pub(crate) fn damaged(path: &Path, what: &str) -> Error {
    Error::Unusable(format!(
        "{} is damaged: {what}. Nothing was changed. Check the disk, then restore the data directory \
         from a checkpoint.",
        path.display()
    ))
}
