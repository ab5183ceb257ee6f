//! Any bytes as the state in a continuation, behind the seal.
//!
//! What is checked is in `query_state/checks.rs`, which the ordinary tests of the query crate run
//! over the corpus too.
#![no_main]

#[path = "query_state/checks.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::run(data));
