//! Microsoft's SDKs against the release binary, each in the language it was written for; and the
//! reports of the laboratory in a browser.
//!
//! The suites start the server themselves; they find it through `COSMOLABE_BIN`. What only they
//! need is installed below `conformance/` and the target directory, never on the machine, except
//! that CI may install node, Python and Chromium.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::run::{has, run};
use crate::test::{Outcome, run_tests};
use crate::workspace::{Workspace, cargo};

/// The JavaScript SDK, under node's test runner.
pub fn js(workspace: &Workspace) -> Result<Outcome> {
    let suite = Suite { workspace, directory: "js", file: "package.json" };
    suite.run(&[("node", "nodejs"), ("npm", "npm")], |suite| {
        let installed = suite.path().join("node_modules/.package-lock.json");
        if !is_newer(&installed, &suite.path().join("package-lock.json")) {
            let mut npm = suite.command("npm");
            suite.prepare(npm.args(["ci", "--no-audit", "--no-fund", "--loglevel=error"]))?;
        }
        // The suite says itself how its tests are run.
        let mut npm = suite.command("npm");
        npm.args(["test", "--silent"]);
        Ok(npm)
    })
}

/// Reports of the laboratory in a real browser. Where none can be had this is left out, in CI too.
pub fn browser(workspace: &Workspace) -> Result<Outcome> {
    let suite = Suite { workspace, directory: "browser", file: "package.json" };
    if suite.need("chromium", "chromium").is_err() {
        let why = "chromium is not installed, so no report was opened in a browser";
        return Ok(Outcome::Skipped(why.to_owned()));
    }
    suite.run(&[("node", "nodejs")], |suite| {
        let mut node = suite.command("node");
        node.args(["--test", "report.test.js"]);
        Ok(node)
    })
}

/// The Python SDK, under pytest in an environment of its own.
pub fn python(workspace: &Workspace) -> Result<Outcome> {
    let suite = Suite { workspace, directory: "python", file: "requirements.txt" };
    suite.run(&[("python3", "python3")], |suite| {
        let environment = workspace.target.join("conformance-venv");
        let python = environment.join(if cfg!(windows) { "Scripts" } else { "bin" }).join("python");
        if !has(&python.to_string_lossy()) {
            make_environment(suite, &environment)?;
        }
        let mut pip = suite.command(&python);
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        suite.prepare(pip.args(["--requirement", "requirements.txt"]))?;
        let mut pytest = suite.command(&python);
        pytest.args(["-m", "pytest", "-p", "no:cacheprovider"]);
        Ok(pytest)
    })
}

/// The Rust SDK: a workspace of its own, since its dependencies are no part of the product.
pub fn rust(workspace: &Workspace) -> Result<Outcome> {
    let suite = Suite { workspace, directory: "rust", file: "Cargo.toml" };
    suite.run(&[], |suite| {
        let target = workspace.target.join("conformance-rust");
        let mut fetch = cargo();
        fetch.args(["fetch", "--manifest-path"]).arg(suite.path().join("Cargo.toml"));
        suite.prepare(&mut fetch)?;
        let mut command = cargo();
        command.args(["test", "--no-fail-fast", "--manifest-path"]);
        command.arg(suite.path().join("Cargo.toml")).arg("--target-dir").arg(target);
        Ok(suite.with_binary(command))
    })
}

/// The Java SDK, under Maven and JUnit.
pub fn java(workspace: &Workspace) -> Result<Outcome> {
    let suite = Suite { workspace, directory: "java", file: "pom.xml" };
    suite.run(&[("mvn", "maven"), ("javac", "default-jdk-headless")], |suite| {
        let built = workspace.target.join("conformance-java");
        let maven = |goals: &[&str]| {
            let mut command = suite.command("mvn");
            command.args(["--batch-mode", "--no-transfer-progress"]).args(goals);
            command.arg(format!("-DbuildDirectory={}", built.display()));
            command
        };
        suite.prepare(&mut maven(&["--quiet", "test-compile"]))?;
        Ok(maven(&["test"]))
    })
}

/// The Go SDK, under Go's own runner. Debian's Go is older than the SDK: where there is no other
/// this is left out, in CI too.
pub fn go(workspace: &Workspace) -> Result<Outcome> {
    let suite = Suite { workspace, directory: "go", file: "go.mod" };
    if suite.prepare(suite.command("go").args(["mod", "download"])).is_err() {
        let why = "there is no go that is new enough for the SDK, so it was not tried";
        return Ok(Outcome::Skipped(why.to_owned()));
    }
    suite.run(&[], |suite| {
        let mut command = suite.command("go");
        command.args(["test", "-count=1", "-v", "./..."]);
        Ok(command)
    })
}

/// A suite in `conformance/<directory>`, there if it has its `file`.
struct Suite<'a> {
    workspace: &'a Workspace,
    directory: &'static str,
    file: &'static str,
}

/// Something a suite needs is missing. Outside CI that is a reason to skip it.
#[derive(Debug)]
struct Missing(String);

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Missing {}

impl Suite<'_> {
    fn path(&self) -> PathBuf {
        self.workspace.root.join("conformance").join(self.directory)
    }

    /// Gets the programs a suite needs, has `prepare` install the rest, and runs the tests.
    fn run(
        self,
        programs: &[(&str, &str)],
        prepare: impl FnOnce(&Suite<'_>) -> Result<Command>,
    ) -> Result<Outcome> {
        if !self.path().join(self.file).exists() {
            let why = format!("there is no conformance/{}/{}", self.directory, self.file);
            return Ok(Outcome::Skipped(why));
        }
        let binary = self.workspace.release_binary();
        if !binary.exists() {
            bail!("there is no {} to test", binary.display());
        }
        let need = |&(program, package): &(&str, &str)| self.need(program, package);
        let prepared = programs.iter().try_for_each(need).and_then(|()| prepare(&self));
        match prepared {
            Ok(mut command) => run_tests(&mut command),
            Err(error) if error.is::<Missing>() && !self.workspace.is_ci => {
                Ok(Outcome::Skipped(error.to_string()))
            }
            Err(error) => Err(error),
        }
    }

    /// Makes sure of a program; CI installs it if it can.
    fn need(&self, program: &str, package: &str) -> Result<()> {
        if has(program) || (self.workspace.is_ci && install(package) && has(program)) {
            return Ok(());
        }
        Err(Missing(format!("{program} is not installed")).into())
    }

    /// Runs an installer. What it fetches may be out of reach, which is no fault of the suite.
    fn prepare(&self, command: &mut Command) -> Result<()> {
        run(command).map_err(|error| Missing(format!("{error:#}")).into())
    }

    /// A command in the directory of the suite that finds the server.
    fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command.current_dir(self.path());
        self.with_binary(command)
    }

    fn with_binary(&self, mut command: Command) -> Command {
        command.env("COSMOLABE_BIN", self.workspace.release_binary());
        command
    }
}

fn make_environment(suite: &Suite<'_>, environment: &Path) -> Result<()> {
    let make = || {
        let mut command = suite.command("python3");
        suite.prepare(command.args(["-m", "venv", "--clear"]).arg(environment))
    };
    // Debian keeps `venv` in a package of its own.
    let made = make();
    match made {
        Err(_) if suite.workspace.is_ci && install("python3-venv") => make(),
        made => made,
    }
}

/// Whether a file is there and was written after another.
fn is_newer(file: &Path, other: &Path) -> bool {
    let written = |path: &Path| path.metadata().and_then(|metadata| metadata.modified()).ok();
    written(file).is_some_and(|at| written(other).is_some_and(|other| at > other))
}

/// Installs a Debian package, as root or through sudo. Returns whether that worked.
fn install(package: &str) -> bool {
    let apt = |words: &[&str]| {
        let with = |prefix: &[&str]| {
            let line = [prefix, &["apt-get"], words].concat();
            let (program, words) = line.split_first().context("a command has a first word")?;
            run(Command::new(program).args(words).env("DEBIAN_FRONTEND", "noninteractive"))
        };
        with(&[]).or_else(|_| with(&["sudo", "-n"])).is_ok()
    };
    let installed = || apt(&["install", "--yes", package]);
    // A machine that has never looked knows of no packages.
    installed() || (apt(&["update"]) && installed())
}
