//! Has this object had this name before?
//!
//! Names are compared by their canonical text, which is the same question as comparing them
//! unescaped. The names of all open objects lie on one stack. A narrow object is searched from its
//! base; from `NARROW_MAX` names on an object keeps a set of keyed hashes, so that no choice of
//! names makes ingest quadratic.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

/// Names up to which a search of the list beats hashing.
const NARROW_MAX: usize = 32;

/// The names of the objects that are open, innermost last.
pub(crate) struct Names {
    stack: Vec<Name>,
    /// The hashes of the names of those objects that are wide, innermost last.
    wide: Vec<HashSet<u64>>,
    hashing: RandomState,
}

/// The names of one object.
pub(crate) struct Scope {
    base: usize,
    is_wide: bool,
}

#[derive(Clone, Copy)]
struct Name {
    signature: u64,
    start: u32,
    end: u32,
}

impl Default for Names {
    fn default() -> Names {
        let stack = Vec::with_capacity(NARROW_MAX);
        Names { stack, wide: Vec::new(), hashing: RandomState::new() }
    }
}

impl Names {
    pub fn open(&self) -> Scope {
        Scope { base: self.stack.len(), is_wide: false }
    }

    pub fn close(&mut self, scope: &Scope) {
        self.stack.truncate(scope.base);
        if scope.is_wide {
            self.wide.pop();
        }
    }

    /// Adds `text[start..end]` to the innermost object; false if it was there already.
    pub fn insert(&mut self, scope: &mut Scope, text: &[u8], start: usize, end: usize) -> bool {
        let bytes = &text[start..end];
        let name = Name { signature: signature(bytes), start: start as u32, end: end as u32 };
        let is_narrow = self.stack.len() - scope.base < NARROW_MAX;
        let may_contain = is_narrow || self.hash(scope, text, bytes);
        if may_contain && self.contains(scope, text, name) {
            return false;
        }
        self.stack.push(name);
        true
    }

    /// Adds a name to the set of a wide object; true if its hash was there already.
    fn hash(&mut self, scope: &mut Scope, text: &[u8], bytes: &[u8]) -> bool {
        if !scope.is_wide {
            scope.is_wide = true;
            let names = self.stack[scope.base..].iter();
            let texts = names.map(|name| &text[name.start as usize..name.end as usize]);
            self.wide.push(texts.map(|text| self.hashing.hash_one(text)).collect());
        }
        let hash = self.hashing.hash_one(bytes);
        self.wide.last_mut().is_some_and(|set| !set.insert(hash))
    }

    fn contains(&self, scope: &Scope, text: &[u8], name: Name) -> bool {
        let bytes = |name: &Name| &text[name.start as usize..name.end as usize];
        let names = self.stack[scope.base..].iter();
        let mut alike = names.filter(|other| other.signature == name.signature);
        alike.any(|other| bytes(other) == bytes(&name))
    }
}

/// A word that differs for most names: length, first and last bytes.
fn signature(name: &[u8]) -> u64 {
    let length = name.len() as u64;
    if let (Some(first), Some(last)) = (name.first_chunk::<8>(), name.last_chunk::<8>()) {
        return u64::from_le_bytes(*first)
            ^ u64::from_le_bytes(*last).rotate_left(29)
            ^ length.rotate_right(8);
    }
    if let (Some(first), Some(last)) = (name.first_chunk::<4>(), name.last_chunk::<4>()) {
        let words = [u32::from_le_bytes(*first), u32::from_le_bytes(*last)];
        return u64::from(words[0]) ^ u64::from(words[1]) << 32 ^ length.rotate_right(8);
    }
    name.iter().fold(length << 56, |sum, &byte| sum << 8 | u64::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_duplicates_in_narrow_and_wide_objects() {
        for width in [1, 2, NARROW_MAX - 1, NARROW_MAX, NARROW_MAX + 1, 500] {
            // Names that share length, beginning and end, so that signatures collide.
            let text: String = (0..width).map(|i| format!("same-beg{i:08}same-end")).collect();
            let text = text.as_bytes();
            let mut names = Names::default();
            let mut scope = names.open();
            for i in 0..width {
                assert!(names.insert(&mut scope, text, i * 24, i * 24 + 24));
            }
            for i in 0..width {
                assert!(!names.insert(&mut scope, text, i * 24, i * 24 + 24), "{i} of {width}");
            }
        }
    }

    #[test]
    fn objects_do_not_see_each_other() {
        let mut names = Names::default();
        let mut outer = names.open();
        assert!(names.insert(&mut outer, b"a", 0, 1));
        let mut inner = names.open();
        assert!(names.insert(&mut inner, b"a", 0, 1));
        names.close(&inner);
        assert!(!names.insert(&mut outer, b"a", 0, 1));
        assert!(names.insert(&mut outer, b"ab", 0, 2));
    }
}
