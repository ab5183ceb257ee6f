//! The embedded store keeps the contract, with either durability.

use std::path::Path;

use store::suite::Harness;
use store::{Durability, Store};
use store_embedded::{EmbeddedStore, Options};

fn open(path: &Path, durability: Durability) -> Box<dyn Store> {
    let options = Options { durability, cache_bytes: 8 << 20, ..Options::default() };
    Box::new(EmbeddedStore::open(path, options).expect("the store opens"))
}

mod sync {
    use super::*;

    fn harness() -> Harness {
        let open = |path: &Path| open(path, Durability::Sync);
        Harness { open, open_copy: open, is_persistent: true, model_runs: 12 }
    }

    store::contract!(harness);
}

mod relaxed {
    use super::*;

    fn harness() -> Harness {
        let open = |path: &Path| open(path, Durability::Relaxed);
        Harness { open, open_copy: open, is_persistent: true, model_runs: 12 }
    }

    store::contract!(harness);
}
