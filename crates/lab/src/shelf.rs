//! The workloads that come with the binary, and finding one by name or path.

use std::path::Path;

use crate::read::Source;

/// (workload, file, text) of every file below `workloads/`.
const FILES: &[(&str, &str, &str)] = include!(concat!(env!("OUT_DIR"), "/workloads.rs"));

/// The file every workload directory has.
const MAIN: &str = "workload.toml";

/// Names of the workloads that come with the binary.
pub fn names() -> Vec<&'static str> {
    FILES.iter().filter(|(_, file, _)| *file == MAIN).map(|(name, ..)| *name).collect()
}

/// A workload: a path to a file or its directory, or the name of one that comes with the binary.
pub fn find(word: &str) -> Result<Source<'static>, String> {
    let path = Path::new(word);
    let file = if path.is_dir() { path.join(MAIN) } else { path.to_owned() };
    if file.is_file() {
        return Source::open(&file).map_err(|error| format!("{}: {error}", file.display()));
    }
    built_in(word).ok_or_else(|| {
        format!("there is no file and no workload {word:?}; workloads are {}", names().join(", "))
    })
}

fn built_in(name: &str) -> Option<Source<'static>> {
    let text = |wanted: &str, file: &str| {
        let is_it = |known: &&(&str, &str, &str)| known.0 == wanted && known.1 == file;
        FILES.iter().find(is_it).map(|(.., text)| (*text).to_owned())
    };
    let owner = name.to_owned();
    let beside = move |file: &str| {
        text(&owner, file).ok_or_else(|| format!("workload {owner} has no such file"))
    };
    let main = text(name, MAIN)?;
    let name = format!("workloads/{name}/{MAIN}");
    Some(Source { name, text: main, beside: Box::new(beside) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workload_of_the_repository_is_right() {
        assert!(!names().is_empty());
        for name in names() {
            let workload = find(name).unwrap().read();
            let workload = workload.unwrap_or_else(|mistake| panic!("{mistake}"));
            assert_eq!(workload.name, name);
            assert!(!workload.about.is_empty(), "{name} says nothing about itself");
        }
    }

    #[test]
    fn what_is_nowhere() {
        let Err(error) = find("nowhere") else { panic!("found") };
        assert!(error.contains("there is no file and no workload \"nowhere\""), "{error}");
    }
}
