//! The lines of an NDJSON file, with their numbers, never more of one than could be an item.

use std::io::{self, BufRead, Read};

/// An item is at most 2 MiB as it is stored; as it is written, escapes and spaces come on top.
const LINE_BYTES_MAX: usize = 16 << 20;

/// One line that is not blank.
#[derive(Debug, PartialEq, Eq)]
pub struct Line {
    /// Its number; the first one is 1.
    pub number: u64,
    /// Its bytes without the line break; `None` if there are too many to be an item.
    pub text: Option<Vec<u8>>,
}

/// Reads lines.
pub struct Lines<R> {
    reader: R,
    line_bytes_max: usize,
    number: u64,
    bytes: u64,
}

impl<R: BufRead> Lines<R> {
    /// The lines of a file.
    pub fn new(reader: R) -> Lines<R> {
        Lines { reader, line_bytes_max: LINE_BYTES_MAX, number: 0, bytes: 0 }
    }

    /// Bytes read so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The next line that is not blank; `None` at the end.
    pub fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            let mut text = Vec::new();
            let limit = self.line_bytes_max as u64 + 1;
            let count = self.reader.by_ref().take(limit).read_until(b'\n', &mut text)?;
            if count == 0 {
                return Ok(None);
            }
            self.bytes += count as u64;
            self.number += 1;
            let is_whole = text.last() == Some(&b'\n') || count < limit as usize;
            if !is_whole {
                self.skip_rest()?;
                return Ok(Some(Line { number: self.number, text: None }));
            }
            trim(&mut text, self.number == 1);
            if !text.is_empty() {
                return Ok(Some(Line { number: self.number, text: Some(text) }));
            }
        }
    }

    fn skip_rest(&mut self) -> io::Result<()> {
        self.bytes += self.reader.skip_until(b'\n')? as u64;
        Ok(())
    }
}

/// Cuts white space around a line, and the byte order mark in front of the first.
fn trim(text: &mut Vec<u8>, is_first: bool) {
    let length = text.trim_ascii_end().len();
    text.truncate(length);
    let mark = if is_first && text.starts_with(b"\xEF\xBB\xBF") { 3 } else { 0 };
    let start = text.len() - text[mark..].trim_ascii_start().len();
    text.drain(..start);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8], line_bytes_max: usize) -> Vec<(u64, Option<String>)> {
        let mut lines = Lines { line_bytes_max, ..Lines::new(text) };
        let mut all = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            all.push((line.number, line.text.map(|text| String::from_utf8(text).unwrap())));
        }
        assert_eq!(lines.bytes(), text.len() as u64);
        all
    }

    #[test]
    fn blank_lines_count_and_are_left_out() {
        let all = lines(b"\xEF\xBB\xBF{}\r\n\n  \n [1] \n{\"a\":1}", 100);
        let expect = [(1, "{}"), (4, "[1]"), (5, "{\"a\":1}")];
        assert_eq!(all, expect.map(|(number, text)| (number, Some(text.to_owned()))));
        assert!(lines(b"", 100).is_empty());
        assert!(lines(b"\xEF\xBB\xBF\n", 100).is_empty());
    }

    #[test]
    fn a_line_at_the_limit_and_one_over_it() {
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(lines(b"1234\n5678", 5), [(1, text("1234")), (2, text("5678"))]);
        assert_eq!(lines(b"12345\n6", 5), [(1, text("12345")), (2, text("6"))]);
        assert_eq!(lines(b"123456\n7", 5), [(1, None), (2, text("7"))]);
        assert_eq!(lines(b"123456789", 5), [(1, None)]);
        assert_eq!(lines(b"12345", 5), [(1, text("12345"))]);
    }
}
