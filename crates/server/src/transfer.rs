//! NDJSON in and out: the commands `import` and `export`, and what `serve --load` loads.
//!
//! All of it works on an open database in this process, which is why the server must be stopped:
//! its directory is locked. In return nothing travels through HTTP.
//!
//! ```text
//!   seed/                     what --load takes
//!     blog/                   a database
//!       posts.ndjson          items of a container
//!       posts.json            its definition, if the partition key is not /id
//!       drafts.json           a definition alone makes an empty container
//! ```
//!
//! ELSEWHERE  From lines to commits: `import`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use base::Deadline;
use engine::ops::Throughput;
use engine::{Container, Engine, Error};
use item::Item;
use serde_json::{Value, json};

use crate::cli::{ExportFlags, ImportFlags, Target};
use crate::config::Usage;
use crate::database::Database;
use crate::import::{Import, Imported};
use crate::progress::{Progress, Unit};

/// Bytes read or written at once.
const BUFFER_BYTES: usize = 1 << 20;

/// `cosmolabe import`.
pub fn import(flags: &ImportFlags) -> Result<()> {
    let definition = new_definition(flags)?;
    let source = Source::open(&flags.file)?;
    let database = Database::for_command(&flags.data.directory())?;
    let imported = import_into(&database.engine, flags, definition, source);
    let closed = database.close();
    let Imported { items, bad } = imported?;
    closed?;
    match bad {
        0 => println!("imported {items} items into {}", flags.target),
        _ => println!("imported {items} items into {}, skipped {bad} bad lines", flags.target),
    }
    Ok(())
}

fn import_into(
    engine: &Engine,
    flags: &ImportFlags,
    definition: Option<Definition>,
    source: Source,
) -> Result<Imported> {
    let container = ensure_container(engine, &flags.target, definition)?;
    check_partition_key(&container, &flags.partition_key)?;
    source.import(engine, &container, flags.skip_bad)
}

/// The definition the flags give for a new container.
fn new_definition(flags: &ImportFlags) -> Result<Option<Definition>> {
    let mut definition = match &flags.definition {
        Some(path) => Some(Definition::read(path)?),
        None if flags.partition_key.is_empty() => None,
        None => Some(Definition::of_paths(&flags.partition_key)),
    };
    if let (Some(definition), Some(throughput)) = (&mut definition, flags.throughput) {
        definition.throughput = Some(throughput);
    }
    Ok(definition)
}

/// A partition key given for a container that exists must be the one it has.
fn check_partition_key(container: &Container, given: &[String]) -> Result<()> {
    let definition = container.definition().to_json();
    let paths = &definition["partitionKey"]["paths"];
    match given.is_empty() || *paths == json!(given) {
        true => Ok(()),
        false => bail!(
            "{}/{} exists with the partition key {paths}. Leave --partition-key out, or import \
             into another container.",
            container.database_name(),
            container.name()
        ),
    }
}

/// What a new container is like.
#[derive(Debug, PartialEq)]
struct Definition {
    body: Value,
    throughput: Option<u32>,
}

impl Definition {
    fn of_paths(paths: &[String]) -> Definition {
        let kind = if paths.len() > 1 { "MultiHash" } else { "Hash" };
        let key = json!({"paths": paths, "kind": kind, "version": 2});
        Definition { body: json!({"partitionKey": key}), throughput: None }
    }

    /// Reads a container definition; its `throughput` is ours, the rest is the service's.
    fn read(path: &Path) -> Result<Definition> {
        let read = || {
            let mut body: Value = serde_json::from_slice(&std::fs::read(path)?)?;
            let object = body.as_object_mut().context("it is not a JSON object")?;
            let throughput = match object.shift_remove("throughput") {
                None => None,
                Some(value) => {
                    let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
                    Some(number.context("its throughput is not a number of RU/s")?)
                }
            };
            Ok::<_, anyhow::Error>(Definition { body, throughput })
        };
        read().with_context(|| format!("container definition {}", path.display()))
    }
}

/// The container, created with its database if they do not exist and there is a definition.
fn ensure_container(
    engine: &Engine,
    target: &Target,
    definition: Option<Definition>,
) -> Result<Arc<Container>> {
    let Target { database, container } = target;
    match (engine.container(database, container), definition) {
        (Ok(found), _) => return Ok(found),
        (Err(Error::OwnerNotFound | Error::NotFound), Some(definition)) => {
            create_container(engine, target, definition).with_context(|| target.to_string())?;
        }
        (Err(Error::OwnerNotFound | Error::NotFound), None) => {
            let sentence = format!(
                "{target} does not exist. Say what its partition key is, and it is created: \
                 --partition-key /PATH"
            );
            return Err(Usage(sentence).into());
        }
        (Err(error), _) => return Err(error).with_context(|| target.to_string()),
    }
    Ok(engine.container(database, container)?)
}

fn create_container(engine: &Engine, target: &Target, definition: Definition) -> Result<()> {
    let ctx = engine.ctx(Deadline::never());
    let Definition { mut body, throughput } = definition;
    body["id"] = json!(target.container);
    // Checked first, so that a wrong definition does not leave an empty database behind.
    model::container::ContainerDefinition::parse(&body)?;
    if engine.read_database(&target.database).is_err() {
        engine.create_database(&ctx, &json!({"id": target.database}), None)?;
    }
    let throughput = throughput.map(Throughput::Manual);
    engine.create_container(&ctx, &target.database, &body, throughput)?;
    Ok(())
}

/// A file to import, or standard input.
struct Source {
    name: String,
    bytes: u64,
    reader: Box<dyn BufRead>,
}

impl Source {
    fn open(path: &Path) -> Result<Source> {
        if path == Path::new("-") {
            let reader = Box::new(BufReader::with_capacity(BUFFER_BYTES, std::io::stdin()));
            return Ok(Source { name: "standard input".into(), bytes: 0, reader });
        }
        let name = path.display().to_string();
        let file = File::open(path).with_context(|| format!("{name} cannot be opened"))?;
        let bytes = file.metadata().map_or(0, |metadata| metadata.len());
        Ok(Source { name, bytes, reader: Box::new(BufReader::with_capacity(BUFFER_BYTES, file)) })
    }

    fn import(
        self,
        engine: &Engine,
        container: &Arc<Container>,
        skips_bad: bool,
    ) -> Result<Imported> {
        let label = format!("import {}", container.name());
        let progress = Progress::new(label, Unit::Bytes, self.bytes);
        let import = Import { engine, container, name: &self.name, skips_bad, progress: &progress };
        let imported = import.run(self.reader);
        progress.finish();
        imported
    }
}

/// `cosmolabe export`.
pub fn export(flags: &ExportFlags) -> Result<()> {
    let database = Database::existing(&flags.data.directory())?;
    let exported = export_from(&database.engine, flags);
    let closed = database.close();
    let items = exported?;
    closed?;
    if let Some(out) = &flags.out {
        println!("exported {items} items of {} to {}", flags.target, out.display());
    }
    Ok(())
}

fn export_from(engine: &Engine, flags: &ExportFlags) -> Result<u64> {
    let Target { database, container } = &flags.target;
    let container = engine.container(database, container);
    let container = container.with_context(|| flags.target.to_string())?;
    if let Some(path) = &flags.definition {
        let text = format!("{:#}\n", container.definition().to_json());
        write_file(path, |out| Ok(out.write_all(text.as_bytes())?))?;
    }
    let export = |out: &mut dyn Write| write_items(engine, &container, flags, out);
    match &flags.out {
        Some(path) => write_file(path, export),
        None => {
            let mut out = BufWriter::with_capacity(BUFFER_BYTES, std::io::stdout().lock());
            let items = export(&mut out)?;
            out.flush()?;
            Ok(items)
        }
    }
}

fn write_items(
    engine: &Engine,
    container: &Container,
    flags: &ExportFlags,
    out: &mut dyn Write,
) -> Result<u64> {
    let total = container.statistics().iter().map(|partition| partition.documents).sum();
    let progress = Progress::new(format!("export {}", container.name()), Unit::Items, total);
    let mut done = 0;
    let mut failed = None;
    let mut each = |item: &Item| {
        match flags.system_properties {
            true => out.write_all(&item.text())?,
            false => out.write_all(item.to_draft().root().raw().as_bytes())?,
        }
        out.write_all(b"\n")?;
        done += 1;
        progress.set(done);
        Ok(())
    };
    let ctx = engine.ctx(Deadline::never());
    let exported = engine.export(&ctx, container, |item| {
        each(item).inspect_err(|error: &std::io::Error| failed = Some(error.to_string()))
    });
    progress.finish();
    match (exported, failed) {
        (_, Some(error)) => bail!("the items cannot be written: {error}"),
        (exported, None) => Ok(exported?),
    }
}

/// Writes a file beside its place and puts it there when it is complete.
fn write_file<T>(path: &Path, write: impl FnOnce(&mut dyn Write) -> Result<T>) -> Result<T> {
    let mut name = path.as_os_str().to_owned();
    name.push(".partial");
    let partial = PathBuf::from(name);
    let file = File::create(&partial);
    let file = file.with_context(|| format!("{} cannot be written", path.display()))?;
    let mut out = BufWriter::with_capacity(BUFFER_BYTES, file);
    let written = write(&mut out).and_then(|written| {
        out.flush()?;
        out.get_ref().sync_all()?;
        std::fs::rename(&partial, path)?;
        Ok(written)
    });
    if written.is_err() {
        // What is left of it helps nobody; the error is what counts.
        let _ = std::fs::remove_file(&partial);
    }
    written.with_context(|| format!("{} cannot be written", path.display()))
}

/// What a path given to `--load` holds of one container.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seed {
    items: Option<PathBuf>,
    definition: Option<PathBuf>,
}

/// Loads a file or directory into the database. Loading again changes no item twice.
pub fn load(engine: &Engine, path: &Path) -> Result<()> {
    let seeds = seeds(path).with_context(|| format!("--load {}", path.display()))?;
    for ((database, container), seed) in seeds {
        let target = Target { database, container };
        let definition = match &seed.definition {
            Some(path) => Definition::read(path)?,
            None => Definition::of_paths(&["/id".to_owned()]),
        };
        let container = ensure_container(engine, &target, Some(definition))?;
        if let Some(path) = &seed.items {
            let Imported { items, .. } = Source::open(path)?.import(engine, &container, false)?;
            tracing::info!(container = %target, items, "loaded");
        }
    }
    Ok(())
}

/// Everything there is to load, by database and container.
fn seeds(path: &Path) -> Result<BTreeMap<(String, String), Seed>> {
    let mut seeds = BTreeMap::new();
    if path.is_file() {
        let absolute = std::path::absolute(path)?;
        let definition = absolute.with_extension("json");
        for path in [&absolute, &definition].into_iter().filter(|path| path.is_file()) {
            add_seed(&mut seeds, path)?;
        }
    } else {
        for database in sorted(path)?.iter().filter(|path| path.is_dir()) {
            for path in sorted(database)?.iter().filter(|path| path.is_file()) {
                add_seed(&mut seeds, path)?;
            }
        }
    }
    match seeds.is_empty() {
        true => bail!("it holds nothing named <database>/<container>.ndjson"),
        false => Ok(seeds),
    }
}

/// Notes a file under the database and container its path names; other files are left out.
fn add_seed(seeds: &mut BTreeMap<(String, String), Seed>, path: &Path) -> Result<()> {
    let text =
        |part: Option<&std::ffi::OsStr>| part.and_then(|part| part.to_str()).map(str::to_owned);
    let database = text(path.parent().and_then(Path::file_name));
    let (Some(database), Some(container)) = (database, text(path.file_stem())) else {
        bail!("{} does not name a database and a container", path.display());
    };
    let seed = || seeds.entry((database, container)).or_default();
    match path.extension().and_then(|end| end.to_str()) {
        Some("ndjson" | "jsonl") => seed().items = Some(path.to_owned()),
        Some("json") => seed().definition = Some(path.to_owned()),
        Some(_) | None => {}
    }
    Ok(())
}

fn sorted(directory: &Path) -> Result<Vec<PathBuf>> {
    let read = || -> std::io::Result<Vec<PathBuf>> {
        std::fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect()
    };
    let mut paths = read().with_context(|| format!("{} cannot be read", directory.display()))?;
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_directory_seeds() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        for path in ["blog/posts.ndjson", "blog/posts.json", "blog/notes.txt", "shop/carts.json"] {
            std::fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            std::fs::write(root.join(path), "").unwrap();
        }
        std::fs::write(root.join("stray.ndjson"), "").unwrap();
        let names = |path: &Path| -> Vec<String> {
            let seeds = seeds(path).unwrap();
            let line = |((database, container), seed): (&(String, String), &Seed)| {
                let (items, definition) = (seed.items.is_some(), seed.definition.is_some());
                format!("{database}/{container} {items} {definition}")
            };
            seeds.iter().map(line).collect()
        };
        assert_eq!(names(root), ["blog/posts true true", "shop/carts false true"]);
        assert_eq!(names(&root.join("blog/posts.ndjson")), ["blog/posts true true"]);
        assert!(seeds(&root.join("blog")).is_err());
        assert!(seeds(&root.join("nowhere")).is_err());
    }

    #[test]
    fn definitions() {
        let two = Definition::of_paths(&["/a".into(), "/b".into()]);
        assert_eq!(two.body["partitionKey"]["kind"], "MultiHash");
        let file = tempfile::NamedTempFile::new().unwrap();
        let read = |text: &str| {
            std::fs::write(file.path(), text).unwrap();
            Definition::read(file.path()).ok()
        };
        let expect = Definition { body: json!({"partitionKey": {}}), throughput: Some(400) };
        assert_eq!(read(r#"{"partitionKey": {}, "throughput": 400}"#), Some(expect));
        assert_eq!(read(r#"{"throughput": "400"}"#), None);
        assert_eq!(read("[]"), None);
        assert_eq!(read("{"), None);
    }
}
