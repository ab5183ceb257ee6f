//! The change log: every committed write of a physical partition, in commit order.
//!
//! The change feed and session tokens both read this one sequence, so they cannot disagree about
//! what happened first.
//!
//! ```text
//! lsn 41    [ create a ]
//! lsn 42    [ replace a, create b ]        one batch, one LSN, two positions
//! lsn 43    [ delete a ]                   the entry of a is gone
//! ```
//!
//! KEYS      f {lsn}{position} -> ordinal       latest version: one entry per live item
//!           v {lsn}{position} -> version       all versions and deletes, under a retention
//!
//! INVARIANTS
//! (C1) The commits of a partition take increasing LSNs; none is ever used twice.
//! (C2) An entry is written in the commit that writes the item it describes.
//! (C3) An update moves its item's entry to the new LSN, a deletion removes it, so a feed from the
//!      beginning meets every live item exactly once.
//! (C4) A page ends between LSNs, never inside one.
//!
//! ELSEWHERE  Merging partitions and continuations: `engine::feed`.

use std::ops::Range;

use bytes::Bytes;
use item::Item;
use model::partition_key::{PartitionKey, PartitionKeyDefinition};
use store::{ScanOptions, Space, View};

use crate::keys;
use crate::shape::Partition;
use crate::{Error, Result};

/// What happened to an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionKind {
    /// It is new.
    Created,
    /// It has a new body.
    Replaced,
    /// It was deleted.
    Deleted,
    /// Its time to live was over.
    Expired,
}

/// One entry of all-versions-and-deletes mode.
pub struct Version<'a> {
    /// What happened.
    pub kind: VersionKind,
    /// When, in the log.
    pub lsn: u64,
    /// When, in seconds since 1970.
    pub ts: u32,
    /// To which item.
    pub id: &'a str,
    /// Of which logical partition.
    pub key: &'a PartitionKey,
    /// The item now.
    pub current: Option<&'a Item>,
    /// The item before.
    pub previous: Option<&'a Item>,
}

impl Version<'_> {
    /// The stored form: time, partition key, and the JSON as clients get it.
    pub fn encode(&self, definition: &PartitionKeyDefinition) -> Bytes {
        let mut bytes = Vec::with_capacity(256);
        let key = self.key.to_array();
        bytes.extend_from_slice(&self.ts.to_be_bytes());
        bytes.extend_from_slice(&(key.len() as u32).to_be_bytes());
        bytes.extend_from_slice(key.as_bytes());
        self.write_json(definition, &mut bytes);
        bytes.into()
    }

    fn write_json(&self, definition: &PartitionKeyDefinition, out: &mut Vec<u8>) {
        out.push(b'{');
        if let Some(current) = self.current {
            out.extend_from_slice(b"\"current\":");
            out.extend_from_slice(&current.text());
            out.push(b',');
        }
        if let Some(previous) = self.previous {
            out.extend_from_slice(b"\"previous\":");
            out.extend_from_slice(&previous.text());
            out.push(b',');
        }
        let operation = match self.kind {
            VersionKind::Created => "create",
            VersionKind::Replaced => "replace",
            VersionKind::Deleted | VersionKind::Expired => "delete",
        };
        let mut metadata = format!(
            "\"metadata\":{{\"operationType\":\"{operation}\",\"lsn\":{},\"crts\":{}",
            self.lsn, self.ts
        );
        if let Some(previous) = self.previous {
            metadata += &format!(",\"previousImageLSN\":{}", previous.lsn());
        }
        if self.kind == VersionKind::Expired {
            metadata += ",\"timeToLiveExpired\":true";
        }
        if self.current.is_none() {
            let id = item::Value::string(self.id).to_json();
            metadata += &format!(",\"id\":{id},\"partitionKey\":{}", self.key.to_json(definition));
        }
        out.extend_from_slice(metadata.as_bytes());
        out.extend_from_slice(b"}}");
    }
}

/// One stored version, taken apart.
pub struct StoredVersion {
    /// When, in seconds since 1970.
    pub ts: u32,
    /// The JSON as clients get it.
    pub json: Bytes,
    key: Bytes,
}

impl StoredVersion {
    /// The partition key of the item.
    pub fn key(&self) -> Option<PartitionKey> {
        PartitionKey::parse(std::str::from_utf8(&self.key).ok()?).ok()
    }
}

fn decode_version(key: &[u8], value: &Bytes) -> Result<StoredVersion> {
    let corrupt = || Error::corrupt(Space::Log, key, "not a version");
    let word = |at: usize| -> Result<u32> {
        let bytes = value.get(at..at + 4).and_then(|b| <[u8; 4]>::try_from(b).ok());
        Ok(u32::from_be_bytes(bytes.ok_or_else(corrupt)?))
    };
    let end = 8 + word(4)? as usize;
    if end > value.len() {
        return Err(corrupt());
    }
    Ok(StoredVersion { ts: word(0)?, key: value.slice(8..end), json: value.slice(end..) })
}

/// A run of log entries. The last LSN is complete (C4).
pub struct Run<T> {
    /// (LSN, entry), in order.
    pub entries: Vec<(u64, T)>,
    /// Everything up to this LSN has been returned.
    pub through: u64,
    /// Whether the run reached the end of the log as the view has it.
    pub is_end: bool,
}

/// How much of a log to read at once. At least one transaction is returned, and only whole ones.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// About so many entries.
    pub rows_max: usize,
    /// About so many bytes.
    pub bytes_max: usize,
}

/// The newest versions of the items changed behind `after`, as far as their ordinals are among
/// these: others are not loaded.
pub fn read_latest(
    view: &View,
    partition: &Partition,
    after: u64,
    ordinals: Range<u64>,
    bound: Bound,
) -> Result<Run<Item>> {
    let run = read(view, partition, b'f', after, bound)?;
    let reader = view.reader();
    let mut entries: Vec<(u64, Item)> = Vec::with_capacity(run.entries.len());
    let mut bytes_read = 0;
    for (lsn, (key, value)) in run.entries {
        let ordinal = keys::ordinal_of(&value)
            .ok_or_else(|| Error::corrupt(Space::Log, &key, "not an ordinal"))?;
        if !ordinals.contains(&ordinal) {
            continue;
        }
        let item_key = partition.place.item(ordinal);
        let bytes = reader.get(Space::Item, &item_key)?;
        let bytes =
            bytes.ok_or_else(|| Error::corrupt(Space::Log, &key, "the entry has no item"))?;
        let item =
            Item::from_bytes(bytes).map_err(|e| Error::corrupt(Space::Item, &item_key, e))?;
        bytes_read += item.text_len();
        let whole = entries.partition_point(|(earlier, _)| *earlier < lsn);
        if bytes_read > bound.bytes_max && whole > 0 {
            entries.truncate(whole);
            return Ok(Run { entries, through: lsn - 1, is_end: false }); // C4
        }
        entries.push((lsn, item));
    }
    Ok(Run { entries, through: run.through, is_end: run.is_end })
}

/// The same from all items there are, without reading the log: each has the place of its entry.
pub fn latest_of(items: Vec<Item>, view: &View, partition: &Partition, after: u64) -> Run<Item> {
    let mut entries: Vec<(u64, Item)> =
        items.into_iter().map(|item| (item.lsn(), item)).filter(|(lsn, _)| *lsn > after).collect();
    entries.sort_unstable_by_key(|(lsn, item)| (*lsn, item.position()));
    Run { entries, through: view.position(partition.log).max(after), is_end: true }
}

/// The versions behind `after`.
pub fn read_versions(
    view: &View,
    partition: &Partition,
    after: u64,
    bound: Bound,
) -> Result<Run<StoredVersion>> {
    let run = read(view, partition, b'v', after, bound)?;
    let decode = |(lsn, (key, value)): (u64, (Bytes, Bytes))| {
        decode_version(&key, &value).map(|version| (lsn, version))
    };
    let entries = run.entries.into_iter().map(decode).collect::<Result<_>>()?;
    Ok(Run { entries, through: run.through, is_end: run.is_end })
}

fn read(
    view: &View,
    partition: &Partition,
    tag: u8,
    after: u64,
    bound: Bound,
) -> Result<Run<(Bytes, Bytes)>> {
    let last = view.position(partition.log);
    if after >= last {
        return Ok(Run { entries: Vec::new(), through: after, is_end: true });
    }
    // One row more than asked for tells whether the last transaction is complete.
    let mut wanted = bound.rows_max.saturating_add(1);
    let mut bytes_max = bound.bytes_max;
    loop {
        let range = partition.place.log_range(tag, after, last);
        let options = ScanOptions { rows_max: wanted, bytes_max, ..ScanOptions::default() };
        let page = view.reader().scan(Space::Log, &range, options)?;
        let mut entries = Vec::with_capacity(page.rows.len());
        for row in page.rows {
            let (lsn, _) = keys::log_position_of(&row.key)
                .ok_or_else(|| Error::corrupt(Space::Log, &row.key, "not a log key"))?;
            entries.push((lsn, (row.key, row.value)));
        }
        if !page.is_cut {
            return Ok(Run { entries, through: last, is_end: true });
        }
        let cut = entries.last().map_or(after, |(lsn, _)| *lsn);
        let whole = entries.partition_point(|(lsn, _)| *lsn < cut);
        if whole > 0 {
            entries.truncate(whole);
            return Ok(Run { entries, through: cut - 1, is_end: false });
        }
        // One transaction larger than the page: read all of it.
        wanted = wanted.saturating_mul(2);
        bytes_max = bytes_max.saturating_mul(2);
    }
}
