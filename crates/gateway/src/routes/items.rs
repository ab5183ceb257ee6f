//! One item: read, create, upsert, replace, patch, delete; several at once in batch and bulk.
//!
//! Reads and writes run inline. A write waits for the lock of its logical partition before, and
//! for the disk after; between the two it decides in microseconds and holds nothing. A write with
//! triggers is decided on the threads of scripts instead.

use std::sync::Arc;

use engine::ops::{BatchOperation, ItemAnswer, TriggeredAnswer, Triggers, WriteItem, WriteKind};
use engine::{Bill, Container, Pending, Scripted, Work};
use hyper::StatusCode;
use model::partition_key::PartitionKey;
use model::{ItemId, RequestCharge};

use crate::batch::{self, Operation, Outcome};
use crate::call::Call;
use crate::decode;
use crate::encode::{self, Reply};
use crate::error::{Error, Failure, Result, invalid, not_allowed};
use crate::headers;
use crate::routes::Action;

/// A point read. Not async: it is what most requests are, and it never waits.
pub fn read(call: &Call<'_>) -> Result<Reply> {
    let container = call.container()?;
    decode::check_consistency(call.headers)?;
    let session = decode::session(call.headers)?;
    let if_none_match = decode::if_none_match(call.headers)?;
    let key = decode::point_key(call.headers, &container)?;
    call.access.check_key(Some(&key))?;
    let ctx = call.ctx();
    let answer = call
        .engine()
        .read_item(&ctx, &container, &key, call.third(), &if_none_match, session.as_ref())
        .map_err(|error| Failure::at(error, &container, container.partition_of(&key)))?;
    Ok(encode::item(&container, &answer, false))
}

/// A write of one item.
pub async fn write(call: &Call<'_>, body: &[u8]) -> Result<Reply> {
    let container = call.container()?;
    decode::check_consistency(call.headers)?;
    decode::session(call.headers)?;
    let kind = write_kind(call, body).map_err(|failure| failure.within(&container, 0))?;
    let write = WriteItem {
        kind,
        if_match: decode::if_match(call.headers)?,
        if_none_match: decode::if_none_match(call.headers)?,
        is_indexed: decode::is_indexed(call.headers)?,
    };
    let key =
        key_of(call, &container, &write.kind).map_err(|failure| failure.within(&container, 0))?;
    call.access.check_key(Some(&key))?;
    let triggers = decode::triggers(call.headers)?;
    let is_minimal = decode::is_minimal(call.headers);
    let failed = |error| Failure::at(error, &container, container.partition_of(&key));
    if triggers.is_empty() {
        let answer = start(call, &container, &key, write).await?.await;
        return Ok(encode::item(&container, &answer.map_err(failed)?, is_minimal));
    }
    let answer = start_with_triggers(call, &container, &key, write, &triggers).await?.await;
    Ok(encode::triggered_item(&container, answer.map_err(failed)?, is_minimal))
}

/// Starts a write and its triggers under the lock of its partition.
async fn start_with_triggers(
    call: &Call<'_>,
    container: &Arc<Container>,
    key: &PartitionKey,
    write: WriteItem,
    triggers: &Triggers,
) -> Result<Scripted<TriggeredAnswer>> {
    let guard = call.lock(container, key).await?;
    Ok(call.engine().write_with_triggers(&call.ctx(), guard, write, triggers))
}

/// Decides a write under the lock of its partition; its answer waits for the disk.
async fn start(
    call: &Call<'_>,
    container: &Arc<Container>,
    key: &PartitionKey,
    write: WriteItem,
) -> Result<Pending<ItemAnswer>> {
    let guard = call.lock(container, key).await?;
    Ok(call.engine().write(&call.ctx(), guard, write))
}

fn write_kind(call: &Call<'_>, body: &[u8]) -> Result<WriteKind> {
    match call.action {
        Action::Create => Ok(WriteKind::Create(decode::draft(body)?)),
        Action::Upsert => Ok(WriteKind::Upsert(decode::draft(body)?)),
        Action::Replace => Ok(WriteKind::Replace(item_id(call)?, decode::draft(body)?)),
        Action::Patch => Ok(WriteKind::Patch(item_id(call)?, decode::patch(body)?)),
        Action::Delete => Ok(WriteKind::Delete(item_id(call)?)),
        Action::Read | Action::List | Action::Query | Action::Plan => not_allowed(),
        Action::ChangeFeed | Action::Batch | Action::Bulk | Action::Execute => not_allowed(),
    }
}

fn item_id(call: &Call<'_>) -> Result<ItemId> {
    ItemId::new(call.third()).map_err(|error| invalid(error.to_string()))
}

/// The partition key of a write: that of the body, which must be that of the header; without a
/// body, that of the header.
fn key_of(call: &Call<'_>, container: &Container, kind: &WriteKind) -> Result<PartitionKey> {
    match draft_of(kind) {
        None => decode::point_key(call.headers, container),
        Some(draft) => {
            let sent = decode::partition_key(call.headers)?;
            Ok(call.engine().partition_key_of(container, sent.as_ref(), draft)?)
        }
    }
}

fn draft_of(kind: &WriteKind) -> Option<&item::Draft> {
    match kind {
        WriteKind::Create(draft) | WriteKind::Upsert(draft) | WriteKind::Replace(_, draft) => {
            Some(draft)
        }
        WriteKind::Patch(..) | WriteKind::Delete(_) => None,
    }
}

/// A transactional batch: all of it or nothing.
pub async fn batch(call: &Call<'_>, body: &[u8]) -> Result<Reply> {
    let container = call.container()?;
    decode::check_consistency(call.headers)?;
    let session = decode::session(call.headers)?;
    let key = decode::point_key(call.headers, &container)?;
    call.access.check_key(Some(&key))?;
    let parsed = batch::parse(body)?;
    let shape = Shape::of(call, &parsed);
    let partition = container.partition_of(&key);
    // Writes are decided on what is current, whatever the client has seen.
    if parsed.iter().any(|one| matches!(one.operation, BatchOperation::Read(..))) {
        let checked = container.check_session(session.as_ref(), partition);
        checked.map_err(|error| Failure::at(error, &container, partition))?;
    }
    if let Some((at, error)) = misplaced(call, &container, &key, &parsed) {
        let mut outcomes: Vec<Outcome> = parsed.iter().map(|_| None).collect();
        let charge = engine::charge::of_failure(&error);
        outcomes[at] = Some(Err(error));
        let reply = shape.reply(&container, &outcomes, charge);
        return Ok(reply.at(partition, container.session(partition)));
    }
    let operations = parsed.into_iter().map(|parsed| parsed.operation).collect();
    let guard = call.lock(&container, &key).await?;
    let pending = call.engine().batch(&call.ctx(), guard, operations);
    let answer = pending.await.map_err(|error| Failure::at(error, &container, partition))?;
    let reply = shape.reply(&container, &answer.results, answer.charge);
    let reply = reply.with_receipt(answer.receipt);
    Ok(reply.at(answer.partition, answer.lsn))
}

/// The first operation of a batch that belongs to another logical partition.
fn misplaced(
    call: &Call<'_>,
    container: &Container,
    key: &PartitionKey,
    operations: &[Operation],
) -> Option<(usize, engine::Error)> {
    operations.iter().enumerate().find_map(|(at, operation)| {
        if operation.key.as_ref().is_some_and(|own| own != key) {
            return Some((at, engine::Error::PartitionKeyMismatch));
        }
        let BatchOperation::Write(write) = &operation.operation else { return None };
        let own = call.engine().partition_key_of(container, Some(key), draft_of(&write.kind)?);
        own.err().map(|error| (at, error))
    })
}

/// Independent operations in one request. All are decided before the first answer is waited for,
/// so that they share the disk; a read waits for the writes before it.
pub async fn bulk(call: &Call<'_>, body: &[u8]) -> Result<Reply> {
    let container = call.container()?;
    decode::check_consistency(call.headers)?;
    check_range(call, &container)?;
    let parsed = batch::parse(body)?;
    let shape = Shape::of(call, &parsed);
    let mut running = Vec::with_capacity(parsed.len());
    let mut outcomes: Vec<Outcome> = Vec::with_capacity(parsed.len());
    for operation in parsed {
        if matches!(operation.operation, BatchOperation::Read(..)) {
            settle(&mut running, &mut outcomes).await;
        }
        running.push(start_bulk(call, &container, operation).await);
    }
    settle(&mut running, &mut outcomes).await;
    let (charge, receipt) = bill_of(call, &outcomes).finish();
    let partition = outcomes.iter().flatten().flatten().map(|answer| answer.partition).next();
    let partition = partition.unwrap_or_default();
    let reply = shape.reply(&container, &outcomes, charge).with_receipt(receipt);
    Ok(reply.at(partition, container.session(partition)))
}

/// An operation of a bulk request under way, or its outcome if there is nothing to wait for.
enum Running {
    Pending(Pending<ItemAnswer>),
    Done(Box<engine::Result<ItemAnswer>>),
}

async fn settle(running: &mut Vec<Running>, outcomes: &mut Vec<Outcome>) {
    for one in running.drain(..) {
        outcomes.push(Some(match one {
            Running::Pending(pending) => pending.await,
            Running::Done(result) => *result,
        }));
    }
}

async fn start_bulk(call: &Call<'_>, container: &Arc<Container>, operation: Operation) -> Running {
    match try_start_bulk(call, container, operation).await {
        Ok(running) => running,
        Err(Failure { error: Error::Engine(error), .. }) => Running::Done(Box::new(Err(error))),
        Err(failure) => {
            let error = engine::Error::Invalid(failure.error.to_string());
            Running::Done(Box::new(Err(error)))
        }
    }
}

async fn try_start_bulk(
    call: &Call<'_>,
    container: &Arc<Container>,
    operation: Operation,
) -> Result<Running> {
    let sent = operation.key.map(|key| decode::complete_key(container, key)).transpose()?;
    let write = match operation.operation {
        BatchOperation::Write(write) => write,
        BatchOperation::Read(id, if_none_match) => {
            let key = sent.ok_or(engine::Error::PartitionKeyMissing)?;
            call.access.check_key(Some(&key))?;
            let (ctx, engine) = (call.ctx(), call.engine());
            let answer = engine.read_item(&ctx, container, &key, id.as_str(), &if_none_match, None);
            return Ok(Running::Done(Box::new(answer)));
        }
    };
    let key = match draft_of(&write.kind) {
        Some(draft) => call.engine().partition_key_of(container, sent.as_ref(), draft)?,
        None => sent.ok_or(engine::Error::PartitionKeyMissing)?,
    };
    call.access.check_key(Some(&key))?;
    let mut pending = start(call, container, &key, write).await?;
    // Others come first.
    pending.begin();
    Ok(Running::Pending(pending))
}

/// A bulk request names the range its client believes in. The operations find theirs by
/// themselves; but a range that is gone means that the client has to look again.
fn check_range(call: &Call<'_>, container: &Arc<Container>) -> Result<()> {
    let Some(id) = headers::text(call.headers, &headers::RANGE_ID) else { return Ok(()) };
    match container.ranges().iter().any(|range| range.id.to_string() == id) {
        true => Ok(()),
        false => Err(Failure::at(engine::Error::RangeGone { id: id.to_owned() }, container, 0)),
    }
}

/// What the operations of a bulk request come to.
fn bill_of(call: &Call<'_>, outcomes: &[Outcome]) -> Bill {
    let mut bill = Bill::new(call.wants_receipt());
    for (at, outcome) in outcomes.iter().enumerate() {
        let one = match outcome {
            Some(Ok(answer)) => Bill::from((answer.charge, answer.receipt.clone())),
            Some(Err(error)) => {
                let refusal = engine::charge::of_failure(error);
                Bill::of(call.wants_receipt(), Work::Refused, 1, refusal)
            }
            None => continue,
        };
        bill.add_operation(|| format!("operation {}", at + 1), one);
    }
    bill
}

/// What of each operation the encoder has to know.
struct Shape {
    is_minimal: Vec<bool>,
    is_read: Vec<bool>,
}

impl Shape {
    fn of(call: &Call<'_>, operations: &[Operation]) -> Shape {
        let all_minimal = decode::is_minimal(call.headers);
        let is_read = |one: &Operation| matches!(one.operation, BatchOperation::Read(..));
        Shape {
            is_minimal: operations.iter().map(|one| all_minimal || one.is_minimal).collect(),
            is_read: operations.iter().map(is_read).collect(),
        }
    }

    fn reply(&self, container: &Container, outcomes: &[Outcome], charge: RequestCharge) -> Reply {
        let is_whole = outcomes.iter().all(|outcome| matches!(outcome, Some(Ok(_))));
        let status = if is_whole { StatusCode::OK } else { StatusCode::MULTI_STATUS };
        let body = batch::results(outcomes, &self.is_minimal, &self.is_read);
        Reply::json(status, charge, body).in_container(container)
    }
}
