//! Ten times the items: what of the rates is left when they no longer fit the caches.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use base::Random;
use client::{Key, date_now};
use serde_json::json;

use crate::creates::Creates;
use crate::items::{Data, Items, container};
use crate::load::Load;
use crate::machine::{cpu_seconds, resident_mb};
use crate::process::{Server, create_container, create_database, fill};
use crate::reads::measured;
use crate::report::{Bar, Report, Row};
use crate::setup::Setup;
use crate::slices::{Side, Slice, Turns, alternate};

const CONTAINER: &str = "items";
const CONNECTIONS: usize = 16;
const READS_BAR: f64 = 0.5;
const CREATES_BAR: f64 = 0.6;
const READY_MS_MAX: f64 = 2000.0;

/// Runs the section.
pub async fn run(setup: &Setup, report: &mut Report) -> Result<()> {
    let small = Items { count: setup.scaled(200_000) };
    let large = Items { count: setup.scaled(2_000_000) };
    load(setup, "small", small, report).await?;
    load(setup, "large", large, report).await?;
    let few = setup.cosmolabe.serve("small").await?;
    let many = setup.cosmolabe.serve("large").await?;
    let ready = many.ready.as_secs_f64() * 1000.0;
    let title = format!("ready with {} items, ms", large.count);
    report.bar(Bar::below(&title, ready, READY_MS_MAX));
    reads(setup, (&many, large), (&few, small), report).await?;
    creates(setup, (&many, large), (&few, small), report).await?;
    let resident = (resident_mb(many.id()), resident_mb(few.id()));
    report.note(format!("scale: resident {:.0} MB and {:.0} MB", resident.0, resident.1));
    report.value(
        "scale",
        json!({
            "items": large.count, "items_small": small.count,
            "ready_ms": ready, "ready_small_ms": few.ready.as_secs_f64() * 1000.0,
            "resident_mb": resident.0, "resident_small_mb": resident.1,
        }),
    );
    many.stop()?;
    few.stop()?;
    Ok(())
}

/// Twice as long as other sections: caches have to fill.
fn turns(setup: &Setup) -> Turns {
    let turns = setup.turns();
    Turns { count: turns.count * 2, ..turns }
}

/// Fills a data directory and leaves it in order. Nobody waits for the disk meanwhile.
async fn load(setup: &Setup, name: &str, items: Items, report: &mut Report) -> Result<()> {
    let server = setup.cosmolabe.serve_with(name, "relaxed").await?;
    let client = server.client()?;
    create_database(&client).await?;
    create_container(&client, CONTAINER).await?;
    let rate = fill(&server, CONTAINER, items).await?;
    let stopped = server.stop()?.as_secs_f64();
    let count = items.count;
    report.note(format!("scale: {count} items loaded at {rate:.0}/s, stopped in {stopped:.1} s"));
    Ok(())
}

type Loaded<'a> = (&'a Server, Items);

async fn reads(
    setup: &Setup,
    many: Loaded<'_>,
    few: Loaded<'_>,
    report: &mut Report,
) -> Result<()> {
    let (large, small) = (Reads::of(many), Reads::of(few));
    for side in [&large, &small] {
        side.slice(setup.warmup() * 3).await?;
    }
    let (large, small) = alternate(turns(setup), &large, &small).await?;
    let ratio = large.ratio_to(&small);
    let (title, other) =
        (format!("point reads of {} items", many.1.count), few.1.count.to_string());
    report.row(Row::rates(&title, &large, &small, &other, ratio));
    report.row(Row::cpu("  server CPU per read", &large, &small, &other));
    report.bar(Bar::at_least("point reads, ten times the items", ratio, READS_BAR));
    report.value(
        "scale_reads",
        json!({"ratio": ratio, "large": large.to_json(), "small": small.to_json()}),
    );
    Ok(())
}

async fn creates(
    setup: &Setup,
    many: Loaded<'_>,
    few: Loaded<'_>,
    report: &mut Report,
) -> Result<()> {
    let large = Creates::of(many.0, CONTAINER, many.1.count);
    let small = Creates::of(few.0, CONTAINER, few.1.count);
    for side in [&large, &small] {
        side.slice(setup.warmup()).await?;
    }
    let (most, least) = alternate(turns(setup), &large, &small).await?;
    let ratio = most.ratio_to(&least);
    let (title, other) =
        (format!("creates beside {} items", many.1.count), few.1.count.to_string());
    report.row(Row::rates(&title, &most, &least, &other, ratio));
    report.row(Row::cpu("  server CPU per create", &most, &least, &other));
    report.bar(Bar::at_least("creates, ten times the items", ratio, CREATES_BAR));
    report.value(
        "scale_creates",
        json!({
            "ratio": ratio, "large": most.to_json(), "small": least.to_json(),
            "items_at_end": large.next(), "items_small_at_end": small.next(),
        }),
    );
    Ok(())
}

/// Uniform point reads, signed as they go: requests for all items would fill the memory that the
/// servers are to have.
struct Reads {
    address: SocketAddr,
    process: u32,
    items: Items,
}

impl Reads {
    fn of((server, items): Loaded<'_>) -> Reads {
        Reads { address: server.address, process: server.id(), items }
    }
}

impl Side for Reads {
    async fn slice(&self, time: Duration) -> Result<Slice> {
        let (key, date, items) = (Key::development(), date_now(), self.items);
        let container = container(CONTAINER);
        let fill = Arc::new(move |random: &Random, out: &mut Vec<u8>| {
            let number = random.next() % items.count;
            let request = container.read(&items.key(number), &items.id(number));
            *out = request.to_bytes(&key, "localhost", &date);
        });
        let load =
            Load { address: self.address, connections: CONNECTIONS, time, status: 200, fill };
        measured(&load, || cpu_seconds(self.process)).await.context("reads of many")
    }
}
