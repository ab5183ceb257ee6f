//! Every key of the database, on one page.
//!
//! ```text
//! Meta   00…                                   the store's own
//!        01 {kind}{rid}               -> JSON  catalog
//!        02 {name}                    -> bytes account: secrets and the next numbers
//!        03 {container}{partition} a  -> sums  items and bytes of a physical partition
//!        03 {container}{partition} l {pk}      items and bytes of a logical partition
//!        03 {container}{partition} n {path}    indexed items with a value at a path; at the
//!                                              root, all indexed items
//!        03 {container} o             -> max   last ordinal sequence given out
//!        03 {container}{partition} h  -> max   versions up to this LSN were purged
//!        04 {container}{partition}{pk}-> LSN   everything under this key up to LSN is deleted
//!        05 {container}               -> JSON  containers being dropped
//! Item   {container}{partition}{ordinal}       -> item
//! Key    {container}{partition}{epk}{pk}{id}   -> ordinal
//! Term   {container}{partition} x {path}{value}{ordinal}
//!        {container}{partition} y {composite}{values}{ordinal}
//!        {container}{partition} g {path}{cell}{ordinal}        geometries
//!        {container}{partition} w {path}{token}{ordinal}       words of texts
//!        {container}{partition} t {expiry}{ordinal}            items with a ttl of their own
//!        {container}{partition} u {number}{pk}{values}{ordinal}   unique keys
//! Log    {container}{partition} f {lsn}{position} -> ordinal   newest version of live items
//!        {container}{partition} v {lsn}{position} -> version   all versions and deletes
//! ```
//!
//! Numbers are big-endian, so byte order is numeric order: container 4 bytes, partition 2, ordinal
//! 8, LSN 8, position 4. `{pk}` is self-delimiting and a prefix of a hierarchical key is a byte
//! prefix. `{epk}` is 16 bytes per level, and nothing under hash version 1, whose effective keys
//! have no fixed width and whose containers have one partition anyway.
//!
//! An ordinal is 4 bits type (0), 24 bits locality (a hash of the whole partition key), 36 bits
//! sequence: items of a logical partition lie together, in insertion order.

use bytes::Bytes;
use model::epk::EffectivePartitionKey;
use model::partition_key::{HashVersion, PartitionKey, PartitionKeyDefinition};
use store::Range;

/// First bytes of the keys in `Space::Meta`.
pub mod meta {
    /// Catalog entries.
    pub const CATALOG: u8 = 0x01;
    /// Account-wide values.
    pub const ACCOUNT: u8 = 0x02;
    /// Counters.
    pub const COUNTER: u8 = 0x03;
    /// Deletions by partition key.
    pub const ERASURE: u8 = 0x04;
    /// Containers being dropped.
    pub const DROPPED: u8 = 0x05;
}

/// The place of one physical partition: the first six bytes of its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    prefix: [u8; 6],
}

/// Bytes of a counter of items per path before the path.
pub const PATH_COUNT_PREFIX_BYTES: usize = 8;

/// Bits of an ordinal's sequence.
pub const SEQUENCE_BITS: u32 = 36;

impl Place {
    /// Physical partition number `partition` of container number `container`.
    pub fn new(container: u32, partition: u16) -> Place {
        let mut prefix = [0; 6];
        prefix[..4].copy_from_slice(&container.to_be_bytes());
        prefix[4..].copy_from_slice(&partition.to_be_bytes());
        Place { prefix }
    }

    fn key(&self, capacity: usize) -> Vec<u8> {
        let mut key = Vec::with_capacity(6 + capacity);
        key.extend_from_slice(&self.prefix);
        key
    }

    fn tagged(&self, tag: u8, capacity: usize) -> Vec<u8> {
        let mut key = self.key(1 + capacity);
        key.push(tag);
        key
    }

    /// Where an item's body is.
    pub fn item(&self, ordinal: u64) -> Bytes {
        let mut key = self.key(8);
        key.extend_from_slice(&ordinal.to_be_bytes());
        key.into()
    }

    /// Where bodies are: keys one after the other, and how long each is.
    pub fn items_at(&self, ordinals: impl ExactSizeIterator<Item = u64>) -> (Vec<u8>, usize) {
        let key_bytes = self.prefix.len() + 8;
        let mut keys = Vec::with_capacity(ordinals.len() * key_bytes);
        for ordinal in ordinals {
            keys.extend_from_slice(&self.prefix);
            keys.extend_from_slice(&ordinal.to_be_bytes());
        }
        (keys, key_bytes)
    }

    /// Bodies with ordinals in `from..to`.
    pub fn items(&self, from: u64, to: u64) -> Range {
        Range::new(self.item(from), self.item(to))
    }

    /// All bodies.
    pub fn all_items(&self) -> Range {
        Range::prefix(self.prefix)
    }

    /// Where an identity is.
    pub fn identity(&self, identity: &Identity<'_>) -> Vec<u8> {
        let mut key = self.key(identity.epk.len() + identity.key.len() + identity.id.len());
        key.extend_from_slice(identity.epk);
        key.extend_from_slice(identity.key);
        key.extend_from_slice(identity.id.as_bytes());
        key
    }

    /// All identities whose effective partition key begins with `epk`.
    pub fn identities(&self, epk: &[u8]) -> Range {
        let mut key = self.key(epk.len());
        key.extend_from_slice(epk);
        Range::prefix(key)
    }

    /// Where an index term is.
    pub fn term(&self, term: &[u8], ordinal: u64) -> Bytes {
        self.with_ordinal(b'x', term, ordinal)
    }

    /// Where a composite term is.
    pub fn composite(&self, term: &[u8], ordinal: u64) -> Bytes {
        self.with_ordinal(b'y', term, ordinal)
    }

    /// Where a spatial term is.
    pub fn spatial(&self, term: &[u8], ordinal: u64) -> Bytes {
        self.with_ordinal(b'g', term, ordinal)
    }

    /// Where a full-text term is.
    pub fn text(&self, term: &[u8], ordinal: u64) -> Bytes {
        self.with_ordinal(b'w', term, ordinal)
    }

    /// Where the expiry of an item with a ttl of its own is.
    pub fn expiry(&self, at: u32, ordinal: u64) -> Bytes {
        self.with_ordinal(b't', &at.to_be_bytes(), ordinal)
    }

    /// Items whose own ttl ended before `at`.
    pub fn expired_before(&self, at: u32) -> Range {
        let start = self.tagged(b't', 0);
        let mut end = self.tagged(b't', 4);
        end.extend_from_slice(&at.to_be_bytes());
        Range::new(start, end)
    }

    /// Where a unique key is.
    pub fn unique(&self, number: u8, key: &[u8], values: &[u8], ordinal: u64) -> Bytes {
        let mut bytes = self.unique_prefix(number, key, values);
        bytes.extend_from_slice(&ordinal.to_be_bytes());
        bytes.into()
    }

    /// The items that have this unique key.
    pub fn uniques(&self, number: u8, key: &[u8], values: &[u8]) -> Range {
        Range::prefix(self.unique_prefix(number, key, values))
    }

    fn unique_prefix(&self, number: u8, key: &[u8], values: &[u8]) -> Vec<u8> {
        let mut bytes = self.tagged(b'u', 9 + key.len() + values.len());
        bytes.push(number);
        bytes.extend_from_slice(key);
        bytes.extend_from_slice(values);
        bytes
    }

    fn with_ordinal(&self, tag: u8, middle: &[u8], ordinal: u64) -> Bytes {
        let mut key = self.tagged(tag, middle.len() + 8);
        key.extend_from_slice(middle);
        key.extend_from_slice(&ordinal.to_be_bytes());
        key.into()
    }

    /// Terms between `start` and `end`, both without an ordinal.
    pub fn terms(&self, start: &[u8], end: &[u8]) -> Range {
        self.between(b'x', start, end)
    }

    /// Composite terms between `start` and `end`, both without an ordinal.
    pub fn composites(&self, start: &[u8], end: &[u8]) -> Range {
        self.between(b'y', start, end)
    }

    /// Spatial terms between `start` and `end`, both without an ordinal.
    pub fn spatials(&self, start: &[u8], end: &[u8]) -> Range {
        self.between(b'g', start, end)
    }

    /// Full-text terms between `start` and `end`, both without an ordinal.
    pub fn texts(&self, start: &[u8], end: &[u8]) -> Range {
        self.between(b'w', start, end)
    }

    fn between(&self, tag: u8, start: &[u8], end: &[u8]) -> Range {
        let bound = |term: &[u8]| {
            let mut key = self.tagged(tag, term.len());
            key.extend_from_slice(term);
            key
        };
        Range::new(bound(start), bound(end))
    }

    /// All entries of one kind in `Space::Term` (`x`, `y`, `g`, `w`, `t`, `u`) or `Space::Log`
    /// (`f`, `v`).
    pub fn all(&self, tag: u8) -> Range {
        Range::prefix(self.tagged(tag, 0))
    }

    /// Where the feed entry of a live item is.
    pub fn change(&self, lsn: u64, position: u32) -> Bytes {
        self.log(b'f', lsn, position)
    }

    /// Where a version is.
    pub fn version(&self, lsn: u64, position: u32) -> Bytes {
        self.log(b'v', lsn, position)
    }

    fn log(&self, tag: u8, lsn: u64, position: u32) -> Bytes {
        let mut key = self.tagged(tag, 12);
        key.extend_from_slice(&lsn.to_be_bytes());
        key.extend_from_slice(&position.to_be_bytes());
        key.into()
    }

    /// Log entries (`f` or `v`) of the LSNs behind `after`, up to and including `last`.
    pub fn log_range(&self, tag: u8, after: u64, last: u64) -> Range {
        Range::new(self.log(tag, after + 1, 0), self.log(tag, last + 1, 0))
    }

    /// Items and bytes of the physical partition.
    pub fn totals(&self) -> Bytes {
        self.counter(b'a', &[])
    }

    /// Items and bytes of a logical partition.
    pub fn logical_totals(&self, key: &[u8]) -> Bytes {
        self.counter(b'l', key)
    }

    /// All counters of logical partitions.
    pub fn all_logical_totals(&self) -> Range {
        Range::prefix(self.counter(b'l', &[]))
    }

    /// How many indexed items have a value at a path, given as its bytes.
    pub fn path_count(&self, path: &[u8]) -> Bytes {
        self.counter(b'n', path)
    }

    /// Appends the key of [`Place::path_count`].
    pub fn write_path_count(&self, path: &[u8], out: &mut Vec<u8>) {
        out.push(meta::COUNTER);
        out.extend_from_slice(&self.prefix);
        out.push(b'n');
        out.extend_from_slice(path);
    }

    /// All counters of items per path.
    pub fn all_path_counts(&self) -> Range {
        Range::prefix(self.counter(b'n', &[]))
    }

    /// Up to which LSN versions were purged.
    pub fn version_horizon(&self) -> Bytes {
        self.counter(b'h', &[])
    }

    fn counter(&self, tag: u8, rest: &[u8]) -> Bytes {
        [&[meta::COUNTER], &self.prefix[..], &[tag], rest].concat().into()
    }

    /// Where a deletion by partition key is.
    pub fn erasure(&self, key: &[u8]) -> Bytes {
        [&[meta::ERASURE], &self.prefix[..], key].concat().into()
    }

    /// All deletions by partition key.
    pub fn erasures(&self) -> Range {
        Range::prefix([&[meta::ERASURE], &self.prefix[..]].concat())
    }
}

/// The last ordinal sequence a container has given out.
pub fn sequence(container: u32) -> Bytes {
    [&[meta::COUNTER], &container.to_be_bytes()[..], b"o"].concat().into()
}

/// Where the record of a dropped container is.
pub fn dropped(container: u32) -> Bytes {
    [&[meta::DROPPED], &container.to_be_bytes()[..]].concat().into()
}

/// Every range that holds anything of a container, by space.
pub fn of_container(container: u32) -> Vec<(store::Space, Range)> {
    use store::Space;
    let id = container.to_be_bytes();
    let meta = |tag: u8| (Space::Meta, Range::prefix([&[tag], &id[..]].concat()));
    let data = [Space::Item, Space::Key, Space::Term, Space::Log];
    let mut ranges: Vec<_> = data.into_iter().map(|s| (s, Range::prefix(id))).collect();
    ranges.extend([meta(meta::COUNTER), meta(meta::ERASURE)]);
    ranges
}

/// The last eight bytes of an index or item key: its ordinal.
pub fn ordinal_of(key: &[u8]) -> Option<u64> {
    key.last_chunk::<8>().map(|bytes| u64::from_be_bytes(*bytes))
}

/// LSN and position of a log key.
pub fn log_position_of(key: &[u8]) -> Option<(u64, u32)> {
    let (rest, position) = key.split_last_chunk::<4>()?;
    let lsn = rest.last_chunk::<8>()?;
    Some((u64::from_be_bytes(*lsn), u32::from_be_bytes(*position)))
}

/// Where the items of a locality begin and end, as ordinals.
pub fn locality_bounds(locality: u32) -> (u64, u64) {
    let start = u64::from(locality) << SEQUENCE_BITS;
    (start, start + (1 << SEQUENCE_BITS))
}

/// The identity of an item, in the bytes its key is made of.
#[derive(Clone, Copy, Debug)]
pub struct Identity<'a> {
    /// See [`epk_part`].
    pub epk: &'a [u8],
    /// The partition key.
    pub key: &'a [u8],
    /// The item's id.
    pub id: &'a str,
}

/// The effective partition key as it stands in identity keys: empty under hash version 1.
pub fn epk_part(definition: &PartitionKeyDefinition, key: &PartitionKey) -> Vec<u8> {
    match definition.version {
        HashVersion::V1 => Vec::new(),
        HashVersion::V2 => EffectivePartitionKey::of(definition, key).0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_a_partition_stay_inside_its_ranges() {
        let place = Place::new(7, 3);
        let next = Place::new(7, 4);
        assert!(place.all_items().contains(&place.item(u64::MAX)));
        assert!(!place.all_items().contains(&next.item(0)));
        assert!(place.all(b'x').contains(&place.term(b"abc", 9)));
        assert!(place.all(b'g').contains(&place.spatial(b"abc", 9)));
        assert!(place.spatials(b"abb", b"abd").contains(&place.spatial(b"abc", 9)));
        assert!(!place.spatials(b"abb", b"abd").contains(&place.term(b"abc", 9)));
        assert!(place.all(b't').contains(&place.expiry(u32::MAX, 1)));
        assert!(place.expired_before(10).contains(&place.expiry(9, u64::MAX)));
        assert!(!place.expired_before(10).contains(&place.expiry(10, 0)));
        assert!(place.log_range(b'f', 4, 6).contains(&place.change(5, 0)));
        assert!(place.log_range(b'f', 4, 6).contains(&place.change(6, u32::MAX)));
        assert!(!place.log_range(b'f', 4, 6).contains(&place.change(4, u32::MAX)));
        assert!(!place.log_range(b'f', 4, 6).contains(&place.change(7, 0)));
    }

    #[test]
    fn the_counter_of_a_path_is_the_same_either_way() {
        let place = Place::new(7, 3);
        let mut key = Vec::new();
        place.write_path_count(b"path", &mut key);
        assert_eq!(key, place.path_count(b"path"));
        assert_eq!(&key[PATH_COUNT_PREFIX_BYTES..], b"path");
        assert!(place.all_path_counts().contains(&key));
    }

    #[test]
    fn numbers_come_back() {
        let place = Place::new(1, 0);
        assert_eq!(ordinal_of(&place.term(b"x", 77)), Some(77));
        assert_eq!(log_position_of(&place.change(5, 6)), Some((5, 6)));
        assert_eq!(locality_bounds(2), (2 << 36, 3 << 36));
    }
}
