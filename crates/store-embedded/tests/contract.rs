//! The embedded store keeps the contract: with either durability, and while memory becomes tables and
//! tables are merged all the time.

use std::path::Path;

use store::suite::Harness;
use store::{Durability, Store};
use store_embedded::{EmbeddedStore, Options};

fn open(path: &Path, durability: Durability) -> Box<dyn Store> {
    open_with(path, Options { durability, cache_bytes: 8 << 20, ..Options::default() })
}

fn open_with(path: &Path, options: Options) -> Box<dyn Store> {
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

mod busy {
    use super::*;

    /// Every few commits fill a journal; blocks hardly stay in the cache.
    fn harness() -> Harness {
        let open = |path: &Path| {
            let journal_bytes_max = 2 << 10;
            open_with(
                path,
                Options { journal_bytes_max, cache_bytes: 4 << 10, ..Options::default() },
            )
        };
        Harness { open, open_copy: open, is_persistent: true, model_runs: 24 }
    }

    store::contract!(harness);
}
