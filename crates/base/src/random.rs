//! Pseudo-random numbers from a seed, shared by threads.

use std::sync::atomic::{AtomicU64, Ordering};

/// SplitMix64: ten lines, statistically sound, and a seed replays it. Not for secrets.
#[derive(Debug)]
pub struct Random(AtomicU64);

impl Random {
    /// The sequence of this seed.
    pub fn from_seed(seed: u64) -> Random {
        Random(AtomicU64::new(seed))
    }

    /// A sequence nobody else has, from the process's hash keys.
    pub fn from_entropy() -> Random {
        use std::hash::{BuildHasher, Hasher};
        let state = std::collections::hash_map::RandomState::new();
        Random(AtomicU64::new(state.build_hasher().finish()))
    }

    /// The next number.
    pub fn next(&self) -> u64 {
        let state = self.0.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed);
        let mut z = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A random GUID in its usual text form, version 4.
    pub fn guid(&self) -> String {
        let (a, b) = (self.next(), self.next());
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            a >> 32,
            (a >> 16) & 0xffff,
            a & 0xfff,
            0x8000 | (b >> 48) & 0x3fff,
            b & 0xffff_ffff_ffff
        )
    }
}
