//! `cargo xtask bench …`: what operations and queries cost, held against something one knows.
//!
//! Absolute rates mean little on a shared machine. So both sides of every comparison run in turns,
//! slice by slice, under the same load generator, and what counts are medians and their ratios.
//!
//! ```text
//! point
//!   reads     point reads             against a bare hyper server that answers from memory
//!   creates   durable creates         against PostgreSQL with a GIN index over its JSON
//!   hot       64 writers of one key   against 64 writers of 64 keys
//!   idle      memory and start time on an empty directory
//!   scale     2 million items         against 200 thousand; start time with 2 million
//! query
//!   …         each of ten queries     against PostgreSQL with the indexes it needs
//!   peer      those it can answer     against the cosmosdb-server package of Node.js
//!   growth    2 million items         against 200 thousand, with the partition key given
//!   stream    memory while a million items are read
//! script
//!   comment   a procedure that reads, replaces and creates    against a batch
//!   empty     a procedure that does nothing                   against a point read
//!   functions a filter that calls a function for every item   against one that does not
//!   counter   16 clients that increment one counter: no increment is lost
//!   leak      memory while procedures run a hundred thousand times
//!   hostile   point reads beside scripts that never end       against point reads alone
//! ```
//!
//! LAYOUT     `setup` (what all share), `report` (the table, the JSON, the bars), `slices` (taking
//!            turns), `load` (the generator), `process` and `postgres` (the sides), `machine`.
//!            `point` (which sections, with what), a module per section, `reference` (the bare
//!            server), `items` (the data), `inserts`.
//!            `query` (which sections, with what), `versus`, `peer`, `growth`, `stream` (the
//!            sections), `queries` (the texts), `blog` (the data), `stock` and `tables` (loading
//!            it), `ask` (asking over HTTP).
//!            `script` (which sections, with what), a module below it per section, `calls` (load
//!            of any requests), `texts` (the JavaScript), `posts` (the data).
//!            `train` (no benchmark: what a release is optimized by).
//!
//! ELSEWHERE  Parts measured alone: `crates/*/benches`.

mod ask;
mod blog;
mod creates;
mod growth;
mod hot;
mod idle;
mod inserts;
mod items;
mod load;
mod machine;
mod peer;
mod point;
mod postgres;
mod process;
mod queries;
mod query;
mod reads;
mod reference;
mod report;
mod scale;
mod script;
mod setup;
mod slices;
mod stock;
mod stream;
mod tables;
mod train;
mod versus;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[global_allocator]
static ALLOCATOR: allocator::Allocator = allocator::Allocator;

/// Benchmarks of the whole server.
#[derive(Debug, Parser)]
#[command(name = "bench")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Point reads, creates, size and start time of the server, against their references
    Point(point::Flags),
    /// Queries of a blog, against PostgreSQL and others
    Query(query::Flags),
    /// Stored procedures and user-defined functions, against what they stand for
    Script(script::Flags),
    /// Requests of every kind, to a server that counts which of its code runs
    Train(train::Flags),
    /// A bare hyper server that answers point reads from memory (started by `point`)
    Reference(reference::Flags),
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<()> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(threads).enable_all().build()?;
    runtime.block_on(async {
        match command {
            Command::Point(flags) => point::run(flags).await,
            Command::Query(flags) => query::run(flags).await,
            Command::Script(flags) => script::run(flags).await,
            Command::Train(flags) => train::run(flags).await,
            Command::Reference(flags) => reference::run(flags).await,
        }
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_flags_go_together() {
        Cli::command().debug_assert();
    }
}
