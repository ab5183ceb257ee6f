//! What clients know: what they were told, what they were not, and what must never come again.

use std::collections::{BTreeMap, HashMap};

/// An item: which container, partition key and id.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name {
    pub container: usize,
    pub key: String,
    pub id: String,
}

/// A physical partition of a container.
pub type Partition = (usize, u32);

/// Where a commit stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    pub partition: Partition,
    pub lsn: u64,
}

/// A version of an item, as a client saw it.
#[derive(Clone, Debug, PartialEq)]
pub struct Version {
    pub op: u64,
    pub born: u64,
    pub etag: String,
    pub rid: String,
}

/// An acknowledged write: the version it left, or none.
#[derive(Clone, Debug)]
struct Fact {
    place: Place,
    version: Option<Version>,
}

/// A write without an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Doubt {
    pub op: u64,
    pub is_delete: bool,
}

/// An item that was found after a restart.
#[derive(Clone, Debug)]
pub struct Found {
    pub place: Place,
    pub version: Version,
    pub worker: usize,
    /// The batch that it came with, and how many came.
    pub group: Option<(String, usize)>,
    pub slot: String,
}

/// All items that are there.
pub type Live = BTreeMap<Name, Found>;

/// Everything clients know.
pub struct History {
    /// Whether what was acknowledged must be there.
    is_durable: bool,
    /// Acknowledged writes since the last check, and what that check found.
    facts: HashMap<Name, Vec<Fact>>,
    doubts: HashMap<Name, Vec<Doubt>>,
    /// Which write took an LSN, which item a resource id, which version of an item an etag: for
    /// good.
    commits: HashMap<Place, u64>,
    rids: HashMap<String, (Name, u64)>,
    etags: HashMap<(Name, String), u64>,
    /// The highest LSN any reply showed, with a partition key served there.
    seen: HashMap<Partition, (u64, String)>,
    /// The highest LSN of an item the last check found in each partition.
    kept: HashMap<Partition, u64>,
    ops: u64,
}

impl History {
    pub fn new(is_durable: bool) -> History {
        History {
            is_durable,
            facts: HashMap::new(),
            doubts: HashMap::new(),
            commits: HashMap::new(),
            rids: HashMap::new(),
            etags: HashMap::new(),
            seen: HashMap::new(),
            kept: HashMap::new(),
            ops: 0,
        }
    }

    /// A number for the next write.
    pub fn next_op(&mut self) -> u64 {
        self.ops += 1;
        self.ops
    }

    pub fn commits(&self) -> usize {
        self.commits.len()
    }

    pub fn doubts(&self) -> usize {
        self.doubts.values().map(Vec::len).sum()
    }

    /// A write is about to be sent.
    pub fn sends(&mut self, name: &Name, doubt: Doubt) {
        self.doubts.entry(name.clone()).or_default().push(doubt);
    }

    /// A write was refused: it has not happened.
    pub fn refused(&mut self, name: &Name, op: u64) {
        if let Some(doubts) = self.doubts.get_mut(name) {
            doubts.retain(|doubt| doubt.op != op);
        }
    }

    /// A write was acknowledged.
    pub fn acknowledged(&mut self, name: &Name, op: u64, place: Place, version: Option<Version>) {
        self.refused(name, op);
        self.meets(name, op, place, version.as_ref());
        self.sees(place, &name.key);
        self.facts.entry(name.clone()).or_default().push(Fact { place, version });
    }

    /// A reply showed a position.
    pub fn sees(&mut self, place: Place, key: &str) {
        let seen = self.seen.entry(place.partition).or_insert((0, key.to_owned()));
        seen.0 = seen.0.max(place.lsn);
    }

    pub fn seen(&self) -> impl Iterator<Item = (Partition, u64, &str)> {
        self.seen.iter().map(|(partition, (lsn, key))| (*partition, *lsn, key.as_str()))
    }

    /// D5: takes down what a place, a resource id and an etag stand for.
    fn meets(&mut self, name: &Name, op: u64, place: Place, version: Option<&Version>) {
        let before = *self.commits.entry(place).or_insert(op);
        assert_eq!(before, op, "D5: {place:?} was used twice, now by {name:?}");
        let Some(version) = version else { return };
        let owner = (name.clone(), version.born);
        let before = self.rids.entry(version.rid.clone()).or_insert_with(|| owner.clone());
        assert_eq!(*before, owner, "D5: resource id {} was used twice", version.rid);
        let etag = (name.clone(), version.etag.clone());
        let before = *self.etags.entry(etag).or_insert(version.op);
        assert_eq!(before, version.op, "D5: {name:?} had etag {} before", version.etag);
    }

    /// Holds what was found after a restart against what is known (D1, D2, D5). From then on what
    /// was found is what is known.
    pub fn reconcile(&mut self, live: &Live) {
        for (name, found) in live {
            self.meets(name, found.version.op, found.place, Some(&found.version));
        }
        for found in live.values() {
            let kept = self.kept.entry(found.place.partition).or_default();
            *kept = found.place.lsn.max(*kept);
        }
        for name in self.facts.keys().chain(live.keys()) {
            self.compare(name, live.get(name));
        }
        let fact =
            |found: &Found| Fact { place: found.place, version: Some(found.version.clone()) };
        self.facts = live.iter().map(|(name, found)| (name.clone(), vec![fact(found)])).collect();
        self.doubts.clear();
    }

    /// Whether an acknowledged write must be there: always, or if one behind it is.
    fn is_due(&self, fact: &Fact) -> bool {
        let kept = self.kept.get(&fact.place.partition).copied().unwrap_or(0);
        self.is_durable || fact.place.lsn <= kept
    }

    fn compare(&self, name: &Name, found: Option<&Found>) {
        let none = Vec::new();
        let facts = self.facts.get(name).unwrap_or(&none);
        let doubts = self.doubts.get(name).map(Vec::as_slice).unwrap_or_default();
        let due = facts.iter().filter(|fact| self.is_due(fact)).max_by_key(|fact| fact.place.lsn);
        match (found, due) {
            (None, None) => {}
            (None, Some(fact)) => {
                let may_be_gone = fact.version.is_none()
                    || doubts.iter().any(|doubt| doubt.is_delete)
                    // Relaxed: a later deletion may have been kept, and leaves no trace.
                    || facts.iter().any(|later| later.version.is_none()
                        && later.place.lsn > fact.place.lsn);
                assert!(may_be_gone, "D1: {name:?} is gone; acknowledged: {fact:?}");
            }
            (Some(found), due) => {
                let known = due.map_or(0, |fact| fact.place.lsn);
                assert!(found.place.lsn >= known, "D1: {found:?} is older than {due:?}");
                let is_due = due.is_some_and(|fact| {
                    fact.place == found.place && fact.version.as_ref() == Some(&found.version)
                });
                let is_doubted = found.place.lsn > known
                    && doubts.contains(&Doubt { op: found.version.op, is_delete: false });
                assert!(
                    is_due || is_doubted,
                    "D2: nobody wrote {name:?} {found:?}; acknowledged {due:?}, in doubt {doubts:?}"
                );
            }
        }
    }
}
