//! Writes canonical text and its node table side by side.
//!
//! JSON text, binary JSON and values all become items through this one builder, so limits,
//! duplicate names and system properties are settled in one place.
//!
//! The rules it keeps:
//! (B1) Nesting is at most `DEPTH_MAX` levels; the outermost array or object is level one.
//! (B2) Duplicate names: the value of the last wins, at the place of the first, as in
//!      JavaScript. They are rare, so the builder only notices them and `finish` builds again
//!      from the values that are left.
//! (B3) System properties of the outermost object are left out where the settings say so; nested
//!      ones are plain data.

use crate::error::IngestError;
use crate::names::{Names, Scope};
use crate::node::Node;
use crate::number::{Literal, write_literal, write_number};
use crate::slot::{Extent, SLOT_BYTES, Slot, TEXT_BYTES_MAX, Tag};
use crate::string::write_string;
use crate::value::Value;
use crate::{DEPTH_MAX, SYSTEM_PROPERTIES};

/// What a builder makes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// Bytes left free before the text, for a header.
    pub front_bytes: usize,
    /// Text length at which building stops.
    pub text_bytes_max: usize,
    pub drops_system_properties: bool,
}

impl Settings {
    /// A text of any kind, as long as slots can describe.
    pub const PLAIN: Settings =
        Settings { front_bytes: 0, text_bytes_max: TEXT_BYTES_MAX, drops_system_properties: false };
}

/// A canonical text and its node table.
#[derive(Clone, Debug)]
pub(crate) struct Tape {
    /// `front_bytes` of room, then the text.
    pub text: Vec<u8>,
    pub table: Vec<u8>,
    pub front_bytes: usize,
}

impl Tape {
    /// The outermost value. A builder writes at least one slot.
    pub fn root(&self) -> Node<'_> {
        let text = self.text.get(self.front_bytes..).unwrap_or_default();
        Node::root(text, &self.table)
    }
}

/// Text and table in the making.
pub(crate) struct Builder {
    settings: Settings,
    text: Vec<u8>,
    table: Vec<u8>,
    names: Names,
    depth: usize,
    name_escaped: bool,
    has_duplicates: bool,
}

/// An array or object in the making.
pub(crate) struct Open {
    tag: Tag,
    slot: usize,
    start: usize,
    count: u32,
    scope: Scope,
    drops_system_properties: bool,
}

/// A member in the making: where to go back to if it is dropped.
pub(crate) struct Member {
    text_len: usize,
    table_len: usize,
    is_dropped: bool,
}

impl Builder {
    /// `text_bytes` is a guess at the length of the text.
    pub fn new(settings: Settings, text_bytes: usize) -> Builder {
        let mut text = Vec::with_capacity(settings.front_bytes + text_bytes);
        text.resize(settings.front_bytes, 0);
        Builder {
            settings,
            text,
            table: Vec::with_capacity(text_bytes / 2 + 8 * SLOT_BYTES),
            names: Names::default(),
            depth: 0,
            name_escaped: false,
            has_duplicates: false,
        }
    }

    /// The finished text and table. See B2.
    pub fn finish(self) -> Result<Tape, IngestError> {
        let Builder { settings, text, table, has_duplicates, .. } = self;
        let tape = Tape { text, table, front_bytes: settings.front_bytes };
        if !has_duplicates {
            return Ok(tape);
        }
        let value = tape.root().to_value_without_duplicates();
        let mut builder = Builder::new(settings, tape.text.len());
        builder.value(&value)?;
        builder.finish()
    }

    /// The text so far, to append one string to; `end_name` or `end_string` must follow.
    pub fn text_mut(&mut self) -> &mut Vec<u8> {
        &mut self.text
    }

    /// How many bytes of text there are.
    pub fn text_len(&self) -> usize {
        self.text.len() - self.settings.front_bytes
    }

    pub fn null(&mut self) -> Result<(), IngestError> {
        self.constant(Tag::Null, b"null")
    }

    pub fn bool(&mut self, value: bool) -> Result<(), IngestError> {
        if value { self.constant(Tag::True, b"true") } else { self.constant(Tag::False, b"false") }
    }

    /// `offset` is where the number stands in the input.
    pub fn literal(&mut self, literal: Literal<'_>, offset: usize) -> Result<(), IngestError> {
        let start = self.text_len();
        write_literal(&mut self.text, literal).ok_or(IngestError::Number { offset })?;
        self.scalar(Tag::Number, start)
    }

    /// `offset` is where the number stands in the input.
    pub fn number(&mut self, number: f64, offset: usize) -> Result<(), IngestError> {
        if !number.is_finite() {
            return Err(IngestError::Number { offset });
        }
        let start = self.text_len();
        write_number(&mut self.text, number);
        self.scalar(Tag::Number, start)
    }

    pub fn string(&mut self, text: &str) -> Result<(), IngestError> {
        let start = self.text_len();
        let escaped = write_string(&mut self.text, text);
        self.end_string(start, escaped)
    }

    /// Ends a string value written by the caller from `start` on, quotes included.
    pub fn end_string(&mut self, start: usize, escaped: bool) -> Result<(), IngestError> {
        let slot = Slot::new(Tag::String, start, self.checked_len()?);
        self.push(slot.with_value_escaped(escaped));
        Ok(())
    }

    /// Begins an array or object standing at `offset` of the input. See B1.
    pub fn open(&mut self, tag: Tag, offset: usize) -> Result<Open, IngestError> {
        if self.depth == DEPTH_MAX {
            return Err(IngestError::TooDeep { offset });
        }
        let start = self.text_len();
        self.text.push(if tag == Tag::Object { b'{' } else { b'[' });
        let slot = self.table.len();
        self.push(Slot::new(tag, start, self.checked_len()?));
        self.table.extend_from_slice(&Extent::default().to_bytes());
        let drops_system_properties = self.settings.drops_system_properties && self.depth == 0;
        self.depth += 1;
        Ok(Open { tag, slot, start, count: 0, scope: self.names.open(), drops_system_properties })
    }

    /// Ends an array or object and fills in its slots.
    pub fn close(&mut self, open: Open) -> Result<(), IngestError> {
        self.text.push(if open.tag == Tag::Object { b'}' } else { b']' });
        let end = self.checked_len()?;
        let next = (self.table.len() / SLOT_BYTES) as u32;
        let extent = Extent { next, count: open.count };
        patch_end(&mut self.table, open.slot, end);
        patch_extent(&mut self.table, open.slot, extent);
        self.names.close(&open.scope);
        self.depth -= 1;
        debug_assert!(open.start < end);
        Ok(())
    }

    /// Begins the next element of an array.
    pub fn begin_element(&mut self, open: &mut Open) {
        if open.count > 0 {
            self.text.push(b',');
        }
        open.count += 1;
    }

    /// Begins the next member of an object; its name with quotes and `end_name` follow.
    pub fn begin_member(&mut self, open: &mut Open) -> Member {
        let (text_len, table_len) = (self.text.len(), self.table.len());
        self.begin_element(open);
        Member { text_len, table_len, is_dropped: false }
    }

    /// Ends the name written by the caller from `start` on, quotes included; a value follows.
    pub fn end_name(&mut self, open: &mut Open, member: &mut Member, start: usize, escaped: bool) {
        let text = &self.text[self.settings.front_bytes..];
        let (from, to) = (start + 1, text.len() - 1);
        if open.drops_system_properties && is_system_property(&text[from..to]) {
            member.is_dropped = true;
        } else if !self.has_duplicates {
            self.has_duplicates = !self.names.insert(&mut open.scope, text, from, to);
        }
        self.text.push(b':');
        self.name_escaped = escaped;
    }

    /// Ends a member after its value. See B3.
    pub fn end_member(&mut self, open: &mut Open, member: &Member) {
        if member.is_dropped {
            self.text.truncate(member.text_len);
            self.table.truncate(member.table_len);
            open.count -= 1;
        }
    }

    /// Writes a value. Undefined members and elements are left out, as when a script prints them.
    pub fn value(&mut self, value: &Value) -> Result<(), IngestError> {
        match value {
            Value::Undefined | Value::Null => self.null(),
            Value::Bool(value) => self.bool(*value),
            Value::Number(number) => self.number(*number, 0),
            Value::String(text) => self.string(text),
            Value::Array(elements) => self.array(elements),
            Value::Object(object) => self.object(object.iter()),
        }
    }

    fn array(&mut self, elements: &[Value]) -> Result<(), IngestError> {
        let mut open = self.open(Tag::Array, 0)?;
        for element in elements.iter().filter(|element| !element.is_undefined()) {
            self.begin_element(&mut open);
            self.value(element)?;
        }
        self.close(open)
    }

    fn object<'a>(
        &mut self,
        members: impl Iterator<Item = (&'a str, &'a Value)>,
    ) -> Result<(), IngestError> {
        let mut open = self.open(Tag::Object, 0)?;
        for (name, value) in members.filter(|(_, value)| !value.is_undefined()) {
            let mut member = self.begin_member(&mut open);
            let start = self.text_len();
            let escaped = write_string(&mut self.text, name);
            self.end_name(&mut open, &mut member, start, escaped);
            self.value(value)?;
            self.end_member(&mut open, &member);
        }
        self.close(open)
    }

    fn constant(&mut self, tag: Tag, text: &[u8]) -> Result<(), IngestError> {
        let start = self.text_len();
        self.text.extend_from_slice(text);
        self.scalar(tag, start)
    }

    fn scalar(&mut self, tag: Tag, start: usize) -> Result<(), IngestError> {
        let slot = Slot::new(tag, start, self.checked_len()?);
        self.push(slot);
        Ok(())
    }

    fn push(&mut self, slot: Slot) {
        let slot = slot.with_name_escaped(std::mem::take(&mut self.name_escaped));
        self.table.extend_from_slice(&slot.to_bytes());
    }

    fn checked_len(&self) -> Result<usize, IngestError> {
        let bytes = self.text_len();
        if bytes > self.settings.text_bytes_max {
            return Err(IngestError::TooLarge { bytes });
        }
        Ok(bytes)
    }
}

/// Whether the service, not the client, sets the property of this name.
pub(crate) fn is_system_property(name: &[u8]) -> bool {
    name.first() == Some(&b'_') && SYSTEM_PROPERTIES.iter().any(|known| known.as_bytes() == name)
}

/// Sets the end of the value whose slot begins at byte `at` of the table.
pub(crate) fn patch_end(table: &mut [u8], at: usize, end: usize) {
    if let Some(bytes) = table.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<SLOT_BYTES>()) {
        let slot = Slot::read(bytes, 0).map(|slot| slot.with_end(end).to_bytes());
        *bytes = slot.unwrap_or(*bytes);
    }
}

/// Sets the extent of the array or object whose slot begins at byte `at` of the table.
pub(crate) fn patch_extent(table: &mut [u8], at: usize, extent: Extent) {
    let rest = table.get_mut(at + SLOT_BYTES..);
    if let Some(bytes) = rest.and_then(|rest| rest.first_chunk_mut::<SLOT_BYTES>()) {
        *bytes = extent.to_bytes();
    }
}
