//! Paths from the root of an item to a value.

use std::fmt;
use std::sync::Arc;

use item::{Node, Value};

/// A path as index policies mean it: property names, and "every element of an array".
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Path {
    segments: Vec<Segment>,
}

/// One step of a [`Path`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Segment {
    /// Into the property of this name.
    Property(Arc<str>),
    /// Into every element of an array: `[]`.
    Elements,
}

impl Segment {
    /// The name of the property, if it is one.
    pub fn name(&self) -> Option<String> {
        match self {
            Segment::Property(name) => Some(name.to_string()),
            Segment::Elements => None,
        }
    }
}

impl Path {
    /// The path of the item itself.
    pub fn root() -> Path {
        Path::default()
    }

    /// A path of property names.
    pub fn of<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> Path {
        names.into_iter().fold(Path::root(), |path, name| path.property(name.as_ref()))
    }

    /// The path one property further.
    pub fn property(mut self, name: impl Into<Arc<str>>) -> Path {
        self.segments.push(Segment::Property(name.into()));
        self
    }

    /// The path of the elements.
    pub fn elements(mut self) -> Path {
        self.segments.push(Segment::Elements);
        self
    }

    /// Its steps.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Whether it consists of exactly these property names.
    pub fn is_names<S: AsRef<str>>(&self, names: &[S]) -> bool {
        self.segments.len() == names.len()
            && self.segments.iter().zip(names).all(|(segment, name)| match segment {
                Segment::Property(own) => **own == *name.as_ref(),
                Segment::Elements => false,
            })
    }

    /// The values at the path: at most one unless it goes through an array, undefined ones left
    /// out.
    pub fn values<'a>(&self, root: Node<'a>) -> Vec<Node<'a>> {
        let mut nodes = vec![root];
        for segment in &self.segments {
            nodes = match segment {
                Segment::Property(name) => nodes.iter().filter_map(|n| n.get(name)).collect(),
                Segment::Elements => nodes.iter().flat_map(|n| n.elements()).collect(),
            };
        }
        nodes
    }

    /// The value at a path without arrays; undefined if there is none.
    pub fn value(&self, root: Node<'_>) -> Value {
        self.node(root).map_or(Value::Undefined, |node| node.to_value())
    }

    /// The node at a path without arrays, if there is one.
    pub fn node<'a>(&self, root: Node<'a>) -> Option<Node<'a>> {
        self.segments.iter().try_fold(root, |node, segment| match segment {
            Segment::Property(name) => node.get(name),
            Segment::Elements => None,
        })
    }
}

/// As in an indexing policy: `/a/"b c"/[]`.
impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.segments.is_empty() {
            return f.write_str("/");
        }
        self.segments.iter().try_for_each(|segment| match segment {
            Segment::Property(name) if sql::is_plain_name(name) => write!(f, "/{name}"),
            Segment::Property(name) => {
                let mut quoted = String::new();
                sql::quote(&mut quoted, name);
                write!(f, "/{quoted}")
            }
            Segment::Elements => f.write_str("/[]"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_print_as_in_policies() {
        assert_eq!(Path::of(["a", "b c"]).elements().to_string(), r#"/a/"b c"/[]"#);
        assert_eq!(Path::root().to_string(), "/");
    }
}
