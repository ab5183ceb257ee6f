//! A server with nothing to do: how soon it is there, and how little it takes.

use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use crate::machine::resident_mb;
use crate::report::{Bar, Report};
use crate::setup::Setup;
use crate::slices::median;

const STARTS: usize = 7;
/// What starting leaves behind is returned to the system by then.
const SETTLING: Duration = Duration::from_secs(2);
const RESIDENT_MB_MAX: f64 = 60.0;
const READY_MS_MAX: f64 = 300.0;

/// Runs the section.
pub async fn run(setup: &Setup, report: &mut Report) -> Result<()> {
    let mut ready = Vec::new();
    let mut resident = 0.0;
    for start in 0..STARTS {
        let server = setup.cosmolabe.serve(&format!("idle-{start}")).await?;
        ready.push(server.ready.as_secs_f64() * 1000.0);
        if start == 0 {
            tokio::time::sleep(SETTLING).await;
            resident = resident_mb(server.id());
        }
        server.stop()?;
    }
    let ready = median(&ready);
    report.bar(Bar::below("resident when idle, MB", resident, RESIDENT_MB_MAX));
    report.bar(Bar::below("ready on an empty directory, ms", ready, READY_MS_MAX));
    report.value("idle", json!({"resident_mb": resident, "ready_ms": ready}));
    Ok(())
}
