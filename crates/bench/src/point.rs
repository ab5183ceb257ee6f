//! `bench point`: which sections run, how long, and on what.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use serde_json::json;

use crate::process::Cosmolabe;
use crate::report::Report;
use crate::slices::Turns;
use crate::{creates, hot, idle, machine, reads, scale};

/// Flags of `point`.
#[derive(Debug, Args)]
pub struct Flags {
    /// A tenth of the items and slices of a second: to see that it runs, not how fast
    #[arg(long)]
    quick: bool,
    /// How long each side of a comparison is loaded in all; the scale section takes twice this
    #[arg(long, default_value_t = 30)]
    seconds: u64,
    /// Only these sections
    #[arg(long, value_delimiter = ',')]
    only: Vec<Section>,
    /// Where data directories go: the file system that is measured [default: a temporary one]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// The server to measure [default: built from this workspace]
    #[arg(long, env = "COSMOLABE_BIN", value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Where the machine-readable report goes [default: bench/point.json in the target directory]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
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

/// What every section needs.
#[derive(Debug)]
pub struct Setup {
    /// The server under test.
    pub cosmolabe: Cosmolabe,
    is_quick: bool,
    seconds: u64,
}

impl Setup {
    /// A number of items, less if it has to be quick.
    pub fn scaled(&self, count: u64) -> u64 {
        if self.is_quick { count / 10 } else { count }
    }

    /// How sides take turns.
    pub fn turns(&self) -> Turns {
        match self.is_quick {
            true => Turns { time: Duration::from_secs(1), count: 3 },
            // Six slices, or as many as make slices of five seconds.
            false => {
                let count = (self.seconds / 5).max(6);
                let time = Duration::from_secs_f64(self.seconds as f64 / count as f64);
                Turns { time, count: count as usize }
            }
        }
    }

    /// How long a side is loaded before it counts.
    pub fn warmup(&self) -> Duration {
        Duration::from_secs(if self.is_quick { 1 } else { 3 })
    }
}

/// Runs the benchmark.
pub async fn run(flags: Flags) -> Result<()> {
    let target = target_directory()?;
    let binary = match &flags.binary {
        Some(binary) => binary.clone(),
        None => build(&target)?,
    };
    let parent = flags.dir.clone().unwrap_or_else(std::env::temp_dir);
    let work = work_directory(&parent)?;
    let setup = Setup {
        cosmolabe: Cosmolabe { binary, directory: work.path().to_owned() },
        is_quick: flags.quick,
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
    let sections = [Section::Idle, Section::Reads, Section::Creates, Section::Hot, Section::Scale];
    for section in sections {
        if flags.only.is_empty() || flags.only.contains(&section) {
            println!("{section:?}");
            run_section(section, &setup, &mut report).await?;
        }
    }
    report.print();
    let path = flags.out.unwrap_or_else(|| target.join("bench/point.json"));
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

/// A directory that goes away; others may look into it, since PostgreSQL runs as somebody else.
fn work_directory(parent: &Path) -> Result<tempfile::TempDir> {
    use std::os::unix::fs::PermissionsExt;
    let work = tempfile::Builder::new().prefix("bench-").tempdir_in(parent)?;
    std::fs::set_permissions(work.path(), std::fs::Permissions::from_mode(0o755))?;
    Ok(work)
}

/// Where cargo has put this program.
fn target_directory() -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    let target = program.parent().and_then(Path::parent);
    Ok(target.context("this program lies in a target directory")?.to_owned())
}

/// Builds the server as users run it.
fn build(target: &Path) -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../server/Cargo.toml");
    let status = Command::new(cargo)
        .args(["build", "--release", "--quiet", "--manifest-path"])
        .arg(manifest)
        .arg("--target-dir")
        .arg(target)
        .status()
        .context("cargo cannot be started; name a binary with --binary")?;
    if !status.success() {
        bail!("the server does not build");
    }
    Ok(target.join("release").join("cosmolabe"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_add_up() {
        let setup = |is_quick, seconds| Setup {
            cosmolabe: Cosmolabe { binary: PathBuf::new(), directory: PathBuf::new() },
            is_quick,
            seconds,
        };
        let check = |is_quick, seconds, count, each: f64| {
            let turns = setup(is_quick, seconds).turns();
            assert_eq!((turns.count, turns.time.as_secs_f64()), (count, each));
        };
        check(false, 30, 6, 5.0);
        check(false, 60, 12, 5.0);
        check(false, 6, 6, 1.0);
        check(true, 30, 3, 1.0);
    }
}
