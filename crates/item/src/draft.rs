//! From a client's body to an item: ingest first, then the stamp of the write.
//!
//! A draft ends with the user's last property. The buffer has room for what a stamp appends, so
//! stamping, which happens under a lock, only copies a few hundred bytes.
//!
//! ```text
//! draft   [ room for header | {"id":"1","v":2}                     ]   [ table ]
//! item    [ header          | {"id":"1","v":2,"_rid":…,"_ts":…}    |     table ]
//! ```

use bytes::Bytes;

use crate::builder::{Builder, Settings, Tape, patch_end, patch_extent};
use crate::error::IngestError;
use crate::header::{HEADER_BYTES, Header};
use crate::node::{Kind, Node};
use crate::number::write_number;
use crate::slot::{Extent, SLOT_BYTES, Slot, Tag};
use crate::stored::Item;
use crate::string::{write_inside, write_string};
use crate::value::Value;
use crate::{ITEM_BYTES_MAX, SYSTEM_PROPERTIES, binary, scan};

/// A body ingested from a client: valid and canonical, with room for the system properties.
#[derive(Clone, Debug)]
pub struct Draft {
    tape: Tape,
    ttl: Ttl,
}

/// What the top-level property `ttl` of an item asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ttl {
    /// There is no such property.
    Absent,
    /// -1: the item never expires.
    Never,
    /// The item expires this many seconds after its last write: 1 to 2 147 483 647.
    Seconds(u32),
    /// Anything else; where time to live is on, such an item is refused.
    Invalid,
}

/// What a write gives its item.
///
/// The texts have fixed widths, so the size of an item is known before its write.
#[derive(Clone, Copy, Debug)]
pub struct Stamp<'a> {
    /// 24 characters.
    pub rid: &'a str,
    /// `dbs/{8}/colls/{12}/docs/{24}/`
    pub self_link: &'a str,
    /// 36 characters, without quotes.
    pub etag: &'a str,
    /// Seconds since 1970.
    pub ts: u32,
    /// Which commit wrote the item.
    pub lsn: u64,
    /// Which write of that commit did.
    pub position: u32,
    /// The number the item took when it was created; its rid carries it.
    pub ordinal: u64,
    /// Whether queries find the item.
    pub is_indexed: bool,
}

const RID_BYTES: usize = 24;
const SELF_LINK_BYTES: usize = "dbs/12345678/colls/123456789012/docs//".len() + RID_BYTES;
const ETAG_BYTES: usize = 36;
const TS_DIGITS: usize = 10;
const ATTACHMENTS: &str = "attachments/";

/// What a stamp appends to a text that has members, less the brace that was there already.
const SUFFIX_BYTES: usize = r#","_rid":"""#.len()
    + RID_BYTES
    + r#","_self":"""#.len()
    + SELF_LINK_BYTES
    + r#","_etag":"\"\"""#.len()
    + ETAG_BYTES
    + r#","_attachments":"""#.len()
    + ATTACHMENTS.len()
    + r#","_ts":"#.len()
    + TS_DIGITS;

/// Drafts may be longer than items while duplicates and system properties are still in them.
const SETTINGS: Settings = Settings {
    front_bytes: HEADER_BYTES,
    text_bytes_max: 2 * ITEM_BYTES_MAX,
    drops_system_properties: true,
};

impl Draft {
    /// Ingests JSON text: one object in UTF-8.
    ///
    /// Strict grammar, without byte order mark. The five system properties are dropped at the top
    /// level. Of duplicate names the last value wins, at the place of the first. Lone surrogate
    /// escapes become U+FFFD.
    pub fn parse(text: &[u8]) -> Result<Draft, IngestError> {
        let tail_bytes = SUFFIX_BYTES + text.len() / 2;
        scan::parse(text, SETTINGS, tail_bytes).and_then(Draft::new)
    }

    /// Ingests Cosmos binary JSON: the byte 80, then one object. The rules are those of `parse`.
    pub fn parse_binary(bytes: &[u8]) -> Result<Draft, IngestError> {
        binary::parse(bytes, SETTINGS).and_then(Draft::new)
    }

    /// Ingests an object value; undefined members and elements are left out.
    pub fn from_value(value: &Value) -> Result<Draft, IngestError> {
        if value.kind() != Some(Kind::Object) {
            return Err(IngestError::NotAnObject);
        }
        let mut builder = Builder::new(SETTINGS, SUFFIX_BYTES);
        builder.value(value)?;
        builder.finish().and_then(Draft::new)
    }

    fn new(mut tape: Tape) -> Result<Draft, IngestError> {
        if tape.root().kind() != Kind::Object {
            return Err(IngestError::NotAnObject);
        }
        tape.text.reserve(SUFFIX_BYTES + tape.table.len() + SYSTEM_PROPERTIES.len() * SLOT_BYTES);
        let ttl = Ttl::of(tape.root().get("ttl"));
        let draft = Draft { tape, ttl };
        let bytes = draft.text_len();
        if bytes > ITEM_BYTES_MAX { Err(IngestError::TooLarge { bytes }) } else { Ok(draft) }
    }

    /// The body of an item again, taken apart by the item.
    pub(crate) fn from_parts(text: Vec<u8>, table: Vec<u8>, ttl: Ttl) -> Draft {
        Draft { tape: Tape { text, table, front_bytes: HEADER_BYTES }, ttl }
    }

    /// The user's properties.
    pub fn root(&self) -> Node<'_> {
        self.tape.root()
    }

    /// Bytes of the canonical text with system properties; times before 2001 are counted as if
    /// they had ten digits.
    pub fn text_len(&self) -> usize {
        let comma = usize::from(!self.root().is_empty());
        self.tape.text.len() - HEADER_BYTES + SUFFIX_BYTES - 1 + comma
    }

    /// What the property `ttl` asks for.
    pub fn ttl(&self) -> Ttl {
        self.ttl
    }

    /// Makes it an item: appends the system properties, fills in the header.
    pub fn stamp(self, stamp: &Stamp<'_>) -> Item {
        stamp.debug_assert_widths();
        let ttl = self.ttl;
        let Tape { text, table, .. } = self.tape;
        let mut suffix = Suffix { text, table };
        suffix.write(stamp);
        let Suffix { mut text, table } = suffix;
        let header = Header {
            is_indexed: stamp.is_indexed,
            text_bytes: (text.len() - HEADER_BYTES) as u32,
            lsn: stamp.lsn,
            ordinal: stamp.ordinal,
            position: stamp.position,
            ts: stamp.ts,
            ttl,
            slots: (table.len() / SLOT_BYTES) as u32,
        };
        text[..HEADER_BYTES].copy_from_slice(&header.to_bytes());
        text.extend_from_slice(&table);
        Item::new(Bytes::from(text), header)
    }
}

impl Ttl {
    /// Classifies the value of a `ttl` property.
    pub fn of(node: Option<Node<'_>>) -> Ttl {
        let Some(node) = node else { return Ttl::Absent };
        match node.as_f64() {
            Some(-1.0) => Ttl::Never,
            Some(seconds) if seconds.fract() == 0.0 && (1.0..=2147483647.0).contains(&seconds) => {
                Ttl::Seconds(seconds as u32)
            }
            _ => Ttl::Invalid,
        }
    }
}

impl Stamp<'_> {
    fn debug_assert_widths(&self) {
        debug_assert_eq!(self.rid.len(), RID_BYTES, "width of a rid");
        debug_assert_eq!(self.self_link.len(), SELF_LINK_BYTES, "width of a self link");
        debug_assert_eq!(self.etag.len(), ETAG_BYTES, "width of an etag");
    }
}

/// The system properties on their way into a text and its table.
struct Suffix {
    text: Vec<u8>,
    table: Vec<u8>,
}

impl Suffix {
    /// Strings go through the string writer like any other: a stamp cannot break the text.
    fn write(&mut self, stamp: &Stamp<'_>) {
        self.text.pop();
        self.string("_rid", stamp.rid);
        self.string("_self", stamp.self_link);
        self.property("_etag", Tag::String, |text| {
            text.extend_from_slice(b"\"\\\"");
            write_inside(text, stamp.etag);
            text.extend_from_slice(b"\\\"\"");
            true
        });
        self.string("_attachments", ATTACHMENTS);
        self.property("_ts", Tag::Number, |text| {
            write_number(text, f64::from(stamp.ts));
            false
        });
        self.text.push(b'}');
        self.extend_root();
    }

    fn string(&mut self, name: &str, value: &str) {
        self.property(name, Tag::String, |text| write_string(text, value));
    }

    /// Appends a property; `write` says whether it escaped anything.
    fn property(&mut self, name: &str, tag: Tag, write: impl FnOnce(&mut Vec<u8>) -> bool) {
        if self.text.last() != Some(&b'{') || self.text.len() > HEADER_BYTES + 1 {
            self.text.push(b',');
        }
        self.text.push(b'"');
        self.text.extend_from_slice(name.as_bytes());
        self.text.extend_from_slice(b"\":");
        let start = self.text.len() - HEADER_BYTES;
        let escaped = write(&mut self.text);
        let slot = Slot::new(tag, start, self.text.len() - HEADER_BYTES);
        self.table.extend_from_slice(&slot.with_value_escaped(escaped).to_bytes());
    }

    /// The outermost object now has five more members.
    fn extend_root(&mut self) {
        let count = Extent::read(&self.table, 1).map_or(0, |extent| extent.count);
        let next = (self.table.len() / SLOT_BYTES) as u32;
        let count = count + SYSTEM_PROPERTIES.len() as u32;
        patch_end(&mut self.table, 0, self.text.len() - HEADER_BYTES);
        patch_extent(&mut self.table, 0, Extent { next, count });
    }
}
