//! Backup, restore and verification of a data directory.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use store::Durability;

use crate::cli::{BackupFlags, DataFlags, RestoreFlags};
use crate::database::{Database, is_in_use, open_store, require_database};
use crate::progress::{Progress, Unit};
use crate::requests::{ask, checkpoint, new_id, partial_of};

/// Written last: a directory without it is not opened as a store.
const FORMAT: &str = "FORMAT";
const LOCK: &str = "LOCK";

/// `cosmolabe backup`: by ourselves if we can have the directory, else by the server that has it.
pub fn backup(flags: &BackupFlags) -> Result<()> {
    let data_dir = flags.data.directory();
    require_database(&data_dir)?;
    let out = std::path::absolute(&flags.out)?;
    if out.exists() {
        bail!("{} exists already. Choose another --out.", flags.out.display());
    }
    if let Some(parent) = out.parent() {
        std::fs::create_dir_all(parent)
            .with_context(|| format!("{} cannot be made", parent.display()))?;
    }
    let id = new_id();
    let partial = partial_of(&out, &id);
    let progress = Progress::new("backup", Unit::Bytes, 0);
    let copied = match is_in_use(&data_dir) {
        true => ask(&data_dir, &out, &id, || progress.set(bytes_below(&partial))),
        false => copy_store(&data_dir, &out, &id, || progress.set(bytes_below(&partial))),
    };
    progress.finish();
    copied?;
    println!("backed up {} to {}", data_dir.display(), flags.out.display());
    Ok(())
}

/// Opens the store and copies it, calling `progress` from time to time.
fn copy_store(data_dir: &Path, out: &Path, id: &str, mut progress: impl FnMut()) -> Result<()> {
    let store = open_store(data_dir, Durability::Sync, 16 << 20)?;
    let copied = std::thread::scope(|scope| {
        let copying = scope.spawn(|| checkpoint(&store, out, id));
        while !copying.is_finished() {
            std::thread::sleep(std::time::Duration::from_millis(50));
            progress();
        }
        copying.join().expect("a copy does not panic")
    });
    let closed = store.close();
    copied?;
    Ok(closed?)
}

/// `cosmolabe restore`.
pub fn restore(flags: &RestoreFlags) -> Result<()> {
    let (from, to) = (&flags.from, flags.data.directory());
    if !from.join(FORMAT).exists() {
        bail!("{} is no complete backup: it has no {FORMAT} file.", from.display());
    }
    let is_taken = std::fs::read_dir(&to).is_ok_and(|mut entries| entries.next().is_some());
    if is_taken {
        bail!("{} is not empty. Restore into a new directory with --data-dir.", to.display());
    }
    let progress = Progress::new("restore", Unit::Bytes, bytes_below(from));
    let mut copy = Copy { progress: &progress, bytes: 0 };
    let copied = copy
        .all(from, &to)
        .with_context(|| format!("{} cannot be copied to {}", from.display(), to.display()));
    progress.finish();
    let checked = copied.and_then(|()| check(&to));
    if checked.is_err() {
        // It was empty before. What stays if even this fails is refused for lack of `FORMAT`.
        let _ = std::fs::remove_file(to.join(FORMAT));
        let _ = std::fs::remove_dir_all(&to);
    }
    checked?;
    println!("restored {} to {}", from.display(), to.display());
    Ok(())
}

/// Opens what was copied: a newer format or a damaged file is refused here, not at the next start.
fn check(directory: &Path) -> Result<()> {
    Database::existing(directory)?.close()
}

/// A copy of a directory under way.
struct Copy<'a> {
    progress: &'a Progress,
    bytes: u64,
}

impl Copy<'_> {
    /// Copies everything, `FORMAT` last.
    fn all(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::create_dir_all(to)?;
        self.directory(from, to, &[LOCK, FORMAT])?;
        self.file(&from.join(FORMAT), &to.join(FORMAT))?;
        sync_directory(to)
    }

    fn directory(&mut self, from: &Path, to: &Path, except: &[&str]) -> io::Result<()> {
        for entry in std::fs::read_dir(from)? {
            let entry = entry?;
            let name = entry.file_name();
            let (from, to) = (entry.path(), to.join(&name));
            match entry.file_type()?.is_dir() {
                _ if except.iter().any(|except| name == *except) => {}
                true => {
                    std::fs::create_dir(&to)?;
                    self.directory(&from, &to, &[])?;
                }
                false => self.file(&from, &to)?,
            }
        }
        sync_directory(to)
    }

    fn file(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let mut target = File::create_new(to)?;
        self.bytes += io::copy(&mut File::open(from)?, &mut target)?;
        self.progress.set(self.bytes);
        target.sync_all()
    }
}

#[cfg(unix)]
fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

#[cfg(not(unix))]
fn sync_directory(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Bytes of all files below a directory, as far as they can be seen.
fn bytes_below(directory: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(directory) else { return 0 };
    let bytes = |path: PathBuf, metadata: std::fs::Metadata| match metadata.is_dir() {
        true => bytes_below(&path),
        false => metadata.len(),
    };
    entries.flatten().filter_map(|e| Some(bytes(e.path(), e.metadata().ok()?))).sum()
}

/// `cosmolabe verify`.
pub fn verify(flags: &DataFlags) -> Result<()> {
    let database = Database::existing(&flags.directory())?;
    let engine = &database.engine;
    let containers = engine.containers();
    let sizes = containers.iter().flat_map(|container| container.statistics());
    let total = sizes.map(|partition| partition.documents).sum();
    let progress = Progress::new("verify", Unit::Items, total);
    let report = engine.verify(|items| progress.set(items));
    progress.finish();
    let closed = database.close();
    let damaged = || format!("{} is damaged", flags.directory().display());
    let report = report.with_context(damaged)?;
    report.findings.iter().for_each(|finding| println!("{finding}"));
    println!(
        "verified {} items and {} index keys in {} containers: {}",
        report.items,
        report.terms,
        containers.len(),
        match report.findings.len() {
            0 => "nothing is wrong".to_owned(),
            count => format!("{count} findings"),
        }
    );
    closed?;
    match report.findings.is_empty() {
        true => Ok(()),
        false => bail!("{}. Keep a copy of it, and restore a backup.", damaged()),
    }
}
