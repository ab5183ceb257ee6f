//! A store that keeps everything in memory, for tests and `--in-memory`.
//!
//! Each space is a persistent ordered map: a view is a handful of reference counts, and a commit
//! copies only the paths to the keys it changes, O(changes · log n).
//!
//! ```text
//!   commit ─▶ lock ─▶ check ─▶ new maps ─▶ before_publish ─▶ swap the view ─▶ unlock ─▶ ticket
//! ```
//!
//! INVARIANTS
//! (M1) The view is replaced only under the lock, so the order of calls is the order of effects.
//! (M2) A published map is never changed; the next one shares its untouched nodes.
//!
//! Durability means nothing here: a commit survives as long as the process.
//!
//! ELSEWHERE  The copy that `checkpoint` writes: `dump`.

mod dump;
mod state;

use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use store::{
    Commit, Error, Limits, Outcome, Positions, RecentTokens, Result, Statistics, Store, Ticket,
    Token, View,
};

use crate::state::State;

const LIMITS: Limits = Limits {
    key_bytes_max: 65_535,
    value_bytes_max: 16 << 20,
    commit_bytes_max: 64 << 20,
    page_rows: 1_000,
    is_shared: false,
};

/// The store. It is gone when dropped.
pub struct MemoryStore {
    view: ArcSwap<View>,
    newest: Mutex<Newest>,
    tokens: RecentTokens,
}

/// What the next commit is applied to: the state of the published view.
struct Newest {
    state: Arc<State>,
    statistics: Statistics,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> MemoryStore {
        MemoryStore::with(State::default(), Positions::default())
    }

    /// A store with the content of a directory that `checkpoint` wrote.
    pub fn load(directory: &Path) -> Result<MemoryStore> {
        let (state, positions) = dump::load(directory)?;
        Ok(MemoryStore::with(state, positions))
    }

    fn with(state: State, positions: Positions) -> MemoryStore {
        let state = Arc::new(state);
        let view = View::new(0, Arc::new(positions), state.clone());
        let newest = Newest { state, statistics: Statistics::default() };
        MemoryStore {
            view: ArcSwap::from_pointee(view),
            newest: Mutex::new(newest),
            tokens: RecentTokens::default(),
        }
    }

    fn apply(&self, mut commit: Commit) -> Result<()> {
        LIMITS.check(&commit)?;
        let mut newest = self.newest.lock();
        let state = Arc::new(newest.state.after(&commit)?);
        let next = self.next_view(&commit, state.clone());
        if let Some(hook) = commit.before_publish.take() {
            hook(next.sequence());
        }
        self.view.store(Arc::new(next)); // M1
        self.tokens.remember(commit.token);
        newest.state = state;
        newest.statistics.commits += 1;
        newest.statistics.groups += 1;
        Ok(())
    }

    fn next_view(&self, commit: &Commit, state: Arc<State>) -> View {
        let view = self.view.load();
        let positions = match commit.marks.is_empty() {
            true => view.positions().clone(),
            false => Arc::new(advanced(view.positions(), commit)),
        };
        View::new(view.sequence() + 1, positions, state)
    }
}

fn advanced(positions: &Positions, commit: &Commit) -> Positions {
    let mut positions = positions.clone();
    for mark in &commit.marks {
        positions.advance(mark.log, mark.position);
    }
    positions
}

impl Default for MemoryStore {
    fn default() -> MemoryStore {
        MemoryStore::new()
    }
}

impl Store for MemoryStore {
    fn view(&self) -> View {
        View::clone(&self.view.load())
    }

    fn commit(&self, commit: Commit) -> Ticket {
        Ticket::resolved(self.apply(commit))
    }

    fn resolve(&self, token: Token) -> Result<Outcome> {
        Ok(self.tokens.outcome(token))
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn checkpoint(&self, directory: &Path) -> Result<()> {
        // The state and the positions are taken under the lock, as one pair (S3).
        let (state, positions) = {
            let newest = self.newest.lock();
            (newest.state.clone(), self.view.load().positions().clone())
        };
        dump::save(directory, &state, &positions)
            .map_err(|e| Error::Fault(format!("cannot write {}: {e}", directory.display())))
    }

    fn compact(&self) -> Result<()> {
        Ok(())
    }

    fn limits(&self) -> Limits {
        LIMITS
    }

    fn statistics(&self) -> Statistics {
        let newest = self.newest.lock();
        Statistics { bytes: newest.state.bytes(), ..newest.statistics }
    }
}
