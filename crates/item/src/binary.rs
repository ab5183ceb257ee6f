//! Cosmos binary JSON to canonical text and node table.
//!
//! A buffer is the byte 80 and one value. The first byte of a value, its marker, says what it is
//! and how long; the table is in the wire-protocol reference.
//!
//! Everything the format has and JSON lacks becomes the nearest JSON: sized integers and floats
//! become numbers, GUIDs text in lower case, binary payloads base64 text.
//!
//! (X1) Every read is checked against the buffer, and every container against its own length.
//! (X2) A reference goes back to a string that is not itself a reference, so following one ends.
//! (X3) Strings referred to often cannot expand without bound: the builder's limit on the text
//!      holds for each value written.

mod markers;
mod reader;
mod strings;

use crate::builder::{Builder, Open, Settings, Tape};
use crate::error::IngestError;
use crate::slot::Tag;
use crate::string::write_string;

use markers::*;
use reader::{Reader, Width};

/// Parses one value of any kind.
pub(crate) fn parse(input: &[u8], settings: Settings) -> Result<Tape, IngestError> {
    let mut decoder =
        Decoder { input: Reader::new(input), out: Builder::new(settings, 2 * input.len()) };
    if decoder.input.u8()? != PREAMBLE {
        return Err(IngestError::syntax(0, "binary JSON must begin with the byte 80"));
    }
    decoder.value()?;
    if !decoder.input.is_at_end() {
        return Err(decoder.input.refuse("unexpected bytes after the value"));
    }
    decoder.out.finish()
}

struct Decoder<'a> {
    input: Reader<'a>,
    out: Builder,
}

impl Decoder<'_> {
    fn value(&mut self) -> Result<(), IngestError> {
        let offset = self.input.at();
        let marker = self.input.peek()?;
        if (STRINGS_MIN..=STRINGS_MAX).contains(&marker) {
            return self.string();
        }
        self.input.skip_marker();
        match marker {
            0..=LITERAL_MAX => self.out.number(f64::from(marker), offset),
            UINT64..=FLOAT16 | TYPED_UINT8..=TYPED_UINT32 => self.number(marker, offset),
            NULL => self.out.null(),
            FALSE => self.out.bool(false),
            TRUE => self.out.bool(true),
            GUID | BINARY_1..=BINARY_4 => self.typed_text(marker),
            ARRAY_EMPTY..=ARRAY_COUNTED_4 => self.array(marker, offset),
            OBJECT_EMPTY..=OBJECT_COUNTED_4 => self.object(marker, offset),
            NUMBERS_1 | NUMBERS_2 => self.numbers(marker, offset),
            MATRIX_1 | MATRIX_2 => self.matrix(marker, offset),
            _ => Err(IngestError::syntax(offset, "unknown type marker")),
        }
    }

    fn string(&mut self) -> Result<(), IngestError> {
        let text = strings::read(&mut self.input)?;
        self.out.string(&text)
    }

    fn number(&mut self, marker: u8, offset: usize) -> Result<(), IngestError> {
        let number = self.input.number(marker)?;
        self.out.number(number, offset)
    }

    fn typed_text(&mut self, marker: u8) -> Result<(), IngestError> {
        let text = strings::read_typed(&mut self.input, marker)?;
        self.out.string(&text)
    }

    fn array(&mut self, marker: u8, offset: usize) -> Result<(), IngestError> {
        let mut open = self.out.open(Tag::Array, offset)?;
        let extent = self.extent(marker - ARRAY_EMPTY)?;
        self.children(extent, |decoder| {
            decoder.out.begin_element(&mut open);
            decoder.value()
        })?;
        self.out.close(open)
    }

    fn object(&mut self, marker: u8, offset: usize) -> Result<(), IngestError> {
        let mut open = self.out.open(Tag::Object, offset)?;
        let extent = self.extent(marker - OBJECT_EMPTY)?;
        self.children(extent, |decoder| decoder.member(&mut open))?;
        self.out.close(open)
    }

    fn member(&mut self, open: &mut Open) -> Result<(), IngestError> {
        let mut member = self.out.begin_member(open);
        let name = strings::read(&mut self.input)?;
        let start = self.out.text_len();
        let escaped = write_string(self.out.text_mut(), &name);
        self.out.end_name(open, &mut member, start, escaped);
        self.value()?;
        self.out.end_member(open, &member);
        Ok(())
    }

    /// What bounds the children. Arrays and objects have the same eight forms in the same order:
    /// empty, single, by length in 1, 2 or 4 bytes, by length and count in 1, 2 or 4 bytes.
    fn extent(&mut self, form: u8) -> Result<Extent, IngestError> {
        let width = match form {
            0 => return Ok(Extent { end: None, count: Some(0) }),
            1 => return Ok(Extent { end: None, count: Some(1) }),
            2 | 5 => Width::One,
            3 | 6 => Width::Two,
            _ => Width::Four,
        };
        let bytes = self.input.length(width)?;
        let count = if form >= 5 { Some(self.input.length(width)?) } else { None };
        let end = self.input.end_of(bytes)?;
        Ok(Extent { end: Some(end), count })
    }

    /// Reads children until their bytes, or else their number, is used up. See X1.
    fn children(
        &mut self,
        extent: Extent,
        mut child: impl FnMut(&mut Self) -> Result<(), IngestError>,
    ) -> Result<(), IngestError> {
        let mut count = 0;
        while extent.end.map_or(Some(count) != extent.count, |end| self.input.at() < end) {
            child(self)?;
            count += 1;
        }
        if extent.end.is_some_and(|end| self.input.at() != end) {
            return Err(self.input.refuse("a value exceeds its container"));
        }
        if extent.count.is_some_and(|expect| expect != count) {
            return Err(self.input.refuse("a container has another number of values than it says"));
        }
        Ok(())
    }

    /// `[1,2,3]` as: item marker, count, raw numbers.
    fn numbers(&mut self, marker: u8, offset: usize) -> Result<(), IngestError> {
        let item = self.input.u8()?;
        let count = self.input.length(Width::of_uniform(marker))?;
        self.row(item, count, offset)
    }

    /// `[[1,2],[3,4]]` as: inner marker, item marker, inner count, outer count, raw numbers.
    fn matrix(&mut self, marker: u8, offset: usize) -> Result<(), IngestError> {
        let (inner, item) = (self.input.u8()?, self.input.u8()?);
        let expect = if marker == MATRIX_1 { NUMBERS_1 } else { NUMBERS_2 };
        if inner != expect {
            return Err(IngestError::syntax(offset, "an array of arrays with a foreign marker"));
        }
        let width = Width::of_uniform(marker);
        let (columns, rows) = (self.input.length(width)?, self.input.length(width)?);
        let mut open = self.out.open(Tag::Array, offset)?;
        for _ in 0..rows {
            self.out.begin_element(&mut open);
            self.row(item, columns, offset)?;
        }
        self.out.close(open)
    }

    fn row(&mut self, item: u8, count: usize, offset: usize) -> Result<(), IngestError> {
        let mut open = self.out.open(Tag::Array, offset)?;
        for _ in 0..count {
            self.out.begin_element(&mut open);
            self.number(item, offset)?;
        }
        self.out.close(open)
    }
}

/// Where the children of a container end, how many there are, or both.
struct Extent {
    end: Option<usize>,
    count: Option<usize>,
}
