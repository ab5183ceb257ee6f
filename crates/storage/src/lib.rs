//! Bytes ⇄ items: the key space, the partition transaction, index upkeep, change log, verify.
//!
//! Everything below `engine` that knows what a key means is here, and nothing here knows HTTP, SQL
//! or which store runs.
//!
//! **`storage` cannot tell which engine keeps its bytes.** It plans with `Store::limits` only.
//!
//! ```text
//! keys         every key prefix, on one page
//! shape        what a container is right now: partitions, policies, retired policies
//! visibility   which stored items count as present
//! pending      decided but not yet published writes of one logical partition
//! txn          the partition transaction: staged writes → one commit
//! upkeep       the keys an item needs besides its body, as a pure function
//! counts       how many items have a value at each path
//! change_log   reading the feed
//! scan         reading items and terms in order
//! cache        identities to items, ordered by publication
//! verify       rebuild everything derived from items and compare
//! ```

pub mod cache;
pub mod change_log;
pub mod counts;
mod error;
pub mod keys;
pub mod pending;
pub mod scan;
pub mod shape;
pub mod txn;
pub mod upkeep;
pub mod verify;
pub mod visibility;

pub use error::{Error, Result};
