//! The binary `cosmolabe`: flags, configuration, logging, signals, wiring.
//!
//! **Only this crate knows which store runs, and only it reads files, flags and the environment.**
//!
//! LAYOUT     `cli` (flags), `config` (what they come to), `log`, `database` (opening and closing),
//!            `serve`, `transfer` with `import` and `lines` (NDJSON), `query` with `mistake`,
//!            `maintain` with `requests` (backup, restore, verify), `lab` with `lab_server`,
//!            `progress`, `signals`.
//!
//! Exit codes: 0 done, 1 failed, 2 wrong usage.

mod balance;
mod cli;
mod config;
mod database;
mod import;
mod lab;
mod lab_server;
mod lines;
mod log;
mod maintain;
mod memory;
mod mistake;
mod progress;
mod query;
mod receipt;
mod requests;
mod serve;
mod signals;
mod transfer;

use std::process::ExitCode;

use anyhow::Result;

use crate::cli::{Cli, Command};
use crate::config::{ServeConfig, Usage};

#[global_allocator]
static ALLOCATOR: allocator::Allocator = allocator::Allocator;

fn main() -> ExitCode {
    match run(Cli::read().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cosmolabe: {error:#}");
            ExitCode::from(if error.chain().any(|cause| cause.is::<Usage>()) { 2 } else { 1 })
        }
    }
}

fn run(command: Command) -> Result<()> {
    match command {
        Command::Serve(flags) => {
            let flags = flags.with_file()?;
            log::start(flags.log.as_deref(), "info")?;
            serve::serve(ServeConfig::of(flags)?)
        }
        Command::Import(mut flags) => {
            flags.data = started(flags.data)?;
            transfer::import(&flags)
        }
        Command::Export(mut flags) => {
            flags.data = started(flags.data)?;
            transfer::export(&flags)
        }
        Command::Query(mut flags) => {
            flags.data = started(flags.data)?;
            query::query(&flags)
        }
        Command::Lab { command } => {
            log::start(None, "warn")?;
            lab::lab(&command)
        }
        Command::Backup(mut flags) => {
            flags.data = started(flags.data)?;
            maintain::backup(&flags)
        }
        Command::Restore(mut flags) => {
            flags.data = started(flags.data)?;
            maintain::restore(&flags)
        }
        Command::Verify(data) => maintain::verify(&started(data)?),
        Command::Completions { shell } => {
            Cli::complete(shell);
            Ok(())
        }
    }
}

/// Completes the flags of a command that is not the server, and starts logging for it.
fn started(data: cli::DataFlags) -> Result<cli::DataFlags> {
    let data = data.with_file()?;
    log::start(data.log.as_deref(), "warn")?;
    Ok(data)
}
