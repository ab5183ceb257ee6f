//! A transaction that a script works in.
//!
//! It owns the lock of its logical partition and what it has staged, and nothing else that anybody
//! could wait for: between two operations the storage transaction is paused, so a script may think
//! as long as it is allowed to without holding up a new indexing policy or another partition.
//! Dropping it, on whatever thread, abandons everything and lets the next writer in.
//!
//! Point operations see staged, then pending writes. Queries read the newest view once everything
//! enqueued before this transaction is in it; since nobody else can write to the partition
//! meanwhile, that is what was there when the transaction began, without its own writes.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use base::Ctx;
use storage::shape::{LogicalKey, Shape};
use storage::txn::{At, Committed, Paused, Txn};
use storage::visibility::{Erasure, Visibility};
use store::Commit;

use crate::lock::PartitionGuard;
use crate::{Container, Core, Error, Result};

/// See the module header.
pub(crate) struct Transaction {
    pub core: Arc<Core>,
    guard: PartitionGuard,
    /// `None` only while a step is under way.
    paused: Option<Paused>,
    /// What the staged bodies were derived under.
    shape: Arc<Shape>,
    erasures: Arc<Vec<Erasure>>,
    now: u32,
    /// Whether it may have read what is not durable yet.
    pub depends_on_pending: bool,
    /// Whether everything enqueued before it is published.
    is_settled: bool,
}

impl Transaction {
    /// Begins under the guard.
    pub fn begin(core: &Arc<Core>, ctx: &Ctx, mut guard: PartitionGuard) -> Transaction {
        let now = ctx.now().as_secs() as u32;
        let shape = guard.container.shape.read().clone();
        let erasures = guard.container.erasures.load_full();
        let view = core.store.view();
        guard.pending.prune(&view);
        let depends_on_pending = !guard.pending.is_empty();
        Transaction {
            core: core.clone(),
            paused: Some(Paused::marked(view, ctx.random().next(), now)),
            guard,
            shape,
            erasures,
            now,
            depends_on_pending,
            is_settled: !depends_on_pending,
        }
    }

    /// Abandons what was staged, and gives the lock back.
    pub fn into_guard(self) -> PartitionGuard {
        self.guard
    }

    /// The container it is in.
    pub fn container(&self) -> &Arc<Container> {
        &self.guard.container
    }

    /// The number of the physical partition it is in.
    pub fn partition(&self) -> u32 {
        u32::from(self.guard.key.partition)
    }

    /// The key of the logical partition it is in.
    pub fn key(&self) -> &model::partition_key::PartitionKey {
        &self.guard.key.key
    }

    /// The logical partition it is in.
    pub fn logical_key(&self) -> &LogicalKey {
        &self.guard.key
    }

    /// Does one operation. A refused one leaves the transaction as it was.
    pub fn step<T>(&mut self, work: impl FnOnce(&mut Txn<'_>, &Shape) -> Result<T>) -> Result<T> {
        let current = self.guard.container.shape.read().clone();
        self.adopt(current);
        let (mut txn, shape) = self.resume();
        let result = work(&mut txn, &shape);
        self.paused = Some(txn.pause());
        result
    }

    /// Whether queries see everything that was enqueued before this transaction.
    pub fn is_settled(&self) -> bool {
        self.is_settled
    }

    /// Waits until queries see everything that was enqueued before this transaction.
    pub fn settle(&mut self) -> Result<()> {
        if !self.is_settled {
            self.core.store.commit(Commit::default()).wait()?;
            self.is_settled = true;
        }
        Ok(())
    }

    /// Enqueues what was staged and lets the next writer in. `None` if nothing was.
    pub fn commit(mut self) -> Result<Option<Committed>> {
        let container = self.guard.container.clone();
        if container.is_dropped.load(Ordering::Acquire) {
            return Err(Error::OwnerNotFound);
        }
        self.check_erasures()?;
        // Held until the commit is enqueued: a new definition waits for us.
        let current = container.shape.read();
        self.adopt(current.clone());
        let (core, now, partition) = (self.core.clone(), self.now, self.guard.key.partition);
        let key = self.guard.key.clone();
        let (txn, _) = self.resume();
        core.check_room(&container, &key, &txn)?;
        let grown = txn.bytes_grown();
        let committed = txn.commit(&*core.store, &core.cache, now)?;
        container.bytes[usize::from(partition)].fetch_add(grown, Ordering::Relaxed);
        Ok(committed)
    }

    fn adopt(&mut self, shape: Arc<Shape>) {
        if Arc::ptr_eq(&shape, &self.shape) {
            return;
        }
        if let Some(paused) = &mut self.paused {
            paused.reshape(&shape);
        }
        self.shape = shape;
    }

    fn resume(&mut self) -> (Txn<'_>, Arc<Shape>) {
        let PartitionGuard { pending, container, key } = &mut self.guard;
        let default_ttl = self.shape.default_ttl();
        let visibility = Visibility { now: self.now, default_ttl, erasures: &self.erasures };
        let at = At { layout: &container.layout, shape: &self.shape, key, visibility };
        let paused = self.paused.take().expect("a transaction is paused between two steps");
        (Txn::resume(at, pending, paused), self.shape.clone())
    }

    /// A deletion of the whole partition takes no lock: whoever has read what it deletes and is
    /// not done yet has to start again.
    fn check_erasures(&self) -> Result<()> {
        let now = self.guard.container.erasures.load();
        let is_new = |erasure: &Erasure| {
            u32::from(erasure.partition) == self.partition()
                && self.key().0.starts_with(&erasure.key.0)
                && !self.erasures.contains(erasure)
        };
        if now.iter().any(is_new) { Err(Error::RetryWith) } else { Ok(()) }
    }
}
