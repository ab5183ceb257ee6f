//! A store with an engine on it, opened for a command and closed in an orderly way.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use base::worker::Worker;
use engine::{Engine, Options};
use store::{Durability, Store};
use store_embedded::EmbeddedStore;
use store_memory::MemoryStore;

use crate::balance;
use crate::config::{Place, ServeConfig};

/// Files of a data directory that we look at from outside; `store_embedded` owns them.
const LOCK: &str = "LOCK";
const FORMAT: &str = "FORMAT";

/// Memory for caches of commands that read or write everything once.
const COMMAND_CACHE_BYTES: u64 = 64 << 20;

/// An open database.
pub struct Database {
    /// What to call.
    pub engine: Arc<Engine>,
    /// To be closed; memory needs no closing.
    store: Option<Arc<EmbeddedStore>>,
    /// Runs while the caches share their memory.
    balance: Option<Worker>,
}

impl Database {
    /// Opens a database for serving; one that does not exist is made.
    ///
    /// Items as they are served and the blocks that they and the index are read from share the cache.
    pub fn open(config: &ServeConfig) -> Result<Database> {
        let (items, blocks) = balance::first(config.cache_bytes);
        let options = Options {
            profile: config.profile,
            enforces_throughput: config.enforces_throughput,
            ..Options::new(items)
        };
        let mut database = Database::with(&config.place, config.durability, blocks, options)?;
        let store = database.store.as_ref();
        database.balance =
            store.map(|store| balance::start(database.engine.cache(), store.clone()));
        Ok(database)
    }

    /// Opens a database for a command; one that does not exist is made. No background work runs.
    pub fn for_command(directory: &Path) -> Result<Database> {
        let place = Place::Directory(directory.to_owned());
        let cache_bytes = COMMAND_CACHE_BYTES / 2;
        let options = Options { is_background: false, ..Options::new(cache_bytes) };
        Database::with(&place, Durability::Sync, cache_bytes, options)
    }

    /// Opens a database for a command; it must exist.
    pub fn existing(directory: &Path) -> Result<Database> {
        require_database(directory)?;
        Database::for_command(directory)
    }

    fn with(
        place: &Place,
        durability: Durability,
        cache_bytes: u64,
        options: Options,
    ) -> Result<Database> {
        let (store, closable): (Arc<dyn Store>, _) = match place {
            Place::Memory => (Arc::new(MemoryStore::new()), None),
            Place::Directory(path) => {
                let store = Arc::new(open_store(path, durability, cache_bytes)?);
                (store.clone(), Some(store))
            }
        };
        let engine = Engine::open(store, options).with_context(|| format!("data in {place}"))?;
        Ok(Database { engine: Arc::new(engine), store: closable, balance: None })
    }

    /// Stops background work, writes everything to disk and leaves the directory clean.
    pub fn close(self) -> Result<()> {
        drop(self.balance);
        drop(self.engine);
        match self.store {
            Some(store) => store.close().context("the data could not be closed in an orderly way"),
            None => Ok(()),
        }
    }
}

/// Opens the store in a directory. Its errors are sentences that say what to do.
pub fn open_store(
    path: &Path,
    durability: Durability,
    cache_bytes: u64,
) -> store::Result<EmbeddedStore> {
    let options =
        store_embedded::Options { durability, cache_bytes, ..store_embedded::Options::default() };
    EmbeddedStore::open(path, options)
}

/// Refuses a directory that holds nothing yet, rather than making an empty database of it.
pub fn require_database(directory: &Path) -> Result<()> {
    match directory.join(FORMAT).exists() {
        true => Ok(()),
        false => bail!(
            "{} holds no database. Name the directory of one with --data-dir.",
            directory.display()
        ),
    }
}

/// Whether a process has the directory open. Looking takes the lock for a moment.
pub fn is_in_use(directory: &Path) -> bool {
    let Ok(lock) = File::options().write(true).open(directory.join(LOCK)) else {
        return false;
    };
    matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock))
}
