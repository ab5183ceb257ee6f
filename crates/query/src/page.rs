//! One response worth of rows.

use bytes::Bytes;

use crate::State;

/// How much one page may hold and use.
#[derive(Clone, Copy, Debug)]
pub struct PageLimits {
    /// Rows; at least one.
    pub rows_max: usize,
    /// Bytes of row text. A single row that is longer makes a page of its own.
    pub bytes_max: usize,
    /// Bytes a blocking operator (GROUP BY, DISTINCT, sorting) may hold.
    pub memory_bytes_max: usize,
}

impl Default for PageLimits {
    fn default() -> PageLimits {
        PageLimits { rows_max: 100, bytes_max: 4 << 20, memory_bytes_max: 64 << 20 }
    }
}

/// Rows, and where to go on.
#[derive(Clone, Debug)]
pub struct Page {
    /// The JSON text of each row.
    pub rows: Vec<Bytes>,
    /// Where to go on; `None` when nothing can follow.
    pub state: Option<State>,
    /// Why the page ends here.
    pub end: PageEnd,
}

/// Why a page ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageEnd {
    /// The query is over.
    Exhausted,
    /// The page has its rows.
    Rows,
    /// The page has its bytes.
    Bytes,
    /// The time for one page is over.
    Deadline,
}
