//! Indexing policies, compiled for the walk over an item.
//!
//! The paths of a policy become a tree of the same shape as items. Which rule applies to a value
//! is then known by walking both together: the tree is consulted only where it has something to
//! say, and what a `/*` above decided is carried down.
//!
//! ```text
//! included /*  /a/b/?        root            /*  yes
//! excluded /a/*               ├─ a           /*  no
//!                             │   └─ b       /?  yes   "undefined" if missing
//!                             └─ id          /?  yes   always
//! ```
//!
//! Precedence: the deepest path that matches wins, and at equal depth `/?` beats `/*`. That is
//! what the tree does: a node overrides what it inherits, its `/?` overrides its `/*`.
//!
//! Explicitly included paths, all but `/*`, also index that they are missing. Tuple paths are
//! stored with the policy but have no terms of their own.

use std::collections::BTreeSet;

use model::container::path::{IndexPath, PathEnd, Segment};
use model::container::{ContainerDefinition, IndexingMode, IndexingPolicy, SYSTEM_PROPERTIES};

use crate::composite::Composite;
use crate::encode::{self, Scalar};
use crate::full_text::FullText;
use crate::path::Path;
use crate::spatial::Spatial;

/// An indexing policy, ready to be applied to items.
#[derive(Debug, Clone)]
pub struct Policy {
    mode: IndexingMode,
    pub(crate) tree: Tree,
    /// The term of each explicitly included path for items that lack it.
    pub(crate) undefined: Vec<Vec<u8>>,
    composites: Vec<Composite>,
    spatials: Vec<Spatial>,
    full_texts: Vec<FullText>,
}

impl Policy {
    /// Compiles the policy of a container without computed properties and without prose.
    pub fn compile(policy: &IndexingPolicy) -> Policy {
        Policy::compile_hiding(policy, &[])
    }

    /// Compiles the policy of a container. Its computed properties hide stored properties of the
    /// same name, which drop out of the index.
    pub fn of(definition: &ContainerDefinition) -> Policy {
        let names = definition.computed.iter().map(|property| property.name.as_str());
        let mut policy = Policy::compile_hiding(&definition.indexing, &names.collect::<Vec<_>>());
        policy.full_texts = FullText::of(definition);
        policy
    }

    /// Whether items have other terms under another definition.
    pub fn differs(one: &ContainerDefinition, other: &ContainerDefinition) -> bool {
        let names = |definition: &ContainerDefinition| -> BTreeSet<String> {
            definition.computed.iter().map(|property| property.name.clone()).collect()
        };
        one.indexing != other.indexing
            || names(one) != names(other)
            || FullText::of(one) != FullText::of(other)
    }

    fn compile_hiding(policy: &IndexingPolicy, hidden: &[&str]) -> Policy {
        let mut tree = Tree::default();
        policy.included.iter().for_each(|path| tree.add(path, true));
        policy.excluded.iter().for_each(|path| tree.add(path, false));
        tree.always_index("id");
        SYSTEM_PROPERTIES.iter().chain(hidden).for_each(|name| tree.hide(name));
        let undefined = number_explicit_paths(&mut tree, &policy.included);
        let composites = policy.composite.iter().map(Composite::new).collect();
        let spatials = policy.spatial.iter().map(|index| &index.path);
        let spatials = spatials.filter(|path| !tree.is_hidden(path)).map(Spatial::new).collect();
        let full_texts = Vec::new();
        Policy { mode: policy.mode, tree, undefined, composites, spatials, full_texts }
    }

    /// Whether there is an index.
    pub fn is_consistent(&self) -> bool {
        self.mode == IndexingMode::Consistent
    }

    /// Whether the values at a path have terms: whether a filter or ORDER BY can use the index.
    pub fn is_indexed(&self, path: &Path) -> bool {
        if !self.is_consistent() || path.segments.is_empty() {
            return false;
        }
        self.is_time(path) || self.tree.is_indexed(&path.segments)
    }

    /// Whether items that lack a path have a term that says so: whether every indexed item has a
    /// term at the path.
    pub fn indexes_missing(&self, path: &Path) -> bool {
        let node = self.tree.find(&path.segments).map(|at| &self.tree.nodes[at]);
        self.is_indexed(path) && node.is_some_and(|node| node.explicit.is_some())
    }

    /// The composite indexes, in the order of the policy.
    pub fn composites(&self) -> &[Composite] {
        &self.composites
    }

    pub(crate) fn spatials(&self) -> &[Spatial] {
        &self.spatials
    }

    /// The full-text indexes, in the order of the policy.
    pub fn full_texts(&self) -> &[FullText] {
        &self.full_texts
    }

    /// `_ts` is indexed whatever the policy says, though not by the walk.
    fn is_time(&self, path: &Path) -> bool {
        matches!(&path.segments[..], [Segment::Property(name)] if name == "_ts")
    }
}

/// Gives each explicitly included path a number in the tree and its undefined term a place in a
/// list.
fn number_explicit_paths(tree: &mut Tree, included: &[IndexPath]) -> Vec<Vec<u8>> {
    let mut terms = Vec::new();
    for path in included {
        let Some(node) = tree.find(path.segments()).filter(|&at| at != ROOT) else { continue };
        let is_tuple = matches!(path.end(), PathEnd::Tuple(_));
        if is_tuple || tree.is_hidden(path) || tree.nodes[node].explicit.is_some() {
            continue;
        }
        tree.nodes[node].explicit = Some(terms.len());
        let mut term = Path::new(path.segments().to_vec()).to_bytes();
        encode::write(&Scalar::Undefined, &mut term);
        terms.push(term);
    }
    terms
}

const ROOT: usize = 0;

/// The paths of a policy as a tree.
#[derive(Debug, Clone)]
pub(crate) struct Tree {
    nodes: Vec<TreeNode>,
}

/// What a policy says about a path and the paths below it.
#[derive(Debug, Clone, Default)]
pub(crate) struct TreeNode {
    /// What `/?` says.
    scalar: Option<bool>,
    /// What `/*` says.
    subtree: Option<bool>,
    /// Number of the explicitly included path that ends here.
    pub explicit: Option<usize>,
    /// A system or computed property: nothing here or below is indexed.
    pub is_hidden: bool,
    elements: Option<usize>,
    /// Sorted by length, then by bytes: most comparisons end at the length.
    properties: Vec<(Box<str>, usize)>,
}

/// What applies to a value: whether it is indexed itself, and what applies below it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Verdict {
    pub here: bool,
    pub below: bool,
}

impl TreeNode {
    /// Applies the rules of this node to what was inherited.
    pub fn judge(&self, inherited: bool) -> Verdict {
        let below = self.subtree.unwrap_or(inherited);
        Verdict { here: self.scalar.unwrap_or(below), below }
    }

    /// Whether the policy has paths that go further.
    pub fn has_children(&self) -> bool {
        self.elements.is_some() || !self.properties.is_empty()
    }

    fn find(&self, name: &str) -> Result<usize, usize> {
        let key = |name: &str| name.len();
        self.properties.binary_search_by(|(other, _)| {
            key(other).cmp(&key(name)).then_with(|| other.as_bytes().cmp(name.as_bytes()))
        })
    }
}

impl Default for Tree {
    fn default() -> Self {
        Tree { nodes: vec![TreeNode::default()] }
    }
}

impl Tree {
    pub fn root(&self) -> &TreeNode {
        &self.nodes[ROOT]
    }

    /// The node of a property, if the policy has a path through it.
    #[inline]
    pub fn property<'t>(&'t self, node: Option<&'t TreeNode>, name: &str) -> Option<&'t TreeNode> {
        let node = node?;
        let at = node.find(name).ok()?;
        Some(&self.nodes[node.properties[at].1])
    }

    /// The node of array elements, if the policy has a path through them.
    pub fn elements<'t>(&'t self, node: Option<&'t TreeNode>) -> Option<&'t TreeNode> {
        node?.elements.map(|at| &self.nodes[at])
    }

    fn add(&mut self, path: &IndexPath, included: bool) {
        let at = self.make(path.segments());
        let node = &mut self.nodes[at];
        match path.end() {
            PathEnd::Scalar => node.scalar = Some(included),
            PathEnd::Subtree => node.subtree = Some(included),
            PathEnd::Tuple(_) => {}
        }
    }

    fn always_index(&mut self, name: &str) {
        let at = self.make(&[Segment::Property(name.to_owned())]);
        self.nodes[at].scalar = Some(true);
    }

    fn hide(&mut self, name: &str) {
        let at = self.make(&[Segment::Property(name.to_owned())]);
        self.nodes[at].is_hidden = true;
    }

    fn is_hidden(&self, path: &IndexPath) -> bool {
        let first = path.segments().get(..1).and_then(|first| self.find(first));
        first.is_some_and(|at| self.nodes[at].is_hidden)
    }

    fn is_indexed(&self, segments: &[Segment]) -> bool {
        let mut node = Some(self.root());
        let mut verdict = self.root().judge(false);
        for segment in segments {
            node = match segment {
                Segment::Property(name) => self.property(node, name),
                Segment::Elements => self.elements(node),
            };
            if node.is_some_and(|node| node.is_hidden) {
                return false;
            }
            let inherited = Verdict { here: verdict.below, below: verdict.below };
            verdict = node.map_or(inherited, |node| node.judge(verdict.below));
        }
        verdict.here
    }

    fn find(&self, segments: &[Segment]) -> Option<usize> {
        segments.iter().try_fold(ROOT, |at, segment| match segment {
            Segment::Elements => self.nodes[at].elements,
            Segment::Property(name) => {
                let node = &self.nodes[at];
                node.find(name).ok().map(|found| node.properties[found].1)
            }
        })
    }

    fn make(&mut self, segments: &[Segment]) -> usize {
        segments.iter().fold(ROOT, |at, segment| self.make_child(at, segment))
    }

    fn make_child(&mut self, at: usize, segment: &Segment) -> usize {
        let new = self.nodes.len();
        let node = &mut self.nodes[at];
        let child = match segment {
            Segment::Elements => *node.elements.get_or_insert(new),
            Segment::Property(name) => match node.find(name) {
                Ok(found) => node.properties[found].1,
                Err(place) => {
                    node.properties.insert(place, (name.as_str().into(), new));
                    new
                }
            },
        };
        if child == new {
            self.nodes.push(TreeNode::default());
        }
        child
    }
}
