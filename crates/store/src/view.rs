//! The published view: one snapshot and the log positions it contains, as a pair.
//!
//! Readers, session tokens and feed etags come only from a view, so they cannot disagree (S3).

use std::sync::Arc;

use crate::Reader;

/// A log whose position every view carries: one per physical partition. Small numbers, assigned by
/// the layer above, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogId(pub u32);

impl LogId {
    /// Log numbers are below this: positions are kept in memory by number.
    pub const END: LogId = LogId(1 << 24);
}

const CHUNK: usize = 64;

/// The position of each log. A copy shares all but the chunks that changed since.
#[derive(Clone, Debug, Default)]
pub struct Positions {
    chunks: Vec<Arc<[u64; CHUNK]>>,
}

impl Positions {
    /// The position of `log`; 0 if nothing was ever committed to it.
    pub fn get(&self, log: LogId) -> u64 {
        let at = log.0 as usize;
        self.chunks.get(at / CHUNK).map_or(0, |chunk| chunk[at % CHUNK])
    }

    /// Every log that has a position, with it, by number.
    pub fn iter(&self) -> impl Iterator<Item = (LogId, u64)> {
        let all = self.chunks.iter().flat_map(|chunk| chunk.iter().copied());
        (0u32..).map(LogId).zip(all).filter(|&(_, position)| position > 0)
    }

    /// Moves `log` to `position`. A position never goes back.
    pub fn advance(&mut self, log: LogId, position: u64) {
        let at = log.0 as usize;
        while self.chunks.len() <= at / CHUNK {
            self.chunks.push(Arc::new([0; CHUNK]));
        }
        let chunk = Arc::make_mut(&mut self.chunks[at / CHUNK]);
        debug_assert!(chunk[at % CHUNK] <= position, "positions of a log only grow");
        chunk[at % CHUNK] = chunk[at % CHUNK].max(position);
    }
}

/// One consistent state of the whole store. Cheap to clone; hold it as long as one operation lasts.
#[derive(Clone)]
pub struct View {
    sequence: u64,
    positions: Arc<Positions>,
    reader: Arc<dyn Reader>,
}

impl View {
    /// Pairs a snapshot with the positions it contains. `sequence` grows with every publication.
    pub fn new(sequence: u64, positions: Arc<Positions>, reader: Arc<dyn Reader>) -> View {
        View { sequence, positions, reader }
    }

    /// Which publication this is: later views have larger numbers. Caches are ordered by it.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The position of a log in this view.
    pub fn position(&self, log: LogId) -> u64 {
        self.positions.get(log)
    }

    /// All positions, to derive the next view from.
    pub fn positions(&self) -> &Arc<Positions> {
        &self.positions
    }

    /// The snapshot.
    pub fn reader(&self) -> &dyn Reader {
        &*self.reader
    }
}
