//! Signals that ask a process to end.

use anyhow::Result;

/// The signals that ask a process to end.
#[cfg(unix)]
pub struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    /// From here on signals are kept for whoever waits, and do not end the process. Needs a runtime.
    pub fn new() -> Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        let interrupt = signal(SignalKind::interrupt())?;
        Ok(Signals { interrupt, terminate: signal(SignalKind::terminate())? })
    }

    /// Waits for the next one; its name.
    pub async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }
}

/// The signals that ask a process to end.
#[cfg(not(unix))]
pub struct Signals;

#[cfg(not(unix))]
impl Signals {
    /// From here on signals are kept for whoever waits, and do not end the process. Needs a runtime.
    pub fn new() -> Result<Signals> {
        Ok(Signals)
    }

    /// Waits for the next one; its name.
    pub async fn next(&mut self) -> &'static str {
        // Without a handler there is nothing to wait for; the process ends the hard way.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        "ctrl-c"
    }
}
