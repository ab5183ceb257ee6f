//! A task that wakes itself is polled again at once, not by way of the scheduler.
//!
//! A connection and the request on it are one task. When the request asks for its body, it wakes
//! the connection, and when the body is there, the connection wakes the request: the task wakes
//! itself, twice, while it runs. To the scheduler that is work to be shared, so it wakes another
//! thread, which takes the connection over to find nothing to do. For a request that takes less
//! time than waking a thread, that is most of its cost.
//!
//! ```text
//! Idle ──poll──▶ Polled ──wake──▶ Woken ──polled again──▶ Polled …
//!   ▲               │                └── too often: the scheduler is told
//!   └── pending ────┘
//! ```
//!
//! INVARIANTS
//! (W1) No wake-up is lost: one that comes while the future is polled has it polled again, any
//!      other goes to the task.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::SeqCst};
use std::task::{Context, Poll, Wake, Waker};

use parking_lot::Mutex;

const IDLE: u8 = 0;
const POLLED: u8 = 1;
const WOKEN: u8 = 2;

/// How often a future is polled at a stretch: what wakes itself without end must not keep other
/// tasks waiting.
const POLLS_MAX: usize = 8;

/// A future that is polled until it has settled.
pub struct Settled<F> {
    future: F,
    bell: Arc<Bell>,
    waker: Waker,
}

impl<F: Future + Unpin> Settled<F> {
    /// Polls this future.
    pub fn new(future: F) -> Settled<F> {
        let bell = Arc::new(Bell { state: AtomicU8::new(IDLE), task: Mutex::new(None) });
        let waker = Waker::from(bell.clone());
        Settled { future, bell, waker }
    }

    /// The future.
    pub fn as_mut(&mut self) -> &mut F {
        &mut self.future
    }
}

impl<F: Future + Unpin> Future for Settled<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let Settled { future, bell, waker } = &mut *self;
        bell.belongs_to(cx.waker());
        for _ in 0..POLLS_MAX {
            bell.state.store(POLLED, SeqCst);
            if let Poll::Ready(output) =
                Pin::new(&mut *future).poll(&mut Context::from_waker(waker))
            {
                return Poll::Ready(output);
            }
            if bell.state.compare_exchange(POLLED, IDLE, SeqCst, SeqCst).is_ok() {
                return Poll::Pending;
            }
        }
        bell.state.store(IDLE, SeqCst);
        cx.waker().wake_by_ref(); // W1
        Poll::Pending
    }
}

/// What the future rings.
struct Bell {
    state: AtomicU8,
    task: Mutex<Option<Waker>>,
}

impl Bell {
    fn belongs_to(&self, waker: &Waker) {
        let mut task = self.task.lock();
        if !task.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *task = Some(waker.clone());
        }
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Bell>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Bell>) {
        let is_polled = |state| (state != IDLE).then_some(WOKEN);
        if self.state.fetch_update(SeqCst, SeqCst, is_polled).is_err()
            && let Some(task) = &*self.task.lock()
        {
            task.wake_by_ref(); // W1
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// Counts how often the scheduler was asked.
    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Count>) {
            self.0.fetch_add(1, SeqCst);
        }
    }

    /// Polls a future once that wakes itself so many times; how often it ran, and its task was
    /// woken.
    fn wake_itself(times: usize) -> (usize, usize) {
        let count = Arc::new(Count::default());
        let waker = Waker::from(count.clone());
        let mut polls = 0;
        let future = poll_fn(|cx: &mut Context<'_>| {
            polls += 1;
            if polls <= times {
                cx.waker().wake_by_ref();
            }
            Poll::<()>::Pending
        });
        let mut settled = pin!(Settled::new(future));
        assert!(settled.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        (polls, count.0.load(SeqCst))
    }

    #[test]
    fn what_wakes_itself_runs_again_and_the_scheduler_is_not_asked() {
        assert_eq!(wake_itself(0), (1, 0));
        assert_eq!(wake_itself(2), (3, 0));
        assert_eq!(wake_itself(POLLS_MAX - 1), (POLLS_MAX, 0));
    }

    #[test]
    fn what_never_settles_gives_way_to_others() {
        assert_eq!(wake_itself(POLLS_MAX), (POLLS_MAX, 1));
        assert_eq!(wake_itself(usize::MAX), (POLLS_MAX, 1));
    }

    #[test]
    fn wake_ups_from_outside_reach_the_task() {
        let count = Arc::new(Count::default());
        let waker = Waker::from(count.clone());
        let inner = Mutex::new(None);
        let future = poll_fn(|cx: &mut Context<'_>| {
            *inner.lock() = Some(cx.waker().clone());
            Poll::<()>::Pending
        });
        let mut settled = pin!(Settled::new(future));
        assert!(settled.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        inner.lock().as_ref().unwrap().wake_by_ref();
        assert_eq!(count.0.load(SeqCst), 1);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn nothing_is_lost_between_threads() {
        let (sender, mut receiver) = tokio::sync::mpsc::channel(1);
        let received = tokio::spawn(Settled::new(Box::pin(async move {
            let mut sum = 0u64;
            while let Some(number) = receiver.recv().await {
                sum += number;
            }
            sum
        })));
        for number in 0..20_000u64 {
            sender.send(number).await.unwrap();
        }
        drop(sender);
        assert_eq!(received.await.unwrap(), 20_000 * 19_999 / 2);
    }
}
