//! From an item to its terms: one walk over the item, side by side with the policy's tree.

use item::{Kind, Node};

use crate::encode::{self, STRING_BYTES_MAX, tag};
use crate::ordinal::hash128;
use crate::path::{push_elements, push_property, write_closed};
use crate::policy::{Policy, TreeNode, Verdict};
use crate::terms::Terms;

impl Policy {
    /// The terms of an item: every indexed scalar, the type of every indexed array and object,
    /// and "undefined" for explicitly included paths that it lacks. Sorted, distinct.
    ///
    /// `_ts` is left to [`ts_term`], and the other system properties have no terms.
    pub fn terms(&self, root: Node<'_>) -> Terms {
        if !self.is_consistent() {
            return Terms::default();
        }
        let mut walk = Walk::new(self);
        walk.item(root);
        walk.finish()
    }
}

/// The term of the time of the last write, which every item has.
pub fn ts_term(ts: u32) -> [u8; TS_TERM_BYTES] {
    let mut term = [0; TS_TERM_BYTES];
    let (path, number) = term.split_at_mut(TS_PATH.len());
    path.copy_from_slice(TS_PATH);
    number[0] = tag::NUMBER;
    number[1..].copy_from_slice(&encode::ordered_bits(f64::from(ts)).to_be_bytes());
    term
}

/// `/_ts`.
const TS_PATH: &[u8] = b"\x02_ts\x00\x01";
const TS_TERM_BYTES: usize = TS_PATH.len() + 9;

struct Walk<'p> {
    policy: &'p Policy,
    /// The path of the current value, without its end mark.
    path: Vec<u8>,
    terms: Terms,
    /// One bit per explicitly included path that the item has.
    seen: Vec<u64>,
}

impl<'p> Walk<'p> {
    fn new(policy: &'p Policy) -> Self {
        let seen = vec![0; policy.undefined.len().div_ceil(64)];
        Walk { policy, path: Vec::with_capacity(64), terms: Terms::with_capacity(32, 1024), seen }
    }

    fn item(&mut self, root: Node<'_>) {
        let tree = self.policy.tree.root();
        self.members(root, Some(tree), tree.judge(false).below);
    }

    fn members(&mut self, object: Node<'_>, tree: Option<&'p TreeNode>, inherited: bool) {
        let length = self.path.len();
        for (name, node) in object.members() {
            let child = self.policy.tree.property(tree, &name);
            if child.is_none() && !inherited {
                continue; // nothing here or below is indexed
            }
            push_property(&name, &mut self.path);
            self.value(node, child, inherited);
            self.path.truncate(length);
        }
    }

    fn elements(&mut self, array: Node<'_>, tree: Option<&'p TreeNode>, inherited: bool) {
        let child = self.policy.tree.elements(tree);
        let length = self.path.len();
        push_elements(&mut self.path);
        array.elements().for_each(|node| self.value(node, child, inherited));
        self.path.truncate(length);
    }

    fn value(&mut self, node: Node<'_>, tree: Option<&'p TreeNode>, inherited: bool) {
        let mut verdict = Verdict { here: inherited, below: inherited };
        if let Some(tree) = tree {
            if tree.is_hidden {
                return;
            }
            verdict = tree.judge(inherited);
            self.mark_seen(tree);
        }
        if verdict.here {
            self.push(node);
        }
        if verdict.below || tree.is_some_and(TreeNode::has_children) {
            match node.kind() {
                Kind::Array => self.elements(node, tree, verdict.below),
                Kind::Object => self.members(node, tree, verdict.below),
                Kind::Null | Kind::Bool | Kind::Number | Kind::String => {}
            }
        }
    }

    fn mark_seen(&mut self, tree: &TreeNode) {
        if let Some(number) = tree.explicit {
            self.seen[number / 64] |= 1 << (number % 64);
        }
    }

    fn push(&mut self, node: Node<'_>) {
        let kind = node.kind();
        let is_leaf = !matches!(kind, Kind::Array | Kind::Object) || node.is_empty();
        let path = &self.path;
        let long = match kind {
            Kind::String => node.as_str().filter(|text| text.len() > STRING_BYTES_MAX),
            Kind::Null | Kind::Bool | Kind::Number | Kind::Array | Kind::Object => None,
        };
        if let Some(text) = &long {
            let hash = hash128(path).rotate_left(64) ^ hash128(text.as_bytes());
            self.terms.push_long_leaf(hash);
        }
        self.terms.push(is_leaf && long.is_none(), |out| {
            write_closed(path, out);
            write_node(node, kind, out);
        });
    }

    fn finish(mut self) -> Terms {
        for (number, term) in self.policy.undefined.iter().enumerate() {
            if self.seen[number / 64] & 1 << (number % 64) == 0 {
                self.terms.push(false, |out| out.extend_from_slice(term));
            }
        }
        self.terms.finish()
    }
}

/// [`encode::write`] without a detour over a [`encode::Scalar`].
fn write_node(node: Node<'_>, kind: Kind, out: &mut Vec<u8>) {
    match kind {
        Kind::Null => out.push(tag::NULL),
        Kind::Bool => {
            out.push(if node.as_bool() == Some(true) { tag::TRUE } else { tag::FALSE });
        }
        Kind::Number => encode::write_number(node.as_f64().unwrap_or_default(), out),
        Kind::String => {
            encode::write_string(&node.as_str().unwrap_or_default(), STRING_BYTES_MAX, out);
        }
        Kind::Array => out.push(tag::ARRAY),
        Kind::Object => out.push(tag::OBJECT),
    }
}
