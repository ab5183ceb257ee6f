//! The gateway over a real socket, on an engine in memory: what clients send and what they get.
//!
//! `traps` holds the numbered list of the wire protocol; those that need no socket are beside the
//! code they guard, under the same names.

#![allow(clippy::unwrap_used)] // A test fails by panicking.

mod client;
mod items;
mod queries;
mod resources;
mod scripts;
mod server;
mod throughput;
mod tokens;
mod transport;
mod traps;
