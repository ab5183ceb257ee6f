//! The fixed part at the front of a stored item.
//!
//! ```text
//! byte   0  format version           byte  16  ordinal (u64)
//!        1  flags: 1 = indexed              24  position (u32)
//!        2  zero                            28  time of the write (u32)
//!        4  length of the text (u32)        32  time to live (u32)
//!        8  LSN (u64)                       36  slots in the node table (u32)
//! ```
//!
//! Numbers are little-endian. Time to live is the number of seconds, or one of three values no
//! number of seconds has.

use crate::draft::Ttl;

/// Bytes of a header.
pub(crate) const HEADER_BYTES: usize = 40;

/// The version this code writes, and the only one it reads.
pub(crate) const FORMAT_VERSION: u8 = 1;

const FLAG_INDEXED: u8 = 1;
const TTL_ABSENT: u32 = 0;
const TTL_INVALID: u32 = 1 << 31;
const TTL_NEVER: u32 = u32::MAX;

/// What a header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub is_indexed: bool,
    pub text_bytes: u32,
    pub lsn: u64,
    pub ordinal: u64,
    pub position: u32,
    pub ts: u32,
    pub ttl: Ttl,
    pub slots: u32,
}

impl Header {
    pub fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0] = FORMAT_VERSION;
        bytes[1] = if self.is_indexed { FLAG_INDEXED } else { 0 };
        bytes[4..8].copy_from_slice(&self.text_bytes.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.lsn.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.ordinal.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.position.to_le_bytes());
        bytes[28..32].copy_from_slice(&self.ts.to_le_bytes());
        bytes[32..36].copy_from_slice(&ttl_to_u32(self.ttl).to_le_bytes());
        bytes[36..40].copy_from_slice(&self.slots.to_le_bytes());
        bytes
    }

    /// `None` if the bytes are too few or of another version.
    pub fn read(bytes: &[u8]) -> Option<Header> {
        let bytes = bytes.first_chunk::<HEADER_BYTES>()?;
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        if bytes[0] != FORMAT_VERSION {
            return None;
        }
        Some(Header {
            is_indexed: bytes[1] & FLAG_INDEXED != 0,
            text_bytes: word(4),
            lsn: long(8),
            ordinal: long(16),
            position: word(24),
            ts: word(28),
            ttl: ttl_from_u32(word(32)),
            slots: word(36),
        })
    }
}

fn ttl_to_u32(ttl: Ttl) -> u32 {
    match ttl {
        Ttl::Absent => TTL_ABSENT,
        Ttl::Never => TTL_NEVER,
        Ttl::Seconds(seconds) => seconds,
        Ttl::Invalid => TTL_INVALID,
    }
}

fn ttl_from_u32(word: u32) -> Ttl {
    match word {
        TTL_ABSENT => Ttl::Absent,
        TTL_NEVER => Ttl::Never,
        seconds if seconds < TTL_INVALID => Ttl::Seconds(seconds),
        _ => Ttl::Invalid,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_reads_back() {
        for ttl in
            [Ttl::Absent, Ttl::Never, Ttl::Seconds(1), Ttl::Seconds(i32::MAX as u32), Ttl::Invalid]
        {
            let header = Header {
                is_indexed: true,
                text_bytes: 2,
                lsn: u64::MAX - 1,
                ordinal: 1 << 40,
                position: 5,
                ts: 6,
                ttl,
                slots: 8,
            };
            assert_eq!(Header::read(&header.to_bytes()), Some(header));
        }
    }

    #[test]
    fn short_or_foreign_bytes_are_no_header() {
        assert_eq!(Header::read(&[FORMAT_VERSION; HEADER_BYTES - 1]), None);
        assert_eq!(Header::read(&[FORMAT_VERSION + 1; HEADER_BYTES]), None);
    }
}
