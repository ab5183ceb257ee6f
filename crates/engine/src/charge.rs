//! What operations cost: the only place that prices work.
//!
//! Point operations follow the published size tables ([`tables`]); each index term changed costs
//! one write quantum. Queries are priced by what each physical partition did ([`query()`]).
//! Everything is integers, so a charge is the same on every machine and in every order.
//!
//! A price is summed up by a [`Bill`], which keeps its lines if a receipt is wanted.
//!
//! ELSEWHERE  What is counted: `base::Meter`, and `query` for the work of queries. Why these
//!            prices: `docs/adr/0011-pricing.md`.

mod query;
mod tables;

#[cfg(test)]
mod calibration;

use base::Ctx;
use item::{Kind, Node};
use model::RequestCharge;
use model::container::ContainerDefinition;
use model::container::path::PropertyPath;
use storage::upkeep::Derived;

pub use crate::receipt::{Bill, Receipt, Work};
pub(crate) use query::{Terms as QueryTerms, query};
use tables::{read_base, write_base};

use crate::Error;

/// Which price list a server charges by. What it counts is what the engine does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// The prices of 2019: every row of an aggregate is loaded, every partition of an ordered query
    /// serves a first page.
    #[default]
    Of2019,
    /// Aggregates come from the index, and partitions are merged as far as rows are wanted.
    Modern,
}

/// A point read that finds nothing, or nothing newer.
pub const MISS: RequestCharge = RequestCharge::ONE;
/// Reads and writes of databases, containers, offers and the like.
pub const METADATA: RequestCharge = RequestCharge::ONE;
/// A write refused for a version or an identity that is taken: 26/21 RU.
const REFUSED_WRITE: RequestCharge = RequestCharge::from_raw(26 * 100_000);
/// A request refused for lack of throughput: 8/21 RU.
const THROTTLED: RequestCharge = RequestCharge::from_raw(8 * 100_000);
/// Each operation of a patch: 0.4 RU.
const PATCH_OPERATION: RequestCharge = RequestCharge::from_raw(840_000);
/// S0, the start of a script: 0.15 RU.
const SCRIPT_START: RequestCharge = RequestCharge::from_raw(315_000);
/// A quantum of the base of a write within a script, which shares its transaction with others:
/// 0.6 of one sent by a client.
const SCRIPT_QUANTUM: RequestCharge = RequestCharge::from_raw(240_000);
/// Bytes of vectors that count as one term.
const VECTOR_TERM_BYTES: u64 = 1024;

/// Who has a write done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// A client, by itself or in a batch; a write that triggers a trigger too.
    #[default]
    Client,
    /// A script, among other operations of its transaction.
    Script,
}

/// How writes are billed: for whom, and whether line by line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Till {
    origin: Origin,
    wants_receipt: bool,
}

impl Till {
    pub fn new(ctx: &Ctx, origin: Origin) -> Till {
        Till { origin, wants_receipt: ctx.wants_receipt() }
    }

    fn quantum(self) -> RequestCharge {
        match self.origin {
            Origin::Client => RequestCharge::WRITE_QUANTUM,
            Origin::Script => SCRIPT_QUANTUM,
        }
    }

    /// A create of a version.
    pub fn create(self, definition: &ContainerDefinition, size: Size<'_>) -> Bill {
        self.whole(Work::Created(size.bytes), size.bytes, terms(definition, size))
    }

    /// A delete of one.
    pub fn delete(self, definition: &ContainerDefinition, size: Size<'_>) -> Bill {
        self.whole(Work::Deleted(size.bytes), size.bytes, terms(definition, size))
    }

    fn whole(self, what: Work, bytes: usize, terms: u64) -> Bill {
        let mut bill = Bill::of(self.wants_receipt, what, write_base(bytes), self.quantum());
        bill.add(Work::Terms, terms, RequestCharge::WRITE_QUANTUM);
        bill
    }

    /// A version whose terms another policy changes.
    pub fn reindex(self, old: &Derived, new: &Derived) -> Bill {
        let sides = [old, new].map(|side| (&side.terms, &side.composites));
        let terms = index::charge_difference(sides[0], sides[1])
            + index::changed_terms(&old.texts, &new.texts)
            + index::changed_terms(&old.spatials, &new.spatials);
        Bill::of(self.wants_receipt, Work::Terms, u64::from(terms), RequestCharge::WRITE_QUANTUM)
    }

    /// A replacement of one version by another.
    pub fn replace(self, definition: &ContainerDefinition, old: Size<'_>, new: Size<'_>) -> Bill {
        self.both((old.bytes, new.bytes), terms_changed(definition, old, new))
    }

    fn both(self, (old, new): (usize, usize), terms: u64) -> Bill {
        let mut bill = Bill::new(self.wants_receipt);
        bill.add(Work::OldVersion(old), write_base(old), self.quantum());
        bill.add(Work::NewVersion(new), write_base(new), self.quantum());
        bill.add(Work::Terms, terms, RequestCharge::WRITE_QUANTUM);
        bill
    }

    /// What the operations of a patch add to its replacement.
    pub fn patch(self, bill: &mut Bill, operations: usize) {
        bill.add(Work::PatchOperations, operations as u64, PATCH_OPERATION);
    }
}

/// What the price of a write depends on: the size of a version and what it contributes.
#[derive(Clone, Copy)]
pub(crate) struct Size<'a> {
    /// Bytes of its text.
    pub bytes: usize,
    /// Its properties.
    pub root: Node<'a>,
    /// Its terms.
    pub derived: &'a Derived,
}

/// T: what a version has in the index.
fn terms(definition: &ContainerDefinition, size: Size<'_>) -> u64 {
    let listed = size.derived.texts.len() + size.derived.spatials.len();
    let vectors = vectors(definition).filter(|(path, _)| vector(path, size.root).is_some());
    let counted = index::charge_terms(definition, &size.derived.terms);
    u64::from(counted) + listed as u64 + vectors.map(|(_, terms)| terms).sum::<u64>()
}

/// Δ: what a replacement changes in the index, removed and added.
fn terms_changed(definition: &ContainerDefinition, old: Size<'_>, new: Size<'_>) -> u64 {
    let (was, is) = (old.derived, new.derived);
    let sides = [was, is].map(|side| (&side.terms, &side.composites));
    let changed = index::charge_difference(sides[0], sides[1])
        + index::changed_terms(&was.texts, &is.texts)
        + index::changed_terms(&was.spatials, &is.spatials);
    let pairs = was.uniques.iter().zip(&is.uniques);
    let uniques = 2 * pairs.filter(|(old, new)| old != new).count() as u64;
    let vectors = vectors(definition).map(|(path, terms)| {
        let sides = [old, new].map(|side| vector(path, side.root));
        let is_same = sides[0].map(Node::to_value) == sides[1].map(Node::to_value);
        if is_same { 0 } else { terms * sides.iter().flatten().count() as u64 }
    });
    u64::from(changed) + uniques + vectors.sum::<u64>()
}

/// The paths of indexed vectors, and the terms each counts for: one, and one per KB.
fn vectors(definition: &ContainerDefinition) -> impl Iterator<Item = (&PropertyPath, u64)> {
    definition.indexing.vector.iter().filter_map(|index| {
        let mut embeddings = definition.embeddings.iter();
        let embedding = embeddings.find(|embedding| embedding.path == index.path)?;
        let bytes = 4 * u64::from(embedding.dimensions);
        Some((&index.path, 1 + bytes.div_ceil(VECTOR_TERM_BYTES)))
    })
}

/// The vector an item has at a path.
fn vector<'a>(path: &PropertyPath, root: Node<'a>) -> Option<Node<'a>> {
    let node = root.path(path.segments().iter().map(String::as_str));
    node.filter(|node| node.kind() == Kind::Array)
}

/// A point read.
pub fn point_read(bytes: usize) -> RequestCharge {
    RequestCharge::READ_UNIT * read_base(bytes)
}

/// The bill of a point read.
pub(crate) fn read(ctx: &Ctx, bytes: usize) -> Bill {
    let what = Work::Read(bytes);
    Bill::of(ctx.wants_receipt(), what, read_base(bytes), RequestCharge::READ_UNIT)
}

/// The bill of a read that found nothing, or nothing newer.
pub(crate) fn nothing_read(ctx: &Ctx) -> Bill {
    Bill::of(ctx.wants_receipt(), Work::NothingRead, 1, MISS)
}

/// A page of a read feed or change feed: as much as point reads of its items.
pub(crate) fn feed(ctx: &Ctx, sizes: impl IntoIterator<Item = usize>) -> Bill {
    let (mut items, mut bytes, mut units) = (0, 0, 0);
    for size in sizes {
        (items, bytes, units) = (items + 1, bytes + size, units + read_base(size));
    }
    let mut bill = Bill::new(ctx.wants_receipt());
    match items {
        0 => bill.add(Work::EmptyPage, 1, MISS),
        _ => bill.add_sum(Work::Listed(bytes), items, RequestCharge::READ_UNIT * units),
    }
    bill
}

/// Steps of scripts and user-defined functions: 1 RU for two million, rounded half up.
pub fn fuel(steps: u64) -> RequestCharge {
    RequestCharge::from_raw((steps * 21 + 10) / 20)
}

/// Adds the start of a script to the bill of its transaction.
pub(crate) fn start_script(bill: &mut Bill) {
    bill.add(Work::ScriptStart, 1, SCRIPT_START);
}

/// Adds the steps of a script to the bill of its transaction.
pub(crate) fn add_fuel(bill: &mut Bill, steps: u64) {
    bill.add_sum(Work::Fuel, steps, fuel(steps));
}

/// The bill of something that was refused.
pub(crate) fn refused(ctx: &Ctx, error: &Error) -> Bill {
    Bill::of(ctx.wants_receipt(), Work::Refused, 1, of_failure(error))
}

/// What a failed request reports.
pub fn of_failure(error: &Error) -> RequestCharge {
    match error {
        Error::Conflict
        | Error::UniqueKeyConflict
        | Error::PreconditionFailed
        | Error::PatchConditionFailed => REFUSED_WRITE,
        Error::Throttled { .. } => THROTTLED,
        Error::Script(error) => error.charge,
        Error::AfterTriggers(refused) => refused.charge,
        Error::Invalid(_)
        | Error::InvalidQuery(_)
        | Error::NotSupported(_)
        | Error::PartitionKeyMismatch
        | Error::PartitionKeyMissing
        | Error::ContainerRecreated { .. }
        | Error::Forbidden(_)
        | Error::LogicalPartitionFull
        | Error::NotFound
        | Error::OwnerNotFound
        | Error::SessionNotAvailable { .. }
        | Error::RangeGone { .. }
        | Error::TooLarge(_)
        | Error::Locked(_)
        | Error::RetryWith
        | Error::Timeout => MISS,
        Error::Unavailable | Error::Fault(_) => RequestCharge::ZERO,
    }
}

/// What of that the provisioned throughput pays for: work that looked at the data. A request that
/// was refused before is reported only.
pub(crate) fn deducted(error: &Error) -> RequestCharge {
    match error {
        Error::Conflict
        | Error::UniqueKeyConflict
        | Error::PreconditionFailed
        | Error::PatchConditionFailed
        | Error::NotFound
        | Error::Script(_) => of_failure(error),
        // What triggers did is paid for already.
        Error::AfterTriggers(_)
        | Error::Throttled { .. }
        | Error::Invalid(_)
        | Error::InvalidQuery(_)
        | Error::NotSupported(_)
        | Error::PartitionKeyMismatch
        | Error::PartitionKeyMissing
        | Error::ContainerRecreated { .. }
        | Error::Forbidden(_)
        | Error::LogicalPartitionFull
        | Error::OwnerNotFound
        | Error::SessionNotAvailable { .. }
        | Error::RangeGone { .. }
        | Error::TooLarge(_)
        | Error::Locked(_)
        | Error::RetryWith
        | Error::Timeout
        | Error::Unavailable
        | Error::Fault(_) => RequestCharge::ZERO,
    }
}
