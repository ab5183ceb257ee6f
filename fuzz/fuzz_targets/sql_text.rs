//! Any text as a query, or as the condition of a patch.
//!
//! What is checked is in `sql_text/checks.rs`, which the ordinary tests of the sql crate run over
//! the corpus too.
#![no_main]

#[path = "sql_text/checks.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::run(data));
