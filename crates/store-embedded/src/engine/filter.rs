//! Which keys a table surely does not hold.
//!
//! A Bloom filter in which all bits of a key lie in one line of 64 bytes: a miss costs one touch of
//! memory. Ten bits a key let about one absent key in a hundred through.

use xxhash_rust::xxh3::xxh3_64;

const BITS_PER_KEY: usize = 10;
const LINE_BITS: u64 = 512;
const LINE_BYTES: usize = 64;
const PROBES: u32 = 6;

/// See the module header.
pub(crate) struct Filter {
    bytes: Box<[u8]>,
}

/// What a filter remembers of a key.
pub(crate) fn hash(key: &[u8]) -> u64 {
    xxh3_64(key)
}

impl Filter {
    /// A filter of the keys with these hashes.
    pub(crate) fn of(hashes: &[u64]) -> Filter {
        let lines = (hashes.len() * BITS_PER_KEY).div_ceil(LINE_BITS as usize).max(1);
        let mut bytes = vec![0u8; lines * LINE_BYTES].into_boxed_slice();
        for &hash in hashes {
            let line = line_of(hash, lines) * LINE_BYTES;
            for bit in bits_of(hash) {
                bytes[line + bit / 8] |= 1 << (bit % 8);
            }
        }
        Filter { bytes }
    }

    /// A filter that was stored; nothing if it cannot be one.
    pub(crate) fn from_bytes(bytes: Vec<u8>) -> Option<Filter> {
        let is_whole = !bytes.is_empty() && bytes.len().is_multiple_of(LINE_BYTES);
        is_whole.then(|| Filter { bytes: bytes.into_boxed_slice() })
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether the key with this hash may be there. A key that is there always may.
    pub(crate) fn may_hold(&self, hash: u64) -> bool {
        let start = line_of(hash, self.bytes.len() / LINE_BYTES) * LINE_BYTES;
        let line = &self.bytes[start..start + LINE_BYTES];
        bits_of(hash).all(|bit| line[bit / 8] & (1 << (bit % 8)) != 0)
    }
}

/// Spreads the upper half of the hash over the lines; the lower half chooses bits.
fn line_of(hash: u64, lines: usize) -> usize {
    (((hash >> 32) * lines as u64) >> 32) as usize
}

fn bits_of(hash: u64) -> impl Iterator<Item = usize> {
    let (first, step) = (hash as u32 as u64, (hash >> 17) | 1);
    (0..u64::from(PROBES)).map(move |probe| {
        let mixed =
            first.wrapping_add(probe.wrapping_mul(step)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 55) as usize
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashes(numbers: std::ops::Range<u64>) -> Vec<u64> {
        numbers.map(|number| hash(&number.to_be_bytes())).collect()
    }

    #[test]
    fn what_is_there_is_found_and_little_else() {
        let filter = Filter::of(&hashes(0..100_000));
        assert!(hashes(0..100_000).into_iter().all(|hash| filter.may_hold(hash)));
        let wrong = hashes(100_000..200_000).into_iter().filter(|&hash| filter.may_hold(hash));
        let wrong = wrong.count();
        assert!(wrong < 2_500, "{wrong} of 100,000 absent keys got through");
    }

    #[test]
    fn it_survives_being_stored() {
        let filter = Filter::of(&hashes(0..100));
        let again = Filter::from_bytes(filter.as_bytes().to_vec());
        assert!(again.is_some_and(|again| hashes(0..100).iter().all(|&hash| again.may_hold(hash))));
        assert!(Filter::from_bytes(Vec::new()).is_none());
        assert!(Filter::from_bytes(vec![0; 63]).is_none());
        assert!(!Filter::of(&[]).may_hold(1));
    }
}
