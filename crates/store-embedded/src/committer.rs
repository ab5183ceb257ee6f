//! Who writes: one at a time, a thread of its own or a caller that waits.
//!
//! He takes all that waits and makes it one group: one batch, one sync, one publication. While he
//! syncs, the next group gathers. A caller who waits and finds nobody at work is faster than a thread
//! that has to be woken, twice: to begin and to answer. He does one group; what has gathered
//! meanwhile is the thread's, so under load it is the thread that writes. It also is where disks are
//! slow ([`QUICK`]): no caller shall be held up who could do something else.
//!
//! Under relaxed durability groups are not synced; the thread wakes itself to do so within
//! [`SYNC_WITHIN`].
//!
//! INVARIANTS
//! (W1) The order of a group is write, sync, hooks, publish, answer (S4, S6).
//! (W2) A refusal is answered with its group: what it was decided on is durable by then.
//! (W3) After a fault nothing more is written, and every waiting commit is answered (S7).
//! (W4) Callers leave nothing unsynced: the thread would not know of it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use store::{
    BeforePublish, Commit, Durability, Error, Helper, LogId, Positions, RecentTokens, Result,
    Statistics, TicketSender, Token, View,
};

use crate::directory::Directory;
use crate::engine::Engine;
use crate::group::{Group, advanced};
use crate::queue::{Begin, Job, Queue, Taken};
use crate::reader::SnapshotReader;
use crate::{Faults, Options, POSITIONS_GAP};

/// How long a relaxed commit may stay unsynced.
const SYNC_WITHIN: Duration = Duration::from_millis(900);

/// A caller writes for himself if the last group took no longer.
const QUICK: Duration = Duration::from_millis(2);

/// What who writes and the callers share.
pub(crate) struct Shared {
    pub(crate) queue: Queue,
    pub(crate) tokens: RecentTokens,
    view: ArcSwap<View>,
    poison: OnceLock<String>,
    commits: AtomicU64,
    groups: AtomicU64,
    syncs: AtomicU64,
    /// Whether the next group is likely to be written soon.
    is_quick: AtomicBool,
}

impl Shared {
    /// Publishes the state found at open.
    pub(crate) fn new(engine: &Engine, positions: Positions, options: &Options) -> Shared {
        let view = View::new(0, Arc::new(positions), Arc::new(engine.snapshot()));
        Shared {
            queue: Queue::new(options),
            tokens: RecentTokens::default(),
            view: ArcSwap::from_pointee(view),
            poison: OnceLock::new(),
            commits: AtomicU64::new(0),
            groups: AtomicU64::new(0),
            syncs: AtomicU64::new(0),
            is_quick: AtomicBool::new(true),
        }
    }

    /// The newest published view.
    pub(crate) fn view(&self) -> View {
        View::clone(&self.view.load())
    }

    /// Has a job done after all before it.
    pub(crate) fn enqueue(&self, job: Job, bytes: usize, begin: Begin) -> Result<()> {
        match self.poisoned() {
            Some(error) => Err(error),
            None => self.queue.push(job, bytes, begin),
        }
    }

    /// The error that every commit gets after a fault.
    pub(crate) fn poisoned(&self) -> Option<Error> {
        self.poison.get().map(|reason| Error::Poisoned { reason: reason.clone() })
    }

    /// Figures but for the size on disk.
    pub(crate) fn statistics(&self) -> Statistics {
        let commits = self.commits.load(Ordering::Relaxed);
        Statistics { bytes: 0, commits, groups: self.groups.load(Ordering::Relaxed) }
    }

    /// How often the journal was synced.
    pub(crate) fn syncs(&self) -> u64 {
        self.syncs.load(Ordering::Relaxed)
    }

    fn set_poison(&self, reason: String) -> Error {
        Error::Poisoned { reason: self.poison.get_or_init(|| reason).clone() }
    }
}

/// The committer, for whoever is at work (Q2).
pub(crate) struct Writer {
    shared: Arc<Shared>,
    /// Gone once the queue is closed: who still holds a ticket must not hold files.
    committer: Mutex<Option<Committer>>,
    durability: Durability,
    faults: Faults,
}

/// What writing needs.
struct Committer {
    engine: Arc<Engine>,
    shared: Arc<Shared>,
    directory: Arc<Directory>,
    durability: Durability,
    faults: Faults,
    /// The newest snapshot, the one that is published.
    reader: Arc<SnapshotReader>,
    group: Group,
    /// Positions that would survive a power loss (F3).
    synced: Arc<Positions>,
    /// When the oldest unsynced group was written.
    unsynced_since: Option<Instant>,
}

/// What is left to do for a group once it is decided.
#[derive(Default)]
struct Pending {
    answers: Vec<(TicketSender, Result<()>)>,
    hooks: Vec<BeforePublish>,
    tokens: Vec<Token>,
    commits: u64,
    needs_sync: bool,
}

impl Writer {
    pub(crate) fn new(
        engine: Arc<Engine>,
        shared: Arc<Shared>,
        directory: Arc<Directory>,
        options: Options,
    ) -> Writer {
        let committer = Committer {
            reader: Arc::new(engine.snapshot()),
            synced: shared.view().positions().clone(),
            engine,
            shared: shared.clone(),
            directory,
            durability: options.durability,
            faults: options.faults.clone(),
            group: Group::default(),
            unsynced_since: None,
        };
        let (durability, faults) = (options.durability, options.faults);
        Writer { shared, committer: Mutex::new(Some(committer)), durability, faults }
    }

    /// Starts the thread. It ends when the queue is closed and empty.
    pub(crate) fn spawn(self: Arc<Self>) -> Result<JoinHandle<()>> {
        std::thread::Builder::new()
            .name("committer".to_owned())
            .spawn(move || self.run())
            .map_err(|e| Error::Fault(format!("cannot start the committer: {e}")))
    }

    /// When a commit is to be begun: by the caller only if that leaves nothing unsynced (W4).
    pub(crate) fn begin(&self, commit: &Commit) -> Begin {
        let durability = commit.durability.unwrap_or(self.durability);
        let is_synced = durability == Durability::Sync && self.durability == Durability::Sync;
        match commit.is_awaited && is_synced && self.is_quick() {
            true => Begin::WhenAwaited,
            false => Begin::Now,
        }
    }

    fn is_quick(&self) -> bool {
        self.shared.is_quick.load(Ordering::Relaxed) && !self.faults.are_writes_held()
    }

    fn run(&self) {
        loop {
            let since = self.committer.lock().as_ref().and_then(|own| own.unsynced_since);
            match self.shared.queue.take(since.map(|since| since + SYNC_WITHIN)) {
                Taken::Jobs(jobs) => self.commit(jobs, false),
                Taken::Nothing => {}
                Taken::Closed => break,
            }
            self.committer.lock().iter_mut().for_each(Committer::sync_if_late);
        }
        self.committer.lock().take().iter_mut().for_each(Committer::sync_unsynced);
    }

    /// One group. A panic here, in a hook say, must not leave writers waiting (W3).
    fn commit(&self, jobs: Vec<Job>, is_synced: bool) {
        if let Some(committer) = &mut *self.committer.lock()
            && catch_unwind(AssertUnwindSafe(|| committer.commit(jobs, is_synced))).is_err()
        {
            self.shared.set_poison("the committer panicked".to_owned());
        }
        self.shared.queue.done();
    }
}

impl Helper for Writer {
    fn help(&self) {
        match self.is_quick() {
            // Others' may be among them that need no sync (W4).
            true => {
                self.shared.queue.take_few().into_iter().for_each(|jobs| self.commit(jobs, true));
            }
            false => self.hand_over(),
        }
    }

    fn hand_over(&self) {
        self.shared.queue.hand_over();
    }
}

impl Committer {
    fn refuse(&self, jobs: Vec<Job>) {
        let error = self.shared.poisoned().unwrap_or(Error::Closed);
        for job in jobs {
            let (Job::Commit(_, sender) | Job::Sync(sender) | Job::Publish(sender)) = job;
            sender.send(Err(error.clone()));
        }
    }

    /// One group, from decision to answers (W1).
    fn commit(&mut self, jobs: Vec<Job>, is_synced: bool) {
        if self.shared.poisoned().is_some() {
            return self.refuse(jobs);
        }
        let begun = Instant::now();
        let mut pending = self.decide(jobs);
        pending.needs_sync |= is_synced;
        let marks = self.group.take_marks();
        let is_empty = pending.commits == 0 && !pending.needs_sync;
        let written = if is_empty { Ok(()) } else { self.write(&marks, pending.needs_sync) };
        match written {
            Ok(()) => {
                self.publish(&marks, &mut pending);
                self.judge(begun.elapsed(), pending.needs_sync);
                pending.answers.into_iter().for_each(|(sender, result)| sender.send(result));
            }
            Err(error) => {
                let error = self.shared.set_poison(error.to_string());
                pending.answers.into_iter().for_each(|(sender, _)| sender.send(Err(error.clone())));
            }
        }
    }

    fn decide(&mut self, jobs: Vec<Job>) -> Pending {
        let mut pending = Pending::default();
        for job in jobs {
            match job {
                Job::Commit(commit, sender) => {
                    let result = self.decide_commit(commit, &mut pending);
                    pending.answers.push((sender, result)); // W2
                }
                Job::Sync(sender) => {
                    pending.needs_sync = true;
                    pending.answers.push((sender, Ok(())));
                }
                // Every group is published; that is all that is asked for.
                Job::Publish(sender) => pending.answers.push((sender, Ok(()))),
            }
        }
        pending
    }

    fn decide_commit(&mut self, mut commit: Commit, pending: &mut Pending) -> Result<()> {
        self.group.apply(&*self.reader, &mut commit)?;
        pending.commits += 1;
        pending.needs_sync |= commit.durability.unwrap_or(self.durability) == Durability::Sync;
        pending.hooks.extend(commit.before_publish.take());
        if commit.token != Token::default() {
            pending.tokens.push(commit.token);
        }
        Ok(())
    }

    fn write(&mut self, marks: &[(LogId, u64)], needs_sync: bool) -> Result<()> {
        self.faults.wait_while_held();
        if self.faults.are_writes_failing() {
            return Err(Error::Fault("a test made this write fail".to_owned()));
        }
        let needs_sync = needs_sync || self.is_far_ahead(marks);
        if !needs_sync {
            self.directory.mark_relaxed()?;
        }
        self.engine.write(self.group.drain(), marks, needs_sync)?;
        match needs_sync {
            true => {
                self.unsynced_since = None;
                self.shared.syncs.fetch_add(1, Ordering::Relaxed);
            }
            false => self.unsynced_since = self.unsynced_since.or_else(|| Some(Instant::now())),
        }
        Ok(())
    }

    /// Whether publishing these positions unsynced could get them reused after a crash (F3).
    fn is_far_ahead(&self, marks: &[(LogId, u64)]) -> bool {
        marks.iter().any(|&(log, position)| {
            let synced = self.synced.get(log);
            // A log that a crash forgets altogether would not skip ahead: its first mark is synced.
            let is_new = synced == 0 && position > 0;
            is_new || position.saturating_sub(synced) > POSITIONS_GAP / 2
        })
    }

    fn publish(&mut self, marks: &[(LogId, u64)], pending: &mut Pending) {
        let last = self.shared.view.load();
        let positions = match marks.is_empty() {
            true => last.positions().clone(),
            false => Arc::new(advanced(last.positions(), marks)),
        };
        if self.unsynced_since.is_none() {
            self.synced = positions.clone();
        }
        self.reader = Arc::new(self.engine.snapshot());
        let view = View::new(last.sequence() + 1, positions, self.reader.clone());
        for hook in pending.hooks.drain(..) {
            hook(view.sequence());
        }
        for token in pending.tokens.drain(..) {
            self.shared.tokens.remember(token);
        }
        self.shared.commits.fetch_add(pending.commits, Ordering::Relaxed);
        self.shared.groups.fetch_add(1, Ordering::Relaxed);
        self.shared.view.store(Arc::new(view));
    }

    /// What a group took says what the next will take. One that was not synced says nothing good.
    fn judge(&self, took: Duration, was_synced: bool) {
        let is_quick = took <= QUICK && self.engine.has_room();
        if was_synced || !is_quick {
            self.shared.is_quick.store(is_quick, Ordering::Relaxed);
        }
    }

    fn sync_if_late(&mut self) {
        if self.unsynced_since.is_some_and(|since| since.elapsed() >= SYNC_WITHIN) {
            self.sync_unsynced();
        }
    }

    /// Syncs what relaxed groups left behind.
    fn sync_unsynced(&mut self) {
        if self.unsynced_since.take().is_none() {
            return;
        }
        match self.engine.sync() {
            Ok(()) => {
                self.synced = self.shared.view.load().positions().clone();
                self.shared.syncs.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) => drop(self.shared.set_poison(error.to_string())),
        }
    }
}
