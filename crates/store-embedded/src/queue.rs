//! Where commits wait for the committer: a bounded queue, taken whole.
//!
//! INVARIANTS
//! (Q1) Jobs leave in the order in which they came (S2).
//! (Q2) The committer sleeps while there is nothing to do; whoever ends that wakes it.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use store::{Commit, Error, Result, TicketSender};

use crate::Options;

/// One thing for the committer to do.
pub(crate) enum Job {
    /// Apply a commit.
    Commit(Commit, TicketSender),
    /// Sync everything that came before.
    Sync(TicketSender),
    /// Publish a view with a new snapshot, though nothing changed: the engine has better tables.
    Publish(TicketSender),
}

/// Why the committer was woken.
pub(crate) enum Taken {
    /// These jobs wait.
    Jobs(Vec<Job>),
    /// Nothing came before the deadline.
    Nothing,
    /// The queue is closed and empty.
    Closed,
}

/// The queue between the callers of `commit` and the committer.
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
    is_committer_asleep: bool,
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
    pub(crate) fn push(&self, job: Job, bytes: usize) -> Result<()> {
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
        if std::mem::take(&mut state.is_committer_asleep) {
            self.wake.notify_one(); // Q2
        }
        Ok(())
    }

    /// Takes all jobs (Q1), sleeping until there are some, the deadline passes or the queue closes.
    pub(crate) fn take(&self, deadline: Option<Instant>) -> Taken {
        let mut state = self.state.lock();
        loop {
            if !state.jobs.is_empty() {
                state.bytes = 0;
                return Taken::Jobs(std::mem::take(&mut state.jobs));
            }
            if state.is_closed {
                return Taken::Closed;
            }
            state.is_committer_asleep = true;
            match deadline {
                None => self.wake.wait(&mut state),
                Some(deadline) => {
                    if self.wake.wait_until(&mut state, deadline).timed_out() {
                        state.is_committer_asleep = false;
                        if state.jobs.is_empty() && !state.is_closed {
                            return Taken::Nothing;
                        }
                    }
                }
            }
        }
    }

    /// Refuses further jobs; those that wait are still taken.
    pub(crate) fn close(&self) {
        self.state.lock().is_closed = true;
        self.wake.notify_one();
    }
}
