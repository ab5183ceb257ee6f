//! Stored procedures, triggers and user-defined functions in a bounded JavaScript runtime.

mod call;
mod functions;
mod operation;
mod pool;
mod program;

pub use call::{Call, Collection, Failure, Limits, Outcome, Role, TriggerOperation};
pub use functions::{Argument, Functions};
pub use operation::{Host, HostError, ItemLink, Operation, Page, Reply};
pub use pool::{Pool, PoolOptions, Revoked, Running, Session, Stop};
pub use program::{Program, SyntaxError};
