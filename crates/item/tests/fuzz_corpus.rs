//! The fuzz target's checks over its corpus, so that what was found once stays found.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

#[path = "../../../fuzz/fuzz_targets/item_ingest/checks.rs"]
mod checks;

use std::path::Path;

#[test]
fn the_corpus_holds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/item_ingest");
    let files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(files.len() >= 20, "{} files", files.len());
    for file in files {
        checks::run(&std::fs::read(&file).unwrap());
    }
}

#[test]
fn the_grammar_cases_hold() {
    for line in include_str!("json_cases.txt").lines() {
        checks::run(line.get(8..).unwrap_or_default().as_bytes());
    }
}
