//! `bench query`: which sections run, how long, and on what.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Result, bail};
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use serde_json::json;

use crate::blog::{Activity, Blog};
use crate::process::Cosmolabe;
use crate::queries::{Name, Sizes};
use crate::report::Report;
use crate::setup::{self, Setup};
use crate::stock::Stock;
use crate::{growth, machine, peer, stream, versus};

/// A million items in one set, two million in the other.
const POSTS: u64 = 20_000;
const USERS: u64 = 100;
const ITEMS_PER_USER: u64 = 20_000;

/// Flags of `query`.
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
    /// Keep what is loaded in this directory, and use what is there from an earlier run
    #[arg(long, value_name = "DIR", conflicts_with = "dir")]
    keep: Option<PathBuf>,
    /// Physical partitions of each container, by provisioning throughput for as many
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100))]
    partitions: u32,
}

/// The parts of the benchmark, in the order they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Section {
    /// One query, against PostgreSQL.
    Query(Name),
    /// The package of Node.js.
    Peer,
    /// Ten times the items.
    Growth,
    /// Memory while everything is read.
    Stream,
}

impl ValueEnum for Section {
    fn value_variants<'a>() -> &'a [Section] {
        &[
            Section::Query(Name::Comments),
            Section::Query(Name::PostsOfUser),
            Section::Query(Name::FrontPage),
            Section::Query(Name::OlderPosts),
            Section::Query(Name::CountLikes),
            Section::Query(Name::CountComments),
            Section::Query(Name::Tags),
            Section::Query(Name::Groups),
            Section::Query(Name::Recent),
            Section::Query(Name::RecentSorted),
            Section::Peer,
            Section::Growth,
            Section::Stream,
        ]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self {
            Section::Query(name) => name.to_possible_value(),
            Section::Peer => {
                Some(PossibleValue::new("peer").help("Queries against cosmosdb-server of Node.js"))
            }
            Section::Growth => {
                Some(PossibleValue::new("growth").help("Key given, ten times the items"))
            }
            Section::Stream => {
                Some(PossibleValue::new("stream").help("Memory while everything is read"))
            }
        }
    }
}

/// Runs the benchmark.
pub async fn run(flags: Flags) -> Result<()> {
    let work = match &flags.keep {
        None => Some(setup::work_directory(&flags.common)?),
        Some(keep) => {
            std::fs::create_dir_all(keep)?;
            setup::open_to_others(keep)?;
            None
        }
    };
    let directory = work.as_ref().map(|work| work.path().to_owned()).or(flags.keep);
    let directory = std::path::absolute(directory.unwrap_or_default())?;
    let setup = Setup {
        cosmolabe: Cosmolabe { binary: flags.common.binary.clone(), directory },
        is_quick: flags.common.quick,
        seconds: flags.seconds,
    };
    let stock = Stock { setup: &setup, sizes: sizes(&setup), partitions: flags.partitions };
    let mut report = new_report(&stock);
    let started = Instant::now();
    let all = Section::value_variants().iter();
    let chosen: Vec<Section> = all
        .filter(|section| flags.only.is_empty() || flags.only.contains(section))
        .copied()
        .collect();
    run_sections(&chosen, &stock, &mut report).await?;
    report.print();
    let path = setup::target_directory()?.join("bench/query.json");
    let path = flags.common.out.unwrap_or(path);
    report.write(&path)?;
    println!("\n{:.0} s; numbers in {}", started.elapsed().as_secs_f64(), path.display());
    match report.failures() {
        0 => Ok(()),
        count => bail!("{count} failed"),
    }
}

fn sizes(setup: &Setup) -> Sizes {
    let activity = Activity { users: setup.scaled(USERS), each: setup.scaled(ITEMS_PER_USER) };
    Sizes { blog: Blog { posts: setup.scaled(POSTS) }, activity }
}

fn new_report(stock: &Stock<'_>) -> Report {
    let (setup, turns) = (stock.setup, stock.setup.turns());
    let machine = machine::describe(&setup.cosmolabe.directory, &setup.cosmolabe.binary);
    let settings = json!({
        "cosmolabe": "serve --durability sync --ru-profile modern --cache-size 4GiB, a server per set",
        "is_quick": setup.is_quick,
        "slices": turns.count, "slice_seconds": turns.time.as_secs_f64(),
        "sizes": format!("{:?}", stock.sizes),
        "physical_partitions": stock.partitions,
    });
    Report::new(machine, settings)
}

async fn run_sections(chosen: &[Section], stock: &Stock<'_>, report: &mut Report) -> Result<()> {
    let names: Vec<Name> = chosen
        .iter()
        .filter_map(|section| match section {
            Section::Query(name) => Some(*name),
            Section::Peer | Section::Growth | Section::Stream => None,
        })
        .collect();
    if !names.is_empty() {
        println!("Queries");
        versus::run(&names, stock, report).await?;
    }
    for section in chosen {
        match section {
            Section::Query(_) => continue,
            Section::Peer | Section::Growth | Section::Stream => println!("{section:?}"),
        }
        match section {
            Section::Query(_) => {}
            Section::Peer => peer::run(stock, report).await?,
            Section::Growth => growth::run(stock, report).await?,
            Section::Stream => stream::run(stock, report).await?,
        }
    }
    Ok(())
}
