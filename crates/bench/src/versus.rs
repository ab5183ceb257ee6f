//! Queries against PostgreSQL: the same items, the same rows, indexes on both sides.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use base::Random;
use serde_json::{Map, Value, json};

use crate::postgres::Postgres;
use crate::process::Server;
use crate::queries::{Name, Query, Set};
use crate::report::{Bar, Report, Row};
use crate::setup::Setup;
use crate::slices::{Side, Turns, alternate};
use crate::stock::Stock;
use crate::{ask, tables};

/// How many connections ask at once: as many as keep all cores busy, and one.
const CONNECTIONS: [usize; 2] = [4, 1];
/// As much as PostgreSQL has for shared buffers.
const CACHE: &str = "4GiB";
/// Executions whose rows are compared before the clock runs.
const CHECKS: usize = 3;
/// A query that takes longer than a slice gets fewer of them.
const SLOW_SLICES: usize = 3;

/// Runs these queries.
pub async fn run(names: &[Name], stock: &Stock<'_>, report: &mut Report) -> Result<()> {
    let directory = &stock.setup.cosmolabe.directory;
    let postgres = match Postgres::start(directory, &tables::SETTINGS).await {
        Ok(postgres) => postgres,
        Err(error) => {
            report.skip("queries", format!("{error:#}"));
            return Ok(());
        }
    };
    report
        .value("postgres", json!({"version": postgres.version(), "settings": postgres.settings()}));
    for set in [Set::Blog, Set::Activity, Set::Sorted] {
        let mine = names.iter().map(|name| name.query()).filter(|query| query.set == set);
        let mine: Vec<&'static Query> = mine.collect();
        if !mine.is_empty() {
            run_set(set, &mine, &postgres, stock, report).await?;
        }
    }
    postgres.stop()
}

async fn run_set(
    set: Set,
    queries: &[&'static Query],
    postgres: &Postgres,
    stock: &Stock<'_>,
    report: &mut Report,
) -> Result<()> {
    let definition = set.definition();
    let policy = definition.get("indexingPolicy").cloned();
    let policy = policy.unwrap_or_else(|| Value::from("default"));
    report.note(format!("{}: our indexes {policy}", set.name()));
    report.note(format!("{}: PostgreSQL's (pk, id), {}", set.name(), set.indexes().join(", ")));
    report.value(
        &format!("{}_indexes", set.name()),
        json!({"cosmolabe": definition, "postgres": set.indexes()}),
    );
    tables::load(postgres, set, &stock.sizes, report).await?;
    tables::warm(postgres, set).await?;
    let server = stock.serve(set.name(), set, CACHE, report).await?;
    for query in queries {
        if let Err(error) = compare(query, &server, postgres, stock, report).await {
            report.fail(query.name, &error);
            measure_alone(query, postgres, stock, report).await?;
        }
    }
    server.stop()?;
    Ok(())
}

async fn compare(
    query: &'static Query,
    server: &Server,
    postgres: &Postgres,
    stock: &Stock<'_>,
    report: &mut Report,
) -> Result<()> {
    let (rows, slowest) = check(query, server, postgres, stock).await?;
    let mut values = Map::new();
    for connections in CONNECTIONS {
        let ours = ask::Asking::of(server, query, stock.sizes, connections);
        let theirs = tables::Asking::of(postgres, query, stock.sizes, connections).await?;
        ours.slice(stock.setup.long_warmup()).await?;
        theirs.slice(stock.setup.long_warmup()).await?;
        let (ours, theirs) = alternate(turns(stock.setup, slowest), &ours, &theirs).await?;
        let ratio = ours.ratio_to(&theirs);
        let name = format!("PostgreSQL, {connections} conn.");
        report.row(Row::rates(query.title, &ours, &theirs, &name, ratio));
        report.row(Row::cpu("  server CPU per query", &ours, &theirs, &name));
        let title = format!("{} ({}) / {name}", query.title, query.name);
        report.bar(Bar::at_least(&title, ratio, query.bar));
        values.insert(
            format!("connections_{connections}"),
            json!({"ratio": ratio, "cosmolabe": ours.to_json(), "postgres": theirs.to_json()}),
        );
    }
    values.insert("rows".into(), json!(rows));
    values.insert("text".into(), json!(query.text));
    values.insert("statement".into(), json!(query.statement));
    report.value(query.name, Value::Object(values));
    Ok(())
}

/// What there is to reach for a query that we cannot answer.
async fn measure_alone(
    query: &'static Query,
    postgres: &Postgres,
    stock: &Stock<'_>,
    report: &mut Report,
) -> Result<()> {
    for connections in CONNECTIONS {
        let theirs = tables::Asking::of(postgres, query, stock.sizes, connections).await?;
        let outcome = theirs.slice(stock.setup.warmup()).await?.outcome;
        let (rate, p50) = (outcome.rate(), f64::from(outcome.percentile(50.0)) / 1000.0);
        let name = query.name;
        report
            .note(format!("{name}: PostgreSQL, {connections} conn., {rate:.0}/s p50 {p50:.2} ms"));
    }
    Ok(())
}

/// Compares some answers. Returns how many rows they had, and the time that ours took at most.
async fn check(
    query: &'static Query,
    server: &Server,
    postgres: &Postgres,
    stock: &Stock<'_>,
) -> Result<(Vec<usize>, Duration)> {
    let client = server.client()?;
    let theirs = tables::Asking::of(postgres, query, stock.sizes, 1).await?;
    let random = Random::from_seed(1);
    let (mut counts, mut slowest) = (Vec::new(), Duration::ZERO);
    for _ in 0..CHECKS {
        let draw = (query.draw)(&stock.sizes, &random);
        let started = Instant::now();
        let ours = ask::rows(&client, query, &draw).await?;
        slowest = slowest.max(started.elapsed());
        let theirs = theirs.rows(&draw).await?;
        if ours != theirs {
            let counts = (ours.len(), theirs.len());
            bail!("the rows differ: {} of ours, {} of PostgreSQL's; {draw:?}", counts.0, counts.1);
        }
        counts.push(ours.len());
    }
    Ok((counts, slowest))
}

/// How sides take turns with a query that takes this long.
pub fn turns(setup: &Setup, slowest: Duration) -> Turns {
    let turns = setup.turns();
    match slowest > turns.time {
        true => Turns { count: turns.count.min(SLOW_SLICES), ..turns },
        false => turns,
    }
}
