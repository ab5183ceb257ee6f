//! How fast the engine takes durable creates, without a network: writers on one logical partition
//! and on different ones, and where the time of one write goes.
//!
//! ```text
//! cargo run --release -p engine --example write_rate [seconds]
//! ```

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use base::Deadline;
use engine::ops::{EtagCondition, WriteItem, WriteKind};
use engine::{Container, Engine, Options};
use item::Draft;
use model::partition_key::PartitionKey;
use serde_json::json;

const WRITERS: u64 = 64;

thread_local! {
    static RUNTIME: tokio::runtime::Runtime =
        tokio::runtime::Builder::new_current_thread().build().unwrap();
}

fn main() {
    let seconds = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(5);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    let store =
        store_embedded::EmbeddedStore::open(path, store_embedded::Options::default()).unwrap();
    let engine = Engine::open(Arc::new(store), Options::new(64 << 20)).unwrap();
    let ctx = engine.ctx(Deadline::never());
    engine.create_database(&ctx, &json!({"id": "d"}), None).unwrap();
    let definition = json!({"id": "c", "partitionKey": {"paths": ["/pk"], "version": 2}});
    engine.create_container(&ctx, "d", &definition, None).unwrap();
    let container = engine.container("d", "c").unwrap();
    for round in 0..2 {
        for (name, is_hot) in
            [("different logical partitions", false), ("one logical partition", true)]
        {
            let rate = measure(&engine, &container, seconds, is_hot, round);
            println!("{WRITERS} writers on {name}: {rate:.0} creates/s");
        }
    }
    let groups = engine.store().statistics();
    println!("{:.1} commits per sync", groups.commits as f64 / groups.groups.max(1) as f64);
}

fn measure(
    engine: &Engine,
    container: &Arc<Container>,
    seconds: u64,
    is_hot: bool,
    round: u64,
) -> f64 {
    let count = AtomicU64::new(0);
    let started = Instant::now();
    let end = started + Duration::from_secs(seconds);
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let count = &count;
            scope.spawn(move || {
                let mut n = 0;
                while Instant::now() < end {
                    n += 1;
                    let key = if is_hot {
                        format!("hot{round}")
                    } else {
                        format!("{round}-{writer}-{n}")
                    };
                    create(engine, container, &key, &format!("{writer}-{n}-{is_hot}"));
                    count.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    count.load(Ordering::Relaxed) as f64 / started.elapsed().as_secs_f64()
}

fn create(engine: &Engine, container: &Arc<Container>, key: &str, id: &str) {
    let body = format!(
        r#"{{"id":"{id}","pk":"{key}","type":"post","title":"a title of some length","views":{},
        "tags":["a","b","c"],"author":{{"name":"somebody","age":41}},"published":true,"text":"{}"}}"#,
        id.len(),
        "lorem ipsum ".repeat(60)
    );
    let draft = Draft::parse(body.as_bytes()).unwrap();
    let key = PartitionKey::parse(&json!([key]).to_string()).unwrap();
    let ctx = engine.ctx(Deadline::never());
    let guard = RUNTIME.with(|runtime| runtime.block_on(engine.lock(container, &key)));
    let write = WriteItem {
        kind: WriteKind::Create(draft),
        if_match: EtagCondition::None,
        if_none_match: EtagCondition::None,
        is_indexed: true,
    };
    engine.write(&ctx, guard, write).wait().unwrap();
}
