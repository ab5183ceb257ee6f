//! Effective partition keys: the hashes by which physical partitions are ranged.
//!
//! ```text
//! version 2   one 128-bit hash of the component, top two bits cleared       16 bytes
//! multi-hash  one such hash per level; a prefix of the levels is a prefix   16 bytes each
//! version 1   a 32-bit hash as an ordered number, then the value itself     variable
//! ```
//!
//! Clients compute the same bytes to find the range of a key, so they are part of the wire
//! contract; `tests/epk.rs` checks them against the clients' own answers. Where clients disagree
//! we follow the service. The two MurmurHash3 functions are written out: they are small, and
//! frozen forever by this contract, which a dependency would not be.
//!
//! INVARIANTS
//! (E1) The ranges of a container are contiguous, the first begins at "", the last ends at "FF".
//! (E2) Every effective partition key is below "FF".

use std::fmt;

use crate::partition_key::{
    Component, HashVersion, PartitionKey, PartitionKeyDefinition, PartitionKind,
};

/// A position among the hashed keys of a container. Ordered by bytes, printed in upper-case hex.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct EffectivePartitionKey(pub Vec<u8>);

/// Text that is not hexadecimal, or has half a byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an effective partition key is an even number of hexadecimal digits")]
pub struct NotHex;

impl EffectivePartitionKey {
    /// Hashes a key. A prefix of a hierarchical key gives a prefix of the full key's bytes.
    pub fn of(def: &PartitionKeyDefinition, key: &PartitionKey) -> Self {
        EffectivePartitionKey(match (def.kind, def.version) {
            (PartitionKind::Hash, HashVersion::V1) => hash_v1(&key.0),
            (PartitionKind::Hash, HashVersion::V2) => hash_v2(&key.0).to_vec(),
            (PartitionKind::MultiHash, _) => hash_levels(&key.0),
        })
    }

    /// The lowest position, "".
    pub fn min() -> Self {
        EffectivePartitionKey(Vec::new())
    }

    /// The upper bound of all positions, "FF".
    pub fn max() -> Self {
        EffectivePartitionKey(vec![0xFF])
    }

    /// Reads hexadecimal digits of either case.
    pub fn parse(text: &str) -> Result<Self, NotHex> {
        let digits = text.as_bytes().chunks(2);
        digits.map(byte_of_hex).collect::<Option<_>>().map(EffectivePartitionKey).ok_or(NotHex)
    }

    /// The bytes, as storage keys use them.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for EffectivePartitionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02X}"))
    }
}

fn byte_of_hex(pair: &[u8]) -> Option<u8> {
    let [high, low] = pair else { return None };
    let digit = |byte: &u8| (*byte as char).to_digit(16);
    Some((digit(high)? << 4 | digit(low)?) as u8)
}

/// A half-open interval of effective partition keys.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EpkRange {
    /// Inclusive.
    pub min: EffectivePartitionKey,
    /// Exclusive.
    pub max: EffectivePartitionKey,
}

impl EpkRange {
    /// All keys.
    pub fn all() -> Self {
        EpkRange { min: EffectivePartitionKey::min(), max: EffectivePartitionKey::max() }
    }

    /// The keys that begin with a prefix of a hierarchical key, that prefix's `[p, p + FF)`.
    pub fn of_prefix(def: &PartitionKeyDefinition, prefix: &PartitionKey) -> Self {
        let min = EffectivePartitionKey::of(def, prefix);
        let mut max = min.clone();
        max.0.push(0xFF);
        EpkRange { min, max }
    }

    /// Whether the position lies in the range.
    pub fn contains(&self, key: &EffectivePartitionKey) -> bool {
        self.min <= *key && *key < self.max
    }

    /// Whether the ranges share a position.
    pub fn overlaps(&self, other: &EpkRange) -> bool {
        self.min < other.max && other.min < self.max
    }
}

/// Divides the hashes of version 2 into equal ranges (E1). `count` 0 is taken as 1.
///
/// Containers under version 1 have one range only: clients disagree about some of its hashes, and
/// with one range that cannot matter.
pub fn ranges(count: u32) -> Vec<EpkRange> {
    let count = u128::from(count.max(1));
    let bound = |i: u128| match i {
        0 => EffectivePartitionKey::min(),
        _ if i == count => EffectivePartitionKey::max(),
        _ => EffectivePartitionKey(fraction(i, count).to_be_bytes().to_vec()),
    };
    (0..count).map(|i| EpkRange { min: bound(i), max: bound(i + 1) }).collect()
}

/// `i/count` of the 126-bit hash space.
fn fraction(i: u128, count: u128) -> u128 {
    const SPACE: u128 = 1 << 126;
    SPACE / count * i + SPACE % count * i / count
}

fn hash_levels(components: &[Component]) -> Vec<u8> {
    components.chunks(1).flat_map(hash_v2).collect()
}

fn hash_v2(components: &[Component]) -> [u8; 16] {
    let mut input = Vec::with_capacity(64);
    components.iter().for_each(|component| write_component(component, 0xFF, &mut input));
    let mut hash = murmur3_x64_128(&input).to_be_bytes();
    hash[0] &= 0x3F;
    hash
}

fn hash_v1(components: &[Component]) -> Vec<u8> {
    let mut input = Vec::with_capacity(64);
    let cut: Vec<Component> = components.iter().map(cut_v1).collect();
    cut.iter().for_each(|component| write_component(component, 0x00, &mut input));
    let mut out = Vec::with_capacity(128);
    encode_number(f64::from(murmur3_x86_32(&input)), &mut out);
    cut.iter().for_each(|component| encode_component(component, &mut out));
    out
}

/// Cuts a string to 100 UTF-16 units; half of a surrogate pair becomes U+FFFD.
fn cut_v1(component: &Component) -> Component {
    let Component::String(text) = component else { return component.clone() };
    let units: Vec<u16> = text.encode_utf16().take(100).collect();
    Component::String(String::from_utf16_lossy(&units))
}

/// What is hashed. The versions differ in the byte that ends a string.
fn write_component(component: &Component, string_end: u8, out: &mut Vec<u8>) {
    match component {
        Component::Undefined => out.push(0),
        Component::Null => out.push(1),
        Component::Bool(false) => out.push(2),
        Component::Bool(true) => out.push(3),
        Component::Number(number) => {
            out.push(5);
            out.extend((number + 0.0).to_le_bytes()); // −0 + 0 is 0: one logical partition
        }
        Component::String(text) => {
            out.push(8);
            out.extend_from_slice(text.as_bytes());
            out.push(string_end);
        }
    }
}

fn encode_component(component: &Component, out: &mut Vec<u8>) {
    match component {
        Component::Number(number) => encode_number(number + 0.0, out),
        Component::String(text) => encode_string(text, out),
        Component::Undefined | Component::Null | Component::Bool(_) => {
            write_component(component, 0x00, out);
        }
    }
}

fn encode_string(text: &str, out: &mut Vec<u8>) {
    out.push(8);
    out.extend(text.bytes().take(101).map(|byte| byte.wrapping_add(1)));
    if text.len() <= 100 {
        out.push(0);
    }
}

/// Ordered bits, the first byte whole, then seven bits per byte while any are set.
fn encode_number(number: f64, out: &mut Vec<u8>) {
    let bits = number.to_bits();
    let mut rest = match bits >> 63 {
        0 => bits ^ 1 << 63,
        _ => (!bits).wrapping_add(1),
    };
    out.extend([5, (rest >> 56) as u8]);
    rest <<= 8;
    while rest << 7 != 0 {
        out.push((rest >> 56) as u8 | 1);
        rest <<= 7;
    }
    out.push((rest >> 56) as u8 & 0xFE);
}

/// MurmurHash3, x64, 128 bits, seed 0; the second half is the high one. Also the hash of
/// everything else that is stored: its answers never change.
pub fn murmur3_x64_128(data: &[u8]) -> u128 {
    const C1: u64 = 0x87c3_7b91_1142_53d5;
    const C2: u64 = 0x4cf5_ad43_2745_937f;
    let mix1 = |k: u64| k.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2);
    let mix2 = |k: u64| k.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1);
    let (mut h1, mut h2) = (0u64, 0u64);
    let (blocks, tail) = data.as_chunks::<16>();
    for block in blocks {
        let [k1, k2] = halves(block);
        h1 = (h1 ^ mix1(k1)).rotate_left(27).wrapping_add(h2);
        h1 = h1.wrapping_mul(5).wrapping_add(0x52dc_e729);
        h2 = (h2 ^ mix2(k2)).rotate_left(31).wrapping_add(h1);
        h2 = h2.wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }
    // A missing byte is a zero byte and zero mixes to zero, so the tail is a padded block.
    let mut padded = [0; 16];
    padded[..tail.len()].copy_from_slice(tail);
    let [k1, k2] = halves(&padded);
    h2 ^= mix2(k2) ^ data.len() as u64;
    h1 ^= mix1(k1) ^ data.len() as u64;
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    (h1, h2) = (avalanche64(h1), avalanche64(h2));
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    u128::from(h2) << 64 | u128::from(h1)
}

fn halves(block: &[u8; 16]) -> [u64; 2] {
    let whole = u128::from_le_bytes(*block);
    [whole as u64, (whole >> 64) as u64]
}

fn avalanche64(mut h: u64) -> u64 {
    h = (h ^ h >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    h = (h ^ h >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    h ^ h >> 33
}

/// MurmurHash3, x86, 32 bits, seed 0.
fn murmur3_x86_32(data: &[u8]) -> u32 {
    let mix = |k: u32| k.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593);
    let mut h = 0u32;
    let (blocks, tail) = data.as_chunks::<4>();
    for block in blocks {
        h = (h ^ mix(u32::from_le_bytes(*block))).rotate_left(13);
        h = h.wrapping_mul(5).wrapping_add(0xe654_6b64);
    }
    let mut padded = [0; 4];
    padded[..tail.len()].copy_from_slice(tail);
    h ^= mix(u32::from_le_bytes(padded)) ^ data.len() as u32;
    h = (h ^ h >> 16).wrapping_mul(0x85eb_ca6b);
    h = (h ^ h >> 13).wrapping_mul(0xc2b2_ae35);
    h ^ h >> 16
}
