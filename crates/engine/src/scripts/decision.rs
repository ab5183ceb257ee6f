//! The way of an answer from a script thread to whoever waits for it.
//!
//! ```text
//! open ──decide──▶ decided ──poll──▶ taken
//!                     └─ waits for its commit, if it has one
//! ```
//!
//! Whoever waits is woken once, when the answer is there. If it still depends on a commit when it is
//! decided, the thread that decides has the commit wake him.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use parking_lot::Mutex;

use crate::{Error, Pending, Result};

/// Both ends of the way of one answer.
pub(super) fn decision<T>() -> (Decider<T>, Decision<T>) {
    let state = Arc::new(Mutex::new(State::Open(None)));
    (Decider(state.clone()), Decision(state))
}

enum State<T> {
    /// With whom to wake.
    Open(Option<Waker>),
    Decided(Pending<T>),
    Taken,
}

/// The end of the script thread. If it is dropped before it has decided, nobody can.
pub(super) struct Decider<T>(Arc<Mutex<State<T>>>);

impl<T> Decider<T> {
    pub fn decide(self, pending: Pending<T>) {
        self.settle(pending);
    }

    /// Does nothing the second time.
    fn settle(&self, mut pending: Pending<T>) {
        let mut state = self.0.lock();
        if matches!(&*state, State::Open(Some(_))) {
            // Not under the lock: to wait for a commit may be to write it.
            drop(state);
            pending.help();
            state = self.0.lock();
        }
        // Under the lock: whomever the commit wakes finds the answer where he looks for it.
        let State::Open(waker) = &mut *state else { return };
        let waker = waker.take();
        let answer = waker.as_ref().map_or(Poll::Pending, |waker| {
            Pin::new(&mut pending).poll(&mut Context::from_waker(waker))
        });
        match answer {
            Poll::Pending => *state = State::Decided(pending),
            Poll::Ready(answer) => {
                *state = State::Decided(Pending::ready(answer));
                drop(state);
                waker.into_iter().for_each(Waker::wake);
            }
        }
    }
}

impl<T> Drop for Decider<T> {
    fn drop(&mut self) {
        self.settle(Pending::ready(Err(Error::Unavailable)));
    }
}

/// The end of whoever waits.
pub(super) struct Decision<T>(Arc<Mutex<State<T>>>);

impl<T> Decision<T> {
    /// A way that was gone already.
    pub fn decided(pending: Pending<T>) -> Decision<T> {
        Decision(Arc::new(Mutex::new(State::Decided(pending))))
    }

    pub fn poll(&self, cx: &mut Context<'_>) -> Poll<Result<T>> {
        let mut state = self.0.lock();
        match &mut *state {
            State::Open(waker) => {
                *waker = Some(cx.waker().clone());
                Poll::Pending
            }
            State::Decided(pending) => {
                let answer = Pin::new(pending).poll(cx);
                if answer.is_ready() {
                    *state = State::Taken;
                }
                answer
            }
            State::Taken => panic!("a future is not polled after it is ready"),
        }
    }

    /// Blocks the thread until the answer is there.
    pub fn wait(&self) -> Result<T> {
        let waker = Waker::from(Arc::new(Sleeper(thread::current())));
        let mut cx = Context::from_waker(&waker);
        loop {
            match self.poll(&mut cx) {
                Poll::Ready(answer) => return answer,
                Poll::Pending => thread::park(),
            }
        }
    }
}

/// A thread that blocks.
struct Sleeper(Thread);

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Polls once; the answer, and how often somebody was woken since the last time.
    struct Client {
        decision: Decision<u32>,
        wakes: Arc<Wakes>,
    }

    impl Client {
        fn new() -> (Decider<u32>, Client) {
            let (decider, decision) = decision();
            (decider, Client { decision, wakes: Arc::default() })
        }

        fn poll(&self) -> Option<Result<u32>> {
            let waker = Waker::from(self.wakes.clone());
            match self.decision.poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(answer) => Some(answer),
                Poll::Pending => None,
            }
        }

        fn wakes(&self) -> usize {
            self.wakes.0.swap(0, Ordering::SeqCst)
        }
    }

    #[test]
    fn an_answer_that_is_there_wakes() {
        let (decider, client) = Client::new();
        assert!(client.poll().is_none());
        decider.decide(Pending::ready(Ok(1)));
        assert_eq!(client.wakes(), 1);
        assert!(matches!(client.poll(), Some(Ok(1))));
    }

    #[test]
    fn an_answer_that_waits_for_a_commit_wakes_with_it() {
        let (decider, client) = Client::new();
        let (commit, ticket) = store::ticket();
        assert!(client.poll().is_none());
        decider.decide(Pending::after(ticket, Ok(1)));
        assert_eq!(client.wakes(), 0);
        assert!(client.poll().is_none());
        commit.send(Ok(()));
        assert_eq!(client.wakes(), 1);
        assert!(matches!(client.poll(), Some(Ok(1))));
    }

    #[test]
    fn an_answer_before_anybody_asks_wakes_nobody() {
        let (decider, client) = Client::new();
        let (commit, ticket) = store::ticket();
        decider.decide(Pending::after(ticket, Ok(1)));
        commit.send(Ok(()));
        assert_eq!(client.wakes(), 0);
        assert!(matches!(client.poll(), Some(Ok(1))));
    }

    #[test]
    fn a_commit_that_fails_is_the_answer() {
        let (decider, client) = Client::new();
        let (commit, ticket) = store::ticket();
        assert!(client.poll().is_none());
        decider.decide(Pending::after(ticket, Ok(1)));
        commit.send(Err(store::Error::Poisoned { reason: "full".into() }));
        assert_eq!(client.wakes(), 1);
        assert!(matches!(client.poll(), Some(Err(Error::Fault(_)))));
    }

    /// Asks for the answer with a waker of its own while the commit is being written.
    struct AsksAgain(Arc<Client>);

    impl store::Helper for AsksAgain {
        fn help(&self) {
            assert!(self.0.poll().is_none());
        }

        fn hand_over(&self) {}
    }

    #[test]
    fn somebody_else_who_asks_meanwhile_is_woken() {
        let (decider, client) = Client::new();
        let first = Waker::from(Arc::<Wakes>::default());
        assert!(client.decision.poll(&mut Context::from_waker(&first)).is_pending());
        let client = Arc::new(client);
        let helper: Arc<dyn store::Helper> = Arc::new(AsksAgain(client.clone()));
        let (commit, ticket) = store::ticket();
        decider.decide(Pending::after(ticket.helped_by(Arc::downgrade(&helper)), Ok(1)));
        assert_eq!(client.wakes(), 0);
        commit.send(Ok(()));
        assert_eq!(client.wakes(), 1, "and not the first");
        assert!(matches!(client.poll(), Some(Ok(1))));
    }

    #[test]
    fn nobody_sleeps_whenever_the_commit_comes() {
        // Who waits, who decides and who commits, all at once, over and over.
        for _ in 0..5_000 {
            let (decider, client) = Client::new();
            let (commit, ticket) = store::ticket();
            let barrier = Arc::new(std::sync::Barrier::new(2));
            let begin = barrier.clone();
            let committing = thread::spawn(move || {
                begin.wait();
                commit.send(Ok(()));
            });
            let waiting = thread::spawn(move || client.decision.wait());
            let deciding = thread::spawn(move || {
                barrier.wait();
                decider.decide(Pending::after(ticket, Ok(1)));
            });
            let begun = std::time::Instant::now();
            while !waiting.is_finished() {
                assert!(begun.elapsed() < std::time::Duration::from_secs(10), "nobody woke it");
                thread::yield_now();
            }
            assert_eq!(waiting.join().unwrap().unwrap(), 1);
            committing.join().and(deciding.join()).unwrap();
        }
    }

    #[test]
    fn without_a_decision_there_is_an_answer() {
        let (decider, client) = Client::new();
        assert!(client.poll().is_none());
        drop(decider);
        assert_eq!(client.wakes(), 1);
        assert!(matches!(client.poll(), Some(Err(Error::Unavailable))));
    }

    #[test]
    fn a_thread_waits_for_all_of_it() {
        let (decider, client) = Client::new();
        let (commit, ticket) = store::ticket();
        let waiting = thread::spawn(move || client.decision.wait());
        decider.decide(Pending::after(ticket, Ok(1)));
        commit.send(Ok(()));
        assert_eq!(waiting.join().unwrap().unwrap(), 1);
    }
}
