//! The embedded store: a committer in front of an engine of ours.
//!
//! One at a time writes, a thread or who waits, so that everybody who waits shares one sync:
//!
//! ```text
//!   commit ─▶ bounded queue ─▶ committer: check, merge, coalesce ─▶ one batch, one sync
//!                 ▲                │                                        │
//!   next group gathers here        └── before_publish ◀── new snapshot ◀────┘
//!   while this one syncs                   │
//!                                          └─▶ publish (snapshot, positions) ─▶ tickets
//! ```
//!
//! INVARIANTS, besides S1 to S7 of the contract
//! (F1) Only the committer writes to the engine, so the newest published snapshot and the group in
//!      progress together are the whole state that a precondition or a merge must see.
//! (F2) Positions are stored in the batch that contains the commits they mark.
//! (F3) The first mark of a log is synced, and none gets more than half of [`POSITIONS_GAP`] ahead of
//!      what is synced. After an unclean stop of a relaxed store every position moves ahead by the
//!      whole gap, so none comes twice.
//! (F4) `STATE` says `clean` only while no process has the store open and nothing is unwritten.
//!
//! LAYOUT     `directory` (lock, format, state), `queue`, `group` (what a drain does, without
//!            writing), `committer` (who writes), `engine` (journal, memory and tables), `reader`,
//!            `copy` (checkpoints).
//!
//! ELSEWHERE  What a commit means: `store`.

mod committer;
mod copy;
mod directory;
mod engine;
mod group;
mod options;
mod queue;
mod reader;

pub use options::{Faults, Options};

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::Mutex;
use store::{
    Commit, Error, Helper, Limits, Outcome, Positions, Recovery, Result, Statistics, Store, Ticket,
    Token, View, ticket,
};

use crate::committer::{Shared, Writer};
use crate::directory::{Directory, Stop};
use crate::engine::Engine;
use crate::queue::{Begin, Job};

/// How far positions move after an unclean stop that may have lost commits (F3).
pub const POSITIONS_GAP: u64 = 1 << 20;

const LIMITS: Limits = Limits {
    // Lengths of keys are two bytes in files.
    key_bytes_max: 65_535,
    value_bytes_max: 16 << 20,
    commit_bytes_max: 64 << 20,
    page_rows: 1_000,
    is_shared: false,
};

/// A store in a directory of its own. Dropping it closes it.
pub struct EmbeddedStore {
    shared: Arc<Shared>,
    engine: Arc<Engine>,
    directory: Arc<Directory>,
    writer: Arc<Writer>,
    committer: Mutex<Option<JoinHandle<()>>>,
    recovery: Recovery,
}

impl EmbeddedStore {
    /// Opens the store in `path`, creating it if the directory is empty or absent.
    ///
    /// Fails with [`Error::Unusable`] and a sentence for the operator if the directory is in use,
    /// of a newer format, damaged, or not ours.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<EmbeddedStore> {
        let directory = Arc::new(Directory::open(path.as_ref())?);
        let stop = directory.last_stop();
        if stop == Stop::New {
            // Before the engine's files, so that its creation can be told from a lost file.
            directory.mark_running(options.durability)?;
        }
        let engine = Arc::new(Engine::open(&directory.engine_path(), stop, &options)?);
        let (positions, recovery) = recover(&engine, stop)?;
        directory.mark_running(options.durability)?;
        let shared = Arc::new(Shared::new(&engine, positions, &options));
        engine.on_change(publish_again(&shared));
        let writer = Writer::new(engine.clone(), shared.clone(), directory.clone(), options);
        let writer = Arc::new(writer);
        let committer = Mutex::new(Some(writer.clone().spawn()?));
        Ok(EmbeddedStore { shared, engine, directory, writer, committer, recovery })
    }

    /// The cache of the blocks that were read.
    pub fn cache(&self) -> Arc<dyn base::Cache> {
        self.engine.cache()
    }

    /// Reads data into the cache while there is room for it and `is_wanted` says yes. A server that
    /// was started again has then forgotten less.
    pub fn warm(&self, is_wanted: impl Fn() -> bool) {
        self.engine.warm(&is_wanted);
    }

    /// Commits what is queued, writes memory to tables and leaves the directory clean.
    ///
    /// Later commits are refused; views already taken stay readable. Closing twice does nothing.
    pub fn close(&self) -> Result<()> {
        let Some(committer) = self.committer.lock().take() else {
            return Ok(());
        };
        self.shared.queue.close();
        let has_panicked = committer.join().is_err();
        if let Some(error) = self.shared.poisoned() {
            return Err(error);
        }
        if has_panicked {
            return Err(Error::Closed);
        }
        self.engine.flush_tables()?;
        self.engine.sync()?;
        self.directory.mark_clean() // F4
    }

    /// Bytes of the engine's journals: what the next open may have to replay.
    pub fn journal_bytes(&self) -> u64 {
        self.engine.journal_bytes()
    }

    /// Syncs made so far, for the operator and for tests.
    pub fn syncs(&self) -> u64 {
        self.shared.syncs()
    }

    /// Has the committer do `job` after everything enqueued before, and waits for it.
    fn wait_for(&self, job: impl FnOnce(store::TicketSender) -> Job) -> Result<()> {
        let (sender, ticket) = ticket();
        self.shared.enqueue(job(sender), 0, Begin::Now)?;
        ticket.wait()
    }
}

/// Has the committer publish a new view: one that is held by nobody lets go of replaced tables.
fn publish_again(shared: &Arc<Shared>) -> impl Fn() + Send + Sync + 'static {
    let shared = Arc::downgrade(shared);
    move || {
        if let Some(shared) = shared.upgrade() {
            // A queue that is full or closed has no need of it.
            let _ = shared.enqueue(Job::Publish(ticket().0), 0, Begin::Now);
        }
    }
}

/// Loads the positions and, if commits may be missing, moves them ahead durably (F3).
fn recover(engine: &Engine, stop: Stop) -> Result<(Positions, Recovery)> {
    let mut positions = engine.positions()?;
    let may_have_lost = stop == Stop::UncleanRelaxed;
    let was_clean = matches!(stop, Stop::New | Stop::Clean);
    let positions_skipped = if may_have_lost { POSITIONS_GAP } else { 0 };
    if may_have_lost {
        let moved: Vec<_> = positions.iter().map(|(log, at)| (log, at + POSITIONS_GAP)).collect();
        for &(log, position) in &moved {
            positions.advance(log, position);
        }
        engine.write_positions(&moved)?;
    }
    Ok((positions, Recovery { was_clean, may_have_lost, positions_skipped }))
}

impl Store for EmbeddedStore {
    fn view(&self) -> View {
        self.shared.view()
    }

    fn commit(&self, commit: Commit) -> Ticket {
        let bytes = commit.bytes();
        let (sender, ticket) = ticket();
        let begin = self.writer.begin(&commit);
        let accepted = LIMITS
            .check(&commit)
            .and_then(|()| self.shared.enqueue(Job::Commit(commit, sender), bytes, begin));
        match accepted {
            Ok(()) if begin == Begin::Now => ticket,
            Ok(()) => {
                let writer: Arc<dyn Helper> = self.writer.clone();
                ticket.helped_by(Arc::downgrade(&writer))
            }
            Err(error) => Ticket::resolved(Err(error)),
        }
    }

    /// Tokens are remembered in memory: after a restart every token is unknown.
    fn resolve(&self, token: Token) -> Result<Outcome> {
        match (self.shared.tokens.outcome(token), self.shared.poisoned()) {
            // The commit may be in the journal and turn up at the next open.
            (Outcome::NotCommitted, Some(error)) => Err(error),
            (outcome, _) => Ok(outcome),
        }
    }

    fn flush(&self) -> Result<()> {
        self.wait_for(Job::Sync)
    }

    fn checkpoint(&self, directory: &Path) -> Result<()> {
        copy::checkpoint(&self.view(), directory)
    }

    fn compact(&self) -> Result<()> {
        if let Some(error) = self.shared.poisoned() {
            return Err(error);
        }
        self.engine.compact()?;
        // Views hold the tables they show; with a new one published the old can go.
        self.wait_for(Job::Publish)?;
        self.engine.drop_replaced();
        Ok(())
    }

    fn limits(&self) -> Limits {
        LIMITS
    }

    fn statistics(&self) -> Statistics {
        Statistics { bytes: self.engine.disk_bytes(), ..self.shared.statistics() }
    }

    fn recovered(&self) -> Recovery {
        self.recovery
    }
}

impl Drop for EmbeddedStore {
    fn drop(&mut self) {
        // An error leaves the directory unclean, which the next open reports.
        let _ = self.close();
    }
}
