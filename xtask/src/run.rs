//! Running other programs: their output goes through us, so that we can count tests in it.

use std::io::{BufRead, BufReader, IsTerminal, Write};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::tally::Tally;

/// What a test runner left behind.
pub struct Ran {
    /// Whether it ended with exit code 0.
    pub is_success: bool,
    /// The tests it reported.
    pub tally: Tally,
}

/// Runs a command whose output needs no reading; an exit code other than 0 is an error.
pub fn run(command: &mut Command) -> Result<()> {
    let status =
        command.status().with_context(|| format!("{} cannot be started", name(command)))?;
    match status.success() {
        true => Ok(()),
        false => bail!("{} failed ({status})", line(command)),
    }
}

/// Runs a test runner, passing its output on line by line and counting what it reports.
pub fn count(command: &mut Command) -> Result<Ran> {
    if std::io::stdout().is_terminal() {
        command.env("CARGO_TERM_COLOR", "always").env("FORCE_COLOR", "1");
    }
    let started = command.stdout(Stdio::piped()).spawn();
    let mut child = started.with_context(|| format!("{} cannot be started", name(command)))?;
    let output = child.stdout.take().context("the output is piped")?;
    let mut tally = Tally::default();
    for line in BufReader::new(output).split(b'\n') {
        let line = line.context("the output of the tests breaks off")?;
        let line = String::from_utf8_lossy(&line);
        tally += Tally::of_line(&line);
        writeln!(std::io::stdout(), "{line}")?;
    }
    Ok(Ran { is_success: child.wait()?.success(), tally })
}

/// Whether a program can be started at all.
pub fn has(program: &str) -> bool {
    let mut probe = Command::new(program);
    probe.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    probe.status().is_ok_and(|status| status.success())
}

fn name(command: &Command) -> String {
    command.get_program().to_string_lossy().into_owned()
}

fn line(command: &Command) -> String {
    let arguments = command.get_args().map(|argument| argument.to_string_lossy());
    std::iter::once(name(command).into()).chain(arguments).collect::<Vec<_>>().join(" ")
}
