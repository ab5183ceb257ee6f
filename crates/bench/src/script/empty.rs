//! A procedure that does nothing, against a point read of an item of a kilobyte.

use anyhow::Result;
use serde_json::json;

use crate::items::{Data, Items, container};
use crate::process::{create_container, create_database, fill};
use crate::report::{Bar, Report, Row};
use crate::script::calls::Calls;
use crate::script::texts::EMPTY;
use crate::setup::Setup;
use crate::slices::{Side, alternate};

const CONTAINER: &str = "empty";
const ITEMS: Items = Items { count: 1000 };
/// Of the point read's time.
const BAR: f64 = 3.0;

/// Runs the section.
pub async fn run(setup: &Setup, report: &mut Report) -> Result<()> {
    let server = setup.cosmolabe.serve("empty").await?;
    let client = server.client()?;
    create_database(&client).await?;
    create_container(&client, CONTAINER).await?;
    fill(&server, CONTAINER, ITEMS).await?;
    EMPTY.create_procedure(&client, &container(CONTAINER)).await?;
    let container = container(CONTAINER);
    let (one, other) = (container.clone(), container);
    let procedure = Calls::of("procedure", &server, 1, move |random| {
        one.execute(EMPTY.id, &ITEMS.key(random.next() % ITEMS.count), "[]")
    });
    let read = Calls::of("read", &server, 1, move |random| {
        let number = random.next() % ITEMS.count;
        other.read(&ITEMS.key(number), &ITEMS.id(number))
    });
    for side in [&procedure, &read] {
        side.slice(setup.warmup()).await?;
    }
    let (ours, theirs) = alternate(setup.turns(), &procedure, &read).await?;
    let ratio = ours.p50_us / theirs.p50_us.max(1.0);
    report.row(Row::rates("empty procedure, 1 connection", &ours, &theirs, "a read", ratio));
    report.row(Row::cpu("  server CPU per execution", &ours, &theirs, "a read"));
    report.bar(Bar::below("empty procedure / point read, p50", ratio, BAR));
    report.value(
        "empty",
        json!({"p50_ratio": ratio, "procedure": ours.to_json(), "read": theirs.to_json()}),
    );
    server.stop()?;
    Ok(())
}
