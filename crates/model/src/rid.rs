//! Resource ids: the system's own, hierarchical names. A child's rid begins with its parent's bytes.
//!
//! ```text
//! bytes 0–3     database, big-endian
//! bytes 4–7     container, big-endian, top bit set; or user, top bit clear
//! bytes 8–15    child of a container: little-endian, the top nibble of byte 15 is its type
//!               child of a user: a permission
//! ```
//!
//! The text form is base64 with `-` for `/`, so it can stand in a link. Clients rely on the lengths
//! (database 4 bytes, container 8, item 16) and order items by the little-endian ordinal.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

const CONTAINER_BIT: u32 = 0x8000_0000;

/// What a child of a container is: the top nibble of its ordinal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ChildKind {
    /// An item.
    Item = 0x0,
    /// A conflict.
    Conflict = 0x4,
    /// A partition key range.
    PartitionKeyRange = 0x5,
    /// A user-defined function.
    Udf = 0x6,
    /// A trigger.
    Trigger = 0x7,
    /// A stored procedure.
    StoredProcedure = 0x8,
}

/// A resource id.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rid {
    /// A database.
    Database(u32),
    /// A container of a database.
    Container(u32, u32),
    /// A user of a database.
    User(u32, u32),
    /// A child of a container, with its type in the top nibble.
    Child(u32, u32, u64),
    /// A permission of a user.
    Permission(u32, u32, u64),
    /// An offer.
    Offer(u32),
}

impl Rid {
    /// The rid of a container's child.
    pub fn child(self, kind: ChildKind, ordinal: u64) -> Rid {
        let Rid::Container(database, container) = self else {
            unreachable!("only containers have typed children");
        };
        debug_assert_eq!(ordinal >> 60, 0, "the top nibble is the type");
        Rid::Child(database, container, (kind as u64) << 60 | ordinal)
    }

    /// The bytes of the id.
    pub fn to_bytes(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(16);
        match self {
            Rid::Offer(n) => bytes.extend_from_slice(&n.to_be_bytes()[1..]),
            Rid::Database(d) => bytes.extend_from_slice(&d.to_be_bytes()),
            Rid::Container(d, c) => extend(&mut bytes, d, c | CONTAINER_BIT),
            Rid::User(d, u) => extend(&mut bytes, d, u & !CONTAINER_BIT),
            Rid::Child(d, c, ordinal) => {
                extend(&mut bytes, d, c | CONTAINER_BIT);
                bytes.extend_from_slice(&ordinal.to_le_bytes());
            }
            Rid::Permission(d, u, p) => {
                extend(&mut bytes, d, u & !CONTAINER_BIT);
                bytes.extend_from_slice(&p.to_le_bytes());
            }
        }
        bytes
    }

    /// Reads the text form; `None` if it is not one.
    pub fn parse(text: &str) -> Option<Rid> {
        let bytes = STANDARD.decode(text.replace('-', "/")).ok()?;
        let word = |at: usize| -> Option<u32> {
            Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
        };
        let ordinal =
            || -> Option<u64> { Some(u64::from_le_bytes(bytes.get(8..16)?.try_into().ok()?)) };
        match bytes.len() {
            3 => Some(Rid::Offer(u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]]))),
            4 => Some(Rid::Database(word(0)?)),
            8 if word(4)? & CONTAINER_BIT != 0 => {
                Some(Rid::Container(word(0)?, word(4)? & !CONTAINER_BIT))
            }
            8 => Some(Rid::User(word(0)?, word(4)?)),
            16 if word(4)? & CONTAINER_BIT != 0 => {
                Some(Rid::Child(word(0)?, word(4)? & !CONTAINER_BIT, ordinal()?))
            }
            16 => Some(Rid::Permission(word(0)?, word(4)?, ordinal()?)),
            _ => None,
        }
    }
}

fn extend(bytes: &mut Vec<u8>, first: u32, second: u32) {
    bytes.extend_from_slice(&first.to_be_bytes());
    bytes.extend_from_slice(&second.to_be_bytes());
}

impl fmt::Display for Rid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&STANDARD.encode(self.to_bytes()).replace('/', "-"))
    }
}

impl fmt::Debug for Rid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rid({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_form_and_back() {
        let container = Rid::Container(7, 3);
        let item = container.child(ChildKind::Item, 0xabc);
        let all = [
            (Rid::Database(7), 8),
            (container, 12),
            (Rid::User(7, 4), 12),
            (item, 24),
            (container.child(ChildKind::StoredProcedure, 1), 24),
            (Rid::Permission(7, 4, 9), 24),
            (Rid::Offer(77), 4),
        ];
        for (rid, chars) in all {
            let text = rid.to_string();
            assert_eq!(text.len(), chars, "{rid:?}");
            assert!(!text.contains('/'));
            assert_eq!(Rid::parse(&text), Some(rid));
        }
        assert!(item.to_bytes().starts_with(&container.to_bytes()));
    }

    #[test]
    fn names_are_not_rids() {
        for text in ["", "db", "orders", "a b", "????", "AAAAAAAA="] {
            assert_eq!(Rid::parse(text), None, "{text}");
        }
    }
}
