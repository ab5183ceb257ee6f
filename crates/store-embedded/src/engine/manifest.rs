//! `MANIFEST`: which tables there are, newest first, and the first journal that they do not contain.
//!
//! ```text
//!   cosmolabe tables 1
//!   next 57
//!   journal 55
//!   item 54 31 12
//!   term 53 30
//!   sum 8a3f…                      xxh3 of the lines above
//! ```
//!
//! It is small and replaced as a whole, so it is always one state: what it does not name is not
//! there. Numbers name files and are never used twice.

use std::fmt::Write as _;
use std::path::Path;

use store::Result;
use xxhash_rust::xxh3::xxh3_64;

use super::{PARTS, Part, damaged};
use crate::directory::write_durably;

pub(crate) const NAME: &str = "MANIFEST";
const FIRST_LINE: &str = "cosmolabe tables 1";

/// See the module header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Manifest {
    /// The number of the next file.
    pub(crate) next: u64,
    /// Journals before this one are not needed.
    pub(crate) journal: u64,
    /// Tables of each part, newest first.
    pub(crate) tables: [Vec<u64>; PARTS],
}

impl Manifest {
    /// Reads the manifest; nothing if there is none.
    pub(crate) fn read(directory: &Path) -> Result<Option<Manifest>> {
        let path = directory.join(NAME);
        match std::fs::read_to_string(&path) {
            Ok(text) => match parse(&text) {
                Some(manifest) => Ok(Some(manifest)),
                None => Err(damaged(&path, "its list of tables has wrong bytes")),
            },
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(damaged(&path, &e.to_string())),
        }
    }

    /// Replaces the manifest, durably.
    pub(crate) fn write(&self, directory: &Path) -> Result<()> {
        write_durably(directory, NAME, &self.text())
    }

    fn text(&self) -> String {
        let mut text = format!("{FIRST_LINE}\nnext {}\njournal {}\n", self.next, self.journal);
        for (part, tables) in Part::ALL.into_iter().zip(&self.tables) {
            if !tables.is_empty() {
                text.push_str(part.name());
                for number in tables {
                    let _ = write!(text, " {number}");
                }
                text.push('\n');
            }
        }
        let sum = xxh3_64(text.as_bytes());
        let _ = writeln!(text, "sum {sum:016x}");
        text
    }
}

fn parse(text: &str) -> Option<Manifest> {
    let (text, sum) = text.strip_suffix('\n')?.rsplit_once("sum ")?;
    if u64::from_str_radix(sum, 16) != Ok(xxh3_64(text.as_bytes())) {
        return None;
    }
    let mut manifest = Manifest::default();
    let mut lines = text.lines();
    if lines.next()? != FIRST_LINE {
        return None;
    }
    for line in lines {
        let (word, rest) = line.split_once(' ')?;
        let numbers: Option<Vec<u64>> = rest.split(' ').map(|word| word.parse().ok()).collect();
        let numbers = numbers?;
        match word {
            "next" => manifest.next = *numbers.first()?,
            "journal" => manifest.journal = *numbers.first()?,
            part => {
                let part = Part::ALL.into_iter().find(|known| known.name() == part)?;
                manifest.tables[part as usize] = numbers;
            }
        }
    }
    Some(manifest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_survives_being_written_and_no_flipped_byte_is_believed() {
        let mut manifest = Manifest { next: 57, journal: 55, ..Manifest::default() };
        manifest.tables[1] = vec![54, 31, 12];
        manifest.tables[5] = vec![7];
        let text = manifest.text();
        assert_eq!(parse(&text), Some(manifest));
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            let flipped = String::from_utf8_lossy(&bytes).into_owned();
            assert_eq!(parse(&flipped), None, "byte {at}");
            assert_eq!(parse(&text[..at]), None, "{at} bytes");
        }
    }
}
