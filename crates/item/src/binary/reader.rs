//! Reading fixed-size pieces of a buffer that may end too early. Little-endian throughout.

use super::markers::*;
use crate::error::IngestError;

/// A position in a buffer.
#[derive(Clone)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// Bytes of a length or count.
#[derive(Clone, Copy)]
pub(super) enum Width {
    One,
    Two,
    Three,
    Four,
}

impl Width {
    pub fn of_uniform(marker: u8) -> Width {
        if matches!(marker, NUMBERS_1 | MATRIX_1) { Width::One } else { Width::Two }
    }
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes, at: 0 }
    }

    /// The same buffer from another offset.
    pub fn from(&self, at: usize) -> Reader<'a> {
        Reader { bytes: self.bytes, at }
    }

    pub fn at(&self) -> usize {
        self.at
    }

    pub fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    pub fn peek(&self) -> Result<u8, IngestError> {
        self.bytes.get(self.at).copied().ok_or(self.refuse("unexpected end of input"))
    }

    /// Passes the marker that `peek` has shown.
    pub fn skip_marker(&mut self) {
        self.at += 1;
    }

    pub fn u8(&mut self) -> Result<u8, IngestError> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], IngestError> {
        let rest = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk::<N>());
        let array = *rest.ok_or(self.refuse("unexpected end of input"))?;
        self.at += N;
        Ok(array)
    }

    pub fn slice(&mut self, length: usize) -> Result<&'a [u8], IngestError> {
        let end = self.end_of(length)?;
        let slice = &self.bytes[self.at..end];
        self.at = end;
        Ok(slice)
    }

    pub fn length(&mut self, width: Width) -> Result<usize, IngestError> {
        let bytes = match width {
            Width::One => self.array::<1>().map(|[a]| [a, 0, 0, 0]),
            Width::Two => self.array::<2>().map(|[a, b]| [a, b, 0, 0]),
            Width::Three => self.array::<3>().map(|[a, b, c]| [a, b, c, 0]),
            Width::Four => self.array::<4>(),
        };
        bytes.map(|bytes| u32::from_le_bytes(bytes) as usize)
    }

    /// Where the next `length` bytes end; an error if that is outside the buffer.
    pub fn end_of(&self, length: usize) -> Result<usize, IngestError> {
        let end = self.at.checked_add(length).filter(|&end| end <= self.bytes.len());
        end.ok_or(self.refuse("a length exceeds the input"))
    }

    /// The number after `marker`. Integers beyond 2^53 lose precision, as in JSON text.
    pub fn number(&mut self, marker: u8) -> Result<f64, IngestError> {
        Ok(match marker {
            UINT64 => u64::from_le_bytes(self.array()?) as f64,
            UINT8 | TYPED_UINT8 => f64::from(self.u8()?),
            TYPED_INT8 => f64::from(i8::from_le_bytes(self.array()?)),
            INT16 | TYPED_INT16 => f64::from(i16::from_le_bytes(self.array()?)),
            INT32 | TYPED_INT32 => f64::from(i32::from_le_bytes(self.array()?)),
            INT64 | TYPED_INT64 => i64::from_le_bytes(self.array()?) as f64,
            TYPED_UINT32 => f64::from(u32::from_le_bytes(self.array()?)),
            DOUBLE | FLOAT64 => f64::from_le_bytes(self.array()?),
            FLOAT32 => f64::from(f32::from_le_bytes(self.array()?)),
            FLOAT16 => half(u16::from_le_bytes(self.array()?)),
            _ => return Err(self.refuse("not the marker of a number")),
        })
    }

    pub fn refuse(&self, what: &'static str) -> IngestError {
        IngestError::syntax(self.at, what)
    }
}

/// A 16-bit float: sign, 5 bits of exponent, 10 bits of fraction.
fn half(bits: u16) -> f64 {
    let exponent = i32::from(bits >> 10 & 31);
    let fraction = f64::from(bits & 0x3ff) / 1024.0;
    let size = match exponent {
        0 => fraction * 2f64.powi(-14),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1.0 + fraction) * 2f64.powi(exponent - 15),
    };
    if bits >> 15 == 1 { -size } else { size }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves() {
        let check = |bits, expect: f64| assert_eq!(half(bits), expect, "{bits:04x}");
        check(0x0000, 0.0);
        check(0x3c00, 1.0);
        check(0xc000, -2.0);
        check(0x3555, 0.333251953125);
        check(0x7bff, 65504.0);
        check(0x0001, 2f64.powi(-24));
        check(0xfc00, f64::NEG_INFINITY);
        assert!(half(0x7e00).is_nan());
    }
}
