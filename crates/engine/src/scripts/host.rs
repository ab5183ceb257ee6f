//! What a script does to the database: `script::Host` over one open transaction.

use base::{Ctx, Deadline};
use item::{Draft, IngestError, Item, Value};
use model::{ItemId, Rid};
use script::{HostError, ItemLink, Operation, Page, Reply};
use storage::txn::{Handle, Txn};

use super::functions::Functions;
use crate::charge::{Bill, Origin};
use crate::items::{self, Applied};
use crate::ops::{
    EtagCondition, FeedPage, ItemStatus, PageRequest, QueryText, RequestCharge, Scope, WriteItem,
    WriteKind,
};
use crate::transaction::Transaction;
use crate::{Error, Result, charge};

/// A transaction with a script at work in it.
pub(crate) struct ScriptHost {
    pub transaction: Transaction,
    pub ctx: Ctx,
    /// What it has cost so far, operation by operation.
    pub spent: Bill,
    /// Operations that were accepted, and those of them that are done.
    accepted: u64,
    done: u64,
    /// Bytes of the bodies staged so far.
    bytes_staged: usize,
    /// What ended the script, if it was not the script itself.
    pub fatal: Option<Error>,
    /// Whether it begins again elsewhere if it is not over soon.
    pub is_trial: bool,
}

impl ScriptHost {
    pub fn new(transaction: Transaction, ctx: Ctx) -> ScriptHost {
        let spent = Bill::new(ctx.wants_receipt());
        let (accepted, done, bytes_staged) = (0, 0, 0);
        let (fatal, is_trial) = (None, false);
        ScriptHost { transaction, ctx, spent, accepted, done, bytes_staged, fatal, is_trial }
    }

    /// The script starts now: its queries may take as long as it may.
    pub fn start(&mut self, deadline: Deadline) {
        let wants_receipt = self.ctx.wants_receipt();
        self.ctx = self.transaction.core.ctx(deadline).with_receipt(wants_receipt);
    }

    /// The script starts now, and is to be over soon.
    pub fn start_trial(&mut self, deadline: Deadline) {
        self.start(deadline);
        self.is_trial = true;
    }

    /// Has the throughput of the partition pay for what was spent.
    pub fn pay(&self) {
        let (transaction, charge) = (&self.transaction, self.spent.charge());
        let key = transaction.logical_key();
        let (core, container) = (&transaction.core, transaction.container());
        core.spend(&self.ctx, container, key.partition, Some(key), charge);
    }

    /// Stages one write and shows the version it made.
    pub fn write(&mut self, origin: Origin, write: WriteItem) -> Result<(Applied, Option<Item>)> {
        let bytes = self.check_room(&write)?;
        let (ctx, label) = (&self.ctx, label_of(&self.ctx, &write.kind));
        let (applied, shown) = self.transaction.step(|txn, shape| {
            let applied = items::apply_as(ctx, origin, txn, shape, write)?;
            let is_gone = applied.status == ItemStatus::Deleted;
            let shown = (!is_gone).then(|| txn.shown(applied.handle));
            Ok((applied, shown))
        })?;
        self.bytes_staged += bytes;
        self.spent.add_operation(|| label, applied.bill.clone());
        Ok((applied, shown))
    }

    /// What a script stages has to fit into one commit; the index needs room in it, too. Returns
    /// the bytes of the write.
    fn check_room(&self, write: &WriteItem) -> Result<usize> {
        let bytes = match &write.kind {
            WriteKind::Create(draft) | WriteKind::Upsert(draft) | WriteKind::Replace(_, draft) => {
                draft.text_len()
            }
            WriteKind::Patch(..) | WriteKind::Delete(_) => 0,
        };
        let bytes_max = self.transaction.core.store.limits().commit_bytes_max / 2;
        match self.bytes_staged + bytes > bytes_max {
            true => Err(Error::TooLarge(format!(
                "The writes of this script are over {bytes_max} bytes. Split them into several \
                 executions."
            ))),
            false => Ok(bytes),
        }
    }

    /// An item of this logical partition from a body a script made.
    pub fn draft(&self, body: &Value) -> Result<Draft> {
        let draft = Draft::from_value(body).map_err(|error| match error {
            IngestError::TooLarge { .. } => Error::TooLarge(error.to_string()),
            IngestError::Syntax { .. }
            | IngestError::Number { .. }
            | IngestError::TooDeep { .. }
            | IngestError::NotAnObject => Error::Invalid(error.to_string()),
        })?;
        let container = self.transaction.container();
        items::partition_key_of_body(container, Some(self.transaction.key()), &draft)?;
        Ok(draft)
    }

    fn read(&mut self, link: &ItemLink, if_none_match: Option<&str>) -> Result<Reply> {
        let label = |link: &ItemLink| match link {
            ItemLink::Id(id) => format!("read {id}"),
            ItemLink::Rid(rid) => format!("read {rid}"),
        };
        let found = self.transaction.step(|txn, _| {
            let handle = find(txn, link)?;
            Ok(txn.shown(handle))
        });
        let item = match found {
            Ok(item) => item,
            Err(error) => {
                self.spent.add_operation(|| label(link), charge::refused(&self.ctx, &error));
                return Err(error);
            }
        };
        let condition = if_none_match.map(EtagCondition::parse).unwrap_or_default();
        if matches!(&condition, EtagCondition::Is(etag) if etag == item.etag()) {
            self.spent.add_operation(|| label(link), charge::nothing_read(&self.ctx));
            return Ok(Reply::NotModified);
        }
        self.spent.add_operation(|| label(link), charge::read(&self.ctx, item.text_len()));
        Ok(Reply::Item(item))
    }

    /// The id that an item has now, for writes that name it by link.
    fn id_of(&mut self, link: &ItemLink) -> Result<ItemId> {
        let id = match link {
            ItemLink::Id(id) => id.clone(),
            ItemLink::Rid(_) => self.transaction.step(|txn, _| {
                let handle = find(txn, link)?;
                let id = txn.current(handle).root().get("id").and_then(|node| node.as_str());
                Ok(id.map(|id| id.into_owned()).unwrap_or_default())
            })?,
        };
        ItemId::new(&id).map_err(|error| Error::Invalid(error.to_string()))
    }

    fn store(
        &mut self,
        kind: WriteKind,
        etag: Option<&str>,
        is_indexed: Option<bool>,
    ) -> Result<Reply> {
        let write = WriteItem {
            kind,
            if_match: etag.map(EtagCondition::parse).unwrap_or_default(),
            if_none_match: EtagCondition::None,
            is_indexed: is_indexed.unwrap_or(true),
        };
        let label = label_of(&self.ctx, &write.kind);
        let (applied, shown) = match self.write(Origin::Script, write) {
            Ok(done) => done,
            Err(error) => {
                self.spent.add_operation(|| label, charge::refused(&self.ctx, &error));
                return Err(error);
            }
        };
        Ok(match (applied.status, shown) {
            (ItemStatus::Created, Some(item)) => Reply::Created(item),
            (ItemStatus::Ok | ItemStatus::NotModified, Some(item)) => Reply::Item(item),
            (ItemStatus::Created | ItemStatus::Ok, None)
            | (ItemStatus::Deleted | ItemStatus::NotModified, _) => Reply::Deleted,
        })
    }

    fn page(&mut self, page: Page, is_scan_enabled: bool) -> Result<(Ctx, Scope, PageRequest)> {
        // To settle is to wait for a disk, which is not over soon.
        if self.is_trial && !self.transaction.is_settled() {
            return Err(Error::Timeout);
        }
        self.transaction.settle()?;
        let scope = Scope::PartitionKey(self.transaction.key().clone());
        let request = PageRequest {
            items_max: Some(page.items_max),
            continuation: page.continuation,
            is_scan_enabled,
            ..PageRequest::default()
        };
        let ctx = self.ctx.part();
        Ok((if self.is_trial { ctx.on_trial() } else { ctx }, scope, request))
    }

    fn query(&mut self, query: &QueryText, page: Page, is_scan_enabled: bool) -> Result<Reply> {
        let (ctx, scope, request) = self.page(page, is_scan_enabled)?;
        let core = self.transaction.core.clone();
        let container = self.transaction.container().clone();
        let bound = core.bind(&container, query)?;
        let functions = Functions::within(&core, &container, &bound, ctx.deadline())?;
        let found = core.query_page(&ctx, &container, &scope, bound, &request, &functions)?;
        Ok(self.found("query", found))
    }

    fn found(&mut self, label: &str, page: FeedPage) -> Reply {
        self.spent.add_operation(|| label.to_owned(), Bill::from((page.charge, page.receipt)));
        Reply::Page { rows: page.rows, continuation: page.continuation }
    }

    fn operate(&mut self, operation: Operation) -> Result<Reply> {
        match operation {
            Operation::Read { item, if_none_match } => self.read(&item, if_none_match.as_deref()),
            Operation::ReadFeed { page } => {
                let (ctx, scope, request) = self.page(page, true)?;
                let (core, container) =
                    (self.transaction.core.clone(), self.transaction.container().clone());
                let found = core.read_feed(&ctx, &container, &scope, &request)?;
                Ok(self.found("read feed", found))
            }
            Operation::Query { text, parameters, page, is_scan_enabled } => {
                self.query(&QueryText { text, parameters }, page, is_scan_enabled)
            }
            Operation::Create { body, is_indexed } => {
                let draft = self.draft(&body)?;
                self.store(WriteKind::Create(draft), None, is_indexed)
            }
            Operation::Upsert { body, etag, is_indexed } => {
                let draft = self.draft(&body)?;
                self.store(WriteKind::Upsert(draft), etag.as_deref(), is_indexed)
            }
            Operation::Replace { item, body, etag, is_indexed } => {
                let (id, draft) = (self.id_of(&item)?, self.draft(&body)?);
                self.store(WriteKind::Replace(id, draft), etag.as_deref(), is_indexed)
            }
            Operation::Delete { item, etag } => {
                let id = self.id_of(&item)?;
                self.store(WriteKind::Delete(id), etag.as_deref(), None)
            }
        }
    }

    /// An error as a script sees it; one that is not its business ends it.
    fn told(&mut self, error: Error) -> HostError {
        match number_of(&error) {
            Some(number) => HostError::Refused { number, message: error.to_string() },
            None => {
                self.fatal = Some(error);
                HostError::Fatal
            }
        }
    }
}

impl script::Host for ScriptHost {
    /// While what is left of the throughput pays for what waits and for one more, each at the
    /// average price of what the script has done.
    fn accepts(&mut self) -> bool {
        let (container, key) = (self.transaction.container(), self.transaction.logical_key());
        let left = self.transaction.core.left(&self.ctx, container, key.partition);
        let spent = self.spent.charge();
        let average = spent.raw().checked_div(self.done).unwrap_or(RequestCharge::ONE.raw());
        let waiting = self.accepted - self.done;
        let needed = spent + RequestCharge::from_raw(average) * (waiting + 1);
        let is_accepted = left.is_none_or(|left| needed <= left);
        self.accepted += u64::from(is_accepted);
        is_accepted
    }

    fn run(&mut self, operation: Operation) -> std::result::Result<Reply, HostError> {
        self.done += 1;
        self.operate(operation).map_err(|error| self.told(error))
    }

    fn evaluate(
        &mut self,
        expression: &str,
        parameters: Vec<(String, Value)>,
    ) -> std::result::Result<Value, HostError> {
        let query = QueryText { text: format!("SELECT VALUE {expression}"), parameters };
        let value = self.transaction.core.evaluate(&self.ctx, &query);
        value.map_err(|error| self.told(error))
    }
}

/// What a receipt calls a write; nothing if none is wanted.
fn label_of(ctx: &Ctx, kind: &WriteKind) -> String {
    if !ctx.wants_receipt() {
        return String::new();
    }
    let of_draft = |draft: &Draft| {
        let id = draft.root().get("id").and_then(|node| node.as_str().map(|id| id.into_owned()));
        id.unwrap_or_default()
    };
    match kind {
        WriteKind::Create(draft) => format!("create {}", of_draft(draft)),
        WriteKind::Upsert(draft) => format!("upsert {}", of_draft(draft)),
        WriteKind::Replace(id, _) => format!("replace {}", id.as_str()),
        WriteKind::Patch(id, _) => format!("patch {}", id.as_str()),
        WriteKind::Delete(id) => format!("delete {}", id.as_str()),
    }
}

/// The item a script's link names.
fn find(txn: &mut Txn<'_>, link: &ItemLink) -> Result<Handle> {
    match link {
        ItemLink::Id(id) => txn.get(id)?.ok_or(Error::NotFound),
        ItemLink::Rid(rid) => match Rid::parse(rid) {
            Some(Rid::Child(_, container, ordinal)) if container == txn.container() => {
                txn.get_by_ordinal(ordinal)?.ok_or(Error::NotFound)
            }
            Some(_) | None => Err(Error::NotFound),
        },
    }
}

/// The number scripts know a refusal by. Part of the scripts' language, whatever clients are told.
fn number_of(error: &Error) -> Option<u16> {
    match error {
        Error::Invalid(_)
        | Error::InvalidQuery(_)
        | Error::NotSupported(_)
        | Error::PartitionKeyMismatch
        | Error::PartitionKeyMissing
        | Error::Script(_) => Some(400),
        Error::Forbidden(_) | Error::LogicalPartitionFull => Some(403),
        Error::NotFound => Some(404),
        Error::Conflict | Error::UniqueKeyConflict => Some(409),
        Error::PreconditionFailed | Error::PatchConditionFailed => Some(412),
        Error::TooLarge(_) => Some(413),
        Error::RetryWith => Some(449),
        Error::AfterTriggers(refused) => number_of(&refused.error),
        Error::ContainerRecreated { .. }
        | Error::OwnerNotFound
        | Error::SessionNotAvailable { .. }
        | Error::Timeout
        | Error::RangeGone { .. }
        | Error::Locked(_)
        | Error::Throttled { .. }
        | Error::Unavailable
        | Error::Fault(_) => None,
    }
}
