//! The resource model and its operations: routing, transactions, consistency, feed, charge.
//!
//! The API is the one an ideal Rust client would like; REST does not shape it. Everything is plain
//! functions on a published view, except that a lock is waited for asynchronously and a decided
//! write is answered by a [`Pending`].
//!
//! **`engine` knows no status code and no header. It knows a store only by its trait.**

mod background;
mod batch;
mod catalog;
pub mod charge;
mod container;
mod continuation;
mod error;
mod explain;
mod export;
mod feed;
mod items;
mod lock;
pub mod ops;
mod parsed;
mod pending;
mod query;
mod receipt;
mod schema;
mod scripts;
mod scripts_check;
mod source;
mod throughput;
mod transaction;
mod verify;

pub use catalog::{OfferMigration, Owner, minimum_throughput};
pub use charge::Profile;
pub use container::{Container, PartitionStatistics, RangeInfo};
pub use error::{Error, RefusedError, Result, ScriptError};
pub use explain::Explanation;
pub use lock::PartitionGuard;
pub use pending::Pending;
pub use receipt::{Bill, Line, Receipt, Work};
pub use scripts::Scripted;
pub use throughput::{ContainerUsage, PartitionUsage};
pub use verify::VerifyReport;

use std::future::Future;
use std::sync::Arc;

use base::{Clock, Ctx, Deadline, Random};
use bytes::Bytes;
use model::limits;
use model::partition_key::PartitionKey;
use parking_lot::Mutex;
use serde_json::Value;
use storage::cache::ItemCache;
use storage::keys::meta;
use storage::shape::LogicalKey;
use store::{Commit, Durability, Space, Store, Write};

use background::Background;
use catalog::Catalog;
use lock::Locks;
use ops::{EtagCondition, Resource, ResourceKind, ResourceStatus, Throughput};
use scripts::{Programs, Scripts};

/// What an engine is given besides its store.
pub struct Options {
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    /// Where randomness comes from.
    pub random: Arc<Random>,
    /// Bytes of items kept in memory; 0 keeps none.
    pub cache_bytes: u64,
    /// Largest logical partition in bytes of item text.
    pub logical_partition_bytes_max: u64,
    /// The threads and limits of scripts.
    pub scripts: script::PoolOptions,
    /// Whether background work (expiry, dropping, index changes) runs on a thread of its own.
    /// Without it, call [`Engine::work`].
    pub is_background: bool,
    /// The price list.
    pub profile: Profile,
    /// Whether requests beyond the provisioned throughput are refused.
    pub enforces_throughput: bool,
}

impl Options {
    /// The machine's clock, fresh randomness, the service's limits.
    pub fn new(cache_bytes: u64) -> Options {
        Options {
            clock: Arc::new(base::SystemClock),
            random: Arc::new(Random::from_entropy()),
            cache_bytes,
            logical_partition_bytes_max: limits::LOGICAL_PARTITION_BYTES_MAX,
            scripts: script::PoolOptions::default(),
            is_background: true,
            profile: Profile::default(),
            enforces_throughput: false,
        }
    }
}

/// The database. Share it as `Arc<Engine>`.
pub struct Engine {
    core: Arc<Core>,
    background: Background,
}

/// What requests and background work share.
pub(crate) struct Core {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) catalog: Catalog,
    pub(crate) cache: Arc<ItemCache>,
    pub(crate) locks: Locks,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<Random>,
    pub(crate) seal_key: [u8; 32],
    pub(crate) parsed: parsed::Parsed,
    pub(crate) scripts: Scripts,
    pub(crate) programs: Programs,
    pub(crate) logical_partition_bytes_max: u64,
    pub(crate) profile: Profile,
    pub(crate) enforces_throughput: bool,
    pub(crate) buckets: throughput::Buckets,
    pub(crate) dropping: Mutex<background::Dropping>,
}

impl Engine {
    /// Opens the database a store holds; an empty store becomes an empty database.
    pub fn open(store: Arc<dyn Store>, options: Options) -> Result<Engine> {
        let was_clean = store.recovered().was_clean;
        let cache_bytes = if store.limits().is_shared { 0 } else { options.cache_bytes };
        let core = Arc::new(Core {
            seal_key: seal_key(&*store)?,
            catalog: Catalog::open(store.clone(), was_clean)?,
            cache: Arc::new(ItemCache::new(cache_bytes)),
            locks: Locks::new(),
            parsed: parsed::Parsed::default(),
            scripts: Scripts::new(options.scripts),
            programs: Programs::default(),
            clock: options.clock,
            random: options.random,
            logical_partition_bytes_max: options.logical_partition_bytes_max,
            profile: options.profile,
            enforces_throughput: options.enforces_throughput,
            buckets: throughput::Buckets::default(),
            dropping: Mutex::default(),
            store,
        });
        let background = Background::start(&core, options.is_background);
        Ok(Engine { core, background })
    }

    /// The cache of the items that were read.
    pub fn cache(&self) -> Arc<dyn base::Cache> {
        self.core.cache.clone()
    }

    /// Where time comes from.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.core.clock
    }

    /// The store below, for backup and figures.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.core.store
    }

    /// A context for one request.
    pub fn ctx(&self, deadline: Deadline) -> Ctx {
        self.core.ctx(deadline)
    }

    /// A secret of this account that survives restarts.
    pub fn seal_key(&self) -> &[u8; 32] {
        &self.core.seal_key
    }

    /// The name of the account.
    pub fn account_id(&self) -> &str {
        "cosmolabe"
    }

    /// Does the background work that is due, once, on this thread. Returns whether more is left.
    pub fn work(&self) -> Result<bool> {
        background::step(&self.core)
    }

    /// Creates a database.
    pub fn create_database(
        &self,
        ctx: &Ctx,
        body: &Value,
        throughput: Option<Throughput>,
    ) -> Result<Resource> {
        self.core.catalog.create_database(ctx, body, throughput)
    }

    /// Reads a database, by name or rid.
    pub fn read_database(&self, database: &str) -> Result<Resource> {
        self.core.catalog.read_database(database)
    }

    /// Every database.
    pub fn list_databases(&self) -> Vec<Resource> {
        self.core.catalog.list_databases()
    }

    /// Deletes a database with everything in it.
    pub fn delete_database(
        &self,
        _ctx: &Ctx,
        database: &str,
        if_match: &EtagCondition,
    ) -> Result<()> {
        self.core.catalog.delete_database(database, if_match)?;
        self.background.wake();
        Ok(())
    }

    /// Creates a container with its physical partitions.
    pub fn create_container(
        &self,
        ctx: &Ctx,
        database: &str,
        body: &Value,
        throughput: Option<Throughput>,
    ) -> Result<Resource> {
        self.core.catalog.create_container(ctx, database, body, throughput)
    }

    /// Reads a container, by names or rids.
    pub fn read_container(&self, database: &str, container: &str) -> Result<Resource> {
        self.core.catalog.read_container(database, container)
    }

    /// Every container of a database.
    pub fn list_containers(&self, database: &str) -> Result<Vec<Resource>> {
        self.core.catalog.list_containers(database)
    }

    /// Replaces the definition of a container. A changed indexing policy takes effect in the
    /// background; items that have expired under the old time to live stay gone.
    pub fn replace_container(
        &self,
        ctx: &Ctx,
        database: &str,
        container: &str,
        body: &Value,
        if_match: &EtagCondition,
    ) -> Result<Resource> {
        self.read_container(database, container)?;
        let handle = self.core.catalog.container(database, container)?;
        background::purge_expired(&self.core, &handle)?;
        let (resource, _, is_reindexed) =
            self.core.catalog.replace_container(ctx, database, container, body, if_match)?;
        if is_reindexed {
            self.background.wake();
        }
        Ok(resource)
    }

    /// Drops a container. Its data is removed in the background.
    pub fn delete_container(
        &self,
        _ctx: &Ctx,
        database: &str,
        container: &str,
        if_match: &EtagCondition,
    ) -> Result<()> {
        self.core.catalog.delete_container(database, container, if_match)?;
        self.background.wake();
        Ok(())
    }

    /// The handle of a container, by names or rids.
    pub fn container(&self, database: &str, container: &str) -> Result<Arc<Container>> {
        self.core.catalog.container(database, container)
    }

    /// Every live container.
    pub fn containers(&self) -> Vec<Arc<Container>> {
        self.core.catalog.containers()
    }

    /// Creates a user, permission, client encryption key or script.
    pub fn create_resource(
        &self,
        ctx: &Ctx,
        kind: ResourceKind,
        owner: Owner<'_>,
        body: &Value,
        is_upsert: bool,
    ) -> Result<(ResourceStatus, Resource)> {
        self.core.catalog.create_resource(ctx, kind, owner, body, is_upsert)
    }

    /// Reads a user, permission, client encryption key or script, by name or rid.
    pub fn read_resource(
        &self,
        kind: ResourceKind,
        owner: Owner<'_>,
        id: &str,
    ) -> Result<Resource> {
        self.core.catalog.read_resource(kind, owner, id)
    }

    /// Every resource of a kind below an owner.
    pub fn list_resources(&self, kind: ResourceKind, owner: Owner<'_>) -> Result<Vec<Resource>> {
        self.core.catalog.list_resources(kind, owner)
    }

    /// Replaces a user, permission, client encryption key or script.
    pub fn replace_resource(
        &self,
        ctx: &Ctx,
        kind: ResourceKind,
        owner: Owner<'_>,
        id: &str,
        body: &Value,
        if_match: &EtagCondition,
    ) -> Result<Resource> {
        self.core.catalog.replace_resource(ctx, kind, owner, id, body, if_match)
    }

    /// Deletes a user with its permissions, a permission, client encryption key or script.
    pub fn delete_resource(
        &self,
        _ctx: &Ctx,
        kind: ResourceKind,
        owner: Owner<'_>,
        id: &str,
        if_match: &EtagCondition,
    ) -> Result<()> {
        self.core.catalog.delete_resource(kind, owner, id, if_match)
    }

    /// Every offer.
    pub fn list_offers(&self) -> Vec<Resource> {
        self.core.catalog.list_offers()
    }

    /// Reads an offer by its rid.
    pub fn read_offer(&self, rid: &str) -> Result<Resource> {
        self.core.catalog.read_offer(rid)
    }

    /// Replaces an offer.
    pub fn replace_offer(
        &self,
        ctx: &Ctx,
        rid: &str,
        body: &Value,
        migrate: Option<OfferMigration>,
    ) -> Result<Resource> {
        let offer = self.core.catalog.replace_offer(ctx, rid, body, migrate)?;
        self.core.buckets.forget_rates();
        Ok(offer)
    }

    /// What every container has spent since the start.
    pub fn usage(&self) -> Vec<ContainerUsage> {
        self.core.usage(self.core.clock.now())
    }

    /// The lock of one logical partition. Fair; dropping the future gives up the place.
    pub fn lock(
        &self,
        container: &Arc<Container>,
        key: &PartitionKey,
    ) -> impl Future<Output = PartitionGuard> + Send + use<> {
        let key = LogicalKey::new(&container.layout, key.clone());
        let core = self.core.clone();
        let container = container.clone();
        async move {
            let entry =
                core.locks.entry(container.layout.container, &key.bytes, || core.store.view());
            let pending = entry.lock_owned().await;
            PartitionGuard { pending, container, key }
        }
    }
}

impl Core {
    pub fn ctx(&self, deadline: Deadline) -> Ctx {
        Ctx::new(self.clock.clone(), self.random.clone(), deadline)
    }

    /// The lock of one logical partition, for background work on a thread of its own.
    pub fn lock_blocking(&self, container: &Arc<Container>, key: PartitionKey) -> PartitionGuard {
        let key = LogicalKey::new(&container.layout, key);
        let number = container.layout.container;
        let entry = self.locks.entry(number, &key.bytes, || self.store.view());
        let pending = tokio::sync::Mutex::blocking_lock_owned(entry);
        PartitionGuard { pending, container: container.clone(), key }
    }
}

/// The account's secret; made on first start.
fn seal_key(store: &dyn Store) -> Result<[u8; 32]> {
    let key: Bytes = [&[meta::ACCOUNT], &b"seal"[..]].concat().into();
    if let Some(value) = store.view().reader().get(Space::Meta, &key)? {
        return value[..]
            .try_into()
            .map_err(|_| Error::Fault("the account's secret is damaged".into()));
    }
    let secret = fresh_secret()?;
    let writes = vec![Write::Put(Space::Meta, key, Bytes::copy_from_slice(&secret))];
    let commit = Commit { writes, durability: Some(Durability::Sync), ..Commit::default() };
    store.commit(commit).wait()?;
    Ok(secret)
}

fn fresh_secret() -> Result<[u8; 32]> {
    let mut secret = [0; 32];
    getrandom::fill(&mut secret)
        .map_err(|error| Error::Fault(format!("the system has no randomness: {error}")))?;
    Ok(secret)
}
