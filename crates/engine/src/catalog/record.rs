//! How catalog entries look on disk, and the system properties every body has.

use std::sync::Arc;

use bytes::Bytes;
use model::Rid;
use serde_json::{Map, Value, json};
use storage::keys::meta;

use super::Numbers;
use crate::ops::{Resource, ResourceKind};
use crate::{Error, Result};

/// Which table an entry belongs to: the second byte of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A database.
    Database = 1,
    /// A container.
    Container = 2,
    /// A user, permission, client encryption key or script.
    Named = 3,
    /// An offer.
    Offer = 4,
}

pub fn prefix(kind: Kind) -> [u8; 2] {
    [meta::CATALOG, kind as u8]
}

pub fn key(kind: Kind, number: u32) -> Bytes {
    [&prefix(kind)[..], &number.to_be_bytes()].concat().into()
}

pub fn numbers_key() -> Bytes {
    [&[meta::ACCOUNT], &b"numbers"[..]].concat().into()
}

pub fn encode_numbers(numbers: Numbers) -> Bytes {
    [numbers.last.to_be_bytes(), numbers.log.to_be_bytes()].concat().into()
}

pub fn decode_numbers(value: Option<Bytes>) -> Result<Numbers> {
    let Some(value) = value else { return Ok(Numbers::default()) };
    let bytes: [u8; 8] = value[..]
        .try_into()
        .map_err(|_| Error::Fault("the catalog's numbers are damaged".into()))?;
    let number = u64::from_be_bytes(bytes);
    Ok(Numbers { last: (number >> 32) as u32, log: number as u32 })
}

/// The resource of a stored entry.
pub fn decode(value: &Value) -> Result<Resource> {
    let damaged = |what: &str| Error::Fault(format!("a catalog entry has no {what}"));
    let body = value.get("body").ok_or_else(|| damaged("body"))?;
    let text = |name: &str| body.get(name).and_then(Value::as_str).ok_or_else(|| damaged(name));
    let rid = Rid::parse(text("_rid")?).ok_or_else(|| damaged("rid"))?;
    let etag = text("_etag")?.trim_matches('"').to_owned();
    Ok(Resource { rid, etag, body: Arc::new(body.clone()) })
}

/// Kind, owner and number of a user, permission, key or script.
pub fn decode_named(value: &Value) -> Result<(ResourceKind, u32, u32)> {
    let kind = match value.get("kind").and_then(Value::as_str) {
        Some("user") => ResourceKind::User,
        Some("permission") => ResourceKind::Permission,
        Some("key") => ResourceKind::ClientEncryptionKey,
        Some("procedure") => ResourceKind::StoredProcedure,
        Some("trigger") => ResourceKind::Trigger,
        Some("udf") => ResourceKind::Udf,
        other => return Err(Error::Fault(format!("a catalog entry has the kind {other:?}"))),
    };
    let number = |name: &str| {
        let number = value.get(name).and_then(Value::as_u64);
        number.ok_or_else(|| Error::Fault(format!("a catalog entry has no {name}")))
    };
    Ok((kind, number("owner")? as u32, number("number")? as u32))
}

/// The stored form of a user, permission, key or script.
pub fn encode_named(kind: ResourceKind, owner: u32, number: u32, body: &Value) -> Value {
    let kind = match kind {
        ResourceKind::User => "user",
        ResourceKind::Permission => "permission",
        ResourceKind::ClientEncryptionKey => "key",
        ResourceKind::StoredProcedure => "procedure",
        ResourceKind::Trigger => "trigger",
        ResourceKind::Udf => "udf",
    };
    json!({"kind": kind, "owner": owner, "number": number, "body": body})
}

/// The id in a body; empty if there is none.
pub fn id_of(body: &Value) -> &str {
    body.get("id").and_then(Value::as_str).unwrap_or_default()
}

/// The id a client wants, checked.
pub fn checked_id(body: &Value) -> Result<model::ResourceName> {
    model::ResourceName::new(id_of(body)).map_err(|error| Error::Invalid(error.to_string()))
}

/// A body without the system properties clients send back.
pub fn user_part(body: &Value) -> Result<Map<String, Value>> {
    let system = ["_rid", "_self", "_etag", "_ts", "_colls", "_users", "_permissions", "_token"];
    let body =
        body.as_object().ok_or_else(|| Error::Invalid("The body is not an object.".into()))?;
    let kept = body.iter().filter(|(name, _)| !system.contains(&name.as_str()));
    Ok(kept.map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// What a resource is stamped with.
pub struct Stamp {
    pub rid: Rid,
    pub self_link: String,
    pub etag: String,
    pub ts: u64,
}

impl Stamp {
    /// Completes a body with the system properties.
    pub fn apply(self, mut body: Map<String, Value>, extra: &[(&str, &str)]) -> Resource {
        body.insert("_rid".into(), self.rid.to_string().into());
        body.insert("_self".into(), self.self_link.into());
        body.insert("_etag".into(), format!("\"{}\"", self.etag).into());
        for (name, value) in extra {
            body.insert((*name).into(), (*value).into());
        }
        body.insert("_ts".into(), self.ts.into());
        Resource { rid: self.rid, etag: self.etag, body: Arc::new(Value::Object(body)) }
    }
}
