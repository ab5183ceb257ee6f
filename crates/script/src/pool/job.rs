//! One piece of work: its host, its answer, and who may still touch them.
//!
//! ```text
//!            take_host
//! ┌──────┐ ────────────▶ ┌───────┐
//! │ held │               │ taken │   commits; nobody interferes any more
//! └──────┘ ──────┐       └───────┘
//!          revoke└─────▶ ┌─────────┐
//!                        │ revoked │  the host is dropped, the script ends
//!                        └─────────┘
//! ```

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::{Duration, Instant};

use item::Value;
use parking_lot::Mutex;

use super::Bench;
use crate::call::{Call, Failure, Outcome};
use crate::functions::Functions;
use crate::operation::{Host, Operation, Reply};
use crate::port::{Port, PortError};
use crate::program::Program;
use crate::run::Times;

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

/// A job, whatever its types.
pub(super) trait Task: Send + Sync {
    /// Does the work and gives the answer.
    fn run(&self, bench: &mut Bench);
    /// Takes the host away.
    fn revoke(&self);
    /// Takes the host away and answers that it took too long.
    fn overdue(&self);
    /// Answers that nobody can do it.
    fn refuse(&self);
    /// Whether the work has taken the host out, for the commit.
    fn is_committing(&self) -> bool;
}

type Work<H, T> = Box<dyn FnOnce(&mut Session<'_, H>) -> T + Send>;
type Answer<T> = Box<dyn FnOnce(Result<T, Stop>) + Send>;

pub(super) struct Job<H, T> {
    custody: Arc<Custody<H>>,
    work: Mutex<Option<Work<H, T>>>,
    answer: Mutex<Option<Answer<T>>>,
}

impl<H: Send + 'static, T: Send + 'static> Job<H, T> {
    pub(super) fn new(
        host: H,
        work: impl FnOnce(&mut Session<'_, H>) -> T + Send + 'static,
        answer: impl FnOnce(Result<T, Stop>) + Send + 'static,
    ) -> Job<H, T> {
        Job {
            custody: Arc::new(Custody::new(host)),
            work: Mutex::new(Some(Box::new(work))),
            answer: Mutex::new(Some(Box::new(answer))),
        }
    }

    /// Q1: whoever takes the answer out gives it.
    fn give(&self, result: Result<T, Stop>) {
        let answer = self.answer.lock().take();
        if let Some(answer) = answer {
            answer(result);
        }
    }
}

impl<H: Send + 'static, T: Send + 'static> Task for Job<H, T> {
    fn run(&self, bench: &mut Bench) {
        let work = self.work.lock().take();
        let Some(work) = work.filter(|_| self.custody.is(HELD)) else {
            return self.give(Err(Stop::Unavailable));
        };
        let (started, time) = (Instant::now(), bench.limits().run);
        let mut session = Session { custody: &self.custody, bench, started, time };
        let result = catch_unwind(AssertUnwindSafe(|| work(&mut session)));
        // A host that the work left behind goes before the answer says that it is over.
        self.custody.revoke();
        self.give(result.map_err(|panic| Stop::Fault(panic_text(&*panic))));
    }

    fn revoke(&self) {
        self.custody.revoke();
    }

    fn overdue(&self) {
        if self.custody.revoke() {
            self.give(Err(Stop::Overdue));
        }
    }

    fn refuse(&self) {
        self.custody.revoke();
        drop(self.work.lock().take());
        self.give(Err(Stop::Unavailable));
    }

    fn is_committing(&self) -> bool {
        self.custody.is(TAKEN)
    }
}

pub(super) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}

/// Where the host is (Q2).
pub(super) struct Custody<H> {
    host: Mutex<Option<H>>,
    /// One of the states above; it changes once.
    state: AtomicU8,
    /// What the interrupt handler of a script looks at.
    revoked: Arc<AtomicBool>,
}

const HELD: u8 = 0;
pub(super) const TAKEN: u8 = 1;
const REVOKED: u8 = 2;

impl<H: Send + 'static> Custody<H> {
    pub(super) fn new(host: H) -> Custody<H> {
        let host = Mutex::new(Some(host));
        Custody { host, state: AtomicU8::new(HELD), revoked: Arc::default() }
    }

    pub(super) fn is(&self, state: u8) -> bool {
        self.state.load(Ordering::SeqCst) == state
    }

    /// From held to another state. Returns whether it is in that state now.
    fn turn(&self, state: u8) -> bool {
        let changed = self.state.compare_exchange(HELD, state, Ordering::SeqCst, Ordering::SeqCst);
        changed.is_ok() || changed == Err(state)
    }

    /// Drops the host, or has it dropped by the call that uses it. Returns false if the work has
    /// taken it.
    ///
    /// Never waits for that call: it sees the state when it is done, because the state is set before
    /// the lock is tried here, and looked at after the lock is released there.
    pub(super) fn revoke(&self) -> bool {
        if !self.turn(REVOKED) {
            return false;
        }
        self.revoked.store(true, Ordering::Relaxed);
        let host = self.host.try_lock().and_then(|mut host| host.take());
        drop(host);
        true
    }

    fn with<R>(&self, f: impl FnOnce(&mut H) -> R) -> Result<R, Revoked> {
        let result = self.host.lock().as_mut().filter(|_| self.is(HELD)).map(f).ok_or(Revoked);
        if self.is(REVOKED) {
            self.revoke();
            return Err(Revoked);
        }
        result
    }

    pub(super) fn take(&self) -> Result<H, Revoked> {
        let mut host = self.host.lock();
        if self.is(HELD) && self.turn(TAKEN) { host.take().ok_or(Revoked) } else { Err(Revoked) }
    }
}

impl<H: Host> Port for Arc<Custody<H>> {
    fn accepts(&self) -> Result<bool, PortError> {
        self.with(Host::accepts).map_err(|Revoked| PortError::Revoked)
    }

    fn run(&self, operation: Operation) -> Result<Reply, PortError> {
        let reply = self.with(|host| host.run(operation));
        reply.map_err(|Revoked| PortError::Revoked)?.map_err(PortError::from)
    }

    fn evaluate(
        &self,
        expression: &str,
        parameters: Vec<(String, Value)>,
    ) -> Result<Value, PortError> {
        let value = self.with(|host| host.evaluate(expression, parameters));
        value.map_err(|Revoked| PortError::Revoked)?.map_err(PortError::from)
    }
}

/// What work sees of its thread: scripts to run, and the host between them.
pub struct Session<'a, H> {
    pub(super) custody: &'a Arc<Custody<H>>,
    pub(super) bench: &'a mut Bench,
    pub(super) started: Instant,
    /// How long its scripts may run.
    pub(super) time: Duration,
}

impl<H: Send + 'static> Session<'_, H> {
    /// Runs a script in a runtime as new. Its operations go to the session's host. All scripts of a
    /// session share its time.
    pub fn execute(&mut self, call: &Call) -> Result<Outcome, Failure>
    where
        H: Host,
    {
        let stage = self.bench.take_stage().map_err(|_| out_of_memory())?;
        let result = stage.run(call, Box::new(self.custody.clone()), self.times());
        self.bench.discard(stage);
        result
    }

    /// The functions of a query, in one runtime for all their calls.
    pub fn functions(&mut self, programs: &[Arc<Program>]) -> Result<Functions, Failure> {
        let machine = self.bench.lend_machine().map_err(|_| out_of_memory())?;
        let times = self.times();
        Functions::on(machine, programs, times.until, Some(times.revoked))
    }

    /// Access to the host between scripts.
    ///
    /// While `f` runs nobody can take the host; if somebody tries, it goes when `f` returns.
    pub fn with_host<R>(&mut self, f: impl FnOnce(&mut H) -> R) -> Result<R, Revoked> {
        self.custody.with(f)
    }

    /// Takes the host out, for the commit: from here on neither the watchdog nor a cancel interferes.
    pub fn take_host(&mut self) -> Result<H, Revoked> {
        self.custody.take()
    }

    /// When the scripts of this session have to end.
    pub fn until(&self) -> Instant {
        self.started + self.time
    }

    fn times(&self) -> Times {
        let accept_until = self.started + self.bench.limits().accept;
        Times { accept_until, until: self.until(), revoked: self.custody.revoked.clone() }
    }
}

fn out_of_memory() -> Failure {
    Failure::Exception {
        number: 0,
        message: "InternalError: out of memory".to_owned(),
        stack: String::new(),
        log: String::new(),
        fuel: 0,
    }
}
