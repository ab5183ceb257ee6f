//! The contract between the database and what keeps its bytes.
//!
//! A store does not implement transactions. It implements *consistent reads on a published view*
//! and *one atomic conditional commit*; the transaction (overlay of uncommitted writes, merged
//! iteration, read-your-writes) is written once above it, in `storage`.
//!
//! LAYOUT    Keys and values are bytes. A key lives in one of a few [`Space`]s, each an ordered map
//!           by unsigned byte comparison. Spaces exist so that an engine can tune them apart.
//!
//! INVARIANTS, each asserted by `store::suite`
//! (S1) Atomic: a commit is applied whole or not at all, over all spaces, also across a crash.
//! (S2) Ordered: commits take effect in the order in which `commit` was called.
//! (S3) Published: a [`View`] is one snapshot together with the log positions it contains. A commit
//!      is in the snapshot exactly if its marks are in the positions.
//! (S4) Durable: with [`Durability::Sync`] nothing is visible in a view, and no ticket resolves,
//!      before it would survive a power loss. With `Relaxed` a crash may lose the newest commits,
//!      always a suffix of the order of (S2), at most about a second of them.
//! (S5) A view never changes, however long it is held.
//! (S6) `before_publish` of every commit in a group runs before the view that contains it can be
//!      seen, in commit order, on the committing thread.
//! (S7) After a fault during a sync the store is poisoned: commits fail with
//!      [`Error::Poisoned`], reads go on.
//! (S8) A commit is begun at once; one that is awaited, when its ticket is waited for or dropped at the
//!      latest.
//!
//! ELSEWHERE  What the bytes mean: `storage::keys`. Which store runs: `server`.

mod check;
mod commit;
mod error;
mod read;
#[cfg(feature = "suite")]
pub mod suite;
mod tokens;
mod view;

pub use check::check_preconditions;
pub use commit::{
    BeforePublish, Commit, Durability, Helper, Mark, Merge, Outcome, Precondition, Ticket,
    TicketSender, Token, Write, ticket,
};
pub use error::{Error, Result};
pub use read::{Direction, Page, Range, Reader, Row, ScanOptions, Sieved, Wanted, tail_of};
pub use tokens::RecentTokens;
pub use view::{LogId, Positions, View};

use std::path::Path;

/// An ordered map of its own inside the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Space {
    /// Catalog, counters, markers: small, hot, rewritten in place.
    Meta = 0,
    /// Item bodies: large values, read by key.
    Item = 1,
    /// Identities: partition key and id to ordinal.
    Key = 2,
    /// Index terms: many, tiny, no values.
    Term = 3,
    /// Change log and versions: appended in order.
    Log = 4,
}

impl Space {
    /// Every space, in order of its number.
    pub const ALL: [Space; 5] = [Space::Meta, Space::Item, Space::Key, Space::Term, Space::Log];
}

/// Numbers the layer above plans with. It never asks for a store's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest key in bytes.
    pub key_bytes_max: usize,
    /// Longest value in bytes.
    pub value_bytes_max: usize,
    /// Most bytes of keys and values in one commit.
    pub commit_bytes_max: usize,
    /// Rows worth asking for in one scan.
    pub page_rows: usize,
    /// Whether other processes write to the same data, so that caches above must stay off.
    pub is_shared: bool,
}

/// Figures an operator wants to see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Bytes on disk, or in memory for a store without one.
    pub bytes: u64,
    /// Commits accepted since the start.
    pub commits: u64,
    /// Groups they were synced in.
    pub groups: u64,
}

/// What opening a store found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// Whether the store was closed in an orderly way before, or is new. If not, a layer above that
    /// hands out numbers of its own skips ahead as far as it may have got in a second.
    pub was_clean: bool,
    /// Whether commits that had been answered may be missing: an unclean stop of a store that
    /// wrote with [`Durability::Relaxed`]. Positions were then moved ahead by `positions_skipped`.
    pub may_have_lost: bool,
    /// How far every log position was moved, so that none handed out before is used again.
    pub positions_skipped: u64,
}

impl Default for Recovery {
    fn default() -> Recovery {
        Recovery { was_clean: true, may_have_lost: false, positions_skipped: 0 }
    }
}

/// A store. See the module header for what all of it promises.
pub trait Store: Send + Sync + 'static {
    /// The newest published view. Cheap: every request takes one.
    fn view(&self) -> View;

    /// Enqueues a commit and returns at once; the ticket resolves when it is published (or refused).
    ///
    /// The order of calls is the order of effects (S2). Keys over `limits().key_bytes_max`, values
    /// and commits over theirs, are refused through the ticket with [`Error::TooLarge`].
    fn commit(&self, commit: Commit) -> Ticket;

    /// What became of a commit whose ticket resolved as unknown, by its token.
    ///
    /// Ask only after the ticket has resolved. A store remembers the tokens of its newest commits
    /// ([`RecentTokens`]); a token it does not know is answered with `NotCommitted`.
    fn resolve(&self, token: Token) -> Result<Outcome>;

    /// Writes everything published so far to stable storage, whatever the durability.
    fn flush(&self) -> Result<()>;

    /// Copies one consistent state into `directory`, which must not exist, while serving.
    fn checkpoint(&self, directory: &Path) -> Result<()>;

    /// Gives the space of deleted keys back to the operating system, as far as possible.
    fn compact(&self) -> Result<()>;

    /// The numbers to plan with.
    fn limits(&self) -> Limits;

    /// Figures for the operator.
    fn statistics(&self) -> Statistics;

    /// What opening the store found.
    fn recovered(&self) -> Recovery {
        Recovery::default()
    }
}
