//! Which items of a partition a condition lets through, as far as an index tells.
//!
//! A walk along one index meets every item, wanted or not, and would load each to find out. Once
//! most were loaded in vain, the ordinals that another index has for the condition are read
//! instead, if they are not too many; from then on only items among them are loaded.

use super::walk::Reader;
use crate::{Direction, Error, Position, Span};

/// Items loaded before it is asked whether that was worth it.
const TRIED_MIN: usize = 8;
/// Loading goes on as it is while at least one in so many items is wanted.
const WANTED_ONE_IN: usize = 4;
/// Ordinals held for one partition, at most.
const MEMBERS_MAX: usize = 1 << 16;
/// Entries read at once.
const ENTRIES: usize = 4096;

/// What is known about one partition.
#[derive(Default)]
pub(super) struct Members {
    tried: usize,
    wanted: usize,
    known: Known,
}

#[derive(Default)]
enum Known {
    #[default]
    Nothing,
    /// Not worth it.
    TooMany,
    /// These ordinals, ascending, and no others.
    Only(Vec<u64>),
}

impl Members {
    /// Notes that an item was loaded.
    pub fn note(&mut self, is_wanted: bool) {
        self.tried += 1;
        self.wanted += usize::from(is_wanted);
    }

    /// Whether the ordinals were read.
    pub fn is_known(&self) -> bool {
        matches!(self.known, Known::Only(_))
    }

    /// Whether an item may be wanted.
    pub fn may_have(&self, ordinal: u64) -> bool {
        match &self.known {
            Known::Only(ordinals) => ordinals.binary_search(&ordinal).is_ok(),
            Known::Nothing | Known::TooMany => true,
        }
    }

    /// Reads the ordinals of a condition if too much is loaded in vain.
    pub fn learn(&mut self, reader: Reader<'_>, partition: usize) -> Result<(), Error> {
        let is_vain = self.tried >= TRIED_MIN && self.wanted * WANTED_ONE_IN < self.tried;
        let (Known::Nothing, true, Some(spans)) = (&self.known, is_vain, reader.probes.first())
        else {
            return Ok(());
        };
        self.known = match ordinals(reader, partition, spans)? {
            Some(ordinals) => Known::Only(ordinals),
            None => Known::TooMany,
        };
        Ok(())
    }
}

/// The ordinals of all entries of some spans; none if they are too many.
fn ordinals(
    reader: Reader<'_>,
    partition: usize,
    spans: &[Span],
) -> Result<Option<Vec<u64>>, Error> {
    let mut ordinals: Vec<u64> = Vec::new();
    for span in spans {
        let mut after: Option<Position> = None;
        loop {
            let (ctx, direction) = (reader.ctx, Direction::Ascending);
            let batch =
                reader.source.entries(ctx, partition, span, direction, after.as_ref(), ENTRIES)?;
            ordinals.extend(batch.rows.iter().map(|entry| entry.ordinal));
            if ordinals.len() > MEMBERS_MAX {
                return Ok(None);
            }
            after = batch.rows.into_iter().next_back();
            if batch.is_last || after.is_none() {
                break;
            }
        }
    }
    ordinals.sort_unstable();
    Ok(Some(ordinals))
}
