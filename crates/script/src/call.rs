//! One run of a script: what it gets, and what it leaves.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use item::{Item, Value};

use crate::program::Program;

/// What a run may use. The times begin when a thread takes the work up.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Time for all scripts of one piece of work.
    pub run: Duration,
    /// Time on a thread that has others to serve, before the work begins again on one of the pool.
    pub here: Duration,
    /// Time after which no further operation is queued.
    pub accept: Duration,
    /// Memory of one runtime.
    pub memory_bytes: usize,
    /// Depth of the stack of one runtime.
    pub stack_bytes: usize,
    /// Longest response body, and longest body of an operation, as JSON.
    pub body_bytes: usize,
    /// Longest log, escaped as it travels in a header: clients read lines of 8 KB, and no more.
    pub log_bytes: usize,
}

impl Limits {
    /// The stack of a thread that runs scripts: the host works on top of them.
    pub fn thread_stack_bytes(&self) -> usize {
        const HOST_STACK_BYTES: usize = 4 << 20;
        self.stack_bytes + HOST_STACK_BYTES
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            run: Duration::from_secs(5),
            here: Duration::from_millis(2),
            accept: Duration::from_secs(4),
            memory_bytes: 64 << 20,
            stack_bytes: 512 << 10,
            body_bytes: 4 << 20,
            log_bytes: 8_000,
        }
    }
}

/// A script to run, and as what.
#[derive(Clone, Debug)]
pub struct Call {
    /// The script.
    pub program: Arc<Program>,
    /// What it is run as.
    pub role: Role,
    /// The container it acts on.
    pub collection: Collection,
    /// Whether `console.log` writes.
    pub is_logging: bool,
}

/// What a script is run as.
#[derive(Clone, Debug)]
pub enum Role {
    /// A stored procedure.
    Procedure {
        /// The parameters of the function.
        arguments: Vec<Value>,
    },
    /// Runs before a write and may change the item.
    PreTrigger {
        /// The write.
        operation: TriggerOperation,
        /// The item; none for a delete.
        body: Option<Value>,
    },
    /// Runs after a write and may change what the client gets.
    PostTrigger {
        /// The write.
        operation: TriggerOperation,
        /// The item as the client sent it; none for a delete.
        request: Option<Value>,
        /// The item as written; none for a delete.
        response: Option<Item>,
    },
}

/// The write that fires a trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TriggerOperation {
    /// A new item.
    Create,
    /// Over an item.
    Replace,
    /// Either.
    Upsert,
    /// An item goes.
    Delete,
}

impl TriggerOperation {
    /// As `getOperationType()` spells it.
    pub fn name(self) -> &'static str {
        match self {
            TriggerOperation::Create => "Create",
            TriggerOperation::Replace => "Replace",
            TriggerOperation::Upsert => "Upsert",
            TriggerOperation::Delete => "Delete",
        }
    }
}

/// The container a script acts on, as it names it.
#[derive(Clone, Debug)]
pub struct Collection {
    /// `dbs/{rid}/colls/{rid}/`
    pub self_link: String,
    /// `dbs/{name}/colls/{name}`
    pub alt_link: String,
    /// Megabytes stored.
    pub size_mb: f64,
    /// Megabytes that may be stored.
    pub size_mb_max: f64,
}

/// What a script left.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// JSON text of the response body. Procedures: if it was set; post-triggers: if it was changed.
    pub body: Option<Bytes>,
    /// Pre-triggers: the item as `setBody` changed it.
    pub request: Option<Value>,
    /// What `console.log` wrote.
    pub log: String,
    /// Interpreter steps, in multiples of the interval between two interrupt polls.
    pub fuel: u64,
}

/// Why a script did not end well.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// An exception escaped, or the script called `abort`.
    #[error("{message}")]
    Exception {
        /// The number of the error; 0 if it has none.
        number: u32,
        /// As in `Error: boom`.
        message: String,
        /// Frames of the script, one per line.
        stack: String,
        /// What `console.log` wrote.
        log: String,
        /// Interpreter steps.
        fuel: u64,
    },
    /// [`Limits::run`] was over.
    #[error("the script ran out of time")]
    Timeout {
        /// Interpreter steps.
        fuel: u64,
    },
    /// The work was cancelled, or taken by the watchdog.
    #[error("the work was taken away")]
    Revoked,
    /// The host said so.
    #[error("the host cannot go on")]
    Fatal,
}
