//! Where commits wait to be written: a bounded queue, taken whole.
//!
//! INVARIANTS
//! (Q1) Jobs leave in the order in which they came (S2).
//! (Q2) Whoever takes jobs is at work until he says that he is done, and nobody else takes any.
//! (Q3) The thread sleeps while there is nothing for it to do; whoever ends that wakes it. That is
//!      who pushes a job that nobody will wait for, and who is done while jobs wait.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use store::{Commit, Error, Result, TicketSender};

use crate::Options;

/// Jobs that somebody who waits does with his own.
const FEW: usize = 64;
const FEW_BYTES: usize = 1 << 20;

/// One thing to do for who writes.
pub(crate) enum Job {
    /// Apply a commit.
    Commit(Commit, TicketSender),
    /// Sync everything that came before.
    Sync(TicketSender),
    /// Publish a view with a new snapshot, though nothing changed: the engine has better tables.
    Publish(TicketSender),
}

/// Why the thread was woken.
pub(crate) enum Taken {
    /// These jobs wait.
    Jobs(Vec<Job>),
    /// Nothing came before the deadline.
    Nothing,
    /// The queue is closed and empty.
    Closed,
}

/// The queue between the callers of `commit` and who writes.
pub(crate) struct Queue {
    state: Mutex<State>,
    wake: Condvar,
    commits_max: usize,
    bytes_max: usize,
}

#[derive(Default)]
struct State {
    jobs: Vec<Job>,
    bytes: usize,
    is_closed: bool,
    /// Somebody has taken jobs and is not done.
    is_at_work: bool,
    is_thread_asleep: bool,
}

/// When a job is to be begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begin {
    /// By the thread, at once.
    Now,
    /// By whoever waits for it, unless the thread is at work anyway.
    WhenAwaited,
}

impl Queue {
    pub(crate) fn new(options: &Options) -> Queue {
        Queue {
            state: Mutex::default(),
            wake: Condvar::new(),
            commits_max: options.queue_commits_max,
            bytes_max: options.queue_bytes_max,
        }
    }

    /// Appends a job, or says why not.
    pub(crate) fn push(&self, job: Job, bytes: usize, begin: Begin) -> Result<()> {
        let mut state = self.state.lock();
        if state.is_closed {
            return Err(Error::Closed);
        }
        let is_full = state.jobs.len() >= self.commits_max
            || (state.bytes > 0 && state.bytes + bytes > self.bytes_max);
        if is_full {
            return Err(Error::Busy { retry_after: Duration::from_millis(5) });
        }
        state.jobs.push(job);
        state.bytes += bytes;
        if begin == Begin::Now {
            self.wake_thread(&mut state);
        }
        Ok(())
    }

    /// Takes all jobs (Q1) for the thread, sleeping until there are some and nobody is at work, the
    /// deadline passes or the queue closes.
    pub(crate) fn take(&self, deadline: Option<Instant>) -> Taken {
        let mut state = self.state.lock();
        loop {
            if let Some(jobs) = state.take() {
                return Taken::Jobs(jobs);
            }
            if state.is_closed && !state.is_at_work {
                return Taken::Closed;
            }
            state.is_thread_asleep = true;
            match deadline.filter(|_| !state.is_closed) {
                None => self.wake.wait(&mut state),
                Some(deadline) => {
                    if self.wake.wait_until(&mut state, deadline).timed_out() {
                        state.is_thread_asleep = false;
                        return state.take().map_or(Taken::Nothing, Taken::Jobs);
                    }
                }
            }
        }
    }

    /// Takes all jobs for somebody who waits, if there are any and nobody is at work. Many are the
    /// thread's.
    pub(crate) fn take_few(&self) -> Option<Vec<Job>> {
        let mut state = self.state.lock();
        if state.jobs.len() > FEW || state.bytes > FEW_BYTES {
            self.wake_thread(&mut state);
            return None;
        }
        state.take()
    }

    /// Whoever has taken jobs is done with them (Q2).
    pub(crate) fn done(&self) {
        let mut state = self.state.lock();
        state.is_at_work = false;
        if !state.jobs.is_empty() || state.is_closed {
            self.wake_thread(&mut state);
        }
    }

    /// Leaves what waits to the thread.
    pub(crate) fn hand_over(&self) {
        let mut state = self.state.lock();
        if !state.jobs.is_empty() {
            self.wake_thread(&mut state);
        }
    }

    /// Refuses further jobs; those that wait are still taken.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.is_closed = true;
        self.wake_thread(&mut state);
    }

    /// Q3. While somebody is at work the thread has nothing to do yet.
    fn wake_thread(&self, state: &mut State) {
        if !state.is_at_work && std::mem::take(&mut state.is_thread_asleep) {
            self.wake.notify_one();
        }
    }
}

impl State {
    fn take(&mut self) -> Option<Vec<Job>> {
        if self.is_at_work || self.jobs.is_empty() {
            return None;
        }
        self.is_at_work = true;
        self.bytes = 0;
        Some(std::mem::take(&mut self.jobs))
    }
}
