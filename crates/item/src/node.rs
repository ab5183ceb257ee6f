//! Reading values out of an item without parsing it.
//!
//! A node is a place in the node table. Its methods follow the table and look into the text only
//! for what they return. The bytes may be damaged: every offset is checked where it is used, and a
//! node that makes no sense has no text, no children and no value.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::slot::{Extent, SLOT_BYTES, Slot, Tag};
use crate::value::{Object, Value};
use crate::{DEPTH_MAX, number, string};

/// A value inside an item. Copying one is free; a missing value is `None`, not a node.
#[derive(Clone, Copy)]
pub struct Node<'a> {
    text: &'a [u8],
    table: &'a [u8],
    slot: Slot,
    at: u32,
    depth: u8,
}

/// The JSON types. Undefined is the absence of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// `null`
    Null,
    /// `true` and `false`
    Bool,
    /// binary64
    Number,
    /// UTF-8 text
    String,
    /// Elements by position
    Array,
    /// Members by name
    Object,
}

impl<'a> Node<'a> {
    /// The outermost value; null if there is no table at all.
    pub(crate) fn root(text: &'a [u8], table: &'a [u8]) -> Node<'a> {
        let slot = Slot::read(table, 0).unwrap_or(Slot::new(Tag::Null, 0, 0));
        Node { text, table, slot, at: 0, depth: 1 }
    }

    /// Its JSON type.
    pub fn kind(self) -> Kind {
        match self.slot.tag() {
            Tag::Null => Kind::Null,
            Tag::False | Tag::True => Kind::Bool,
            Tag::Number => Kind::Number,
            Tag::String => Kind::String,
            Tag::Array => Kind::Array,
            Tag::Object => Kind::Object,
        }
    }

    /// Whether it is `null`.
    pub fn is_null(self) -> bool {
        self.slot.tag() == Tag::Null
    }

    /// The boolean it is.
    pub fn as_bool(self) -> Option<bool> {
        match self.slot.tag() {
            Tag::True => Some(true),
            Tag::False => Some(false),
            Tag::Null | Tag::Number | Tag::String | Tag::Array | Tag::Object => None,
        }
    }

    /// The number it is.
    pub fn as_f64(self) -> Option<f64> {
        if self.slot.tag() == Tag::Number { number::read(self.bytes()) } else { None }
    }

    /// The string it is, borrowed from the item unless it has escapes.
    pub fn as_str(self) -> Option<Cow<'a, str>> {
        if self.slot.tag() != Tag::String {
            return None;
        }
        let inside = self.bytes().get(1..)?.split_last()?.1;
        string::decode(inside, self.slot.value_escaped())
    }

    /// Whether it is this string. Canonical texts are equal if the strings are, so nothing is decoded
    /// unless there are escapes.
    pub fn is_string(self, text: &str) -> bool {
        if self.slot.value_escaped() {
            return self.as_str().is_some_and(|own| own == text);
        }
        let inside = self.bytes().get(1..).and_then(<[u8]>::split_last).map(|(_, inside)| inside);
        self.slot.tag() == Tag::String && inside == Some(text.as_bytes())
    }

    /// The member called `name`. Linear in the number of members before it.
    pub fn get(self, name: &str) -> Option<Node<'a>> {
        if self.slot.tag() != Tag::Object {
            return None;
        }
        let (mut at, next) = self.children();
        let parent = self.bounded(next);
        // As in [`Members::step`], but no node is made, nor a name looked at that is longer or
        // shorter.
        let mut name_start = self.slot.start() + 2;
        while at < next {
            let slot = Slot::read(parent.table, at)?;
            let name_end = slot.start().checked_sub(2)?;
            let may_be = slot.name_escaped() || name_end.checked_sub(name_start)? == name.len();
            if may_be && slot.is_named(self.text.get(name_start..name_end)?, name) {
                return parent.child(at);
            }
            at = slot.next(parent.table, at);
            name_start = slot.end() + 2;
        }
        None
    }

    /// The element at `index`. Constant time if all elements are scalars, else linear in `index`.
    pub fn at(self, index: usize) -> Option<Node<'a>> {
        if self.slot.tag() != Tag::Array {
            return None;
        }
        let (first, next) = self.children();
        if self.len() == next - first {
            let at = first.checked_add(index).filter(|&at| at < next)?;
            return self.bounded(next).child(at);
        }
        self.elements().nth(index)
    }

    /// The members of an object, in order; none for other kinds.
    pub fn members(self) -> Members<'a> {
        let is_object = self.slot.tag() == Tag::Object;
        let (at, next) = if is_object { self.children() } else { (0, 0) };
        Members { parent: self.bounded(next), at, next, name_start: self.slot.start() + 2 }
    }

    /// The elements of an array, in order; none for other kinds.
    pub fn elements(self) -> Elements<'a> {
        let is_array = self.slot.tag() == Tag::Array;
        let (at, next) = if is_array { self.children() } else { (0, 0) };
        Elements { parent: self.bounded(next), at, next }
    }

    /// How many elements or members it has; zero for scalars.
    pub fn len(self) -> usize {
        let (first, next) = self.children();
        let count = self.extent().map_or(0, |extent| extent.count as usize);
        count.min(next - first)
    }

    /// Whether it has no elements or members.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The value reached by following member names. Arrays are not entered.
    pub fn path<'p>(self, segments: impl IntoIterator<Item = &'p str>) -> Option<Node<'a>> {
        segments.into_iter().try_fold(self, |node, segment| node.get(segment))
    }

    /// Its canonical JSON text.
    pub fn raw(self) -> &'a str {
        std::str::from_utf8(self.bytes()).unwrap_or_default()
    }

    /// An owned copy.
    pub fn to_value(self) -> Value {
        self.copy(|members| members.collect_distinct())
    }

    /// An owned copy of a text whose objects may have a name twice.
    pub(crate) fn to_value_without_duplicates(self) -> Value {
        self.copy(|members| members.collect())
    }

    fn copy(self, collect: fn(Copied<'a>) -> Object) -> Value {
        match self.slot.tag() {
            Tag::Null => Value::Null,
            Tag::False => Value::Bool(false),
            Tag::True => Value::Bool(true),
            Tag::Number => self.as_f64().map_or(Value::Undefined, Value::Number),
            Tag::String => {
                self.as_str().map_or(Value::Undefined, |text| Value::String(text.into()))
            }
            Tag::Array => {
                Value::Array(Arc::new(self.elements().map(|node| node.copy(collect)).collect()))
            }
            Tag::Object => {
                Value::Object(Arc::new(collect(Copied { members: self.members(), collect })))
            }
        }
    }

    /// Its text; empty if the slot points outside the item.
    fn bytes(self) -> &'a [u8] {
        self.text.get(self.slot.start()..self.slot.end()).unwrap_or_default()
    }

    fn extent(self) -> Option<Extent> {
        if self.slot.is_container() { Extent::read(self.table, self.at as usize + 1) } else { None }
    }

    /// The slots of its children and their descendants: the first, and the one after the last.
    /// Empty if they lie outside the table or too deep for an item we wrote.
    fn children(self) -> (usize, usize) {
        let first = self.at as usize + 2;
        let slots = self.table.len() / SLOT_BYTES;
        let next = self.extent().map_or(0, |extent| extent.next as usize);
        let is_sound = first <= next && next <= slots && usize::from(self.depth) <= DEPTH_MAX;
        if is_sound { (first, next) } else { (first, first) }
    }

    /// Itself without the table from slot `next` on. Children are made from it, so that none can
    /// claim slots of a sibling of its parent and a walk visits each slot once.
    fn bounded(self, next: usize) -> Node<'a> {
        Node { table: self.table.get(..next * SLOT_BYTES).unwrap_or_default(), ..self }
    }

    fn child(self, at: usize) -> Option<Node<'a>> {
        let slot = Slot::read(self.table, at)?;
        Some(Node { slot, at: at as u32, depth: self.depth.saturating_add(1), ..self })
    }

    /// The slot after this value and all in it.
    fn next(self) -> usize {
        self.slot.next(self.table, self.at as usize)
    }
}

impl fmt::Debug for Node<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.raw())
    }
}

/// The members of an object.
#[derive(Clone)]
pub struct Members<'a> {
    parent: Node<'a>,
    at: usize,
    next: usize,
    name_start: usize,
}

impl<'a> Members<'a> {
    /// The next member with the inside of its name as it stands in the text.
    ///
    /// ```text
    /// {"a":1,"b":2}
    ///     ^  ^   ^ value start: the name ends two before
    ///     |  name start: two after the end of the value before
    /// ```
    #[inline]
    fn step(&mut self) -> Option<(&'a [u8], Node<'a>)> {
        if self.at >= self.next {
            return None;
        }
        let node = self.parent.child(self.at)?;
        let name_end = node.slot.start().checked_sub(2)?;
        let inside = self.parent.text.get(self.name_start..name_end)?;
        self.at = node.next();
        self.name_start = node.slot.end() + 2;
        Some((inside, node))
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = (Cow<'a, str>, Node<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (inside, node) = self.step()?;
        let name = string::decode(inside, node.slot.name_escaped())?;
        Some((name, node))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.next.saturating_sub(self.at)))
    }
}

/// The elements of an array.
#[derive(Clone)]
pub struct Elements<'a> {
    parent: Node<'a>,
    at: usize,
    next: usize,
}

impl<'a> Iterator for Elements<'a> {
    type Item = Node<'a>;

    fn next(&mut self) -> Option<Node<'a>> {
        if self.at >= self.next {
            return None;
        }
        let node = self.parent.child(self.at)?;
        self.at = node.next();
        Some(node)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.next.saturating_sub(self.at)))
    }
}

/// Members turned into values on their way into an object.
struct Copied<'a> {
    members: Members<'a>,
    collect: fn(Copied<'a>) -> Object,
}

impl Copied<'_> {
    fn collect_distinct(self) -> Object {
        let mut object = Object::with_capacity(self.members.parent.len());
        self.for_each(|(name, value)| object.push_distinct(name, value));
        object
    }
}

impl Iterator for Copied<'_> {
    type Item = (Arc<str>, Value);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, node) = self.members.next()?;
        Some((name.into(), node.copy(self.collect)))
    }
}
