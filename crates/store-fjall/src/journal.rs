//! The engine's journals, looked at before the engine opens them.
//!
//! The engine reads a journal up to the first thing it does not understand and cuts the file there.
//! That is right for the tail of a write that a crash interrupted, but a flipped bit in the middle
//! would silently take every later commit with it; and some interrupted tails make it refuse to
//! open. So after an unclean stop we read the journals first and decide ourselves:
//!
//! ```text
//!   valid batches ... | broken batch | ...                 what follows decides
//!   ────────────────────────────────────────────────────────────────────────────────────────────
//!   nothing, or zeros                                      the end
//!   a batch that stops short or has a hole                 torn: cut, it was never answered
//!   a batch that is complete but wrong                     damaged: refuse
//!   a broken batch, then a valid one                       damaged: refuse; under relaxed durability
//!                                                          pages reach the disk in any order: cut
//!   anything broken in a journal that is not the last      damaged: refuse
//! ```
//!
//! After an orderly stop everything is in tables (F4) and the journals are emptied, so the engine
//! has nothing to replay.
//!
//! FORMAT     of the engine, version 3. All numbers are little-endian.
//!            batch = start item* end
//!            start = 1, items u32, sequence u64
//!            item  = 2, kind u8, compression u8, keyspace u64, key length u16, value length u32,
//!                    stored length u32, key, stored value
//!            clear = 4, keyspace u64                              counts as an item
//!            end   = 3, xxh3 of all items u64, "FJL\x03"

use std::fs::File;
use std::path::{Path, PathBuf};

use store::{Error, Result};
use xxhash_rust::xxh3::xxh3_64;

use crate::directory::Stop;
use crate::engine::damaged;

const MAGIC: &[u8] = b"FJL\x03";
/// What a disk writes or loses as a whole.
const PAGE_BYTES: usize = 4_096;

/// Makes the journals in `engine` fit to be opened, or refuses.
pub(crate) fn prepare(engine: &Path, stop: Stop) -> Result<()> {
    let journals = journals(engine)?;
    match stop {
        Stop::New => Ok(()),
        Stop::Clean => journals.iter().try_for_each(|path| cut(path, 0)),
        Stop::UncleanSync | Stop::UncleanRelaxed => check_all(&journals, stop),
    }
}

fn check_all(journals: &[PathBuf], stop: Stop) -> Result<()> {
    let mut last_sequence = 0;
    for (at, path) in journals.iter().enumerate() {
        let bytes = std::fs::read(path).map_err(|e| unreadable(path, &e))?;
        let read = read(&bytes, last_sequence);
        last_sequence = read.last_sequence;
        let is_last = at + 1 == journals.len();
        match judge(&bytes, &read, is_last, stop) {
            Verdict::Whole => {}
            Verdict::Torn => cut(path, read.valid_bytes as u64)?,
            Verdict::Damaged => {
                let what = format!("its journal has wrong bytes behind {}", read.valid_bytes);
                return Err(damaged(path, &what));
            }
        }
    }
    Ok(())
}

/// What a journal is fit for.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Whole,
    Torn,
    Damaged,
}

/// How far a journal can be read.
struct Read {
    /// Bytes up to the end of the last valid batch.
    valid_bytes: usize,
    last_sequence: u64,
}

fn judge(bytes: &[u8], read: &Read, is_last: bool, stop: Stop) -> Verdict {
    let rest = &bytes[read.valid_bytes..];
    let Some(last) = rest.iter().rposition(|&byte| byte != 0) else {
        return Verdict::Whole;
    };
    if !is_last {
        return Verdict::Damaged;
    }
    if stop == Stop::UncleanRelaxed {
        return Verdict::Torn;
    }
    let is_complete = rest[..=last].ends_with(MAGIC);
    let has_hole = has_hole(&bytes[..=read.valid_bytes + last], read.valid_bytes);
    match (is_complete && !has_hole) || is_followed(rest, read.last_sequence) {
        true => Verdict::Damaged,
        false => Verdict::Torn,
    }
}

/// Whether part of a page behind `start` was never written, as after a power loss.
fn has_hole(bytes: &[u8], start: usize) -> bool {
    let first_page_end = (start + 1).next_multiple_of(PAGE_BYTES).min(bytes.len());
    let (first, rest) = bytes[start..].split_at(first_page_end - start);
    let is_zero = |page: &[u8]| page.len() >= 64 && page.iter().all(|&byte| byte == 0);
    is_zero(first) || rest.chunks(PAGE_BYTES).any(is_zero)
}

/// Whether a valid batch lies anywhere behind the broken one that `rest` begins with.
fn is_followed(rest: &[u8], last_sequence: u64) -> bool {
    (1..rest.len()).any(|at| rest[at] == 1 && batch(&rest[at..], last_sequence).is_some())
}

/// Reads valid batches from the start.
fn read(bytes: &[u8], mut last_sequence: u64) -> Read {
    let mut valid_bytes = 0;
    while let Some((length, sequence)) = batch(&bytes[valid_bytes..], last_sequence) {
        valid_bytes += length;
        last_sequence = sequence;
    }
    Read { valid_bytes, last_sequence }
}

/// Length and sequence of the valid batch that `bytes` begins with, if it does. Sequences grow: they
/// are not under the checksum, so their order is all there is to check.
fn batch(bytes: &[u8], last_sequence: u64) -> Option<(usize, u64)> {
    let mut cursor = Cursor { bytes, at: 0 };
    if cursor.byte()? != 1 {
        return None;
    }
    let items = cursor.u32()?;
    let sequence = cursor.u64()?;
    if items == 0 || (sequence <= last_sequence && last_sequence > 0) {
        return None;
    }
    let start = cursor.at;
    for _ in 0..items {
        skip_item(&mut cursor)?;
    }
    let checksum = xxh3_64(&bytes[start..cursor.at]);
    let is_valid = cursor.byte()? == 3 && cursor.u64()? == checksum && cursor.take(4)? == MAGIC;
    is_valid.then_some((cursor.at, sequence))
}

fn skip_item(cursor: &mut Cursor<'_>) -> Option<()> {
    match cursor.byte()? {
        2 => {
            cursor.take(2 + 8)?;
            let key = cursor.u16()?;
            cursor.u32()?;
            let value = cursor.u32()?;
            cursor.take(usize::from(key))?;
            cursor.take(value as usize)?;
            Some(())
        }
        4 => cursor.take(8).map(|_| ()),
        _ => None,
    }
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(length)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        Some(self.take(1)?[0])
    }

    fn u16(&mut self) -> Option<u16> {
        Some(u16::from_le_bytes(self.take(2)?.try_into().ok()?))
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }
}

/// The journals, oldest first.
fn journals(engine: &Path) -> Result<Vec<PathBuf>> {
    let Ok(entries) = std::fs::read_dir(engine) else {
        return Ok(Vec::new());
    };
    let mut journals: Vec<(u64, PathBuf)> = Vec::new();
    for entry in entries {
        let path = entry.map_err(|e| unreadable(engine, &e))?.path();
        if path.extension().is_some_and(|end| end == "jnl")
            && let Some(number) = path.file_stem().and_then(|stem| stem.to_str()?.parse().ok())
        {
            journals.push((number, path));
        }
    }
    journals.sort();
    Ok(journals.into_iter().map(|(_, path)| path).collect())
}

/// Shortens a journal, durably.
fn cut(path: &Path, length: u64) -> Result<()> {
    let cut = || {
        let file = File::options().write(true).open(path)?;
        file.set_len(length)?;
        file.sync_all()
    };
    cut().map_err(|e| unreadable(path, &e))
}

fn unreadable(path: &Path, error: &std::io::Error) -> Error {
    Error::Unusable(format!("{} cannot be prepared: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch_of(sequence: u64, value: &[u8]) -> Vec<u8> {
        let mut items = vec![2, 0, 0];
        items.extend(7u64.to_le_bytes());
        items.extend(3u16.to_le_bytes());
        items.extend((value.len() as u32).to_le_bytes());
        items.extend((value.len() as u32).to_le_bytes());
        items.extend(b"key");
        items.extend(value);
        let mut batch = vec![1];
        batch.extend(1u32.to_le_bytes());
        batch.extend(sequence.to_le_bytes());
        batch.extend(&items);
        batch.push(3);
        batch.extend(xxh3_64(&items).to_le_bytes());
        batch.extend(MAGIC);
        batch
    }

    fn verdict(bytes: &[u8], is_last: bool, stop: Stop) -> Verdict {
        judge(bytes, &read(bytes, 0), is_last, stop)
    }

    #[test]
    fn whole_journals_pass() {
        let two = [batch_of(1, b"a"), batch_of(2, b"b")].concat();
        for bytes in [vec![], vec![0; 100], two.clone(), [two, vec![0; 5_000]].concat()] {
            assert_eq!(verdict(&bytes, true, Stop::UncleanSync), Verdict::Whole);
            assert_eq!(verdict(&bytes, false, Stop::UncleanSync), Verdict::Whole);
        }
    }

    #[test]
    fn a_tail_cut_anywhere_is_torn() {
        let (first, second) = (batch_of(1, b"a"), batch_of(2, &[7; 300]));
        for length in 1..second.len() {
            let bytes = [&first[..], &second[..length], &[0; 200]].concat();
            assert_eq!(verdict(&bytes, true, Stop::UncleanSync), Verdict::Torn, "{length}");
            assert_eq!(verdict(&bytes, false, Stop::UncleanSync), Verdict::Damaged, "{length}");
            assert_eq!(read(&bytes, 0).valid_bytes, first.len());
        }
    }

    #[test]
    fn a_lost_page_is_torn() {
        let mut bytes = [batch_of(1, b"a"), batch_of(2, &[7; 20_000])].concat();
        bytes[8_192..12_288].fill(0);
        assert_eq!(verdict(&bytes, true, Stop::UncleanSync), Verdict::Torn);
    }

    #[test]
    fn a_flipped_bit_is_damage() {
        let whole = [batch_of(1, &[5; 90]), batch_of(2, &[6; 90]), batch_of(3, &[7; 90])].concat();
        for at in 0..whole.len() - MAGIC.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x10;
            let read = read(&bytes, 0);
            if read.valid_bytes == whole.len() {
                continue; // A larger sequence of the last batch: in order, hence harmless.
            }
            assert_eq!(judge(&bytes, &read, true, Stop::UncleanSync), Verdict::Damaged, "{at}");
        }
    }

    #[test]
    fn relaxed_pages_may_be_missing_in_the_middle() {
        let mut bytes = [batch_of(1, b"a"), batch_of(2, &[7; 9_000]), batch_of(3, b"c")].concat();
        bytes[4_096..8_192].fill(0);
        assert_eq!(verdict(&bytes, true, Stop::UncleanRelaxed), Verdict::Torn);
        assert_eq!(verdict(&bytes, true, Stop::UncleanSync), Verdict::Damaged);
    }
}
