//! Work nobody waits for: expiry, deletions by key, dropped containers, index changes, retention.
//!
//! Each kind of work is done in small steps under the locks of the logical partitions it touches,
//! so that requests come in between. Everything can be interrupted at any point and goes on after a
//! restart: what is left to do is in the store, not in memory.

use std::sync::Arc;
use std::time::Duration;

use base::Deadline;
use base::worker::Worker;
use bytes::Bytes;
use item::Item;
use model::container::DefaultTtl;
use model::partition_key::PartitionKey;
use storage::change_log::{self, Bound};
use storage::keys;
use storage::scan::PartitionReader;
use storage::shape::{Partition, partition_key_of};
use storage::txn::version_of;
use storage::upkeep::{self, Derived};
use storage::visibility::{Erasure, Visibility};
use store::{Commit, Direction, Durability, Mark, Merge, Range, ScanOptions, Space, Ticket, Write};

use crate::charge::{Origin, Size, Till};
use crate::{Container, Core, Engine, Error, Pending, Result};

/// How often somebody looks for work when nobody wakes them.
const INTERVAL: Duration = Duration::from_secs(1);
/// Rows handled in one step.
const STEP: usize = 500;

/// The thread that does the work, if there is one.
pub(crate) struct Background {
    worker: Option<Worker>,
}

impl Background {
    pub fn start(core: &Arc<Core>, is_running: bool) -> Background {
        let core = Arc::downgrade(core);
        let body = move |signal: &base::worker::Signal| {
            let mut pause = INTERVAL;
            while signal.wait(pause) {
                let Some(core) = core.upgrade() else { return };
                pause = match step(&core) {
                    Ok(true) => Duration::ZERO,
                    // A failing disk is reported by the requests that meet it.
                    Ok(false) | Err(_) => INTERVAL,
                };
            }
        };
        Background { worker: is_running.then(|| Worker::spawn("background", body)) }
    }

    pub fn wake(&self) {
        if let Some(worker) = &self.worker {
            worker.wake();
        }
    }
}

/// One round of everything that is due. Returns whether something is left to do at once.
pub(crate) fn step(core: &Arc<Core>) -> Result<bool> {
    let mut is_left = drop_containers(core)?;
    for container in core.catalog.containers() {
        is_left |= expire(core, &container)?;
        is_left |= erase(core, &container)?;
        is_left |= transform(core, &container)?;
        is_left |= forget_versions(core, &container)?;
    }
    core.locks.sweep(&core.store.view());
    Ok(is_left)
}

fn relaxed(writes: Vec<Write>) -> Commit {
    Commit { writes, durability: Some(Durability::Relaxed), ..Commit::default() }
}

/// How far the data of a dropped container is removed. Who began at its first key each time would
/// pass by everything that was removed before, every time.
#[derive(Debug, Default)]
pub(crate) struct Dropping {
    container: u32,
    /// Which of the container's ranges, and the first key in it that may be left.
    range: usize,
    from: Vec<u8>,
    /// Whether this pass has found anything. A commit that was under way when the container was
    /// dropped may come to lie behind; so the last pass is one that finds nothing.
    has_found: bool,
}

/// Removes some of the data of dropped containers, then their markers.
fn drop_containers(core: &Core) -> Result<bool> {
    let view = core.store.view();
    let range = Range::prefix([keys::meta::DROPPED]);
    let dropped = view.reader().scan(Space::Meta, &range, ScanOptions::default())?.rows;
    let mut dropping = core.dropping.lock();
    for row in &dropped {
        let container = row.key.last_chunk::<4>().map_or(0, |bytes| u32::from_be_bytes(*bytes));
        if dropping.container != container {
            *dropping = Dropping { container, ..Dropping::default() };
        }
        if drop_some(core, &view, &mut dropping)? {
            return Ok(true);
        }
        let done = Write::Delete(Space::Meta, row.key.clone());
        core.store.commit(Commit { writes: vec![done], ..Commit::default() }).wait()?;
    }
    *dropping = Dropping::default();
    if !dropped.is_empty() {
        core.store.compact()?;
    }
    Ok(false)
}

/// Removes the next rows of a dropped container. Returns whether there may be more.
fn drop_some(core: &Core, view: &store::View, dropping: &mut Dropping) -> Result<bool> {
    let ranges = keys::of_container(dropping.container);
    while let Some((space, range)) = ranges.get(dropping.range) {
        let mut range = range.clone();
        if !dropping.from.is_empty() {
            range.start = std::mem::take(&mut dropping.from);
        }
        let options = ScanOptions { rows_max: 8 * STEP, keys_only: true, ..ScanOptions::default() };
        let rows = view.reader().scan(*space, &range, options)?.rows;
        if let Some(last) = rows.last() {
            let next = [&last.key[..], &[0]].concat();
            let delete = |row: store::Row| Write::Delete(*space, row.key);
            core.store.commit(relaxed(rows.into_iter().map(delete).collect())).wait()?;
            (dropping.from, dropping.has_found) = (next, true);
            return Ok(true);
        }
        dropping.range += 1;
    }
    let is_left = dropping.has_found;
    *dropping = Dropping { container: dropping.container, ..Dropping::default() };
    Ok(is_left)
}

/// Removes every item of a container that has expired under the time to live in force.
pub(crate) fn purge_expired(core: &Arc<Core>, container: &Arc<Container>) -> Result<()> {
    while expire(core, container)? {}
    Ok(())
}

/// Removes some expired items.
fn expire(core: &Arc<Core>, container: &Arc<Container>) -> Result<bool> {
    let default = container.definition().default_ttl;
    if default == DefaultTtl::Off {
        return Ok(false);
    }
    let now = core.clock.now().as_secs() as u32;
    let mut is_left = false;
    for partition in &container.layout.partitions {
        let mut ordinals = ordinals(core, &partition.place.expired_before(now + 1))?;
        if let DefaultTtl::Seconds(seconds) = default {
            let last = now.saturating_sub(seconds);
            let range = partition.place.terms(&index::ts_term(0), &index::ts_term(last + 1));
            ordinals.extend(aged(core, container, partition, &range, now)?);
        }
        is_left |= ordinals.len() >= STEP;
        purge(core, container, partition, &ordinals)?;
    }
    Ok(is_left)
}

fn ordinals(core: &Core, range: &Range) -> Result<Vec<u64>> {
    let options = ScanOptions { rows_max: STEP, keys_only: true, ..ScanOptions::default() };
    let rows = core.store.view().reader().scan(Space::Term, range, options)?.rows;
    Ok(rows.iter().filter_map(|row| keys::ordinal_of(&row.key)).collect())
}

/// Items old enough for the container's default, without those that have a ttl of their own.
fn aged(
    core: &Core,
    container: &Container,
    partition: &Partition,
    range: &Range,
    now: u32,
) -> Result<Vec<u64>> {
    let view = core.store.view();
    let visibility = container.visibility(now, &[]);
    let reader = PartitionReader { layout: &container.layout, partition, view: &view, visibility };
    let mut range = range.clone();
    loop {
        let page = reader.term_rows(&range, Direction::Forward, STEP)?;
        let found: Vec<u64> =
            page.rows.iter().filter_map(|row| keys::ordinal_of(&row.key)).collect();
        let mut expired = Vec::new();
        for ordinal in found {
            if reader.by_ordinal(ordinal)?.is_none() {
                expired.push(ordinal);
            }
        }
        match page.rows.last() {
            Some(last) if expired.is_empty() && page.is_cut => {
                range.start = [&last.key[..], &[0]].concat();
            }
            Some(_) | None => return Ok(expired),
        }
    }
}

/// Removes those of these items that are gone, each under its lock.
fn purge(
    core: &Arc<Core>,
    container: &Arc<Container>,
    partition: &Partition,
    ordinals: &[u64],
) -> Result<()> {
    let view = core.store.view();
    let mut last: Option<Ticket> = None;
    for &ordinal in ordinals {
        let Some(item) = stored(&view, partition, ordinal)? else { continue };
        let Some(key) = key_of(container, &item) else { continue };
        let ctx = core.ctx(Deadline::never());
        let mut guard = core.lock_blocking(container, key);
        let (_, committed) = core.transact(&ctx, &mut guard, |txn, _| Ok(txn.purge(ordinal)?))?;
        let Some(committed) = committed else { continue };
        let shape = container.shape.read();
        let derived = Derived::of(&shape, item.root());
        let size = Size { bytes: item.text_len(), root: item.root(), derived: &derived };
        let bill = Till::new(&ctx, Origin::Client).delete(&shape.definition, size);
        core.spend_in_background(container, partition.number, bill.charge());
        last = Some(committed.ticket);
    }
    last.map_or(Ok(()), |ticket| Ok(ticket.wait()?))
}

fn stored(view: &store::View, partition: &Partition, ordinal: u64) -> Result<Option<Item>> {
    let key = partition.place.item(ordinal);
    let bytes = view.reader().get(Space::Item, &key)?;
    Ok(bytes.and_then(|bytes| Item::from_bytes(bytes).ok()))
}

fn key_of(container: &Container, item: &Item) -> Option<PartitionKey> {
    partition_key_of(&container.layout.key_definition, item.root()).ok()
}

impl Engine {
    /// Deletes everything under a partition key, or under the first levels of a hierarchical one.
    /// It is invisible from the answer on; the space comes back in the background.
    pub fn delete_partition(
        &self,
        _ctx: &base::Ctx,
        container: &Arc<Container>,
        key: &PartitionKey,
    ) -> Result<Pending<()>> {
        let selection = container.select(&crate::ops::Scope::PartitionKey(key.clone()))?;
        let key = selection.key.clone().ok_or(Error::PartitionKeyMissing)?;
        let mut ticket = Ticket::resolved(Ok(()));
        for number in selection.partitions {
            ticket = self.core.mark_erased(container, number, &key);
        }
        self.background.wake();
        Ok(Pending::after(ticket, Ok(())))
    }
}

impl Core {
    /// Enqueues one erasure. Writers honour it from here on, readers once it is published.
    fn mark_erased(&self, container: &Container, number: u16, key: &PartitionKey) -> Ticket {
        let partition = &container.layout.partitions[usize::from(number)];
        partition.next_lsn(|lsn| {
            let value = [&lsn.to_be_bytes()[..], key.to_array().as_bytes()].concat();
            let marker = partition.place.erasure(&key.to_bytes());
            let commit = Commit {
                writes: vec![Write::Put(Space::Meta, marker, Bytes::from(value))],
                marks: vec![Mark { log: partition.log, position: lsn }],
                ..Commit::default()
            };
            let erasure = Erasure { key: key.clone(), partition: number, lsn };
            container.erasures.rcu(|all| {
                let others = all.iter().filter(|e| (&e.key, e.partition) != (key, number));
                others.cloned().chain([erasure.clone()]).collect::<Vec<_>>()
            });
            self.store.commit(commit)
        })
    }
}

/// Removes some of the items under deleted keys, then the deletion itself.
fn erase(core: &Arc<Core>, container: &Arc<Container>) -> Result<bool> {
    let erasures = container.erasures.load_full();
    let Some(erasure) = erasures.first() else { return Ok(false) };
    let view = core.store.view();
    let partition = &container.layout.partitions[usize::from(erasure.partition)];
    if view.position(partition.log) < erasure.lsn {
        return Ok(true); // Not published yet.
    }
    let now = core.clock.now().as_secs() as u32;
    let found = erased_items(core, container, partition, erasure, now)?;
    if !found.is_empty() {
        purge(core, container, partition, &found)?;
        return Ok(true);
    }
    let marker = partition.place.erasure(&erasure.key.to_bytes());
    core.store.commit(relaxed(vec![Write::Delete(Space::Meta, marker)])).wait()?;
    container
        .erasures
        .rcu(|all| all.iter().filter(|other| *other != erasure).cloned().collect::<Vec<_>>());
    Ok(erasures.len() > 1)
}

fn erased_items(
    core: &Core,
    container: &Container,
    partition: &Partition,
    erasure: &Erasure,
    now: u32,
) -> Result<Vec<u64>> {
    let view = core.store.view();
    let only = [erasure.clone()];
    let visibility = Visibility { now, default_ttl: None, erasures: &only };
    let definition = &container.layout.key_definition;
    let (mut from, to) = match definition.is_complete(&erasure.key) {
        true => keys::locality_bounds(index::locality(&erasure.key.to_bytes())),
        false => (0, 1 << 60),
    };
    loop {
        let range = partition.place.items(from, to);
        let options = ScanOptions { rows_max: STEP, ..ScanOptions::default() };
        let page = view.reader().scan(Space::Item, &range, options)?;
        let mut found = Vec::new();
        for row in &page.rows {
            let Ok(item) = Item::from_bytes(row.value.clone()) else { continue };
            from = item.ordinal() + 1;
            if visibility.gone(&item, partition.number, || key_of(container, &item)).is_some() {
                found.push(item.ordinal());
            }
        }
        if !found.is_empty() || !page.is_cut {
            return Ok(found);
        }
    }
}

/// Gives all items of a container the terms of its new policy, some at a time.
fn transform(core: &Arc<Core>, container: &Arc<Container>) -> Result<bool> {
    let (passes, policy) = {
        let shape = container.shape.read();
        (shape.retired.len(), shape.policy.clone())
    };
    if passes == 0 {
        return Ok(false);
    }
    // Everybody who decided under the old shape has enqueued; this waits until they are published.
    core.store.commit(Commit::default()).wait()?;
    let view = core.store.view();
    let total: u64 = container.statistics().iter().map(|s| s.documents).sum();
    let mut done = 0;
    for partition in &container.layout.partitions {
        let mut from = 0;
        loop {
            let range = partition.place.items(from, u64::MAX);
            let options = ScanOptions { rows_max: STEP, ..ScanOptions::default() };
            let page = view.reader().scan(Space::Item, &range, options)?;
            for row in &page.rows {
                from = keys::ordinal_of(&row.key).map_or(u64::MAX, |ordinal| ordinal + 1);
                reindex(core, container, partition, from - 1, &row.value)?;
            }
            done += page.rows.len() as u64;
            let percent = (done * 99 / total.max(done).max(1)) as u32;
            container.progress.store(percent, std::sync::atomic::Ordering::Relaxed);
            let is_dropped = container.is_dropped.load(std::sync::atomic::Ordering::Acquire);
            if !page.is_cut || is_dropped {
                break;
            }
        }
        recount(core, partition, &view, &policy)?;
    }
    core.store.commit(Commit::default()).wait()?;
    Ok(!core.catalog.finish_transformation(container, passes)?)
}

/// Makes the counts of items per path those of a policy. If another one came into force after
/// `view`, all of this is done again for it.
fn recount(
    core: &Core,
    partition: &Partition,
    view: &store::View,
    policy: &index::Policy,
) -> Result<()> {
    let merges = storage::counts::corrections(view, &partition.place, policy)?;
    for merges in merges.chunks(8 * STEP) {
        let commit = Commit { merges: merges.to_vec(), ..relaxed(Vec::new()) };
        core.store.commit(commit).wait()?;
    }
    Ok(())
}

/// Replaces the terms of one item by those of the policy in force, if it is still the same item.
fn reindex(
    core: &Arc<Core>,
    container: &Arc<Container>,
    partition: &Partition,
    ordinal: u64,
    seen: &Bytes,
) -> Result<()> {
    let Some(key) = Item::from_bytes(seen.clone()).ok().and_then(|item| key_of(container, &item))
    else {
        return Ok(());
    };
    let guard = core.lock_blocking(container, key);
    let shape = container.shape.read();
    let view = core.store.view();
    let item_key = partition.place.item(ordinal);
    let Some(bytes) = guard.pending.get(&view, Space::Item, &item_key)? else { return Ok(()) };
    let item = Item::from_bytes(bytes).map_err(|error| Error::Fault(error.to_string()))?;
    let version = version_of(&item);
    let derived = Derived::of(&shape, item.root());
    let (place, key) = (&partition.place, &guard.key);
    let new = upkeep::term_keys(&shape, place, key, version, &derived);
    let old = upkeep::possible_term_keys(&shape, place, key, version, (item.root(), &derived));
    if let Some(before) = shape.retired.last().filter(|_| item.is_indexed()) {
        let old = Derived::under(before, item.root());
        let till = Till::new(&core.ctx(Deadline::never()), Origin::Client);
        let bill = till.reindex(&old, &derived);
        core.spend_in_background(container, partition.number, bill.charge());
    }
    let (removed, _) = upkeep::difference(&old, &new);
    let mut writes: Vec<Write> =
        removed.into_iter().map(|key| Write::Delete(Space::Term, key)).collect();
    writes.extend(new.into_iter().map(|key| Write::Put(Space::Term, key, Bytes::new())));
    if let Some(Err(refusal)) = core.store.commit(relaxed(writes)).peek() {
        return Err(refusal.into());
    }
    Ok(())
}

/// Removes some versions that are older than the retention.
fn forget_versions(core: &Core, container: &Container) -> Result<bool> {
    let minutes = u64::from(container.definition().retention_minutes);
    if minutes == 0 {
        return Ok(false);
    }
    let oldest = core.clock.now().as_secs().saturating_sub(minutes * 60);
    let view = core.store.view();
    let mut is_left = false;
    for partition in &container.layout.partitions {
        let bound = Bound { rows_max: STEP, bytes_max: 8 << 20 };
        let run = change_log::read_versions(&view, partition, 0, bound)?;
        let old = run.entries.iter().take_while(|(_, version)| u64::from(version.ts) < oldest);
        let Some(through) = old.map(|(lsn, _)| *lsn).last() else { continue };
        let range = partition.place.log_range(b'v', 0, through);
        let options = ScanOptions { keys_only: true, ..ScanOptions::default() };
        let rows = view.reader().scan(Space::Log, &range, options)?.rows;
        is_left |= !run.is_end;
        let delete = |row: store::Row| Write::Delete(Space::Log, row.key);
        let mut commit = relaxed(rows.into_iter().map(delete).collect());
        let horizon = partition.place.version_horizon();
        commit.merges.push(Merge::Max(Space::Meta, horizon, through));
        core.store.commit(commit).wait()?;
    }
    Ok(is_left)
}
