//! Reading and writing single items.

use std::sync::atomic::Ordering;

use base::Ctx;
use item::patch::PatchError;
use item::{Draft, IngestError, Ttl};
use model::partition_key::{HashVersion, PartitionKey};
use model::{ItemId, Lsn, Rid, SessionToken};
use storage::scan::PartitionReader;
use storage::shape::{LogicalKey, Shape, partition_key_of};
use storage::txn::{At, Body, Committed, Handle, Txn};
use storage::verify::read_sums;
use store::{Commit, Space};

use crate::charge::{self, Bill, Origin, Size, Till};
use crate::lock::PartitionGuard;
use crate::ops::{EtagCondition, ItemAnswer, ItemStatus, WriteItem, WriteKind};
use crate::{Container, Core, Engine, Error, Pending, Result};

/// Under hash version 1 a key may be of any length; ours stands whole in storage keys.
const KEY_BYTES_MAX: usize = 16 * 1024;

impl From<storage::Error> for Error {
    fn from(error: storage::Error) -> Error {
        match error {
            storage::Error::Store(error) => error.into(),
            storage::Error::UniqueKey { .. } => Error::UniqueKeyConflict,
            storage::Error::IdTaken => Error::Conflict,
            storage::Error::Deadline => Error::Timeout,
            error @ storage::Error::Corrupt { .. } => Error::Fault(error.to_string()),
        }
    }
}

impl Engine {
    /// The partition key of a body, checked against the one in the request.
    pub fn partition_key_of(
        &self,
        container: &Container,
        sent: Option<&PartitionKey>,
        draft: &Draft,
    ) -> Result<PartitionKey> {
        partition_key_of_body(container, sent, draft)
    }

    /// Completes the key a client sent for an item it names by id.
    pub fn complete_key(&self, container: &Container, sent: PartitionKey) -> Result<PartitionKey> {
        let key = container.layout.key_definition.complete(sent);
        let key = key.map_err(|error| Error::Invalid(error.to_string()))?;
        check_key_length(container, &key)?;
        Ok(key)
    }

    /// Decides and enqueues one write. The lock is released on return; the answer, also a refusal
    /// that depends on writes not yet durable, waits for the disk.
    pub fn write(
        &self,
        ctx: &Ctx,
        mut guard: PartitionGuard,
        write: WriteItem,
    ) -> Pending<ItemAnswer> {
        let core = &self.core;
        if let Err(error) = core.admit(ctx, &guard.container, &[guard.key.partition]) {
            return Pending::ready(Err(error));
        }
        let mut depends = false;
        let decided = core.transact(ctx, &mut guard, |txn, shape| {
            depends = txn.depends_on_pending();
            apply(ctx, txn, shape, write)
        });
        let spent = match &decided {
            Ok((applied, _)) => applied.bill.charge(),
            Err(error) => charge::deducted(error),
        };
        core.spend(ctx, &guard.container, guard.key.partition, Some(&guard.key), spent);
        match decided {
            Ok((applied, Some(committed))) => {
                let partition = u32::from(guard.key.partition);
                let answer = answer(applied, &committed.versions, partition, committed.lsn);
                Pending::after(committed.ticket, Ok(answer))
            }
            Ok((_, None)) => unreachable!("a write that was applied has something to commit"),
            Err(error) if depends => {
                Pending::after(core.store.commit(Commit::default()), Err(error))
            }
            Err(error) => Pending::ready(Err(error)),
        }
    }

    /// Reads an item by partition key and id, or by the rid of an item.
    pub fn read_item(
        &self,
        ctx: &Ctx,
        container: &Container,
        key: &PartitionKey,
        id: &str,
        if_none_match: &EtagCondition,
        session: Option<&SessionToken>,
    ) -> Result<ItemAnswer> {
        let key = LogicalKey::new(&container.layout, key.clone());
        let view = self.core.store.view();
        let partition = &container.layout.partitions[usize::from(key.partition)];
        let lsn = view.position(partition.log);
        let number = u32::from(partition.number);
        check_session(session, number, lsn)?;
        self.core.admit(ctx, container, &[key.partition])?;
        let erasures = container.published_erasures(&view);
        let visibility = container.visibility(ctx.now().as_secs() as u32, &erasures);
        let layout = &container.layout;
        let reader = PartitionReader { layout, partition, view: &view, visibility };
        let mut found = reader.point(&self.core.cache, &key, id)?;
        if found.is_none()
            && let Some(ordinal) = ordinal_of(container, id)
        {
            let is_mine = |item: &item::Item| reader.key_of(item).as_ref() == Some(&key.key);
            found = reader.by_ordinal(ordinal)?.filter(is_mine);
        }
        let Some(item) = found else {
            self.core.spend(ctx, container, key.partition, Some(&key), charge::MISS);
            return Err(Error::NotFound);
        };
        let is_current = match if_none_match {
            EtagCondition::Is(etag) => etag == item.etag(),
            EtagCondition::Any | EtagCondition::None => false,
        };
        let (status, bill) = match is_current {
            true => (ItemStatus::NotModified, charge::nothing_read(ctx)),
            false => (ItemStatus::Ok, charge::read(ctx, item.text_len())),
        };
        let (charge, receipt) = bill.finish();
        self.core.spend(ctx, container, key.partition, Some(&key), charge);
        Ok(ItemAnswer { status, item: Some(item), charge, receipt, partition: number, lsn })
    }
}

/// The partition key of a body, checked against the one it has to have.
pub(crate) fn partition_key_of_body(
    container: &Container,
    sent: Option<&PartitionKey>,
    draft: &Draft,
) -> Result<PartitionKey> {
    let definition = &container.layout.key_definition;
    let invalid = |error: model::partition_key::KeyError| Error::Invalid(error.to_string());
    let own = partition_key_of(definition, draft.root()).map_err(invalid)?;
    check_key_length(container, &own)?;
    match sent {
        Some(sent) if definition.complete(sent.clone()).map_err(invalid)? != own => {
            Err(Error::PartitionKeyMismatch)
        }
        Some(_) | None => Ok(own),
    }
}

/// The ordinal in the rid of an item of this container.
fn ordinal_of(container: &Container, text: &str) -> Option<u64> {
    let Rid::Child(database, number, ordinal) = Rid::parse(text)? else { return None };
    let is_mine = container.rid() == Rid::Container(database, number) && ordinal >> 60 == 0;
    is_mine.then_some(ordinal)
}

/// A client that has seen more than we have must not be served older data.
pub(crate) fn check_session(
    session: Option<&SessionToken>,
    partition: u32,
    lsn: u64,
) -> Result<()> {
    match session.and_then(|token| token.floor(partition)) {
        Some(seen) if seen.0 > lsn => Err(Error::SessionNotAvailable { seen, at: Lsn(lsn) }),
        Some(_) | None => Ok(()),
    }
}

fn check_key_length(container: &Container, key: &PartitionKey) -> Result<()> {
    let is_bounded = container.layout.key_definition.version == HashVersion::V2;
    if !is_bounded && key.to_bytes().len() > KEY_BYTES_MAX {
        let message = format!("The partition key is over {KEY_BYTES_MAX} bytes.");
        return Err(Error::Invalid(message));
    }
    Ok(())
}

impl Core {
    /// Runs `decide` in a transaction under the guard and enqueues what it staged.
    pub fn transact<T>(
        &self,
        ctx: &Ctx,
        guard: &mut PartitionGuard,
        decide: impl FnOnce(&mut Txn<'_>, &Shape) -> Result<T>,
    ) -> Result<(T, Option<Committed>)> {
        let container = guard.container.clone();
        if container.is_dropped.load(Ordering::Acquire) {
            return Err(Error::OwnerNotFound);
        }
        // Held until the commit is enqueued: a new definition waits for us.
        let shape = container.shape.read();
        let now = ctx.now().as_secs() as u32;
        let erasures = container.erasures.load();
        let default_ttl = shape.default_ttl();
        let visibility = storage::visibility::Visibility { now, default_ttl, erasures: &erasures };
        let at = At { layout: &container.layout, shape: &shape, key: &guard.key, visibility };
        let view = self.store.view();
        let mut txn = Txn::begin(at, view, &mut guard.pending);
        let decided = decide(&mut txn, &shape)?;
        self.check_room(&container, &guard.key, &txn)?;
        let grown = txn.bytes_grown();
        let committed = txn.commit(&*self.store, &self.cache, now)?;
        container.bytes[usize::from(guard.key.partition)].fetch_add(grown, Ordering::Relaxed);
        Ok((decided, committed))
    }

    /// A logical partition must not outgrow its limit. Its counter is read only if its physical
    /// partition is large enough for that to be possible.
    pub(crate) fn check_room(
        &self,
        container: &Container,
        key: &LogicalKey,
        txn: &Txn<'_>,
    ) -> Result<()> {
        let grown = txn.bytes_grown();
        let all = container.bytes[usize::from(key.partition)].load(Ordering::Relaxed);
        let max = self.logical_partition_bytes_max as i64;
        if grown <= 0 || all + grown <= max {
            return Ok(());
        }
        let place = &container.layout.partitions[usize::from(key.partition)].place;
        let view = self.store.view();
        let sums = view.reader().get(Space::Meta, &place.logical_totals(&key.bytes))?;
        match read_sums(sums)[1] + grown > max {
            true => Err(Error::LogicalPartitionFull),
            false => Ok(()),
        }
    }
}

/// A write that has been staged, before it has a version.
pub(crate) struct Applied {
    pub status: ItemStatus,
    pub bill: Bill,
    /// Which staged write it is; `None` for reads.
    pub position: Option<usize>,
    /// The item it was about.
    pub handle: Handle,
    /// What a read found.
    pub found: Option<item::Item>,
}

/// The answer to an applied operation, once its version exists.
pub(crate) fn answer(
    applied: Applied,
    versions: &[Option<item::Item>],
    partition: u32,
    lsn: u64,
) -> ItemAnswer {
    let written = applied.position.and_then(|at| versions[at].clone());
    let item = written.or(applied.found);
    let (charge, receipt) = applied.bill.finish();
    ItemAnswer { status: applied.status, item, charge, receipt, partition, lsn }
}

/// Stages one write of a client.
pub(crate) fn apply(
    ctx: &Ctx,
    txn: &mut Txn<'_>,
    shape: &Shape,
    write: WriteItem,
) -> Result<Applied> {
    apply_as(ctx, Origin::Client, txn, shape, write)
}

/// Stages one write.
pub(crate) fn apply_as(
    ctx: &Ctx,
    origin: Origin,
    txn: &mut Txn<'_>,
    shape: &Shape,
    write: WriteItem,
) -> Result<Applied> {
    let till = Till::new(ctx, origin);
    let WriteItem { kind, if_match, if_none_match, is_indexed } = write;
    match kind {
        WriteKind::Create(draft) => create(till, txn, shape, draft, is_indexed),
        WriteKind::Upsert(draft) => {
            let id = checked_id(&draft)?;
            match txn.get(id.as_str())? {
                Some(_) if if_none_match == EtagCondition::Any => Err(Error::PreconditionFailed),
                Some(handle) => {
                    check_match(txn, handle, &if_match)?;
                    replace(till, txn, shape, handle, draft, is_indexed)
                }
                None => create(till, txn, shape, draft, is_indexed),
            }
        }
        WriteKind::Replace(id, draft) => {
            let handle = find(txn, &id)?;
            check_match(txn, handle, &if_match)?;
            replace(till, txn, shape, handle, draft, is_indexed)
        }
        WriteKind::Patch(id, patch) => {
            let handle = find(txn, &id)?;
            check_match(txn, handle, &if_match)?;
            let draft = patched(ctx, txn, shape, handle, &patch)?;
            let mut applied = replace(till, txn, shape, handle, draft, is_indexed)?;
            till.patch(&mut applied.bill, patch.operations.len());
            Ok(applied)
        }
        WriteKind::Delete(id) => {
            let handle = find(txn, &id)?;
            check_match(txn, handle, &if_match)?;
            let bill = till.delete(&shape.definition, size_of(txn, handle));
            let position = txn.staged_len();
            txn.delete(handle);
            Ok(Applied {
                status: ItemStatus::Deleted,
                bill,
                position: Some(position),
                handle,
                found: None,
            })
        }
    }
}

/// The item a link names: by id, else by rid.
fn find(txn: &mut Txn<'_>, id: &ItemId) -> Result<Handle> {
    if let Some(handle) = txn.get(id.as_str())? {
        return Ok(handle);
    }
    if let Some(Rid::Child(_, container, ordinal)) = Rid::parse(id.as_str())
        && container == txn.container()
        && let Some(handle) = txn.get_by_ordinal(ordinal)?
    {
        return Ok(handle);
    }
    Err(Error::NotFound)
}

fn create(
    till: Till,
    txn: &mut Txn<'_>,
    shape: &Shape,
    draft: Draft,
    is_indexed: bool,
) -> Result<Applied> {
    let id = checked_id(&draft)?;
    check_ttl(shape, &draft)?;
    let body = Body::new(shape, draft);
    let bill = till.create(&shape.definition, size_of_body(&body));
    let position = txn.staged_len();
    let handle = txn.create(id.as_str(), body, is_indexed)?;
    let position = Some(position);
    Ok(Applied { status: ItemStatus::Created, bill, position, handle, found: None })
}

fn replace(
    till: Till,
    txn: &mut Txn<'_>,
    shape: &Shape,
    handle: Handle,
    draft: Draft,
    is_indexed: bool,
) -> Result<Applied> {
    let id = checked_id(&draft)?;
    check_ttl(shape, &draft)?;
    let body = Body::new(shape, draft);
    let bill = till.replace(&shape.definition, size_of(txn, handle), size_of_body(&body));
    let position = txn.staged_len();
    txn.replace(handle, id.as_str(), body, is_indexed)?;
    let position = Some(position);
    Ok(Applied { status: ItemStatus::Ok, bill, position, handle, found: None })
}

fn patched(
    ctx: &Ctx,
    txn: &Txn<'_>,
    shape: &Shape,
    handle: Handle,
    patch: &item::patch::Patch,
) -> Result<Draft> {
    let current = txn.current(handle);
    if let Some(condition) = &patch.condition {
        let condition = crate::query::parse_condition(condition)?;
        if !crate::query::matches(ctx, &condition, current.root())? {
            return Err(Error::PatchConditionFailed);
        }
    }
    let paths = shape.definition.partition_key.paths.iter();
    let protected: Vec<Vec<String>> = paths.map(|path| path.segments().to_vec()).collect();
    item::patch::apply(patch, current.root(), &protected).map_err(|error| match &error {
        PatchError::Result(IngestError::TooLarge { .. }) => Error::TooLarge(error.to_string()),
        PatchError::Result(_)
        | PatchError::Body { .. }
        | PatchError::Count { .. }
        | PatchError::UnknownOperation { .. }
        | PatchError::Operation { .. }
        | PatchError::Protected { .. }
        | PatchError::Target { .. } => Error::Invalid(error.to_string()),
    })
}

fn checked_id(draft: &Draft) -> Result<ItemId> {
    let node = draft.root().get("id").and_then(|node| node.as_str());
    let Some(id) = node else {
        let message = "The input content is invalid because the required properties - 'id; ' - \
                       are missing";
        return Err(Error::Invalid(message.into()));
    };
    ItemId::new(&id).map_err(|error| Error::Invalid(error.to_string()))
}

fn check_ttl(shape: &Shape, draft: &Draft) -> Result<()> {
    if draft.ttl() == Ttl::Invalid && shape.default_ttl().is_some() {
        let message = "The input ttl is invalid. Ensure to provide a nonzero positive integer less \
                       than or equal to '2147483647', or -1 which means never expire.";
        return Err(Error::Invalid(message.into()));
    }
    Ok(())
}

fn check_match(txn: &Txn<'_>, handle: Handle, condition: &EtagCondition) -> Result<()> {
    match condition {
        EtagCondition::Is(etag) if txn.etag_of(handle).as_ref() != Some(etag) => {
            Err(Error::PreconditionFailed)
        }
        EtagCondition::Is(_) | EtagCondition::Any | EtagCondition::None => Ok(()),
    }
}

fn size_of<'t>(txn: &'t Txn<'_>, handle: Handle) -> Size<'t> {
    let current = txn.current(handle);
    Size { bytes: current.text_len(), root: current.root(), derived: txn.derived(handle) }
}

fn size_of_body(body: &Body) -> Size<'_> {
    let draft = body.draft();
    Size { bytes: draft.text_len(), root: draft.root(), derived: body.derived() }
}
