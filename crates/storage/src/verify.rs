//! Rebuilds everything derived from items and compares it with what is stored.
//!
//! Memory is bounded: for every item each key it needs is looked up, and the number of keys needed
//! is compared with the number stored. If all are there and there are no more, they are equal.

use std::collections::BTreeMap;

use bytes::Bytes;
use item::Item;
use store::{Range, ScanOptions, Space, View};

use crate::counts::{Difference, Tally};
use crate::keys::{self, Place};
use crate::shape::{Layout, LogicalKey, Partition, Shape, partition_key_of};
use crate::txn::version_of;
use crate::upkeep::{self, Derived};
use crate::{Error, Result};

/// What `verify` found in one physical partition.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Items looked at.
    pub items: u64,
    /// Index keys looked up.
    pub terms: u64,
    /// Everything that is wrong, one sentence each; cut at [`FINDINGS_MAX`].
    pub findings: Vec<String>,
}

/// More findings than this say nothing new.
pub const FINDINGS_MAX: usize = 100;

impl Report {
    fn find(&mut self, what: impl FnOnce() -> String) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(what());
        }
    }
}

/// Verifies one physical partition. `progress` is told the number of items done so far.
///
/// While a policy is being changed (P3) terms are allowed to be there or not.
pub fn verify(
    view: &View,
    layout: &Layout,
    shape: &Shape,
    partition: &Partition,
    mut progress: impl FnMut(u64),
) -> Result<Report> {
    let (report, tally) = (Report::default(), Tally::default());
    let mut check = Check { view, layout, shape, partition, report, tally };
    let mut logical: BTreeMap<Vec<u8>, [i64; 2]> = BTreeMap::new();
    let mut expected_terms = 0;
    let mut from = 0;
    loop {
        let range = partition.place.items(from, u64::MAX);
        let options = ScanOptions { rows_max: 1000, bytes_max: 8 << 20, ..ScanOptions::default() };
        let page = view.reader().scan(Space::Item, &range, options)?;
        for row in &page.rows {
            expected_terms += check.item(&row.key, &row.value, &mut logical)?;
            from = keys::ordinal_of(&row.key).map_or(u64::MAX, |ordinal| ordinal + 1);
        }
        progress(check.report.items);
        if !page.is_cut {
            break;
        }
    }
    check.totals(expected_terms, &logical)?;
    Ok(check.report)
}

struct Check<'a> {
    view: &'a View,
    layout: &'a Layout,
    shape: &'a Shape,
    partition: &'a Partition,
    report: Report,
    tally: Tally,
}

impl Check<'_> {
    fn place(&self) -> &Place {
        &self.partition.place
    }

    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>> {
        Ok(self.view.reader().get(space, key)?)
    }

    fn item(
        &mut self,
        key: &[u8],
        value: &Bytes,
        logical: &mut BTreeMap<Vec<u8>, [i64; 2]>,
    ) -> Result<u64> {
        self.report.items += 1;
        let Ok(item) = Item::from_bytes(value.clone()) else {
            self.report.find(|| format!("{} is no item", Error::corrupt(Space::Item, key, "")));
            return Ok(0);
        };
        let id = item.id().unwrap_or_default().into_owned();
        let Ok(partition_key) = partition_key_of(&self.layout.key_definition, item.root()) else {
            self.report.find(|| format!("item {id:?} has no partition key"));
            return Ok(0);
        };
        let logical_key = LogicalKey::new(self.layout, partition_key);
        let sums = logical.entry(logical_key.bytes.clone()).or_default();
        sums[0] += 1;
        sums[1] += item.text_len() as i64;
        self.identity(&item, &id, &logical_key)?;
        self.feed_entry(&item, &id)?;
        self.terms(&item, &id, &logical_key)
    }

    fn identity(&mut self, item: &Item, id: &str, key: &LogicalKey) -> Result<()> {
        if key.partition != self.partition.number {
            self.report.find(|| format!("item {id:?} is in the wrong physical partition"));
        }
        let identity = self.place().identity(&key.identity(id));
        let found = self.get(Space::Key, &identity)?.and_then(|v| keys::ordinal_of(&v));
        if found != Some(item.ordinal()) {
            self.report.find(|| format!("the identity of item {id:?} points to {found:?}"));
        }
        Ok(())
    }

    fn feed_entry(&mut self, item: &Item, id: &str) -> Result<()> {
        let entry = self.place().change(item.lsn(), item.position());
        let found = self.get(Space::Log, &entry)?.and_then(|v| keys::ordinal_of(&v));
        if found != Some(item.ordinal()) {
            self.report.find(|| format!("item {id:?} has no feed entry at LSN {}", item.lsn()));
        }
        if item.lsn() > self.view.position(self.partition.log) {
            self.report.find(|| format!("item {id:?} is newer than its log"));
        }
        Ok(())
    }

    fn terms(&mut self, item: &Item, id: &str, key: &LogicalKey) -> Result<u64> {
        let derived = Derived::of(self.shape, item.root());
        let terms = upkeep::term_keys(self.shape, self.place(), key, version_of(item), &derived);
        if let Some(terms) = upkeep::indexed_terms(self.shape, item.is_indexed(), &derived) {
            self.tally.add(terms);
        }
        self.report.terms += terms.len() as u64;
        if !self.shape.retired.is_empty() {
            return Ok(0);
        }
        for term in &terms {
            if self.get(Space::Term, term)?.is_none() {
                let key = Error::corrupt(Space::Term, term, "missing");
                self.report.find(|| format!("an index term of item {id:?} is missing: {key}"));
            }
        }
        Ok(terms.len() as u64)
    }

    fn totals(&mut self, terms: u64, logical: &BTreeMap<Vec<u8>, [i64; 2]>) -> Result<()> {
        let items = self.report.items;
        let place = *self.place();
        if self.shape.retired.is_empty() {
            let mut stored = 0;
            for tag in [b'x', b'y', b'g', b'w', b't', b'u'] {
                stored += self.count(Space::Term, &place.all(tag))?;
            }
            self.compare("index terms", terms, stored);
        }
        let entries = self.count(Space::Log, &place.all(b'f'))?;
        self.compare("feed entries", items, entries);
        let identities = self.count(Space::Key, &place.identities(&[]))?;
        self.compare("identities", items, identities);
        self.path_counts()?;
        self.counters(logical)
    }

    /// While a policy is being changed only the counts of complete paths are right (N1).
    fn path_counts(&mut self) -> Result<()> {
        let tally = std::mem::take(&mut self.tally);
        for Difference { path, stored, counted } in tally.differences(self.view, self.place())? {
            let path = index::Path::decode(&path).map(|(path, _)| path);
            let is_complete = path.as_ref().is_some_and(|path| self.shape.is_complete(path));
            if is_complete || self.shape.retired.is_empty() {
                let at = path.map_or("a long path".into(), |path| format!("{:?}", path.segments));
                self.report
                    .find(|| format!("{stored} items are counted at {at}, {counted} are there"));
            }
        }
        Ok(())
    }

    /// Counts in pages, so that a large range does not stand in memory.
    fn count(&self, space: Space, range: &Range) -> Result<u64> {
        Ok(self.view.reader().count(space, range)?)
    }

    fn compare(&mut self, what: &str, expected: u64, stored: u64) {
        if expected != stored {
            self.report.find(|| format!("{stored} {what} are stored, {expected} are needed"));
        }
    }

    fn counters(&mut self, logical: &BTreeMap<Vec<u8>, [i64; 2]>) -> Result<()> {
        let mut total = [0i64; 2];
        for (key, sums) in logical {
            total[0] += sums[0];
            total[1] += sums[1];
            let stored = read_sums(self.get(Space::Meta, &self.place().logical_totals(key))?);
            if stored != *sums {
                self.report.find(|| {
                    format!("a logical partition counts {stored:?}, its items make {sums:?}")
                });
            }
        }
        let counters = self.count(Space::Meta, &self.place().all_logical_totals())?;
        self.compare("counters of logical partitions", logical.len() as u64, counters);
        let stored = read_sums(self.get(Space::Meta, &self.place().totals())?);
        if stored != total {
            self.report
                .find(|| format!("the partition counts {stored:?}, its items make {total:?}"));
        }
        Ok(())
    }
}

/// Reads a row of sums as `Merge::Add` writes it; absent is zero.
pub fn read_sums(value: Option<Bytes>) -> [i64; 2] {
    let number = |at: usize| {
        let bytes = value.as_ref()?.get(at..at + 8)?;
        Some(i64::from_le_bytes(bytes.try_into().ok()?))
    };
    [number(0).unwrap_or(0), number(8).unwrap_or(0)]
}
