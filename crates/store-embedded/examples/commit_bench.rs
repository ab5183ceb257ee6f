//! Measures the committer: durable commits per second with many writers, and the cost of a relaxed
//! commit with one.
//!
//! A commit is what one item write makes: an item of 1.2 KB, its identity, 14 index terms, a log
//! entry and two counters.
//!
//! ```text
//!   cargo run --release -p store-embedded --example commit_bench -- [seconds] [writers] [directory]
//! ```

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use store::{Commit, Durability, LogId, Mark, Merge, Space, Store, Write};
use store_embedded::{EmbeddedStore, Options};

fn main() -> store::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, otherwise| {
        arguments.get(at).and_then(|text| text.parse().ok()).unwrap_or(otherwise)
    };
    let (seconds, writers) = (number(0, 10), number(1, 64));
    let directory = arguments.get(2).map_or("commit_bench.data", String::as_str);
    durable(&Path::new(directory).join("durable"), seconds, writers)?;
    relaxed(&Path::new(directory).join("relaxed"), seconds)?;
    let _ = std::fs::remove_dir_all(directory);
    Ok(())
}

fn durable(path: &Path, seconds: u64, writers: u64) -> store::Result<()> {
    let _ = std::fs::remove_dir_all(path);
    let store = EmbeddedStore::open(path, Options::default())?;
    let next = AtomicU64::new(1);
    let (started, cpu) = (Instant::now(), cpu_time());
    std::thread::scope(|scope| {
        for _ in 0..writers {
            scope.spawn(|| {
                while started.elapsed() < Duration::from_secs(seconds) {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    store.commit(commit(number, None)).wait().expect("the disk works");
                }
            });
        }
    });
    let (elapsed, cpu) = (started.elapsed(), cpu_time() - cpu);
    let figures = store.statistics();
    println!(
        "durable, {writers} writers: {:.0} commits/s, mean group {:.1}, {:.1} CPU us/commit, {} MB",
        figures.commits as f64 / elapsed.as_secs_f64(),
        figures.commits as f64 / figures.groups as f64,
        cpu.as_secs_f64() * 1e6 / figures.commits as f64,
        figures.bytes >> 20,
    );
    reads(&store, figures.commits);
    store.close()?;
    drop(store);
    let started = Instant::now();
    let store = EmbeddedStore::open(path, Options::default())?;
    println!("open after an orderly close: {:.0} ms", started.elapsed().as_secs_f64() * 1e3);
    reads(&store, figures.commits);
    Ok(())
}

fn reads(store: &EmbeddedStore, commits: u64) {
    let (count, started) = (200_000, Instant::now());
    let mut found = 0;
    for n in 0..count {
        let view = store.view();
        let key = ordinal(1 + mix(n) % commits);
        found += u64::from(view.reader().get(Space::Item, &key).expect("reads").is_some());
    }
    let each = started.elapsed().as_secs_f64() * 1e6 / count as f64;
    println!("point reads: {each:.2} us each, {:.1} % found", found as f64 * 100.0 / count as f64);
}

fn relaxed(path: &Path, seconds: u64) -> store::Result<()> {
    let _ = std::fs::remove_dir_all(path);
    let store = EmbeddedStore::open(path, Options::default())?;
    let (started, cpu) = (Instant::now(), cpu_time());
    let mut number = 0;
    while started.elapsed() < Duration::from_secs(seconds) {
        number += 1;
        store.commit(commit(number, Some(Durability::Relaxed))).wait()?;
    }
    println!(
        "relaxed, one writer: {:.0} commits/s, {:.1} CPU us/commit",
        number as f64 / started.elapsed().as_secs_f64(),
        (cpu_time() - cpu).as_secs_f64() * 1e6 / number as f64,
    );
    Ok(())
}

fn commit(number: u64, durability: Option<Durability>) -> Commit {
    let key = ordinal(number);
    let mut body = vec![0u8; 1_200];
    for (at, chunk) in body.chunks_mut(8).enumerate() {
        let noise = mix(number * 1_000 + at as u64 / 3).to_le_bytes();
        chunk.copy_from_slice(&noise[..chunk.len()]);
    }
    let mut writes = vec![
        Write::Put(Space::Item, key.clone(), body.into()),
        Write::Put(Space::Key, prefixed(b"partition/", mix(number)), key.clone()),
        Write::Put(Space::Log, prefixed(b"log/", number), key.clone()),
    ];
    for path in 0..14u64 {
        let mut term = path.to_be_bytes().to_vec();
        term.extend_from_slice(&mix(number * 14 + path).to_be_bytes());
        term.extend_from_slice(&key);
        writes.push(Write::Put(Space::Term, term.into(), Bytes::new()));
    }
    let merges = vec![
        Merge::Add(Space::Meta, prefixed(b"count/", number % 100), [1, 1_200]),
        Merge::Add(Space::Meta, Bytes::from_static(b"total"), [1, 1_200]),
    ];
    let marks = vec![Mark { log: LogId(1 + (number % 4) as u32), position: 0 }];
    Commit { writes, merges, marks, durability, ..Commit::default() }
}

/// 24 bits of locality and a sequence, as the layer above makes them.
fn ordinal(number: u64) -> Bytes {
    let locality = mix(number % 10_000) & 0xff_ffff;
    Bytes::copy_from_slice(&((locality << 36) | number).to_be_bytes())
}

fn prefixed(prefix: &[u8], number: u64) -> Bytes {
    [prefix, &number.to_be_bytes()].concat().into()
}

fn mix(number: u64) -> u64 {
    let mixed = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb)
}

/// Processor time of this process, all threads.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let fields: Vec<u64> =
        after_name.split_whitespace().map(|field| field.parse().unwrap_or(0)).collect();
    let ticks = fields.get(11).unwrap_or(&0) + fields.get(12).unwrap_or(&0);
    Duration::from_millis(ticks * 10)
}
