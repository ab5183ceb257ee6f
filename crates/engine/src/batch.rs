//! Transactional batches: several operations of one logical partition, all or nothing.

use base::Ctx;
use model::{ItemId, limits};
use storage::txn::{Current, Txn};
use store::Commit;

use crate::charge::{self, Bill};
use crate::items::{self, Applied};
use crate::lock::PartitionGuard;
use crate::ops::{BatchAnswer, BatchOperation, EtagCondition, ItemStatus};
use crate::{Engine, Error, Pending, Result};

/// What stopped a batch: which operation, why, and what was spent until then.
struct Failure {
    index: usize,
    error: Error,
    bill: Bill,
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
        if let Err(error) = self.core.admit(ctx, &guard.container, &[guard.key.partition]) {
            return Pending::ready(Err(error));
        }
        let count = operations.len();
        let partition = u32::from(guard.key.partition);
        let mut depends = false;
        let mut failure = None;
        let decided = self.core.transact(ctx, &mut guard, |txn, shape| {
            depends = txn.depends_on_pending();
            let mut applied = Vec::with_capacity(count);
            let mut bill = Bill::new(ctx.wants_receipt());
            for (index, operation) in operations.into_iter().enumerate() {
                let result = match operation {
                    BatchOperation::Write(write) => items::apply(ctx, txn, shape, write),
                    BatchOperation::Read(id, condition) => read(ctx, txn, &id, &condition),
                };
                match result {
                    Ok(one) => {
                        add(&mut bill, index, one.bill.clone());
                        applied.push(one);
                    }
                    Err(error) => {
                        failure = Some(Failure { index, error, bill });
                        return Err(Error::RetryWith); // Abandons the transaction.
                    }
                }
            }
            Ok((applied, bill))
        });
        let lsn = guard.container.session(partition);
        let spend = |charge| {
            let (container, key) = (&guard.container, &guard.key);
            self.core.spend(ctx, container, key.partition, Some(key), charge);
        };
        if let Some(failure) = failure {
            let answer = undone(failure, ctx, count, partition, lsn);
            spend(answer.charge);
            return self.after(depends, Ok(answer));
        }
        spend(match &decided {
            Ok(((_, bill), _)) => bill.charge(),
            Err(error) => charge::deducted(error),
        });
        match decided {
            Ok(((applied, bill), Some(committed))) => {
                let answer = done(applied, bill, &committed.versions, partition, committed.lsn);
                Pending::after(committed.ticket, Ok(answer))
            }
            Ok(((applied, bill), None)) => {
                self.after(depends, Ok(done(applied, bill, &[], partition, lsn)))
            }
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

/// Adds the operation at a place of the batch to its bill.
fn add(bill: &mut Bill, index: usize, one: Bill) {
    bill.add_operation(|| format!("operation {}", index + 1), one);
}

fn read(
    ctx: &Ctx,
    txn: &mut Txn<'_>,
    id: &ItemId,
    if_none_match: &EtagCondition,
) -> Result<Applied> {
    let handle = txn.get(id.as_str())?.ok_or(Error::NotFound)?;
    let current = txn.current(handle);
    let is_current = matches!(if_none_match, EtagCondition::Is(etag)
        if current.etag() == Some(etag));
    let (status, bill) = match is_current {
        true => (ItemStatus::NotModified, charge::nothing_read(ctx)),
        false => (ItemStatus::Ok, charge::read(ctx, current.text_len())),
    };
    Ok(match current {
        Current::Stored(item) => {
            Applied { status, bill, position: None, handle, found: Some(item.clone()) }
        }
        Current::Staged(_) => {
            Applied { status, bill, position: txn.position_of(handle), handle, found: None }
        }
    })
}

fn done(
    applied: Vec<Applied>,
    bill: Bill,
    versions: &[Option<item::Item>],
    partition: u32,
    lsn: u64,
) -> BatchAnswer {
    let (charge, receipt) = bill.finish();
    let results =
        applied.into_iter().map(|one| Some(Ok(items::answer(one, versions, partition, lsn))));
    let results = results.collect();
    BatchAnswer { results, is_committed: true, charge, receipt, partition, lsn }
}

fn undone(failure: Failure, ctx: &Ctx, count: usize, partition: u32, lsn: u64) -> BatchAnswer {
    let mut bill = failure.bill;
    add(&mut bill, failure.index, charge::refused(ctx, &failure.error));
    let (charge, receipt) = bill.finish();
    let mut results: Vec<_> = (0..count).map(|_| None).collect();
    results[failure.index] = Some(Err(failure.error));
    BatchAnswer { results, is_committed: false, charge, receipt, partition, lsn }
}
