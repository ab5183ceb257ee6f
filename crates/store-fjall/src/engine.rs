//! fjall as we use it: one keyspace per space, one for positions, and their tuning.
//!
//! KEYSPACES  meta, item, key, term, log: the spaces.
//!            position: {log u32 big-endian} -> position u64 little-endian. It belongs to the store,
//!            so the layers above own every key of every space.
//!
//! HAZARDS of the engine, and what is done about them
//! - It replays its journals at open, and a keyspace that is never written to again pins the journal
//!   of its last write. Memtables are small, and beyond `journal_bytes_max` the engine flushes the
//!   stragglers; an orderly close flushes everything.
//! - It panics on empty keys and on keys over 65,535 bytes. `Limits::check` and the reader keep
//!   them away from it.
//! - It panics on some damaged files. Opening catches that.
//! - `rotate_memtable_and_wait` never returns once a worker has died. We wait with a deadline.
//! - A commit waits inside the engine until its workers have caught up, forever if they die meanwhile
//!   (a full disk does that). We wait before the commit, where their death is noticed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fjall::config::{
    BlockSizePolicy, BloomConstructionPolicy, FilterPolicy, FilterPolicyEntry, HashRatioPolicy,
    PinningPolicy,
};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode, Readable};
use store::{Error, LogId, Positions, Result, Space};

use crate::Options;
use crate::reader::{SnapshotReader, Spaces};

/// Memtables of one keyspace that may wait to be written. The engine waits at four, and while we
/// write a batch at most two are added.
const SEALED_MEMTABLES_MAX: usize = 1;
/// Tables that may wait to be compacted. The engine waits at thirty.
const FRESH_TABLES_MAX: usize = 24;

/// Of several workers the engine reserves the first for flushing and lets it spin, passing queued
/// compactions back to the queue, while the others compact: it burns a core. One worker does both.
const WORKERS: usize = 1;

/// The engine refuses a smaller bound for its journals.
const JOURNAL_BYTES_MIN: u64 = 64 << 20;

/// The open engine.
pub(crate) struct Engine {
    path: PathBuf,
    db: Database,
    spaces: Arc<Spaces>,
    positions: Keyspace,
}

impl Engine {
    /// Opens or creates the engine's files in `path`.
    pub(crate) fn open(path: &Path, options: &Options) -> Result<Engine> {
        // Damaged files make the engine panic in places; an operator needs a sentence instead.
        let opened = catch_unwind(AssertUnwindSafe(|| Engine::try_open(path, options)));
        match opened {
            Ok(Ok(engine)) => Ok(engine),
            Ok(Err(error)) => Err(unusable(path, &error)),
            Err(_) => Err(damaged(path, "the engine could not make sense of its files")),
        }
    }

    fn try_open(path: &Path, options: &Options) -> fjall::Result<Engine> {
        let journal_bytes_max = options.journal_bytes_max.max(JOURNAL_BYTES_MIN);
        // The engine rotates its journal at 64 MB; what is beyond that is the share of old ones.
        let old_journals_max = (journal_bytes_max - JOURNAL_BYTES_MIN).max(JOURNAL_BYTES_MIN);
        let db = Database::builder(path)
            .cache_size(options.cache_bytes)
            .max_journaling_size(old_journals_max)
            .worker_threads(WORKERS)
            .open()?;
        let memtable_bytes = journal_bytes_max / 6;
        let open = |space| db.keyspace(name(space), || tuning(space, memtable_bytes));
        let spaces = [
            open(Space::Meta)?,
            open(Space::Item)?,
            open(Space::Key)?,
            open(Space::Term)?,
            open(Space::Log)?,
        ];
        let positions = db.keyspace("position", || tuning(Space::Meta, memtable_bytes))?;
        Ok(Engine { path: path.to_owned(), db, spaces: Arc::new(spaces), positions })
    }

    /// The newest state.
    pub(crate) fn snapshot(&self) -> SnapshotReader {
        SnapshotReader::new(self.spaces.clone(), self.db.snapshot())
    }

    /// Writes one batch, atomically over all keyspaces, and syncs the journal if asked to.
    pub(crate) fn write(
        &self,
        changes: impl Iterator<Item = (Space, Bytes, Option<Bytes>)>,
        marks: &[(LogId, u64)],
        is_synced: bool,
    ) -> Result<()> {
        self.wait_for_workers()?;
        let mode = if is_synced { PersistMode::SyncData } else { PersistMode::Buffer };
        let mut batch = self.db.batch().durability(Some(mode));
        for (space, key, value) in changes {
            let keyspace = &self.spaces[space as usize];
            match value {
                Some(value) => batch.insert(keyspace, &key[..], &value[..]),
                None => batch.remove(keyspace, &key[..]),
            }
        }
        for (log, position) in marks {
            batch.insert(&self.positions, log.0.to_be_bytes(), position.to_le_bytes());
        }
        if batch.is_empty() {
            return if is_synced { self.sync() } else { Ok(()) };
        }
        batch.commit().map_err(fault)
    }

    /// Writes positions alone, synced.
    pub(crate) fn write_positions(&self, marks: &[(LogId, u64)]) -> Result<()> {
        self.write(std::iter::empty(), marks, true)
    }

    /// The stored position of every log.
    pub(crate) fn positions(&self) -> Result<Positions> {
        let mut positions = Positions::default();
        for guard in self.db.snapshot().iter(&self.positions) {
            let (key, value) = guard.into_inner().map_err(fault)?;
            let (log, position) = decode_position(&key, &value)
                .ok_or_else(|| damaged(&self.path, "a log position is malformed"))?;
            positions.advance(log, position);
        }
        Ok(positions)
    }

    /// Syncs everything written so far.
    pub(crate) fn sync(&self) -> Result<()> {
        self.db.persist(PersistMode::SyncData).map_err(fault)
    }

    /// Waits until the engine would take a batch without waiting itself.
    fn wait_for_workers(&self) -> Result<()> {
        let is_behind = |keyspace: &Keyspace| {
            keyspace.sealed_memtable_count() > SEALED_MEMTABLES_MAX
                || keyspace.l0_table_count() > FRESH_TABLES_MAX
        };
        while self.keyspaces().any(is_behind) {
            self.check_health()?;
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Whether the engine still takes writes; a background fault stops it.
    fn check_health(&self) -> Result<()> {
        self.db.persist(PersistMode::Buffer).map_err(fault)
    }

    /// Fills an empty space in ascending order of keys.
    pub(crate) fn ingest(
        &self,
        space: Space,
        rows: impl Iterator<Item = Result<store::Row>>,
    ) -> Result<()> {
        let mut ingestion = self.spaces[space as usize].start_ingestion().map_err(fault)?;
        for row in rows {
            let row = row?;
            ingestion.write(&row.key[..], &row.value[..]).map_err(fault)?;
        }
        ingestion.finish().map_err(fault)
    }

    /// Writes everything in memory to tables, so that no journal is needed.
    pub(crate) fn flush_tables(&self, patience: Duration) -> Result<()> {
        let deadline = Instant::now() + patience;
        for keyspace in self.keyspaces() {
            keyspace.rotate_memtable().map_err(fault)?;
        }
        for keyspace in self.keyspaces() {
            while keyspace.sealed_memtable_count() > 0 {
                self.check_health()?;
                if Instant::now() > deadline {
                    return Err(Error::Fault("writing tables takes too long".to_owned()));
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        Ok(())
    }

    /// Rewrites all tables without what no snapshot can see any more.
    pub(crate) fn compact(&self) -> Result<()> {
        for keyspace in self.keyspaces() {
            keyspace.major_compact().map_err(fault)?;
        }
        Ok(())
    }

    /// Bytes the tables and journals occupy.
    pub(crate) fn disk_bytes(&self) -> u64 {
        let tables: u64 = self.keyspaces().map(Keyspace::disk_space).sum();
        tables + self.journal_bytes()
    }

    /// Bytes the journals occupy. They are preallocated, so their lengths would say too much.
    pub(crate) fn journal_bytes(&self) -> u64 {
        let Ok(entries) = std::fs::read_dir(&self.path) else {
            return 0;
        };
        let journals = entries
            .flatten()
            .filter(|entry| entry.path().extension().is_some_and(|end| end == "jnl"));
        journals.filter_map(|entry| entry.metadata().ok()).map(|file| occupied(&file)).sum()
    }

    fn keyspaces(&self) -> impl Iterator<Item = &Keyspace> {
        self.spaces.iter().chain([&self.positions])
    }
}

#[cfg(unix)]
fn occupied(file: &std::fs::Metadata) -> u64 {
    use std::os::unix::fs::MetadataExt;
    file.blocks() * 512
}

#[cfg(not(unix))]
fn occupied(file: &std::fs::Metadata) -> u64 {
    file.len()
}

fn decode_position(key: &[u8], value: &[u8]) -> Option<(LogId, u64)> {
    let log = u32::from_be_bytes(key.try_into().ok()?);
    let position = u64::from_le_bytes(value.try_into().ok()?);
    (LogId(log) < LogId::END).then_some((LogId(log), position))
}

fn name(space: Space) -> &'static str {
    match space {
        Space::Meta => "meta",
        Space::Item => "item",
        Space::Key => "key",
        Space::Term => "term",
        Space::Log => "log",
    }
}

/// How a space is stored. Fixed when the keyspace is created.
fn tuning(space: Space, memtable_bytes: u64) -> KeyspaceCreateOptions {
    // Index blocks stay in memory, a hundredth of the data: a read decodes one block, not two.
    let options = KeyspaceCreateOptions::default()
        .max_memtable_size(memtable_bytes)
        .index_block_pinning_policy(PinningPolicy::all(true));
    let bloom = FilterPolicyEntry::Bloom(BloomConstructionPolicy::BitsPerKey(10.0));
    match space {
        // Points, mostly hits: the last level needs no filter, and small blocks are read sooner.
        Space::Item => {
            let options = options.data_block_size_policy(BlockSizePolicy::all(4 * 1024));
            options.filter_policy(FilterPolicy::all(bloom)).expect_point_read_hits(true)
        }
        // Points, and a miss for every create: filters everywhere, hash index in the blocks.
        Space::Meta | Space::Key => options
            .filter_policy(FilterPolicy::all(bloom))
            .data_block_hash_ratio_policy(HashRatioPolicy::all(1.33)),
        // Ranges only: filters would be dead weight, larger blocks share more of their prefixes.
        Space::Term | Space::Log => options
            .data_block_size_policy(BlockSizePolicy::all(8 * 1024))
            .filter_policy(FilterPolicy::disabled()),
    }
}

/// A fault while running.
pub(crate) fn fault(error: fjall::Error) -> Error {
    if let fjall::Error::Poisoned = error {
        return Error::Fault("writing tables failed earlier; the disk may be full".to_owned());
    }
    if let fjall::Error::Io(error) = error {
        return Error::Fault(error.to_string());
    }
    Error::Fault(error.to_string())
}

/// Why the engine did not open, as a sentence for the operator.
fn unusable(path: &Path, error: &fjall::Error) -> Error {
    if let fjall::Error::Locked = error {
        return Error::Unusable(format!(
            "{} is in use by another process. Stop it, or choose another data directory.",
            path.display()
        ));
    }
    if let fjall::Error::Io(error) = error {
        return Error::Unusable(format!("{} cannot be opened: {error}", path.display()));
    }
    damaged(path, &error.to_string())
}

/// Files that contradict themselves.
pub(crate) fn damaged(path: &Path, what: &str) -> Error {
    Error::Unusable(format!(
        "{} is damaged: {what}. Nothing was changed. Check the disk, then restore the data directory \
         from a checkpoint.",
        path.display()
    ))
}
