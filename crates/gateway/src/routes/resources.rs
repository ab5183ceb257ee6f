//! Users, their permissions, client encryption keys, and scripts: plain JSON with a name.
//!
//! A permission leaves the engine without its token; a fresh one is minted here whenever one is
//! shown.

use std::sync::Arc;

use bytes::Bytes;
use engine::ops::{Resource, ResourceKind, ResourceStatus};
use engine::{Engine, Owner};
use hyper::StatusCode;
use model::Rid;
use serde_json::Value;

use crate::call::Call;
use crate::decode;
use crate::encode::{self, Reply};
use crate::error::{Result, invalid, not_allowed};
use crate::routes::containers::owner_is_gone;
use crate::routes::{Action, databases};
use crate::token::Grant;

/// Serves a kind of resource below a database, user or container.
pub async fn serve(call: &Call<'_>, kind: ResourceKind, body: Bytes) -> Result<Reply> {
    match call.action {
        Action::Create | Action::Upsert => create(call, kind, &body).await,
        Action::Read => {
            let resource = call.engine().read_resource(kind, owner(call, kind), id(call, kind))?;
            databases::unless_known(call, &shown(call, kind, resource)?)
        }
        Action::List => {
            databases::list(call, owner_rid(call, kind)?, array(kind), all(call, kind)?)
        }
        Action::Query => {
            let (owner, all) = (owner_rid(call, kind)?, all(call, kind)?);
            databases::query(call, owner, array(kind), all, &body).await
        }
        Action::Replace => replace(call, kind, &body).await,
        Action::Delete => delete(call, kind).await,
        Action::Patch | Action::Plan | Action::ChangeFeed => not_allowed(),
        Action::Batch | Action::Bulk | Action::Execute => not_allowed(),
    }
}

fn owner<'a>(call: &Call<'a>, kind: ResourceKind) -> Owner<'a> {
    match kind {
        ResourceKind::User | ResourceKind::ClientEncryptionKey => Owner::database(call.database()),
        ResourceKind::Permission => Owner::user(call.database(), call.second()),
        ResourceKind::StoredProcedure | ResourceKind::Trigger | ResourceKind::Udf => {
            Owner::container(call.database(), call.second())
        }
    }
}

fn id<'a>(call: &Call<'a>, kind: ResourceKind) -> &'a str {
    match kind {
        ResourceKind::User | ResourceKind::ClientEncryptionKey => call.second(),
        ResourceKind::Permission => call.third(),
        ResourceKind::StoredProcedure | ResourceKind::Trigger | ResourceKind::Udf => call.third(),
    }
}

fn array(kind: ResourceKind) -> &'static str {
    match kind {
        ResourceKind::User => "Users",
        ResourceKind::Permission => "Permissions",
        ResourceKind::ClientEncryptionKey => "ClientEncryptionKeys",
        ResourceKind::StoredProcedure => "StoredProcedures",
        ResourceKind::Trigger => "Triggers",
        ResourceKind::Udf => "UserDefinedFunctions",
    }
}

fn owner_rid(call: &Call<'_>, kind: ResourceKind) -> Result<Rid> {
    let database = Owner::database(call.database());
    let found = match kind {
        ResourceKind::User | ResourceKind::ClientEncryptionKey => {
            call.engine().read_database(call.database())
        }
        ResourceKind::Permission => {
            call.engine().read_resource(ResourceKind::User, database, call.second())
        }
        ResourceKind::StoredProcedure | ResourceKind::Trigger | ResourceKind::Udf => {
            call.engine().read_container(call.database(), call.second())
        }
    };
    Ok(found.map_err(owner_is_gone)?.rid)
}

fn all(call: &Call<'_>, kind: ResourceKind) -> Result<Vec<Resource>> {
    let all = call.engine().list_resources(kind, owner(call, kind))?;
    all.into_iter().map(|resource| shown(call, kind, resource)).collect()
}

async fn create(call: &Call<'_>, kind: ResourceKind, body: &[u8]) -> Result<Reply> {
    let body = checked(kind, body)?;
    let is_upsert = call.action == Action::Upsert;
    let names = OwnedOwner::of(call, kind);
    let made = call.blocking(move |engine, ctx| {
        engine.create_resource(ctx, kind, names.borrow(), &body, is_upsert)
    });
    let (status, resource) = made.await?;
    let status = match status {
        ResourceStatus::Created => StatusCode::CREATED,
        ResourceStatus::Replaced => StatusCode::OK,
    };
    Ok(encode::resource(status, &shown(call, kind, resource)?))
}

async fn replace(call: &Call<'_>, kind: ResourceKind, body: &[u8]) -> Result<Reply> {
    let (body, if_match) = (checked(kind, body)?, decode::if_match(call.headers)?);
    let (names, id) = (OwnedOwner::of(call, kind), id(call, kind).to_owned());
    let made = call.blocking(move |engine, ctx| {
        engine.replace_resource(ctx, kind, names.borrow(), &id, &body, &if_match)
    });
    Ok(encode::resource(StatusCode::OK, &shown(call, kind, made.await?)?))
}

async fn delete(call: &Call<'_>, kind: ResourceKind) -> Result<Reply> {
    let if_match = decode::if_match(call.headers)?;
    let (names, id) = (OwnedOwner::of(call, kind), id(call, kind).to_owned());
    call.blocking(move |engine, ctx| {
        engine.delete_resource(ctx, kind, names.borrow(), &id, &if_match)
    })
    .await?;
    Ok(Reply::empty(StatusCode::NO_CONTENT, engine::charge::METADATA))
}

/// An owner that can go to another thread.
struct OwnedOwner {
    database: String,
    container: Option<String>,
    user: Option<String>,
}

impl OwnedOwner {
    fn of(call: &Call<'_>, kind: ResourceKind) -> OwnedOwner {
        let owner = owner(call, kind);
        OwnedOwner {
            database: owner.database.to_owned(),
            container: owner.container.map(str::to_owned),
            user: owner.user.map(str::to_owned),
        }
    }

    fn borrow(&self) -> Owner<'_> {
        Owner {
            database: &self.database,
            container: self.container.as_deref(),
            user: self.user.as_deref(),
        }
    }
}

/// The body of a resource; of a permission, one that a token can be minted from.
fn checked(kind: ResourceKind, body: &[u8]) -> Result<Value> {
    let mut body = decode::object(body)?;
    if kind == ResourceKind::Permission {
        Link::of(&body)?;
        // Clients send back what they read; the token is ours to make.
        body.as_object_mut().map(|object| object.shift_remove("_token"));
    }
    Ok(body)
}

/// The resource as clients see it: a permission gets a fresh token.
fn shown(call: &Call<'_>, kind: ResourceKind, mut resource: Resource) -> Result<Resource> {
    if kind == ResourceKind::Permission {
        let lifetime = decode::token_seconds(call.headers)?;
        let now = call.engine().clock().now().as_secs();
        let grant = grant(call.engine(), &resource, now + lifetime)?;
        let token = call.gateway.authenticator.tokens().seal(&grant);
        let mut body = Value::clone(&resource.body);
        body["_token"] = Value::String(token);
        resource.body = Arc::new(body);
    }
    Ok(resource)
}

/// What a permission allows. A container that does not exist is named as the permission names it,
/// which no container's resource id will ever equal.
fn grant(engine: &Engine, permission: &Resource, expires_secs: u64) -> Result<Grant> {
    let link = Link::of(&permission.body)?;
    let container = engine.container(link.database, link.container);
    let container = container.map_or(link.container.to_owned(), |found| found.rid().to_string());
    let mode = permission.body.get("permissionMode").and_then(Value::as_str);
    let key = permission.body.get("resourcePartitionKey").filter(|key| !key.is_null());
    Ok(Grant {
        permission: permission.rid.to_string(),
        container,
        child: link.child.map(|(keyword, id)| (keyword.to_owned(), id.to_owned())),
        is_writable: mode.is_some_and(|mode| mode.eq_ignore_ascii_case("all")),
        partition_key: key.map(key_array),
        expires_secs,
    })
}

/// A partition key as an array; a lone value is a key of one level.
fn key_array(key: &Value) -> String {
    if key.is_array() { key.to_string() } else { format!("[{key}]") }
}

/// The link in a permission, taken apart.
struct Link<'a> {
    database: &'a str,
    container: &'a str,
    child: Option<(&'a str, &'a str)>,
}

impl<'a> Link<'a> {
    fn of(permission: &'a Value) -> Result<Link<'a>> {
        let text = permission.get("resource").and_then(Value::as_str).unwrap_or_default();
        let segments: Vec<&str> = text.trim_matches('/').split('/').collect();
        match segments[..] {
            ["dbs", database, "colls", container] => Ok(Link { database, container, child: None }),
            ["dbs", database, "colls", container, keyword, id] => {
                Ok(Link { database, container, child: Some((keyword, id)) })
            }
            _ => Err(invalid(format!(
                "The 'resource' of a permission is the link of a container or of something in it, \
                 such as dbs/d/colls/c, not '{text}'."
            ))),
        }
    }
}
