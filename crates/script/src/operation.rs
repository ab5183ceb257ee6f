//! What a script asks of its host, and what it is told.
//!
//! The vocabulary of the port: requests go out as plain values, replies come back as items or JSON
//! texts. No JavaScript value crosses it.

use bytes::Bytes;
use item::{Item, Value};

/// What scripts act on. The engine implements it over one open transaction.
pub trait Host: Send + 'static {
    /// Whether another operation may be queued, as far as throughput goes. The runtime itself
    /// stops accepting after [`Limits::accept`](crate::Limits::accept).
    fn accepts(&mut self) -> bool;

    /// Carries out an operation.
    fn run(&mut self, operation: Operation) -> Result<Reply, HostError>;

    /// The value of a SQL scalar expression such as `ST_DISTANCE(@a, @b)`.
    fn evaluate(
        &mut self,
        expression: &str,
        parameters: Vec<(String, Value)>,
    ) -> Result<Value, HostError>;
}

/// Why a host did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// The script may handle it: the callback gets an error with this number and message.
    #[error("{message}")]
    Refused {
        /// 404, 409, 412 …
        number: u16,
        /// What the script reads.
        message: String,
    },
    /// The transaction cannot go on. The script ends with [`Failure::Fatal`](crate::Failure).
    #[error("the host cannot go on")]
    Fatal,
}

/// One call of a script on its container.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// Reads one item.
    Read {
        /// Which.
        item: ItemLink,
        /// An etag; if it is current the answer is [`Reply::NotModified`].
        if_none_match: Option<String>,
    },
    /// Reads a page of all items.
    ReadFeed {
        /// Which page.
        page: Page,
    },
    /// Runs a query.
    Query {
        /// SQL.
        text: String,
        /// Names with their `@`, and values.
        parameters: Vec<(String, Value)>,
        /// Which page.
        page: Page,
        /// Whether it may scan where an index is missing.
        is_scan_enabled: bool,
    },
    /// Creates an item.
    Create {
        /// An object.
        body: Value,
        /// Overrides the container's policy, if given.
        is_indexed: Option<bool>,
    },
    /// Creates or replaces an item.
    Upsert {
        /// An object.
        body: Value,
        /// The version it must replace.
        etag: Option<String>,
        /// Overrides the container's policy, if given.
        is_indexed: Option<bool>,
    },
    /// Replaces an item.
    Replace {
        /// Which.
        item: ItemLink,
        /// An object.
        body: Value,
        /// The version it must replace.
        etag: Option<String>,
        /// Overrides the container's policy, if given.
        is_indexed: Option<bool>,
    },
    /// Deletes an item.
    Delete {
        /// Which.
        item: ItemLink,
        /// The version it must delete.
        etag: Option<String>,
    },
}

/// How a script names an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ItemLink {
    /// By id: the end of `dbs/{name}/colls/{name}/docs/{id}`.
    Id(String),
    /// By rid: the end of `dbs/{rid}/colls/{rid}/docs/{rid}/`.
    Rid(String),
}

/// Which part of a feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// At most so many items.
    pub items_max: usize,
    /// Where the page before ended.
    pub continuation: Option<String>,
}

/// What became of an operation.
#[derive(Clone, Debug)]
pub enum Reply {
    /// The item, read or written over another.
    Item(Item),
    /// The item, new.
    Created(Item),
    /// The script has the current version.
    NotModified,
    /// A page.
    Page {
        /// JSON texts.
        rows: Vec<Bytes>,
        /// Where the next page begins, if there is one.
        continuation: Option<String>,
    },
    /// The item is gone.
    Deleted,
}
