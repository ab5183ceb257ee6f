//! Requests and answers, as an ideal Rust client would like them. REST does not shape them.

use std::sync::Arc;

use bytes::Bytes;
use item::{Draft, Item, Value};
use model::epk::EpkRange;
use model::partition_key::PartitionKey;
use model::{ItemId, Rid, SessionToken};

pub use model::RequestCharge;
pub use query::{IndexMention, IndexUse, Times};

use crate::receipt::Receipt;

/// A version condition on a write or read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum EtagCondition {
    /// No condition.
    #[default]
    None,
    /// The resource must exist.
    Any,
    /// The resource must have this etag (without its quotes).
    Is(String),
}

impl EtagCondition {
    /// Reads the value of a header or batch field: `*`, or an etag with or without its quotes.
    pub fn parse(text: &str) -> EtagCondition {
        match text.trim() {
            "" => EtagCondition::None,
            "*" => EtagCondition::Any,
            etag => EtagCondition::Is(etag.trim_matches('"').to_owned()),
        }
    }
}

/// What kind of write.
#[derive(Debug)]
pub enum WriteKind {
    /// Fails if the id is taken.
    Create(Draft),
    /// Creates or replaces wholly.
    Upsert(Draft),
    /// Replaces the item with this id; the body may carry another id.
    Replace(ItemId, Draft),
    /// Changes some properties of the item with this id.
    Patch(ItemId, item::patch::Patch),
    /// Removes the item with this id.
    Delete(ItemId),
}

/// One write of one item. The partition key is that of the lock it is done under.
#[derive(Debug)]
pub struct WriteItem {
    /// What to do.
    pub kind: WriteKind,
    /// The version it must find (for upserts: only if the item exists).
    pub if_match: EtagCondition,
    /// `Any` on an upsert: it must not exist.
    pub if_none_match: EtagCondition,
    /// Whether queries shall find the item; false for the indexing directive "exclude".
    pub is_indexed: bool,
}

/// What became of one item operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemStatus {
    /// It did not exist and does now.
    Created,
    /// It was read, replaced or patched.
    Ok,
    /// It is gone.
    Deleted,
    /// The client's copy is current.
    NotModified,
}

/// The answer to one item operation.
#[derive(Clone, Debug)]
pub struct ItemAnswer {
    /// What became of it.
    pub status: ItemStatus,
    /// The item as it is now; `None` after a delete. Present (for its etag) when not modified.
    pub item: Option<Item>,
    /// Its price.
    pub charge: RequestCharge,
    /// What the price is made of, if that was asked for.
    pub receipt: Option<Box<Receipt>>,
    /// The id of the physical partition that served it.
    pub partition: u32,
    /// The position of that partition, at least that of the item.
    pub lsn: u64,
}

/// One member of a batch.
#[derive(Debug)]
pub enum BatchOperation {
    /// A write.
    Write(WriteItem),
    /// A point read, with the etag the client already has.
    Read(ItemId, EtagCondition),
}

/// One run of a stored procedure.
#[derive(Clone, Debug)]
pub struct Execution {
    /// Its name or resource id.
    pub procedure: String,
    /// What it is called with.
    pub arguments: Vec<Value>,
    /// Whether what it logs is wanted.
    pub is_logging: bool,
}

/// The answer of a stored procedure.
#[derive(Clone, Debug)]
pub struct ScriptAnswer {
    /// What it put into the response, as JSON text.
    pub body: Option<Bytes>,
    /// What it logged, if that was wanted.
    pub log: Option<String>,
    /// The price of all it did.
    pub charge: RequestCharge,
    /// What the price is made of, if that was asked for.
    pub receipt: Option<Box<Receipt>>,
    /// The id of the physical partition it ran in.
    pub partition: u32,
    /// The position of that partition.
    pub lsn: u64,
}

/// The triggers a write names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Triggers {
    /// Runs before the write and may change its body.
    pub pre: Option<String>,
    /// Runs after it, in the same transaction.
    pub post: Option<String>,
}

impl Triggers {
    /// Whether none is named.
    pub fn is_empty(&self) -> bool {
        self.pre.is_none() && self.post.is_none()
    }
}

/// The answer to a write with triggers.
#[derive(Clone, Debug)]
pub struct TriggeredAnswer {
    /// The answer to the write.
    pub answer: ItemAnswer,
    /// What a post-trigger made of the response, as JSON text.
    pub body: Option<Bytes>,
}

/// The answer to a transactional batch.
#[derive(Debug)]
pub struct BatchAnswer {
    /// One result per operation. After a failure every other one is `None` (failed dependency).
    pub results: Vec<Option<crate::Result<ItemAnswer>>>,
    /// Whether all of it happened.
    pub is_committed: bool,
    /// The price of all of it.
    pub charge: RequestCharge,
    /// What the price is made of, if that was asked for.
    pub receipt: Option<Box<Receipt>>,
    /// The id of the physical partition that served it.
    pub partition: u32,
    /// The position of that partition.
    pub lsn: u64,
}

/// Which part of a container a query or feed looks at.
#[derive(Clone, Debug, PartialEq)]
pub enum Scope {
    /// All of it.
    Container,
    /// One logical partition, or all those that share a prefix of a hierarchical key.
    PartitionKey(PartitionKey),
    /// What of it is in one physical partition: clients that ask one after the other want it once.
    KeyInRange {
        /// The key, or a prefix of one.
        key: PartitionKey,
        /// The physical partition, by its id as the client sent it.
        partition: String,
    },
    /// One physical partition, or the part of it (or of the container) within an interval of
    /// effective partition keys.
    Range {
        /// The physical partition, by its id as the client sent it.
        partition: Option<String>,
        /// The interval.
        epk: Option<EpkRange>,
    },
}

/// A query and its parameters (names with their `@`).
#[derive(Clone, Debug)]
pub struct QueryText {
    /// The text.
    pub text: String,
    /// The parameters.
    pub parameters: Vec<(String, Value)>,
}

/// How much of a feed to return, and from where.
#[derive(Clone, Debug, Default)]
pub struct PageRequest {
    /// At most so many elements; `None` leaves it to the server.
    pub items_max: Option<usize>,
    /// Where the previous page ended.
    pub continuation: Option<String>,
    /// What the client has seen: older data is refused.
    pub session: Option<SessionToken>,
    /// Whether a filter may be answered by a scan in a container without an index.
    pub is_scan_enabled: bool,
    /// Whether the answer is to say what a query does with indexes.
    pub wants_index_use: bool,
    /// Whether it is to say where the time of a query went.
    pub wants_times: bool,
}

/// One page of a feed or query.
#[derive(Clone, Debug)]
pub struct FeedPage {
    /// The elements as JSON text.
    pub rows: Vec<Bytes>,
    /// Where to go on, if anything remains.
    pub continuation: Option<String>,
    /// The price of the page.
    pub charge: RequestCharge,
    /// What the price is made of, if that was asked for.
    pub receipt: Option<Box<Receipt>>,
    /// Positions of the physical partitions that served it.
    pub session: SessionToken,
    /// The id of one physical partition that served it.
    pub partition: u32,
    /// The position of that partition.
    pub lsn: u64,
    /// The work done.
    pub meter: base::MeterReading,
    /// It ends here because time was over.
    pub is_cut_by_time: bool,
    /// What a query does with indexes, if that was asked for.
    pub index_use: Option<IndexUse>,
    /// Where the time of a query went, if that was asked for.
    pub times: Option<Times>,
    /// Whether rows of equal order come with the last created first, for clients that merge an order.
    pub is_reversed: Option<bool>,
}

/// Which changes a change feed shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeFeedMode {
    /// Each live item once, at its newest version.
    LatestVersion,
    /// Every create, replace and delete, within the container's retention.
    AllVersionsAndDeletes,
}

/// Where a change feed starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeFeedStart {
    /// With the oldest change.
    Beginning,
    /// With the next change.
    Now,
    /// With the first change at or after this time, in seconds since 1970.
    Time(u64),
    /// Behind the page that had this etag (without quotes).
    Etag(String),
}

/// A request for one page of changes.
#[derive(Clone, Debug)]
pub struct ChangeFeedRequest {
    /// Which changes.
    pub mode: ChangeFeedMode,
    /// From where.
    pub start: ChangeFeedStart,
    /// Wrap each change in `current`/`metadata` also in latest-version mode.
    pub is_enveloped: bool,
    /// At most so many changes, but never part of a transaction.
    pub items_max: Option<usize>,
    /// What the client has seen.
    pub session: Option<SessionToken>,
}

/// One page of changes. Empty `rows` means nothing is new; the etag still moves on.
#[derive(Clone, Debug)]
pub struct ChangeFeedPage {
    /// The changes as JSON text.
    pub rows: Vec<Bytes>,
    /// Where to go on (without quotes).
    pub etag: String,
    /// The price of the page.
    pub charge: RequestCharge,
    /// What the price is made of, if that was asked for.
    pub receipt: Option<Box<Receipt>>,
    /// The id of one physical partition that served it.
    pub partition: u32,
    /// The position of that partition.
    pub lsn: u64,
}

/// Provisioned throughput as a client sets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Throughput {
    /// So many RU/s.
    Manual(u32),
    /// Between a tenth of this and this.
    Autoscale(u32),
}

/// A resource other than an item: its body has the system properties filled in.
#[derive(Clone, Debug)]
pub struct Resource {
    /// Its resource id.
    pub rid: Rid,
    /// Its etag, without quotes.
    pub etag: String,
    /// The whole JSON body.
    pub body: Arc<serde_json::Value>,
}

/// Whether a write of a resource made a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceStatus {
    /// It is new.
    Created,
    /// It replaced an older version.
    Replaced,
}

/// The kinds of resources that are plain JSON with a name below a database, user or container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ResourceKind {
    /// A user of a database.
    User,
    /// A permission of a user.
    Permission,
    /// A client encryption key of a database.
    ClientEncryptionKey,
    /// A stored procedure of a container.
    StoredProcedure,
    /// A trigger of a container.
    Trigger,
    /// A user-defined function of a container.
    Udf,
}
