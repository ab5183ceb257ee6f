//! The journal: every group of changes in the order in which it was committed, until tables have it.
//!
//! ```text
//!   record = bytes u32, sequence u64, xxh3 u64 of the two and the changes, change*, MAGIC
//!   change = part u8 (+ 128: deleted), key length u16, value length u32, key, value
//! ```
//!
//! A journal is filled with zeros ahead of what is written: a sync of bytes that replace zeros
//! leaves the file system nothing to note, which makes it twice as fast as one behind the end.
//! `{number}.jnl` is not appended to after a restart; a new one begins.
//!
//! After a crash the end of the last journal has to be judged. The tail of a write that was
//! interrupted must go, but a flipped bit must not silently take every later commit with it:
//!
//! ```text
//!   valid records ... | broken record | ...                what follows decides
//!   ────────────────────────────────────────────────────────────────────────────────────────────
//!   nothing, or zeros                                      the end
//!   a record that stops short or has a hole                torn: cut, it was never answered
//!   a record that is complete but wrong                    damaged: refuse
//!   a broken record, then a valid one                      damaged: refuse; under relaxed durability
//!                                                          pages reach the disk in any order: cut
//!   anything broken in a journal that is not the last      damaged: refuse
//! ```
//!
//! INVARIANTS
//! (J1) Sequences grow by one from record to record, over all journals.
//! (J2) A journal is synced before the next one is begun.

use std::fs::File;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use store::{Error, Result};
use xxhash_rust::xxh3::xxh3_64;

use super::{Change, PARTS, Part, damaged, fault, sync_directory};
use crate::directory::Stop;

const MAGIC: &[u8; 4] = b"CLj1";
const HEAD_BYTES: usize = 20;
const DELETED: u8 = 0x80;
/// What a disk writes or loses as a whole.
const PAGE_BYTES: usize = 4_096;
/// So many zeros are written ahead.
const AHEAD_BYTES: u64 = 1 << 20;
/// Room for a record that is kept from one to the next.
const BUFFER_KEPT: usize = 4 << 20;

/// The changes of a group, by part.
pub(crate) type Changes = [Vec<Change>; PARTS];

/// A journal that is written.
pub(crate) struct Journal {
    path: PathBuf,
    number: u64,
    file: File,
    /// The sequence of the last record.
    sequence: u64,
    /// Bytes of earlier journals, where those hold what was not sealed either.
    earlier_bytes: u64,
    /// Where the next record goes.
    at: u64,
    /// Where the zeros end.
    zeroed: u64,
    buffer: Vec<u8>,
    /// Bytes of the last record.
    last_bytes: u64,
    /// The last write failed: what is behind `at` is anything.
    is_broken: bool,
}

impl Journal {
    /// Begins a journal in `directory`, durably, behind what was read from others.
    pub(crate) fn create(directory: &Path, number: u64, behind: Replayed) -> Result<Journal> {
        let path = path(directory, number);
        let journal = Journal::create_at(path.clone(), number, behind);
        if journal.is_err() {
            // On a full disk what is there of it would be in the way.
            let _ = std::fs::remove_file(&path);
        }
        let journal = journal?;
        sync_directory(directory)?;
        Ok(journal)
    }

    fn create_at(path: PathBuf, number: u64, behind: Replayed) -> Result<Journal> {
        let file = File::create(&path).map_err(|e| fault(&path, &e))?;
        let mut journal = Journal {
            path,
            number,
            file,
            sequence: behind.sequence,
            earlier_bytes: behind.bytes,
            at: 0,
            zeroed: 0,
            buffer: Vec::new(),
            last_bytes: 0,
            is_broken: false,
        };
        journal.fill_ahead(0)?;
        journal.file.sync_all().map_err(|e| fault(&journal.path, &e))?;
        Ok(journal)
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Bytes of records that are not sealed.
    pub(crate) fn length(&self) -> u64 {
        self.earlier_bytes + self.at
    }

    /// Writes a group. It is not yet durable.
    pub(crate) fn append(&mut self, changes: &Changes) -> Result<()> {
        self.check()?;
        encode(&mut self.buffer, self.sequence + 1, changes);
        self.is_broken = true;
        self.fill_ahead(self.buffer.len() as u64)?;
        write_at(&self.file, &self.buffer, self.at).map_err(|e| fault(&self.path, &e))?;
        self.is_broken = false;
        self.sequence += 1;
        self.last_bytes = self.buffer.len() as u64;
        self.at += self.last_bytes;
        if self.buffer.capacity() > BUFFER_KEPT {
            self.buffer = Vec::new();
        }
        Ok(())
    }

    /// Has the disk begin with the record written last. To make it durable is still up to
    /// [`sync`](Journal::sync), which then has less to wait for.
    pub(crate) fn start_sync(&self) {
        start_writing(&self.file, self.at.saturating_sub(self.last_bytes), self.last_bytes);
    }

    /// Makes everything written durable. After a write that failed nothing may follow it, here or in
    /// another journal: this would be one that is broken and not the last.
    pub(crate) fn sync(&self) -> Result<()> {
        self.check()?;
        self.file.sync_data().map_err(|e| fault(&self.path, &e))
    }

    fn check(&self) -> Result<()> {
        match self.is_broken {
            true => Err(Error::Fault(format!("{} could not be written", self.path.display()))),
            false => Ok(()),
        }
    }

    /// Sees to it that zeros follow behind the next so many bytes.
    fn fill_ahead(&mut self, bytes: u64) -> Result<()> {
        let end = self.at + bytes;
        if end < self.zeroed {
            return Ok(());
        }
        // What the record itself will cover need not be zeroed.
        let start = end.max(self.zeroed);
        let zeros = vec![0; (AHEAD_BYTES + AHEAD_BYTES - start % AHEAD_BYTES) as usize];
        write_at(&self.file, &zeros, start).map_err(|e| fault(&self.path, &e))?;
        self.zeroed = start + zeros.len() as u64;
        Ok(())
    }
}

/// The journals in a directory with their numbers, oldest first.
pub(crate) fn journals(directory: &Path) -> Result<Vec<(u64, PathBuf)>> {
    super::numbered_files(directory, "jnl")
}

/// What was read from journals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Replayed {
    /// The sequence of the last record.
    pub(crate) sequence: u64,
    /// Bytes of records.
    pub(crate) bytes: u64,
}

/// Reads the journals, which come oldest first, and hands every group to `apply`. A torn end is
/// cut off; damage is refused. What was read is durable afterwards: a process that was killed may
/// have left it to the memory of the system (J2).
pub(crate) fn replay(
    journals: &[(u64, PathBuf)],
    stop: Stop,
    mut apply: impl FnMut(Changes),
) -> Result<Replayed> {
    let mut replayed = Replayed::default();
    for (at, (_, path)) in journals.iter().enumerate() {
        let bytes = std::fs::read(path).map_err(|e| damaged(path, &e.to_string()))?;
        let read = read(&bytes, replayed.sequence, &mut apply);
        replayed.sequence = read.last_sequence;
        replayed.bytes += read.valid_bytes as u64;
        match judge(&bytes, &read, at + 1 == journals.len(), stop) {
            Verdict::Whole if read.valid_bytes > 0 => sync(path)?,
            Verdict::Whole => {}
            Verdict::Torn => cut(path, read.valid_bytes as u64)?,
            Verdict::Damaged => {
                let what = format!("its journal has wrong bytes behind {}", read.valid_bytes);
                return Err(damaged(path, &what));
            }
        }
    }
    Ok(replayed)
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
    /// Bytes up to the end of the last valid record.
    valid_bytes: usize,
    last_sequence: u64,
}

fn judge(bytes: &[u8], read: &Read, is_last: bool, stop: Stop) -> Verdict {
    let rest = &bytes[read.valid_bytes..];
    let Some(last) = rest.iter().rposition(|&byte| byte != 0) else {
        return Verdict::Whole;
    };
    // A valid record that is not the next one: those before it are missing.
    let is_out_of_order = record(rest).is_some();
    if !is_last || is_out_of_order {
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
    // The page in which a record begins may hold little of it, but its length is there.
    if bytes[start..].starts_with(&[0; 4]) {
        return true;
    }
    let first_page_end = (start + 1).next_multiple_of(PAGE_BYTES).min(bytes.len());
    let (first, rest) = bytes[start..].split_at(first_page_end - start);
    let is_zero = |page: &[u8]| page.len() >= 64 && page.iter().all(|&byte| byte == 0);
    is_zero(first) || rest.chunks(PAGE_BYTES).any(is_zero)
}

/// Whether a valid record lies anywhere behind the broken one that `rest` begins with.
fn is_followed(rest: &[u8], last_sequence: u64) -> bool {
    memchr::memmem::find_iter(rest, MAGIC)
        .filter_map(|at| record(&rest[at + MAGIC.len()..]))
        .any(|record| record.sequence > last_sequence)
}

/// Reads valid records from the start.
fn read(bytes: &[u8], last_sequence: u64, apply: &mut impl FnMut(Changes)) -> Read {
    let mut read = Read { valid_bytes: 0, last_sequence };
    while let Some(record) = record(&bytes[read.valid_bytes..]) {
        let is_next = record.sequence == read.last_sequence + 1; // J1
        let Some(changes) = decode(record.changes).filter(|_| is_next || read.last_sequence == 0)
        else {
            break;
        };
        apply(changes);
        read.valid_bytes += record.length;
        read.last_sequence = record.sequence;
    }
    read
}

struct Record<'a> {
    sequence: u64,
    changes: &'a [u8],
    length: usize,
}

/// The valid record that `bytes` begins with, if it does.
fn record(bytes: &[u8]) -> Option<Record<'_>> {
    let (head, rest) = bytes.split_at_checked(HEAD_BYTES)?;
    let length = u32::from_le_bytes(head[..4].try_into().ok()?) as usize;
    let sequence = u64::from_le_bytes(head[4..12].try_into().ok()?);
    let (changes, rest) = rest.split_at_checked(length)?;
    let is_whole = rest.starts_with(MAGIC) && head[12..] == sum(head, changes).to_le_bytes();
    is_whole.then_some(Record { sequence, changes, length: HEAD_BYTES + length + MAGIC.len() })
}

fn sum(head: &[u8], changes: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64_with_seed(changes, xxh3_64(&head[..12]))
}

fn encode(buffer: &mut Vec<u8>, sequence: u64, changes: &Changes) {
    buffer.clear();
    buffer.resize(HEAD_BYTES, 0);
    for (part, changes) in (0..).zip(changes) {
        for change in changes {
            let deleted = if change.value.is_some() { 0 } else { DELETED };
            let value = change.value.as_deref().unwrap_or_default();
            buffer.push(part | deleted);
            buffer.extend_from_slice(&(change.key.len() as u16).to_le_bytes());
            buffer.extend_from_slice(&(value.len() as u32).to_le_bytes());
            buffer.extend_from_slice(&change.key);
            buffer.extend_from_slice(value);
        }
    }
    let length = (buffer.len() - HEAD_BYTES) as u32;
    buffer[..4].copy_from_slice(&length.to_le_bytes());
    buffer[4..12].copy_from_slice(&sequence.to_le_bytes());
    let (head, changes) = buffer.split_at(HEAD_BYTES);
    let sum = sum(head, changes);
    buffer[12..HEAD_BYTES].copy_from_slice(&sum.to_le_bytes());
    buffer.extend_from_slice(MAGIC);
}

fn decode(mut bytes: &[u8]) -> Option<Changes> {
    let mut changes = Changes::default();
    while let Some((head, rest)) = bytes.split_at_checked(7) {
        let part = Part::from_number(head[0] & !DELETED)?;
        let key = usize::from(u16::from_le_bytes([head[1], head[2]]));
        let value = u32::from_le_bytes([head[3], head[4], head[5], head[6]]) as usize;
        let (key, rest) = rest.split_at_checked(key)?;
        let (value, rest) = rest.split_at_checked(value)?;
        let value = (head[0] & DELETED == 0).then(|| Bytes::copy_from_slice(value));
        changes[part as usize].push(Change { key: Bytes::copy_from_slice(key), value });
        bytes = rest;
    }
    bytes.is_empty().then_some(changes)
}

fn path(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("{number:08}.jnl"))
}

/// Makes what is in a journal durable.
fn sync(path: &Path) -> Result<()> {
    let file = File::options().write(true).open(path);
    file.and_then(|file| file.sync_all()).map_err(|e| fault(path, &e))
}

/// Shortens a journal, durably.
fn cut(path: &Path, length: u64) -> Result<()> {
    let cut = || {
        let file = File::options().write(true).open(path)?;
        file.set_len(length)?;
        file.sync_all()
    };
    cut().map_err(|e| fault(path, &e))
}

/// Has the system begin to write what it has of a part of a file. A hint: whoever wants to know that
/// it is written syncs.
#[cfg(target_os = "linux")]
fn start_writing(file: &File, at: u64, bytes: u64) {
    use std::os::fd::AsRawFd;
    // SAFETY: the descriptor is open as long as the file is borrowed, and nothing else is referred to.
    #[allow(unsafe_code)]
    let _ = unsafe {
        let flags = libc::SYNC_FILE_RANGE_WRITE;
        libc::sync_file_range(file.as_raw_fd(), at as i64, bytes as i64, flags)
    };
}

#[cfg(not(target_os = "linux"))]
fn start_writing(_: &File, _: u64, _: u64) {}

#[cfg(unix)]
fn write_at(file: &File, bytes: &[u8], at: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, at)
}

#[cfg(windows)]
fn write_at(file: &File, mut bytes: &[u8], mut at: u64) -> std::io::Result<()> {
    while !bytes.is_empty() {
        let written = std::os::windows::fs::FileExt::seek_write(file, bytes, at)?;
        bytes = &bytes[written..];
        at += written as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record_of(sequence: u64, value: &[u8]) -> Vec<u8> {
        let mut changes = Changes::default();
        let change = |key, value| Change { key: Bytes::from_static(key), value };
        changes[1].push(change(b"key", Some(Bytes::copy_from_slice(value))));
        changes[3].push(change(b"gone", None));
        let mut record = Vec::new();
        encode(&mut record, sequence, &changes);
        record
    }

    fn read_all(bytes: &[u8]) -> Read {
        read(bytes, 0, &mut |_| {})
    }

    fn verdict(bytes: &[u8], is_last: bool, stop: Stop) -> Verdict {
        judge(bytes, &read_all(bytes), is_last, stop)
    }

    #[test]
    fn what_is_appended_is_read() -> Result<()> {
        let directory = tempfile::tempdir().map_err(|e| fault(Path::new("temporary"), &e))?;
        let mut written = Vec::new();
        let mut behind = Replayed::default();
        for number in 1..=3 {
            let mut journal = Journal::create(directory.path(), number, behind)?;
            for bytes in [0, 10, 3 << 20, 1 << 20, 100] {
                let mut changes = Changes::default();
                let value = Some(Bytes::from(vec![number as u8; bytes]));
                changes[2].push(Change { key: Bytes::from_static(b"k"), value });
                journal.append(&changes)?;
                written.push(bytes);
            }
            journal.sync()?;
            behind = Replayed { sequence: journal.sequence(), bytes: journal.length() };
        }
        let mut found = Vec::new();
        let all = journals(directory.path())?;
        let replayed = replay(&all, Stop::UncleanSync, |changes| {
            found.push(changes[2][0].value.as_ref().map_or(0, Bytes::len));
        })?;
        assert_eq!((found, replayed), (written, behind));
        assert_eq!(behind.sequence, 15);
        Ok(())
    }

    #[test]
    fn a_missing_record_is_damage() {
        let bytes = [record_of(1, b"a"), record_of(3, b"c")].concat();
        assert_eq!(verdict(&bytes, true, Stop::UncleanSync), Verdict::Damaged);
        assert_eq!(verdict(&bytes, true, Stop::UncleanRelaxed), Verdict::Damaged);
    }

    #[test]
    fn a_missing_end_of_the_journal_before_is_damage() -> Result<()> {
        let directory = tempfile::tempdir().map_err(|e| fault(Path::new("temporary"), &e))?;
        let all: Vec<(u64, PathBuf)> =
            (1..=2).map(|number| (number, path(directory.path(), number))).collect();
        let write = |at: usize, bytes: Vec<u8>| std::fs::write(&all[at].1, bytes);
        write(0, record_of(1, b"a")).map_err(|e| fault(&all[0].1, &e))?;
        write(1, record_of(3, b"c")).map_err(|e| fault(&all[1].1, &e))?;
        for stop in [Stop::UncleanSync, Stop::UncleanRelaxed] {
            assert!(replay(&all, stop, |_| {}).is_err());
        }
        Ok(())
    }

    #[test]
    fn a_lost_first_page_is_torn() {
        for start in [4_090, 4_000] {
            let filler = start - record_of(1, b"").len();
            let mut bytes = [record_of(1, &vec![1; filler]), record_of(2, &[7; 9_000])].concat();
            bytes[start..4_096].fill(0);
            assert_eq!(verdict(&bytes, true, Stop::UncleanSync), Verdict::Torn, "{start}");
        }
    }

    #[test]
    fn whole_journals_pass() {
        let two = [record_of(1, b"a"), record_of(2, b"b")].concat();
        for bytes in [vec![], vec![0; 100], two.clone(), [two, vec![0; 5_000]].concat()] {
            assert_eq!(verdict(&bytes, true, Stop::UncleanSync), Verdict::Whole);
            assert_eq!(verdict(&bytes, false, Stop::UncleanSync), Verdict::Whole);
        }
    }

    #[test]
    fn a_tail_cut_anywhere_is_torn() {
        let (first, second) = (record_of(1, b"a"), record_of(2, &[7; 300]));
        for length in 1..second.len() {
            let bytes = [&first[..], &second[..length], &[0; 200]].concat();
            assert_eq!(verdict(&bytes, true, Stop::UncleanSync), Verdict::Torn, "{length}");
            assert_eq!(verdict(&bytes, false, Stop::UncleanSync), Verdict::Damaged, "{length}");
            assert_eq!(read_all(&bytes).valid_bytes, first.len());
        }
    }

    #[test]
    fn a_lost_page_is_torn() {
        let mut bytes = [record_of(1, b"a"), record_of(2, &[7; 20_000])].concat();
        bytes[8_192..12_288].fill(0);
        assert_eq!(verdict(&bytes, true, Stop::UncleanSync), Verdict::Torn);
    }

    #[test]
    fn a_flipped_bit_is_damage() {
        let whole =
            [record_of(1, &[5; 90]), record_of(2, &[6; 90]), record_of(3, &[7; 90])].concat();
        for at in 0..whole.len() - MAGIC.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x10;
            let read = read_all(&bytes);
            assert_eq!(judge(&bytes, &read, true, Stop::UncleanSync), Verdict::Damaged, "{at}");
        }
    }

    #[test]
    fn relaxed_pages_may_be_missing_in_the_middle() {
        let mut bytes =
            [record_of(1, b"a"), record_of(2, &[7; 9_000]), record_of(3, b"c")].concat();
        bytes[4_096..8_192].fill(0);
        assert_eq!(verdict(&bytes, true, Stop::UncleanRelaxed), Verdict::Torn);
        assert_eq!(verdict(&bytes, true, Stop::UncleanSync), Verdict::Damaged);
    }
}
