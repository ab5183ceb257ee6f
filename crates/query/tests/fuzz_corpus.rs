//! The fuzz target's checks over its corpus, so that what was found once stays found.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

#[path = "../../../fuzz/fuzz_targets/query_state/checks.rs"]
mod checks;

use std::path::Path;

fn corpus() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/query_state");
    let files = std::fs::read_dir(folder).unwrap();
    files.map(|file| std::fs::read(file.unwrap().path()).unwrap()).collect()
}

#[test]
fn the_corpus_holds() {
    let files = corpus();
    assert!(files.len() >= 10, "{} files", files.len());
    files.iter().for_each(|file| checks::run(file));
    let states = files.iter().filter(|file| query::State::decode(file).is_ok()).count();
    assert!(states >= 6, "{states} of the files are states: is the version theirs?");
}

#[test]
fn damage_of_it_holds() {
    for mut file in corpus() {
        (0..file.len()).for_each(|at| checks::run(&file[..at]));
        for at in 0..file.len().min(100) {
            for damage in [0x01, 0x7f, 0x80, 0xff] {
                file[at] ^= damage;
                checks::run(&file);
                file[at] ^= damage;
            }
        }
    }
}
