//! The vocabulary of the database: names, keys, policies, limits, positions, charges.
//!
//! One word per thing, the same in code, docs, logs and command line. Nothing here does I/O, knows
//! HTTP, or holds an item's body.
//!
//! **`model` decides what is a legal definition; it never decides what to do with one.**

pub mod charge;
pub mod container;
pub mod epk;
pub mod limits;
pub mod name;
pub mod partition_key;
pub mod rid;
pub mod session;

pub use charge::RequestCharge;
pub use name::{ItemId, NameError, ResourceName};
pub use rid::Rid;
pub use session::{Lsn, SessionToken, SessionTokenError};
