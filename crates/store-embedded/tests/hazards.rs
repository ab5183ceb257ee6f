//! What can go wrong around a store: other processes, other versions, full queues, failing disks,
//! damaged files, journals that grow. Each of these was seen or is documented; none may lose data
//! silently, panic or hang.

mod common;

use std::path::Path;
use std::time::{Duration, Instant};

use bytes::Bytes;
use common::{
    check_sums, commit_numbers, crash_image, journal, journal_bytes, noise, numbered, numbers,
    open, options, refusal,
};
use store::{Commit, Durability, Error, LogId, Mark, Outcome, Space, Store, Token, Write};
use store_embedded::{EmbeddedStore, Options, POSITIONS_GAP};
use tempfile::TempDir;

fn temporary() -> TempDir {
    tempfile::tempdir().expect("temporary")
}

fn put(key: &str, value: Bytes) -> Commit {
    let key = Bytes::copy_from_slice(key.as_bytes());
    Commit { writes: vec![Write::Put(Space::Item, key, value)], ..Commit::default() }
}

#[test]
fn a_directory_is_open_once() {
    let directory = temporary();
    let store = open(directory.path());
    assert!(refusal(directory.path()).contains("is in use by another process"));
    drop(store);
    open(directory.path());
}

#[test]
fn another_format_is_refused() {
    let directory = temporary();
    drop(open(directory.path()));
    let format = directory.path().join("FORMAT");
    assert_eq!(std::fs::read_to_string(&format).unwrap(), "cosmolabe 5\n");
    std::fs::write(&format, "cosmolabe 6\n").unwrap();
    assert!(refusal(directory.path()).contains("newer version (format 6"));
    std::fs::write(&format, "cosmolabe 2\n").unwrap();
    assert!(refusal(directory.path()).contains("earlier version (format 2"));
    std::fs::write(&format, "something else").unwrap();
    assert!(refusal(directory.path()).contains("not understood"));
    std::fs::write(&format, "cosmolabe 5\n").unwrap();
    open(directory.path());
}

#[test]
fn a_foreign_directory_is_refused() {
    let directory = temporary();
    std::fs::write(directory.path().join("thesis.txt"), "years of work").unwrap();
    assert!(refusal(directory.path()).contains("thesis.txt"));
    // A checkpoint gets its FORMAT last, so one that was interrupted looks like this.
    let copy = directory.path().join("copy");
    std::fs::create_dir_all(copy.join("engine")).unwrap();
    assert!(refusal(&copy).contains("no complete store"));
}

#[test]
fn an_interrupted_creation_is_done_again() {
    let directory = temporary();
    let engine = directory.path().join("engine");
    std::fs::write(directory.path().join("FORMAT"), "cosmolabe 5\n").unwrap();
    std::fs::create_dir_all(&engine).unwrap();
    std::fs::write(engine.join("MANIFEST.new"), "cosmolabe ta").unwrap();
    let store = open(directory.path());
    commit_numbers(&store, 1..=2);
    drop(store);
    // A lost STATE alone is no reason to throw data away.
    std::fs::remove_file(directory.path().join("STATE")).unwrap();
    let store = open(directory.path());
    assert!(store.recovered().may_have_lost);
    assert!(numbers(&store.view(), 0).into_iter().eq(1..=2));
}

#[test]
fn the_longest_key_survives_tables_and_replay() {
    let directory = temporary();
    let (path, image) = (directory.path().join("store"), directory.path().join("image"));
    let store = open(&path);
    let key = Bytes::from(vec![b'k'; store.limits().key_bytes_max]);
    let all = Space::ALL.map(|space| Write::Put(space, key.clone(), Bytes::from_static(b"v")));
    store.commit(Commit { writes: all.to_vec(), ..Commit::default() }).wait().unwrap();
    let check = |store: &EmbeddedStore| {
        for space in Space::ALL {
            assert_eq!(store.view().reader().get(space, &key).unwrap().unwrap(), "v");
        }
    };
    crash_image(&path, &image);
    check(&open(&image));
    store.compact().unwrap();
    check(&store);
    drop(store);
    check(&open(&path));
}

#[test]
fn a_full_queue_is_busy() {
    let directory = temporary();
    let options = Options { queue_commits_max: 4, queue_bytes_max: 10_000, ..options() };
    let faults = options.faults.clone();
    let store = EmbeddedStore::open(directory.path(), options).unwrap();
    faults.hold_writes(true);
    let mut tickets = vec![store.commit(put("taken", Bytes::new()))];
    faults.wait_until_held();
    tickets.extend((0..4).map(|n| store.commit(put(&n.to_string(), Bytes::new()))));
    let busy = store.commit(put("too many", Bytes::new())).wait();
    assert!(matches!(busy, Err(Error::Busy { retry_after }) if retry_after > Duration::ZERO));
    faults.hold_writes(false);
    tickets.into_iter().for_each(|ticket| ticket.wait().unwrap());

    faults.hold_writes(true);
    let taken = store.commit(put("taken", Bytes::new()));
    faults.wait_until_held();
    // A large commit is taken by an empty queue, and fills it.
    let large = store.commit(put("large", noise(1, 20_000)));
    let busy = store.commit(put("too large", noise(1, 10))).wait();
    assert!(matches!(busy, Err(Error::Busy { .. })));
    faults.hold_writes(false);
    taken.wait().unwrap();
    large.wait().unwrap();
    assert!(store.view().reader().get(Space::Item, b"too many").unwrap().is_none());
}

#[test]
fn a_failing_disk_stops_writes_but_not_reads() {
    let directory = temporary();
    let options = options();
    let faults = options.faults.clone();
    let store = EmbeddedStore::open(directory.path(), options).unwrap();
    commit_numbers(&store, 1..=10);
    faults.fail_writes();
    let tickets: Vec<_> = (11..=14).map(|n| store.commit(numbered(0, n))).collect();
    for ticket in tickets {
        assert!(matches!(ticket.wait(), Err(Error::Poisoned { .. })), "S7");
    }
    let named = Commit { token: Token(5), ..numbered(0, 15) };
    assert!(matches!(store.commit(named).wait(), Err(Error::Poisoned { .. })), "S7");
    assert!(matches!(store.resolve(Token(5)), Err(Error::Poisoned { .. })));
    assert!(matches!(store.flush(), Err(Error::Poisoned { .. })));
    assert!(numbers(&store.view(), 0).into_iter().eq(1..=10));
    assert!(store.close().is_err());
    drop(store);
    let store = open(directory.path());
    assert!(!store.recovered().was_clean);
    assert!(numbers(&store.view(), 0).into_iter().eq(1..=10));
}

/// A real full disk, where the test may make one.
#[test]
fn a_full_disk_stops_writes_but_not_reads() {
    let directory = temporary();
    let Some(_disk) = SmallDisk::mount(directory.path(), 24) else {
        eprintln!("skipped: cannot mount a small disk here");
        return;
    };
    let path = directory.path().join("store");
    let store = open(&path);
    let mut written = 0;
    let error = loop {
        match store.commit(put(&format!("{written:04}"), noise(written, 1 << 20))).wait() {
            Ok(()) => written += 1,
            Err(error) => break error,
        }
        assert!(written < 100, "the disk never got full");
    };
    assert!(matches!(error, Error::Poisoned { .. }), "S7: {error}");
    assert!(written > 2);
    for number in 0..written {
        let value = store.view().reader().get(Space::Item, format!("{number:04}").as_bytes());
        assert_eq!(value.unwrap().unwrap(), noise(number, 1 << 20));
    }
    let started = Instant::now();
    assert!(store.close().is_err());
    assert!(started.elapsed() < Duration::from_secs(20), "closing a poisoned store must not hang");
}

/// A file system in memory, of some megabytes.
struct SmallDisk<'a>(&'a Path);

impl SmallDisk<'_> {
    fn mount(at: &Path, megabytes: u32) -> Option<SmallDisk<'_>> {
        let mut command = std::process::Command::new("mount");
        let size = format!("size={megabytes}m");
        command.args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(at);
        let is_mounted = command.output().is_ok_and(|output| output.status.success());
        is_mounted.then_some(SmallDisk(at))
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        drop(std::process::Command::new("umount").arg("-l").arg(self.0).output());
    }
}

#[test]
fn a_panicking_hook_leaves_nobody_waiting() {
    let directory = temporary();
    let store = open(directory.path());
    let hook: store::BeforePublish = Box::new(|_| panic!("a hook of a test"));
    let bad = Commit { before_publish: Some(hook), token: Token(9), ..numbered(0, 1) };
    assert!(matches!(store.commit(bad).wait(), Err(Error::Unknown | Error::Poisoned { .. })));
    assert!(store.commit(numbered(0, 2)).wait().is_err());
    assert_ne!(store.resolve(Token(9)).ok(), Some(Outcome::Committed));
    assert!(store.view().reader().get(Space::Item, b"x").unwrap().is_none());
}

#[test]
fn a_closed_store_refuses_commits() {
    let directory = temporary();
    let store = open(directory.path());
    commit_numbers(&store, 1..=3);
    store.close().unwrap();
    store.close().unwrap();
    assert!(matches!(store.commit(numbered(0, 4)).wait(), Err(Error::Closed)));
    assert!(numbers(&store.view(), 0).into_iter().eq(1..=3));
}

/// A journal of ten groups and the store's files at that moment.
fn image_of_ten(directory: &Path, durability: Durability) -> std::path::PathBuf {
    let (path, image) = (directory.join("store"), directory.join("image"));
    let store = EmbeddedStore::open(&path, Options { durability, ..options() });
    let store = store.expect("the store opens");
    commit_numbers(&store, 1..=10);
    crash_image(&path, &image);
    // Without the preallocated zeros, copies are small.
    std::fs::write(journal(&image), journal_bytes(&image)).expect("writable");
    image
}

#[test]
fn a_flipped_byte_in_the_journal_is_never_silent() {
    let directory = temporary();
    let image = image_of_ten(directory.path(), Durability::Sync);
    let whole = journal_bytes(&image);
    let mut refused = 0;
    // The last four bytes say that the last batch is complete; without them it looks interrupted.
    for at in (0..whole.len() - 4).step_by(whole.len() / 40) {
        let copy = directory.path().join(format!("copy {at}"));
        crash_image(&image, &copy);
        let mut bytes = whole.clone();
        bytes[at] ^= 0x04;
        std::fs::write(journal(&copy), bytes).unwrap();
        match EmbeddedStore::open(&copy, options()) {
            Err(Error::Unusable(sentence)) => {
                assert!(
                    sentence.contains("damaged") && sentence.contains("checkpoint"),
                    "{sentence}"
                );
                refused += 1;
            }
            Err(error) => panic!("refused for another reason: {error}"),
            Ok(store) => assert!(numbers(&store.view(), 0).into_iter().eq(1..=10), "at {at}"),
        }
        std::fs::remove_dir_all(copy).unwrap();
    }
    assert!(refused > 30, "only {refused} of 40 were noticed");
}

#[test]
fn a_cut_journal_keeps_a_prefix() {
    let directory = temporary();
    let image = image_of_ten(directory.path(), Durability::Sync);
    let whole = journal_bytes(&image);
    let mut lengths: Vec<_> = (0..whole.len()).step_by(whole.len() / 9).collect();
    lengths.extend([whole.len() - 1, whole.len()]);
    let mut last = 0;
    for length in lengths {
        let copy = directory.path().join(format!("copy {length}"));
        crash_image(&image, &copy);
        std::fs::write(journal(&copy), &whole[..length]).unwrap();
        let store = open(&copy);
        let found = numbers(&store.view(), 0);
        assert!(found.iter().copied().eq(1..=found.len() as u64));
        assert_eq!(store.view().position(LogId(0)), found.len() as u64, "S3");
        check_sums(&store.view(), 1);
        assert!(found.len() >= last);
        last = found.len();
        // It can be written to, and replayed again.
        store.commit(numbered(0, found.len() as u64 + 1)).wait().unwrap();
        drop(store);
        assert_eq!(numbers(&open(&copy).view(), 0).len(), found.len() + 1);
        std::fs::remove_dir_all(copy).unwrap();
    }
    assert_eq!(last, 10);
}

#[test]
fn a_cut_table_is_reported() {
    let directory = temporary();
    let path = directory.path().join("store");
    let store = open(&path);
    for number in 0..50 {
        store.commit(put(&number.to_string(), noise(number, 10_000))).wait().unwrap();
    }
    drop(store);
    let mut tables = Vec::new();
    collect_files(&path.join("engine"), &mut tables);
    tables.retain(|path| path.extension().is_some_and(|end| end == "tbl"));
    let table = tables.into_iter().max_by_key(|path| path.metadata().unwrap().len()).unwrap();
    let length = table.metadata().unwrap().len();
    std::fs::File::options().write(true).open(&table).unwrap().set_len(length / 2).unwrap();
    match EmbeddedStore::open(&path, options()) {
        Err(Error::Unusable(sentence)) => assert!(sentence.contains("checkpoint"), "{sentence}"),
        Err(error) => panic!("refused for another reason: {error}"),
        Ok(_) => panic!("half a table was accepted"),
    }
}

#[test]
fn a_lost_list_of_tables_is_reported() {
    let directory = temporary();
    let path = directory.path().join("store");
    commit_numbers(&open(&path), 1..=3);
    let manifest = path.join("engine/MANIFEST");
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(&manifest, text.replace("next", "text")).unwrap();
    assert!(refusal(&path).contains("list of tables has wrong bytes"));
    std::fs::remove_file(&manifest).unwrap();
    assert!(refusal(&path).contains("list of tables is missing"));
    std::fs::write(&manifest, text).unwrap();
    assert!(numbers(&open(&path).view(), 0).into_iter().eq(1..=3));
}

#[test]
fn a_lost_journal_is_reported() {
    let directory = temporary();
    let image = image_of_ten(directory.path(), Durability::Sync);
    std::fs::remove_file(journal(&image)).unwrap();
    assert!(refusal(&image).contains("a journal is missing"));
}

#[test]
fn a_lost_engine_is_reported() {
    let directory = temporary();
    let path = directory.path().join("store");
    commit_numbers(&open(&path), 1..=3);
    std::fs::remove_dir_all(path.join("engine")).unwrap();
    assert!(refusal(&path).contains("list of tables is missing"));
}

#[test]
fn many_small_tables_do_not_stop_writes() {
    let directory = temporary();
    let path = directory.path().join("store");
    // A table of every part at each close: far more than writing waits for.
    for number in 1..=30 {
        commit_numbers(&open(&path), [number]);
    }
    let store = open(&path);
    commit_numbers(&store, 31..=40);
    assert!(numbers(&store.view(), 0).into_iter().eq(1..=40));
}

fn collect_files(directory: &Path, into: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(directory).expect("readable") {
        let path = entry.expect("readable").path();
        match path.is_dir() {
            true => collect_files(&path, into),
            false => into.push(path),
        }
    }
}

#[test]
fn repeated_kills_replay_the_same_journal() {
    let directory = temporary();
    let mut path = image_of_ten(directory.path(), Durability::Sync);
    for round in 0..4u64 {
        let next = directory.path().join(format!("image {round}"));
        let store = open(&path);
        assert!(!store.recovered().was_clean);
        assert!(numbers(&store.view(), 0).into_iter().eq(1..=10 + round));
        check_sums(&store.view(), 1);
        store.commit(numbered(0, 11 + round)).wait().unwrap();
        crash_image(&path, &next);
        path = next;
    }
}

#[test]
fn positions_of_a_relaxed_store_skip_ahead_after_a_crash() {
    let directory = temporary();
    let image = image_of_ten(directory.path(), Durability::Relaxed);
    let again = directory.path().join("again");
    let relaxed = Options { durability: Durability::Relaxed, ..options() };
    let store = EmbeddedStore::open(&image, relaxed.clone()).unwrap();
    assert!(!store.recovered().was_clean && store.recovered().may_have_lost);
    assert_eq!(store.view().position(LogId(0)), 10 + POSITIONS_GAP);
    assert_eq!(store.view().position(LogId(1)), 0);
    // The skip itself is durable, and comes again with the next crash.
    crash_image(&image, &again);
    drop(store);
    let store = EmbeddedStore::open(&again, relaxed).unwrap();
    assert_eq!(store.view().position(LogId(0)), 10 + 2 * POSITIONS_GAP);
    drop(store);
    let store = open(&again);
    assert!(store.recovered().was_clean);
    assert_eq!(store.view().position(LogId(0)), 10 + 2 * POSITIONS_GAP);
}

#[test]
fn one_relaxed_commit_makes_a_sync_store_skip_too() {
    let directory = temporary();
    let (path, image) = (directory.path().join("store"), directory.path().join("image"));
    let store = open(&path);
    commit_numbers(&store, 1..=3);
    let relaxed = Commit { durability: Some(Durability::Relaxed), ..numbered(0, 4) };
    store.commit(relaxed).wait().unwrap();
    crash_image(&path, &image);
    let crashed = open(&image);
    assert!(crashed.recovered().may_have_lost);
    assert_eq!(crashed.view().position(LogId(0)), 4 + POSITIONS_GAP);
}

#[test]
fn relaxed_commits_are_synced_within_a_second_and_before_the_gap() {
    let directory = temporary();
    let relaxed = Options { durability: Durability::Relaxed, ..options() };
    let store = EmbeddedStore::open(directory.path(), relaxed).unwrap();
    let mark = |position| {
        let marks = vec![Mark { log: LogId(3), position }];
        store.commit(Commit { marks, ..Commit::default() }).wait().unwrap();
    };
    mark(1);
    assert!(store.syncs() > 0, "F3: a crash must not forget a log");
    // Far fewer syncs than commits, however slow the machine.
    (2..=200).for_each(&mark);
    assert!(store.syncs() < 100);
    let before = store.syncs();
    mark(201 + POSITIONS_GAP / 2);
    assert!(store.syncs() > before, "F3");
    let before = store.syncs();
    mark(202 + POSITIONS_GAP / 2);
    let deadline = Instant::now() + Duration::from_secs(20);
    while store.syncs() == before {
        assert!(Instant::now() < deadline, "S4");
        std::thread::sleep(Duration::from_millis(10));
    }
    let before = store.syncs();
    store.flush().unwrap();
    assert!(store.syncs() > before);
}

#[test]
fn the_journal_stays_bounded_though_a_keyspace_idles() {
    let directory = temporary();
    let relaxed =
        Options { durability: Durability::Relaxed, journal_bytes_max: 64 << 20, ..options() };
    let store = EmbeddedStore::open(directory.path(), relaxed.clone()).unwrap();
    // One write to every space, then only items: the others would pin the first journal.
    store.commit(numbered(0, 1)).wait().unwrap();
    let mut largest = 0;
    for number in 0..220u64 {
        store.commit(put(&format!("{:02}", number % 20), noise(number, 1 << 20))).wait().unwrap();
        largest = largest.max(store.journal_bytes());
    }
    assert!(largest < 160 << 20, "journals grew to {} MB", largest >> 20);
    store.close().unwrap();
    drop(store);
    let store = EmbeddedStore::open(directory.path(), relaxed).unwrap();
    assert!(store.journal_bytes() < 1 << 20, "an orderly close leaves nothing to replay");
    assert_eq!(numbers(&store.view(), 0), [1]);
    assert_eq!(
        store.view().reader().get(Space::Item, b"19").unwrap().unwrap(),
        noise(219, 1 << 20)
    );
}

#[test]
fn compacting_gives_space_back() {
    let directory = temporary();
    let store = open(directory.path());
    let key = |number: u64| Bytes::copy_from_slice(&number.to_be_bytes());
    let all = (0..200).map(|n| Write::Put(Space::Item, key(n), noise(n, 100_000))).collect();
    store.commit(Commit { writes: all, ..Commit::default() }).wait().unwrap();
    store.compact().unwrap();
    let before = store.statistics().bytes;
    let gone = (0..200).map(|n| Write::Delete(Space::Item, key(n))).collect();
    store.commit(Commit { writes: gone, ..Commit::default() }).wait().unwrap();
    commit_numbers(&store, 1..=2);
    store.compact().unwrap();
    let after = store.statistics().bytes;
    assert!(after + (15 << 20) < before, "{before} bytes before, {after} after");
    // Files are removed by a thread of their own: one may go between being listed and looked at.
    let left = || {
        let mut tables = Vec::new();
        collect_files(&directory.path().join("engine"), &mut tables);
        tables.retain(|path| path.extension().is_some_and(|end| end == "tbl"));
        tables.iter().filter_map(|path| path.metadata().ok()).map(|file| file.len()).sum::<u64>()
    };
    let deadline = Instant::now() + Duration::from_secs(20);
    while left() >= 1 << 20 {
        assert!(Instant::now() < deadline, "{} bytes of tables are still there", left());
        std::thread::yield_now();
    }
}
