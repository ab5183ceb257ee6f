//! A query that gives the partition key, in a container and in one with ten times the items: the
//! logical partition is as large in both, so the answer should take about as long.

use anyhow::Result;
use serde_json::{Map, Value, json};

use crate::ask::Asking;
use crate::blog::Activity;
use crate::items::Data;
use crate::process::Server;
use crate::queries::{Name, Query, Set, Sizes, WITH_TARGET};
use crate::report::{Bar, Report, Row};
use crate::slices::{Side, alternate};
use crate::stock::Stock;

/// One at a time: latency, not rate.
const CONNECTIONS: usize = 1;
const BAR: f64 = 1.5;
/// Enough for all of it: what a disk takes longer for is not asked here.
const CACHE: &str = "4GiB";

/// Runs the section.
pub async fn run(stock: &Stock<'_>, report: &mut Report) -> Result<()> {
    let few = Activity { users: stock.sizes.activity.users / 10, ..stock.sizes.activity };
    let small = Stock { sizes: Sizes { activity: few, ..stock.sizes }, ..*stock };
    let many = stock.serve(Set::Activity.name(), Set::Activity, CACHE, report).await?;
    let few = small.serve("few", Set::Activity, CACHE, report).await?;
    let mut values = Map::new();
    for query in [&WITH_TARGET, Name::Recent.query()] {
        match compare(query, (&many, stock), (&few, &small), report).await {
            Ok(value) => drop(values.insert(query.name.to_owned(), value)),
            Err(error) => report.fail(&format!("growth, {}", query.name), &error),
        }
    }
    report.value("growth", Value::Object(values));
    many.stop()?;
    few.stop()?;
    Ok(())
}

type Loaded<'a> = (&'a Server, &'a Stock<'a>);

async fn compare(
    query: &'static Query,
    many: Loaded<'_>,
    few: Loaded<'_>,
    report: &mut Report,
) -> Result<Value> {
    let setup = many.1.setup;
    let side = |(server, stock): Loaded<'_>| Asking::of(server, query, stock.sizes, CONNECTIONS);
    let count = |(_, stock): Loaded<'_>| stock.sizes.activity.count();
    let (large, small) = (side(many), side(few));
    for side in [&large, &small] {
        side.slice(setup.long_warmup()).await?;
    }
    let (large, small) = alternate(setup.turns(), &large, &small).await?;
    let ratio = large.p50_us / small.p50_us.max(1.0);
    let title = format!("{}; {} items", query.title, count(many));
    let other = format!("{} items; ratio of latencies", count(few));
    report.row(Row::rates(&title, &large, &small, &other, ratio));
    report.bar(Bar::below(
        &format!("{}, latency with ten times the items", query.title),
        ratio,
        BAR,
    ));
    Ok(json!({
        "ratio_of_p50": ratio, "text": query.text,
        "items": count(many), "items_small": count(few),
        "large": large.to_json(), "small": small.to_json(),
    }))
}
