//! Sixteen clients that increment one counter: procedures of a logical partition run one after the
//! other, and no increment is lost.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::items::{container, key};
use crate::process::{create_container, create_database};
use crate::report::Report;
use crate::script::calls::Calls;
use crate::script::texts::INCREMENT;
use crate::setup::Setup;

const CONTAINER: &str = "counter";
const CONNECTIONS: usize = 16;
const ID: &str = "counter";
const KEY: &str = "one";

/// Runs the section.
pub async fn run(setup: &Setup, report: &mut Report) -> Result<()> {
    let each = setup.scaled(1000);
    let server = setup.cosmolabe.serve("counter").await?;
    let (client, container) = (server.client()?, container(CONTAINER));
    create_database(&client).await?;
    create_container(&client, CONTAINER).await?;
    let body = json!({"id": ID, "pk": KEY, "value": 0});
    client.send(&container.create(&key(KEY), body.to_string())).await?;
    INCREMENT.create_procedure(&client, &container).await?;
    let own = container.clone();
    let arguments = json!([ID]).to_string();
    let calls = Calls::of("increment", &server, CONNECTIONS, move |_| {
        own.execute(INCREMENT.id, &key(KEY), arguments.clone())
    });
    let outcome = calls.repeat(each).await?;
    let expect = CONNECTIONS as u64 * each;
    let counter = client.send(&container.read(&key(KEY), ID)).await?.json()?;
    ensure!(counter["value"] == expect, "{} after {expect} increments", counter["value"]);
    let (rate, p50) = (outcome.rate(), f64::from(outcome.percentile(50.0)) / 1000.0);
    report.note(format!(
        "counter: {expect} increments by {CONNECTIONS} clients, none lost; {rate:.0}/s, p50 {p50:.2} ms"
    ));
    report.value("counter", json!({"increments": expect, "per_second": rate, "p50_ms": p50}));
    server.stop()?;
    Ok(())
}
