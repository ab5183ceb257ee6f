//! Any bytes as a body: JSON text, binary JSON, a patch value, or a stored item.
//!
//! What is checked is in `item_ingest/checks.rs`, which the ordinary tests of the item crate run
//! over the corpus too.
#![no_main]

#[path = "item_ingest/checks.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::run(data));
