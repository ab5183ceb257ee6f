//! Items from NDJSON lines into a container, many commits in flight.
//!
//! ```text
//!   file ─▶ reader: line, item, partition key ─┬─▶ writer 1: lock, decide, enqueue ─▶ window ─▶ disk
//!                                              └─▶ writer n   …
//! ```
//!
//! INVARIANTS
//! (I1) Lines of one logical partition go to one writer, in order: of two lines with the same id
//!      the later one wins.
//! (I2) A line that cannot be read stops everything behind it; everything before it is imported.

use std::collections::VecDeque;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::io::BufRead;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::task::{Context as TaskContext, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use base::Deadline;
use engine::ops::{EtagCondition, ItemAnswer, WriteItem, WriteKind};
use engine::{Container, Engine, Error, Pending};
use item::Draft;
use model::partition_key::PartitionKey;

use crate::lines::{Line, Lines};
use crate::progress::Progress;

/// Entries handed to a writer at once.
const BATCH: usize = 64;
/// Commits of one writer that wait for the disk. All writers together stay below the queue of the
/// store, so that it is seldom busy.
const WINDOW_COMMITS: usize = 512;
/// The same in bytes of items.
const WINDOW_BYTES: usize = 4 << 20;
const WRITERS_MAX: usize = 8;
/// How long the store may be busy before we give up.
const BUSY_MAX: Duration = Duration::from_secs(60);
/// Bad lines printed; further ones are only counted.
const REPORTS_MAX: u64 = 100;

/// What an import came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Items written.
    pub items: u64,
    /// Bad lines left out.
    pub bad: u64,
}

/// Where items go, and what happens to lines that are none.
pub struct Import<'a> {
    /// The database.
    pub engine: &'a Engine,
    /// The container.
    pub container: &'a Arc<Container>,
    /// How the file is called in messages.
    pub name: &'a str,
    /// Report bad lines and go on.
    pub skips_bad: bool,
    /// Told the bytes read.
    pub progress: &'a Progress,
}

impl Import<'_> {
    /// Imports every line and waits until all of them are durable.
    pub fn run(&self, reader: impl BufRead) -> Result<Imported> {
        let state = State::default();
        let read = std::thread::scope(|scope| {
            let writers = std::thread::available_parallelism().map_or(1, usize::from);
            let mut queues = Vec::new();
            for _ in 0..writers.min(WRITERS_MAX) {
                let (sender, receiver) = sync_channel(2);
                let state = &state;
                scope.spawn(move || Writer::new(self, state).run(&receiver));
                queues.push(Queue { sender, batch: Vec::with_capacity(BATCH) });
            }
            self.read(Lines::new(reader), &state, queues)
        });
        let items = state.items.load(Ordering::Relaxed);
        let failure = state.failure.into_inner().expect("no code panics while holding this lock");
        // A line that could not be written is before the one where reading stopped.
        let result = failure.map_or(read, Err);
        result.with_context(|| {
            format!(
                "stopped after {items} items; mend it and import again, which changes no item twice"
            )
        })?;
        Ok(Imported { items, bad: state.bad.load(Ordering::Relaxed) })
    }

    /// Reads the file to its end, or to the first failure.
    fn read(
        &self,
        mut lines: Lines<impl BufRead>,
        state: &State,
        mut queues: Vec<Queue>,
    ) -> Result<()> {
        while !state.is_stopped.load(Ordering::Relaxed) {
            let line = lines.next().with_context(|| format!("{} cannot be read", self.name))?;
            let Some(line) = line else { break };
            let number = line.number;
            match self.entry(line) {
                Ok(entry) => {
                    let queue = writer_of(&entry.key, queues.len());
                    queues[queue].push(entry); // I1
                }
                Err(error) => {
                    if let Err(error) = self.bad_line(state, number, &error) {
                        queues.into_iter().for_each(Queue::finish); // I2
                        return Err(error);
                    }
                }
            }
            self.progress.set(lines.bytes());
        }
        queues.into_iter().for_each(Queue::finish);
        Ok(())
    }

    fn entry(&self, line: Line) -> Result<Entry> {
        let text = line.text.ok_or_else(|| anyhow!("the line is too long to be an item"))?;
        let draft = Draft::parse(&text).map_err(|error| match text.first() {
            Some(b'[') => anyhow!("{error}; every line must be one item, not an array"),
            _ => error.into(),
        })?;
        let key = self.engine.partition_key_of(self.container, None, &draft)?;
        Ok(Entry { number: line.number, text, draft, key })
    }

    /// Reports a line that cannot be imported. An error if that ends the import.
    fn bad_line(&self, state: &State, number: u64, error: &anyhow::Error) -> Result<()> {
        if !self.skips_bad {
            bail!("{}:{number}: {error:#}", self.name);
        }
        let bad = state.bad.fetch_add(1, Ordering::Relaxed);
        if bad < REPORTS_MAX {
            self.progress.say(&format!("{}:{number}: skipped: {error:#}", self.name));
        } else if bad == REPORTS_MAX {
            self.progress.say("further bad lines are counted, but not shown");
        }
        Ok(())
    }
}

/// A line that is an item.
struct Entry {
    number: u64,
    text: Vec<u8>,
    draft: Draft,
    key: PartitionKey,
}

fn writer_of(key: &PartitionKey, writers: usize) -> usize {
    let mut hasher = DefaultHasher::new();
    key.to_bytes().hash(&mut hasher);
    hasher.finish() as usize % writers
}

/// The way to one writer.
struct Queue {
    sender: SyncSender<Vec<Entry>>,
    batch: Vec<Entry>,
}

impl Queue {
    fn push(&mut self, entry: Entry) {
        self.batch.push(entry);
        if self.batch.len() == BATCH {
            self.send();
        }
    }

    fn send(&mut self) {
        let batch = std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH));
        // A writer that has ended has left its reason in the state.
        let _ = self.sender.send(batch);
    }

    fn finish(mut self) {
        self.send();
    }
}

/// What reader and writers share.
#[derive(Default)]
struct State {
    items: AtomicU64,
    bad: AtomicU64,
    is_stopped: AtomicBool,
    failure: std::sync::Mutex<Option<anyhow::Error>>,
}

impl State {
    fn stop(&self, error: anyhow::Error) {
        self.is_stopped.store(true, Ordering::Relaxed);
        let mut failure = self.failure.lock().expect("no code panics while holding this lock");
        failure.get_or_insert(error);
    }
}

/// Writes the lines of some logical partitions.
struct Writer<'a> {
    import: &'a Import<'a>,
    state: &'a State,
    /// Writes that wait for the disk: number of the line, bytes, answer.
    window: VecDeque<(u64, usize, Pending<ItemAnswer>)>,
    window_bytes: usize,
}

impl<'a> Writer<'a> {
    fn new(import: &'a Import<'a>, state: &'a State) -> Writer<'a> {
        Writer { import, state, window: VecDeque::new(), window_bytes: 0 }
    }

    fn run(mut self, batches: &Receiver<Vec<Entry>>) {
        let written = self.write_all(batches).and_then(|()| self.settle_all());
        if let Err(error) = written {
            self.state.stop(error);
        }
    }

    fn write_all(&mut self, batches: &Receiver<Vec<Entry>>) -> Result<()> {
        for entry in batches.iter().flatten() {
            self.write(entry)?;
            while self.window.len() > WINDOW_COMMITS || self.window_bytes > WINDOW_BYTES {
                self.settle()?;
            }
        }
        Ok(())
    }

    /// Enqueues one write. A busy store is waited for; order is kept (I1).
    fn write(&mut self, entry: Entry) -> Result<()> {
        let give_up_at = Instant::now() + BUSY_MAX;
        let Entry { number, text, mut draft, key } = entry;
        loop {
            let mut pending = self.enqueue(&key, draft);
            pending.begin();
            match poll(&mut pending) {
                Poll::Pending => {
                    self.window.push_back((number, text.len(), pending));
                    self.window_bytes += text.len();
                    return Ok(());
                }
                Poll::Ready(Err(Error::Unavailable)) if Instant::now() < give_up_at => {
                    self.settle_all()?;
                    std::thread::sleep(Duration::from_millis(5));
                    draft = Draft::parse(&text)?;
                }
                Poll::Ready(result) => return self.count(number, result),
            }
        }
    }

    fn enqueue(&self, key: &PartitionKey, draft: Draft) -> Pending<ItemAnswer> {
        let engine = self.import.engine;
        let guard = wait_for(engine.lock(self.import.container, key));
        let write = WriteItem {
            kind: WriteKind::Upsert(draft),
            if_match: EtagCondition::None,
            if_none_match: EtagCondition::None,
            is_indexed: true,
        };
        engine.write(&engine.ctx(Deadline::never()), guard, write)
    }

    fn settle_all(&mut self) -> Result<()> {
        while !self.window.is_empty() {
            self.settle()?;
        }
        Ok(())
    }

    /// Waits for the oldest write.
    fn settle(&mut self) -> Result<()> {
        let Some((number, bytes, pending)) = self.window.pop_front() else { return Ok(()) };
        self.window_bytes -= bytes;
        self.count(number, pending.wait())
    }

    fn count(&self, number: u64, result: engine::Result<ItemAnswer>) -> Result<()> {
        match result {
            Ok(_) => {
                self.state.items.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
            Err(error @ (Error::Fault(_) | Error::Unavailable)) => Err(error.into()),
            Err(error) => self.import.bad_line(self.state, number, &error.into()),
        }
    }
}

/// Looks whether an answer is there already.
fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut TaskContext::from_waker(Waker::noop()))
}

/// Blocks the thread until a lock is free. It is, unless background work has it for a moment.
fn wait_for<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Unpark>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut TaskContext::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}
