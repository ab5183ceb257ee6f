//! What was written lately, in memory: an ordered map that never edits once it is made.
//!
//! A group of edits makes a new tree that shares all nodes it did not touch with the old one. So
//! the newest tree is a snapshot as it is, no version numbers are kept, no reader waits for the
//! writer, and what nobody looks at any more is freed by its reference count.
//!
//! ```text
//!   branch   first keys of its children │ children           at most CHILDREN_MAX
//!   leaf     bytes: key value key …     │ slots, in order     at most SLOTS_MAX
//! ```
//!
//! A leaf is copied when it edits, so it is made to be copied: one run of bytes in order of
//! arrival, one of slots in order of keys, and values beyond [`INLINE_BYTES_MAX`] by reference.
//!
//! INVARIANTS
//! (T1) Every leaf has a slot and every branch a child; all leaves are at one depth.
//! (T2) Keys of a leaf ascend, and lie from its first key in the branch above to its neighbor's.
//! (T3) Deleted keys stay, as such: they hide what is in older places.

use std::sync::Arc;

use bytes::Bytes;

use super::Entry;

const SLOTS_MAX: usize = 64;
const CHILDREN_MAX: usize = 64;
/// Longer values are kept apart, so that copying a leaf does not copy them.
const INLINE_BYTES_MAX: usize = 128;
/// With more edits than this a leaf is made anew rather than changed one by one.
const SINGLE_CHANGES_MAX: usize = 24;

/// See the module header.
#[derive(Clone, Default)]
pub(crate) struct Tree {
    root: Option<Arc<Node>>,
    len: usize,
}

/// A key and what a tree is to say of it.
#[derive(Clone, Copy)]
pub(crate) struct Edit<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) entry: Entry<'a>,
}

enum Node {
    Leaf(Leaf),
    Branch(Branch),
}

struct Branch {
    firsts: Keys,
    children: Vec<Arc<Node>>,
}

/// Keys one behind the other.
#[derive(Default)]
struct Keys {
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

#[derive(Default)]
struct Leaf {
    bytes: Vec<u8>,
    slots: Vec<Slot>,
    shared: Vec<Bytes>,
    /// Bytes that no slot refers to any more.
    waste: usize,
}

#[derive(Clone, Copy)]
struct Slot {
    start: u32,
    key_bytes: u16,
    kind: Kind,
    /// Length of an inline value, place of a shared one.
    value: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Deleted,
    Inline,
    Shared,
}

impl Tree {
    /// How many keys it holds, deleted ones included.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// What it says of a key, if anything.
    pub(crate) fn get(&self, key: &[u8]) -> Option<Entry<'_>> {
        let mut node = self.root.as_deref()?;
        loop {
            match node {
                Node::Branch(branch) => node = &branch.children[branch.child_of(key)],
                Node::Leaf(leaf) => return leaf.find(key).ok().map(|at| leaf.entry(at)),
            }
        }
    }

    /// This tree with edits applied, which ascend by key and name each key once.
    pub(crate) fn with(&self, edits: &[Edit<'_>]) -> Tree {
        if edits.is_empty() {
            return self.clone();
        }
        let mut added = 0;
        let nodes = match &self.root {
            Some(root) => changed(root, edits, &mut added),
            None => changed(&Arc::new(Node::Leaf(Leaf::default())), edits, &mut added),
        };
        Tree { root: stacked(nodes), len: self.len + added }
    }

    /// Everything it says, as what would make it of an empty tree.
    pub(crate) fn edits(&self) -> Vec<Edit<'_>> {
        let mut edits = Vec::with_capacity(self.len);
        let mut cursor = self.from(&[]);
        while let Some((key, entry)) = cursor.get() {
            edits.push(Edit { key, entry });
            cursor.next();
        }
        edits
    }

    /// A cursor at the first key that is not before `key`.
    pub(crate) fn from(&self, key: &[u8]) -> Cursor<'_> {
        let mut cursor = self.cursor();
        cursor.descend(self.root.as_deref(), |branch| branch.child_of(key));
        if let Some((leaf, at)) = &mut cursor.at {
            *at = leaf.lower_bound(key);
            if *at == leaf.slots.len() {
                cursor.turn_right();
            }
        }
        cursor
    }

    /// A cursor at the last key before `key`, or at the very last one.
    pub(crate) fn before(&self, key: Option<&[u8]>) -> Cursor<'_> {
        let mut cursor = self.cursor();
        let Some(key) = key else {
            cursor.descend(self.root.as_deref(), |branch| branch.children.len() - 1);
            if let Some((leaf, at)) = &mut cursor.at {
                *at = leaf.slots.len() - 1;
            }
            return cursor;
        };
        cursor.descend(self.root.as_deref(), |branch| branch.child_of(key));
        if let Some((leaf, at)) = &mut cursor.at {
            match leaf.lower_bound(key).checked_sub(1) {
                Some(before) => *at = before,
                None => cursor.turn_left(),
            }
        }
        cursor
    }

    fn cursor(&self) -> Cursor<'_> {
        Cursor { path: Vec::with_capacity(4), at: None }
    }
}

/// `node` with the edits applied: one node or, if it got too large, several of its depth.
fn changed(node: &Node, edits: &[Edit<'_>], added: &mut usize) -> Vec<Arc<Node>> {
    match node {
        Node::Leaf(leaf) => {
            let leaves = leaf.with(edits);
            let slots: usize = leaves.iter().map(|leaf| leaf.slots.len()).sum();
            *added += slots - leaf.slots.len();
            leaves.into_iter().map(|leaf| Arc::new(Node::Leaf(leaf))).collect()
        }
        Node::Branch(branch) => branch.with(edits, added),
    }
}

/// One node over all of these.
fn stacked(mut nodes: Vec<Arc<Node>>) -> Option<Arc<Node>> {
    while nodes.len() > 1 {
        let mut branches = BranchBuilder::for_children(nodes.len());
        for node in nodes {
            branches.push(node.first(), node.clone());
        }
        nodes = branches.finish();
    }
    nodes.pop()
}

impl Node {
    fn first(&self) -> &[u8] {
        match self {
            Node::Leaf(leaf) => leaf.key(0),
            Node::Branch(branch) => branch.firsts.get(0),
        }
    }
}

impl Branch {
    /// The child that a key belongs to. What is before all of them belongs to the first.
    fn child_of(&self, key: &[u8]) -> usize {
        self.firsts.count_not_behind(key).saturating_sub(1)
    }

    fn with(&self, mut edits: &[Edit<'_>], added: &mut usize) -> Vec<Arc<Node>> {
        let mut branches = BranchBuilder::for_children(self.children.len() + edits.len() / 8);
        for (at, child) in self.children.iter().enumerate() {
            let here = match at + 1 < self.children.len() {
                true => {
                    let next = self.firsts.get(at + 1);
                    leading(edits, |edit| edit.key < next)
                }
                false => edits.len(),
            };
            let (own, rest) = edits.split_at(here);
            edits = rest;
            match own.is_empty() {
                true => branches.push(self.firsts.get(at), child.clone()),
                false => {
                    for node in changed(child, own, added) {
                        branches.push(node.first(), node.clone());
                    }
                }
            }
        }
        branches.finish()
    }
}

/// How many of the first elements fulfil a condition that the later ones do not. Mostly few.
fn leading<T>(all: &[T], is_before: impl Fn(&T) -> bool) -> usize {
    match all.first() {
        Some(first) if is_before(first) => all.partition_point(is_before),
        Some(_) | None => 0,
    }
}

/// Makes branches of about equal size.
struct BranchBuilder {
    done: Vec<Arc<Node>>,
    firsts: Keys,
    children: Vec<Arc<Node>>,
}

impl BranchBuilder {
    fn for_children(count: usize) -> BranchBuilder {
        let count = count.min(CHILDREN_MAX) + 1;
        let firsts =
            Keys { bytes: Vec::with_capacity(count * 40), ends: Vec::with_capacity(count) };
        BranchBuilder { done: Vec::new(), firsts, children: Vec::with_capacity(count) }
    }

    fn push(&mut self, first: &[u8], child: Arc<Node>) {
        if self.children.len() == CHILDREN_MAX {
            self.cut(CHILDREN_MAX / 2);
        }
        self.firsts.push(first);
        self.children.push(child);
    }

    /// Makes a branch of the first children; the others begin the next one.
    fn cut(&mut self, count: usize) {
        let rest = self.children.split_off(count);
        let firsts = self.firsts.split_off(count);
        let children = std::mem::replace(&mut self.children, rest);
        let firsts = std::mem::replace(&mut self.firsts, firsts);
        self.done.push(Arc::new(Node::Branch(Branch { firsts, children })));
    }

    fn finish(mut self) -> Vec<Arc<Node>> {
        self.cut(self.children.len());
        self.done
    }
}

impl Keys {
    fn get(&self, at: usize) -> &[u8] {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.bytes[start as usize..self.ends[at] as usize]
    }

    fn push(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len() as u32);
    }

    fn split_off(&mut self, at: usize) -> Keys {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        let bytes = self.bytes.split_off(start as usize);
        let ends = self.ends.split_off(at).into_iter().map(|end| end - start).collect();
        Keys { bytes, ends }
    }

    /// How many keys are not behind `key`.
    fn count_not_behind(&self, key: &[u8]) -> usize {
        let (mut low, mut high) = (0, self.ends.len());
        while low < high {
            let middle = (low + high) / 2;
            match self.get(middle) <= key {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }
}

impl Leaf {
    fn key(&self, at: usize) -> &[u8] {
        self.key_of(&self.slots[at])
    }

    fn key_of(&self, slot: &Slot) -> &[u8] {
        let start = slot.start as usize;
        &self.bytes[start..start + slot.key_bytes as usize]
    }

    fn entry(&self, at: usize) -> Entry<'_> {
        let slot = &self.slots[at];
        match slot.kind {
            Kind::Deleted => Entry::Deleted,
            Kind::Shared => Entry::Shared(&self.shared[slot.value as usize]),
            Kind::Inline => {
                let start = slot.start as usize + slot.key_bytes as usize;
                Entry::Value(&self.bytes[start..start + slot.value as usize])
            }
        }
    }

    fn find(&self, key: &[u8]) -> Result<usize, usize> {
        self.slots.binary_search_by(|slot| self.key_of(slot).cmp(key))
    }

    fn lower_bound(&self, key: &[u8]) -> usize {
        self.find(key).unwrap_or_else(|at| at)
    }

    fn with(&self, edits: &[Edit<'_>]) -> Vec<Leaf> {
        if edits.len() > SINGLE_CHANGES_MAX || self.waste > self.bytes.len() / 2 {
            return self.merged(edits);
        }
        let mut leaf = self.copy_with_room(edits);
        for edit in edits {
            leaf.set(edit);
        }
        match leaf.slots.len() > SLOTS_MAX {
            true => leaf.merged(&[]),
            false => vec![leaf],
        }
    }

    fn copy_with_room(&self, edits: &[Edit<'_>]) -> Leaf {
        let room: usize = edits.iter().map(|c| c.key.len() + inline_bytes(c.entry)).sum();
        let mut bytes = Vec::with_capacity(self.bytes.len() + room);
        bytes.extend_from_slice(&self.bytes);
        let mut slots = Vec::with_capacity(self.slots.len() + edits.len());
        slots.extend_from_slice(&self.slots);
        Leaf { bytes, slots, shared: self.shared.clone(), waste: self.waste }
    }

    fn set(&mut self, edit: &Edit<'_>) {
        match self.find(edit.key) {
            Ok(at) => {
                let old = self.slots[at];
                self.waste += old.key_bytes as usize + inline_length(&old);
                if old.kind == Kind::Shared {
                    self.shared[old.value as usize] = Bytes::new();
                }
                self.slots[at] = self.appended(edit.key, edit.entry);
            }
            Err(at) => {
                let slot = self.appended(edit.key, edit.entry);
                self.slots.insert(at, slot);
            }
        }
    }

    /// Appends key and value to the bytes; the slot is the caller's to place.
    fn appended(&mut self, key: &[u8], entry: Entry<'_>) -> Slot {
        let (start, key_bytes) = (self.bytes.len() as u32, key.len() as u16);
        self.bytes.extend_from_slice(key);
        let (kind, value) = match entry {
            Entry::Deleted => (Kind::Deleted, 0),
            Entry::Shared(bytes) if bytes.len() > INLINE_BYTES_MAX => {
                self.shared.push(bytes.clone());
                (Kind::Shared, self.shared.len() as u32 - 1)
            }
            Entry::Shared(_) | Entry::Value(_) => {
                let value = entry.bytes();
                self.bytes.extend_from_slice(value);
                (Kind::Inline, value.len() as u32)
            }
        };
        Slot { start, key_bytes, kind, value }
    }

    /// Old and new in order, as leaves that are not quite full.
    fn merged(&self, edits: &[Edit<'_>]) -> Vec<Leaf> {
        let total = self.slots.len() + edits.len();
        let leaves_wanted = total.div_ceil(SLOTS_MAX * 3 / 4).max(1);
        let slots_each = total.div_ceil(leaves_wanted);
        let mut leaves = Vec::with_capacity(leaves_wanted);
        let mut leaf = Leaf::default();
        let mut push = |key: &[u8], entry: Entry<'_>| {
            if leaf.slots.len() == slots_each {
                leaves.push(std::mem::take(&mut leaf));
            }
            let slot = leaf.appended(key, entry);
            leaf.slots.push(slot);
        };
        let mut edits = edits.iter().peekable();
        for at in 0..self.slots.len() {
            let key = self.key(at);
            while let Some(edit) = edits.next_if(|edit| edit.key < key) {
                push(edit.key, edit.entry);
            }
            match edits.next_if(|edit| edit.key == key) {
                Some(edit) => push(edit.key, edit.entry),
                None => push(key, self.entry(at)),
            }
        }
        edits.for_each(|edit| push(edit.key, edit.entry));
        leaves.push(leaf);
        leaves
    }
}

fn inline_bytes(entry: Entry<'_>) -> usize {
    match entry.bytes().len() {
        bytes if bytes > INLINE_BYTES_MAX => 0,
        bytes => bytes,
    }
}

fn inline_length(slot: &Slot) -> usize {
    match slot.kind {
        Kind::Inline => slot.value as usize,
        Kind::Deleted | Kind::Shared => 0,
    }
}

/// A place in a tree, or behind its last or before its first key.
pub(crate) struct Cursor<'a> {
    /// The branches above the leaf, from the root, and the child taken in each.
    path: Vec<(&'a Branch, usize)>,
    at: Option<(&'a Leaf, usize)>,
}

impl<'a> Cursor<'a> {
    /// Key and entry here; nothing beyond the ends.
    pub(crate) fn get(&self) -> Option<(&'a [u8], Entry<'a>)> {
        self.at.map(|(leaf, at)| (leaf.key(at), leaf.entry(at)))
    }

    /// The key here; nothing beyond the ends.
    pub(crate) fn key(&self) -> Option<&'a [u8]> {
        self.at.map(|(leaf, at)| leaf.key(at))
    }

    /// To the next key.
    pub(crate) fn next(&mut self) {
        if let Some((leaf, at)) = &mut self.at {
            *at += 1;
            if *at == leaf.slots.len() {
                self.turn_right();
            }
        }
    }

    /// To the key before.
    pub(crate) fn previous(&mut self) {
        if let Some((_, at)) = &mut self.at {
            match at.checked_sub(1) {
                Some(before) => *at = before,
                None => self.turn_left(),
            }
        }
    }

    fn descend(&mut self, node: Option<&'a Node>, choose: impl Fn(&Branch) -> usize) {
        let mut node = node;
        self.at = None;
        while let Some(here) = node {
            match here {
                Node::Leaf(leaf) => {
                    self.at = Some((leaf, 0));
                    return;
                }
                Node::Branch(branch) => {
                    let at = choose(branch);
                    self.path.push((branch, at));
                    node = Some(&branch.children[at]);
                }
            }
        }
    }

    /// To the first key of the next leaf.
    fn turn_right(&mut self) {
        self.at = None;
        while let Some((branch, at)) = self.path.pop() {
            if at + 1 < branch.children.len() {
                self.path.push((branch, at + 1));
                self.descend(Some(&branch.children[at + 1]), |_| 0);
                return;
            }
        }
    }

    /// To the last key of the leaf before.
    fn turn_left(&mut self) {
        self.at = None;
        while let Some((branch, at)) = self.path.pop() {
            if at > 0 {
                self.path.push((branch, at - 1));
                let node = &branch.children[at - 1];
                self.descend(Some(node), |branch| branch.children.len() - 1);
                if let Some((leaf, at)) = &mut self.at {
                    *at = leaf.slots.len() - 1;
                }
                return;
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::collections::BTreeMap;

    use base::Random;

    use super::*;
    use crate::engine::Change;

    type Model = BTreeMap<Vec<u8>, Option<Bytes>>;

    fn with(tree: &Tree, changes: &[Change]) -> Tree {
        let edits: Vec<Edit<'_>> = changes.iter().map(Change::edit).collect();
        tree.with(&edits)
    }

    fn change(key: &[u8], value: Option<Bytes>) -> Change {
        Change { key: Bytes::copy_from_slice(key), value }
    }

    fn random_changes(random: &Random, count: u64, keys: u64) -> Vec<Change> {
        let made: Model = (0..count)
            .map(|_| {
                let number = random.next() % keys;
                let key = format!("{:06}{}", number, "x".repeat(number as usize % 40)).into_bytes();
                let value = match random.next() % 4 {
                    0 => None,
                    1 => Some(Bytes::new()),
                    2 => Some(Bytes::from(vec![7; number as usize % 100])),
                    _ => Some(Bytes::from(vec![8; 100 + number as usize % 400])),
                };
                (key, value)
            })
            .collect();
        made.into_iter().map(|(key, value)| change(&key, value)).collect()
    }

    fn owned(entry: Entry<'_>) -> Option<Bytes> {
        entry.owned().map(Bytes::from)
    }

    fn walk<'a>(
        mut cursor: Cursor<'a>,
        step: fn(&mut Cursor<'a>),
    ) -> Vec<(Vec<u8>, Option<Bytes>)> {
        let mut all = Vec::new();
        while let Some((key, entry)) = cursor.get() {
            all.push((key.to_vec(), owned(entry)));
            step(&mut cursor);
        }
        all
    }

    fn check(tree: &Tree, model: &Model, random: &Random, keys: u64) {
        assert_eq!(tree.len(), model.len());
        assert!(tree.edits().iter().map(|edit| edit.key).eq(model.keys()));
        let all: Vec<_> = model.clone().into_iter().collect();
        assert_eq!(walk(tree.from(b""), Cursor::next), all);
        let mut back = walk(tree.before(None), Cursor::previous);
        back.reverse();
        assert_eq!(back, all);
        for _ in 0..20 {
            let key = format!("{:06}", random.next() % (keys + 2)).into_bytes();
            assert_eq!(tree.get(&key).map(owned), model.get(&key).cloned());
            let behind = model.range(key.clone()..).next().map(|(key, _)| key.as_slice());
            assert_eq!(tree.from(&key).key(), behind);
            let before = model.range(..key.clone()).next_back().map(|(key, _)| key.as_slice());
            assert_eq!(tree.before(Some(&key)).key(), before);
        }
    }

    #[test]
    fn it_agrees_with_an_ordered_map_and_old_trees_stay() {
        for seed in 0..30 {
            let random = Random::from_seed(seed);
            let keys = [10, 300, 20_000][seed as usize % 3];
            let (mut tree, mut model) = (Tree::default(), Model::new());
            for round in 0..25 {
                let count = [1, 5, 60, 900][(seed as usize + round) % 4];
                let changes = random_changes(&random, count, keys);
                let (old_tree, old_model) = (tree.clone(), model.clone());
                tree = with(&tree, &changes);
                model.extend(changes.iter().map(|c| (c.key.to_vec(), c.value.clone())));
                check(&tree, &model, &random, keys);
                if round % 8 == 0 {
                    check(&old_tree, &old_model, &random, keys);
                }
            }
        }
    }

    #[test]
    fn an_empty_tree_has_nothing() {
        let tree = Tree::default();
        assert!(tree.get(b"a").is_none());
        assert!(tree.from(b"").key().is_none());
        assert!(tree.before(None).key().is_none());
        assert_eq!(tree.with(&[]).len(), 0);
    }

    #[test]
    fn what_a_leaf_no_longer_needs_is_dropped() {
        let mut tree = Tree::default();
        for number in 0..10_000u32 {
            let value = Bytes::from(number.to_be_bytes().repeat(10));
            tree = with(&tree, &[change(b"counter", Some(value))]);
        }
        let Some(Node::Leaf(leaf)) = tree.root.as_deref() else { panic!("one leaf") };
        assert!(leaf.bytes.len() < 500, "{} bytes for one key", leaf.bytes.len());
    }
}
