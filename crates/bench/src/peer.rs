//! Queries against the `@vercel/cosmosdb-server` package of Node.js, which keeps its items in memory
//! and answers over the same protocol: the same requests go to both, over kept-alive connections.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use base::Random;
use clap::ValueEnum;
use serde_json::json;

use crate::ask::{Asking, rows};
use crate::blog::{Activity, Blog};
use crate::items::{container, key};
use crate::process::{Server, create_database};
use crate::queries::{Draw, Name, Query, Set, Sizes};
use crate::report::{Bar, Report, Row};
use crate::setup::target_directory;
use crate::slices::{Side, alternate};
use crate::stock::Stock;
use crate::versus::turns;

const PACKAGE: &str = "@vercel/cosmosdb-server@1.0.1";
const SCRIPT: &str = "\
const { createHttpServer } = require('@vercel/cosmosdb-server');
const server = createHttpServer({ keepAlive: true });
server.keepAliveTimeout = 600000;
server.listen(0, '127.0.0.1', () =>
  console.log(`ready on http://127.0.0.1:${server.address().port}`));
";
/// What it holds without ado: 10 000 items in each of two containers.
const SIZES: Sizes =
    Sizes { blog: Blog { posts: 200 }, activity: Activity { users: 5, each: 2000 } };
const SETS: [Set; 2] = [Set::Blog, Set::Activity];
const CONNECTIONS: usize = 4;
const LOADERS: u64 = 4;
const BAR: f64 = 20.0;

/// Runs the section.
pub async fn run(stock: &Stock<'_>, report: &mut Report) -> Result<()> {
    let stock = &Stock { sizes: SIZES, partitions: 1, ..*stock };
    let theirs = match start(stock).await {
        Ok(theirs) => theirs,
        Err(error) => {
            report.skip("peer", format!("{error:#}"));
            return Ok(());
        }
    };
    let name = format!("peer-{}", std::process::id());
    let ours = stock.setup.cosmolabe.serve_queries(&name, "256MiB").await?;
    load(stock, &ours, &theirs, report).await?;
    for name in Name::value_variants() {
        let query = name.query();
        if !SETS.contains(&query.set) {
            continue;
        }
        if let Err(error) = compare(query, &ours, &theirs, stock, report).await {
            report.fail(&format!("peer, {}", query.name), &error);
        }
    }
    ours.stop()?;
    let _ = std::fs::remove_dir_all(stock.setup.cosmolabe.directory.join(name));
    Ok(())
}

async fn start(stock: &Stock<'_>) -> Result<Server> {
    let directory = install(&target_directory()?)?;
    let script = directory.join("serve.cjs");
    std::fs::write(&script, SCRIPT)?;
    let mut command = Command::new("node");
    command.arg(script).current_dir(&directory);
    Server::start(&mut command, &stock.setup.cosmolabe.directory.join("peer.log")).await
}

/// Installs the package below the target directory, once.
fn install(target: &Path) -> Result<PathBuf> {
    let directory = target.join("bench").join("peer");
    if directory.join("node_modules/@vercel/cosmosdb-server/package.json").exists() {
        return Ok(directory);
    }
    std::fs::create_dir_all(&directory)?;
    let output = Command::new("npm")
        .args(["install", "--no-audit", "--no-fund", "--no-save", PACKAGE, "--prefix"])
        .arg(&directory)
        .current_dir(&directory)
        .output()
        .context("npm cannot be started")?;
    match output.status.success() {
        true => Ok(directory),
        false => bail!("npm install: {}", String::from_utf8_lossy(&output.stderr)),
    }
}

async fn load(
    stock: &Stock<'_>,
    ours: &Server,
    theirs: &Server,
    report: &mut Report,
) -> Result<()> {
    for server in [ours, theirs] {
        create_database(&server.client()?).await?;
    }
    for set in SETS {
        let rate = stock.fill(ours, set).await?;
        let started = Instant::now();
        create_each(stock, theirs, set).await.context("loading the peer")?;
        let count = stock.sizes.data(set).count() as f64;
        let other = count / started.elapsed().as_secs_f64();
        let name = set.name();
        report.note(format!(
            "peer: {name}, {count} items, ours at {rate:.0}/s, theirs at {other:.0}/s"
        ));
    }
    Ok(())
}

/// Fills a container of a server that knows creates only.
async fn create_each(stock: &Stock<'_>, server: &Server, set: Set) -> Result<()> {
    let container = container(set.name());
    server.client()?.send(&container.create_with(&set.definition(), None)).await?;
    let mut tasks = tokio::task::JoinSet::new();
    for first in 0..LOADERS {
        let (client, container) = (server.client()?, container.clone());
        let data = stock.sizes.data(set);
        tasks.spawn(async move {
            for number in (first..data.count()).step_by(LOADERS as usize) {
                let key = key(&data.key_text(number));
                client.send(&container.create(&key, data.body(number))).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(())
}

async fn compare(
    query: &'static Query,
    ours: &Server,
    theirs: &Server,
    stock: &Stock<'_>,
    report: &mut Report,
) -> Result<()> {
    let draw = (query.draw)(&stock.sizes, &Random::from_seed(1));
    let own = rows(&ours.client()?, query, &draw).await?;
    let slowest = match check(query, &draw, &own, theirs).await {
        Ok(slowest) => slowest,
        Err(error) => {
            report.skip(&format!("peer, {}", query.name), format!("{error:#}"));
            return Ok(());
        }
    };
    let ours = Asking::of(ours, query, stock.sizes, CONNECTIONS);
    let theirs = Asking::of(theirs, query, stock.sizes, CONNECTIONS);
    ours.slice(stock.setup.warmup()).await?;
    theirs.slice(stock.setup.warmup()).await?;
    let (ours, theirs) = alternate(turns(stock.setup, slowest), &ours, &theirs).await?;
    let ratio = ours.ratio_to(&theirs);
    let title = format!("{}, {} items", query.name, stock.sizes.data(query.set).count());
    report.row(Row::rates(&title, &ours, &theirs, "cosmosdb-server", ratio));
    report.bar(Bar::at_least(&format!("{} / cosmosdb-server", query.name), ratio, BAR));
    report.value(
        &format!("peer_{}", query.name),
        json!({
            "ratio": ratio, "connections": CONNECTIONS,
            "cosmolabe": ours.to_json(), "cosmosdb_server": theirs.to_json(),
        }),
    );
    Ok(())
}

/// Compares their rows with ours. Returns how long they took.
async fn check(
    query: &'static Query,
    draw: &Draw,
    own: &[String],
    theirs: &Server,
) -> Result<Duration> {
    let started = Instant::now();
    let other = rows(&theirs.client()?, query, draw).await?;
    match own == other {
        true => Ok(started.elapsed()),
        false => bail!("the rows differ: {} of ours, {} of theirs", own.len(), other.len()),
    }
}
