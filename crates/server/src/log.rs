//! Logs on standard error: for people on a terminal, JSON otherwise.

use std::io::IsTerminal;

use anyhow::Result;
use tracing_subscriber::EnvFilter;

use crate::config::Usage;

/// Starts logging what `filter` lets through, else `RUST_LOG`, else `default`.
pub fn start(filter: Option<&str>, default: &str) -> Result<()> {
    let from_environment = std::env::var("RUST_LOG").ok().filter(|text| !text.is_empty());
    let filter = filter.map(str::to_owned).or(from_environment);
    let filter = filter.as_deref().unwrap_or(default);
    let parsed = EnvFilter::try_new(filter)
        .map_err(|error| Usage(format!("--log {filter}: {error}; write it like info or debug.")))?;
    let logs = tracing_subscriber::fmt().with_env_filter(parsed).with_writer(std::io::stderr);
    match std::io::stderr().is_terminal() {
        true => logs.init(),
        false => logs.json().flatten_event(true).init(),
    }
    Ok(())
}
