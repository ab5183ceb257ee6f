//! The partition transaction: reads through staged and pending writes, and one commit.
//!
//! A transaction lives under the lock of one logical partition. It decides from *staged, then
//! pending, then view*; `commit` gives all its writes one LSN, each a position of its own, and
//! enqueues them as one commit. Dropping it abandons it.
//!
//! Most live for microseconds. One that a script works in is paused between the script's
//! operations ([`Paused`]), so that it holds nothing but its lock while JavaScript runs; it marks
//! its etags itself, because the script sees them before there is an LSN.
//!
//! ```text
//! Live    one item this transaction has looked at: what is stored, what is staged last
//! Staged  one write of it, in the order of the operations; its place is its position
//! ```
//!
//! INVARIANTS
//! (T1) Of an item written several times only the last version is stored; every version has its own
//!      etag and, where versions are kept, its own entry.
//! (T2) An identity points to exactly one live item; a unique key belongs to at most one.
//! (T3) Whatever is removed is removed with every key `upkeep` gives it.
//! (T4) An operation that is refused has staged nothing; the transaction can go on.

mod commit;

pub use commit::Committed;

use std::cell::OnceCell;
use std::collections::HashMap;

use bytes::Bytes;
use item::{Draft, Item, Node, Stamp};
use store::{Space, View};

use crate::keys::{self, SEQUENCE_BITS};
use crate::pending::Pending;
use crate::shape::{Layout, LogicalKey, Partition, Shape, partition_key_of};
use crate::upkeep::{self, Derived, Version};
use crate::visibility::{Gone, Visibility};
use crate::{Error, Result};

/// Where a transaction happens.
#[derive(Clone, Copy)]
pub struct At<'a> {
    /// The container's place.
    pub layout: &'a Layout,
    /// Its shape, held until the commit is enqueued.
    pub shape: &'a Shape,
    /// The logical partition.
    pub key: &'a LogicalKey,
    /// Which stored items are present.
    pub visibility: Visibility<'a>,
}

impl<'a> At<'a> {
    fn partition(&self) -> &'a Partition {
        &self.layout.partitions[usize::from(self.key.partition)]
    }

    fn identity_key(&self, id: &str) -> Bytes {
        self.partition().place.identity(&self.key.identity(id)).into()
    }
}

/// An item this transaction knows, by its place in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handle(usize);

/// What an item is at this point of the transaction.
pub enum Current<'t> {
    /// As it is stored.
    Stored(&'t Item),
    /// As this transaction will store it.
    Staged(&'t Draft),
}

impl<'t> Current<'t> {
    /// The body. Without system properties if staged.
    pub fn root(&self) -> Node<'t> {
        match self {
            Current::Stored(item) => item.root(),
            Current::Staged(draft) => draft.root(),
        }
    }

    /// The etag; a staged version has none that a client could know.
    pub fn etag(&self) -> Option<&'t str> {
        match self {
            Current::Stored(item) => Some(item.etag()),
            Current::Staged(_) => None,
        }
    }

    /// Bytes of the text, system properties included.
    pub fn text_len(&self) -> usize {
        match self {
            Current::Stored(item) => item.text_len(),
            Current::Staged(draft) => draft.text_len(),
        }
    }
}

struct Live {
    ordinal: u64,
    id: String,
    stored: Option<Stored>,
    /// Index of the staged version; `None` if untouched or removed.
    staged: Option<usize>,
    is_removed: bool,
}

impl Live {
    fn is_touched(&self) -> bool {
        self.staged.is_some() || self.is_removed
    }

    /// The staged version that will be stored.
    fn last_staged(&self) -> Option<usize> {
        self.staged.filter(|_| !self.is_removed)
    }
}

struct Stored {
    item: Item,
    id: String,
    gone: Option<Gone>,
    derived: OnceCell<Derived>,
}

impl Stored {
    fn derived(&self, shape: &Shape) -> &Derived {
        self.derived.get_or_init(|| Derived::of(shape, self.item.root()))
    }
}

struct Staged {
    live: usize,
    body: Option<Body>,
    is_indexed: bool,
}

/// A body about to be stored, with what it contributes to the index.
pub struct Body {
    draft: Draft,
    derived: Derived,
}

impl Body {
    /// Derives what `draft` contributes under a shape.
    pub fn new(shape: &Shape, draft: Draft) -> Body {
        let derived = Derived::of(shape, draft.root());
        Body { draft, derived }
    }

    /// The body itself.
    pub fn draft(&self) -> &Draft {
        &self.draft
    }

    /// What it contributes.
    pub fn derived(&self) -> &Derived {
        &self.derived
    }
}

/// See the module header.
pub struct Txn<'a> {
    at: At<'a>,
    view: View,
    pending: &'a mut Pending,
    live: Vec<Live>,
    /// `None`: nothing has this id.
    names: HashMap<String, Option<usize>>,
    staged: Vec<Staged>,
    mark: Option<EtagMark>,
}

/// What the etags of a transaction are made of, where they must be known before its LSN is.
#[derive(Clone, Copy, Debug)]
struct EtagMark {
    /// Stands for the LSN; its highest bit is set, which no LSN reaches.
    token: u64,
    ts: u32,
}

/// A transaction between two of its operations: what it has read and staged.
pub struct Paused {
    view: View,
    live: Vec<Live>,
    names: HashMap<String, Option<usize>>,
    staged: Vec<Staged>,
    mark: Option<EtagMark>,
}

impl Paused {
    /// A transaction that has not done anything, and whose versions can be seen before they are
    /// committed. `token` is random; `ts` is the time of all its writes.
    pub fn marked(view: View, token: u64, ts: u32) -> Paused {
        Paused {
            view,
            live: Vec::new(),
            names: HashMap::new(),
            staged: Vec::new(),
            mark: Some(EtagMark { token: token | 1 << 63, ts }),
        }
    }

    /// Derives again what bodies contribute to the index: the container has a new shape.
    pub fn reshape(&mut self, shape: &Shape) {
        for body in self.staged.iter_mut().filter_map(|staged| staged.body.as_mut()) {
            body.derived = Derived::of(shape, body.draft.root());
        }
        for stored in self.live.iter_mut().filter_map(|live| live.stored.as_mut()) {
            stored.derived = OnceCell::new();
        }
    }
}

impl<'a> Txn<'a> {
    /// Begins under the lock of `at.key`. `view` must be taken after the lock.
    pub fn begin(at: At<'a>, view: View, pending: &'a mut Pending) -> Txn<'a> {
        pending.prune(&view);
        Txn {
            at,
            view,
            pending,
            live: Vec::new(),
            names: HashMap::new(),
            staged: Vec::new(),
            mark: None,
        }
    }

    /// Goes on with a paused transaction, under the lock it began under.
    pub fn resume(at: At<'a>, pending: &'a mut Pending, paused: Paused) -> Txn<'a> {
        let Paused { view, live, names, staged, mark } = paused;
        Txn { at, view, pending, live, names, staged, mark }
    }

    /// Stops for a while.
    pub fn pause(self) -> Paused {
        let Txn { view, live, names, staged, mark, .. } = self;
        Paused { view, live, names, staged, mark }
    }

    /// Whether anything this transaction read may not be durable yet.
    pub fn depends_on_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// The item with this id, if one is present now.
    pub fn get(&mut self, id: &str) -> Result<Option<Handle>> {
        let known = match self.names.get(id) {
            Some(known) => *known,
            None => self.load(id)?,
        };
        Ok(known.filter(|&at| self.is_present(at)).map(Handle))
    }

    fn is_present(&self, at: usize) -> bool {
        let live = &self.live[at];
        !live.is_removed && live.stored.as_ref().is_none_or(|s| s.gone.is_none())
    }

    fn load(&mut self, id: &str) -> Result<Option<usize>> {
        let key = self.at.identity_key(id);
        let found = match self.pending.get(&self.view, Space::Key, &key)? {
            Some(value) => Some(self.load_ordinal(ordinal(&key, &value)?)?.ok_or_else(|| {
                Error::corrupt(Space::Key, &key, "the identity points to no item")
            })?),
            None => None,
        };
        self.names.insert(id.to_owned(), found);
        Ok(found)
    }

    /// The item at an ordinal, gone or not, unless this transaction already knows it.
    fn load_ordinal(&mut self, ordinal: u64) -> Result<Option<usize>> {
        if let Some(at) = self.live.iter().position(|live| live.ordinal == ordinal) {
            return Ok(Some(at));
        }
        let key = self.at.partition().place.item(ordinal);
        let Some(bytes) = self.pending.get(&self.view, Space::Item, &key)? else {
            return Ok(None);
        };
        let item = Item::from_bytes(bytes).map_err(|e| Error::corrupt(Space::Item, &key, e))?;
        let id = item.id().unwrap_or_default().into_owned();
        let partition = self.at.key.partition;
        let gone = self.at.visibility.gone(&item, partition, || Some(self.at.key.key.clone()));
        let stored = Some(Stored { item, id: id.clone(), gone, derived: OnceCell::new() });
        self.live.push(Live { ordinal, id, stored, staged: None, is_removed: false });
        Ok(Some(self.live.len() - 1))
    }

    /// The item at an ordinal, if one is present now.
    pub fn get_by_ordinal(&mut self, ordinal: u64) -> Result<Option<Handle>> {
        if ordinal >> SEQUENCE_BITS != u64::from(self.at.key.locality) {
            return Ok(None);
        }
        let known = self.load_ordinal(ordinal)?.filter(|&at| self.is_present(at));
        // Partition keys can share a locality: the item must really be of this one.
        Ok(known.map(Handle).filter(|handle| {
            let root = self.current(*handle).root();
            partition_key_of(&self.at.layout.key_definition, root).as_ref() == Ok(&self.at.key.key)
        }))
    }

    /// The number of the container.
    pub fn container(&self) -> u32 {
        self.at.layout.container
    }

    /// How many writes have been staged: the position of the next.
    pub fn staged_len(&self) -> usize {
        self.staged.len()
    }

    /// The position of the write that staged an item's current version.
    pub fn position_of(&self, handle: Handle) -> Option<usize> {
        self.live[handle.0].staged
    }

    /// By how many bytes of item text the logical partition grows.
    pub fn bytes_grown(&self) -> i64 {
        self.totals()[1]
    }

    /// What an item is now.
    pub fn current(&self, handle: Handle) -> Current<'_> {
        let live = &self.live[handle.0];
        if let Some(staged) = live.staged {
            let body = self.staged[staged].body.as_ref();
            let body = body.expect("the last version of a present item has a body");
            return Current::Staged(&body.draft);
        }
        let stored = live.stored.as_ref();
        Current::Stored(&stored.expect("an item without a staged version is stored").item)
    }

    /// An item as clients will see it. The transaction must be marked: only then a staged version
    /// has an etag already.
    pub fn shown(&self, handle: Handle) -> Item {
        match self.current(handle) {
            Current::Stored(item) => item.clone(),
            Current::Staged(draft) => {
                let staged = self.live[handle.0].staged.unwrap_or_default();
                self.stamped(staged, draft.clone(), 0, self.mark.map_or(0, |mark| mark.ts))
            }
        }
    }

    /// The etag of an item's current version; a staged one has one only in a marked transaction.
    pub fn etag_of(&self, handle: Handle) -> Option<String> {
        match self.current(handle) {
            Current::Stored(item) => Some(item.etag().to_owned()),
            Current::Staged(_) => {
                let (mark, staged) = (self.mark?, self.live[handle.0].staged?);
                let ordinal = self.live[handle.0].ordinal;
                Some(etag(mark.token, staged as u32, mark.ts, ordinal))
            }
        }
    }

    /// A staged body as the version it will be, or seems to be before it has an LSN.
    fn stamped(&self, position: usize, draft: Draft, lsn: u64, now: u32) -> Item {
        let staged = &self.staged[position];
        let ordinal = self.live[staged.live].ordinal;
        let (rid, self_link) = self.at.layout.links(ordinal);
        let (token, ts) = self.mark.map_or((lsn, now), |mark| (mark.token, mark.ts));
        let etag = etag(token, position as u32, ts, ordinal);
        draft.stamp(&Stamp {
            rid: &rid,
            self_link: &self_link,
            etag: &etag,
            ts,
            lsn,
            position: position as u32,
            ordinal,
            is_indexed: staged.is_indexed,
        })
    }

    /// What an item contributes to the index now.
    pub fn derived(&self, handle: Handle) -> &Derived {
        let live = &self.live[handle.0];
        if let Some(body) = live.staged.and_then(|at| self.staged[at].body.as_ref()) {
            return &body.derived;
        }
        let stored = live.stored.as_ref();
        stored.expect("an item without a staged version is stored").derived(self.at.shape)
    }

    /// Stages a new item. Nothing may have its id (T2).
    pub fn create(&mut self, id: &str, body: Body, is_indexed: bool) -> Result<Handle> {
        if self.get(id)?.is_some() {
            return Err(Error::IdTaken);
        }
        let ordinal = self.at.layout.next_ordinal(self.at.key.locality);
        let live = Live { ordinal, id: id.into(), stored: None, staged: None, is_removed: false };
        self.check_unique(&body, ordinal)?;
        self.remove_gone(id);
        self.live.push(live);
        self.names.insert(id.to_owned(), Some(self.live.len() - 1));
        self.stage(self.live.len() - 1, Some(body), is_indexed);
        Ok(Handle(self.live.len() - 1))
    }

    /// An item that is stored but gone gives up its identity to a new one.
    fn remove_gone(&mut self, id: &str) {
        if let Some(Some(at)) = self.names.get(id) {
            self.live[*at].is_removed = true;
        }
    }

    /// Stages a new version of an item, possibly under a new id.
    pub fn replace(
        &mut self,
        handle: Handle,
        id: &str,
        body: Body,
        is_indexed: bool,
    ) -> Result<()> {
        let is_renamed = self.live[handle.0].id != id;
        if is_renamed && self.get(id)?.is_some() {
            return Err(Error::IdTaken);
        }
        self.check_unique(&body, self.live[handle.0].ordinal)?;
        if is_renamed {
            self.remove_gone(id);
            let old = std::mem::replace(&mut self.live[handle.0].id, id.to_owned());
            self.names.insert(old, None);
            self.names.insert(id.to_owned(), Some(handle.0));
        }
        self.stage(handle.0, Some(body), is_indexed);
        Ok(())
    }

    /// Stages the removal of an item.
    pub fn delete(&mut self, handle: Handle) {
        self.stage(handle.0, None, false);
        self.live[handle.0].is_removed = true;
        let id = self.live[handle.0].id.clone();
        self.names.insert(id, None);
    }

    /// Stages the removal of a stored item that is gone. False if it is not there or not gone.
    pub fn purge(&mut self, ordinal: u64) -> Result<bool> {
        let Some(at) = self.load_ordinal(ordinal)? else { return Ok(false) };
        let is_gone = self.live[at].stored.as_ref().is_some_and(|s| s.gone.is_some());
        self.live[at].is_removed |= is_gone;
        Ok(is_gone)
    }

    fn stage(&mut self, live: usize, body: Option<Body>, is_indexed: bool) {
        self.live[live].staged = body.is_some().then_some(self.staged.len());
        self.staged.push(Staged { live, body, is_indexed });
    }

    fn check_unique(&mut self, body: &Body, ordinal: u64) -> Result<()> {
        let shape = self.at.shape;
        for (index, values) in body.derived.uniques.iter().enumerate() {
            let paths = &shape.definition.unique_keys[index].paths;
            let exact = upkeep::exact_unique_values(paths, body.draft.root());
            let place = &self.at.partition().place;
            let range = place.uniques(index as u8, &self.at.key.bytes, values);
            for row in self.pending.scan(&self.view, Space::Term, &range)? {
                if let Some(other) = keys::ordinal_of(&row.key)
                    && other != ordinal
                {
                    self.load_ordinal(other)?;
                }
            }
            let is_taken = (0..self.live.len()).any(|at| {
                self.live[at].ordinal != ordinal
                    && self.is_present(at)
                    && self.derived(Handle(at)).uniques[index] == *values
                    && upkeep::exact_unique_values(paths, self.current(Handle(at)).root()) == exact
            });
            if is_taken {
                return Err(Error::UniqueKey { index });
            }
        }
        Ok(())
    }
}

/// What an item's keys depend on.
pub fn version_of(item: &Item) -> Version {
    Version {
        ordinal: item.ordinal(),
        ts: item.ts(),
        ttl: item.ttl(),
        is_indexed: item.is_indexed(),
    }
}

fn ordinal(key: &[u8], value: &[u8]) -> Result<u64> {
    let bytes = <[u8; 8]>::try_from(value);
    let bytes = bytes.map_err(|_| Error::corrupt(Space::Key, key, "not an ordinal"))?;
    Ok(u64::from_be_bytes(bytes))
}

/// An etag in the form clients know: a GUID. New for every write, since the LSN or mark is.
fn etag(token: u64, position: u32, ts: u32, ordinal: u64) -> String {
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{ts:08x}{:04x}",
        token >> 32,
        (token >> 16) & 0xffff,
        token & 0xffff,
        position & 0xffff,
        ordinal & 0xffff
    )
}
