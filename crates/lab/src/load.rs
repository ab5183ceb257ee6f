//! Filling the containers of a model with its items.
//!
//! Tasks take the next stretch of instances, make their items and send them as one bulk request.
//! Which task makes an item does not change it (D1).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use client::{Operation, OperationResult};
use tokio::task::JoinSet;

use crate::Error;
use crate::data::{Binding, Data, Environment};
use crate::target::{PATIENCE, Tally, Target, is_for_now, key_of_item, pause};

/// Items of one request.
const STRETCH: u64 = 100;
/// Bytes of one request, at most; larger stretches are sent in pieces.
const REQUEST_BYTES_MAX: usize = 1 << 20;
/// Requests under way at once.
const TASKS: usize = 8;

/// How many items a model has.
pub fn items(data: &Data, model: usize) -> u64 {
    let mappings = &data.workload.models[model].items;
    mappings.iter().map(|mapping| data.total(mapping.entity)).sum()
}

/// Loads all items of a model; `progress` is called with how many are done.
pub async fn load(
    data: &Arc<Data>,
    model: usize,
    target: &Target,
    progress: Arc<dyn Fn(u64) + Send + Sync>,
) -> Result<Tally, Error> {
    let stretches = Arc::new(stretches(data, model));
    let (next, done) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let mut tasks = JoinSet::new();
    for _ in 0..TASKS {
        let (data, target, stretches) = (data.clone(), target.clone(), stretches.clone());
        let (next, done, progress) = (next.clone(), done.clone(), progress.clone());
        tasks.spawn(async move {
            let mut tally = Tally::default();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed) as usize;
                let Some(stretch) = stretches.get(at) else { return Ok(tally) };
                send(&data, model, &target, stretch, &mut tally).await?;
                let count = stretch.end - stretch.begin;
                progress(done.fetch_add(count, Ordering::Relaxed) + count);
            }
        });
    }
    let mut total = Tally::default();
    while let Some(joined) = tasks.join_next().await {
        let tally: Result<Tally, Error> = joined.unwrap_or_else(|error| {
            Err(Error::Step { what: "loading".to_owned(), message: error.to_string() })
        });
        total.add(&tally?);
    }
    Ok(total)
}

/// Neighboring instances of one mapping.
struct Stretch {
    mapping: usize,
    begin: u64,
    end: u64,
}

fn stretches(data: &Data, model: usize) -> Vec<Stretch> {
    let mut all = Vec::new();
    for (mapping, of) in data.workload.models[model].items.iter().enumerate() {
        let total = data.total(of.entity);
        let begins = (0..total).step_by(STRETCH as usize);
        all.extend(begins.map(|begin| Stretch { mapping, begin, end: total.min(begin + STRETCH) }));
    }
    all
}

async fn send(
    data: &Data,
    model: usize,
    target: &Target,
    stretch: &Stretch,
    tally: &mut Tally,
) -> Result<(), Error> {
    let of = &data.workload.models[model];
    let mapping = &of.items[stretch.mapping];
    let container = &of.containers[mapping.container];
    let wrong =
        |message: String| Error::Step { what: format!("items of {}", container.name), message };
    let mut bodies: Vec<(String, String)> = Vec::new();
    let mut bytes = 0;
    for ordinal in stretch.begin..stretch.end {
        let mut names = Environment::new(data);
        let instance = data.instance(mapping.entity, ordinal);
        names.bind(&data.workload.entities[mapping.entity].name, Binding::Instance(instance));
        let item = mapping.item.fill(&names).map_err(wrong)?;
        let key = key_of_item(container, &item).map_err(wrong)?.to_array();
        let body = item.to_string();
        if bytes + body.len() > REQUEST_BYTES_MAX && !bodies.is_empty() {
            send_bulk(target, &container.name, &bodies, tally).await?;
            bodies.clear();
            bytes = 0;
        }
        bytes += body.len();
        bodies.push((key, body));
    }
    send_bulk(target, &container.name, &bodies, tally).await
}

/// Sends items, and those again that are refused for now (T2).
async fn send_bulk(
    target: &Target,
    container: &str,
    bodies: &[(String, String)],
    tally: &mut Tally,
) -> Result<(), Error> {
    let mut left: Vec<&(String, String)> = bodies.iter().collect();
    let mut accepted = Instant::now();
    while !left.is_empty() {
        let sent = Instant::now();
        let results = send_some(target, container, &left, tally).await?;
        let retry_after = results.iter().filter_map(|result| result.retry_after).max();
        let refused = left.iter().zip(&results).filter(|(_, result)| is_for_now(result.status));
        let refused: Vec<_> = refused.map(|(body, _)| *body).collect();
        if refused.len() < left.len() {
            accepted = Instant::now();
        }
        if accepted.elapsed() > PATIENCE {
            return Err(no_item(container, "they are refused for now, again and again"));
        }
        if !refused.is_empty() {
            pause(sent, retry_after, tally).await;
        }
        left = refused;
    }
    Ok(())
}

/// Sends items once. What is not refused for now is done, or an error.
async fn send_some(
    target: &Target,
    container: &str,
    bodies: &[&(String, String)],
    tally: &mut Tally,
) -> Result<Vec<OperationResult>, Error> {
    let operations: Vec<(String, Operation<'_>)> =
        bodies.iter().map(|(key, body)| (key.clone(), Operation::Upsert(body))).collect();
    let what = format!("load {container}");
    let request = target.container(container).bulk(&operations).minimal();
    let mut own = tally.fresh();
    let reply = target.send(&what, &request, &mut own).await?;
    let results = reply.results().map_err(|source| Error::Request { what, source })?;
    let is_wrong = |status: u16| status >= 400 && !is_for_now(status);
    if let Some(result) = results.iter().find(|result| is_wrong(result.status)) {
        return Err(no_item(container, &format!("one was refused with status {}", result.status)));
    }
    own.forget(results.iter().filter(|result| is_for_now(result.status)));
    tally.add(&own);
    Ok(results)
}

fn no_item(container: &str, message: &str) -> Error {
    Error::Step { what: format!("load items of {container}"), message: message.to_owned() }
}
