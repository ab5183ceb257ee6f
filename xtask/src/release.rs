//! `cargo xtask release`: the server, optimized by what it does.
//!
//! ```text
//! build     with counters in all of its code
//! train     by requests of every kind (`bench train`)
//! build     with what was counted
//! ```
//!
//! A query of 25 rows runs through more code than the first caches of a processor hold. Laid out by
//! what runs together, the same code takes a third less time ([ADR 17](../../docs/adr/0017-trained-releases.md)).
//!
//! ```text
//! target/trained/counting/…          the server that counts, as cargo built it
//! target/trained/<number>.profdata   what was counted; the number is that of the server's bytes
//! target/trained/trained/…           the release, as cargo built it
//! target/trained/cosmolabe           the release
//! ```
//!
//! Flags of the compiler name the file, so other counts are another build, and the same server is not
//! trained twice.

use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::run::run;
use crate::workspace::{Workspace, cargo};

/// Builds the release and returns where it is.
pub fn build(workspace: &Workspace) -> Result<PathBuf> {
    let tools = Tools::find()?;
    let directory = workspace.target.join("trained");
    std::fs::create_dir_all(&directory)?;
    println!("release: a build that counts");
    let unused = directory.join("unused");
    let flags = format!("-Cprofile-generate={}", unused.display());
    let counting = tools.compile(workspace, &directory.join("counting"), &flags)?;
    let counts = directory.join(format!("{:016x}.profdata", number_of(&counting)?));
    if !counts.exists() {
        println!("release: training");
        tools.train(workspace, &counting, &counts)?;
    }
    println!("release: a build by what was counted");
    let flags = format!("-Cprofile-use={}", counts.display());
    let trained = tools.compile(workspace, &directory.join("trained"), &flags)?;
    let release = directory.join(binary_name());
    std::fs::copy(&trained, &release).context("the release cannot be put in its place")?;
    Ok(release)
}

/// What comes with the compiler.
struct Tools {
    /// The kind of machine this is.
    host: String,
    /// The program that sums counts.
    profdata: PathBuf,
}

impl Tools {
    /// Finds them, and gets them if that is possible.
    fn find() -> Result<Tools> {
        let version = rustc(&["--version", "--verbose"])?;
        let host = version.lines().find_map(|line| line.strip_prefix("host: "));
        let host = host.context("rustc names its host")?.to_owned();
        let sysroot = PathBuf::from(rustc(&["--print", "sysroot"])?.trim());
        let profdata = sysroot.join("lib/rustlib").join(&host).join("bin/llvm-profdata");
        if !profdata.exists() {
            let _ = run(Command::new("rustup").args(["component", "add", "llvm-tools"]));
        }
        if !profdata.exists() {
            bail!(
                "llvm-profdata is not installed and could not be; get it with: rustup component \
                 add llvm-tools (a release without training: cargo build --release)"
            );
        }
        Ok(Tools { host, profdata })
    }

    /// Builds the server with more flags for the compiler. The target is named so that they are for
    /// the server alone, not for what is run to build it.
    fn compile(&self, workspace: &Workspace, target: &Path, flags: &str) -> Result<PathBuf> {
        // Apart, since a path may have blanks in it.
        let own = std::env::var("RUSTFLAGS").unwrap_or_default();
        let flags: Vec<&str> = own.split_whitespace().chain([flags]).collect();
        let mut command = cargo();
        command
            .args(["build", "--release", "-p", "server", "--target", &self.host, "--target-dir"])
            .arg(target)
            .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"))
            .current_dir(&workspace.root);
        run(&mut command)?;
        Ok(target.join(&self.host).join("release").join(binary_name()))
    }

    /// Has the server count, and sums what its processes counted.
    fn train(&self, workspace: &Workspace, counting: &Path, counts: &Path) -> Result<()> {
        let raw = counts.with_extension("raw");
        if raw.exists() {
            std::fs::remove_dir_all(&raw)?;
        }
        let mut command = cargo();
        command
            .args(["run", "--release", "-p", "bench", "--", "train", "--binary"])
            .arg(counting)
            .env("LLVM_PROFILE_FILE", raw.join("%p.profraw"))
            .current_dir(&workspace.root);
        run(&mut command)?;
        // Under its name only when it is whole.
        let unnamed = counts.with_extension("new");
        run(Command::new(&self.profdata).args(["merge", "-o"]).arg(&unnamed).arg(&raw))?;
        std::fs::rename(&unnamed, counts)?;
        std::fs::remove_dir_all(&raw)?;
        Ok(())
    }
}

fn binary_name() -> String {
    format!("cosmolabe{}", std::env::consts::EXE_SUFFIX)
}

fn rustc(arguments: &[&str]) -> Result<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).args(arguments).output().context("rustc cannot be started")?;
    Ok(String::from_utf8(output.stdout)?)
}

fn number_of(file: &Path) -> Result<u64> {
    let mut hasher = DefaultHasher::new();
    hasher.write(&std::fs::read(file)?);
    Ok(hasher.finish())
}
