//! Ordinals: the number of an item inside its container, and the hash that places it.
//!
//! ```text
//! 63..60  59..36     35..0
//! 0       locality   sequence
//! ```
//!
//! Items of one logical partition share a locality and lie together, in the order of their
//! creation. Two logical partitions may share one too: readers compare the partition key.

use std::ops::Range;

use model::epk::murmur3_x64_128;

/// Bits of a locality.
pub const LOCALITY_BITS: u32 = 24;
/// Bits of a sequence: enough for 68 billion items.
pub const SEQUENCE_BITS: u32 = 36;

/// A 128-bit hash that never changes, for everything that is stored.
pub fn hash128(bytes: &[u8]) -> u128 {
    murmur3_x64_128(bytes)
}

/// The locality of a partition key, given all of its bytes: 24 bits.
///
/// The whole key is hashed. A prefix of the effective partition key would put all keys of a
/// tenant in one place, and under hash version 1 nearly all keys.
pub fn locality(key: &[u8]) -> u32 {
    (hash128(key) >> (u128::BITS - LOCALITY_BITS)) as u32
}

/// The number of an item. Storage writes it big-endian behind every term.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ordinal(u64);

impl Ordinal {
    /// Puts an ordinal together; bits beyond the width of a part are dropped.
    pub fn compose(locality: u32, sequence: u64) -> Self {
        let locality = u64::from(locality) & ((1 << LOCALITY_BITS) - 1);
        Ordinal(locality << SEQUENCE_BITS | sequence & ((1 << SEQUENCE_BITS) - 1))
    }

    /// The ordinal of a number that was stored; `None` if its top bits are set.
    pub fn from_u64(number: u64) -> Option<Self> {
        (number >> (LOCALITY_BITS + SEQUENCE_BITS) == 0).then_some(Ordinal(number))
    }

    /// The number.
    pub fn as_u64(self) -> u64 {
        self.0
    }

    /// Which logical partition, nearly.
    pub fn locality(self) -> u32 {
        (self.0 >> SEQUENCE_BITS) as u32
    }

    /// Which item created in the container.
    pub fn sequence(self) -> u64 {
        self.0 & ((1 << SEQUENCE_BITS) - 1)
    }

    /// All numbers with a locality.
    pub fn of_locality(locality: u32) -> Range<u64> {
        let start = Ordinal::compose(locality, 0).0;
        start..start + (1 << SEQUENCE_BITS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinals_come_apart_again() {
        let ordinal = Ordinal::compose(0xAB_CDEF, (1 << 36) - 1);
        assert_eq!((ordinal.locality(), ordinal.sequence()), (0xAB_CDEF, (1 << 36) - 1));
        assert_eq!(ordinal.as_u64() >> 60, 0);
        assert_eq!(Ordinal::from_u64(ordinal.as_u64()), Some(ordinal));
        assert_eq!(Ordinal::from_u64(1 << 60), None);
        assert!(Ordinal::of_locality(0xAB_CDEF).contains(&ordinal.as_u64()));
        assert!(!Ordinal::of_locality(0xAB_CDEE).contains(&ordinal.as_u64()));
    }

    #[test]
    fn localities_differ_in_every_part_of_a_key() {
        assert!(locality(b"tenant/a") < 1 << LOCALITY_BITS);
        assert_ne!(locality(b"tenant/a"), locality(b"tenant/b"));
        assert_ne!(locality(b"a/tenant"), locality(b"b/tenant"));
    }
}
