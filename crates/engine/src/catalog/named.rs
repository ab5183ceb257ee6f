//! Users, permissions, client encryption keys and scripts: plain JSON with a name below an owner.
//!
//! | kind | owner |
//! |---|---|
//! | user, client encryption key | a database |
//! | permission | a user |
//! | stored procedure, trigger, UDF | a container |
//!
//! An owner takes everything below it along when it goes, in the same commit.

use base::Ctx;
use model::rid::ChildKind;
use model::{Rid, limits};
use serde_json::{Map, Value};

use super::record::{self, Kind, Stamp};
use super::{Catalog, Named, Tables, check_etag, new_etag, put, remove};
use crate::ops::{EtagCondition, Resource, ResourceKind, ResourceStatus};
use crate::scripts_check::check_script;
use crate::{Error, Result};

/// Below which database, for scripts which container, and for permissions which user, a resource
/// is. Names or rids.
#[derive(Clone, Copy, Debug)]
pub struct Owner<'a> {
    /// The database.
    pub database: &'a str,
    /// The container, for scripts.
    pub container: Option<&'a str>,
    /// The user, for permissions.
    pub user: Option<&'a str>,
}

impl<'a> Owner<'a> {
    /// A database, which owns users and client encryption keys.
    pub fn database(database: &'a str) -> Owner<'a> {
        Owner { database, container: None, user: None }
    }

    /// A user, who owns permissions.
    pub fn user(database: &'a str, user: &'a str) -> Owner<'a> {
        Owner { database, container: None, user: Some(user) }
    }

    /// A container, which owns scripts.
    pub fn container(database: &'a str, container: &'a str) -> Owner<'a> {
        Owner { database, container: Some(container), user: None }
    }
}

/// An owner made concrete.
#[derive(Clone, Copy)]
struct Place {
    database: u32,
    /// Number of the owner: a user for permissions, a container for scripts, else the database.
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
            ResourceKind::StoredProcedure => self.child(ChildKind::StoredProcedure, number),
            ResourceKind::Trigger => self.child(ChildKind::Trigger, number),
            ResourceKind::Udf => self.child(ChildKind::Udf, number),
        }
    }

    fn child(self, kind: ChildKind, number: u32) -> Rid {
        Rid::Container(self.database, self.owner).child(kind, u64::from(number))
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
            ResourceKind::StoredProcedure => self.script_link("sprocs", rid),
            ResourceKind::Trigger => self.script_link("triggers", rid),
            ResourceKind::Udf => self.script_link("udfs", rid),
        }
    }

    fn script_link(self, keyword: &str, rid: Rid) -> String {
        let database = Rid::Database(self.database);
        let container = Rid::Container(self.database, self.owner);
        format!("dbs/{database}/colls/{container}/{keyword}/{rid}/")
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
        let existing = self.tables.read().named_at(kind, place.owner, &id);
        let (status, number) = match existing {
            Some(_) if !is_upsert => return Err(Error::Conflict),
            Some((number, _)) => (ResourceStatus::Replaced, number),
            None => {
                self.tables.read().check_count(kind, place.owner)?;
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
            ResourceKind::StoredProcedure | ResourceKind::Trigger | ResourceKind::Udf => &[],
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
        let (_, resource) = tables.named_at(kind, place.owner, id).ok_or(Error::NotFound)?;
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
        let found = self.tables.read().named_at(kind, place.owner, id);
        let (number, old) = found.ok_or(Error::NotFound)?;
        check_etag(&old, if_match)?;
        let old_id = record::id_of(&old.body).to_owned();
        if new_id != old_id && self.tables.read().named_at(kind, place.owner, &new_id).is_some() {
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
            let (number, resource) =
                tables.named_at(kind, place.owner, id).ok_or(Error::NotFound)?;
            (place, number, resource)
        };
        check_etag(&resource, if_match)?;
        let mut writes = vec![remove(Kind::Named, number)];
        let owned = match kind {
            ResourceKind::User => self.tables.read().numbers_below_user(number),
            ResourceKind::Permission | ResourceKind::ClientEncryptionKey => Vec::new(),
            ResourceKind::StoredProcedure | ResourceKind::Trigger | ResourceKind::Udf => Vec::new(),
        };
        writes.extend(owned.iter().map(|number| remove(Kind::Named, *number)));
        self.commit(*numbers, writes)?;
        let id = record::id_of(&resource.body).to_owned();
        let mut tables = self.tables.write();
        tables.named.remove(&(kind, place.owner, id));
        tables.named.retain(|_, named| !owned.contains(&named.number));
        Ok(())
    }

    /// A script of a container, by name or rid.
    pub fn script(&self, kind: ResourceKind, container: u32, id: &str) -> Option<Resource> {
        let (_, resource) = self.tables.read().named_at(kind, container, id)?;
        Some(resource)
    }

    /// Every script of a kind in a container, by name.
    pub fn scripts_of(&self, kind: ResourceKind, container: u32) -> Vec<Resource> {
        let tables = self.tables.read();
        tables.named_of(kind, container).map(|named| named.resource.clone()).collect()
    }
}

impl Tables {
    fn place(&self, owner: Owner<'_>) -> Result<Place> {
        let database = self.database(owner.database).ok_or(Error::OwnerNotFound)?;
        let below = match (owner.container, owner.user) {
            (Some(container), _) => {
                let container = self.container(owner.database, container)?;
                container.map(|handle| handle.layout.container)
            }
            (None, Some(user)) => {
                self.named_at(ResourceKind::User, database, user).map(|(number, _)| number)
            }
            (None, None) => Some(database),
        };
        Ok(Place { database, owner: below.ok_or(Error::OwnerNotFound)? })
    }

    fn check_count(&self, kind: ResourceKind, owner: u32) -> Result<()> {
        let Some(max) = count_max(kind) else { return Ok(()) };
        if self.named_of(kind, owner).count() < max {
            return Ok(());
        }
        Err(Error::Forbidden(format!(
            "The container already has {max} {}, which is the limit.",
            plural(kind)
        )))
    }

    fn named_of(&self, kind: ResourceKind, owner: u32) -> impl Iterator<Item = &Named> {
        let from = (kind, owner, String::new());
        let own =
            self.named.range(from..).take_while(move |((k, o, _), _)| (*k, *o) == (kind, owner));
        own.map(|(_, named)| named)
    }

    /// By name, else by rid.
    fn named_at(&self, kind: ResourceKind, owner: u32, id: &str) -> Option<(u32, Resource)> {
        let by_name = self.named.get(&(kind, owner, id.to_owned()));
        let found = by_name.or_else(|| {
            let rid = Rid::parse(id)?;
            self.named_of(kind, owner).find(|named| named.resource.rid == rid)
        })?;
        Some((found.number, found.resource.clone()))
    }

    fn numbers_below_user(&self, user: u32) -> Vec<u32> {
        self.named_of(ResourceKind::Permission, user).map(|named| named.number).collect()
    }

    /// Numbers of the scripts of a container.
    pub(super) fn scripts_of_container(&self, container: u32) -> impl Iterator<Item = u32> {
        let kinds = [ResourceKind::StoredProcedure, ResourceKind::Trigger, ResourceKind::Udf];
        let scripts = kinds.into_iter().flat_map(move |kind| self.named_of(kind, container));
        scripts.map(|named| named.number)
    }

    pub(super) fn remove_scripts_of_container(&mut self, container: u32) {
        let numbers: Vec<u32> = self.scripts_of_container(container).collect();
        self.named.retain(|_, named| !numbers.contains(&named.number));
    }

    /// Numbers of everything named below a database and its users; its containers see to their
    /// scripts themselves.
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

/// How many of a kind one owner may have.
fn count_max(kind: ResourceKind) -> Option<usize> {
    match kind {
        ResourceKind::StoredProcedure => Some(limits::STORED_PROCEDURES_MAX),
        ResourceKind::Trigger => Some(limits::TRIGGERS_MAX),
        ResourceKind::Udf => Some(limits::UDFS_MAX),
        ResourceKind::User | ResourceKind::Permission => None,
        ResourceKind::ClientEncryptionKey => None,
    }
}

fn plural(kind: ResourceKind) -> &'static str {
    match kind {
        ResourceKind::User => "users",
        ResourceKind::Permission => "permissions",
        ResourceKind::ClientEncryptionKey => "client encryption keys",
        ResourceKind::StoredProcedure => "stored procedures",
        ResourceKind::Trigger => "triggers",
        ResourceKind::Udf => "user-defined functions",
    }
}

fn check_body(kind: ResourceKind, body: &Value) -> Result<()> {
    match kind {
        ResourceKind::User | ResourceKind::ClientEncryptionKey => Ok(()),
        ResourceKind::Permission => check_permission_body(body),
        ResourceKind::StoredProcedure | ResourceKind::Udf => check_script_body(kind, body),
        ResourceKind::Trigger => {
            check_word(body, "triggerType", &TRIGGER_TYPES)?;
            check_word(body, "triggerOperation", &TRIGGER_OPERATIONS)?;
            check_script_body(kind, body)
        }
    }
}

const TRIGGER_TYPES: [&str; 2] = ["Pre", "Post"];
const TRIGGER_OPERATIONS: [&str; 6] = ["All", "Create", "Update", "Replace", "Upsert", "Delete"];

/// A property that is one of a few words. Clients spell them in upper or lower case.
fn check_word(body: &Value, name: &str, words: &[&str]) -> Result<()> {
    let sent = body.get(name).and_then(Value::as_str);
    match sent.is_some_and(|sent| words.iter().any(|word| word.eq_ignore_ascii_case(sent))) {
        true => Ok(()),
        false => Err(Error::Invalid(format!("The {name} must be one of {}.", words.join(", ")))),
    }
}

fn check_script_body(kind: ResourceKind, body: &Value) -> Result<()> {
    let text = body.get("body").and_then(Value::as_str);
    let text = text.ok_or_else(|| {
        Error::Invalid("The 'body' must be a string: the text of a JavaScript function.".into())
    })?;
    check_script(kind, record::id_of(body), text)
}

fn check_permission_body(body: &Value) -> Result<()> {
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
