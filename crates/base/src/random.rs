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
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let (a, b) = (self.next(), self.next());
        let bits = u128::from(a & !0xf000 | 0x4000) << 64 | u128::from(b & !(3 << 62) | 1 << 63);
        // By hand: every answer has one, and formatting takes ten times as long.
        let mut text = String::with_capacity(36);
        for at in 0..32 {
            if matches!(at, 8 | 12 | 16 | 20) {
                text.push('-');
            }
            text.push(char::from(DIGITS[(bits >> (124 - 4 * at)) as usize & 15]));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guids_are_of_version_4() {
        let random = Random::from_seed(7);
        for _ in 0..1000 {
            let guid = random.guid();
            let parts: Vec<&str> = guid.split('-').collect();
            assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), [8, 4, 4, 4, 12]);
            assert!(parts.concat().bytes().all(|byte| byte.is_ascii_hexdigit()), "{guid}");
            assert!(parts[2].starts_with('4') && "89ab".contains(&parts[3][..1]), "{guid}");
        }
    }
}
