//! What happens in the background: memory becomes tables, tables become fewer.
//!
//! ```text
//!   flusher   sealed memory ─▶ one table per part ─▶ manifest ─▶ state; its journals are deleted
//!   merger    the newest tables of a part, of like size ─▶ one ─▶ manifest ─▶ state
//! ```
//!
//! Tables of like size are merged, so a key is rewritten about log2 times as data grows, and a
//! reader has about as many tables to look into. When nothing was written for [`QUIET`], what is
//! left is merged too: data that rests is one table per part.
//!
//! FAILURE    An error of the flusher is noted and ends it: writes are refused from then on with it,
//!            reads go on. A merge that fails, for want of room mostly, is tried again after
//!            [`PATIENCE`]; only if there are too many tables to go on it ends like that. A process
//!            killed at any point leaves files that the manifest does not name; they are removed at
//!            the next start.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use store::{Direction, Error, Result, Row};

use super::manifest::Manifest;
use super::memory::Memory;
use super::merge::{Merged, Source};
use super::table::{Reads, Table, TableWriter, Tuning};
use super::tree::Tree;
use super::{Core, Entry, Now, Part, State, TABLES_MAX, Tables};

/// Fewer tables of like size are not worth merging while more are to come.
const MERGED_TABLES_MIN: usize = 3;
/// Without writes for this long, tables of any size are merged ...
const QUIET: Duration = Duration::from_secs(2);
/// ... but for a last one that is so much larger than the others together.
const QUIET_RATIO: u64 = 16;
/// Bytes between looks at whether somebody wants a long merge to end.
const BYTES_BETWEEN_LOOKS: usize = 4 << 20;
/// After a merge that failed.
const PATIENCE: Duration = Duration::from_secs(60);
/// A second merger takes merges up to this size, so that a large one does not hold up all others.
const SMALL_MERGE_BYTES: u64 = 512 << 20;

impl Core {
    /// The flusher: writes what is sealed into tables, until the engine is dropped.
    pub(super) fn run_flusher(&self) {
        self.run(|| match self.wait_for_work(|now| now.state.sealed.is_some(), None) {
            true => self.flush_sealed().map(|()| true),
            false => Ok(false),
        });
    }

    /// The merger: keeps the number of tables low, until the engine is dropped.
    pub(super) fn run_merger(&self) {
        self.run(|| self.merge_next(u64::MAX));
    }

    /// The other merger.
    pub(super) fn run_small_merger(&self) {
        self.run(|| self.merge_next(SMALL_MERGE_BYTES));
    }

    /// Waits for a merge of up to so many bytes and does it; false if the engine is being dropped.
    fn merge_next(&self, bytes_max: u64) -> Result<bool> {
        let next = |now: &Now| {
            let is_time = now.merges_after.is_none_or(|at| at <= Instant::now());
            is_time.then(|| self.next_merge(now, bytes_max)).flatten()
        };
        let has_work = |now: &Now| next(now).is_some() || self.can_drop_replaced();
        if !self.wait_for_work(has_work, Some(QUIET / 4)) {
            return Ok(false);
        }
        self.drop_replaced();
        let part = next(&self.now.lock());
        let Some((part, _one)) =
            part.and_then(|part| Some((part, self.merging[part as usize].try_lock()?)))
        else {
            return Ok(true);
        };
        match self.merge_some(part, |now| count_to_merge(now, part), 2) {
            Ok(is_going_on) => Ok(is_going_on),
            Err(error) => self.put_off(error).map(|()| true),
        }
    }

    /// Tries merges again later, unless nothing can be written without them.
    fn put_off(&self, error: Error) -> Result<()> {
        let mut now = self.now.lock();
        if now.state.tables.iter().any(|tables| tables.len() > TABLES_MAX) {
            return Err(error);
        }
        now.merges_after = Some(Instant::now() + PATIENCE);
        Ok(())
    }

    /// The part most in need of a merge that nobody is at.
    fn next_merge(&self, now: &Now, bytes_max: u64) -> Option<Part> {
        let counted = Part::ALL.into_iter().map(|part| (count_to_merge(now, part), part));
        let fits = |&(count, part): &(usize, Part)| {
            let tables = &now.state.tables[part as usize];
            let bytes: u64 = tables.iter().take(count).map(|table| table.length()).sum();
            count > 1 && bytes <= bytes_max && !self.merging[part as usize].is_locked()
        };
        counted.filter(fits).max_by_key(|&(count, _)| count).map(|(_, part)| part)
    }

    fn can_drop_replaced(&self) -> bool {
        self.replaced.lock().iter().any(|table| Arc::strong_count(table) == 1)
    }

    /// Lets go of tables that were replaced and that nobody reads any more: their files are deleted
    /// here rather than by whoever reads last.
    pub(super) fn drop_replaced(&self) {
        let mut replaced = self.replaced.lock();
        let (kept, gone) = replaced.drain(..).partition(|table| Arc::strong_count(table) > 1);
        *replaced = kept;
        drop(replaced);
        drop::<Vec<Arc<Table>>>(gone);
    }

    /// Repeats `step` until it says false, fails or panics. The reason is noted.
    fn run(&self, step: impl Fn() -> Result<bool>) {
        loop {
            let fault = match catch_unwind(AssertUnwindSafe(&step)) {
                Ok(Ok(true)) => continue,
                Ok(Ok(false)) => return,
                Ok(Err(error)) => error.to_string(),
                Err(_) => "background work on tables panicked".to_owned(),
            };
            self.now.lock().fault.get_or_insert(format!("writing tables failed: {fault}"));
            self.changed.notify_all();
            return;
        }
    }

    /// Sleeps until there is work; false if the engine is being dropped. Without `look_every` only
    /// changes wake it.
    fn wait_for_work(&self, has_work: impl Fn(&Now) -> bool, look_every: Option<Duration>) -> bool {
        let mut now = self.now.lock();
        loop {
            if self.is_stopping() {
                return false;
            }
            if has_work(&now) {
                return true;
            }
            match look_every {
                Some(time) => drop(self.changed.wait_for(&mut now, time)),
                None => self.changed.wait(&mut now),
            }
        }
    }

    fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }

    /// Writes everything in memory into tables.
    pub(super) fn flush_all(&self) -> Result<()> {
        // What the flusher has in hand comes first.
        self.flush_sealed()?;
        let mut journal = self.journal.lock();
        if !self.now.lock().state.memory.is_empty() {
            self.wait_until(|now| now.state.sealed.is_none())?;
            self.seal_now(&mut journal)?;
        }
        drop(journal);
        self.flush_sealed()
    }

    fn flush_sealed(&self) -> Result<()> {
        let _one = self.flushing.lock();
        let (state, journal) = {
            let now = self.now.lock();
            (now.state.clone(), now.journal_behind_sealed)
        };
        let Some(sealed) = &state.sealed else {
            return Ok(());
        };
        let mut added: [Option<Arc<Table>>; super::PARTS] = Default::default();
        let flushed = self.write_sealed(&state, sealed, &mut added);
        if flushed.is_err() {
            added.iter().flatten().for_each(|table| table.set_replaced());
        }
        flushed?;
        self.install(
            |manifest| {
                manifest.journal = journal;
                for (numbers, table) in manifest.tables.iter_mut().zip(&added) {
                    numbers.splice(0..0, table.iter().map(|table| table.number()));
                }
            },
            |now| {
                let mut state = State { sealed: None, ..State::clone(&now.state) };
                for (tables, table) in state.tables.iter_mut().zip(&added) {
                    *tables = table.iter().chain(tables.iter()).cloned().collect();
                }
                now.state = Arc::new(state);
                now.sealed_bytes = 0;
            },
        )?;
        self.remove_journals(journal)
    }

    fn write_sealed(
        &self,
        state: &State,
        sealed: &Memory,
        added: &mut [Option<Arc<Table>>; super::PARTS],
    ) -> Result<()> {
        for part in Part::ALL {
            // Where there is nothing older, nothing needs to be hidden.
            let hides = !state.tables[part as usize].is_empty();
            for tree in sealed.trees(part) {
                added[part as usize] = self.write_tree(part, tree, hides)?;
            }
        }
        Ok(())
    }

    /// A table of what a tree holds; nothing if that is nothing.
    fn write_tree(&self, part: Part, tree: &Tree, hides: bool) -> Result<Option<Arc<Table>>> {
        let mut cursor = tree.from(&[]);
        self.write_table(tuning(part), |writer| {
            while let Some((key, entry)) = cursor.get() {
                if hides || !matches!(entry, Entry::Deleted) {
                    writer.push(key, entry)?;
                }
                cursor.next();
            }
            Ok(())
        })
    }

    /// Makes a table of what `fill` writes; nothing if that is nothing.
    fn write_table(
        &self,
        tuning: Tuning,
        fill: impl FnOnce(&mut TableWriter) -> Result<()>,
    ) -> Result<Option<Arc<Table>>> {
        let number = self.number();
        let path = self.table_path(number);
        let mut writer = TableWriter::create(&path, self.cache.clone(), tuning)?;
        let written = fill(&mut writer).and_then(|()| match writer.is_empty() {
            true => Ok(None),
            false => {
                let kept = writer.finish()?;
                let table = Table::open(&path, number, &self.cache)?;
                table.adopt(kept);
                Ok(Some(table))
            }
        });
        match written {
            Ok(Some(table)) => Ok(Some(Arc::new(table))),
            other => {
                writer.abandon();
                other.map(|_| None)
            }
        }
    }

    /// Makes a new set of tables count: on disk first, then for readers (B1, E1).
    fn install(
        &self,
        edit_manifest: impl FnOnce(&mut Manifest),
        edit_now: impl FnOnce(&mut Now),
    ) -> Result<()> {
        let mut manifest = self.manifest.lock();
        let mut new = manifest.clone();
        edit_manifest(&mut new);
        new.next = self.next_number.load(Ordering::Relaxed);
        new.write(&self.directory)?;
        *manifest = new;
        edit_now(&mut self.now.lock());
        drop(manifest);
        self.changed.notify_all();
        if let Some(act) = self.on_change.get() {
            act();
        }
        Ok(())
    }

    fn remove_journals(&self, before: u64) -> Result<()> {
        for (number, path) in super::journal::journals(&self.directory)? {
            if number < before {
                std::fs::remove_file(&path).map_err(|e| super::fault(&path, &e))?;
            }
        }
        Ok(())
    }

    /// Merges all tables of a part, though they may be one: what is deleted goes.
    pub(super) fn merge_all(&self, part: Part) -> Result<()> {
        let _one = self.merging[part as usize].lock();
        let is_done = self.merge_some(part, |now| now.state.tables[part as usize].len(), 1)?;
        match is_done {
            true => Ok(()),
            false => Err(Error::Closed),
        }
    }

    /// Merges as many of a part's newest tables as `count` says, if they are enough. False if it was
    /// told to stop. Whoever calls has the part's lock.
    fn merge_some(
        &self,
        part: Part,
        count: impl Fn(&Now) -> usize,
        tables_min: usize,
    ) -> Result<bool> {
        let (tables, is_all) = {
            let now = self.now.lock();
            let tables = &now.state.tables[part as usize];
            let count = count(&now).min(tables.len());
            (tables[..count].to_vec(), count == tables.len())
        };
        if tables.len() < tables_min {
            return Ok(true);
        }
        let merged = match self.write_merged(part, &tables, is_all) {
            Err(Error::Closed) => return Ok(false),
            merged => merged?,
        };
        let is_old = |number: u64| tables.iter().any(|table| table.number() == number);
        self.install(
            |manifest| {
                let numbers = &mut manifest.tables[part as usize];
                let at = numbers.iter().position(|&number| is_old(number)).unwrap_or_default();
                numbers.retain(|&number| !is_old(number));
                numbers.splice(at..at, merged.iter().map(|table| table.number()));
            },
            |now| {
                let mut state = State::clone(&now.state);
                replace(&mut state.tables[part as usize], &is_old, merged.as_ref());
                now.state = Arc::new(state);
            },
        )?;
        tables.iter().for_each(|table| table.set_replaced()); // B2
        self.replaced.lock().extend(tables);
        Ok(true)
    }

    /// Ends with `Closed` if the engine is dropped meanwhile.
    fn write_merged(
        &self,
        part: Part,
        tables: &[Arc<Table>],
        is_all: bool,
    ) -> Result<Option<Arc<Table>>> {
        let sources: Result<Vec<_>> =
            tables.iter().map(|table| table.from(&[], Reads::Last).map(Source::Table)).collect();
        let mut merged = Merged::new(sources?, Direction::Forward, None);
        let mut unlooked = 0;
        self.write_table(tuning(part), |writer| {
            while let Some((key, entry)) = merged.get() {
                unlooked += key.len() + entry.bytes().len();
                if !(is_all && matches!(entry, Entry::Deleted)) {
                    writer.push(key, entry)?;
                }
                merged.step()?;
                if unlooked > BYTES_BETWEEN_LOOKS {
                    unlooked = 0;
                    if self.is_stopping() {
                        return Err(Error::Closed);
                    }
                }
            }
            Ok(())
        })
    }

    /// Fills a part that is empty.
    pub(super) fn ingest(&self, part: Part, rows: impl Iterator<Item = Result<Row>>) -> Result<()> {
        let table = self.write_table(tuning(part), |writer| {
            for row in rows {
                let row = row?;
                writer.push(&row.key, Entry::Value(&row.value))?;
            }
            Ok(())
        })?;
        let Some(table) = table else {
            return Ok(());
        };
        self.install(
            |manifest| manifest.tables[part as usize] = vec![table.number()],
            |now| {
                let mut state = State::clone(&now.state);
                state.tables[part as usize] = Arc::new([table.clone()]);
                now.state = Arc::new(state);
            },
        )
    }
}

/// The merged table in the place of those it was made of.
fn replace(tables: &mut Tables, is_old: &impl Fn(u64) -> bool, merged: Option<&Arc<Table>>) {
    let mut kept: Vec<Arc<Table>> = tables.to_vec();
    let at = kept.iter().position(|table| is_old(table.number())).unwrap_or_default();
    kept.retain(|table| !is_old(table.number()));
    kept.splice(at..at, merged.cloned());
    *tables = kept.into();
}

/// How many of a part's newest tables should become one.
fn count_to_merge(now: &Now, part: Part) -> usize {
    let sizes = now.state.tables[part as usize].iter().map(|table| table.length());
    let sizes: Vec<u64> = sizes.collect();
    let is_quiet = now.written_at.elapsed() >= QUIET;
    if sizes.len() > TABLES_MAX {
        return sizes.len();
    }
    match like(&sizes, 1) {
        count if count >= MERGED_TABLES_MIN => count,
        _ if is_quiet => like(&sizes, QUIET_RATIO),
        _ => 0,
    }
}

/// How many of the first tables are worth merging: the last of them is not much larger than all
/// before it together, whatever those are like among themselves.
fn like(sizes: &[u64], ratio: u64) -> usize {
    let (mut sum, mut count) = (0u64, 0);
    for (at, &size) in sizes.iter().enumerate() {
        if at == 0 || size <= ratio.saturating_mul(sum) + sum / 4 {
            count = at + 1;
        }
        sum += size;
    }
    count
}

/// How tables of a part are laid out.
fn tuning(part: Part) -> Tuning {
    match part {
        // Points; those of creates miss.
        Part::Meta | Part::Item | Part::Key | Part::Position => {
            Tuning { block_bytes: 4 << 10, has_filter: true }
        }
        // Ranges only, of small keys.
        Part::Term | Part::Log => Tuning { block_bytes: 8 << 10, has_filter: false },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_like_size_are_merged() {
        assert_eq!(like(&[], 1), 0);
        assert_eq!(like(&[10], 1), 1);
        assert_eq!(like(&[10, 10, 10], 1), 3);
        assert_eq!(like(&[10, 12, 27, 100], 1), 3);
        assert_eq!(like(&[10, 100], 1), 1);
        assert_eq!(like(&[10, 100], 16), 2);
        assert_eq!(like(&[10, 1000], 16), 1);
        // A small one on top must not keep large ones apart.
        assert_eq!(like(&[1, 100, 100, 100], 1), 4);
        assert_eq!(like(&[1, 1000, 1000, 1000], 1), 4);
    }
}
