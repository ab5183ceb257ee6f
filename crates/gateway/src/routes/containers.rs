//! Containers and their physical partitions.

use std::sync::Arc;

use bytes::Bytes;
use engine::ops::{EtagCondition, Resource, ResourceKind};
use engine::{Container, Owner, RangeInfo};
use hyper::StatusCode;
use hyper::header::HeaderValue;
use model::Rid;
use serde_json::{Value, json};

use crate::call::Call;
use crate::decode;
use crate::encode::{self, Reply};
use crate::error::{Result, not_allowed};
use crate::headers;
use crate::routes::{Action, databases};

/// Serves `/dbs/{db}/colls` and what is directly below.
pub async fn serve(call: &Call<'_>, body: Bytes) -> Result<Reply> {
    let array = "DocumentCollections";
    let reply = match call.action {
        Action::Create => create(call, &body).await?,
        Action::Read => read(call)?,
        Action::List => {
            let (owner, all) = (database(call)?.rid, all(call)?);
            databases::list(call, owner, array, all)?
        }
        Action::Query => {
            let (owner, all) = (database(call)?.rid, all(call)?);
            databases::query(call, owner, array, all, &body).await?
        }
        Action::Replace => replace(call, &body).await?,
        Action::Delete => delete(call).await?,
        Action::Upsert | Action::Patch | Action::Plan | Action::ChangeFeed => return not_allowed(),
        Action::Batch | Action::Bulk | Action::Execute => return not_allowed(),
    };
    // A database that is gone by now took the answer's paths with it.
    Ok(match database(call) {
        Ok(database) => reply.in_database(name_of(&database), database.rid),
        Err(_) => reply,
    })
}

/// What is absent here is the owner of what the client asks for.
pub fn owner_is_gone(error: engine::Error) -> engine::Error {
    if matches!(error, engine::Error::NotFound) { engine::Error::OwnerNotFound } else { error }
}

fn database(call: &Call<'_>) -> Result<Resource> {
    Ok(call.engine().read_database(call.database()).map_err(owner_is_gone)?)
}

fn all(call: &Call<'_>) -> Result<Vec<Resource>> {
    Ok(call.engine().list_containers(call.database())?)
}

fn name_of(resource: &Resource) -> &str {
    resource.body.get("id").and_then(Value::as_str).unwrap_or_default()
}

async fn create(call: &Call<'_>, body: &[u8]) -> Result<Reply> {
    let (body, throughput) = (decode::object(body)?, decode::throughput(call.headers)?);
    let database = call.database().to_owned();
    let made = call
        .blocking(move |engine, ctx| engine.create_container(ctx, &database, &body, throughput));
    Ok(encode::resource(StatusCode::CREATED, &made.await?))
}

fn read(call: &Call<'_>) -> Result<Reply> {
    let mut resource = call.engine().read_container(call.database(), call.second())?;
    let container = call.container()?;
    if headers::is_true(call.headers, &headers::POPULATE_PARTITION_STATISTICS) {
        resource.body = Arc::new(with_statistics(&resource.body, &container));
    }
    let reply = databases::unless_known(call, &resource)?;
    match headers::is_true(call.headers, &headers::POPULATE_QUOTA_INFO) {
        true => Ok(with_quota(call, reply, &container)),
        false => Ok(reply),
    }
}

fn with_statistics(body: &Value, container: &Container) -> Value {
    let statistics = container.statistics().into_iter().map(|partition| {
        json!({
            "id": partition.id.to_string(),
            "sizeInKB": partition.bytes / 1024,
            "documentCount": partition.documents,
            "sampledDistinctPartitionKeyCount": 0,
            "partitionKeys": [],
        })
    });
    let statistics: Vec<Value> = statistics.collect();
    let mut body = body.clone();
    body["statistics"] = Value::Array(statistics);
    body
}

fn with_quota(call: &Call<'_>, reply: Reply, container: &Container) -> Reply {
    let (mut documents, mut kilobytes) = (0, 0);
    for partition in container.statistics() {
        documents += partition.documents;
        kilobytes += partition.bytes.div_ceil(1024);
    }
    let owner = Owner::container(call.database(), call.second());
    let count = |kind| call.engine().list_resources(kind, owner).map_or(0, |all| all.len());
    let usage = format!(
        "functions={};storedProcedures={};triggers={};documentSize=0;documentsSize={kilobytes};documentsCount={documents};\
         collectionSize={kilobytes};",
        count(ResourceKind::Udf),
        count(ResourceKind::StoredProcedure),
        count(ResourceKind::Trigger),
    );
    let quota = "functions=50;storedProcedures=100;triggers=25;documentSize=-1;documentsSize=-1;\
                 documentsCount=-1;collectionSize=-1;";
    let progress = HeaderValue::from(container.transformation_progress());
    reply
        .with(&headers::RESOURCE_QUOTA, HeaderValue::from_static(quota))
        .with(&headers::RESOURCE_USAGE, headers::value(usage))
        .with(&headers::TRANSFORMATION_PROGRESS, progress)
}

async fn replace(call: &Call<'_>, body: &[u8]) -> Result<Reply> {
    check_intended(call)?;
    let (body, if_match) = (decode::object(body)?, decode::if_match(call.headers)?);
    let (database, name) = (call.database().to_owned(), call.second().to_owned());
    let made = call.blocking(move |engine, ctx| {
        engine.replace_container(ctx, &database, &name, &body, &if_match)
    });
    Ok(encode::resource(StatusCode::OK, &made.await?))
}

async fn delete(call: &Call<'_>) -> Result<Reply> {
    check_intended(call)?;
    let if_match = decode::if_match(call.headers)?;
    let (database, name) = (call.database().to_owned(), call.second().to_owned());
    call.blocking(move |engine, ctx| engine.delete_container(ctx, &database, &name, &if_match))
        .await?;
    Ok(Reply::empty(StatusCode::NO_CONTENT, engine::charge::METADATA))
}

/// Whether an existing container is the one the client means. The engine speaks of absent ones.
fn check_intended(call: &Call<'_>) -> Result<()> {
    call.engine().read_container(call.database(), call.second())?;
    call.container().map(drop)
}

/// Serves `…/pkranges`. Clients ask again with the etag until they see 304.
pub fn ranges(call: &Call<'_>) -> Result<Reply> {
    let container = call.container()?;
    let etag = container.ranges_etag();
    let reply = match decode::if_none_match(call.headers)? {
        EtagCondition::Is(known) if known == etag => {
            Reply::empty(StatusCode::NOT_MODIFIED, engine::charge::METADATA)
        }
        EtagCondition::Is(_) | EtagCondition::Any | EtagCondition::None => {
            let ts = call.engine().read_container(call.database(), call.second())?;
            let ts = ts.body.get("_ts").and_then(Value::as_u64).unwrap_or_default();
            let ranges = container.ranges();
            let fraction = 1.0 / ranges.len().max(1) as f64;
            let rows: Vec<Bytes> = ranges
                .iter()
                .map(|range| range_body(&container, range, fraction, ts).to_string().into())
                .collect();
            encode::resources(container.rid(), "PartitionKeyRanges", &rows, None)
        }
    };
    Ok(reply.in_container(&container).with_etag(etag))
}

fn range_body(container: &Container, range: &RangeInfo, fraction: f64, ts: u64) -> Value {
    let (database, rid): (Rid, Rid) = (container.database_rid(), container.rid());
    json!({
        "_rid": range.rid.to_string(),
        "id": range.id.to_string(),
        "_etag": format!("\"{}\"", container.ranges_etag()),
        "minInclusive": range.min,
        "maxExclusive": range.max,
        "ridPrefix": range.id,
        "_self": format!("dbs/{database}/colls/{rid}/pkranges/{}/", range.rid),
        "throughputFraction": fraction,
        "status": "online",
        "parents": [],
        "ownedArchivalPKRangeIds": [],
        "_ts": ts,
        "_lsn": range.lsn,
    })
}
