//! Where we are: the repository, its target directory, and what cargo knows about the packages.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// The workspace all tasks work on.
pub struct Workspace {
    /// The root of the repository.
    pub root: PathBuf,
    /// Where cargo builds.
    pub target: PathBuf,
    /// Whether this run decides about a change: warnings count, nothing is skipped.
    pub is_ci: bool,
    /// What `cargo metadata` says about every package.
    pub metadata: Value,
}

impl Workspace {
    /// Asks cargo.
    pub fn load() -> Result<Workspace> {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = here.parent().context("xtask lies in the workspace")?.to_owned();
        let is_ci = std::env::var("CI").is_ok_and(|value| value == "true");
        let metadata = metadata(&root, is_ci)?;
        let target = metadata["target_directory"].as_str().context("cargo names its target")?;
        Ok(Workspace { target: target.into(), root, is_ci, metadata })
    }

    /// The server as users run it.
    pub fn release_binary(&self) -> PathBuf {
        self.target.join("release").join(format!("cosmolabe{}", std::env::consts::EXE_SUFFIX))
    }

    /// The packages of this workspace.
    pub fn members(&self) -> impl Iterator<Item = &Value> {
        let members = self.metadata["workspace_members"].as_array();
        let ids: Vec<&Value> = members.into_iter().flatten().collect();
        self.packages().filter(move |package| ids.contains(&&package["id"]))
    }

    /// Every package that any target of the workspace is built from, tests included.
    pub fn packages(&self) -> impl Iterator<Item = &Value> {
        self.metadata["packages"].as_array().into_iter().flatten()
    }
}

/// The cargo that runs us.
pub fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

fn metadata(root: &Path, is_ci: bool) -> Result<Value> {
    let mut command = cargo();
    command.args(["metadata", "--format-version", "1"]).current_dir(root);
    if is_ci {
        command.arg("--locked");
    }
    let output = command.output().context("cargo metadata cannot be started")?;
    if !output.status.success() {
        bail!("cargo metadata failed:\n{}", String::from_utf8_lossy(&output.stderr));
    }
    serde_json::from_slice(&output.stdout).context("cargo metadata prints JSON")
}
