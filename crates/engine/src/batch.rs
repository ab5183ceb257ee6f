//! Transactional batches: several operations of one logical partition, all or nothing.

use base::Ctx;
use model::{ItemId, limits};
use storage::txn::{Current, Txn};
use store::Commit;

use crate::charge;
use crate::items::{self, Applied};
use crate::lock::PartitionGuard;
use crate::ops::{BatchAnswer, BatchOperation, EtagCondition, ItemStatus, RequestCharge};
use crate::{Engine, Error, Pending, Result};

/// What stopped a batch: which operation, why, and what was spent until then.
struct Failure {
    index: usize,
    error: Error,
    charge: RequestCharge,
}

impl Engine {
    /// Decides and enqueues a batch. A failing operation keeps its error, all others are undone.
    pub fn batch(
        &self,
        ctx: &Ctx,
        mut guard: PartitionGuard,
        operations: Vec<BatchOperation>,
    ) -> Pending<BatchAnswer> {
        if operations.is_empty() || operations.len() > limits::BATCH_OPERATIONS_MAX {
            return Pending::ready(Err(Error::Invalid(format!(
                "A batch has between 1 and {} operations; this one has {}.",
                limits::BATCH_OPERATIONS_MAX,
                operations.len()
            ))));
        }
        let count = operations.len();
        let partition = u32::from(guard.key.partition);
        let mut depends = false;
        let mut failure = None;
        let decided = self.core.transact(ctx, &mut guard, |txn, shape| {
            depends = txn.depends_on_pending();
            let mut applied = Vec::with_capacity(count);
            let mut charge = RequestCharge::ZERO;
            for (index, operation) in operations.into_iter().enumerate() {
                let result = match operation {
                    BatchOperation::Write(write) => items::apply(ctx, txn, shape, write),
                    BatchOperation::Read(id, condition) => read(txn, &id, &condition),
                };
                match result {
                    Ok(one) => {
                        charge += one.charge;
                        applied.push(one);
                    }
                    Err(error) => {
                        failure = Some(Failure { index, error, charge });
                        return Err(Error::RetryWith); // Abandons the transaction.
                    }
                }
            }
            Ok(applied)
        });
        let lsn = guard.container.session(partition);
        if let Some(failure) = failure {
            return self.after(depends, Ok(undone(failure, count, partition, lsn)));
        }
        match decided {
            Ok((applied, Some(committed))) => {
                let answer = done(applied, &committed.versions, partition, committed.lsn);
                Pending::after(committed.ticket, Ok(answer))
            }
            Ok((applied, None)) => self.after(depends, Ok(done(applied, &[], partition, lsn))),
            Err(error) => self.after(depends, Err(error)),
        }
    }

    /// An answer that waits for what it was derived from.
    fn after<T>(&self, depends: bool, answer: Result<T>) -> Pending<T> {
        match depends {
            true => Pending::after(self.core.store.commit(Commit::default()), answer),
            false => Pending::ready(answer),
        }
    }
}

fn read(txn: &mut Txn<'_>, id: &ItemId, if_none_match: &EtagCondition) -> Result<Applied> {
    let handle = txn.get(id.as_str())?.ok_or(Error::NotFound)?;
    let current = txn.current(handle);
    let is_current = matches!(if_none_match, EtagCondition::Is(etag)
        if current.etag() == Some(etag));
    let (status, charge) = match is_current {
        true => (ItemStatus::NotModified, charge::MISS),
        false => (ItemStatus::Ok, charge::point_read(current.text_len())),
    };
    Ok(match current {
        Current::Stored(item) => {
            Applied { status, charge, position: None, handle, found: Some(item.clone()) }
        }
        Current::Staged(_) => {
            Applied { status, charge, position: txn.position_of(handle), handle, found: None }
        }
    })
}

fn done(
    applied: Vec<Applied>,
    versions: &[Option<item::Item>],
    partition: u32,
    lsn: u64,
) -> BatchAnswer {
    let charge = applied.iter().map(|one| one.charge).sum();
    let results =
        applied.into_iter().map(|one| Some(Ok(items::answer(one, versions, partition, lsn))));
    BatchAnswer { results: results.collect(), is_committed: true, charge, partition, lsn }
}

fn undone(failure: Failure, count: usize, partition: u32, lsn: u64) -> BatchAnswer {
    let charge = failure.charge + charge::of_failure(&failure.error);
    let mut results: Vec<_> = (0..count).map(|_| None).collect();
    results[failure.index] = Some(Err(failure.error));
    BatchAnswer { results, is_committed: false, charge, partition, lsn }
}
