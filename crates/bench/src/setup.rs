//! What every benchmark needs: the server under test, where data goes, how long things take.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;

use crate::process::Cosmolabe;
use crate::slices::Turns;

/// Flags that all benchmarks have.
#[derive(Debug, Args)]
#[group(id = "common")]
pub struct Flags {
    /// A tenth of the items and slices of a second: to see that it runs, not how fast
    #[arg(long)]
    pub quick: bool,
    /// Where data directories go: the file system that is measured [default: a temporary one]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// The server to measure; `cargo xtask bench` builds one and names it
    #[arg(long, env = "COSMOLABE_BIN", value_name = "FILE")]
    pub binary: PathBuf,
    /// Where the machine-readable report goes [default: in `bench` of the target directory]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// What every section needs.
#[derive(Debug)]
pub struct Setup {
    /// The server under test.
    pub cosmolabe: Cosmolabe,
    /// Whether it only has to be seen that everything runs.
    pub is_quick: bool,
    /// How long each side of a comparison is loaded in all.
    pub seconds: u64,
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

    /// The same where caches are to be filled with data of some size.
    pub fn long_warmup(&self) -> Duration {
        2 * self.warmup()
    }
}

/// A directory that goes away; others may look into it, since PostgreSQL runs as somebody else.
pub fn work_directory(flags: &Flags) -> Result<tempfile::TempDir> {
    let parent = flags.dir.clone().unwrap_or_else(std::env::temp_dir);
    let work = tempfile::Builder::new().prefix("bench-").tempdir_in(parent)?;
    open_to_others(work.path())?;
    Ok(work)
}

/// Lets others look into a directory.
pub fn open_to_others(directory: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    Ok(std::fs::set_permissions(directory, std::fs::Permissions::from_mode(0o755))?)
}

/// Where cargo has put this program.
pub fn target_directory() -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    let target = program.parent().and_then(Path::parent);
    Ok(target.context("this program lies in a target directory")?.to_owned())
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
