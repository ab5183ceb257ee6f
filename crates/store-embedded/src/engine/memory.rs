//! What was written since memory was last sealed.
//!
//! A group of changes touches almost as many leaves of a large tree as it has keys, and all branches
//! above them. So groups go into a small tree first, of which many keys share a leaf, and from there
//! into the large one, many at a time.
//!
//! ```text
//!   group ─▶ fresh, up to FRESH_KEYS_MAX ─▶ rest                        per part
//! ```

use super::journal::Changes;
use super::tree::{Edit, Tree};
use super::{Change, PARTS, Part};

const FRESH_KEYS_MAX: usize = 16 << 10;

/// See the module header. It never changes; a group makes a new one.
#[derive(Clone, Default)]
pub(crate) struct Memory {
    parts: [Recent; PARTS],
}

#[derive(Clone, Default)]
struct Recent {
    fresh: Tree,
    rest: Tree,
}

impl Memory {
    /// This with a group of changes.
    pub(crate) fn with(&self, changes: &Changes) -> Memory {
        let parts = std::array::from_fn(|part| self.parts[part].with(&changes[part]));
        Memory { parts }
    }

    /// The same, with one tree for each part.
    pub(crate) fn settled(&self) -> Memory {
        Memory { parts: std::array::from_fn(|part| self.parts[part].settled()) }
    }

    /// The trees of a part that hold something, newest first.
    pub(crate) fn trees(&self, part: Part) -> impl Iterator<Item = &Tree> {
        let Recent { fresh, rest } = &self.parts[part as usize];
        [fresh, rest].into_iter().filter(|tree| tree.len() > 0)
    }

    pub(crate) fn is_empty(&self) -> bool {
        Part::ALL.into_iter().all(|part| self.trees(part).next().is_none())
    }
}

impl Recent {
    fn with(&self, changes: &[Change]) -> Recent {
        let edits: Vec<Edit<'_>> = changes.iter().map(Change::edit).collect();
        let recent = Recent { fresh: self.fresh.with(&edits), rest: self.rest.clone() };
        match recent.fresh.len() > FRESH_KEYS_MAX {
            true => recent.settled(),
            false => recent,
        }
    }

    fn settled(&self) -> Recent {
        Recent { fresh: Tree::default(), rest: self.rest.with(&self.fresh.edits()) }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn write(memory: &Memory, keys: impl Iterator<Item = u32>, value: &'static [u8]) -> Memory {
        let mut changes = Changes::default();
        changes[Part::Term as usize] = keys
            .map(|key| Change {
                key: Bytes::copy_from_slice(&key.to_be_bytes()),
                value: Some(Bytes::from_static(value)),
            })
            .collect();
        memory.with(&changes)
    }

    fn get(memory: &Memory, key: u32) -> Option<&[u8]> {
        memory.trees(Part::Term).find_map(|tree| tree.get(&key.to_be_bytes())).map(|e| e.bytes())
    }

    #[test]
    fn the_newest_value_counts_wherever_it_is() {
        let most = FRESH_KEYS_MAX as u32;
        let memory = write(&Memory::default(), 0..most, b"first");
        assert_eq!(memory.trees(Part::Term).count(), 1);
        let memory = write(&memory, most..most + 1, b"second");
        assert_eq!(
            memory.trees(Part::Term).map(Tree::len).collect::<Vec<_>>(),
            [most as usize + 1]
        );
        let memory = write(&memory, 5..7, b"third");
        assert_eq!(memory.trees(Part::Term).count(), 2);
        for memory in [&memory, &memory.settled()] {
            assert_eq!(get(memory, 4), Some(&b"first"[..]));
            assert_eq!(get(memory, 5), Some(&b"third"[..]));
            assert_eq!(get(memory, most), Some(&b"second"[..]));
            assert_eq!(get(memory, most + 1), None);
        }
        assert!(!memory.is_empty() && Memory::default().is_empty());
    }
}
