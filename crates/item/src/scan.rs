//! JSON text to canonical text and node table, in one pass.
//!
//! Strict RFC 8259: no trailing commas, comments, leading zeros, `NaN`, or byte order mark, and
//! nothing but blanks after the value. UTF-8 is checked once for the whole input, so the scanner
//! itself only looks for ASCII. A lone surrogate escape such as `"\ud800"` has no UTF-8; it becomes
//! U+FFFD.

use crate::builder::{Builder, Settings, Tape};
use crate::error::IngestError;
use crate::number::Literal;
use crate::slot::Tag;
use crate::string::{plain_run, write_char};

/// Parses one JSON value of any kind. `tail_bytes` is room the caller will need after the text.
pub(crate) fn parse(
    input: &[u8],
    settings: Settings,
    tail_bytes: usize,
) -> Result<Tape, IngestError> {
    check_utf8(input)?;
    let out = Builder::new(settings, input.len() + tail_bytes);
    let mut scanner = Scanner { input, at: 0, out };
    scanner.skip_blanks();
    scanner.value()?;
    scanner.skip_blanks();
    if scanner.at < input.len() {
        return Err(scanner.refuse("unexpected text after the value"));
    }
    scanner.out.finish()
}

fn check_utf8(input: &[u8]) -> Result<(), IngestError> {
    match std::str::from_utf8(input) {
        Ok(_) => Ok(()),
        Err(error) => Err(IngestError::syntax(error.valid_up_to(), "invalid UTF-8")),
    }
}

struct Scanner<'a> {
    input: &'a [u8],
    at: usize,
    out: Builder,
}

impl Scanner<'_> {
    fn value(&mut self) -> Result<(), IngestError> {
        match self.peek() {
            b'"' => self.string_value(),
            b'{' => self.object(),
            b'[' => self.array(),
            b'-' | b'0'..=b'9' => self.number(),
            b't' => self.word(b"true").and_then(|()| self.out.bool(true)),
            b'f' => self.word(b"false").and_then(|()| self.out.bool(false)),
            b'n' => self.word(b"null").and_then(|()| self.out.null()),
            _ => Err(self.refuse("expected a value")),
        }
    }

    fn object(&mut self) -> Result<(), IngestError> {
        let mut open = self.out.open(Tag::Object, self.at)?;
        self.at += 1;
        self.skip_blanks();
        if self.take(b'}') {
            return self.out.close(open);
        }
        loop {
            let mut member = self.out.begin_member(&mut open);
            let start = self.out.text_len();
            let escaped = self.string("expected a property name in double quotes")?;
            self.out.end_name(&mut open, &mut member, start, escaped);
            self.expect(b':', "expected ':' after the property name")?;
            self.value()?;
            self.out.end_member(&mut open, &member);
            if self.ends(b'}', "expected ',' or '}' in an object")? {
                return self.out.close(open);
            }
        }
    }

    fn array(&mut self) -> Result<(), IngestError> {
        let mut open = self.out.open(Tag::Array, self.at)?;
        self.at += 1;
        self.skip_blanks();
        if self.take(b']') {
            return self.out.close(open);
        }
        loop {
            self.out.begin_element(&mut open);
            self.value()?;
            if self.ends(b']', "expected ',' or ']' in an array")? {
                return self.out.close(open);
            }
        }
    }

    /// After a child: true at the closing bracket, false after a comma.
    fn ends(&mut self, close: u8, what: &'static str) -> Result<bool, IngestError> {
        self.skip_blanks();
        if self.take(b',') {
            self.skip_blanks();
            return Ok(false);
        }
        if self.take(close) { Ok(true) } else { Err(self.refuse(what)) }
    }

    fn string_value(&mut self) -> Result<(), IngestError> {
        let start = self.out.text_len();
        let escaped = self.string("expected a string")?;
        self.out.end_string(start, escaped)
    }

    /// Copies a string, quotes included, and says whether its canonical text has escapes.
    fn string(&mut self, what: &'static str) -> Result<bool, IngestError> {
        if self.peek() != b'"' {
            return Err(self.refuse(what));
        }
        let mut from = self.at;
        self.at += 1;
        let mut escaped = false;
        loop {
            self.at = plain_run(self.input, self.at);
            let ends = self.peek() == b'"';
            let to = self.at + usize::from(ends);
            self.out.text_mut().extend_from_slice(&self.input[from..to]);
            if ends {
                self.at = to;
                return Ok(escaped);
            }
            escaped |= self.escape()?;
            from = self.at;
        }
    }

    /// Reads one escape and writes its character; says whether that is escaped again.
    fn escape(&mut self) -> Result<bool, IngestError> {
        if self.peek() != b'\\' {
            return Err(self.refuse_in_string());
        }
        let letter = self.input.get(self.at + 1).copied();
        let char = match letter {
            Some(b'u') => return self.unicode_escape(),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(letter @ (b'"' | b'\\' | b'/')) => char::from(letter),
            Some(_) => return Err(self.refuse("invalid escape in a string")),
            None => return Err(self.refuse("unterminated string")),
        };
        self.at += 2;
        Ok(write_char(self.out.text_mut(), char))
    }

    /// Reads `\uXXXX`, or two of them that form a surrogate pair.
    fn unicode_escape(&mut self) -> Result<bool, IngestError> {
        let unit = self.hex_unit(self.at).ok_or_else(|| self.refuse("invalid \\u escape"))?;
        self.at += 6;
        let low =
            if is_high(unit) { self.hex_unit(self.at).filter(|&low| is_low(low)) } else { None };
        let code = match low {
            Some(low) => {
                self.at += 6;
                0x10000 + ((unit & 0x3ff) << 10) + (low & 0x3ff)
            }
            None => unit,
        };
        let char = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
        Ok(write_char(self.out.text_mut(), char))
    }

    fn hex_unit(&self, at: usize) -> Option<u32> {
        let digits = self.input.get(at..at + 6)?.strip_prefix(b"\\u")?;
        digits.iter().try_fold(0, |sum, &digit| Some(sum << 4 | char::from(digit).to_digit(16)?))
    }

    fn number(&mut self) -> Result<(), IngestError> {
        let start = self.at;
        self.take(b'-');
        let whole_digits = self.digits("expected a digit")?;
        if whole_digits > 1 && self.input[self.at - whole_digits] == b'0' {
            self.at -= whole_digits;
            return Err(self.refuse("number with a leading zero"));
        }
        let fraction_digits =
            if self.take(b'.') { self.digits("expected a digit after '.'")? } else { 0 };
        let has_exponent = self.take(b'e') || self.take(b'E');
        if has_exponent {
            let _sign = self.take(b'+') || self.take(b'-');
            self.digits("expected a digit in the exponent")?;
        }
        let text = &self.input[start..self.at];
        self.out.literal(Literal { text, whole_digits, fraction_digits, has_exponent }, start)
    }

    fn digits(&mut self, what: &'static str) -> Result<usize, IngestError> {
        let start = self.at;
        while self.peek().is_ascii_digit() {
            self.at += 1;
        }
        if self.at == start { Err(self.refuse(what)) } else { Ok(self.at - start) }
    }

    fn word(&mut self, word: &'static [u8]) -> Result<(), IngestError> {
        if !self.input[self.at..].starts_with(word) {
            return Err(self.refuse("expected a value"));
        }
        self.at += word.len();
        Ok(())
    }

    /// Takes a separator and the blanks around it.
    fn expect(&mut self, byte: u8, what: &'static str) -> Result<(), IngestError> {
        self.skip_blanks();
        if !self.take(byte) {
            return Err(self.refuse(what));
        }
        self.skip_blanks();
        Ok(())
    }

    fn take(&mut self, byte: u8) -> bool {
        let is_there = self.peek() == byte;
        self.at += usize::from(is_there);
        is_there
    }

    /// The next byte; zero, which begins nothing in JSON, at the end.
    #[inline]
    fn peek(&self) -> u8 {
        self.input.get(self.at).copied().unwrap_or(0)
    }

    #[inline]
    fn skip_blanks(&mut self) {
        while matches!(self.peek(), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
    }

    fn refuse(&self, what: &'static str) -> IngestError {
        let at_end = self.at >= self.input.len();
        IngestError::syntax(self.at, if at_end { "unexpected end of input" } else { what })
    }

    fn refuse_in_string(&self) -> IngestError {
        let at_end = self.at >= self.input.len();
        let what = if at_end { "unterminated string" } else { "control character in a string" };
        IngestError::syntax(self.at, what)
    }
}

fn is_high(unit: u32) -> bool {
    unit & 0xfc00 == 0xd800
}

fn is_low(unit: u32) -> bool {
    unit & 0xfc00 == 0xdc00
}
