//! The resources above items: databases, containers, users, permissions, keys, scripts,
//! offers.
//!
//! All of it fits in memory and is read there; every change is one durable commit first. Numbers
//! come from one counter that never goes back, so no rid is ever used twice.
//!
//! KEYS      01 {kind}{number} -> {"body": …, and what clients do not see}
//!           02 "numbers"      -> the last number, the last log
//!
//! INVARIANTS
//! (R1) What `tables` shows is durable.
//! (R2) Changes are made one at a time, under `writer`; reads never wait for them.

mod containers;
mod databases;
mod named;
mod offers;
mod record;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use base::Ctx;
use bytes::Bytes;
use model::Rid;
use parking_lot::{Mutex, RwLock};
use serde_json::Value;
use store::{Commit, Durability, Range, ScanOptions, Space, Store, Write};

use crate::ops::{EtagCondition, Resource, ResourceKind};
use crate::{Container, Error, Result};

pub use named::Owner;
pub use offers::{OfferMigration, minimum_throughput};
use record::Kind;

/// See the module header.
pub(crate) struct Catalog {
    store: Arc<dyn Store>,
    tables: RwLock<Tables>,
    writer: Mutex<Numbers>,
}

#[derive(Clone, Copy, Default)]
struct Numbers {
    last: u32,
    log: u32,
}

#[derive(Default)]
struct Tables {
    databases: BTreeMap<u32, Resource>,
    containers: BTreeMap<u32, ContainerEntry>,
    /// By kind, number of the owner (a database, user or container), and id.
    named: BTreeMap<(ResourceKind, u32, String), Named>,
    offers: BTreeMap<u32, Resource>,
    names: HashMap<String, DatabaseNames>,
}

struct Named {
    resource: Resource,
    number: u32,
}

struct DatabaseNames {
    number: u32,
    containers: HashMap<String, Arc<Container>>,
}

#[derive(Clone)]
struct ContainerEntry {
    resource: Resource,
    handle: Arc<Container>,
    first_log: u32,
    /// Definitions with indexing policies whose terms may still be there, as JSON.
    retired: Vec<Value>,
}

impl Catalog {
    /// Reads everything. `was_clean` is false after a crash: sequences then skip a gap.
    pub fn open(store: Arc<dyn Store>, was_clean: bool) -> Result<Catalog> {
        let view = store.view();
        let numbers = view.reader().get(Space::Meta, &record::numbers_key())?;
        let catalog = Catalog {
            writer: Mutex::new(record::decode_numbers(numbers)?),
            tables: RwLock::default(),
            store,
        };
        for kind in [Kind::Database, Kind::Container, Kind::Named, Kind::Offer] {
            let range = Range::prefix(record::prefix(kind));
            for row in view.reader().scan(Space::Meta, &range, ScanOptions::default())?.rows {
                let value: Value = serde_json::from_slice(&row.value)
                    .map_err(|e| Error::Fault(format!("a catalog entry is damaged: {e}")))?;
                catalog.load(kind, value, was_clean)?;
            }
        }
        Ok(catalog)
    }

    fn load(&self, kind: Kind, value: Value, was_clean: bool) -> Result<()> {
        let resource = record::decode(&value)?;
        match (kind, resource.rid) {
            (Kind::Database, Rid::Database(number)) => {
                self.tables.write().add_database(number, resource);
            }
            (Kind::Container, Rid::Container(..)) => {
                let entry = self.load_container(resource, &value, was_clean)?;
                self.tables.write().add_container(entry.handle.layout.container, entry);
            }
            (Kind::Named, _) => {
                let (kind, owner, number) = record::decode_named(&value)?;
                let id = record::id_of(&resource.body).to_owned();
                let named = Named { resource, number };
                self.tables.write().named.insert((kind, owner, id), named);
            }
            (Kind::Offer, Rid::Offer(number)) => {
                self.tables.write().offers.insert(number, resource);
            }
            (Kind::Database | Kind::Container | Kind::Offer, rid) => {
                return Err(Error::Fault(format!("a catalog entry has the wrong rid {rid}")));
            }
        }
        Ok(())
    }

    /// Commits a change durably; the caller then makes it visible (R1).
    fn commit(&self, numbers: Numbers, mut writes: Vec<Write>) -> Result<()> {
        let value = record::encode_numbers(numbers);
        writes.push(Write::Put(Space::Meta, record::numbers_key(), value));
        let commit = Commit { writes, durability: Some(Durability::Sync), ..Commit::default() };
        Ok(self.store.commit(commit).wait()?)
    }

    /// Every live container.
    pub fn containers(&self) -> Vec<Arc<Container>> {
        self.tables.read().containers.values().map(|entry| entry.handle.clone()).collect()
    }
}

impl Tables {
    fn add_database(&mut self, number: u32, resource: Resource) {
        let name = record::id_of(&resource.body).to_owned();
        let containers = HashMap::new();
        self.names.insert(name, DatabaseNames { number, containers });
        self.databases.insert(number, resource);
    }

    fn add_container(&mut self, number: u32, entry: ContainerEntry) {
        if let Some(names) = self.names.get_mut(entry.handle.database_name()) {
            names.containers.insert(entry.handle.name().to_owned(), entry.handle.clone());
        }
        self.containers.insert(number, entry);
    }

    fn remove_container(&mut self, number: u32) {
        if let Some(entry) = self.containers.remove(&number)
            && let Some(names) = self.names.get_mut(entry.handle.database_name())
        {
            names.containers.remove(entry.handle.name());
        }
    }

    /// The database a path segment means: a name, else a rid.
    fn database(&self, segment: &str) -> Option<u32> {
        if let Some(names) = self.names.get(segment) {
            return Some(names.number);
        }
        match Rid::parse(segment) {
            Some(Rid::Database(number)) if self.databases.contains_key(&number) => Some(number),
            _ => None,
        }
    }

    /// The container two path segments mean. Names win over rids.
    fn container(&self, database: &str, segment: &str) -> Result<Option<Arc<Container>>> {
        if let Some(names) = self.names.get(database)
            && let Some(handle) = names.containers.get(segment)
        {
            return Ok(Some(handle.clone()));
        }
        let number = self.database(database).ok_or(Error::OwnerNotFound)?;
        let name = record::id_of(&self.databases[&number].body);
        if let Some(handle) = self.names.get(name).and_then(|n| n.containers.get(segment)) {
            return Ok(Some(handle.clone()));
        }
        Ok(match Rid::parse(segment) {
            Some(Rid::Container(owner, container)) if owner == number => {
                self.containers.get(&container).map(|entry| entry.handle.clone())
            }
            _ => None,
        })
    }

    fn resource_count(&self) -> usize {
        self.databases.len() + self.containers.len()
    }
}

/// Checks an etag condition of a resource.
fn check_etag(resource: &Resource, condition: &EtagCondition) -> Result<()> {
    match condition {
        EtagCondition::Is(etag) if *etag != resource.etag => Err(Error::PreconditionFailed),
        EtagCondition::None | EtagCondition::Any | EtagCondition::Is(_) => Ok(()),
    }
}

fn new_etag(ctx: &Ctx) -> String {
    ctx.random().guid()
}

fn put(kind: Kind, number: u32, value: &Value) -> Write {
    let bytes = Bytes::from(value.to_string().into_bytes());
    Write::Put(Space::Meta, record::key(kind, number), bytes)
}

fn remove(kind: Kind, number: u32) -> Write {
    Write::Delete(Space::Meta, record::key(kind, number))
}
