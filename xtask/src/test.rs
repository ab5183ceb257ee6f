//! The one test command: a list of steps, and one line at the end.
//!
//! A failed step does not stop the ones after it: one run shows everything that is wrong. To add a
//! step, write a function and name it in [`STEPS`].

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, bail};

use crate::run::{count, has, run as run_command};
use crate::tally::Tally;
use crate::workspace::{Workspace, cargo};
use crate::{conformance, licenses, tidy};

/// Something to do, under the name it is reported by.
#[derive(Clone, Copy)]
pub struct Step {
    name: &'static str,
    run: fn(&Workspace) -> Result<Outcome>,
}

/// How a step ended that did not fail.
pub enum Outcome {
    /// It found nothing wrong, in these tests if it ran any.
    Passed(Tally),
    /// It was not done; the sentence says why.
    Skipped(String),
}

impl Outcome {
    /// A check without tests of its own found nothing wrong.
    pub const CLEAN: Outcome = Outcome::Passed(Tally { passed: 0, failed: 0 });
}

/// Everything CI runs, in order: what is quick to fail comes first.
pub const STEPS: &[Step] = &[
    FORMAT,
    LINTS,
    TIDY,
    LICENSES,
    TESTS,
    RELEASE_BUILD,
    TRAINING,
    BROWSER,
    JS,
    PYTHON,
    RUST,
    JAVA,
    GO,
];

const FORMAT: Step = Step { name: "format", run: format };
const LINTS: Step = Step { name: "lints", run: lints };
/// See `tidy`.
pub const TIDY: Step = Step { name: "tidy", run: tidy::check };
/// See `licenses`.
pub const LICENSES: Step = Step { name: "licenses", run: licenses::check };
const TESTS: Step = Step { name: "tests", run: tests };
/// Builds what the conformance suites run against.
pub const RELEASE_BUILD: Step = Step { name: "release build", run: build };
const TRAINING: Step = Step { name: "training", run: training };
/// Reports of the laboratory, opened in a browser.
pub const BROWSER: Step = Step { name: "reports in a browser", run: conformance::browser };
/// The suite of the JavaScript SDK.
pub const JS: Step = Step { name: "conformance js", run: conformance::js };
/// The suite of the Python SDK.
pub const PYTHON: Step = Step { name: "conformance python", run: conformance::python };
/// The suite of the Rust SDK.
pub const RUST: Step = Step { name: "conformance rust", run: conformance::rust };

/// The suite of the Java SDK.
pub const JAVA: Step = Step { name: "conformance java", run: conformance::java };
/// The suite of the Go SDK.
pub const GO: Step = Step { name: "conformance go", run: conformance::go };

/// Does the steps and reports on them.
pub fn run(workspace: &Workspace, steps: &[Step]) -> ExitCode {
    let mut report = Report::default();
    for step in steps {
        println!("\n=== {}", step.name);
        let started = Instant::now();
        let result = (step.run)(workspace);
        let line = report.add(step.name, result);
        println!("=== {line} ({:.1} s)", started.elapsed().as_secs_f64());
    }
    println!();
    report.lines.iter().for_each(|line| println!("{line}"));
    println!("{}", report.tally);
    match report.tally.failed {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// What the steps found, summed.
#[derive(Default)]
struct Report {
    tally: Tally,
    lines: Vec<String>,
}

impl Report {
    /// Adds the result of a step and says it in a line.
    fn add(&mut self, name: &str, result: Result<Outcome>) -> String {
        let line = match result {
            Ok(Outcome::Passed(tally)) if tally == Tally::default() => format!("{name}: ok"),
            Ok(Outcome::Passed(tally)) => {
                self.tally += tally;
                format!("{name}: {tally}")
            }
            Ok(Outcome::Skipped(why)) => format!("{name}: skipped: {why}"),
            Err(error) => {
                self.tally += failure(&error);
                format!("{name}: FAILED: {error:#}")
            }
        };
        // Details stand above, where the step ran.
        self.lines.extend(line.lines().next().map(str::to_owned));
        line
    }
}

/// Tests that failed, with what their runner counted.
#[derive(Debug)]
struct FailedTests(Tally);

impl std::fmt::Display for FailedTests {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for FailedTests {}

/// A step that failed without counting is one failure.
fn failure(error: &anyhow::Error) -> Tally {
    match error.downcast_ref::<FailedTests>() {
        Some(FailedTests(tally)) => Tally { failed: tally.failed.max(1), ..*tally },
        None => Tally { passed: 0, failed: 1 },
    }
}

/// Runs a test runner; failed tests are an error that carries their number.
pub fn run_tests(command: &mut std::process::Command) -> Result<Outcome> {
    let ran = count(command)?;
    match ran.is_success && ran.tally.failed == 0 {
        true => Ok(Outcome::Passed(ran.tally)),
        false => Err(FailedTests(ran.tally).into()),
    }
}

fn format(workspace: &Workspace) -> Result<Outcome> {
    if !has("rustfmt") {
        return component("rustfmt", workspace, format);
    }
    run_command(cargo().args(["fmt", "--all", "--check"]).current_dir(&workspace.root))?;
    Ok(Outcome::CLEAN)
}

fn lints(workspace: &Workspace) -> Result<Outcome> {
    if !has("cargo-clippy") {
        return component("clippy", workspace, lints);
    }
    let mut command = cargo();
    command.args(["clippy", "--workspace", "--all-targets"]).current_dir(&workspace.root);
    if workspace.is_ci {
        command.args(["--", "--deny", "warnings"]);
    }
    run_command(&mut command)?;
    Ok(Outcome::CLEAN)
}

/// Installs a part of the toolchain where it must not be missing, and tries again.
fn component(
    name: &str,
    workspace: &Workspace,
    again: fn(&Workspace) -> Result<Outcome>,
) -> Result<Outcome> {
    if !workspace.is_ci {
        let why = format!("{name} is not installed; get it with: rustup component add {name}");
        return Ok(Outcome::Skipped(why));
    }
    let binary = if name == "clippy" { "cargo-clippy" } else { name };
    let installed =
        run_command(std::process::Command::new("rustup").args(["component", "add", name]));
    match installed.is_ok() && has(binary) {
        true => again(workspace),
        false => bail!("{name} is not installed and could not be"),
    }
}

fn tests(workspace: &Workspace) -> Result<Outcome> {
    let mut command = cargo();
    command.args(["test", "--workspace", "--no-fail-fast"]).current_dir(&workspace.root);
    run_tests(&mut command)
}

fn build(workspace: &Workspace) -> Result<Outcome> {
    build_release(workspace)?;
    Ok(Outcome::CLEAN)
}

/// Builds the server as `cargo build --release` does, and returns where it is.
pub fn build_release(workspace: &Workspace) -> Result<PathBuf> {
    run_command(cargo().args(["build", "--release"]).current_dir(&workspace.root))?;
    Ok(workspace.release_binary())
}

/// The requests that releases are optimized by get the answers they should.
fn training(workspace: &Workspace) -> Result<Outcome> {
    let mut command = cargo();
    command
        .args([
            "run",
            "--quiet",
            "-p",
            "bench",
            "--",
            "train",
            "--customers",
            "100",
            "--each",
            "20",
        ])
        .arg("--binary")
        .arg(workspace.release_binary())
        .current_dir(&workspace.root);
    run_command(&mut command)?;
    Ok(Outcome::CLEAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_summed() {
        let mut report = Report::default();
        let tally = |passed, failed| Tally { passed, failed };
        report.add("a", Ok(Outcome::Passed(tally(5, 0))));
        report.add("b", Err(FailedTests(tally(2, 3)).into()));
        report.add("c", Err(FailedTests(tally(4, 0)).into()));
        report.add("d", Err(anyhow::anyhow!("no")));
        assert_eq!(report.add("e", Ok(Outcome::Skipped("no node".into()))), "e: skipped: no node");
        assert_eq!(report.tally.to_string(), "11 passed, 5 failed");
    }
}
