//! Databases.

use base::Ctx;
use model::{Rid, limits};
use serde_json::{Value, json};

use super::record::{self, Kind, Stamp};
use super::{Catalog, check_etag, new_etag, offers, put, remove};
use crate::ops::{EtagCondition, Resource, Throughput};
use crate::{Error, Result};

impl Catalog {
    pub fn create_database(
        &self,
        ctx: &Ctx,
        body: &Value,
        throughput: Option<Throughput>,
    ) -> Result<Resource> {
        let id = record::checked_id(body)?;
        throughput.map(offers::check).transpose()?;
        let mut numbers = self.writer.lock();
        {
            let tables = self.tables.read();
            if tables.names.contains_key(id.as_str()) {
                return Err(Error::Conflict);
            }
            if tables.resource_count() >= limits::RESOURCES_PER_ACCOUNT_MAX {
                return Err(too_many_resources());
            }
        }
        numbers.last += 1;
        let number = numbers.last;
        let rid = Rid::Database(number);
        let stamp = Stamp {
            rid,
            self_link: format!("dbs/{rid}/"),
            etag: new_etag(ctx),
            ts: ctx.now().as_secs(),
        };
        let extra = [("_colls", "colls/"), ("_users", "users/")];
        let resource = stamp.apply(record::user_part(body)?, &extra);
        let mut writes = vec![put(Kind::Database, number, &json!({"body": &*resource.body}))];
        let offer = throughput.map(|throughput| {
            numbers.last += 1;
            offers::new(ctx, numbers.last, &resource, throughput)
        });
        writes.extend(offer.iter().map(offers::write));
        self.commit(*numbers, writes)?;
        let mut tables = self.tables.write();
        tables.add_database(number, resource.clone());
        tables.add_offer(offer);
        Ok(resource)
    }

    pub fn read_database(&self, database: &str) -> Result<Resource> {
        let tables = self.tables.read();
        let number = tables.database(database).ok_or(Error::NotFound)?;
        Ok(tables.databases[&number].clone())
    }

    pub fn list_databases(&self) -> Vec<Resource> {
        self.tables.read().databases.values().cloned().collect()
    }

    /// Removes a database with everything in it. Returns the numbers of the containers dropped.
    pub fn delete_database(&self, database: &str, if_match: &EtagCondition) -> Result<Vec<u32>> {
        let numbers = self.writer.lock();
        let (number, writes, dropped) = {
            let tables = self.tables.read();
            let number = tables.database(database).ok_or(Error::NotFound)?;
            let resource = &tables.databases[&number];
            check_etag(resource, if_match)?;
            let containers = tables.containers.iter();
            let mine = containers
                .filter(|(_, entry)| entry.handle.database_rid() == Rid::Database(number));
            let dropped: Vec<u32> = mine.map(|(container, _)| *container).collect();
            let mut writes = vec![remove(Kind::Database, number)];
            for container in &dropped {
                writes.extend(self.drop_writes(&tables, *container));
            }
            writes.extend(tables.offer_of(Rid::Database(number)).map(|n| remove(Kind::Offer, n)));
            writes.extend(tables.named_of_database(number).map(|n| remove(Kind::Named, n)));
            (number, writes, dropped)
        };
        self.commit(*numbers, writes)?;
        let mut tables = self.tables.write();
        dropped.iter().for_each(|container| tables.forget_container(*container));
        tables.remove_offer_of(Rid::Database(number));
        tables.remove_named_of_database(number);
        if let Some(resource) = tables.databases.remove(&number) {
            tables.names.remove(record::id_of(&resource.body));
        }
        Ok(dropped)
    }
}

pub(super) fn too_many_resources() -> Error {
    Error::Forbidden(format!(
        "The account already has {} databases and containers, which is the limit.",
        limits::RESOURCES_PER_ACCOUNT_MAX
    ))
}
