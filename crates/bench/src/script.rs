//! `bench script`: which sections run, how long, and on what.

mod calls;
mod comment;
mod counter;
mod empty;
mod functions;
mod hostile;
mod leak;
mod posts;
mod texts;

use std::time::Instant;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use serde_json::json;

use crate::machine;
use crate::process::Cosmolabe;
use crate::report::Report;
use crate::setup::{self, Setup};

/// Flags of `script`.
#[derive(Debug, Args)]
pub struct Flags {
    #[command(flatten)]
    common: setup::Flags,
    /// How long each side of a comparison is loaded in all
    #[arg(long, default_value_t = 12)]
    seconds: u64,
    /// Only these sections
    #[arg(long, value_delimiter = ',')]
    only: Vec<Section>,
}

/// The parts of the benchmark, in the order they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Section {
    /// A procedure that reads, replaces and creates
    Comment,
    /// A procedure that does nothing
    Empty,
    /// Functions in filters
    Functions,
    /// One counter, 16 clients
    Counter,
    /// Memory over many executions
    Leak,
    /// Reads beside scripts that never end
    Hostile,
}

/// Runs the benchmark.
pub async fn run(flags: Flags) -> Result<()> {
    let binary = flags.common.binary.clone();
    let work = setup::work_directory(&flags.common)?;
    let setup = Setup {
        cosmolabe: Cosmolabe { binary, directory: work.path().to_owned() },
        is_quick: flags.common.quick,
        seconds: flags.seconds,
    };
    let mut report = new_report(&setup);
    let started = Instant::now();
    for section in Section::value_variants() {
        if flags.only.is_empty() || flags.only.contains(section) {
            println!("{section:?}");
            // What one section finds broken says nothing about the others.
            if let Err(error) = run_section(*section, &setup, &mut report).await {
                report.fail(&format!("{section:?}"), &error);
            }
        }
    }
    report.print();
    let path = setup::target_directory()?.join("bench/script.json");
    let path = flags.common.out.unwrap_or(path);
    report.write(&path)?;
    println!("\n{:.0} s; numbers in {}", started.elapsed().as_secs_f64(), path.display());
    match report.failures() {
        0 => Ok(()),
        count => bail!("{count} failed"),
    }
}

fn new_report(setup: &Setup) -> Report {
    let (cosmolabe, turns) = (&setup.cosmolabe, setup.turns());
    let settings = json!({
        "cosmolabe": "serve --durability sync, default cache but in leak, a server per section",
        "is_quick": setup.is_quick,
        "slices": turns.count, "slice_seconds": turns.time.as_secs_f64(),
    });
    Report::new(machine::describe(&cosmolabe.directory, &cosmolabe.binary), settings)
}

async fn run_section(section: Section, setup: &Setup, report: &mut Report) -> Result<()> {
    match section {
        Section::Comment => comment::run(setup, report).await,
        Section::Empty => empty::run(setup, report).await,
        Section::Functions => functions::run(setup, report).await,
        Section::Counter => counter::run(setup, report).await,
        Section::Leak => leak::run(setup, report).await,
        Section::Hostile => hostile::run(setup, report).await,
    }
}
