//! Reading one snapshot of the engine.

use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use fjall::{Guard, Iter, Keyspace, Readable, Slice, Snapshot};
use store::{Direction, Page, Range, Reader, Result, Row, ScanOptions, Space};

use crate::LIMITS;
use crate::engine::fault;

/// The keyspaces, by the number of their space.
pub(crate) type Spaces = [Keyspace; Space::ALL.len()];

/// A snapshot over all spaces. The engine keeps what it shows until it is dropped (S5).
pub(crate) struct SnapshotReader {
    spaces: Arc<Spaces>,
    snapshot: Snapshot,
}

impl SnapshotReader {
    pub(crate) fn new(spaces: Arc<Spaces>, snapshot: Snapshot) -> SnapshotReader {
        SnapshotReader { spaces, snapshot }
    }

    fn rows(&self, space: Space, range: &Range) -> Iter {
        self.snapshot.range::<&[u8], _>(&self.spaces[space as usize], bounds(range))
    }
}

impl Reader for SnapshotReader {
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>> {
        // Such keys are never stored, and the engine panics on them.
        if key.is_empty() || key.len() > LIMITS.key_bytes_max {
            return Ok(None);
        }
        let value = self.snapshot.get(&self.spaces[space as usize], key).map_err(fault)?;
        Ok(value.map(bytes))
    }

    fn scan(&self, space: Space, range: &Range, options: ScanOptions) -> Result<Page> {
        if range.is_empty() {
            return Ok(Page::default());
        }
        let row = |guard| row(guard, options.keys_only);
        match options.direction {
            Direction::Forward => Page::fill(self.rows(space, range).map(row), &options),
            Direction::Backward => Page::fill(self.rows(space, range).rev().map(row), &options),
        }
    }

    fn count(&self, space: Space, range: &Range) -> Result<u64> {
        if range.is_empty() {
            return Ok(0);
        }
        let mut count = 0;
        for guard in self.rows(space, range) {
            guard.key().map_err(fault)?;
            count += 1;
        }
        Ok(count)
    }
}

fn row(guard: Guard, keys_only: bool) -> Result<Row> {
    if keys_only {
        let key = guard.key().map_err(fault)?;
        return Ok(Row { key: bytes(key), value: Bytes::new() });
    }
    let (key, value) = guard.into_inner().map_err(fault)?;
    Ok(Row { key: bytes(key), value: bytes(value) })
}

/// The engine's bounds of a range. It panics on bounds that are longer than a key can be, so these
/// are cut: a key that can exist lies behind a longer bound exactly if it lies behind the cut one.
fn bounds(range: &Range) -> (Bound<&[u8]>, Bound<&[u8]>) {
    let max = LIMITS.key_bytes_max;
    let start = match range.start.as_slice() {
        [] => Bound::Unbounded,
        start if start.len() > max => Bound::Excluded(&start[..max]),
        start => Bound::Included(start),
    };
    let end = match range.end.as_deref() {
        None => Bound::Unbounded,
        Some(end) if end.len() > max => Bound::Included(&end[..max]),
        Some(end) => Bound::Excluded(end),
    };
    (start, end)
}

/// Values up to this size are copied rather than shared.
const COPIED_BYTES_MAX: usize = 512;

/// The engine's slice as `Bytes`. Sharing its buffer costs an allocation, which only pays for large
/// values. (With the engine's feature `bytes_1` slices are `Bytes` and need neither, but keys in
/// memtables then lose their inline prefix, and writing costs a third more.)
fn bytes(slice: Slice) -> Bytes {
    match slice.len() > COPIED_BYTES_MAX {
        true => Bytes::from_owner(slice),
        false => Bytes::copy_from_slice(&slice),
    }
}
