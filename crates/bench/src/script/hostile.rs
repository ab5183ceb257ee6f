//! Point reads beside scripts that never end: others do not wait for them, and their own clients
//! are told in time.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use client::{Key, date_now};
use serde_json::json;
use tokio::task::JoinSet;

use crate::items::{Items, container, key};
use crate::load::{Connection, Load, Outcome};
use crate::process::{create_container, create_database, fill};
use crate::reads::signed_ahead;
use crate::report::{Bar, Report};
use crate::script::texts::{ENDLESS, ENDLESS_BUILT_IN};
use crate::setup::Setup;
use crate::slices::median;

const CONTAINER: &str = "hostile";
const READERS: usize = 16;
const ROUNDS: u64 = 3;
/// Long enough that every script runs into its limit.
const ROUND_SECONDS_MIN: u64 = 7;
/// A script that does it again and again is not let in any more, so each run has one of its own. A
/// container has at most a hundred.
const RUNS_MAX: usize = 48;
/// Of the p99 of reads alone.
const BAR: f64 = 5.0;
const ANSWER_SECONDS_MAX: f64 = 6.0;

/// Runs the section.
pub async fn run(setup: &Setup, report: &mut Report) -> Result<()> {
    let items = Items { count: setup.scaled(100_000) };
    let server = setup.cosmolabe.serve("hostile").await?;
    let client = server.client()?;
    create_database(&client).await?;
    create_container(&client, CONTAINER).await?;
    fill(&server, CONTAINER, items).await?;
    for (kind, text) in [("endless", ENDLESS), ("built-in", ENDLESS_BUILT_IN)] {
        for run in 0..RUNS_MAX {
            let request = container(CONTAINER).create_procedure(&format!("{kind}-{run}"), text);
            client.send(&request).await.with_context(|| format!("procedure {kind}-{run}"))?;
        }
    }
    let rounds = if setup.is_quick { 1 } else { ROUNDS };
    let time = Duration::from_secs((setup.seconds / rounds).max(ROUND_SECONDS_MIN));
    let reads = |time| read(server.address, items, time);
    reads(setup.warmup()).await?;
    let (mut alone, mut beside, mut answers) = (Vec::new(), Vec::new(), Vec::new());
    let hostile = ["endless", "built-in"].map(Hostile::new);
    for _ in 0..rounds {
        alone.push(reads(time).await?);
        let (outcome, times) = attacked(server.address, &hostile, reads(time)).await?;
        beside.push(outcome);
        answers.extend(times);
    }
    tell(&alone, &beside, &answers, report);
    server.stop()?;
    Ok(())
}

async fn read(address: SocketAddr, items: Items, time: Duration) -> Result<Outcome> {
    let fill = signed_ahead(CONTAINER, items);
    let load = Load { address, connections: READERS, time, status: 200, fill };
    load.run().await.context("reads")
}

/// One client that runs scripts which never end, one after the other.
#[derive(Clone)]
struct Hostile {
    kind: &'static str,
    runs: Arc<AtomicUsize>,
}

impl Hostile {
    fn new(kind: &'static str) -> Hostile {
        Hostile { kind, runs: Arc::default() }
    }

    /// Runs scripts until it is enough; returns how many seconds each answer took.
    async fn attack(self, address: SocketAddr, enough: Arc<AtomicBool>) -> Result<Vec<f64>> {
        let mut connection = Connection::open(address).await?;
        let mut answers = Vec::new();
        while !enough.load(Relaxed) {
            let run = self.runs.fetch_add(1, Relaxed);
            ensure!(run < RUNS_MAX, "{} runs are over too soon", self.kind);
            let id = format!("{}-{run}", self.kind);
            let request = container(CONTAINER).execute(&id, &key(self.kind), "[]");
            let bytes = request.to_bytes(&Key::development(), "localhost", &date_now());
            let sent = Instant::now();
            let answer = connection.exchange(&bytes).await?;
            answers.push(sent.elapsed().as_secs_f64());
            ensure!(answer.status >= 400, "{id} came to an end with {}", answer.status);
        }
        Ok(answers)
    }
}

/// Reads while hostile clients are at work, and the times these waited for their answers.
async fn attacked(
    address: SocketAddr,
    hostile: &[Hostile],
    reads: impl Future<Output = Result<Outcome>>,
) -> Result<(Outcome, Vec<f64>)> {
    let enough = Arc::new(AtomicBool::new(false));
    let mut tasks = JoinSet::new();
    for client in hostile {
        tasks.spawn(client.clone().attack(address, enough.clone()));
    }
    let outcome = reads.await;
    enough.store(true, Relaxed);
    let mut answers = Vec::new();
    while let Some(ended) = tasks.join_next().await {
        answers.extend(ended?.context("hostile")?);
    }
    Ok((outcome?, answers))
}

fn tell(alone: &[Outcome], beside: &[Outcome], answers: &[f64], report: &mut Report) {
    let p99 = |outcomes: &[Outcome]| {
        let ms = outcomes.iter().map(|outcome| f64::from(outcome.percentile(99.0)) / 1000.0);
        median(&ms.collect::<Vec<f64>>())
    };
    let rate =
        |outcomes: &[Outcome]| median(&outcomes.iter().map(Outcome::rate).collect::<Vec<f64>>());
    let (without, with) = (p99(alone), p99(beside));
    let longest = answers.iter().copied().fold(0.0, f64::max);
    report.note(format!(
        "hostile: {READERS} readers alone {:.0}/s p99 {without:.2} ms, beside scripts that never \
         end {:.0}/s p99 {with:.2} ms; those were answered {} times, within {longest:.1} s",
        rate(alone),
        rate(beside),
        answers.len(),
    ));
    let ratio = with / without.max(1e-3);
    report.bar(Bar::below("reads beside hostile scripts / alone, p99", ratio, BAR));
    report.bar(Bar::below("longest answer to a hostile script, s", longest, ANSWER_SECONDS_MAX));
    report.value(
        "hostile",
        json!({
            "p99_ratio": ratio, "alone_p99_ms": without, "beside_p99_ms": with,
            "alone_per_second": rate(alone), "beside_per_second": rate(beside),
            "answers_seconds": answers,
        }),
    );
}
