//! JSON items as bytes.
//!
//! A body is ingested in one pass: checked, made canonical, and described by a table of where each
//! value lies. From then on nobody parses it. Reading a property is a walk over the table, and
//! what goes on the wire is a slice of what is stored.
//!
//! ```text
//! body --parse--> Draft --stamp--> Item: [ header | canonical text | node table ]
//!                   |                |                   |               |
//!                 Node             Node             text(): a slice    root(): Node --> Value
//! ```
//!
//! A [`Draft`] is made outside any lock. A write then stamps it with what only the write knows
//! (LSN, etag, time), which appends the five system properties and fills in the header.
//!
//! Canonical text: minified; properties in the order they came; numbers as ECMAScript prints
//! binary64; strings in UTF-8 with the fewest escapes; no name twice in an object (the last value
//! wins, at the place of the first); system properties last, in the order of [`SYSTEM_PROPERTIES`].
//!
//! INVARIANTS
//! (I1) The text of an item is at most [`ITEM_BYTES_MAX`] bytes and [`DEPTH_MAX`] levels deep.
//! (I2) Equal values have equal text, except for the order of their members.
//! (I3) No bytes, from a client or from a disk, make this crate panic.
//!
//! ELSEWHERE  Which properties an item must have: `engine`. Checksums of stored bytes: `store`.

mod binary;
mod builder;
mod draft;
mod error;
mod header;
mod json;
mod names;
mod node;
mod number;
mod order;
pub mod patch;
mod scan;
mod slot;
mod stored;
mod string;
mod value;

pub use draft::{Draft, Stamp, Ttl};
pub use error::{Corrupt, IngestError};
pub use json::Json;
pub use node::{Elements, Kind, Members, Node};
pub use number::write_number;
pub use stored::Item;
pub use value::{Object, Value};

/// Longest canonical text of an item in bytes, system properties included.
pub const ITEM_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Levels of arrays and objects an item may nest; the item itself is the first.
pub const DEPTH_MAX: usize = 128;

/// The properties the service sets, in the order they end an item.
pub const SYSTEM_PROPERTIES: [&str; 5] = ["_rid", "_self", "_etag", "_attachments", "_ts"];
