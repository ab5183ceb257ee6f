//! Point reads against the reference: what everything between the socket and the item costs.

use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use base::Random;
use client::{Key, date_now};

use crate::items::{Data, Items, container};
use crate::load::{Fill, Load};
use crate::machine::cpu_seconds;
use crate::process::{Server, create_container, create_database, fill, own_cpu_seconds};
use crate::report::{Bar, Report, Row};
use crate::setup::Setup;
use crate::slices::{Side, Slice, alternate};

const CONNECTIONS: usize = 16;
const CONTAINER: &str = "items";
/// Of the reference's rate.
const BAR: f64 = 0.65;

/// Runs the section.
pub async fn run(setup: &Setup, report: &mut Report) -> Result<()> {
    let items = Items { count: setup.scaled(100_000) };
    let server = setup.cosmolabe.serve("reads").await?;
    let client = server.client()?;
    create_database(&client).await?;
    create_container(&client, CONTAINER).await?;
    let loaded = fill(&server, CONTAINER, items).await?;
    report.note(format!("reads: {} items loaded at {loaded:.0}/s", items.count));
    let reference = start_reference(setup, &server, items).await?;
    let ours = Reads::of(&server, items, "ours");
    let theirs = Reads::of(&reference, items, "reference");
    for side in [&ours, &theirs] {
        side.slice(setup.warmup()).await?;
    }
    let (ours, theirs) = alternate(setup.turns(), &ours, &theirs).await?;
    let ratio = ours.ratio_to(&theirs);
    report.row(Row::rates("point reads, 16 connections", &ours, &theirs, "bare hyper", ratio));
    report.row(Row::cpu("  server CPU per read", &ours, &theirs, "bare hyper"));
    report.bar(Bar::at_least("point reads / bare hyper", ratio, BAR));
    report.value(
        "reads",
        serde_json::json!({
            "items": items.count, "connections": CONNECTIONS, "ratio": ratio,
            "cosmolabe": ours.to_json(), "reference": theirs.to_json(),
        }),
    );
    server.stop()?;
    Ok(())
}

async fn start_reference(setup: &Setup, server: &Server, items: Items) -> Result<Server> {
    let program = std::env::current_exe().context("the path of this program")?;
    let mut command = Command::new(program);
    command
        .args(["reference", "--container", CONTAINER, "--copy-from", &server.address.to_string()])
        .args(["--items", &items.count.to_string()]);
    Server::start(&mut command, &setup.cosmolabe.directory.join("reference.log")).await
}

/// Uniform point reads of one server.
pub struct Reads {
    address: SocketAddr,
    process: u32,
    items: Items,
    name: &'static str,
}

impl Reads {
    fn of(server: &Server, items: Items, name: &'static str) -> Reads {
        Reads { address: server.address, process: server.id(), items, name }
    }
}

impl Side for Reads {
    async fn slice(&self, time: Duration) -> Result<Slice> {
        let load = Load {
            address: self.address,
            connections: CONNECTIONS,
            time,
            status: 200,
            fill: signed_ahead(CONTAINER, self.items),
        };
        measured(&load, || cpu_seconds(self.process)).await.context(self.name)
    }
}

/// Runs a load and reads the clocks of both processes.
pub async fn measured(load: &Load, server_cpu: impl Fn() -> f64) -> Result<Slice> {
    let before = (server_cpu(), own_cpu_seconds());
    let outcome = load.run().await?;
    let after = (server_cpu(), own_cpu_seconds());
    Ok(Slice { outcome, server_cpu: after.0 - before.0, load_cpu: after.1 - before.1 })
}

/// Requests for every item, signed before the clock runs. A signature is good for minutes, so a
/// slice signs its own.
pub fn signed_ahead(name: &str, items: Items) -> Fill {
    let (key, date) = (Key::development(), date_now());
    let mut bytes = Vec::new();
    let mut ends = Vec::with_capacity(items.count as usize + 1);
    ends.push(0);
    for number in 0..items.count {
        let request = container(name).read(&items.key(number), &items.id(number));
        bytes.extend_from_slice(&request.to_bytes(&key, "localhost", &date));
        ends.push(bytes.len());
    }
    Arc::new(move |random: &Random, out: &mut Vec<u8>| {
        let at = (random.next() % items.count) as usize;
        out.extend_from_slice(&bytes[ends[at]..ends[at + 1]]);
    })
}
