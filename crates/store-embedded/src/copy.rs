//! Checkpoints: one view, copied into a directory that opens as a store.

use std::path::Path;

use store::{Error, Range, Reader, Result, Row, ScanOptions, Space, View};

use crate::Options;
use crate::directory::{Stop, engine_path, seal};
use crate::engine::Engine;

/// Rows and bytes read at a time.
const PAGE: ScanOptions = ScanOptions {
    direction: store::Direction::Forward,
    rows_max: 4_096,
    bytes_max: 4 << 20,
    keys_only: false,
};

/// Copies what `view` shows into `directory`, which must not exist.
///
/// The copy counts as a store only when it is complete; one that was interrupted is refused at open.
pub(crate) fn checkpoint(view: &View, directory: &Path) -> Result<()> {
    std::fs::create_dir(directory)
        .map_err(|e| Error::Fault(format!("cannot create {}: {e}", directory.display())))?;
    let options = Options { cache_bytes: 8 << 20, ..Options::default() };
    let engine = Engine::open(&engine_path(directory), Stop::New, &options)?;
    for space in Space::ALL {
        engine.ingest(space, Rows::new(view.reader(), space))?;
    }
    let positions: Vec<_> = view.positions().iter().collect();
    engine.write_positions(&positions)?;
    engine.flush_tables()?;
    drop(engine);
    seal(directory)
}

/// All rows of a space, page by page.
struct Rows<'a> {
    reader: &'a dyn Reader,
    space: Space,
    page: std::vec::IntoIter<Row>,
    /// Where the next page starts; `None` behind the last one.
    next: Option<Vec<u8>>,
}

impl<'a> Rows<'a> {
    fn new(reader: &'a dyn Reader, space: Space) -> Rows<'a> {
        Rows { reader, space, page: Vec::new().into_iter(), next: Some(Vec::new()) }
    }

    fn turn(&mut self, start: Vec<u8>) -> Result<()> {
        let page = self.reader.scan(self.space, &Range { start, end: None }, PAGE)?;
        if page.is_cut
            && let Some(last) = page.rows.last()
        {
            // The smallest key behind the last one.
            self.next = Some([&last.key[..], &[0]].concat());
        }
        self.page = page.rows.into_iter();
        Ok(())
    }
}

impl Iterator for Rows<'_> {
    type Item = Result<Row>;

    fn next(&mut self) -> Option<Result<Row>> {
        loop {
            if let Some(row) = self.page.next() {
                return Some(Ok(row));
            }
            let start = self.next.take()?;
            if let Err(error) = self.turn(start) {
                return Some(Err(error));
            }
        }
    }
}
