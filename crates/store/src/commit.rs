//! Writing: one atomic, conditional commit, and the ticket it is answered by.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, Weak};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;

use crate::{LogId, Result, Space};

/// When a commit counts as done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// When it would survive a power loss.
    #[default]
    Sync,
    /// When it is applied; it reaches the disk within about a second.
    Relaxed,
}

/// One change of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// Sets the value of a key.
    Put(Space, Bytes, Bytes),
    /// Removes a key; removing an absent key is no error.
    Delete(Space, Bytes),
}

/// What must be true for a commit to happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// The key is absent.
    Absent(Space, Bytes),
    /// The key has exactly this value.
    Equals(Space, Bytes, Bytes),
}

/// A change of a number under a key, merged by the store so that concurrent commits need no lock.
///
/// Values are little-endian: `Add` works on a row of `i64`s (element-wise, missing ones are 0),
/// `Max` on one `u64`. A row of sums that are all 0 is removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Merge {
    /// Adds to each number of the row.
    Add(Space, Bytes, [i64; 2]),
    /// Keeps the larger.
    Max(Space, Bytes, u64),
}

impl Write {
    /// Where the key lives.
    pub fn space(&self) -> Space {
        match self {
            Write::Put(space, ..) | Write::Delete(space, _) => *space,
        }
    }

    /// The key that changes.
    pub fn key(&self) -> &Bytes {
        match self {
            Write::Put(_, key, _) | Write::Delete(_, key) => key,
        }
    }

    /// What the key holds afterwards; `None` if it is removed.
    pub fn value(&self) -> Option<&Bytes> {
        match self {
            Write::Put(_, _, value) => Some(value),
            Write::Delete(..) => None,
        }
    }
}

impl Precondition {
    /// Where the key lives.
    pub fn space(&self) -> Space {
        match self {
            Precondition::Absent(space, _) | Precondition::Equals(space, ..) => *space,
        }
    }

    /// The key it is about.
    pub fn key(&self) -> &Bytes {
        match self {
            Precondition::Absent(_, key) | Precondition::Equals(_, key, _) => key,
        }
    }

    /// Whether it holds if the key has this value.
    pub fn holds(&self, value: Option<&[u8]>) -> bool {
        match self {
            Precondition::Absent(..) => value.is_none(),
            Precondition::Equals(_, _, expected) => value == Some(&expected[..]),
        }
    }
}

impl Merge {
    /// Where the key lives.
    pub fn space(&self) -> Space {
        match self {
            Merge::Add(space, ..) | Merge::Max(space, ..) => *space,
        }
    }

    /// The key that changes.
    pub fn key(&self) -> &Bytes {
        match self {
            Merge::Add(_, key, _) | Merge::Max(_, key, _) => key,
        }
    }

    /// The value after the merge; `None` if the key is removed.
    ///
    /// An absent or short value counts as zeros. Numbers of a longer row stay as they are, so a row
    /// may grow in a later format. Sums wrap: they come out the same in any order.
    pub fn apply(&self, old: Option<&[u8]>) -> Option<Bytes> {
        let old = old.unwrap_or_default();
        match self {
            Merge::Add(_, _, row) => add(old, row),
            Merge::Max(_, _, number) => {
                let larger = u64::from_le_bytes(number_at(old, 0)).max(*number);
                Some(Bytes::copy_from_slice(&larger.to_le_bytes()))
            }
        }
    }
}

fn add(old: &[u8], row: &[i64]) -> Option<Bytes> {
    let length = old.len().next_multiple_of(8).max(row.len() * 8);
    let mut sums = Vec::with_capacity(length);
    for at in 0..length / 8 {
        let sum = i64::from_le_bytes(number_at(old, at));
        let sum = sum.wrapping_add(row.get(at).copied().unwrap_or(0));
        sums.extend_from_slice(&sum.to_le_bytes());
    }
    let is_zero = sums.iter().all(|&byte| byte == 0);
    (!is_zero).then(|| Bytes::from(sums))
}

/// Number `at` of a row, zeros where the row ends.
fn number_at(row: &[u8], at: usize) -> [u8; 8] {
    let mut number = [0; 8];
    let rest = row.get(at * 8..).unwrap_or_default();
    let length = rest.len().min(8);
    number[..length].copy_from_slice(&rest[..length]);
    number
}

/// The position a commit gives a log. Positions of one log grow from commit to commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Which log.
    pub log: LogId,
    /// Its position once this commit is in.
    pub position: u64,
}

/// Names a commit so that its outcome can be asked for after a broken connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Token(pub u128);

/// Called with the sequence of the view that will contain the commit (S6).
pub type BeforePublish = Box<dyn FnOnce(u64) + Send>;

/// One atomic change. All of it happens, or none.
///
/// No key may be written twice by one commit, nor both written and merged. A key has at least one
/// byte. Order inside a commit: preconditions, writes, merges.
#[derive(Default)]
pub struct Commit {
    /// Checked against the state the commit is applied to.
    pub preconditions: Vec<Precondition>,
    /// Puts and deletes.
    pub writes: Vec<Write>,
    /// Sums and maxima.
    pub merges: Vec<Merge>,
    /// Log positions this commit establishes.
    pub marks: Vec<Mark>,
    /// Name of the commit, for `resolve`. Zero for none.
    pub token: Token,
    /// Overrides the store's durability for this commit; `None` is the store's own.
    pub durability: Option<Durability>,
    /// Runs before the commit becomes visible (S6). Must be quick and must not call the store.
    pub before_publish: Option<BeforePublish>,
    /// Whether the caller is about to wait for the ticket: the store may leave the work to it (S8).
    pub is_awaited: bool,
}

impl Commit {
    /// Bytes of all keys and values: what `Limits::commit_bytes_max` bounds.
    pub fn bytes(&self) -> usize {
        let writes = self.writes.iter().map(|write| match write {
            Write::Put(_, key, value) => key.len() + value.len(),
            Write::Delete(_, key) => key.len(),
        });
        let merges = self.merges.iter().map(|merge| match merge {
            Merge::Add(_, key, _) => key.len() + 16,
            Merge::Max(_, key, _) => key.len() + 8,
        });
        writes.sum::<usize>() + merges.sum::<usize>()
    }
}

/// What became of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is in every view from now on.
    Committed,
    /// It never happened, and never will.
    NotCommitted,
}

/// The answer to a commit, to be awaited (gateway) or waited for (scripts, background work).
///
/// Dropping a ticket does not undo its commit.
pub struct Ticket {
    slot: Arc<Slot>,
    /// Who is told once, when the ticket is first waited for or dropped.
    helper: Option<Weak<dyn Helper>>,
}

/// A store that lets those who wait do what they wait for (S8).
pub trait Helper: Send + Sync {
    /// Does what waits to be committed on this thread, unless somebody is at it.
    fn help(&self);
    /// Has another thread do it: nobody waits for it.
    fn hand_over(&self);
}

/// The store's end of a ticket. Dropped without an answer, the ticket resolves as unknown.
pub struct TicketSender(Option<Arc<Slot>>);

#[derive(Default)]
struct Slot {
    state: Mutex<SlotState>,
    ready: Condvar,
}

#[derive(Default)]
struct SlotState {
    result: Option<Result<()>>,
    waker: Option<Waker>,
    /// Whether a thread sleeps on `ready`; waking nobody would cost a system call.
    is_waited_for: bool,
}

/// A ticket and its sender.
pub fn ticket() -> (TicketSender, Ticket) {
    let slot = Arc::new(Slot::default());
    (TicketSender(Some(slot.clone())), Ticket { slot, helper: None })
}

impl Ticket {
    /// A ticket that is already answered.
    pub fn resolved(result: Result<()>) -> Ticket {
        let (sender, ticket) = ticket();
        sender.send(result);
        ticket
    }

    /// Has `helper` told when somebody waits for the answer, or nobody will any more.
    pub fn helped_by(self, helper: Weak<dyn Helper>) -> Ticket {
        Ticket { slot: self.slot.clone(), helper: Some(helper) }
    }

    /// The answer, if it is there already. Refusals that do not depend on the state (too large,
    /// busy, poisoned, closed) are there when `Store::commit` returns.
    pub fn peek(&self) -> Option<Result<()>> {
        self.slot.state.lock().expect("no code panics while holding this lock").result.clone()
    }

    /// Blocks the thread until the answer is there.
    pub fn wait(mut self) -> Result<()> {
        self.help();
        let mut state = self.slot.state.lock().expect("no code panics while holding this lock");
        loop {
            if let Some(result) = state.result.clone() {
                return result;
            }
            state.is_waited_for = true;
            state = self.slot.ready.wait(state).expect("no code panics while holding this lock");
        }
    }

    /// Has the commit begun, though it will not be waited for at once.
    pub fn begin(&mut self) {
        self.take_helper().into_iter().for_each(|helper| helper.hand_over());
    }

    /// Does what the commit waits for on this thread, unless somebody is at it: whoever waits begins
    /// with this.
    pub fn help(&mut self) {
        self.take_helper().into_iter().for_each(|helper| helper.help());
    }

    /// Who is to be told, once, and only while there is something to do.
    fn take_helper(&mut self) -> Option<Arc<dyn Helper>> {
        self.helper.take()?.upgrade().filter(|_| self.peek().is_none())
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.begin();
    }
}

impl Future for Ticket {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.help();
        let mut state = self.slot.state.lock().expect("no code panics while holding this lock");
        match state.result.clone() {
            Some(result) => Poll::Ready(result),
            None => {
                state.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl TicketSender {
    /// Answers the ticket.
    pub fn send(mut self, result: Result<()>) {
        if let Some(slot) = self.0.take() {
            slot.answer(result);
        }
    }
}

impl Drop for TicketSender {
    fn drop(&mut self) {
        if let Some(slot) = self.0.take() {
            slot.answer(Err(crate::Error::Unknown));
        }
    }
}

impl Slot {
    fn answer(&self, result: Result<()>) {
        let (is_waited_for, waker) = {
            let mut state = self.state.lock().expect("no code panics while holding this lock");
            state.result = Some(result);
            (state.is_waited_for, state.waker.take())
        };
        if is_waited_for {
            self.ready.notify_all();
        }
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}
