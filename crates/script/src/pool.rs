//! Threads that run scripts.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Instant;

use crate::call::{Call, Failure, Limits, Outcome};
use crate::functions::Functions;
use crate::operation::Host;
use crate::program::Program;

/// How many threads, and what each piece of work may use.
#[derive(Clone, Debug)]
pub struct PoolOptions {
    /// Scripts that run at the same time.
    pub threads: usize,
    /// What each may use.
    pub limits: Limits,
}

impl Default for PoolOptions {
    fn default() -> PoolOptions {
        PoolOptions { threads: 8, limits: Limits::default() }
    }
}

/// Threads that run scripts.
pub struct Pool;

impl Pool {
    /// A pool; its threads start when they are needed.
    pub fn new(options: PoolOptions) -> Pool {
        let _ = options;
        Pool
    }

    /// Queues `work` for a script thread.
    pub fn submit<H: Send + 'static, T: Send + 'static>(
        &self,
        host: H,
        wait_until: Option<Instant>,
        work: impl FnOnce(&mut Session<'_, H>) -> T + Send + 'static,
        answer: impl FnOnce(Result<T, Stop>) + Send + 'static,
    ) -> Running {
        let _ = (host, wait_until, work);
        answer(Err(Stop::Unavailable));
        Running
    }
}

/// Work under way. Dropping it cancels.
pub struct Running;

impl Running {
    /// Lets the work go on without anybody who could cancel it.
    pub fn detach(self) {}
}

/// Why work was not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Stop {
    /// The watchdog ended it.
    #[error("the script ran out of time")]
    Overdue,
    /// No thread took it up in time, or too many threads are lost.
    #[error("no thread can run the script")]
    Unavailable,
    /// The work panicked.
    #[error("{0}")]
    Fault(String),
}

/// The host is not there any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the work was taken away")]
pub struct Revoked;

/// What work sees of its thread.
pub struct Session<'a, H> {
    host: PhantomData<(&'a (), H)>,
}

impl<H: Send + 'static> Session<'_, H> {
    /// Runs a script in a fresh runtime. Its operations go to the session's host.
    pub fn execute(&mut self, call: Call) -> Result<Outcome, Failure>
    where
        H: Host,
    {
        let _ = call;
        Err(Failure::Revoked)
    }

    /// The functions of a query, in one runtime for all their calls.
    pub fn functions(&mut self, programs: &[Arc<Program>]) -> Result<Functions, Failure> {
        let _ = programs;
        Err(Failure::Revoked)
    }

    /// Access to the host between scripts.
    pub fn with_host<R>(&mut self, f: impl FnOnce(&mut H) -> R) -> Result<R, Revoked> {
        let _ = f;
        Err(Revoked)
    }

    /// Takes the host out, for the commit.
    pub fn take_host(&mut self) -> Result<H, Revoked> {
        Err(Revoked)
    }
}
