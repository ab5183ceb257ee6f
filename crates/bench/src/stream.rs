//! Memory while everything is read: a query over all items, drained page by page.

use std::time::Instant;

use anyhow::{Result, ensure};
use client::headers;
use serde_json::json;

use crate::items::{Data, container};
use crate::machine::resident_mb;
use crate::queries::Set;
use crate::report::{Bar, Report};
use crate::stock::Stock;

const TEXT: &str = "SELECT * FROM c";
const ROWS_MAX: i64 = 1000;
/// Smaller than the data, and small enough that what goes beyond it shows.
const CACHE_MB: f64 = 64.0;
const ABOVE_MB_MAX: f64 = 64.0;

/// Runs the section.
pub async fn run(stock: &Stock<'_>, report: &mut Report) -> Result<()> {
    let set = Set::Blog;
    stock.load(set.name(), set, report).await?;
    let cache = format!("{CACHE_MB}MiB");
    let flags = ["--ru-profile", "modern", "--cache-size", &cache];
    // With data the cache is filled at start, and would be counted twice.
    let empty = stock.setup.cosmolabe.serve_as("idle", &flags).await?;
    empty.settle().await;
    let idle = resident_mb(empty.id());
    empty.stop()?;
    let server = stock.setup.cosmolabe.serve_as(set.name(), &flags).await?;
    server.settle().await;
    let (client, container) = (server.client()?, container(set.name()));
    let (mut most, mut rows, mut pages) = (resident_mb(server.id()), 0, 0);
    let mut continuation: Option<String> = None;
    let started = Instant::now();
    loop {
        let mut request = container.query(TEXT, &[], ROWS_MAX);
        if let Some(token) = continuation {
            request = request.with(headers::CONTINUATION, token);
        }
        let reply = client.send(&request).await?;
        rows += reply.rows()?.len() as u64;
        pages += 1;
        most = most.max(resident_mb(server.id()));
        continuation = reply.continuation().map(str::to_owned);
        if continuation.is_none() {
            break;
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    let count = stock.sizes.blog.count();
    ensure!(rows == count, "{rows} rows of {count} items");
    report.note(format!("stream: {rows} rows, {pages} pages, {:.0}/s", rows as f64 / seconds));
    report.note(format!("stream: resident {idle:.0} MB idle, {most:.0} MB at most"));
    let above = most - idle - CACHE_MB;
    let title = "resident while streaming, above idle and cache, MB";
    report.bar(Bar::below(title, above, ABOVE_MB_MAX));
    report.value(
        "stream",
        json!({
            "rows": rows, "pages": pages, "seconds": seconds, "cache_mb": CACHE_MB,
            "idle_mb": idle, "most_mb": most, "above_idle_and_cache_mb": above,
        }),
    );
    server.stop()?;
    Ok(())
}
