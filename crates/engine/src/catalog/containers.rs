//! Containers: creation with their physical partitions, replacement of their shape, dropping.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use base::Ctx;
use bytes::Bytes;
use model::container::ContainerDefinition;
use model::partition_key::{HashVersion, PartitionKey};
use model::{Rid, limits};
use serde_json::{Map, Value, json};
use storage::keys;
use storage::shape::{Layout, Shape, Start};
use storage::visibility::Erasure;
use store::{ScanOptions, Space, Write};

use super::databases::too_many_resources;
use super::record::{self, Kind, Stamp};
use super::{Catalog, ContainerEntry, Tables, check_etag, new_etag, offers, put, remove};
use crate::ops::{EtagCondition, Resource, Throughput};
use crate::{Container, Error, Result};

/// How far sequences jump after a crash: more than can have been given out and lost.
const SEQUENCE_GAP: u64 = 1 << 20;

const EXTRA: [(&str, &str); 5] = [
    ("_docs", "docs/"),
    ("_sprocs", "sprocs/"),
    ("_triggers", "triggers/"),
    ("_udfs", "udfs/"),
    ("_conflicts", "conflicts/"),
];

fn parse(body: &Value) -> Result<ContainerDefinition> {
    let definition = ContainerDefinition::parse(body);
    let definition = definition.map_err(|error| Error::Invalid(error.to_string()))?;
    let check = |text: &str, others: &[&str]| {
        query::check_computed(text, others).map_err(|error| error.to_string())
    };
    definition.check_computed(&check).map_err(|error| Error::Invalid(error.to_string()))?;
    Ok(definition)
}

fn body_of(definition: &ContainerDefinition) -> Map<String, Value> {
    definition.to_json().as_object().cloned().unwrap_or_default()
}

impl Catalog {
    pub fn create_container(
        &self,
        ctx: &Ctx,
        database: &str,
        body: &Value,
        throughput: Option<Throughput>,
    ) -> Result<Resource> {
        let definition = Arc::new(parse(body)?);
        throughput.map(offers::check).transpose()?;
        let mut numbers = self.writer.lock();
        let (owner, database_name, shared) = {
            let tables = self.tables.read();
            let owner = tables.database(database).ok_or(Error::OwnerNotFound)?;
            let name = record::id_of(&tables.databases[&owner].body).to_owned();
            let containers = &tables.names[&name].containers;
            if containers.contains_key(&definition.id) {
                return Err(Error::Conflict);
            }
            if tables.resource_count() >= limits::RESOURCES_PER_ACCOUNT_MAX {
                return Err(too_many_resources());
            }
            let shared = tables.throughput_of(Rid::Database(owner));
            if shared.is_some()
                && throughput.is_none()
                && tables.sharing(owner) >= limits::SHARED_CONTAINERS_MAX
            {
                return Err(Error::Forbidden(format!(
                    "At most {} containers can share the throughput of a database. Give the \
                     container throughput of its own.",
                    limits::SHARED_CONTAINERS_MAX
                )));
            }
            (owner, name, shared)
        };
        let own = match (throughput, shared) {
            (Some(own), _) => Some(own),
            (None, Some(_)) => None,
            (None, None) => Some(Throughput::Manual(limits::THROUGHPUT_MIN)),
        };
        let partitions = match definition.partition_key.version {
            HashVersion::V1 => 1,
            HashVersion::V2 => offers::partitions(own.or(shared)),
        };
        numbers.last += 1;
        let number = numbers.last;
        let first_log = numbers.log;
        numbers.log += u32::from(partitions);
        let rid = Rid::Container(owner, number);
        let stamp = Stamp {
            rid,
            self_link: format!("dbs/{}/colls/{rid}/", Rid::Database(owner)),
            etag: new_etag(ctx),
            ts: ctx.now().as_secs(),
        };
        let resource = stamp.apply(body_of(&definition), &EXTRA);
        let layout = Layout::new(
            (owner, number),
            definition.partition_key.clone(),
            partitions,
            Start { sequence: 0, first_log },
            |log| self.store.view().position(log),
        );
        let names = (database_name.as_str(), definition.id.as_str());
        let shape = Shape::new(definition.clone());
        let handle = Container::new(layout, shape, names, Vec::new(), self.store.clone());
        let entry = ContainerEntry {
            resource: resource.clone(),
            handle: Arc::new(handle),
            first_log,
            retired: Vec::new(),
        };
        let offer = own.map(|throughput| {
            numbers.last += 1;
            offers::new(ctx, numbers.last, &resource, throughput)
        });
        let mut writes = vec![put(Kind::Container, number, &encode(&entry))];
        writes.extend(offer.iter().map(offers::write));
        self.commit(*numbers, writes)?;
        let mut tables = self.tables.write();
        tables.add_container(number, entry);
        tables.add_offer(offer);
        Ok(resource)
    }

    pub fn read_container(&self, database: &str, container: &str) -> Result<Resource> {
        let tables = self.tables.read();
        let handle = tables.container(database, container)?.ok_or(Error::NotFound)?;
        let entry = tables.containers.get(&handle.layout.container).ok_or(Error::NotFound)?;
        Ok(entry.resource.clone())
    }

    /// The handle two path segments mean.
    pub fn container(&self, database: &str, container: &str) -> Result<Arc<Container>> {
        self.tables.read().container(database, container)?.ok_or(Error::OwnerNotFound)
    }

    pub fn list_containers(&self, database: &str) -> Result<Vec<Resource>> {
        let tables = self.tables.read();
        let owner = Rid::Database(tables.database(database).ok_or(Error::OwnerNotFound)?);
        let mine = tables.containers.values().filter(|entry| entry.handle.database_rid() == owner);
        Ok(mine.map(|entry| entry.resource.clone()).collect())
    }

    /// Replaces a container's definition. Returns the handle, and whether its index must change.
    pub fn replace_container(
        &self,
        ctx: &Ctx,
        database: &str,
        container: &str,
        body: &Value,
        if_match: &EtagCondition,
    ) -> Result<(Resource, Arc<Container>, bool)> {
        let numbers = self.writer.lock();
        let mut entry = {
            let tables = self.tables.read();
            let handle = tables.container(database, container)?.ok_or(Error::NotFound)?;
            tables.containers[&handle.layout.container].clone()
        };
        check_etag(&entry.resource, if_match)?;
        let old = entry.handle.definition();
        let new = Arc::new(parse(body)?);
        ContainerDefinition::check_replacement(&old, &new)
            .map_err(|error| Error::Invalid(error.to_string()))?;
        let is_reindexed = index::Policy::differs(&old, &new);
        if is_reindexed {
            entry.retired.push(old.to_json());
        }
        let stamp = Stamp {
            rid: entry.resource.rid,
            self_link: entry.resource.body["_self"].as_str().unwrap_or_default().to_owned(),
            etag: new_etag(ctx),
            ts: ctx.now().as_secs(),
        };
        entry.resource = stamp.apply(body_of(&new), &EXTRA);
        let number = entry.handle.layout.container;
        self.commit(*numbers, vec![put(Kind::Container, number, &encode(&entry))])?;
        let handle = entry.handle.clone();
        let resource = entry.resource.clone();
        let retired = compile(&entry.retired)?;
        self.tables.write().containers.insert(number, entry);
        handle.reshape(new, retired);
        Ok((resource, handle, is_reindexed))
    }

    /// Notes that all items have the terms of the policy in force, if it is still this one.
    pub fn finish_transformation(&self, container: &Container, passes: usize) -> Result<bool> {
        let numbers = self.writer.lock();
        let number = container.layout.container;
        let Some(mut entry) = self.tables.read().containers.get(&number).cloned() else {
            return Ok(true);
        };
        if entry.retired.len() != passes {
            return Ok(false); // Another change came meanwhile: its policy is not done yet.
        }
        entry.retired.clear();
        self.commit(*numbers, vec![put(Kind::Container, number, &encode(&entry))])?;
        self.tables.write().containers.insert(number, entry);
        Arc::make_mut(&mut container.shape.write()).retired.clear();
        container.progress.store(100, Ordering::Relaxed);
        Ok(true)
    }

    /// Drops a container: it is gone at once, its data is removed in the background.
    pub fn delete_container(
        &self,
        database: &str,
        container: &str,
        if_match: &EtagCondition,
    ) -> Result<u32> {
        let numbers = self.writer.lock();
        let (number, writes) = {
            let tables = self.tables.read();
            let handle = tables.container(database, container)?.ok_or(Error::NotFound)?;
            let number = handle.layout.container;
            check_etag(&tables.containers[&number].resource, if_match)?;
            (number, self.drop_writes(&tables, number))
        };
        self.commit(*numbers, writes)?;
        self.tables.write().forget_container(number);
        Ok(number)
    }

    pub(super) fn drop_writes(&self, tables: &Tables, container: u32) -> Vec<Write> {
        let marker = Write::Put(Space::Meta, keys::dropped(container), Bytes::from_static(b"{}"));
        let mut writes = vec![remove(Kind::Container, container), marker];
        let rid = tables.containers[&container].handle.rid();
        writes.extend(tables.offer_of(rid).map(|number| remove(Kind::Offer, number)));
        let scripts = tables.scripts_of_container(container);
        writes.extend(scripts.map(|number| remove(Kind::Named, number)));
        writes
    }

    pub(super) fn load_container(
        &self,
        resource: Resource,
        value: &Value,
        was_clean: bool,
    ) -> Result<ContainerEntry> {
        let Rid::Container(database, number) = resource.rid else {
            return Err(Error::Fault("a container entry has the wrong rid".into()));
        };
        let word = |name: &str| {
            let number = value.get(name).and_then(Value::as_u64);
            number.ok_or_else(|| Error::Fault(format!("a container entry has no {name}")))
        };
        let (partitions, first_log) = (word("partitions")? as u16, word("firstLog")? as u32);
        let retired = value.get("retired").and_then(Value::as_array).cloned().unwrap_or_default();
        let definition = Arc::new(parse(&resource.body)?);
        let view = self.store.view();
        let sequence = view.reader().get(Space::Meta, &keys::sequence(number))?;
        let sequence = sequence.and_then(|v| Some(u64::from_le_bytes(v[..].try_into().ok()?)));
        let gap = if was_clean { 0 } else { SEQUENCE_GAP };
        let start = Start { sequence: sequence.unwrap_or(0) + gap, first_log };
        let key_definition = definition.partition_key.clone();
        let layout = Layout::new((database, number), key_definition, partitions, start, |log| {
            view.position(log)
        });
        let mut shape = Shape::new(definition.clone());
        shape.retired = compile(&retired)?;
        let erasures = self.load_erasures(&layout)?;
        let database_name = {
            let tables = self.tables.read();
            let owner = tables.databases.get(&database);
            let owner = owner.ok_or_else(|| Error::Fault("a container has no database".into()))?;
            record::id_of(&owner.body).to_owned()
        };
        let names = (database_name.as_str(), definition.id.as_str());
        let handle = Container::new(layout, shape, names, erasures, self.store.clone());
        Ok(ContainerEntry { resource, handle: Arc::new(handle), first_log, retired })
    }

    fn load_erasures(&self, layout: &Layout) -> Result<Vec<Erasure>> {
        let view = self.store.view();
        let mut erasures = Vec::new();
        for partition in &layout.partitions {
            let range = partition.place.erasures();
            for row in view.reader().scan(Space::Meta, &range, ScanOptions::default())?.rows {
                let damaged = || Error::Fault("a deletion by partition key is damaged".into());
                let (lsn, key) = row.value.split_first_chunk::<8>().ok_or_else(damaged)?;
                let key = std::str::from_utf8(key).map_err(|_| damaged())?;
                let key = PartitionKey::parse(key).map_err(|_| damaged())?;
                let lsn = u64::from_be_bytes(*lsn);
                erasures.push(Erasure { key, partition: partition.number, lsn });
            }
        }
        Ok(erasures)
    }
}

impl Tables {
    pub(super) fn forget_container(&mut self, number: u32) {
        if let Some(entry) = self.containers.get(&number) {
            entry.handle.is_dropped.store(true, Ordering::Release);
            let rid = entry.handle.rid();
            self.remove_offer_of(rid);
        }
        self.remove_scripts_of_container(number);
        self.remove_container(number);
    }

    fn sharing(&self, database: u32) -> usize {
        let mine = self
            .containers
            .values()
            .filter(|entry| entry.handle.database_rid() == Rid::Database(database));
        mine.filter(|entry| self.throughput_of(entry.handle.rid()).is_none()).count()
    }
}

fn encode(entry: &ContainerEntry) -> Value {
    json!({
        "partitions": entry.handle.layout.partitions.len(),
        "firstLog": entry.first_log,
        "retired": entry.retired,
        "body": &*entry.resource.body,
    })
}

/// The indexing policies of earlier definitions.
fn compile(definitions: &[Value]) -> Result<Vec<index::Policy>> {
    let compile = |definition: &Value| {
        let definition = ContainerDefinition::parse(definition);
        definition
            .map(|definition| index::Policy::of(&definition))
            .map_err(|error| Error::Fault(format!("a retired policy is damaged: {error}")))
    };
    definitions.iter().map(compile).collect()
}

impl Container {
    /// Puts a new definition in force. Waits for the writers that decided under the old one.
    fn reshape(&self, definition: Arc<ContainerDefinition>, retired: Vec<index::Policy>) {
        let mut shape = Shape::new(definition);
        shape.retired = retired;
        if !shape.retired.is_empty() {
            self.progress.store(0, Ordering::Relaxed);
        }
        *self.shape.write() = Arc::new(shape);
    }
}
