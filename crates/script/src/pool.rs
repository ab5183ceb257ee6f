//! Threads that run scripts, and the watchdog over them.
//!
//! ```text
//! submit ─▶ queue ─▶ thread ─▶ work(session) ─▶ answer
//!             │         │
//!             └─ waits too long: Unavailable
//!                       └─ runs too long: the watchdog takes the host, answers Overdue, and counts
//!                          the thread as lost until it comes back; another takes its place
//! ```
//!
//! A script is interrupted at its deadline by the engine itself. The watchdog is for what does not
//! look at the clock: a built-in function that walks or searches for minutes. Such a thread cannot be
//! killed; with [`LOST_MAX`] of them, new work is refused until one is back.
//!
//! INVARIANTS
//! (Q1) Every answer is given exactly once.
//! (Q2) A host is in one place: in its job, in the hands of the work, or gone. Whoever revokes it, it
//!      is dropped at once, or as soon as the call that is using it returns.
//! (Q3) Neither answers, hosts nor work are run or dropped under the lock of the pool.

mod here;
mod job;

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::call::Limits;
use crate::machine::Machine;
use crate::run::Stage;
use job::{Job, Task};

pub use here::{Place, lend_thread, tidy_thread};
pub use job::{Revoked, Session, Stop};

/// Threads that may be lost before new work is refused.
const LOST_MAX: usize = 2;

/// What the watchdog adds to the time of a script, for one that is just ending by itself.
const GRACE: Duration = Duration::from_millis(250);

/// How much less processor time scripts get than threads that answer requests.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;

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
        PoolOptions { threads: 4, limits: Limits::default() }
    }
}

/// Threads that run scripts. They start when they are needed; dropping the pool ends them.
pub struct Pool {
    shared: Arc<Shared>,
}

impl Pool {
    /// A pool without threads yet.
    pub fn new(options: PoolOptions) -> Pool {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let shared = Shared { number, options, ..Shared::default() };
        Pool { shared: Arc::new(shared) }
    }

    /// Queues `work` for a script thread.
    ///
    /// `answer` is called exactly once: by the thread, by the watchdog, or right here if the work is
    /// refused. Work that no thread has taken up at `wait_until` is answered
    /// [`Stop::Unavailable`].
    ///
    /// Dropping the returned [`Running`] before the answer cancels: the host is dropped, the script
    /// interrupted. Work that has not begun then never does, and is answered `Unavailable`.
    pub fn submit<H: Send + 'static, T: Send + 'static>(
        &self,
        host: H,
        wait_until: Option<Instant>,
        work: impl FnOnce(&mut Session<'_, H>) -> T + Send + 'static,
        answer: impl FnOnce(Result<T, Stop>) + Send + 'static,
    ) -> Running {
        let job: Arc<dyn Task> = Arc::new(Job::new(host, work, answer));
        if !self.shared.enqueue(job.clone(), wait_until) {
            job.refuse();
        }
        Running { job: Some(job) }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let queued = {
            let mut state = self.shared.state.lock();
            state.is_closed = true;
            for sleeper in state.sleepers.drain(..) {
                sleeper.notify_one();
            }
            std::mem::take(&mut state.queue)
        };
        self.shared.watch_changed.notify_all();
        queued.into_iter().for_each(|waiting| waiting.job.refuse());
    }
}

/// Work under way. Dropping it cancels.
#[must_use = "dropping it cancels the work"]
pub struct Running {
    job: Option<Arc<dyn Task>>,
}

impl Running {
    /// Lets the work go on without anybody who could cancel it.
    pub fn detach(mut self) {
        self.job = None;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(job) = self.job.take() {
            job.revoke();
        }
    }
}

#[derive(Default)]
struct Shared {
    /// No other pool of the process has it.
    number: u64,
    options: PoolOptions,
    state: Mutex<State>,
    watch_changed: Condvar,
    /// Whether a thread that is not of the pool is at work for it (H1).
    is_at_work_there: AtomicBool,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Waiting>,
    running: Vec<Watched>,
    /// Threads that are not lost.
    threads: usize,
    /// Threads that wait, or were told of work and are waking up.
    idle: usize,
    /// Those that wait. The one that came last goes first: its machine is still in the caches.
    sleepers: Vec<Arc<Condvar>>,
    lost: usize,
    /// Numbers for names.
    started: usize,
    has_watchdog: bool,
    /// When the watchdog looks next; none: when it is told.
    watch_at: Option<Instant>,
    is_closed: bool,
}

struct Waiting {
    job: Arc<dyn Task>,
    until: Option<Instant>,
}

struct Watched {
    job: Arc<dyn Task>,
    overdue_at: Instant,
    /// Whether a thread of the pool is at it.
    is_ours: bool,
}

impl Shared {
    /// False: refused.
    fn enqueue(self: &Arc<Shared>, job: Arc<dyn Task>, until: Option<Instant>) -> bool {
        let mut state = self.state.lock();
        if state.is_closed || state.lost >= LOST_MAX {
            return false;
        }
        state.queue.push_back(Waiting { job, until });
        if let Some(until) = until {
            self.watch_from(&mut state, until);
        }
        self.add_thread(&mut state);
        if let Some(sleeper) = state.sleepers.pop() {
            sleeper.notify_one();
        }
        true
    }

    /// Starts a thread if there is more work than threads to wait for it.
    fn add_thread(self: &Arc<Shared>, state: &mut State) {
        let wanted = state.queue.len() > state.idle && state.threads < self.options.threads.max(1);
        if !wanted {
            return;
        }
        let shared = self.clone();
        let name = format!("script-{}", state.started);
        let stack = self.options.limits.thread_stack_bytes();
        let spawned = thread::Builder::new().name(name).stack_size(stack).spawn(move || {
            be_nice();
            shared.work();
        });
        // Without a new thread the work waits for an old one, or for its time.
        if spawned.is_ok() {
            state.started += 1;
            state.threads += 1;
        }
    }

    /// The life of a script thread.
    fn work(self: &Arc<Shared>) {
        let mut bench = Bench::new(&self.options.limits);
        let bell = Arc::new(Condvar::new());
        while let Some(job) = self.next(&mut bench, &bell) {
            // Whatever the work throws is in its answer; this is for answers that throw.
            let _ = catch_unwind(AssertUnwindSafe(|| job.run(&mut bench)));
            bench.renew();
            if !self.finished(&job) {
                return;
            }
        }
    }

    /// The next job, or none if the thread is to end. Makes machines before it waits.
    fn next(self: &Arc<Shared>, bench: &mut Bench, bell: &Arc<Condvar>) -> Option<Arc<dyn Task>> {
        loop {
            let mut state = self.state.lock();
            if let Some(waiting) = state.queue.pop_front() {
                self.start_watching(&mut state, waiting.job.clone(), true);
                return Some(waiting.job);
            }
            if state.is_closed {
                state.threads -= 1;
                return None;
            }
            if bench.is_ready() {
                state.idle += 1;
                state.sleepers.push(bell.clone());
                bell.wait(&mut state);
                // Still there if nobody rang.
                state.sleepers.retain(|sleeper| !Arc::ptr_eq(sleeper, bell));
                state.idle -= 1;
            } else {
                drop(state);
                bench.prepare();
            }
        }
    }

    /// Has the watchdog end a job that takes too long.
    fn start_watching(self: &Arc<Shared>, state: &mut State, job: Arc<dyn Task>, is_ours: bool) {
        let overdue_at = Instant::now() + self.options.limits.run + GRACE;
        state.running.push(Watched { job, overdue_at, is_ours });
        self.watch_from(state, overdue_at);
    }

    /// Takes a job off the watch. Returns whether its thread is still wanted.
    fn finished(&self, job: &Arc<dyn Task>) -> bool {
        let mut state = self.state.lock();
        let at = state.running.iter().position(|watched| Arc::ptr_eq(&watched.job, job));
        match at {
            Some(at) => {
                state.running.swap_remove(at);
                true
            }
            None => {
                // The watchdog had given the thread up.
                state.lost -= 1;
                let is_wanted = state.threads < self.options.threads.max(1);
                state.threads += usize::from(is_wanted);
                is_wanted
            }
        }
    }

    /// Makes sure the watchdog looks at this time or before.
    fn watch_from(self: &Arc<Shared>, state: &mut State, at: Instant) {
        if !state.has_watchdog {
            let shared = self.clone();
            let spawned = thread::Builder::new().name("script-watchdog".to_owned());
            state.has_watchdog = spawned.spawn(move || shared.watch()).is_ok();
        }
        if state.watch_at.is_none_or(|planned| at < planned) {
            state.watch_at = Some(at);
            self.watch_changed.notify_one();
        }
    }

    /// The life of the watchdog.
    fn watch(self: &Arc<Shared>) {
        let mut state = self.state.lock();
        loop {
            let now = Instant::now();
            let (late, expired) = (state.take_late(now), state.take_expired(now));
            if !late.is_empty() || !expired.is_empty() {
                self.add_thread(&mut state);
                drop(state);
                late.iter().for_each(|job| job.overdue());
                expired.iter().for_each(|job| job.refuse());
                state = self.state.lock();
                continue;
            }
            if state.is_closed && state.running.is_empty() {
                state.has_watchdog = false;
                return;
            }
            state.watch_at = state.next_look();
            match state.watch_at {
                Some(at) => drop(self.watch_changed.wait_until(&mut state, at)),
                None => self.watch_changed.wait(&mut state),
            }
        }
    }
}

impl State {
    /// Takes out what runs too long; its threads are lost.
    fn take_late(&mut self, now: Instant) -> Vec<Arc<dyn Task>> {
        let is_late = |watched: &Watched| watched.overdue_at <= now && !watched.job.is_committing();
        let (late, running) = std::mem::take(&mut self.running).into_iter().partition(is_late);
        self.running = running;
        let late: Vec<Watched> = late;
        let lost = late.iter().filter(|watched| watched.is_ours).count();
        self.lost += lost;
        self.threads -= lost;
        late.into_iter().map(|watched| watched.job).collect()
    }

    /// Takes out what has waited too long.
    fn take_expired(&mut self, now: Instant) -> Vec<Arc<dyn Task>> {
        let is_expired = |waiting: &Waiting| waiting.until.is_some_and(|until| until <= now);
        let (expired, queue) = std::mem::take(&mut self.queue).into_iter().partition(is_expired);
        self.queue = queue;
        let expired: VecDeque<Waiting> = expired;
        expired.into_iter().map(|waiting| waiting.job).collect()
    }

    /// When there may next be something late. Jobs that commit are not looked at again.
    fn next_look(&self) -> Option<Instant> {
        let running = self.running.iter().filter(|watched| !watched.job.is_committing());
        let running = running.map(|watched| watched.overdue_at);
        running.chain(self.queue.iter().filter_map(|waiting| waiting.until)).min()
    }
}

/// What a thread keeps at hand: machines for the next work, and those of the last.
pub(crate) struct Bench {
    limits: Limits,
    stage: Option<Stage>,
    /// Used, and to be made as new.
    spent: Option<Stage>,
    machine: Option<Rc<Machine>>,
    /// Lent to the functions of a query, and to be made as new when they are gone.
    lent: Option<Rc<Machine>>,
}

impl Bench {
    fn new(limits: &Limits) -> Bench {
        Bench { limits: limits.clone(), stage: None, spent: None, machine: None, lent: None }
    }

    fn is_ready(&self) -> bool {
        self.stage.is_some() && self.machine.is_some()
    }

    /// Makes one of what is missing.
    fn prepare(&mut self) {
        if self.stage.is_none() {
            self.stage = Stage::new(&self.limits).ok();
        } else if self.machine.is_none() {
            self.machine = new_machine(&self.limits).ok();
        }
    }

    pub(crate) fn take_stage(&mut self) -> rquickjs::Result<Stage> {
        self.renew_stage();
        self.stage.take().map_or_else(|| Stage::new(&self.limits), Ok)
    }

    /// A machine for functions. While they are there, the next call gets another.
    pub(crate) fn lend_machine(&mut self) -> rquickjs::Result<Rc<Machine>> {
        self.renew_machine();
        let machine = self.machine.take().map_or_else(|| new_machine(&self.limits), Ok)?;
        self.lent = Some(machine.clone());
        Ok(machine)
    }

    /// Puts a used stage aside; it is made as new after the answer.
    pub(crate) fn discard(&mut self, stage: Stage) {
        self.spent = Some(stage);
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    fn renew(&mut self) {
        self.renew_stage();
        self.renew_machine();
    }

    fn renew_stage(&mut self) {
        if let Some(mut stage) = self.spent.take()
            && stage.rewind()
        {
            self.stage = Some(stage);
        }
    }

    fn renew_machine(&mut self) {
        // M4: whoever has handles in the machine is an owner of it.
        if let Some(mut machine) = self.lent.take()
            && Rc::get_mut(&mut machine).is_some_and(Machine::rewind)
        {
            self.machine = Some(machine);
        }
    }
}

/// A machine that can be used any number of times.
fn new_machine(limits: &Limits) -> rquickjs::Result<Rc<Machine>> {
    let machine = Machine::new(limits)?;
    machine.keep();
    Ok(Rc::new(machine))
}

#[cfg(target_os = "linux")]
fn be_nice() {
    // On Linux this is the priority of the one thread. Without the permission it stays as it is.
    let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICENESS);
}

#[cfg(not(target_os = "linux"))]
fn be_nice() {}
