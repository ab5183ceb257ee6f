//! Durable creates against PostgreSQL: the same items, every one indexed and on disk before it is
//! acknowledged, on both sides.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use anyhow::{Context, Result};
use base::Random;
use serde_json::json;

use crate::inserts::{self, Inserts, Table};
use crate::items::{CreateTemplate, Data, Items};
use crate::load::{Fill, Load};
use crate::machine::cpu_seconds;
use crate::postgres::Postgres;
use crate::process::{Server, create_container, create_database};
use crate::reads::measured;
use crate::report::{Bar, Report, Row};
use crate::setup::Setup;
use crate::slices::{Side, Slice, alternate};

/// Writers of ours.
pub const WRITERS: usize = 64;
const CONTAINER: &str = "creates";
/// Items are spread over as many logical partitions as this many would be.
pub const SPREAD: Items = Items { count: 200_000 };
/// Of PostgreSQL's rate.
const BAR: f64 = 2.0;

/// Runs the section.
pub async fn run(setup: &Setup, report: &mut Report) -> Result<()> {
    let postgres = match Postgres::start(&setup.cosmolabe.directory, &[]).await {
        Ok(postgres) => postgres,
        Err(error) => {
            report.skip("creates", format!("{error:#}"));
            return Ok(());
        }
    };
    let server = setup.cosmolabe.serve("creates").await?;
    let client = server.client()?;
    create_database(&client).await?;
    create_container(&client, CONTAINER).await?;
    let theirs = best(setup, &postgres, report).await?;
    let ours = Creates::of(&server, CONTAINER, 0);
    ours.slice(setup.warmup()).await?;
    theirs.slice(setup.warmup()).await?;
    let (mine, other) = alternate(setup.turns(), &ours, &theirs).await?;
    let ratio = mine.ratio_to(&other);
    let name = format!("PostgreSQL, {} connections", theirs.connections());
    report.row(Row::rates("durable creates, 64 writers", &mine, &other, &name, ratio));
    report.row(Row::cpu("  server CPU per create", &mine, &other, &name));
    report.bar(Bar::at_least("durable creates / PostgreSQL", ratio, BAR));
    report.value(
        "creates",
        json!({
            "writers": WRITERS, "ratio": ratio,
            "cosmolabe": mine.to_json(), "postgres": other.to_json(),
            "postgres_connections": theirs.connections(),
            "postgres_version": postgres.version(), "postgres_settings": inserts::settings(&postgres),
        }),
    );
    server.stop()?;
    Ok(())
}

/// PostgreSQL with the number of connections that suits it best.
async fn best(setup: &Setup, postgres: &Postgres, report: &mut Report) -> Result<Inserts> {
    let table = Table::create(postgres).await?;
    let mut best: Option<(f64, Inserts)> = None;
    for connections in [8, 16, 32, 64] {
        let inserts = table.inserts(postgres, connections).await?;
        let slice = inserts.slice(setup.warmup()).await?;
        let rate = slice.outcome.rate();
        report.note(format!("creates: PostgreSQL with {connections} connections {rate:.0}/s"));
        if best.as_ref().is_none_or(|(highest, _)| rate > *highest) {
            best = Some((rate, inserts));
        }
    }
    best.map(|(_, inserts)| inserts).context("some number of connections is best")
}

/// Creates of new items in one container.
pub struct Creates {
    address: SocketAddr,
    process: u32,
    name: &'static str,
    next: Arc<AtomicU64>,
}

impl Creates {
    /// Creates items numbered from `first`.
    pub fn of(server: &Server, name: &'static str, first: u64) -> Creates {
        let next = Arc::new(AtomicU64::new(first));
        Creates { address: server.address, process: server.id(), name, next }
    }

    /// How many items have been sent.
    pub fn next(&self) -> u64 {
        self.next.load(Relaxed)
    }

    fn fill(&self) -> Fill {
        let (template, next) = (CreateTemplate::new(self.name), self.next.clone());
        Arc::new(move |_: &Random, out: &mut Vec<u8>| {
            let number = next.fetch_add(1, Relaxed);
            template.write(&SPREAD.key_text(number), &SPREAD.body(number), out);
        })
    }
}

impl Side for Creates {
    async fn slice(&self, time: Duration) -> Result<Slice> {
        let (address, fill) = (self.address, self.fill());
        let load = Load { address, connections: WRITERS, time, status: 201, fill };
        measured(&load, || cpu_seconds(self.process)).await.context("ours")
    }
}
