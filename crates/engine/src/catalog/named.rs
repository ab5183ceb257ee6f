//! Users, permissions and client encryption keys: plain JSON with a name below an owner.

use base::Ctx;
use model::Rid;
use serde_json::{Map, Value};

use super::record::{self, Kind, Stamp};
use super::{Catalog, Named, Tables, check_etag, new_etag, put, remove};
use crate::ops::{EtagCondition, Resource, ResourceKind, ResourceStatus};
use crate::{Error, Result};

/// Below which database, and for permissions which user, a resource is. Names or rids.
#[derive(Clone, Copy, Debug)]
pub struct Owner<'a> {
    /// The database.
    pub database: &'a str,
    /// The user, for permissions.
    pub user: Option<&'a str>,
}

/// An owner made concrete.
#[derive(Clone, Copy)]
struct Place {
    database: u32,
    /// Number of the owner: a user for permissions, else the database.
    owner: u32,
}

impl Place {
    fn rid(self, kind: ResourceKind, number: u32) -> Rid {
        match kind {
            ResourceKind::User | ResourceKind::ClientEncryptionKey => {
                Rid::User(self.database, number)
            }
            ResourceKind::Permission => {
                Rid::Permission(self.database, self.owner, u64::from(number))
            }
        }
    }

    fn self_link(self, kind: ResourceKind, rid: Rid) -> String {
        let database = Rid::Database(self.database);
        match kind {
            ResourceKind::User => format!("dbs/{database}/users/{rid}/"),
            ResourceKind::ClientEncryptionKey => {
                format!("dbs/{database}/clientencryptionkeys/{rid}/")
            }
            ResourceKind::Permission => {
                let user = Rid::User(self.database, self.owner);
                format!("dbs/{database}/users/{user}/permissions/{rid}/")
            }
        }
    }
}

impl Catalog {
    pub fn create_resource(
        &self,
        ctx: &Ctx,
        kind: ResourceKind,
        owner: Owner<'_>,
        body: &Value,
        is_upsert: bool,
    ) -> Result<(ResourceStatus, Resource)> {
        let id = record::checked_id(body)?.to_string();
        check_body(kind, body)?;
        let mut numbers = self.writer.lock();
        let place = self.tables.read().place(owner)?;
        let existing = self.tables.read().named_at(kind, place, &id);
        let (status, number) = match existing {
            Some(_) if !is_upsert => return Err(Error::Conflict),
            Some((number, _)) => (ResourceStatus::Replaced, number),
            None => {
                numbers.last += 1;
                (ResourceStatus::Created, numbers.last)
            }
        };
        self.check_permission(kind, place, number, body)?;
        let resource = self.store_named(ctx, *numbers, (kind, place, number), body, &id)?;
        Ok((status, resource))
    }

    fn store_named(
        &self,
        ctx: &Ctx,
        numbers: super::Numbers,
        (kind, place, number): (ResourceKind, Place, u32),
        body: &Value,
        old_id: &str,
    ) -> Result<Resource> {
        let rid = place.rid(kind, number);
        let stamp = Stamp {
            rid,
            self_link: place.self_link(kind, rid),
            etag: new_etag(ctx),
            ts: ctx.now().as_secs(),
        };
        let extra: &[(&str, &str)] = match kind {
            ResourceKind::User => &[("_permissions", "permissions/")],
            ResourceKind::Permission | ResourceKind::ClientEncryptionKey => &[],
        };
        let user_part: Map<String, Value> = record::user_part(body)?;
        let resource = stamp.apply(user_part, extra);
        let value = record::encode_named(kind, place.owner, number, &resource.body);
        self.commit(numbers, vec![put(Kind::Named, number, &value)])?;
        let mut tables = self.tables.write();
        tables.named.remove(&(kind, place.owner, old_id.to_owned()));
        let id = record::id_of(&resource.body).to_owned();
        let named = Named { resource: resource.clone(), number };
        tables.named.insert((kind, place.owner, id), named);
        Ok(resource)
    }

    /// One permission per user and resource.
    fn check_permission(
        &self,
        kind: ResourceKind,
        place: Place,
        number: u32,
        body: &Value,
    ) -> Result<()> {
        if kind != ResourceKind::Permission {
            return Ok(());
        }
        let tables = self.tables.read();
        let siblings = tables.named_of(kind, place.owner).filter(|named| named.number != number);
        let target = |body: &Value| {
            let resource = body.get("resource").and_then(Value::as_str).unwrap_or_default();
            let key = body.get("resourcePartitionKey").cloned();
            (resource.trim_matches('/').to_owned(), key)
        };
        let is_taken =
            siblings.into_iter().any(|named| target(&named.resource.body) == target(body));
        if is_taken { Err(Error::Conflict) } else { Ok(()) }
    }

    pub fn read_resource(
        &self,
        kind: ResourceKind,
        owner: Owner<'_>,
        id: &str,
    ) -> Result<Resource> {
        let tables = self.tables.read();
        let place = tables.place(owner)?;
        let (_, resource) = tables.named_at(kind, place, id).ok_or(Error::NotFound)?;
        Ok(resource)
    }

    pub fn list_resources(&self, kind: ResourceKind, owner: Owner<'_>) -> Result<Vec<Resource>> {
        let tables = self.tables.read();
        let place = tables.place(owner)?;
        Ok(tables.named_of(kind, place.owner).map(|named| named.resource.clone()).collect())
    }

    pub fn replace_resource(
        &self,
        ctx: &Ctx,
        kind: ResourceKind,
        owner: Owner<'_>,
        id: &str,
        body: &Value,
        if_match: &EtagCondition,
    ) -> Result<Resource> {
        let new_id = record::checked_id(body)?.to_string();
        check_body(kind, body)?;
        let numbers = self.writer.lock();
        let place = self.tables.read().place(owner)?;
        let found = self.tables.read().named_at(kind, place, id);
        let (number, old) = found.ok_or(Error::NotFound)?;
        check_etag(&old, if_match)?;
        let old_id = record::id_of(&old.body).to_owned();
        if new_id != old_id && self.tables.read().named_at(kind, place, &new_id).is_some() {
            return Err(Error::Conflict);
        }
        self.check_permission(kind, place, number, body)?;
        self.store_named(ctx, *numbers, (kind, place, number), body, &old_id)
    }

    pub fn delete_resource(
        &self,
        kind: ResourceKind,
        owner: Owner<'_>,
        id: &str,
        if_match: &EtagCondition,
    ) -> Result<()> {
        let numbers = self.writer.lock();
        let (place, number, resource) = {
            let tables = self.tables.read();
            let place = tables.place(owner)?;
            let (number, resource) = tables.named_at(kind, place, id).ok_or(Error::NotFound)?;
            (place, number, resource)
        };
        check_etag(&resource, if_match)?;
        let mut writes = vec![remove(Kind::Named, number)];
        let owned = match kind {
            ResourceKind::User => self.tables.read().numbers_below_user(number),
            ResourceKind::Permission | ResourceKind::ClientEncryptionKey => Vec::new(),
        };
        writes.extend(owned.iter().map(|number| remove(Kind::Named, *number)));
        self.commit(*numbers, writes)?;
        let id = record::id_of(&resource.body).to_owned();
        let mut tables = self.tables.write();
        tables.named.remove(&(kind, place.owner, id));
        tables.named.retain(|_, named| !owned.contains(&named.number));
        Ok(())
    }
}

impl Tables {
    fn place(&self, owner: Owner<'_>) -> Result<Place> {
        let database = self.database(owner.database).ok_or(Error::OwnerNotFound)?;
        let Some(user) = owner.user else { return Ok(Place { database, owner: database }) };
        let place = Place { database, owner: database };
        let (number, _) =
            self.named_at(ResourceKind::User, place, user).ok_or(Error::OwnerNotFound)?;
        Ok(Place { database, owner: number })
    }

    fn named_of(&self, kind: ResourceKind, owner: u32) -> impl Iterator<Item = &Named> {
        let from = (kind, owner, String::new());
        let own =
            self.named.range(from..).take_while(move |((k, o, _), _)| (*k, *o) == (kind, owner));
        own.map(|(_, named)| named)
    }

    /// By name, else by rid.
    fn named_at(&self, kind: ResourceKind, place: Place, id: &str) -> Option<(u32, Resource)> {
        let by_name = self.named.get(&(kind, place.owner, id.to_owned()));
        let found = by_name.or_else(|| {
            let rid = Rid::parse(id)?;
            self.named_of(kind, place.owner).find(|named| named.resource.rid == rid)
        })?;
        Some((found.number, found.resource.clone()))
    }

    fn numbers_below_user(&self, user: u32) -> Vec<u32> {
        self.named_of(ResourceKind::Permission, user).map(|named| named.number).collect()
    }

    /// Numbers of everything named below a database, also below its users.
    pub(super) fn named_of_database(&self, database: u32) -> impl Iterator<Item = u32> {
        let is_below = move |rid: Rid| matches!(rid, Rid::User(d, _) | Rid::Permission(d, _, _) if d == database);
        let below = self.named.values().filter(move |named| is_below(named.resource.rid));
        below.map(|named| named.number)
    }

    pub(super) fn remove_named_of_database(&mut self, database: u32) {
        let numbers: Vec<u32> = self.named_of_database(database).collect();
        self.named.retain(|_, named| !numbers.contains(&named.number));
    }
}

fn check_body(kind: ResourceKind, body: &Value) -> Result<()> {
    if kind != ResourceKind::Permission {
        return Ok(());
    }
    let text = |name: &str| body.get(name).and_then(Value::as_str);
    if !matches!(text("permissionMode"), Some("Read" | "All" | "read" | "all")) {
        return Err(Error::Invalid("The permissionMode must be 'Read' or 'All'.".into()));
    }
    if text("resource").is_none_or(|link| link.trim_matches('/').is_empty()) {
        let message = "The permission needs a 'resource': the link of what it allows.";
        return Err(Error::Invalid(message.into()));
    }
    match body.get("resourcePartitionKey") {
        None | Some(Value::Array(_)) => Ok(()),
        Some(_) => Err(Error::Invalid("The resourcePartitionKey must be an array.".into())),
    }
}
