//! A stored item: header, canonical text and node table in one shared buffer.
//!
//! The last five slots of the table are the system properties, which makes them and the end of the
//! user's properties readable without a search.

use std::borrow::Cow;

use bytes::{Buf, Bytes};

use crate::SYSTEM_PROPERTIES;
use crate::builder::{patch_end, patch_extent};
use crate::draft::{Draft, Ttl};
use crate::error::Corrupt;
use crate::header::{HEADER_BYTES, Header};
use crate::node::Node;
use crate::slot::{Extent, SLOT_BYTES, Slot, Tag};

/// A version of an item as it is stored. Clones share the bytes.
#[derive(Clone, Debug)]
pub struct Item {
    bytes: Bytes,
    header: Header,
}

/// The slots of the system properties, counted from the end of the table.
const RID_FROM_END: usize = 5;
const ETAG_FROM_END: usize = 3;

impl Item {
    /// Takes stored bytes for an item after a look at header, lengths and both ends of the text.
    ///
    /// Damage further inside is the business of the store's checksums; here it makes values
    /// unreadable, never a panic.
    pub fn from_bytes(bytes: Bytes) -> Result<Item, Corrupt> {
        let corrupt = |what| Corrupt { what };
        let header = Header::read(&bytes).ok_or(corrupt("unknown header"))?;
        let length = HEADER_BYTES as u64
            + u64::from(header.text_bytes)
            + u64::from(header.slots) * SLOT_BYTES as u64;
        if bytes.len() as u64 != length {
            return Err(corrupt("length differs from the header"));
        }
        let item = Item { bytes, header };
        item.user_end().ok_or(corrupt("system properties are not in their place"))?;
        Ok(item)
    }

    pub(crate) fn new(bytes: Bytes, header: Header) -> Item {
        Item { bytes, header }
    }

    /// The stored form.
    pub fn as_bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The JSON text as it goes on the wire: a slice of the stored form, not a copy.
    pub fn text(&self) -> Bytes {
        self.bytes.slice(HEADER_BYTES..self.text_end())
    }

    /// The same of an item that is not needed any more.
    pub fn into_text(mut self) -> Bytes {
        self.bytes.truncate(self.text_end());
        self.bytes.advance(HEADER_BYTES);
        self.bytes
    }

    /// Bytes of the text.
    pub fn text_len(&self) -> usize {
        self.header.text_bytes as usize
    }

    /// All properties, the system properties last.
    pub fn root(&self) -> Node<'_> {
        Node::root(&self.bytes[HEADER_BYTES..self.text_end()], self.table())
    }

    /// Which commit wrote this version.
    pub fn lsn(&self) -> u64 {
        self.header.lsn
    }

    /// Which write of that commit did.
    pub fn position(&self) -> u32 {
        self.header.position
    }

    /// The number the item took when it was created.
    pub fn ordinal(&self) -> u64 {
        self.header.ordinal
    }

    /// Seconds since 1970 of the write.
    pub fn ts(&self) -> u32 {
        self.header.ts
    }

    /// The etag without its quotes.
    pub fn etag(&self) -> &str {
        let quoted = self.system_text(ETAG_FROM_END);
        quoted.strip_prefix("\\\"").and_then(|etag| etag.strip_suffix("\\\"")).unwrap_or_default()
    }

    /// The rid.
    pub fn rid(&self) -> &str {
        self.system_text(RID_FROM_END)
    }

    /// The property `id`, if it is a string.
    pub fn id(&self) -> Option<Cow<'_, str>> {
        self.root().get("id")?.as_str()
    }

    /// What the property `ttl` asks for.
    pub fn ttl(&self) -> Ttl {
        self.header.ttl
    }

    /// Whether queries find this item.
    pub fn is_indexed(&self) -> bool {
        self.header.is_indexed
    }

    /// The user's properties again, ready for another stamp. Costs two copies.
    pub fn to_draft(&self) -> Draft {
        let user_end = self.user_end().expect("checked in from_bytes, true of what stamp made");
        let added = SYSTEM_PROPERTIES.len();
        let mut text = Vec::with_capacity(self.bytes.len());
        text.extend_from_slice(&self.bytes[..HEADER_BYTES + user_end]);
        text.push(b'}');
        let table = self.table();
        let mut table = table[..table.len() - added * SLOT_BYTES].to_vec();
        let count = Extent::read(&table, 1).map_or(0, |extent| extent.count);
        let next = (table.len() / SLOT_BYTES) as u32;
        patch_end(&mut table, 0, user_end + 1);
        patch_extent(&mut table, 0, Extent { next, count: count.saturating_sub(added as u32) });
        Draft::from_parts(text, table, self.header.ttl)
    }

    fn text_end(&self) -> usize {
        HEADER_BYTES + self.header.text_bytes as usize
    }

    fn table(&self) -> &[u8] {
        &self.bytes[self.text_end()..]
    }

    fn system_slot(&self, from_end: usize) -> Option<Slot> {
        let table = self.table();
        Slot::read(table, (table.len() / SLOT_BYTES).checked_sub(from_end)?)
    }

    /// The inside of a system property that is a string.
    fn system_text(&self, from_end: usize) -> &str {
        let inside = self.system_slot(from_end).and_then(|slot| {
            let from = HEADER_BYTES + slot.start() + 1;
            self.bytes[..self.text_end()]
                .get(from..HEADER_BYTES.checked_add(slot.end())?.checked_sub(1)?)
        });
        std::str::from_utf8(inside.unwrap_or_default()).unwrap_or_default()
    }

    /// Where the user's properties end in the text, if everything around that place is as
    /// `Draft::stamp` leaves it.
    fn user_end(&self) -> Option<usize> {
        let root = Slot::read(self.table(), 0)?;
        let extent = Extent::read(self.table(), 1)?;
        let is_whole = root.tag() == Tag::Object
            && (root.start(), root.end()) == (0, self.text_len())
            && extent.next == self.header.slots
            && extent.count >= SYSTEM_PROPERTIES.len() as u32
            && self.header.slots as usize >= SYSTEM_PROPERTIES.len() + 2;
        if !is_whole {
            return None;
        }
        let text = &self.bytes[HEADER_BYTES..self.text_end()];
        let before = text.get(..self.system_slot(RID_FROM_END)?.start())?;
        let user = before.strip_suffix(b"\"_rid\":")?;
        match user {
            b"{" => Some(1),
            [b'{', .., b','] => Some(user.len() - 1),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draft::Stamp;

    const STAMP: Stamp<'static> = Stamp {
        rid: "AAAAAIAAAAABAAAAAAAAAA==",
        self_link: "dbs/AAAAAA==/colls/AAAAAIAAAAA=/docs/AAAAAIAAAAABAAAAAAAAAA==/",
        etag: "0000d826-0000-0700-0000-60a2b6f10000",
        ts: 1_700_000_000,
        lsn: 42,
        position: 3,
        ordinal: 7,
        is_indexed: true,
    };

    const SUFFIX: &str = concat!(
        r#""_rid":"AAAAAIAAAAABAAAAAAAAAA==","#,
        r#""_self":"dbs/AAAAAA==/colls/AAAAAIAAAAA=/docs/AAAAAIAAAAABAAAAAAAAAA==/","#,
        r#""_etag":"\"0000d826-0000-0700-0000-60a2b6f10000\"","#,
        r#""_attachments":"attachments/","_ts":1700000000}"#
    );

    fn check(body: &str, user: &str) {
        let draft = Draft::parse(body.as_bytes()).unwrap();
        assert_eq!(draft.root().raw(), user);
        let text_len = draft.text_len();
        let item = draft.stamp(&STAMP);
        let comma = if user == "{}" { "" } else { "," };
        let expect = format!("{}{comma}{SUFFIX}", &user[..user.len() - 1]);
        assert_eq!(item.text(), expect);
        assert_eq!(item.clone().into_text(), expect);
        assert_eq!((item.text_len(), text_len), (expect.len(), expect.len()));
        assert_eq!(item.root().raw(), expect);
        assert_eq!(item.root().members().count(), item.root().len());
        assert_eq!(item.to_draft().root().raw(), user);
        assert_eq!(item.to_draft().text_len(), text_len);
        let again = Item::from_bytes(item.as_bytes().clone()).unwrap();
        assert_eq!(again.to_draft().stamp(&STAMP).as_bytes(), item.as_bytes());
    }

    #[test]
    fn a_stamp_appends_the_system_properties() {
        check("{}", "{}");
        check(r#"{"id":"1"}"#, r#"{"id":"1"}"#);
        check(r#" { "id" : "1" , "v" : [ 1 , { } , [ ] ] } "#, r#"{"id":"1","v":[1,{},[]]}"#);
    }

    #[test]
    fn incoming_system_properties_are_dropped_at_the_top_only() {
        check(r#"{"_rid":"x"}"#, "{}");
        check(r#"{"_rid":[1,{"a":2}],"id":"1","_self":null}"#, r#"{"id":"1"}"#);
        check(r#"{"id":"1","_etag":"x","_x":1,"_ts":5}"#, r#"{"id":"1","_x":1}"#);
        check(r#"{"a":{"_rid":1,"_ts":2}}"#, r#"{"a":{"_rid":1,"_ts":2}}"#);
        check(r#"{"_\u0074s":1,"_lsn":2}"#, r#"{"_lsn":2}"#);
    }

    #[test]
    fn the_header_answers_without_reading_the_text() {
        let item = Draft::parse(br#"{"id":"a\nb","ttl":60}"#).unwrap().stamp(&STAMP);
        assert_eq!((item.lsn(), item.position(), item.ordinal()), (42, 3, 7));
        assert_eq!((item.ts(), item.ttl(), item.is_indexed()), (STAMP.ts, Ttl::Seconds(60), true));
        assert_eq!((item.rid(), item.etag()), (STAMP.rid, STAMP.etag));
        assert_eq!(item.id().as_deref(), Some("a\nb"));
    }

    #[test]
    fn wrong_lengths_are_refused() {
        let item = Draft::parse(b"{}").unwrap().stamp(&STAMP);
        let bytes = item.as_bytes();
        for length in 0..bytes.len() {
            assert!(Item::from_bytes(bytes.slice(..length)).is_err());
        }
        let mut longer = bytes.to_vec();
        longer.push(0);
        assert!(Item::from_bytes(longer.into()).is_err());
    }
}
