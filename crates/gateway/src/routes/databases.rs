//! Databases.

use bytes::Bytes;
use engine::ops::{EtagCondition, Resource};
use hyper::StatusCode;

use crate::call::Call;
use crate::decode;
use crate::encode::{self, Reply};
use crate::error::{Result, not_allowed};
use crate::routes::{Action, pages};

/// Serves `/dbs` and what is directly below.
pub async fn serve(call: &Call<'_>, body: Bytes) -> Result<Reply> {
    match call.action {
        Action::Create => create(call, &body).await,
        Action::Read => {
            let database = call.engine().read_database(call.database())?;
            unless_known(call, &database)
        }
        Action::List => list(call, "", "Databases", call.engine().list_databases()),
        Action::Query => {
            let all = call.engine().list_databases();
            query(call, "", "Databases", all, &body).await
        }
        Action::Delete => delete(call).await,
        Action::Upsert | Action::Replace | Action::Patch | Action::Plan => not_allowed(),
        Action::ChangeFeed | Action::Batch | Action::Bulk | Action::Execute => not_allowed(),
    }
}

async fn create(call: &Call<'_>, body: &[u8]) -> Result<Reply> {
    let (body, throughput) = (decode::object(body)?, decode::throughput(call.headers)?);
    let made = call.blocking(move |engine, ctx| engine.create_database(ctx, &body, throughput));
    Ok(encode::resource(StatusCode::CREATED, &made.await?))
}

async fn delete(call: &Call<'_>) -> Result<Reply> {
    let (name, if_match) = (call.database().to_owned(), decode::if_match(call.headers)?);
    call.blocking(move |engine, ctx| engine.delete_database(ctx, &name, &if_match)).await?;
    Ok(Reply::empty(StatusCode::NO_CONTENT, engine::charge::METADATA))
}

/// The resource, or 304 if the client has this version of it.
pub fn unless_known(call: &Call<'_>, resource: &Resource) -> Result<Reply> {
    match decode::if_none_match(call.headers)? {
        EtagCondition::Is(etag) if etag == resource.etag => {
            let reply = Reply::empty(StatusCode::NOT_MODIFIED, engine::charge::METADATA);
            Ok(reply.with_etag(&resource.etag))
        }
        EtagCondition::Is(_) | EtagCondition::Any | EtagCondition::None => {
            Ok(encode::resource(StatusCode::OK, resource))
        }
    }
}

/// A page of a list of resources.
pub fn list(
    call: &Call<'_>,
    owner: impl std::fmt::Display,
    array: &str,
    all: Vec<Resource>,
) -> Result<Reply> {
    let page = pages::of_resources(all, call.headers)?;
    let rows: Vec<Bytes> =
        page.rows.iter().map(|resource| Bytes::from(resource.body.to_string())).collect();
    Ok(encode::resources(owner, array, &rows, page.continuation.as_deref()))
}

/// A page of a query over a list of resources.
pub async fn query(
    call: &Call<'_>,
    owner: impl std::fmt::Display,
    array: &str,
    all: Vec<Resource>,
    body: &[u8],
) -> Result<Reply> {
    let query = decode::query(body)?;
    let rows = call.blocking(move |engine, ctx| engine.query_resources(ctx, &all, &query)).await?;
    let page = pages::of_rows(rows, call.headers)?;
    Ok(encode::resources(owner, array, &page.rows, page.continuation.as_deref()))
}
