//! Partitions that are read on several threads at once.
//!
//! A query over many partitions reads the beginning of each. What a thread reads it counts in a
//! meter of its own, which is added to that of the query when what was read is used: neither rows
//! nor charges depend on how many threads there were. Threads are few and shared by all queries:
//! one that finds none left reads on its own.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::thread;

use base::{Ctx, Meter};

use super::walk::Reader;
use crate::{Error, Source, Span};

/// Fewer partitions are not worth a thread.
const PARTITIONS_MIN: usize = 8;

/// What was read and is not used yet may have so many bytes; then the rest is left for later.
const HELD_BYTES_MAX: usize = 16 << 20;

/// Threads that could help besides those that queries run on.
static IDLE: LazyLock<AtomicUsize> = LazyLock::new(|| {
    AtomicUsize::new(thread::available_parallelism().map_or(0, |cores| cores.get() - 1))
});

/// The right to so many threads, given back at the end.
struct Helpers(usize);

impl Helpers {
    fn get(most: usize) -> Helpers {
        let mut taken = 0;
        let _ = IDLE.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |idle| {
            taken = idle.min(most);
            Some(idle - taken)
        });
        Helpers(taken)
    }
}

impl Drop for Helpers {
    fn drop(&mut self) {
        IDLE.fetch_add(self.0, Ordering::Relaxed);
    }
}

/// A [`Reader`] without its context.
#[derive(Clone, Copy)]
struct Shared<'a> {
    source: &'a dyn Source,
    probes: &'a [Vec<Span>],
    memory_bytes_max: usize,
}

impl<'a> Shared<'a> {
    fn reader<'c>(self, ctx: &'c Ctx) -> Reader<'c>
    where
        'a: 'c,
    {
        let Shared { source, probes, memory_bytes_max } = self;
        Reader { ctx, source, probes, memory_bytes_max }
    }
}

/// What was done with a part, and what that counted.
type Done<R> = (R, Meter);

/// Does `work` with each part, in no order, and returns what came of each, in order. `None` if
/// there is nobody to help; then the parts are as they were.
pub(super) fn spread<P: Send, R: Send>(
    reader: Reader<'_>,
    parts: &mut [P],
    work: impl Fn(Reader<'_>, &mut P) -> R + Sync,
) -> Option<Vec<Done<R>>> {
    // Work on trial keeps a thread of many requests waiting; it is to be short, not to spread.
    if parts.len() < PARTITIONS_MIN || reader.ctx.is_trial() {
        return None;
    }
    let helpers = Helpers::get(parts.len() / PARTITIONS_MIN);
    if helpers.0 == 0 {
        return None;
    }
    let Reader { ctx, source, probes, memory_bytes_max } = reader;
    let shared = Shared { source, probes, memory_bytes_max };
    let count = parts.len();
    let queue = Mutex::new(parts.iter_mut().enumerate());
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    let (work, next) = (&work, &next);
    let run = move |ctx: Ctx| {
        let mut done = Vec::new();
        while let Some((at, part)) = next() {
            let result = work(shared.reader(&ctx), part);
            done.push((at, (result, ctx.meter().take())));
        }
        done
    };
    let mut all: Vec<Option<Done<R>>> = (0..count).map(|_| None).collect();
    thread::scope(|scope| {
        let spawn = |_| {
            let ctx = ctx.fork();
            thread::Builder::new().name("query".into()).spawn_scoped(scope, move || run(ctx)).ok()
        };
        // Without a thread there is more left for this one.
        let running: Vec<_> = (0..helpers.0).filter_map(spawn).collect();
        let own = run(ctx.fork());
        let others = running.into_iter().map(thread::ScopedJoinHandle::join);
        let others = others.flat_map(|done| done.unwrap_or_else(|e| std::panic::resume_unwind(e)));
        for (at, done) in others.chain(own) {
            all[at] = Some(done);
        }
    });
    all.into_iter().collect()
}

/// The beginnings of partitions that are read one after the other.
pub(super) struct Ahead<T> {
    /// The first of them belongs to partition `next`; nothing where there was no room.
    ready: VecDeque<Done<Option<Result<T, Error>>>>,
    next: usize,
    /// Partitions that were used, and rows that were found in them.
    used: usize,
    rows: usize,
}

impl<T> Default for Ahead<T> {
    fn default() -> Ahead<T> {
        Ahead { ready: VecDeque::new(), next: 0, used: 0, rows: 0 }
    }
}

/// The beginning of a partition.
pub(super) trait Beginning: Send {
    /// How many rows were found in it.
    fn rows(&self) -> usize;

    /// How many bytes they have.
    fn bytes(&self) -> usize;
}

impl<T: Beginning> Ahead<T> {
    /// What `read` makes of the beginning of a partition, which may have been read before. As many
    /// partitions are read as `wanted` rows will probably come from.
    pub fn take(
        &mut self,
        reader: Reader<'_>,
        partition: usize,
        wanted: usize,
        read: impl Fn(Reader<'_>, usize) -> Result<T, Error> + Sync,
    ) -> Result<T, Error> {
        if self.next != partition {
            self.ready.clear();
        }
        if self.ready.is_empty() {
            let probably = wanted.saturating_mul(self.used) / self.rows.max(1);
            let end = reader.source.partitions().min(partition.saturating_add(probably));
            let mut parts: Vec<usize> = (partition..end).collect();
            let held = AtomicUsize::new(0);
            let done = spread(reader, &mut parts, |reader, partition| {
                if held.load(Ordering::Relaxed) > HELD_BYTES_MAX {
                    return None;
                }
                let beginning = read(reader, *partition);
                let bytes = beginning.as_ref().map_or(0, Beginning::bytes);
                held.fetch_add(bytes, Ordering::Relaxed);
                Some(beginning)
            });
            self.ready = done.unwrap_or_default().into();
        }
        self.used += 1;
        self.next = partition + 1;
        let beginning = match self.ready.pop_front() {
            Some((Some(result), meter)) => {
                reader.ctx.meter().add(&meter);
                result?
            }
            Some((None, _)) | None => read(reader, partition)?,
        };
        self.rows += beginning.rows();
        Ok(beginning)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;
    use crate::testing::VecSource;

    fn with_reader(test: impl Fn(Reader<'_>)) {
        let source = VecSource::new(Vec::new(), 1);
        let ctx = Ctx::background();
        test(Reader { ctx: &ctx, source: &source, probes: &[], memory_bytes_max: 0 });
    }

    /// Two that meet cannot be on one thread.
    #[test]
    fn several_threads_take_part() {
        if thread::available_parallelism().map_or(1, usize::from) < 2 {
            return;
        }
        with_reader(|reader| {
            let meeting = Barrier::new(2);
            let mut parts: Vec<usize> = (0..100).collect();
            let work = |reader: Reader<'_>, part: &mut usize| {
                if *part < 2 {
                    meeting.wait();
                }
                reader.ctx.meter().at(*part).terms_read(*part as u64);
                *part += 1;
                *part
            };
            // Another test may have all helpers at this moment.
            let done = std::iter::repeat_with(|| spread(reader, &mut parts, work)).flatten().next();
            for (at, (result, meter)) in done.unwrap().into_iter().enumerate() {
                assert_eq!(result, at + 1);
                assert_eq!(meter.read().terms_read, at as u64);
            }
            assert!(parts.iter().copied().eq(1..=100));
            assert_eq!(reader.ctx.meter().read().terms_read, 0, "nothing is used yet");
        });
    }

    #[test]
    fn few_parts_are_left_alone() {
        with_reader(|reader| {
            let mut parts = vec![0; PARTITIONS_MIN - 1];
            assert!(spread(reader, &mut parts, |_, part| *part = 1).is_none());
            assert!(parts.iter().all(|part| *part == 0));
        });
    }
}
