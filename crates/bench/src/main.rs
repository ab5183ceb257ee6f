//! `cargo xtask bench point`: what point operations cost, held against something one knows.
//!
//! Absolute rates mean little on a shared machine. So both sides of every comparison run in turns,
//! slice by slice, under the same load generator, and what counts are medians and their ratios.
//!
//! ```text
//! reads     point reads             against a bare hyper server that answers from memory
//! creates   durable creates         against PostgreSQL with a GIN index over its JSON
//! hot       64 writers of one key   against 64 writers of 64 keys
//! idle      memory and start time on an empty directory
//! scale     2 million items         against 200 thousand; start time with 2 million
//! ```
//!
//! LAYOUT     `point` (which sections, with what), a module per section, `report` (the table, the
//!            JSON, the bars), `slices` (taking turns), `load` (the generator), `process` and
//!            `postgres` (the sides), `reference` (the bare server), `items` (the data), `inserts`, `machine`.
//!
//! ELSEWHERE  Parts measured alone: `crates/*/benches`.

mod creates;
mod hot;
mod idle;
mod inserts;
mod items;
mod load;
mod machine;
mod point;
mod postgres;
mod process;
mod reads;
mod reference;
mod report;
mod scale;
mod setup;
mod slices;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

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
            Command::Reference(flags) => reference::run(flags).await,
        }
    })
}
