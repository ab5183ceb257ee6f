//! Many connections that write until the server is gone.
//!
//! ```text
//! single   one worker's: created, replaced under its etag, deleted; its slot is anybody's
//! group    one worker's: created, replaced and deleted by a batch or by a stored procedure, always
//!          all of it
//! hot      everybody's: upserted
//! ```
//!
//! The number of a write decides the content of what it writes, so that whoever reads an item can
//! tell whether it is whole.

use std::sync::Arc;
use std::time::Duration;

use base::Random;
use client::{Client, Container, Error, Operation, Reply, Request, headers};
use model::partition_key::{Component, PartitionKey};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::history::{Doubt, History, Live, Name, Place, Version};
use crate::server::{Server, signal};

const DATABASE: &str = "crash";
/// Container, and its throughput: three physical partitions with a unique key, and one without.
pub const CONTAINERS: [(&str, u32); 2] = [("unique", 30_000), ("plain", 400)];
const WORKERS: usize = 20;
const KEYS: u64 = 7;
const SLOTS: u64 = 200;
const HOT: u64 = 3;

/// Does what a batch does, one operation in the callback of the one before, and returns the items.
/// An operation that is refused undoes those before it.
const WRITE_GROUP: &str = "function (operations) {
    var collection = getContext().getCollection(), items = [];
    next();
    function next() {
        if (items.length === operations.length) return getContext().getResponse().setBody(items);
        var operation = operations[items.length];
        var link = collection.getAltLink() + '/docs/' + operation.id;
        switch (operation.kind) {
            case 'create': return collection.createDocument(collection.getSelfLink(), operation.body, done);
            case 'replace': return collection.replaceDocument(link, operation.body, done);
            default: return collection.deleteDocument(link, function (error) { done(error, null); });
        }
    }
    function done(error, item) {
        if (error) throw error;
        items.push(item);
        next();
    }
}";

/// The containers.
pub fn container(number: usize) -> Container {
    Container::new(DATABASE, CONTAINERS[number].0)
}

/// A partition key of one string.
pub fn partition_key(key: &str) -> PartitionKey {
    PartitionKey(vec![Component::String(key.to_owned())])
}

/// Creates database and containers; there are no items yet.
pub async fn prepare(client: &Client) -> Live {
    client.send(&Request::create_database(DATABASE)).await.unwrap();
    for (number, (name, throughput)) in CONTAINERS.into_iter().enumerate() {
        let mut definition = json!({
            "id": name,
            "partitionKey": {"paths": ["/key"], "kind": "Hash", "version": 2},
        });
        if number == 0 {
            definition["uniqueKeyPolicy"] = json!({"uniqueKeys": [{"paths": ["/slot"]}]});
        }
        let request = container(number).create_with(&definition, Some(throughput));
        client.send(&request).await.unwrap();
        let procedure = container(number).create_procedure("writeGroup", WRITE_GROUP);
        client.send(&procedure).await.unwrap();
    }
    Live::new()
}

/// The text that a write puts into its items.
pub fn filling(op: u64) -> String {
    let random = Random::from_seed(op);
    let pieces = 1 + random.next() % 60;
    (0..pieces).map(|_| format!("{:016x}", random.next())).collect()
}

/// Writes for a time, then kills the server, and returns what is known then.
pub async fn run_until_killed(
    server: &Server,
    live: Live,
    history: History,
    random: &Random,
    time: Duration,
) -> History {
    let history = Arc::new(Mutex::new(history));
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..WORKERS {
        let mut worker = Worker {
            number,
            client: crate::client(server).with_timeout(Duration::from_secs(30)),
            history: history.clone(),
            random: Random::from_seed(random.next()),
            singles: Vec::new(),
            groups: Vec::new(),
        };
        worker.adopt(&live);
        tasks.spawn(async move { worker.run().await });
    }
    tokio::time::sleep(time).await;
    assert!(tasks.try_join_next().is_none(), "the server ended, or a worker failed, by itself");
    signal(server.id(), "KILL");
    while let Some(ended) = tasks.join_next().await {
        ended.expect("a worker only ends when the server is gone");
    }
    Arc::into_inner(history).expect("the workers are gone").into_inner()
}

/// One connection and what it owns.
struct Worker {
    number: usize,
    client: Client,
    history: Arc<Mutex<History>>,
    random: Random,
    singles: Vec<Single>,
    groups: Vec<Group>,
}

struct Single {
    name: Name,
    born: u64,
    etag: String,
}

struct Group {
    names: Vec<Name>,
    born: u64,
}

/// The server is gone.
struct Gone;

impl Worker {
    /// Takes over what workers of this number left.
    fn adopt(&mut self, live: &Live) {
        let mine = live.iter().filter(|(_, found)| found.worker == self.number);
        for (name, found) in mine {
            let (name, born) = (name.clone(), found.version.born);
            match &found.group {
                None => self.singles.push(Single { name, born, etag: found.version.etag.clone() }),
                // A group was born at once.
                Some(_) => match self.groups.iter_mut().find(|group| group.born == born) {
                    Some(group) => group.names.push(name),
                    None => self.groups.push(Group { names: vec![name], born }),
                },
            }
        }
    }

    async fn run(&mut self) {
        loop {
            let done = match self.random.next() % 20 {
                0..7 => self.create().await,
                7..11 => self.replace().await,
                11..13 => self.delete().await,
                13..16 => self.upsert_hot().await,
                16 => self.create_group().await,
                17..19 => self.replace_group().await,
                _ => self.delete_group().await,
            };
            if let Err(Gone) = done {
                return;
            }
        }
    }

    async fn create(&mut self) -> Result<(), Gone> {
        let op = self.history.lock().await.next_op();
        let name = self.name(format!("{}-{op}", self.number));
        let body = self.body(&name, op, op, &self.any_slot());
        let request = container(name.container).create(&partition_key(&name.key), body.to_string());
        if let Some(reply) = self.write(&name, op, false, &request).await? {
            let etag = reply.etag().expect("an item has an etag").to_owned();
            self.singles.push(Single { name, born: op, etag });
        }
        Ok(())
    }

    async fn replace(&mut self) -> Result<(), Gone> {
        let Some(at) = self.any(self.singles.len()) else { return Ok(()) };
        let (name, born) = (self.singles[at].name.clone(), self.singles[at].born);
        let op = self.history.lock().await.next_op();
        let body = self.body(&name, op, born, &self.any_slot());
        let request = container(name.container)
            .replace(&partition_key(&name.key), &name.id, body.to_string())
            .with(headers::IF_MATCH, &self.singles[at].etag);
        if let Some(reply) = self.write(&name, op, false, &request).await? {
            self.singles[at].etag = reply.etag().expect("an item has an etag").to_owned();
        }
        Ok(())
    }

    async fn delete(&mut self) -> Result<(), Gone> {
        let Some(at) = self.any(self.singles.len()) else { return Ok(()) };
        let name = self.singles[at].name.clone();
        let op = self.history.lock().await.next_op();
        let request = container(name.container).delete(&partition_key(&name.key), &name.id);
        let reply = self.write(&name, op, true, &request).await?;
        assert!(reply.is_some(), "{name:?} is only ours to delete");
        self.singles.swap_remove(at);
        Ok(())
    }

    async fn upsert_hot(&mut self) -> Result<(), Gone> {
        let op = self.history.lock().await.next_op();
        let name = self.name(format!("hot-{}", self.random.next() % HOT));
        // Nobody knows who created it.
        let body = self.body(&name, op, 0, &name.id);
        let request = container(name.container).upsert(&partition_key(&name.key), body.to_string());
        self.write(&name, op, false, &request).await.map(drop)
    }

    async fn create_group(&mut self) -> Result<(), Gone> {
        let op = self.history.lock().await.next_op();
        let first = self.name(format!("{}-{op}-0", self.number));
        let size = 2 + self.random.next() % 6;
        let names: Vec<Name> = (0..size)
            .map(|at| Name { id: format!("{}-{op}-{at}", self.number), ..first.clone() })
            .collect();
        let group = Group { names, born: op };
        let bodies = self.bodies(&group, op);
        let operations: Vec<_> = bodies.iter().map(|body| Operation::Create(body)).collect();
        if self.write_group(&group, op, &operations).await? {
            self.groups.push(group);
        }
        Ok(())
    }

    async fn replace_group(&mut self) -> Result<(), Gone> {
        let Some(at) = self.any(self.groups.len()) else { return Ok(()) };
        let op = self.history.lock().await.next_op();
        let group = self.groups.swap_remove(at);
        let bodies = self.bodies(&group, op);
        let both = group.names.iter().zip(&bodies);
        let operations: Vec<_> =
            both.map(|(name, body)| Operation::Replace(&name.id, body)).collect();
        let is_done = self.write_group(&group, op, &operations).await?;
        assert!(is_done, "a group is only ours to replace");
        self.groups.push(group);
        Ok(())
    }

    async fn delete_group(&mut self) -> Result<(), Gone> {
        let Some(at) = self.any(self.groups.len()) else { return Ok(()) };
        let op = self.history.lock().await.next_op();
        let group = self.groups.swap_remove(at);
        let names = group.names.iter();
        let operations: Vec<_> = names.map(|name| Operation::Delete(&name.id)).collect();
        let is_done = self.write_group(&group, op, &operations).await?;
        assert!(is_done, "a group is only ours to delete");
        Ok(())
    }

    /// Sends a write of one item; `None` if it was refused for its slot.
    async fn write(
        &self,
        name: &Name,
        op: u64,
        is_delete: bool,
        request: &Request,
    ) -> Result<Option<Reply>, Gone> {
        self.history.lock().await.sends(name, Doubt { op, is_delete });
        match self.client.send(request).await {
            Ok(reply) => {
                let version = (!is_delete).then(|| version_of(&reply.json().unwrap()));
                let place = place_of(&reply, name.container);
                self.history.lock().await.acknowledged(name, op, place, version);
                Ok(Some(reply))
            }
            Err(Error::Refused(reply)) => {
                let is_slot = reply.status == 409 && name.container == 0;
                assert!(is_slot, "{name:?} is refused: {reply}");
                self.history.lock().await.refused(name, op);
                Ok(None)
            }
            Err(_) => Err(Gone),
        }
    }

    /// Writes all items of a group at once; `false` if that was refused.
    async fn write_group(
        &self,
        group: &Group,
        op: u64,
        operations: &[Operation<'_>],
    ) -> Result<bool, Gone> {
        let Name { container: number, key, .. } = &group.names[0];
        let is_delete = matches!(operations[0], Operation::Delete(_));
        for name in &group.names {
            self.history.lock().await.sends(name, Doubt { op, is_delete });
        }
        let (container, key) = (container(*number), partition_key(key));
        let is_batch = self.random.next().is_multiple_of(2);
        let request = match is_batch {
            true => container.batch(&key, operations),
            false => container.execute("writeGroup", &key, arguments(operations)),
        };
        let reply = match self.client.send(&request).await {
            Ok(reply) => reply,
            // Only what a procedure does comes back as a refusal of the whole.
            Err(Error::Refused(reply)) if !is_batch && reply.substatus() == 409 => {
                return self.group_refused(group, op).await;
            }
            Err(Error::Refused(reply)) => panic!("a group is refused: {reply}"),
            Err(_) => return Err(Gone),
        };
        if reply.status != 200 {
            return self.group_refused(group, op).await;
        }
        let place = place_of(&reply, *number);
        let bodies = match is_batch {
            true => reply.results().unwrap().into_iter().map(|result| result.body).collect(),
            false => serde_json::from_value::<Vec<Option<Value>>>(reply.json().unwrap()).unwrap(),
        };
        let mut history = self.history.lock().await;
        for (name, body) in group.names.iter().zip(bodies) {
            history.acknowledged(name, op, place, body.as_ref().map(version_of));
        }
        Ok(true)
    }

    async fn group_refused(&self, group: &Group, op: u64) -> Result<bool, Gone> {
        let mut history = self.history.lock().await;
        group.names.iter().for_each(|name| history.refused(name, op));
        Ok(false)
    }

    /// A name somewhere.
    fn name(&self, id: String) -> Name {
        let container = (self.random.next() % CONTAINERS.len() as u64) as usize;
        Name { container, key: format!("key {}", self.random.next() % KEYS), id }
    }

    /// A slot that others want, too.
    fn any_slot(&self) -> String {
        format!("slot {}", self.random.next() % SLOTS)
    }

    fn any(&self, length: usize) -> Option<usize> {
        (length > 0).then(|| (self.random.next() % length as u64) as usize)
    }

    fn body(&self, name: &Name, op: u64, born: u64, slot: &str) -> Value {
        json!({
            "id": name.id, "key": name.key, "slot": slot, "op": op, "born": born,
            "worker": self.number, "filling": filling(op),
        })
    }

    fn bodies(&self, group: &Group, op: u64) -> Vec<String> {
        let body = |name: &Name| {
            let mut body = self.body(name, op, group.born, &name.id);
            body["group"] = json!(format!("group {}", group.born));
            body["size"] = json!(group.names.len());
            body.to_string()
        };
        group.names.iter().map(body).collect()
    }
}

/// The operations of a group as the argument of the procedure.
fn arguments(operations: &[Operation<'_>]) -> String {
    let parse = |body: &str| serde_json::from_str::<Value>(body).unwrap();
    let argument = |operation: &Operation<'_>| match operation {
        Operation::Create(body) => json!({"kind": "create", "body": parse(body)}),
        Operation::Replace(id, body) => json!({"kind": "replace", "id": id, "body": parse(body)}),
        Operation::Delete(id) => json!({"kind": "delete", "id": id}),
        Operation::Upsert(body) => unreachable!("groups are not upserted: {body}"),
    };
    json!([operations.iter().map(argument).collect::<Vec<_>>()]).to_string()
}

/// Where a write was committed.
pub fn place_of(reply: &Reply, container: usize) -> Place {
    let partition = (container, reply.partition().expect("a write names its partition"));
    Place { partition, lsn: reply.lsn().expect("a write has an LSN") }
}

/// The version in an item.
pub fn version_of(item: &Value) -> Version {
    let text = |name: &str| item[name].as_str().unwrap_or_else(|| panic!("{name} in {item}"));
    // Hot items may be born again, each time with another resource id.
    let born = match item["born"].as_u64().expect("every write says when its item was born") {
        0 => u64::MAX,
        born => born,
    };
    Version {
        op: item["op"].as_u64().expect("every write has a number"),
        born,
        etag: text("_etag").to_owned(),
        rid: text("_rid").to_owned(),
    }
}
