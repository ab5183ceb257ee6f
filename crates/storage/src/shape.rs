//! What a container is: its place (for life) and its shape (right now).
//!
//! A [`Layout`] never changes. A [`Shape`] is replaced as a whole when the container's definition
//! is; writers hold it from deciding to enqueuing, so a replacement waits for them and nothing is
//! ever written under a shape that is no longer in force.
//!
//! INVARIANTS
//! (P1) The partitions' ranges cover all effective partition keys without gap or overlap.
//! (P2) LSNs of a partition are given out in the order in which their commits are enqueued.
//! (P3) While `retired` is not empty, an item may have the terms of any policy in it, or of
//!      `policy`; only paths that all of them index are complete.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use item::{Kind, Node};
use model::Rid;
use model::container::{ContainerDefinition, DefaultTtl};
use model::epk::{EffectivePartitionKey, EpkRange};
use model::partition_key::{
    Component, HashVersion, KeyError, NotScalar, PartitionKey, PartitionKeyDefinition,
};
use model::rid::ChildKind;
use parking_lot::Mutex;
use store::LogId;

use crate::keys::{self, Place, SEQUENCE_BITS};

/// One physical partition.
#[derive(Debug)]
pub struct Partition {
    /// Its number, which is also the id of its range.
    pub number: u16,
    /// Where its keys are.
    pub place: Place,
    /// Its log in the store's positions.
    pub log: LogId,
    /// The effective partition keys it owns.
    pub range: EpkRange,
    head: Mutex<u64>,
}

impl Partition {
    /// Gives out the next LSN and enqueues what it is for, as one step (P2). Keep `enqueue` short.
    pub fn next_lsn<R>(&self, enqueue: impl FnOnce(u64) -> R) -> R {
        let mut head = self.head.lock();
        *head += 1;
        enqueue(*head)
    }
}

/// Where a container's data is. Fixed for its life.
#[derive(Debug)]
pub struct Layout {
    /// Number of the database.
    pub database: u32,
    /// Number of the container; never reused.
    pub container: u32,
    /// The physical partitions, in the order of their ranges.
    pub partitions: Vec<Partition>,
    /// Which properties make the partition key, and how it is hashed.
    pub key_definition: PartitionKeyDefinition,
    /// The paths of the partition key, as property names.
    pub key_paths: Vec<Vec<String>>,
    sequence: AtomicU64,
    self_prefix: String,
}

/// Where a layout starts counting after the store was opened.
pub struct Start {
    /// The last ordinal sequence given out.
    pub sequence: u64,
    /// The number of the first partition's log; the others follow.
    pub first_log: u32,
}

impl Layout {
    /// A container of so many physical partitions. `position` tells where each log stands.
    pub fn new(
        (database, container): (u32, u32),
        key_definition: PartitionKeyDefinition,
        partitions: u16,
        start: Start,
        position: impl Fn(LogId) -> u64,
    ) -> Layout {
        let partition = |(number, range): (usize, EpkRange)| {
            let log = LogId(start.first_log + number as u32);
            let number = number as u16;
            let head = Mutex::new(position(log));
            Partition { number, place: Place::new(container, number), log, range, head }
        };
        let ranges = model::epk::ranges(u32::from(partitions)).into_iter().enumerate();
        let rid = Rid::Container(database, container);
        let key_paths = key_definition.paths.iter().map(|path| path.segments().to_vec()).collect();
        Layout {
            database,
            container,
            partitions: ranges.map(partition).collect(),
            key_definition,
            key_paths,
            sequence: AtomicU64::new(start.sequence),
            self_prefix: format!("dbs/{}/colls/{rid}/docs/", Rid::Database(database)),
        }
    }

    /// The container's resource id.
    pub fn rid(&self) -> Rid {
        Rid::Container(self.database, self.container)
    }

    /// The physical partition of an effective partition key.
    pub fn partition_of(&self, epk: &EffectivePartitionKey) -> &Partition {
        let at = self.partitions.partition_point(|p| p.range.min <= *epk);
        &self.partitions[at.max(1) - 1]
    }

    /// A new ordinal for an item of this logical partition.
    pub fn next_ordinal(&self, locality: u32) -> u64 {
        let sequence = self.sequence.fetch_add(1, Ordering::Relaxed) + 1;
        debug_assert!(sequence < 1 << SEQUENCE_BITS, "36 bits of items outlast any container");
        u64::from(locality) << SEQUENCE_BITS | sequence
    }

    /// The rid of an item as text, and its self link.
    pub fn links(&self, ordinal: u64) -> (String, String) {
        let rid = self.rid().child(ChildKind::Item, ordinal).to_string();
        let link = format!("{}{rid}/", self.self_prefix);
        (rid, link)
    }
}

/// What a container is right now.
#[derive(Clone)]
pub struct Shape {
    /// Its definition.
    pub definition: Arc<ContainerDefinition>,
    /// Its compiled indexing policy.
    pub policy: index::Policy,
    /// Earlier policies whose terms may still be there (P3).
    pub retired: Vec<index::Policy>,
}

impl Shape {
    /// The shape of a definition, with no transformation under way.
    pub fn new(definition: Arc<ContainerDefinition>) -> Shape {
        let policy = index::Policy::of(&definition);
        Shape { definition, policy, retired: Vec::new() }
    }

    /// Whether all items have their terms at a path, and the count of it is right (P3, N1). The
    /// root has no terms; its count is right if every policy has an index.
    pub fn is_complete(&self, path: &index::Path) -> bool {
        let is_complete = |policy: &index::Policy| match path.segments.is_empty() {
            true => policy.is_consistent(),
            false => policy.is_indexed(path),
        };
        is_complete(&self.policy) && self.retired.iter().all(is_complete)
    }

    /// The default time to live as visibility wants it: `None` is off, negative has no default.
    pub fn default_ttl(&self) -> Option<i32> {
        match self.definition.default_ttl {
            DefaultTtl::Off => None,
            DefaultTtl::Never => Some(-1),
            DefaultTtl::Seconds(seconds) => Some(seconds as i32),
        }
    }

    /// Whether items of this container keep all their versions.
    pub fn keeps_versions(&self) -> bool {
        self.definition.retention_minutes > 0
    }
}

/// A partition key with everything that is derived from it once per request.
#[derive(Clone, Debug)]
pub struct LogicalKey {
    /// The key itself.
    pub key: PartitionKey,
    /// Its bytes in storage keys.
    pub bytes: Vec<u8>,
    /// Its effective partition key as it stands in identity keys.
    pub epk: Vec<u8>,
    /// Number of its physical partition.
    pub partition: u16,
    /// Its share of an ordinal.
    pub locality: u32,
}

impl LogicalKey {
    /// Routes a complete partition key.
    pub fn new(layout: &Layout, key: PartitionKey) -> LogicalKey {
        let epk = EffectivePartitionKey::of(&layout.key_definition, &key);
        let partition = layout.partition_of(&epk).number;
        let epk = match layout.key_definition.version {
            HashVersion::V1 => Vec::new(),
            HashVersion::V2 => epk.0,
        };
        let bytes = key.to_bytes();
        let locality = index::locality(&bytes);
        LogicalKey { key, bytes, epk, partition, locality }
    }

    /// The identity of one of its items.
    pub fn identity<'a>(&'a self, id: &'a str) -> keys::Identity<'a> {
        keys::Identity { epk: &self.epk, key: &self.bytes, id }
    }
}

/// The partition key an item has at its container's paths.
pub fn partition_key_of(
    definition: &PartitionKeyDefinition,
    root: Node<'_>,
) -> std::result::Result<PartitionKey, KeyError> {
    PartitionKey::extract(definition, |segments| {
        component(root.path(segments.iter().map(String::as_str)))
    })
}

/// Whether the partition key of an item begins with `key`. Nothing is copied.
pub fn has_partition_key(
    definition: &PartitionKeyDefinition,
    root: Node<'_>,
    key: &PartitionKey,
) -> bool {
    let mut parts = definition.paths.iter().zip(&key.0);
    parts.all(|(path, own)| {
        let node = root.path(path.segments().iter().map(String::as_str));
        match (own, node) {
            (Component::String(own), Some(node)) => node.is_string(own),
            (_, node) => component(node).is_ok_and(|component| component == *own),
        }
    })
}

fn component(node: Option<Node<'_>>) -> std::result::Result<Component, NotScalar> {
    let Some(node) = node else { return Ok(Component::Undefined) };
    match node.kind() {
        Kind::Null => Ok(Component::Null),
        Kind::Bool => Ok(Component::Bool(node.as_bool().unwrap_or_default())),
        Kind::Number => Ok(Component::Number(node.as_f64().unwrap_or_default())),
        Kind::String => Ok(Component::String(node.as_str().unwrap_or_default().into_owned())),
        Kind::Array | Kind::Object => Err(NotScalar),
    }
}
