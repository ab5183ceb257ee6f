//! Where a query stopped: small, self-contained, and only good for the same query.
//!
//! ```text
//! version | fingerprint of the query | of the access | rows seen | tag of the place | its fields
//! ```
//!
//! Numbers are variable-length, so that a token in a header stays short. Sealing the bytes against
//! tampering, and naming the partitions they speak of, is the business of the engine.

use bytes::Bytes;
use item::Value;

use crate::{Error, KEY_BYTES_MAX, Parameters};

/// Longest encoded state.
pub const STATE_BYTES_MAX: usize = KEY_BYTES_MAX + 64;

/// Bytes of a sort key that a continuation carries; of a longer one the front, and how many rows
/// with that front are done.
pub(crate) const SORT_KEY_BYTES_MAX: usize = 400;

const VERSION: u8 = 2;

/// Where a query stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// Which query, with which parameters.
    pub(crate) fingerprint: u64,
    /// Which way its items are read.
    pub(crate) access: u32,
    /// Rows that passed the projection so far, for TOP, OFFSET and LIMIT.
    pub(crate) seen: u64,
    /// Where to go on.
    pub(crate) place: Place,
}

/// Where to go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In ordinal order, at the first item after `after`; `rows` of its rows are done if it is the
    /// item with ordinal `after + 1`.
    Items { partition: usize, after: u64, rows: u32 },
    /// In key order, past this position of this partition, in this range of the plan.
    Terms { partition: usize, range: u32, key: Bytes, ordinal: u64, rows: u32 },
    /// In the items whose keys begin alike and do not hold the whole value: this many are done.
    Run { key: Bytes, items: u32, rows: u32 },
    /// Among the items that lack the path.
    Lacking { partition: usize, after: u64, rows: u32 },
    /// From the beginning again, passing over the rows already seen.
    Replay,
    /// Among sorted rows, past all with smaller keys; `rows` of those that begin with `key` are
    /// done, or all of them if `key` is whole.
    Sorted { key: Bytes, rows: u32 },
}

impl State {
    /// The bytes for a continuation, at most [`STATE_BYTES_MAX`].
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        out.extend_from_slice(&self.fingerprint.to_be_bytes());
        out.extend_from_slice(&self.access.to_be_bytes());
        write_number(&mut out, self.seen);
        self.place.encode(&mut out);
        debug_assert!(out.len() <= STATE_BYTES_MAX);
        out
    }

    /// Reads [`encode`](State::encode)d bytes.
    pub fn decode(bytes: &[u8]) -> Result<State, Error> {
        let mut reader = Reader { bytes };
        let state = reader.state().ok_or(Error::WrongState)?;
        if reader.bytes.is_empty() { Ok(state) } else { Err(Error::WrongState) }
    }
}

impl Place {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Place::Items { partition, after, rows } => {
                write_numbers(out, 0, &[*partition as u64, *after, u64::from(*rows)]);
            }
            Place::Terms { partition, range, key, ordinal, rows } => {
                let (range, rows) = (u64::from(*range), u64::from(*rows));
                write_numbers(out, 1, &[*partition as u64, range, *ordinal, rows]);
                write_bytes(out, key);
            }
            Place::Run { key, items, rows } => {
                write_numbers(out, 2, &[u64::from(*items), u64::from(*rows)]);
                write_bytes(out, key);
            }
            Place::Lacking { partition, after, rows } => {
                write_numbers(out, 3, &[*partition as u64, *after, u64::from(*rows)]);
            }
            Place::Replay => out.push(4),
            Place::Sorted { key, rows } => {
                write_numbers(out, 5, &[u64::from(*rows)]);
                write_bytes(out, key);
            }
        }
    }
}

fn write_numbers(out: &mut Vec<u8>, tag: u8, numbers: &[u64]) {
    out.push(tag);
    numbers.iter().for_each(|n| write_number(out, *n));
}

/// Seven bits a byte, low ones first.
fn write_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn write_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    write_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

struct Reader<'a> {
    bytes: &'a [u8],
}

impl Reader<'_> {
    fn state(&mut self) -> Option<State> {
        if self.byte()? != VERSION {
            return None;
        }
        let fingerprint = u64::from_be_bytes(self.take(8)?.try_into().ok()?);
        let access = u32::from_be_bytes(self.take(4)?.try_into().ok()?);
        let seen = self.number()?;
        Some(State { fingerprint, access, seen, place: self.place()? })
    }

    fn place(&mut self) -> Option<Place> {
        Some(match self.byte()? {
            0 => {
                Place::Items { partition: self.size()?, after: self.number()?, rows: self.small()? }
            }
            1 => {
                let (partition, range) = (self.size()?, self.small()?);
                let (ordinal, rows) = (self.number()?, self.small()?);
                Place::Terms { partition, range, key: self.key()?, ordinal, rows }
            }
            2 => {
                let (items, rows) = (self.small()?, self.small()?);
                Place::Run { key: self.key()?, items, rows }
            }
            3 => Place::Lacking {
                partition: self.size()?,
                after: self.number()?,
                rows: self.small()?,
            },
            4 => Place::Replay,
            5 => {
                let rows = self.small()?;
                Place::Sorted { key: self.key()?, rows }
            }
            _ => return None,
        })
    }

    fn byte(&mut self) -> Option<u8> {
        Some(self.take(1)?[0])
    }

    fn take(&mut self, count: usize) -> Option<&[u8]> {
        let (taken, rest) = self.bytes.split_at_checked(count)?;
        self.bytes = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                return None;
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn small(&mut self) -> Option<u32> {
        self.number()?.try_into().ok()
    }

    fn size(&mut self) -> Option<usize> {
        self.number()?.try_into().ok()
    }

    fn key(&mut self) -> Option<Bytes> {
        let length = self.size().filter(|length| *length <= KEY_BYTES_MAX)?;
        self.take(length).map(Bytes::copy_from_slice)
    }
}

/// Identifies a query, given the hash of its canonical text, with its parameters.
pub(crate) fn fingerprint(text_hash: u64, parameters: &Parameters) -> u64 {
    let mut text = Vec::new();
    for (name, value) in parameters.sorted() {
        text.push(0);
        text.extend_from_slice(name.as_bytes());
        text.push(b'=');
        Value::write_json(value, &mut text);
    }
    hash_on(text_hash, &text)
}

/// FNV-1a: small, and the same everywhere and always.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    hash_on(0xcbf2_9ce4_8422_2325, bytes)
}

/// The hash of what was hashed so far and more.
fn hash_on(so_far: u64, bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(so_far, |hash: u64, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(place: Place) {
        let state = State { fingerprint: 0xfeed, access: 7, seen: u64::MAX, place };
        let bytes = state.encode();
        assert!(bytes.len() <= STATE_BYTES_MAX);
        assert_eq!(State::decode(&bytes).unwrap(), state);
        for length in 0..bytes.len() {
            assert!(State::decode(&bytes[..length]).is_err());
        }
        assert!(State::decode(&[&bytes[..], &[0]].concat()).is_err());
    }

    #[test]
    fn what_is_encoded_decodes() {
        let key = Bytes::from(vec![7; KEY_BYTES_MAX]);
        check(Place::Items { partition: 3, after: 1 << 60, rows: u32::MAX });
        check(Place::Terms {
            partition: 0,
            range: 9,
            key: key.clone(),
            ordinal: u64::MAX,
            rows: 1,
        });
        check(Place::Run { key: key.clone(), items: u32::MAX, rows: u32::MAX });
        check(Place::Sorted { key, rows: u32::MAX });
        check(Place::Lacking { partition: 1, after: 0, rows: 0 });
        check(Place::Replay);
    }

    #[test]
    fn another_query_or_parameter_has_another_fingerprint() {
        let of = |text: &str, value: f64| {
            let parameters = Parameters::from_iter([("@a", Value::Number(value))]);
            fingerprint(hash(sql::parse(text).unwrap().to_string().as_bytes()), &parameters)
        };
        assert_eq!(of("SELECT * FROM c", 1.0), of("select  *  from c", 1.0));
        assert_ne!(of("SELECT * FROM c", 1.0), of("SELECT * FROM d", 1.0));
        assert_ne!(of("SELECT * FROM c", 1.0), of("SELECT * FROM c", 2.0));
    }
}
