//! The fuzz target's checks over its corpus, so that what was found once stays found.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

#[path = "../../../fuzz/fuzz_targets/sql_text/checks.rs"]
mod checks;

use std::path::Path;

fn corpus() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/sql_text");
    let files = std::fs::read_dir(folder).unwrap();
    files.map(|file| std::fs::read(file.unwrap().path()).unwrap()).collect()
}

#[test]
fn the_corpus_holds() {
    let files = corpus();
    assert!(files.len() >= 20, "{} files", files.len());
    files.iter().for_each(|file| checks::run(file));
}

#[test]
fn its_beginnings_and_ends_hold() {
    for file in corpus().iter().filter(|file| file.len() < 1000) {
        (0..file.len()).for_each(|at| checks::run(&file[..at]));
        (0..file.len()).for_each(|at| checks::run(&file[at..]));
    }
}
