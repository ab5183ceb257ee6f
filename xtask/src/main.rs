//! `cargo xtask …`: what contributors and CI run. Needs nothing but cargo.
//!
//! LAYOUT     `test` (the list of steps), `conformance` (Microsoft's SDKs and a browser against the
//!            release binary), `tidy` (what a reader would otherwise have to check), `licenses`, `tally`
//!            (counting tests in the output of their runners), `run` (processes), `workspace`.

mod conformance;
mod licenses;
mod run;
mod tally;
mod test;
mod tidy;
mod workspace;

use std::process::ExitCode;

use crate::workspace::Workspace;

const USAGE: &str = "\
cargo xtask test                          every check and every test, as CI runs them
cargo xtask tidy                          crate graph, module headers, wire spellings, links
cargo xtask licenses                      licenses of everything we build with
cargo xtask conformance js|python|rust    one of Microsoft's SDKs against the release binary
cargo xtask browser                       reports of the laboratory, opened in Chromium
cargo xtask bench point [--quick]         point operations against their references, interleaved
cargo xtask bench query [--quick]         queries against PostgreSQL and others, interleaved
cargo xtask bench script [--quick]        procedures and functions against batches, reads and filters

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
        ["bench", ref rest @ ..] if !rest.is_empty() => return bench(rest),
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
        Err(error) => {
            eprintln!("cargo xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Builds the benchmarks in release, and runs one. It builds the server by itself: together with
/// the benchmarks it would get features that users do not have.
fn bench(arguments: &[&str]) -> ExitCode {
    let mut command = workspace::cargo();
    command.args(["run", "--release", "-p", "bench", "--"]).args(arguments);
    match run::run(&mut command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cargo xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
