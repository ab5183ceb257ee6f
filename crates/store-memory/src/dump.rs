//! A whole state in one file, for `checkpoint` and `load`.
//!
//! ```text
//!   "cosmolabe memory 1\n"
//!   positions   count u32, then (log u32, position u64)
//!   spaces      for each of them in order: count u64, then (key, value), each length u32 and bytes
//! ```
//! Numbers are little-endian. A file that breaks off or goes on is refused.

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::Path;

use bytes::Bytes;
use store::{Error, LogId, Positions, Result, Space};

use crate::state::State;

const FILE: &str = "memory.dump";
const HEADER: &[u8] = b"cosmolabe memory 1\n";

/// Writes the state into `directory`, which must not exist.
pub(crate) fn save(directory: &Path, state: &State, positions: &Positions) -> std::io::Result<()> {
    std::fs::create_dir(directory)?;
    let mut file = BufWriter::new(File::create_new(directory.join(FILE))?);
    file.write_all(HEADER)?;
    let positions: Vec<_> = positions.iter().collect();
    file.write_all(&(positions.len() as u32).to_le_bytes())?;
    for (log, position) in positions {
        file.write_all(&log.0.to_le_bytes())?;
        file.write_all(&position.to_le_bytes())?;
    }
    for space in Space::ALL {
        save_space(&mut file, state, space)?;
    }
    file.flush()?;
    file.get_ref().sync_all()
}

fn save_space(file: &mut impl Write, state: &State, space: Space) -> std::io::Result<()> {
    let map = state.map(space);
    file.write_all(&(map.size() as u64).to_le_bytes())?;
    for (key, value) in map {
        for part in [key, value] {
            file.write_all(&(part.len() as u32).to_le_bytes())?;
            file.write_all(part)?;
        }
    }
    Ok(())
}

/// Reads what `save` wrote.
pub(crate) fn load(directory: &Path) -> Result<(State, Positions)> {
    let path = directory.join(FILE);
    let unusable = |what: &str| {
        let path = path.display();
        Error::Unusable(format!("{path} {what}. Restore it from another copy."))
    };
    let mut bytes = Vec::new();
    File::open(&path)
        .and_then(|mut file| file.read_to_end(&mut bytes))
        .map_err(|e| unusable(&format!("cannot be read: {e}")))?;
    decode(Bytes::from(bytes)).ok_or_else(|| unusable("is damaged"))
}

/// Keys and values stay slices of the one buffer that was read.
fn decode(mut from: Bytes) -> Option<(State, Positions)> {
    if take(&mut from, HEADER.len())? != HEADER {
        return None;
    }
    let mut positions = Positions::default();
    for _ in 0..take_u32(&mut from)? {
        let log = LogId(take_u32(&mut from)?);
        if log >= LogId::END {
            return None;
        }
        positions.advance(log, take_u64(&mut from)?);
    }
    let mut state = State::default();
    for space in Space::ALL {
        for _ in 0..take_u64(&mut from)? {
            let key = take_part(&mut from)?;
            let value = take_part(&mut from)?;
            state.set(space, key, Some(value));
        }
    }
    from.is_empty().then_some((state, positions))
}

fn take_part(from: &mut Bytes) -> Option<Bytes> {
    let length = take_u32(from)? as usize;
    take(from, length)
}

fn take(from: &mut Bytes, length: usize) -> Option<Bytes> {
    (from.len() >= length).then(|| from.split_to(length))
}

fn take_u32(from: &mut Bytes) -> Option<u32> {
    Some(u32::from_le_bytes(take(from, 4)?[..].try_into().ok()?))
}

fn take_u64(from: &mut Bytes) -> Option<u64> {
    Some(u64::from_le_bytes(take(from, 8)?[..].try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_cut_anywhere_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let copy = directory.path().join("copy");
        let mut state = State::default();
        state.set(Space::Item, Bytes::from_static(b"key"), Some(Bytes::from_static(b"value")));
        let mut positions = Positions::default();
        positions.advance(LogId(3), 7);
        save(&copy, &state, &positions).unwrap();
        let bytes = Bytes::from(std::fs::read(copy.join(FILE)).unwrap());
        assert!(decode(bytes.clone()).is_some());
        for length in 0..bytes.len() {
            assert!(decode(bytes.slice(..length)).is_none(), "cut at {length}");
        }
    }
}
