//! `cargo xtask …`: what contributors and CI run. Needs nothing but cargo.
//!
//! LAYOUT     `test` (the list of steps), `conformance` (Microsoft's SDKs and a browser against the
//!            release binary), `release` (an optimized build), `tidy` (what a reader would otherwise
//!            have to check), `licenses`, `tally` (counting tests in the output of their runners),
//!            `run` (processes), `workspace`.

mod conformance;
mod licenses;
mod release;
mod run;
mod tally;
mod test;
mod tidy;
mod workspace;

use std::process::ExitCode;

use anyhow::Result;

use crate::workspace::Workspace;

const USAGE: &str = "\
cargo xtask test                          every check and every test, as CI runs them
cargo xtask tidy                          crate graph, module headers, wire spellings, links
cargo xtask licenses                      licenses of everything we build with
cargo xtask conformance NAME              one of Microsoft's SDKs against the release binary: js,
                                          python, rust, java or go
cargo xtask browser                       reports of the laboratory, opened in Chromium
cargo xtask release                       the server, optimized by what it does: target/trained/cosmolabe
cargo xtask bench point [--quick]         point operations against their references, interleaved
cargo xtask bench query [--quick]         queries against PostgreSQL and others, interleaved
cargo xtask bench script [--quick]        procedures and functions against batches, reads and filters
                                          --plain takes `cargo build --release` instead

With CI=true warnings are errors, and so is a tool that is missing and cannot be installed.
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let steps = match arguments[..] {
        ["test"] => test::STEPS,
        ["tidy"] => &[test::TIDY],
        ["licenses"] => &[test::LICENSES],
        ["browser"] => &[test::RELEASE_BUILD, test::BROWSER],
        ["conformance", "js"] => &[test::RELEASE_BUILD, test::JS],
        ["conformance", "python"] => &[test::RELEASE_BUILD, test::PYTHON],
        ["conformance", "rust"] => &[test::RELEASE_BUILD, test::RUST],
        ["conformance", "java"] => &[test::RELEASE_BUILD, test::JAVA],
        ["conformance", "go"] => &[test::RELEASE_BUILD, test::GO],
        ["bench", ref rest @ ..] if !rest.is_empty() => return done(|it| bench(it, rest)),
        ["release"] => {
            return done(|it| release::build(it).map(|path| println!("{}", path.display())));
        }
        [] | ["help" | "--help" | "-h"] => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprint!("cargo xtask: no such task: {}\n\n{USAGE}", arguments.join(" "));
            return ExitCode::from(2);
        }
    };
    match Workspace::load() {
        Ok(workspace) => test::run(&workspace, steps),
        Err(error) => failed(&error),
    }
}

/// Something that is not a step.
fn done(act: impl FnOnce(&Workspace) -> Result<()>) -> ExitCode {
    match Workspace::load().and_then(|workspace| act(&workspace)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error),
    }
}

fn failed(error: &anyhow::Error) -> ExitCode {
    eprintln!("cargo xtask: {error:#}");
    ExitCode::FAILURE
}

/// Builds the benchmarks and the server, and runs one. The server is built by itself: together with
/// the benchmarks it would get features that users do not have.
fn bench(workspace: &Workspace, arguments: &[&str]) -> Result<()> {
    let (plain, arguments): (Vec<&str>, Vec<&str>) =
        arguments.iter().partition(|argument| **argument == "--plain");
    let is_named = arguments.iter().any(|argument| argument.starts_with("--binary"));
    let mut command = workspace::cargo();
    command.args(["run", "--release", "-p", "bench", "--"]).args(arguments);
    if !is_named && std::env::var_os("COSMOLABE_BIN").is_none() {
        let binary = match plain.is_empty() {
            true => release::build(workspace)?,
            false => test::build_release(workspace)?,
        };
        command.env("COSMOLABE_BIN", binary);
    }
    run::run(&mut command)
}
