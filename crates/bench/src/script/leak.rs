//! Memory over many executions: what a procedure takes it gives back.
//!
//! Half of the executions do nothing, half do a bit of everything and keep nothing: what a store
//! holds in memory of new items would pass for a leak. The cache is small, so that it is full before
//! the first look.

use anyhow::Result;
use serde_json::json;

use crate::items::key;
use crate::machine::resident_mb;
use crate::process::create_database;
use crate::report::{Bar, Report};
use crate::script::calls::Calls;
use crate::script::posts::Comments;
use crate::script::texts::{EMPTY, REHEARSE};
use crate::setup::Setup;
use crate::slices::median;

const CONNECTIONS: u64 = 8;
const CACHE: &str = "16MiB";
const EXECUTIONS: u64 = 100_000;
const WARMUP: u64 = 10_000;
/// Looks at the memory after the warm-up, evenly spread.
const LOOKS: usize = 9;
/// The first and the last of them that count.
const COUNTED: usize = 3;
/// Growth in MB, or in parts of what was there.
const GROWTH_MB_MAX: f64 = 16.0;
const GROWTH_MAX: f64 = 0.05;

/// Runs the section.
pub async fn run(setup: &Setup, report: &mut Report) -> Result<()> {
    let (executions, warmup) = (setup.scaled(EXECUTIONS), setup.scaled(WARMUP));
    let flags = ["--durability", "sync", "--cache-size", CACHE];
    let server = setup.cosmolabe.serve_as("leak", &flags).await?;
    let client = server.client()?;
    create_database(&client).await?;
    let comments = Comments::create(&server, "leak").await?;
    EMPTY.create_procedure(&client, comments.container()).await?;
    REHEARSE.create_procedure(&client, comments.container()).await?;
    let own = comments.clone();
    let calls =
        Calls::of("procedures", &server, CONNECTIONS as usize, move |random| match random.next() {
            number if number % 2 == 0 => own.container().execute(EMPTY.id, &key("nobody"), "[]"),
            number => own.rehearsal(number / 2),
        });
    calls.repeat(warmup / CONNECTIONS).await?;
    let warm = resident_mb(server.id());
    let mut looks = Vec::new();
    for _ in 0..LOOKS {
        calls.repeat((executions - warmup) / LOOKS as u64 / CONNECTIONS).await?;
        looks.push(resident_mb(server.id()));
    }
    comments.check(&client).await?;
    tell(executions, warm, &looks, report);
    server.stop()?;
    Ok(())
}

/// Medians of the first and of the last looks: memory goes up and down with what the store flushes.
fn tell(executions: u64, warm: f64, looks: &[f64], report: &mut Report) {
    let first = median(&looks[..COUNTED]);
    let last = median(&looks[looks.len() - COUNTED..]);
    let growth = last - first;
    report.note(format!(
        "leak: resident {warm:.0} MB after the warm-up, {first:.0} MB soon after it, {last:.0} MB \
         after {executions} executions"
    ));
    let bound = GROWTH_MB_MAX.max(first * GROWTH_MAX);
    report.bar(Bar::below("growth over all executions, MB", growth, bound));
    report.value(
        "leak",
        json!({
            "executions": executions, "warm_mb": warm, "looks_mb": looks, "growth_mb": growth,
            "cache": CACHE,
        }),
    );
}
