//! One state of all spaces: persistent maps, and reading them.

use std::ops::Bound;

use bytes::Bytes;
use rpds::RedBlackTreeMapSync;
use store::{
    Commit, Direction, Page, Range, Reader, Result, Row, ScanOptions, Space, check_preconditions,
};

pub(crate) type Map = RedBlackTreeMapSync<Bytes, Bytes>;

/// The content of the store at one moment. Cloning costs a few reference counts.
#[derive(Clone, Default)]
pub(crate) struct State {
    spaces: [Map; Space::ALL.len()],
    /// Bytes of all keys and values.
    bytes: u64,
}

impl State {
    /// The state after `commit`, or why it is refused. This state does not change (M2).
    pub(crate) fn after(&self, commit: &Commit) -> Result<State> {
        check_preconditions(&commit.preconditions, |space, key| self.get(space, key))?;
        let mut next = self.clone();
        for write in &commit.writes {
            next.set(write.space(), write.key().clone(), write.value().cloned());
        }
        for merge in &commit.merges {
            let old = next.spaces[merge.space() as usize].get(merge.key());
            let value = merge.apply(old.map(|value| &value[..]));
            next.set(merge.space(), merge.key().clone(), value);
        }
        Ok(next)
    }

    pub(crate) fn set(&mut self, space: Space, key: Bytes, value: Option<Bytes>) {
        let map = &mut self.spaces[space as usize];
        if let Some(old) = map.get(&key) {
            self.bytes -= (key.len() + old.len()) as u64;
        }
        match value {
            Some(value) => {
                self.bytes += (key.len() + value.len()) as u64;
                map.insert_mut(key, value);
            }
            None => {
                map.remove_mut(&key);
            }
        }
    }

    pub(crate) fn map(&self, space: Space) -> &Map {
        &self.spaces[space as usize]
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Reader for State {
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>> {
        Ok(self.map(space).get(key).cloned())
    }

    fn scan(&self, space: Space, range: &Range, options: ScanOptions) -> Result<Page> {
        if range.is_empty() {
            return Ok(Page::default());
        }
        let rows = self.map(space).range::<[u8], _>(bounds(range));
        let row = |(key, value): (&Bytes, &Bytes)| {
            let value = if options.keys_only { Bytes::new() } else { value.clone() };
            Ok(Row { key: key.clone(), value })
        };
        match options.direction {
            Direction::Forward => Page::fill(rows.map(row), &options),
            Direction::Backward => Page::fill(rows.rev().map(row), &options),
        }
    }

    fn count(&self, space: Space, range: &Range) -> Result<u64> {
        if range.is_empty() {
            return Ok(0);
        }
        Ok(self.map(space).range::<[u8], _>(bounds(range)).count() as u64)
    }
}

fn bounds(range: &Range) -> (Bound<&[u8]>, Bound<&[u8]>) {
    let end = range.end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
    (Bound::Included(&range.start), end)
}
