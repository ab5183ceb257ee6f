//! A server of our own for one run of the laboratory: the same executable, on a temporary directory
//! or in memory.
//!
//! It is another process, as any server would be, so that what is measured is what applications
//! see. Its caches may take half of the machine's memory: what is compared are models whose data is in
//! use, not how soon a disk brings back what was idle. It ends with the run, and its data with it.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use base::Random;

use crate::memory;
use crate::requests::ask_to_compact;

/// A server of our own. Ended, with its data removed, when dropped.
pub struct LabServer {
    child: Child,
    /// Where its data is, unless that is in memory.
    directory: Option<PathBuf>,
    /// Where it listens.
    pub endpoint: String,
}

impl LabServer {
    /// Starts it and waits until it is ready.
    pub fn start(ru_profile: Option<&str>, is_in_memory: bool) -> Result<LabServer> {
        let name = format!("cosmolabe-lab-{:016x}", Random::from_entropy().next());
        let directory = (!is_in_memory).then(|| std::env::temp_dir().join(name));
        let mut command = Command::new(std::env::current_exe()?);
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("COSMOLABE_")) {
            command.env_remove(name);
        }
        command.args(["serve", "--listen", "127.0.0.1:0", "--log", "warn"]);
        match &directory {
            Some(directory) => command.arg("--data-dir").arg(directory),
            None => command.arg("--in-memory"),
        };
        if let Some(bytes) = memory::total_bytes() {
            command.args(["--cache-size", &(bytes / 2).to_string()]);
        }
        if let Some(profile) = ru_profile {
            command.args(["--ru-profile", profile]);
        }
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let child = child.context("the server of the laboratory cannot be started")?;
        let mut server = LabServer { child, directory, endpoint: String::new() };
        server.endpoint = server.wait()?;
        Ok(server)
    }

    /// What lets it come to rest; memory always is.
    pub fn settle(&self) -> Option<Arc<lab::Settle>> {
        let directory = self.directory.clone()?;
        Some(Arc::new(move || ask_to_compact(&directory).map_err(|error| format!("{error:#}"))))
    }

    /// Reads the ready line.
    fn wait(&mut self) -> Result<String> {
        let stdout = self.child.stdout.take().context("it has no standard output")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let found = line.split_whitespace().find(|word| word.starts_with("http://"));
        match found {
            Some(endpoint) => Ok(endpoint.to_owned()),
            None => bail!("the server of the laboratory did not start"),
        }
    }
}

impl Drop for LabServer {
    fn drop(&mut self) {
        // Its data goes away with it: there is nothing to flush, and nobody to tell of an error.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(directory) = &self.directory {
            let _ = std::fs::remove_dir_all(directory);
        }
    }
}
