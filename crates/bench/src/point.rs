//! `bench point`: which sections run, how long, and on what.

use std::time::Instant;

use anyhow::Result;
use clap::{Args, ValueEnum};
use serde_json::json;

use crate::process::Cosmolabe;
use crate::report::Report;
use crate::setup::{self, Setup};
use crate::{creates, hot, idle, machine, reads, scale};

/// Flags of `point`.
#[derive(Debug, Args)]
pub struct Flags {
    #[command(flatten)]
    common: setup::Flags,
    /// How long each side of a comparison is loaded in all; the scale section takes twice this
    #[arg(long, default_value_t = 30)]
    seconds: u64,
    /// Only these sections
    #[arg(long, value_delimiter = ',')]
    only: Vec<Section>,
}

/// The parts of the benchmark, in the order they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Section {
    /// Size and start time
    Idle,
    /// Point reads
    Reads,
    /// Durable creates
    Creates,
    /// One hot key
    Hot,
    /// Ten times the items
    Scale,
}

/// Runs the benchmark.
pub async fn run(flags: Flags) -> Result<()> {
    let target = setup::target_directory()?;
    let binary = flags.common.binary.clone();
    let work = setup::work_directory(&flags.common)?;
    let setup = Setup {
        cosmolabe: Cosmolabe { binary, directory: work.path().to_owned() },
        is_quick: flags.common.quick,
        seconds: flags.seconds,
    };
    let machine = machine::describe(work.path(), &setup.cosmolabe.binary);
    let turns = setup.turns();
    let settings = json!({
        "cosmolabe": "serve --durability sync, default cache, one container per section, /pk",
        "is_quick": setup.is_quick,
        "slices": turns.count, "slice_seconds": turns.time.as_secs_f64(),
        "item_bytes": crate::items::ITEM_BYTES,
    });
    let mut report = Report::new(machine, settings);
    let started = Instant::now();
    for section in Section::value_variants() {
        if flags.only.is_empty() || flags.only.contains(section) {
            println!("{section:?}");
            run_section(*section, &setup, &mut report).await?;
        }
    }
    report.print();
    let path = flags.common.out.unwrap_or_else(|| target.join("bench/point.json"));
    report.write(&path)?;
    println!("\n{:.0} s; numbers in {}", started.elapsed().as_secs_f64(), path.display());
    Ok(())
}

async fn run_section(section: Section, setup: &Setup, report: &mut Report) -> Result<()> {
    match section {
        Section::Idle => idle::run(setup, report).await,
        Section::Reads => reads::run(setup, report).await,
        Section::Creates => creates::run(setup, report).await,
        Section::Hot => hot::run(setup, report).await,
        Section::Scale => scale::run(setup, report).await,
    }
}
