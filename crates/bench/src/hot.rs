//! One hot key: writers of one logical partition share the disk as writers of many do.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use anyhow::{Context, Result};
use base::Random;
use serde_json::json;

use crate::creates::WRITERS;
use crate::items::{CreateTemplate, body};
use crate::load::Load;
use crate::machine::cpu_seconds;
use crate::process::{Server, create_container, create_database};
use crate::reads::measured;
use crate::report::{Bar, Report, Row};
use crate::setup::Setup;
use crate::slices::{Side, Slice, alternate};

/// The slower of the two has at least this part of the other's rate.
const BAR: f64 = 0.5;

/// Runs the section.
pub async fn run(setup: &Setup, report: &mut Report) -> Result<()> {
    let server = setup.cosmolabe.serve("hot").await?;
    let client = server.client()?;
    create_database(&client).await?;
    for name in ["hot", "spread"] {
        create_container(&client, name).await?;
    }
    let hot = Writers::of(&server, "hot", 1);
    let spread = Writers::of(&server, "spread", WRITERS as u64);
    for side in [&hot, &spread] {
        side.slice(setup.warmup()).await?;
    }
    let (hot, spread) = alternate(setup.turns(), &hot, &spread).await?;
    let ratio = hot.ratio_to(&spread);
    report.row(Row::rates("64 writers of one key", &hot, &spread, "64 keys", ratio));
    report.bar(Bar::at_least("hot / spread, the slower of the two", ratio.min(1.0 / ratio), BAR));
    report.value(
        "hot",
        json!({"ratio": ratio, "one_key": hot.to_json(), "many_keys": spread.to_json()}),
    );
    server.stop()?;
    Ok(())
}

/// Writers whose creates go around a number of logical partitions.
struct Writers {
    address: SocketAddr,
    process: u32,
    name: &'static str,
    keys: u64,
    next: Arc<AtomicU64>,
}

impl Writers {
    fn of(server: &Server, name: &'static str, keys: u64) -> Writers {
        let next = Arc::default();
        Writers { address: server.address, process: server.id(), name, keys, next }
    }
}

impl Side for Writers {
    async fn slice(&self, time: Duration) -> Result<Slice> {
        let (template, keys, next) = (CreateTemplate::new(self.name), self.keys, self.next.clone());
        let fill = Arc::new(move |_: &Random, out: &mut Vec<u8>| {
            let number = next.fetch_add(1, Relaxed);
            let (id, key) = (format!("item-{number:010}"), format!("key-{:08}", number % keys));
            template.write(&key, &body(&id, &key, number), out);
        });
        let load = Load { address: self.address, connections: WRITERS, time, status: 201, fill };
        measured(&load, || cpu_seconds(self.process)).await.context(self.name)
    }
}
