//! What a function costs in a filter: server CPU for each item, beyond that of a filter without it.
//!
//! The plain filter is an expression too, `(c.score + 0) > …`, of which an index knows nothing: all
//! three queries read every item, and count the same ones.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use client::{Client, Container};
use serde_json::json;

use crate::items::{Items, container};
use crate::machine::cpu_seconds;
use crate::process::{create_container, create_database, fill};
use crate::report::{Bar, Report};
use crate::script::posts::number;
use crate::script::texts::{IS_LARGE, IS_LARGE_ITEM, LARGE};
use crate::setup::Setup;
use crate::slices::median;

const CONTAINER: &str = "functions";
/// Microseconds for each item, beyond the plain filter.
const VALUE_BAR: f64 = 1.0;
const ITEM_BAR: f64 = 15.0;

/// The three queries, on one server.
struct Counts {
    client: Client,
    container: Container,
    process: u32,
    items: u64,
    texts: [String; 3],
}

/// Runs the section.
pub async fn run(setup: &Setup, report: &mut Report) -> Result<()> {
    let items = Items { count: setup.scaled(100_000) };
    let server = setup.cosmolabe.serve("functions").await?;
    let (client, container) = (server.client()?, container(CONTAINER));
    create_database(&client).await?;
    create_container(&client, CONTAINER).await?;
    fill(&server, CONTAINER, items).await?;
    for script in [IS_LARGE, IS_LARGE_ITEM] {
        script.create_function(&client, &container).await?;
    }
    let filters = [
        format!("(c.score + 0) > {LARGE}"),
        format!("udf.{}(c.score)", IS_LARGE.id),
        format!("udf.{}(c)", IS_LARGE_ITEM.id),
    ];
    let texts = filters.map(|filter| format!("SELECT VALUE COUNT(1) FROM c WHERE {filter}"));
    let (process, items) = (server.id(), items.count);
    let counts = Counts { client, container, process, items, texts };
    counts.check().await?;
    let turns = setup.turns();
    let mut rounds = Vec::new();
    for round in 0..turns.count {
        rounds.push(counts.round(round, turns.time).await?);
    }
    tell(&rounds, items, report);
    server.stop()?;
    Ok(())
}

impl Counts {
    /// All count the same, and not nothing; also warms up.
    async fn check(&self) -> Result<()> {
        let expect = number(&self.client, &self.container, &self.texts[0]).await?;
        let is_some = expect > 0.0 && expect < self.items as f64;
        ensure!(is_some, "{expect} of {} items are large", self.items);
        for text in &self.texts {
            let found = number(&self.client, &self.container, text).await.context(text.clone())?;
            ensure!(found == expect, "{text}: {found}, not {expect}");
        }
        Ok(())
    }

    /// Microseconds of server CPU for each item by each query; another one is first each time.
    async fn round(&self, round: usize, time: Duration) -> Result<[f64; 3]> {
        let mut costs = [0.0; 3];
        for turn in 0..self.texts.len() {
            let at = (round + turn) % self.texts.len();
            costs[at] = self.cost(&self.texts[at], time).await?;
        }
        Ok(costs)
    }

    async fn cost(&self, text: &str, time: Duration) -> Result<f64> {
        let (started, before, mut executions) = (Instant::now(), cpu_seconds(self.process), 0);
        while started.elapsed() < time {
            number(&self.client, &self.container, text).await?;
            executions += 1;
        }
        let spent = cpu_seconds(self.process) - before;
        Ok(spent * 1e6 / (executions * self.items) as f64)
    }
}

/// Differences are taken within a round: what disturbs one query then disturbs the others.
fn tell(rounds: &[[f64; 3]], items: u64, report: &mut Report) {
    let middle =
        |value: &dyn Fn(&[f64; 3]) -> f64| median(&rounds.iter().map(value).collect::<Vec<f64>>());
    let [plain, value, item] = [0, 1, 2].map(|at| middle(&|round| round[at]));
    let of_value = middle(&|round| round[1] - round[0]);
    let of_item = middle(&|round| round[2] - round[0]);
    report.note(format!(
        "functions: server CPU per item, {items} items: {plain:.2} µs without, {value:.2} µs with \
         a number, {item:.2} µs with the item as argument"
    ));
    report.bar(Bar::below("function of a number, µs more per item", of_value, VALUE_BAR));
    report.bar(Bar::below("function of an item, µs more per item", of_item, ITEM_BAR));
    report.value(
        "functions",
        json!({
            "items": items, "rounds": rounds, "plain_us": plain, "number_us": value,
            "item_us": item, "number_more_us": of_value, "item_more_us": of_item,
        }),
    );
}
