//! Partition keys: where they are in an item, and what they are.
//!
//! A definition lists one path, or two to three for a hierarchical key; a partition key has one
//! component per path. Missing and null are different components, hence different logical
//! partitions. Objects and arrays are no components.
//!
//! BYTES
//!
//! ```text
//! undefined 01   null 02   false 03   true 04
//! number    05 {binary64, big-endian, sign folded so that bytes order like numbers}
//! string    06 {UTF-8 with 00 written as 00 FF} 00 01
//! ```
//!
//! INVARIANTS
//! (K1) Two keys are equal if and only if their bytes are.
//! (K2) A component ends where its bytes say so: with a known number of components, whatever
//! ```text
//!  follows a key in a storage key cannot be mistaken for a part of it.
//! ```
//! (K3) The bytes of a prefix of a hierarchical key are a prefix of its bytes.
//! (K4) Bytes order like keys: undefined < null < false < true < number < string.
//!
//! ELSEWHERE  Hashing: `epk`. Reading a component from an item: whoever holds items.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use serde_json::{Map, Value, json};

pub use crate::container::path::PropertyPath;

/// Largest partition key under hash version 2, in bytes of its components' values (the service's
/// documented quota). Version 1 accepts longer keys and hashes their beginning.
pub const PARTITION_KEY_BYTES_MAX: usize = 2048;
/// Most levels of a hierarchical partition key (the service's documented quota).
pub const PARTITION_KEY_LEVELS_MAX: usize = 3;

/// How partition keys become effective partition keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartitionKind {
    /// One path, hashed.
    Hash,
    /// Two or three paths, each hashed on its own.
    MultiHash,
}

/// Which hash function; fixed for the life of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HashVersion {
    /// 32 bits of hash, then the beginning of the value itself.
    V1,
    /// 128 bits of hash.
    V2,
}

/// The paths of a container's partition key and how it is hashed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionKeyDefinition {
    /// One path, or one per level.
    pub paths: Vec<PropertyPath>,
    /// One level or several.
    pub kind: PartitionKind,
    /// The hash function.
    pub version: HashVersion,
    /// The container was migrated from one without a partition key; clients may send none.
    pub system_key: bool,
}

impl PartitionKeyDefinition {
    /// Completes a key a client sent for one item: every level must be there.
    ///
    /// On a container with a system key, no components mean that the item has no key.
    pub fn complete(&self, key: PartitionKey) -> Result<PartitionKey, KeyError> {
        if self.system_key && key.0.is_empty() {
            return Ok(PartitionKey(vec![Component::Undefined]));
        }
        match key.0.len() == self.paths.len() {
            true => self.check_size(key),
            false => Err(self.wrong_count(&key)),
        }
    }

    /// Completes a key a client sent for a query: a prefix of the levels will do.
    pub fn complete_prefix(&self, key: PartitionKey) -> Result<PartitionKey, KeyError> {
        match key.0.is_empty() || key.0.len() >= self.paths.len() {
            true => self.complete(key),
            false => self.check_size(key),
        }
    }

    /// Whether a key has all levels.
    pub fn is_complete(&self, key: &PartitionKey) -> bool {
        key.0.len() == self.paths.len()
    }

    fn wrong_count(&self, key: &PartitionKey) -> KeyError {
        KeyError::WrongCount { expected: self.paths.len(), actual: key.0.len() }
    }

    fn check_size(&self, key: PartitionKey) -> Result<PartitionKey, KeyError> {
        let size = key.0.iter().map(Component::value_bytes).sum();
        match self.version == HashVersion::V2 && size > PARTITION_KEY_BYTES_MAX {
            true => Err(KeyError::TooLong { bytes: size }),
            false => Ok(key),
        }
    }
}

/// One level of a partition key.
#[derive(Debug, Clone)]
pub enum Component {
    /// The item has nothing at the path.
    Undefined,
    /// An explicit null.
    Null,
    /// A boolean.
    Bool(bool),
    /// A number; equal if equal as binary64, and −0 is 0.
    Number(f64),
    /// A string, compared by bytes.
    String(String),
}

impl Component {
    fn rank(&self) -> u8 {
        match self {
            Component::Undefined => 1,
            Component::Null => 2,
            Component::Bool(false) => 3,
            Component::Bool(true) => 4,
            Component::Number(_) => 5,
            Component::String(_) => 6,
        }
    }

    fn value_bytes(&self) -> usize {
        match self {
            Component::Undefined | Component::Null | Component::Bool(_) => 1,
            Component::Number(_) => 8,
            Component::String(text) => text.len(),
        }
    }

    fn write_bytes(&self, out: &mut Vec<u8>) {
        out.push(self.rank());
        match self {
            Component::Undefined | Component::Null | Component::Bool(_) => {}
            Component::Number(number) => out.extend(ordered_bits(*number).to_be_bytes()),
            Component::String(text) => write_terminated(text.as_bytes(), out),
        }
    }

    /// The component as JSON; `None` if undefined.
    pub fn to_value(&self) -> Option<Value> {
        match self {
            Component::Undefined => None,
            Component::Null => Some(Value::Null),
            Component::Bool(bool) => Some(Value::Bool(*bool)),
            Component::Number(number) => Some(number_value(*number)),
            Component::String(text) => Some(Value::String(text.clone())),
        }
    }
}

impl PartialEq for Component {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Component {}

impl PartialOrd for Component {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Component {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Component::Number(a), Component::Number(b)) => ordered_bits(*a).cmp(&ordered_bits(*b)),
            (Component::String(a), Component::String(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl Hash for Component {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.rank().hash(state);
        match self {
            Component::Undefined | Component::Null | Component::Bool(_) => {}
            Component::Number(number) => ordered_bits(*number).hash(state),
            Component::String(text) => text.hash(state),
        }
    }
}

/// The partition key of an item, or a prefix of a hierarchical one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct PartitionKey(pub Vec<Component>);

/// What is at a partition key path is an object or an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotScalar;

/// Why something is not a partition key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The text is not a JSON array.
    #[error("a partition key is a JSON array of strings, numbers, booleans, nulls or {{}}")]
    NotAnArray,
    /// An element is an object with members, an array, or no JSON.
    #[error(
        "component {index} of the partition key is not a string, number, boolean, null or {{}}"
    )]
    BadComponent {
        /// Counted from 0.
        index: usize,
    },
    /// The number of components is not the number of paths.
    #[error("the partition key has {actual} components, the container expects {expected}")]
    WrongCount {
        /// Paths of the definition.
        expected: usize,
        /// Components given.
        actual: usize,
    },
    /// Over 2,048 bytes.
    #[error("the partition key has {bytes} bytes, at most {PARTITION_KEY_BYTES_MAX} are allowed")]
    TooLong {
        /// Bytes of all components.
        bytes: usize,
    },
    /// The item has an object or an array there.
    #[error("the partition key path {path} leads to an object or an array")]
    NotScalar {
        /// As the definition writes it.
        path: String,
    },
}

impl PartitionKey {
    /// Reads the JSON array that clients send with a request. `[]` is the empty key, which
    /// [`PartitionKeyDefinition::complete`] interprets.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let mut scanner = Scanner { rest: text.trim_matches(BLANKS), index: 0 };
        let components = scanner.array()?;
        match scanner.rest.is_empty() {
            true => Ok(PartitionKey(components)),
            false => Err(KeyError::NotAnArray),
        }
    }

    /// Collects the key of an item. `read` answers what the item has at a path.
    pub fn extract<F>(def: &PartitionKeyDefinition, mut read: F) -> Result<Self, KeyError>
    where
        F: FnMut(&[String]) -> Result<Component, NotScalar>,
    {
        let mut components = Vec::with_capacity(def.paths.len());
        for path in &def.paths {
            let component = read(path.segments());
            components
                .push(component.map_err(|_| KeyError::NotScalar { path: path.text().to_owned() })?);
        }
        def.check_size(PartitionKey(components))
    }

    /// The bytes that stand for the key in storage keys (K1–K4).
    pub fn to_bytes(&self) -> Vec<u8> {
        let size = self.0.iter().map(|component| component.value_bytes() + 3).sum();
        let mut bytes = Vec::with_capacity(size);
        self.write_bytes(&mut bytes);
        bytes
    }

    /// Appends [`PartitionKey::to_bytes`] to a storage key under construction.
    pub fn write_bytes(&self, out: &mut Vec<u8>) {
        self.0.iter().for_each(|component| component.write_bytes(out));
    }

    /// The key as an object with the properties an item would have: `{"tenant":"T","user":1}`.
    /// Undefined components are left out, nested paths make nested objects.
    pub fn to_json(&self, def: &PartitionKeyDefinition) -> String {
        let mut root = Map::new();
        for (path, component) in def.paths.iter().zip(&self.0) {
            if let Some(value) = component.to_value() {
                insert_at(&mut root, path.segments(), value);
            }
        }
        Value::Object(root).to_string()
    }

    /// The key as the JSON array that [`PartitionKey::parse`] reads.
    pub fn to_array(&self) -> String {
        let elements = self.0.iter().map(|component| component.to_value().unwrap_or(json!({})));
        Value::Array(elements.collect()).to_string()
    }
}

/// A path that runs through the value of a shorter one cannot be shown and is left out; no item
/// has a scalar at both.
fn insert_at(object: &mut Map<String, Value>, segments: &[String], value: Value) {
    match segments {
        [] => {}
        [last] => {
            object.insert(last.clone(), value);
        }
        [first, rest @ ..] => {
            let child = object.entry(first.clone()).or_insert_with(|| json!({}));
            if let Value::Object(child) = child {
                insert_at(child, rest, value);
            }
        }
    }
}

/// Integers are printed without a fraction, as every client prints them.
fn number_value(number: f64) -> Value {
    let integer = number as i64;
    match integer as f64 == number && integer.unsigned_abs() < 1 << 53 {
        true => Value::from(integer),
        false => Value::from(number),
    }
}

/// Bits that order like the numbers they stand for; −0 and 0 have the same.
fn ordered_bits(number: f64) -> u64 {
    let bits = (number + 0.0).to_bits(); // −0 + 0 is 0
    match bits >> 63 {
        0 => bits | 1 << 63,
        _ => !bits,
    }
}

/// Writes bytes so that their end can be found and a shorter string sorts before its extensions.
fn write_terminated(bytes: &[u8], out: &mut Vec<u8>) {
    for &byte in bytes {
        out.push(byte);
        if byte == 0 {
            out.push(0xFF);
        }
    }
    out.extend([0, 1]);
}

const BLANKS: [char; 4] = [' ', '\t', '\n', '\r'];

/// Reads the key header without a tree of values: every request with a key passes here, and
/// `serde_json` reads numbers to within one unit in the last place unless told otherwise, which
/// would send an item to another logical partition than its body does.
struct Scanner<'a> {
    rest: &'a str,
    index: usize,
}

impl<'a> Scanner<'a> {
    fn array(&mut self) -> Result<Vec<Component>, KeyError> {
        self.eat('[').ok_or(KeyError::NotAnArray)?;
        let mut components = Vec::new();
        if self.eat(']').is_some() {
            return Ok(components);
        }
        loop {
            components.push(self.component().ok_or(KeyError::BadComponent { index: self.index })?);
            self.index += 1;
            if self.eat(']').is_some() {
                return Ok(components);
            }
            self.eat(',').ok_or(KeyError::NotAnArray)?;
        }
    }

    /// Skips blanks and the character, if it is next.
    fn eat(&mut self, c: char) -> Option<()> {
        self.rest = self.rest.trim_start_matches(BLANKS).strip_prefix(c)?;
        Some(())
    }

    fn component(&mut self) -> Option<Component> {
        self.rest = self.rest.trim_start_matches(BLANKS);
        match self.rest.as_bytes().first()? {
            b'"' => self.string(),
            b'{' => {
                self.eat('{')?;
                self.eat('}').map(|()| Component::Undefined)
            }
            b'-' | b'0'..=b'9' => self.number(),
            _ => self.word(),
        }
    }

    fn word(&mut self) -> Option<Component> {
        let words = [
            ("null", Component::Null),
            ("true", Component::Bool(true)),
            ("false", Component::Bool(false)),
        ];
        let (word, component) = words.into_iter().find(|(word, _)| self.rest.starts_with(word))?;
        self.rest = &self.rest[word.len()..];
        Some(component)
    }

    fn number(&mut self) -> Option<Component> {
        let is_number = |c: char| matches!(c, '0'..='9' | '-' | '+' | '.' | 'e' | 'E');
        let end = self.rest.find(|c| !is_number(c)).unwrap_or(self.rest.len());
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest;
        serde_json::from_str::<serde_json::Number>(text).ok()?; // only the grammar
        text.parse().ok().map(Component::Number)
    }

    fn string(&mut self) -> Option<Component> {
        let end = self.closing_quote()?;
        let (text, rest) = self.rest.split_at(end + 1);
        self.rest = rest;
        serde_json::from_str(text).ok().map(Component::String)
    }

    fn closing_quote(&self) -> Option<usize> {
        let mut escaped = false;
        let is_end = |byte: &u8| {
            let end = *byte == b'"' && !escaped;
            escaped = *byte == b'\\' && !escaped;
            end
        };
        self.rest.as_bytes()[1..].iter().position(is_end).map(|at| at + 1)
    }
}

#[cfg(test)]
mod tests;
