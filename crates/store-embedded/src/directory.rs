//! The files of ours around the engine's.
//!
//! ```text
//!   LOCK      locked by the process that has the store open
//!   FORMAT    "cosmolabe 5\n": version of everything below
//!   STATE     how the last process left: "clean", "sync" or "relaxed"
//!   engine/   journals, tables and the list of them: see `engine`
//! ```
//!
//! `STATE` holds the durability of the running process until it closes in an orderly way, so an
//! unclean stop leaves behind whether answered commits may be missing. A store without `STATE` is
//! treated as the worst case.

use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use store::{Durability, Error, Result};

const LOCK: &str = "LOCK";
const FORMAT: &str = "FORMAT";
const STATE: &str = "STATE";
const ENGINE: &str = "engine";
/// The first file of the engine that counts.
const ENGINE_EXISTS: &str = crate::engine::manifest::NAME;
/// Ending of a file that is not yet complete.
const NEW: &str = "new";

/// The only format this version reads and writes. Since 3 the engine is our own,
/// since 4 blocks have their keys together, since 5 marks of them.
const FORMAT_VERSION: u32 = 5;

/// How often, and how long in between, a lock that is held is tried.
const LOCK_TRIES: u32 = 10;
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// How the last process that had the store open left it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// There was none.
    New,
    /// In an orderly way: everything is in tables, the journal is not needed.
    Clean,
    /// It was killed or lost power; every answered commit had been synced.
    UncleanSync,
    /// It was killed or lost power, and may have answered commits that are lost.
    UncleanRelaxed,
}

/// A data directory, locked.
pub(crate) struct Directory {
    path: PathBuf,
    last_stop: Stop,
    is_marked_relaxed: AtomicBool,
    /// Unlocked when closed.
    _lock: File,
}

impl Directory {
    /// Locks the directory and reads or writes its format.
    pub(crate) fn open(path: &Path) -> Result<Directory> {
        std::fs::create_dir_all(path).map_err(|e| unusable(path, "cannot be created", &e))?;
        let lock = lock(path)?;
        let last_stop = match check_format(path)? {
            true => recover_state(path)?,
            false => {
                write_durably(path, FORMAT, &format!("cosmolabe {FORMAT_VERSION}\n"))?;
                Stop::New
            }
        };
        let path = path.to_owned();
        Ok(Directory { path, last_stop, is_marked_relaxed: AtomicBool::new(false), _lock: lock })
    }

    /// Where the engine keeps its files.
    pub(crate) fn engine_path(&self) -> PathBuf {
        self.path.join(ENGINE)
    }

    /// How the store was left before this process opened it.
    pub(crate) fn last_stop(&self) -> Stop {
        self.last_stop
    }

    /// Removes the clean mark, durably.
    pub(crate) fn mark_running(&self, durability: Durability) -> Result<()> {
        match durability {
            Durability::Relaxed => self.mark_relaxed(),
            Durability::Sync => write_durably(&self.path, STATE, "sync\n"),
        }
    }

    /// Notes that commits may be answered before they are synced. Cheap after the first time.
    pub(crate) fn mark_relaxed(&self) -> Result<()> {
        if !self.is_marked_relaxed.load(Ordering::Relaxed) {
            write_durably(&self.path, STATE, "relaxed\n")?;
            self.is_marked_relaxed.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Notes that nothing is left to recover.
    pub(crate) fn mark_clean(&self) -> Result<()> {
        write_durably(&self.path, STATE, "clean\n")
    }
}

/// Turns a directory whose engine is complete and closed into a store that was closed cleanly.
///
/// `FORMAT` comes last: a directory without it is not opened.
pub(crate) fn seal(path: &Path) -> Result<()> {
    write_durably(path, STATE, "clean\n")?;
    write_durably(path, FORMAT, &format!("cosmolabe {FORMAT_VERSION}\n"))
}

/// Where the engine of a directory that is being made goes.
pub(crate) fn engine_path(path: &Path) -> PathBuf {
    path.join(ENGINE)
}

fn lock(path: &Path) -> Result<File> {
    let at = path.join(LOCK);
    let file = File::options().create(true).truncate(false).write(true).open(at);
    let file = file.map_err(|e| unusable(path, "cannot be locked", &e))?;
    match try_lock(&file) {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::Unusable(format!(
            "{} is in use by another process. Stop it, or choose another data directory.",
            path.display()
        ))),
        Err(TryLockError::Error(e)) => Err(unusable(path, "cannot be locked", &e)),
    }
}

/// Takes the lock. A process that is about to end, or a child that was forked and has not yet begun
/// its own program, may have it for a moment longer than the store was open.
fn try_lock(file: &File) -> std::result::Result<(), TryLockError> {
    for _ in 0..LOCK_TRIES {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
            answer => return answer,
        }
    }
    file.try_lock()
}

/// Whether the directory holds a store; if not, it is empty. Refuses what this version cannot read.
fn check_format(path: &Path) -> Result<bool> {
    let text = match std::fs::read_to_string(path.join(FORMAT)) {
        Ok(text) => text,
        Err(e) if e.kind() == ErrorKind::NotFound => {
            refuse_foreign_files(path)?;
            return Ok(false);
        }
        Err(e) => return Err(unusable(path, "has an unreadable FORMAT file", &e)),
    };
    let version = text.strip_prefix("cosmolabe ").and_then(|rest| rest.trim_end().parse().ok());
    match version {
        Some(FORMAT_VERSION) => Ok(true),
        Some(version) if version > FORMAT_VERSION => Err(Error::Unusable(format!(
            "{} was written by a newer version (format {version}, this one reads \
             {FORMAT_VERSION}). Use that version, or choose another data directory.",
            path.display()
        ))),
        Some(version @ 1..) => Err(Error::Unusable(format!(
            "{} was written by an earlier version (format {version}, this one reads \
             {FORMAT_VERSION}). Export it with that version, and import into a new directory.",
            path.display()
        ))),
        Some(0) | None => Err(Error::Unusable(format!(
            "{} has a FORMAT file that is not understood. Restore the directory from a checkpoint, \
             or choose another.",
            path.display()
        ))),
    }
}

/// A directory without `FORMAT` must hold nothing but what an interrupted creation leaves behind.
fn refuse_foreign_files(path: &Path) -> Result<()> {
    let entries = std::fs::read_dir(path).map_err(|e| unusable(path, "cannot be read", &e))?;
    for entry in entries {
        let name = entry.map_err(|e| unusable(path, "cannot be read", &e))?.file_name();
        let is_ours = name == LOCK || Path::new(&name).extension().is_some_and(|end| end == NEW);
        if !is_ours {
            return Err(Error::Unusable(format!(
                "{} is not empty and holds no complete store (found {}). Choose an empty directory.",
                path.display(),
                name.display()
            )));
        }
    }
    Ok(())
}

/// How the store was left. One whose creation was interrupted is created again: it has no `STATE`,
/// which is written before the first commit, and the engine has no list of tables yet.
fn recover_state(path: &Path) -> Result<Stop> {
    let state = read_state(path)?;
    let engine = path.join(ENGINE);
    if state.is_none() && !engine.join(ENGINE_EXISTS).exists() {
        match std::fs::remove_dir_all(&engine) {
            Err(e) if e.kind() != ErrorKind::NotFound => {
                return Err(unusable(path, "cannot be created again", &e));
            }
            Ok(()) | Err(_) => return Ok(Stop::New),
        }
    }
    Ok(state.unwrap_or(Stop::UncleanRelaxed))
}

fn read_state(path: &Path) -> Result<Option<Stop>> {
    match std::fs::read_to_string(path.join(STATE)) {
        Ok(text) => Ok(Some(match text.trim_end() {
            "clean" => Stop::Clean,
            "sync" => Stop::UncleanSync,
            _ => Stop::UncleanRelaxed,
        })),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(unusable(path, "has an unreadable STATE file", &e)),
    }
}

/// Replaces a small file so that a crash leaves the old or the new content.
pub(crate) fn write_durably(directory: &Path, name: &str, text: &str) -> Result<()> {
    let path = directory.join(name);
    let new = path.with_extension(NEW);
    let write = || {
        let mut file = File::create(&new)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&new, &path)?;
        sync_directory(directory)
    };
    write().map_err(|e| Error::Fault(format!("cannot write {}: {e}", path.display())))
}

#[cfg(unix)]
fn sync_directory(path: &Path) -> std::io::Result<()> {
    File::open(path)?.sync_all()
}

#[cfg(not(unix))]
fn sync_directory(_: &Path) -> std::io::Result<()> {
    Ok(())
}

fn unusable(path: &Path, what: &str, error: &std::io::Error) -> Error {
    Error::Unusable(format!("{} {what}: {error}", path.display()))
}
