//! Load of any requests, made one by one outside the time that is measured.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use base::Random;
use client::{Key, Request, date_now};

use crate::load::{Connection, Fill, Load, Outcome};
use crate::machine::cpu_seconds;
use crate::process::Server;
use crate::reads::measured;
use crate::slices::{Side, Slice};

/// Makes the next request.
type Make = Arc<dyn Fn(&Random) -> Request + Send + Sync>;

/// Requests of one kind to one server.
#[derive(Clone)]
pub struct Calls {
    name: &'static str,
    address: SocketAddr,
    process: u32,
    connections: usize,
    make: Make,
}

impl Calls {
    /// Requests that are all answered with 200.
    pub fn of(
        name: &'static str,
        server: &Server,
        connections: usize,
        make: impl Fn(&Random) -> Request + Send + Sync + 'static,
    ) -> Calls {
        let (address, process) = (server.address, server.id());
        Calls { name, address, process, connections, make: Arc::new(make) }
    }

    /// Sends so many over each connection.
    pub async fn repeat(&self, each: u64) -> Result<Outcome> {
        let mut tasks = tokio::task::JoinSet::new();
        let started = Instant::now();
        for _ in 0..self.connections {
            tasks.spawn(repeat(self.address, self.fill(), each));
        }
        let mut latencies: Vec<u32> = Vec::new();
        while let Some(ended) = tasks.join_next().await {
            latencies.extend(ended?.context(self.name)?);
        }
        let seconds = started.elapsed().as_secs_f64();
        latencies.sort_unstable();
        Ok(Outcome { requests: latencies.len() as u64, seconds, latencies })
    }

    /// Signed by the time it was made: a signature is good for minutes.
    fn fill(&self) -> Fill {
        let (key, date, make) = (Key::development(), date_now(), self.make.clone());
        Arc::new(move |random: &Random, out: &mut Vec<u8>| {
            out.extend_from_slice(&make(random).to_bytes(&key, "localhost", &date));
        })
    }
}

impl Side for Calls {
    async fn slice(&self, time: Duration) -> Result<Slice> {
        let (address, connections, fill) = (self.address, self.connections, self.fill());
        let load = Load { address, connections, time, status: 200, fill };
        measured(&load, || cpu_seconds(self.process)).await.context(self.name)
    }
}

async fn repeat(address: SocketAddr, fill: Fill, count: u64) -> Result<Vec<u32>> {
    let mut connection = Connection::open(address).await?;
    let (random, mut request) = (Random::from_entropy(), Vec::new());
    let mut latencies = Vec::with_capacity(count as usize);
    for _ in 0..count {
        request.clear();
        fill(&random, &mut request);
        let sent = Instant::now();
        let answer = connection.exchange(&request).await?;
        latencies.push(sent.elapsed().as_micros() as u32);
        if answer.status != 200 {
            let body = &connection.bytes()[answer.head..answer.head + answer.body];
            bail!("{} {}", answer.status, String::from_utf8_lossy(body));
        }
    }
    Ok(latencies)
}
