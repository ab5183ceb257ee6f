//! The memory store keeps the contract.

use store::suite::Harness;
use store_memory::MemoryStore;

fn harness() -> Harness {
    Harness {
        open: |_| Box::new(MemoryStore::new()),
        open_copy: |path| Box::new(MemoryStore::load(path).expect("a copy can be loaded")),
        is_persistent: false,
        model_runs: 256,
    }
}

store::contract!(harness);
