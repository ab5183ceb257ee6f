//! From staged writes to one commit.
//!
//! Everything that does not depend on the LSN is worked out first; what does (versions, feed
//! entries) is added in the short moment in which the LSN is given out and the commit enqueued.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use item::Item;
use store::{Commit, Mark, Merge, Space, Store, Ticket, Write};

use super::{At, Live, Staged, Txn, version_of};
use crate::cache::ItemCache;
use crate::change_log::{self, VersionKind};
use crate::counts::PathChanges;
use crate::keys::{self, SEQUENCE_BITS};
use crate::pending::Publication;
use crate::upkeep::{self, Version};
use crate::visibility::Gone;
use crate::{Error, Result};

/// A transaction that has been enqueued.
pub struct Committed {
    /// Its position in the physical partition's log.
    pub lsn: u64,
    /// The version each staged write made; `None` for removals.
    pub versions: Vec<Option<Item>>,
    /// Resolves when all of it is published.
    pub ticket: Ticket,
}

impl Txn<'_> {
    /// Enqueues everything staged as one commit. `None` if there is nothing to write.
    pub fn commit(
        mut self,
        store: &dyn Store,
        cache: &Arc<ItemCache>,
        now: u32,
    ) -> Result<Option<Committed>> {
        if self.staged.is_empty() && !self.live.iter().any(|live| live.is_removed) {
            return Ok(None);
        }
        let now = self.mark.map_or(now, |mark| mark.ts);
        let mut commit = self.prepare(now);
        let partition = self.at.partition();
        let publication = Publication::new();
        let (lsn, versions, ticket, noted) = partition.next_lsn(|lsn| {
            let versions = self.stamp(lsn, now);
            self.write_versions(lsn, now, &versions, &mut commit);
            commit.marks.push(Mark { log: partition.log, position: lsn });
            normalize(&mut commit.writes);
            let noted = noted(&commit.writes);
            commit.before_publish = Some(self.publisher(&versions, cache, &publication));
            commit.is_awaited = true;
            check_limits(store, &commit)?;
            Ok::<_, Error>((lsn, versions, store.commit(commit), noted))
        })?;
        if let Some(Err(refusal)) = ticket.peek() {
            return Err(refusal.into());
        }
        for (space, key, value) in noted {
            self.pending.note(space, key, value, &publication);
        }
        Ok(Some(Committed { lsn, versions, ticket }))
    }

    /// Everything that does not depend on the LSN: identities, terms, counters.
    fn prepare(&self, now: u32) -> Commit {
        let mut commit = Commit::default();
        let mut sequence = 0;
        for live in self.live.iter().filter(|live| live.is_touched()) {
            let new = live.last_staged().map(|at| &self.staged[at]);
            self.write_keys(live, new, now, &mut commit.writes);
            if live.stored.is_none() {
                sequence = sequence.max(live.ordinal & ((1 << SEQUENCE_BITS) - 1));
            }
        }
        let totals = self.totals();
        let place = &self.at.partition().place;
        if totals != [0, 0] {
            let logical = place.logical_totals(&self.at.key.bytes);
            commit.merges.push(Merge::Add(Space::Meta, place.totals(), totals));
            commit.merges.push(Merge::Add(Space::Meta, logical, totals));
        }
        commit.merges.extend(self.path_changes().into_merges(place));
        if sequence > 0 {
            let key = keys::sequence(self.at.layout.container);
            commit.merges.push(Merge::Max(Space::Meta, key, sequence));
        }
        commit
    }

    /// How the numbers of items and bytes change.
    pub(super) fn totals(&self) -> [i64; 2] {
        let mut totals = [0i64; 2];
        for live in self.live.iter().filter(|live| live.is_touched()) {
            if let Some(stored) = &live.stored {
                totals[0] -= 1;
                totals[1] -= stored.item.text_len() as i64;
            }
            let body = live.last_staged().and_then(|at| self.staged[at].body.as_ref());
            if let Some(body) = body {
                totals[0] += 1;
                totals[1] += body.draft.text_len() as i64;
            }
        }
        totals
    }

    /// How the numbers of items per path change.
    fn path_changes(&self) -> PathChanges<'_> {
        let shape = self.at.shape;
        let mut changes = PathChanges::default();
        for live in self.live.iter().filter(|live| live.is_touched()) {
            let old = live.stored.as_ref().and_then(|stored| {
                upkeep::indexed_terms(shape, stored.item.is_indexed(), stored.derived(shape))
            });
            let staged = live.last_staged().map(|at| &self.staged[at]);
            let new = staged.and_then(|staged| {
                let derived = &staged.body.as_ref()?.derived;
                upkeep::indexed_terms(shape, staged.is_indexed, derived)
            });
            changes.note(old, new);
        }
        changes
    }

    fn write_keys(&self, live: &Live, new: Option<&Staged>, now: u32, writes: &mut Vec<Write>) {
        let At { shape, key, .. } = self.at;
        let place = &self.at.partition().place;
        let old_keys = live.stored.as_ref().map(|stored| {
            let (version, derived) = (version_of(&stored.item), stored.derived(shape));
            match shape.retired.is_empty() {
                true => upkeep::term_keys(shape, place, key, version, derived),
                false => {
                    let body = (stored.item.root(), derived);
                    upkeep::possible_term_keys(shape, place, key, version, body)
                }
            }
        });
        let body = new.and_then(|staged| Some((staged, staged.body.as_ref()?)));
        let new_keys = body.map(|(staged, body)| {
            let version = Version {
                ordinal: live.ordinal,
                ts: now,
                ttl: body.draft.ttl(),
                is_indexed: staged.is_indexed,
            };
            upkeep::term_keys(shape, place, key, version, &body.derived)
        });
        let old_keys = old_keys.unwrap_or_default();
        let new_keys = new_keys.unwrap_or_default();
        let (removed, added) = upkeep::difference(&old_keys, &new_keys);
        // While a policy changes, keys that seem to be there already may not be (P3).
        let added = if shape.retired.is_empty() { added } else { new_keys };
        writes.extend(removed.into_iter().map(|key| Write::Delete(Space::Term, key)));
        writes.extend(added.into_iter().map(|key| Write::Put(Space::Term, key, Bytes::new())));
        self.write_identity(live, body.is_some(), writes);
        if let Some(stored) = &live.stored {
            let entry = place.change(stored.item.lsn(), stored.item.position());
            writes.push(Write::Delete(Space::Log, entry));
            if body.is_none() {
                writes.push(Write::Delete(Space::Item, place.item(live.ordinal)));
            }
        }
    }

    fn write_identity(&self, live: &Live, is_kept: bool, writes: &mut Vec<Write>) {
        let old = live.stored.as_ref().map(|stored| stored.id.as_str());
        let new = is_kept.then_some(live.id.as_str());
        if old == new {
            return;
        }
        if let Some(old) = old {
            writes.push(Write::Delete(Space::Key, self.at.identity_key(old)));
        }
        if let Some(new) = new {
            let ordinal = Bytes::copy_from_slice(&live.ordinal.to_be_bytes());
            writes.push(Write::Put(Space::Key, self.at.identity_key(new), ordinal));
        }
    }

    /// Turns every staged body into the version it will be.
    fn stamp(&mut self, lsn: u64, now: u32) -> Vec<Option<Item>> {
        let bodies: Vec<_> = self.staged.iter_mut().map(|staged| staged.body.take()).collect();
        let stamped = bodies
            .into_iter()
            .enumerate()
            .map(|(position, body)| body.map(|body| self.stamped(position, body.draft, lsn, now)));
        stamped.collect()
    }

    fn write_versions(&self, lsn: u64, now: u32, versions: &[Option<Item>], commit: &mut Commit) {
        let place = &self.at.partition().place;
        for live in &self.live {
            let Some(item) = live.last_staged().and_then(|at| versions[at].as_ref()) else {
                continue;
            };
            let ordinal = Bytes::copy_from_slice(&live.ordinal.to_be_bytes());
            let body = item.as_bytes().clone();
            commit.writes.push(Write::Put(Space::Item, place.item(live.ordinal), body));
            commit.writes.push(Write::Put(Space::Log, place.change(lsn, item.position()), ordinal));
        }
        if self.at.shape.keeps_versions() {
            self.write_history(lsn, now, versions, commit);
        }
    }

    /// The entries of all-versions-and-deletes mode, in the order of the operations; purged items
    /// come last.
    fn write_history(&self, lsn: u64, now: u32, versions: &[Option<Item>], commit: &mut Commit) {
        let place = &self.at.partition().place;
        let mut latest: HashMap<usize, Item> = HashMap::new();
        let stored = |at: usize| self.live[at].stored.as_ref().map(|stored| stored.item.clone());
        let mut put = |position: usize, kind, id: &str, current, previous: Option<&Item>| {
            let change = change_log::Version {
                kind,
                lsn,
                ts: now,
                id,
                key: &self.at.key.key,
                current,
                previous,
            };
            let value = change.encode(&self.at.layout.key_definition);
            let key = place.version(lsn, position as u32);
            commit.writes.push(Write::Put(Space::Log, key, value));
        };
        for (position, staged) in self.staged.iter().enumerate() {
            let previous = latest.get(&staged.live).cloned().or_else(|| stored(staged.live));
            let kind = match (&versions[position], &previous) {
                (None, _) => VersionKind::Deleted,
                (Some(_), None) => VersionKind::Created,
                (Some(_), Some(_)) => VersionKind::Replaced,
            };
            let id = &self.live[staged.live].id;
            put(position, kind, id, versions[position].as_ref(), previous.as_ref());
            match &versions[position] {
                Some(item) => latest.insert(staged.live, item.clone()),
                None => latest.remove(&staged.live),
            };
        }
        let purged = self.live.iter().filter_map(|live| {
            let stored = live.stored.as_ref().filter(|_| live.is_removed)?;
            Some((stored, stored.gone?))
        });
        for (extra, (stored, gone)) in purged.enumerate() {
            let kind = match gone {
                Gone::Expired => VersionKind::Expired,
                Gone::Erased => VersionKind::Deleted,
            };
            put(self.staged.len() + extra, kind, &stored.id, None, Some(&stored.item));
        }
    }

    /// What runs before readers can see the commit: the cache learns what changed (H2).
    fn publisher(
        &self,
        versions: &[Option<Item>],
        cache: &Arc<ItemCache>,
        publication: &Publication,
    ) -> Box<dyn FnOnce(u64) + Send> {
        let mut changes: Vec<(Bytes, Option<Item>)> = Vec::new();
        for live in self.live.iter().filter(|live| live.is_touched()) {
            if let Some(stored) = live.stored.as_ref().filter(|s| s.id != live.id) {
                changes.push((self.at.identity_key(&stored.id), None));
            }
            let item = live.last_staged().and_then(|at| versions[at].clone());
            changes.push((self.at.identity_key(&live.id), item));
        }
        // A removal and a creation of the same identity: the creation counts.
        changes.sort_by_key(|(_, item)| item.is_some());
        let (cache, publication) = (cache.clone(), publication.clone());
        Box::new(move |sequence| {
            for (key, item) in &changes {
                cache.change(key, item.as_ref(), sequence);
            }
            publication.set(sequence);
        })
    }
}

/// Sorts writes by key and keeps the put where a key is both deleted and put.
fn normalize(writes: &mut Vec<Write>) {
    fn rank(write: &Write) -> (Space, &Bytes, bool) {
        match write {
            Write::Put(space, key, _) => (*space, key, false),
            Write::Delete(space, key) => (*space, key, true),
        }
    }
    writes.sort_by(|a, b| rank(a).cmp(&rank(b)));
    writes.dedup_by(|later, earlier| {
        let (a, b) = (rank(later), rank(earlier));
        (a.0, a.1) == (b.0, b.1)
    });
}

type Noted = Vec<(Space, Bytes, Option<Bytes>)>;

/// The writes that later writers of the same logical partition may read before they are published.
fn noted(writes: &[Write]) -> Noted {
    let is_read = |space: &Space, key: &Bytes| match space {
        Space::Item | Space::Key => true,
        Space::Term => key.get(6) == Some(&b'u'),
        Space::Meta | Space::Log => false,
    };
    let noted = writes.iter().filter_map(|write| match write {
        Write::Put(space, key, value) if is_read(space, key) => {
            Some((*space, key.clone(), Some(value.clone())))
        }
        Write::Delete(space, key) if is_read(space, key) => Some((*space, key.clone(), None)),
        Write::Put(..) | Write::Delete(..) => None,
    });
    noted.collect()
}

fn check_limits(store: &dyn Store, commit: &Commit) -> Result<()> {
    let (bytes, bytes_max) = (commit.bytes(), store.limits().commit_bytes_max);
    match bytes > bytes_max {
        true => Err(store::Error::TooLarge { what: "commit", bytes, bytes_max }.into()),
        false => Ok(()),
    }
}
