//! What a reader would otherwise have to check.
//!
//! LAYOUT     `graph` (which crate may use which), `sources` (headers, lengths, wire spellings),
//!            `links` (relative links in documents), `golden` (golden files that no test reads).

mod golden;
mod graph;
mod links;
mod sources;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::test::Outcome;
use crate::workspace::Workspace;

/// Directories that hold nothing written by hand.
const SKIPPED: [&str; 5] = ["target", "node_modules", "cosmolabe-data", "__pycache__", "fixtures"];

/// Checks everything; the error lists all findings.
pub fn check(workspace: &Workspace) -> Result<Outcome> {
    let files = Files::of(&workspace.root)?;
    let mut findings = graph::check(workspace);
    findings.extend(sources::check(&files));
    findings.extend(links::check(&files));
    findings.extend(golden::check(&files));
    if !findings.is_empty() {
        bail!("{} findings:\n  {}", findings.len(), findings.join("\n  "));
    }
    println!("{} files are tidy", files.all.len());
    Ok(Outcome::CLEAN)
}

/// The files of the repository.
struct Files {
    root: PathBuf,
    /// Paths from the root with `/` between their parts, in order.
    all: Vec<String>,
}

impl Files {
    fn of(root: &Path) -> Result<Files> {
        let mut files = Files { root: root.to_owned(), all: Vec::new() };
        files.walk("")?;
        files.all.sort();
        Ok(files)
    }

    fn walk(&mut self, directory: &str) -> Result<()> {
        let path = self.root.join(directory);
        let entries = std::fs::read_dir(&path).with_context(|| path.display().to_string())?;
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let kind = entry.file_type()?;
            let is_hidden = name.starts_with('.') && name != ".ci";
            if is_hidden || (kind.is_dir() && SKIPPED.contains(&name.as_str())) {
                continue;
            }
            let path = if directory.is_empty() { name } else { format!("{directory}/{name}") };
            match kind.is_dir() {
                true => self.walk(&path)?,
                false => self.all.push(path),
            }
        }
        Ok(())
    }

    /// The files whose names end like this.
    fn ending<'a>(&'a self, end: &'a str) -> impl Iterator<Item = &'a str> {
        self.all.iter().map(String::as_str).filter(move |path| path.ends_with(end))
    }

    /// The text of a file; one that cannot be read, or is no text, is empty.
    fn text(&self, path: &str) -> String {
        std::fs::read_to_string(self.root.join(path)).unwrap_or_default()
    }
}
