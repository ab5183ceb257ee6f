//! Where the blocks of a table are: the last key of each.
//!
//! It is in memory while the table is open, and every search begins here. Keys of one table begin alike
//! for the most part; past that, eight bytes as a number tell most of them apart.

use super::block::common;

/// The last key of every block, and where it ends.
pub(crate) struct Index {
    first: Vec<u8>,
    keys: Vec<u8>,
    key_ends: Vec<u64>,
    block_ends: Vec<u64>,
    /// Bytes that all keys begin with.
    shared: usize,
    /// What follows them in each key, as a number: few comparisons need more.
    heads: Vec<u64>,
}

/// A key that is looked for in an index.
#[derive(Clone, Copy)]
pub(crate) struct Probe<'k> {
    key: &'k [u8],
    /// Compares with the heads as the key does with the keys, unless it is equal.
    head: u64,
}

impl Index {
    pub(crate) fn parse(mut bytes: &[u8], blocks: u64) -> Option<Index> {
        let blocks = usize::try_from(blocks).ok()?;
        let first = take_key(&mut bytes)?.to_vec();
        let mut index = Index {
            first,
            keys: Vec::with_capacity(bytes.len().saturating_sub(blocks * 10)),
            key_ends: Vec::with_capacity(blocks),
            block_ends: Vec::with_capacity(blocks),
            shared: 0,
            heads: Vec::new(),
        };
        for _ in 0..blocks {
            index.keys.extend_from_slice(take_key(&mut bytes)?);
            index.key_ends.push(index.keys.len() as u64);
            index.block_ends.push(u64::from_le_bytes(take(&mut bytes, 8)?.try_into().ok()?));
        }
        if !bytes.is_empty() || blocks == 0 {
            return None;
        }
        // In between they are no different.
        index.shared = common(index.key(0), index.last());
        let rest = |at: usize| index.key(at).get(index.shared..).unwrap_or_default();
        index.heads = (0..blocks).map(|at| head(rest(at))).collect();
        Some(index)
    }

    /// How many blocks there are.
    pub(crate) fn len(&self) -> usize {
        self.key_ends.len()
    }

    /// The first key of the table.
    pub(crate) fn first(&self) -> &[u8] {
        &self.first
    }

    pub(crate) fn block_end(&self, number: usize) -> u64 {
        self.block_ends[number]
    }

    pub(crate) fn block_start(&self, number: usize) -> u64 {
        if number == 0 { 0 } else { self.block_ends[number - 1] }
    }

    fn key(&self, at: usize) -> &[u8] {
        let start = if at == 0 { 0 } else { self.key_ends[at - 1] };
        &self.keys[start as usize..self.key_ends[at] as usize]
    }

    /// The last one.
    pub(crate) fn last(&self) -> &[u8] {
        self.key(self.len() - 1)
    }

    /// The same as [`block_of`](Index::block_of), found the sooner the nearer it is behind `start`.
    pub(crate) fn block_near(&self, start: usize, probe: Probe<'_>) -> usize {
        if start == 0 || !self.is_before(start - 1, probe) {
            return self.block_between(0, self.len(), probe);
        }
        let (mut low, mut step) = (start, 1);
        while low + step < self.len() && self.is_before(low + step, probe) {
            low += step + 1;
            step *= 2;
        }
        self.block_between(low, self.len().min(low + step + 1), probe)
    }

    /// The first block whose last key is not before `key`; their number if there is none.
    pub(crate) fn block_of(&self, key: &[u8]) -> usize {
        self.block_between(0, self.len(), self.probe(key))
    }

    fn block_between(&self, low: usize, high: usize, probe: Probe<'_>) -> usize {
        let (mut low, mut high) = (low, high);
        while low < high {
            let middle = (low + high) / 2;
            match self.is_before(middle, probe) {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }

    pub(crate) fn probe<'k>(&self, key: &'k [u8]) -> Probe<'k> {
        let (front, rest) = key.split_at(self.shared.min(key.len()));
        let head = match front.cmp(&self.keys[..self.shared]) {
            std::cmp::Ordering::Less => 0,
            std::cmp::Ordering::Equal => head(rest),
            std::cmp::Ordering::Greater => u64::MAX,
        };
        Probe { key, head }
    }

    /// Whether the last key of a block is before this one.
    fn is_before(&self, block: usize, probe: Probe<'_>) -> bool {
        let head = self.heads[block];
        head < probe.head || head == probe.head && self.key(block) < probe.key
    }
}

/// The first eight bytes as a number that orders like them; what is missing counts as zeros.
fn head(bytes: &[u8]) -> u64 {
    match bytes.first_chunk() {
        Some(first) => u64::from_be_bytes(*first),
        None => bytes.iter().rev().fold(0, |number, byte| number >> 8 | u64::from(*byte) << 56),
    }
}

pub(crate) fn put_key(bytes: &mut Vec<u8>, key: &[u8]) {
    bytes.extend_from_slice(&(key.len() as u16).to_le_bytes());
    bytes.extend_from_slice(key);
}

fn take_key<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = u16::from_le_bytes(take(bytes, 2)?.try_into().ok()?);
    take(bytes, usize::from(length))
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use base::Random;

    use super::*;

    #[test]
    fn blocks_are_found_whatever_keys_begin_with() {
        for seed in 0..500 {
            let random = Random::from_seed(seed);
            let below = |most: u64| random.next() % most;
            let bytes = |most: u64| {
                let byte = |_| [0, 1, 5, 0xff][below(4) as usize];
                (0..below(most)).map(byte).collect::<Vec<u8>>()
            };
            let front = bytes(4);
            let mut keys: Vec<Vec<u8>> =
                (0..=below(40)).map(|_| [&front[..], &bytes(14)].concat()).collect();
            keys.sort();
            keys.dedup();
            let mut written = Vec::new();
            put_key(&mut written, &keys[0]);
            for key in &keys {
                put_key(&mut written, key);
                written.extend_from_slice(&0u64.to_le_bytes());
            }
            let index = Index::parse(&written, keys.len() as u64).unwrap();
            for _ in 0..60 {
                let key = match below(3) {
                    0 => keys[below(keys.len() as u64) as usize].clone(),
                    1 => [&front[..], &bytes(3)].concat(),
                    _ => bytes(16),
                };
                let expect = keys.partition_point(|own| *own < key);
                assert_eq!(index.block_of(&key), expect, "seed {seed}");
                let near = below(keys.len() as u64) as usize;
                assert_eq!(index.block_near(near, index.probe(&key)), expect, "seed {seed}");
            }
        }
    }
}
