//! A database under test: an engine on a store, a clock that stands still, and short words.
#![allow(dead_code, clippy::unwrap_used)] // Each test file uses its own part.

use std::sync::Arc;
use std::time::Duration;

use base::{Clock, Ctx, Deadline, ManualClock, Random, Timestamp};
use engine::ops::*;
use engine::{Container, Engine, Error, Options, Owner, Profile, Result, Scripted};
use item::{Draft, Value};
use model::ItemId;
use model::partition_key::PartitionKey;
use serde_json::json;
use store::Store;

/// A database with one container `d/c`.
pub struct Db {
    pub engine: Engine,
    pub clock: Arc<ManualClock>,
    pub store: Arc<dyn Store>,
    _directory: Option<tempfile::TempDir>,
}

/// Runs a test on every store, and with queries run either way.
pub fn on_every_store(test: impl Fn(&Db)) {
    let mut db = Db::on(Arc::new(store_memory::MemoryStore::new()), None);
    let options = Options { profile: Profile::Modern, ..options(&db.clock) };
    db.engine = Engine::open(db.store.clone(), options).unwrap();
    test(&db);
    let directory = tempfile::tempdir().unwrap();
    let options = store_embedded::Options::default();
    let store =
        store_embedded::EmbeddedStore::open(directory.path().join("data"), options).unwrap();
    test(&Db::on(Arc::new(store), Some(directory)));
}

pub fn start() -> Timestamp {
    Timestamp::from_millis(1_800_000_000_000)
}

impl Db {
    pub fn memory() -> Db {
        Db::on(Arc::new(store_memory::MemoryStore::new()), None)
    }

    pub fn on(store: Arc<dyn Store>, directory: Option<tempfile::TempDir>) -> Db {
        let clock = Arc::new(ManualClock::new(start()));
        let engine = Engine::open(store.clone(), options(&clock)).unwrap();
        Db { engine, clock, store, _directory: directory }
    }

    /// A database in memory whose scripts have other limits.
    pub fn with_scripts(scripts: script::PoolOptions) -> Db {
        Db::on_with_scripts(Arc::new(store_memory::MemoryStore::new()), scripts)
    }

    pub fn on_with_scripts(store: Arc<dyn Store>, scripts: script::PoolOptions) -> Db {
        let clock = Arc::new(ManualClock::new(start()));
        let options = Options { scripts, ..options(&clock) };
        let engine = Engine::open(store.clone(), options).unwrap();
        Db { engine, clock, store, _directory: None }
    }

    /// The same data under a new engine, as after a restart.
    pub fn reopened(&self) -> Engine {
        Engine::open(self.store.clone(), options(&self.clock)).unwrap()
    }

    pub fn ctx(&self) -> Ctx {
        self.engine.ctx(Deadline::never())
    }

    pub fn advance(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    /// Creates `d/c` from a definition, with the partition key `/pk` by default.
    pub fn container(&self, definition: serde_json::Value) -> Arc<Container> {
        self.container_with(definition, None)
    }

    pub fn container_with(
        &self,
        mut definition: serde_json::Value,
        throughput: Option<Throughput>,
    ) -> Arc<Container> {
        let ctx = self.ctx();
        if self.engine.read_database("d").is_err() {
            self.engine.create_database(&ctx, &json!({"id": "d"}), None).unwrap();
        }
        if definition.get("id").is_none() {
            definition["id"] = "c".into();
        }
        let id = definition["id"].as_str().unwrap().to_owned();
        if definition.get("partitionKey").is_none() {
            definition["partitionKey"] = json!({"paths": ["/pk"], "kind": "Hash", "version": 2});
        }
        self.engine.create_container(&ctx, "d", &definition, throughput).unwrap();
        self.engine.container("d", &id).unwrap()
    }

    pub fn write(
        &self,
        container: &Arc<Container>,
        key: &str,
        write: WriteItem,
    ) -> Result<ItemAnswer> {
        let key = PartitionKey::parse(key).unwrap();
        let guard = now(self.engine.lock(container, &key));
        self.engine.write(&self.ctx(), guard, write).wait()
    }

    pub fn create(&self, c: &Arc<Container>, body: serde_json::Value) -> Result<ItemAnswer> {
        self.write(c, &key_of(&body), plain(WriteKind::Create(draft(&body))))
    }

    pub fn upsert(&self, c: &Arc<Container>, body: serde_json::Value) -> Result<ItemAnswer> {
        self.write(c, &key_of(&body), plain(WriteKind::Upsert(draft(&body))))
    }

    pub fn replace(
        &self,
        c: &Arc<Container>,
        id: &str,
        body: serde_json::Value,
    ) -> Result<ItemAnswer> {
        self.write(c, &key_of(&body), plain(WriteKind::Replace(item_id(id), draft(&body))))
    }

    pub fn delete(&self, c: &Arc<Container>, key: &str, id: &str) -> Result<ItemAnswer> {
        self.write(c, key, plain(WriteKind::Delete(item_id(id))))
    }

    pub fn patch(
        &self,
        c: &Arc<Container>,
        key: &str,
        id: &str,
        body: serde_json::Value,
    ) -> Result<ItemAnswer> {
        let body = Value::parse(body.to_string().as_bytes()).unwrap();
        let patch = item::patch::parse(&body).unwrap();
        self.write(c, key, plain(WriteKind::Patch(item_id(id), patch)))
    }

    /// Adds a script to `d/c`.
    pub fn upload(&self, kind: ResourceKind, body: &serde_json::Value) {
        let owner = Owner { database: "d", container: Some("c"), user: None };
        self.engine.create_resource(&self.ctx(), kind, owner, body, true).unwrap();
    }

    pub fn procedure(&self, id: &str, body: &str) {
        self.upload(ResourceKind::StoredProcedure, &json!({"id": id, "body": body}));
    }

    /// Has a procedure run under a key.
    pub fn execute(
        &self,
        c: &Arc<Container>,
        (procedure, key): (&str, &str),
        arguments: serde_json::Value,
    ) -> Scripted<ScriptAnswer> {
        let guard = now(self.engine.lock(c, &PartitionKey::parse(key).unwrap()));
        let arguments = Value::parse(arguments.to_string().as_bytes()).unwrap();
        let arguments = arguments.as_array().unwrap().to_vec();
        let execution = Execution { procedure: procedure.into(), arguments, is_logging: false };
        self.engine.execute(&self.ctx(), guard, execution)
    }

    pub fn read(&self, c: &Container, key: &str, id: &str) -> Result<serde_json::Value> {
        let key = PartitionKey::parse(key).unwrap();
        let answer = self.engine.read_item(&self.ctx(), c, &key, id, &EtagCondition::None, None)?;
        Ok(body(&answer))
    }

    pub fn batch(
        &self,
        c: &Arc<Container>,
        key: &str,
        operations: Vec<BatchOperation>,
    ) -> Result<BatchAnswer> {
        let key = PartitionKey::parse(key).unwrap();
        let guard = now(self.engine.lock(c, &key));
        self.engine.batch(&self.ctx(), guard, operations).wait()
    }

    pub fn changes(&self, c: &Container, scope: &Scope, start: ChangeFeedStart) -> ChangeFeedPage {
        let request = ChangeFeedRequest {
            mode: ChangeFeedMode::LatestVersion,
            start,
            is_enveloped: false,
            items_max: None,
            session: None,
        };
        self.engine.change_feed(&self.ctx(), c, scope, &request).unwrap()
    }

    /// All ids of the read feed, page by page.
    pub fn feed_ids(&self, c: &Container, scope: &Scope, items_max: usize) -> Vec<String> {
        let mut ids = Vec::new();
        let mut continuation = None;
        loop {
            let request =
                PageRequest { items_max: Some(items_max), continuation, ..PageRequest::default() };
            let page = self.engine.read_feed(&self.ctx(), c, scope, &request).unwrap();
            assert!(page.rows.len() <= items_max);
            ids.extend(page.rows.iter().map(|row| id_of(row)));
            continuation = page.continuation;
            if continuation.is_none() {
                return ids;
            }
        }
    }

    /// Does background work until none is left.
    pub fn work(&self) {
        while self.engine.work().unwrap() {}
    }

    pub fn verify(&self) {
        let report = self.engine.verify(|_| ()).unwrap();
        assert_eq!(report.findings, Vec::<String>::new());
    }
}

fn options(clock: &Arc<ManualClock>) -> Options {
    Options {
        clock: clock.clone() as Arc<dyn Clock>,
        random: Arc::new(Random::from_seed(7)),
        is_background: false,
        ..Options::new(1 << 20)
    }
}

/// The value of a future that does not wait.
pub fn now<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// What a procedure has answered.
pub fn script_body(answer: &ScriptAnswer) -> serde_json::Value {
    serde_json::from_slice(answer.body.as_ref().unwrap()).unwrap()
}

pub fn draft(body: &serde_json::Value) -> Draft {
    Draft::parse(body.to_string().as_bytes()).unwrap()
}

pub fn item_id(id: &str) -> ItemId {
    ItemId::new(id).unwrap()
}

pub fn plain(kind: WriteKind) -> WriteItem {
    WriteItem {
        kind,
        if_match: EtagCondition::None,
        if_none_match: EtagCondition::None,
        is_indexed: true,
    }
}

pub fn create(body: serde_json::Value) -> BatchOperation {
    BatchOperation::Write(plain(WriteKind::Create(draft(&body))))
}

pub fn body(answer: &ItemAnswer) -> serde_json::Value {
    serde_json::from_slice(&answer.item.as_ref().unwrap().text()).unwrap()
}

/// The partition key of a body at `/pk`, as a header.
fn key_of(body: &serde_json::Value) -> String {
    match body.get("pk") {
        Some(key) => json!([key]).to_string(),
        None => "[{}]".into(),
    }
}

pub fn id_of(row: &[u8]) -> String {
    let value: serde_json::Value = serde_json::from_slice(row).unwrap();
    value["id"].as_str().unwrap().to_owned()
}

pub fn ids(rows: &[bytes::Bytes]) -> Vec<String> {
    rows.iter().map(|row| id_of(row)).collect()
}

pub fn is_conflict<T>(result: &Result<T>) -> bool {
    matches!(result, Err(Error::Conflict))
}
