//! A live container: its layout, its shape, and what is in force right now.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};

use arc_swap::{ArcSwap, ArcSwapOption};
use model::container::ContainerDefinition;
use model::epk::{EffectivePartitionKey, EpkRange};
use model::partition_key::PartitionKey;
use model::rid::ChildKind;
use model::{Rid, SessionToken};
use parking_lot::RwLock;
use storage::shape::{Layout, LogicalKey, Partition, Shape};
use storage::verify::read_sums;
use storage::visibility::{Erasure, Visibility};
use store::{Space, Store, View};

use crate::ops::Scope;
use crate::source::Composites;
use crate::throughput::Usage;
use crate::{Error, Result};

/// A handle to one live container. Everything that outlives a request about it is here.
pub struct Container {
    pub(crate) layout: Layout,
    pub(crate) shape: RwLock<Arc<Shape>>,
    /// What queries want to know of the shape; made when the first one asks.
    pub(crate) composites: ArcSwapOption<Composites>,
    pub(crate) erasures: ArcSwap<Vec<Erasure>>,
    pub(crate) progress: AtomicU32,
    pub(crate) is_dropped: AtomicBool,
    /// Bytes of items in each physical partition, about.
    pub(crate) bytes: Vec<AtomicI64>,
    pub(crate) usage: Usage,
    store: Arc<dyn Store>,
    name: String,
    database_name: String,
    ranges_etag: String,
}

/// One physical partition as clients see it.
#[derive(Clone, Debug)]
pub struct RangeInfo {
    /// Its id.
    pub id: u32,
    /// First effective partition key, in hex.
    pub min: String,
    /// First effective partition key behind it, in hex.
    pub max: String,
    /// Its resource id.
    pub rid: Rid,
    /// Its position.
    pub lsn: u64,
}

/// How much is in one physical partition.
#[derive(Clone, Copy, Debug)]
pub struct PartitionStatistics {
    /// Its id.
    pub id: u32,
    /// Items.
    pub documents: u64,
    /// Bytes of their text.
    pub bytes: u64,
}

impl Container {
    pub(crate) fn new(
        layout: Layout,
        shape: Shape,
        (database_name, name): (&str, &str),
        erasures: Vec<Erasure>,
        store: Arc<dyn Store>,
    ) -> Container {
        let view = store.view();
        let bytes = layout.partitions.iter().map(|partition| {
            let sums = view.reader().get(Space::Meta, &partition.place.totals());
            AtomicI64::new(read_sums(sums.ok().flatten())[1])
        });
        Container {
            bytes: bytes.collect(),
            usage: Usage::new(layout.partitions.len()),
            progress: AtomicU32::new(if shape.retired.is_empty() { 100 } else { 0 }),
            is_dropped: AtomicBool::new(false),
            ranges_etag: format!("{:08x}-{:04x}", layout.container, layout.partitions.len()),
            name: name.to_owned(),
            database_name: database_name.to_owned(),
            composites: ArcSwapOption::empty(),
            erasures: ArcSwap::from_pointee(erasures),
            shape: RwLock::new(Arc::new(shape)),
            store,
            layout,
        }
    }

    /// Its resource id.
    pub fn rid(&self) -> Rid {
        self.layout.rid()
    }

    /// The resource id of its database.
    pub fn database_rid(&self) -> Rid {
        Rid::Database(self.layout.database)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name of its database.
    pub fn database_name(&self) -> &str {
        &self.database_name
    }

    /// Its definition as it is now.
    pub fn definition(&self) -> Arc<ContainerDefinition> {
        self.shape.read().definition.clone()
    }

    /// Its physical partitions in the order of their ranges.
    pub fn ranges(&self) -> Vec<RangeInfo> {
        let view = self.store.view();
        let info = |partition: &Partition| RangeInfo {
            id: u32::from(partition.number),
            min: partition.range.min.to_string(),
            max: partition.range.max.to_string(),
            rid: self.rid().child(ChildKind::PartitionKeyRange, u64::from(partition.number) + 1),
            lsn: view.position(partition.log),
        };
        self.layout.partitions.iter().map(info).collect()
    }

    /// Changes only when the physical partitions do.
    pub fn ranges_etag(&self) -> &str {
        &self.ranges_etag
    }

    /// The published position of a physical partition; 0 if there is none with this id.
    pub fn session(&self, partition: u32) -> u64 {
        let partition = self.layout.partitions.get(partition as usize);
        partition.map_or(0, |partition| self.store.view().position(partition.log))
    }

    /// Refuses to serve a client that has seen more of a physical partition than is published.
    pub fn check_session(&self, session: Option<&SessionToken>, partition: u32) -> Result<()> {
        crate::items::check_session(session, partition, self.session(partition))
    }

    /// The id of the physical partition of a complete partition key.
    pub fn partition_of(&self, key: &PartitionKey) -> u32 {
        let epk = EffectivePartitionKey::of(&self.layout.key_definition, key);
        u32::from(self.layout.partition_of(&epk).number)
    }

    /// How far the change of the indexing policy has come, in percent.
    pub fn transformation_progress(&self) -> u32 {
        self.progress.load(Ordering::Relaxed)
    }

    /// How much is in each physical partition.
    pub fn statistics(&self) -> Vec<PartitionStatistics> {
        let view = self.store.view();
        let one = |partition: &Partition| {
            let sums = view.reader().get(Space::Meta, &partition.place.totals());
            let [documents, bytes] = read_sums(sums.ok().flatten());
            let id = u32::from(partition.number);
            PartitionStatistics { id, documents: documents as u64, bytes: bytes as u64 }
        };
        self.layout.partitions.iter().map(one).collect()
    }

    /// Which stored items are present for a reader of `view`: only published erasures count.
    pub(crate) fn published_erasures(&self, view: &View) -> Arc<Vec<Erasure>> {
        let all = self.erasures.load_full();
        let log = |e: &Erasure| self.layout.partitions[usize::from(e.partition)].log;
        if all.iter().all(|e| view.position(log(e)) >= e.lsn) {
            return all;
        }
        Arc::new(all.iter().filter(|e| view.position(log(e)) >= e.lsn).cloned().collect())
    }

    /// Decides visibility at `now` with these erasures.
    pub(crate) fn visibility<'a>(&self, now: u32, erasures: &'a [Erasure]) -> Visibility<'a> {
        Visibility { now, default_ttl: self.shape.read().default_ttl(), erasures }
    }

    /// The part of the container a scope means.
    pub(crate) fn select(&self, scope: &Scope) -> Result<Selection> {
        match scope {
            Scope::Container => Ok(Selection::of(self, &EpkRange::all(), None, None)),
            Scope::PartitionKey(key) => self.select_key(key),
            // It is looked for there, wherever it is: a feed has a position in every partition.
            Scope::KeyInRange { key, partition } => {
                let partitions = vec![self.partition_by_id(partition)?];
                Ok(Selection { partitions, ..self.select_key(key)? })
            }
            Scope::Range { partition, epk } => {
                let partition = partition.as_deref().map(|id| self.partition_by_id(id));
                let all = EpkRange::all();
                let range = epk.as_ref().unwrap_or(&all);
                Ok(Selection::of(self, range, partition.transpose()?, None))
            }
        }
    }

    fn select_key(&self, key: &PartitionKey) -> Result<Selection> {
        let definition = &self.layout.key_definition;
        let key = definition.complete_prefix(key.clone());
        let key = key.map_err(|error| Error::Invalid(error.to_string()))?;
        if !definition.is_complete(&key) {
            let range = EpkRange::of_prefix(definition, &key);
            return Ok(Selection::of(self, &range, None, Some(key)));
        }
        let partition = self.partition_of(&key) as u16;
        Ok(Selection { partitions: vec![partition], key: Some(key), range: None })
    }

    fn partition_by_id(&self, id: &str) -> Result<u16> {
        let number = id.parse::<u16>().ok();
        let known = number.filter(|&n| usize::from(n) < self.layout.partitions.len());
        known.ok_or_else(|| Error::RangeGone { id: id.to_owned() })
    }
}

/// A scope made concrete: which physical partitions, and what to leave out of them.
#[derive(Clone, Debug)]
pub(crate) struct Selection {
    /// Numbers of the physical partitions, in order.
    pub partitions: Vec<u16>,
    /// Only items under this key, or this prefix of one.
    pub key: Option<PartitionKey>,
    /// Only items in this interval, if it does not cover the partitions wholly.
    pub range: Option<EpkRange>,
}

impl Selection {
    fn of(
        container: &Container,
        range: &EpkRange,
        only: Option<u16>,
        key: Option<PartitionKey>,
    ) -> Selection {
        let partitions = container.layout.partitions.iter();
        let chosen: Vec<&Partition> = partitions
            .filter(|p| only.is_none_or(|only| only == p.number) && p.range.overlaps(range))
            .collect();
        let is_whole = chosen.iter().all(|p| range.min <= p.range.min && p.range.max <= range.max);
        let range = (!is_whole && key.is_none()).then(|| range.clone());
        Selection { partitions: chosen.iter().map(|p| p.number).collect(), key, range }
    }

    /// Whether an item with this partition key is in the selection.
    pub fn contains(&self, container: &Container, key: &PartitionKey) -> bool {
        if let Some(own) = &self.key {
            return key.0.starts_with(&own.0);
        }
        self.range.as_ref().is_none_or(|range| {
            range.contains(&EffectivePartitionKey::of(&container.layout.key_definition, key))
        })
    }

    /// The logical partition, if it is just one.
    pub fn logical_key(&self, container: &Container) -> Option<LogicalKey> {
        let (layout, key) = (&container.layout, self.key.as_ref()?);
        layout.key_definition.is_complete(key).then(|| LogicalKey::new(layout, key.clone()))
    }

    /// Whether every item of the physical partitions is in the selection.
    pub fn is_whole(&self) -> bool {
        self.key.is_none() && self.range.is_none()
    }
}
