//! Many items of a container: read feed, query, query plan, change feed. All run on the pool.

use std::sync::Arc;
use std::time::Instant;

use base::Ctx;
use engine::Engine;
use engine::ops::Scope;
use hyper::StatusCode;
use hyper::header::HeaderValue;

use crate::call::Call;
use crate::decode;
use crate::encode::measures::with_measures;
use crate::encode::{self, Reply};
use crate::error::{Failure, Result};
use crate::headers;

/// A page of all items.
pub async fn list(call: &Call<'_>) -> Result<Reply> {
    let container = call.container()?;
    let (scope, page) = (scope(call)?, decode::page(call.headers)?);
    let source = container.clone();
    let page = call
        .blocking(move |engine, ctx| engine.read_feed(ctx, &source, &scope, &page))
        .await
        .map_err(|failure| failure.within(&container, 0))?;
    Ok(encode::items(&container, &page))
}

/// A page of the rows of a query.
pub async fn query(call: &Call<'_>, body: &[u8]) -> Result<Reply> {
    let container = call.container()?;
    let (scope, page) = (scope(call)?, decode::page(call.headers)?);
    let query = decode::query(body)?;
    let started = Instant::now();
    let page = match call.engine().calls_functions(&query) {
        true => {
            let engine = call.engine();
            let running = engine.query_with_functions(&call.ctx(), &container, scope, &query, page);
            running.await.map_err(Failure::from)
        }
        false => {
            let source = container.clone();
            let trial = call.gateway.trials.of((container.rid(), &query.text));
            let run = move |engine: &Arc<Engine>, ctx: &Ctx| {
                engine.query_items(ctx, &source, &scope, &query, &page)
            };
            call.quickly(trial, run, |page| !page.is_cut_by_time).await
        }
    };
    let page = page.map_err(|failure| failure.within(&container, 0))?;
    let reply = encode::items(&container, &page);
    Ok(with_measures(reply, call.headers, &page, started.elapsed()))
}

/// How a client has to merge the answers of several ranges. A continuation means nothing here,
/// though one client sends its own.
pub async fn plan(call: &Call<'_>, body: &[u8]) -> Result<Reply> {
    let container = call.container()?;
    let query = decode::query(body)?;
    let features = headers::text(call.headers, &headers::SUPPORTED_QUERY_FEATURES);
    let features = features.map(str::to_owned);
    let source = container.clone();
    let plan = call
        .blocking(move |engine, _| engine.query_plan(&source, &query, features.as_deref()))
        .await
        .map_err(|failure| failure.within(&container, 0))?;
    // Without a session: a plan has read nothing, and one client keeps its token for any container.
    Ok(Reply::json(StatusCode::OK, engine::charge::METADATA, plan))
}

/// A page of changes; 304 if nothing is new. An empty page would be read as news.
pub async fn changes(call: &Call<'_>) -> Result<Reply> {
    let container = call.container()?;
    let (scope, request) = (scope(call)?, decode::change_feed(call.headers)?);
    let source = container.clone();
    let page = call
        .blocking(move |engine, ctx| engine.change_feed(ctx, &source, &scope, &request))
        .await
        .map_err(|failure| failure.within(&container, 0))?;
    let reply = match page.rows.is_empty() {
        true => Reply::empty(StatusCode::NOT_MODIFIED, page.charge),
        false => {
            let rows = page.rows.iter().map(|row| &row[..]);
            let body = encode::feed_body(container.rid(), "Documents", rows);
            Reply::json(StatusCode::OK, page.charge, body)
        }
    };
    Ok(reply
        .with_receipt(page.receipt)
        .in_container(&container)
        .at(page.partition, page.lsn)
        .with_etag(&page.etag)
        .with(&headers::ITEM_COUNT, HeaderValue::from(page.rows.len())))
}

/// Deletes all items of one logical partition.
pub async fn delete_partition(call: &Call<'_>) -> Result<Reply> {
    let container = call.container()?;
    let key = decode::partition_key(call.headers)?.ok_or(engine::Error::PartitionKeyMissing)?;
    call.access.check_key(Some(&key))?;
    let source = container.clone();
    let pending =
        call.blocking(move |engine, ctx| engine.delete_partition(ctx, &source, &key)).await;
    let pending = pending.map_err(|failure| failure.within(&container, 0))?;
    pending.await.map_err(|error| Failure::at(error, &container, 0))?;
    Ok(Reply::empty(StatusCode::OK, engine::charge::METADATA)
        .in_container(&container)
        .at(0, container.session(0)))
}

/// The scope of a request, if its sender may see all of it.
fn scope(call: &Call<'_>) -> Result<Scope> {
    let scope = decode::scope(call.headers)?;
    let key = match &scope {
        Scope::PartitionKey(key) | Scope::KeyInRange { key, .. } => Some(key),
        Scope::Container | Scope::Range { .. } => None,
    };
    call.access.check_key(key)?;
    Ok(scope)
}
