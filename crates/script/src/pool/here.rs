//! Work on the thread of whoever asks for it: what is over before another thread would be awake.
//!
//! A thread that serves requests may be lent to scripts. It has a bench of its own, and does what
//! nobody needs to be woken for, twice. What takes longer than it was given is ended like a script
//! whose time is over, and whoever asked has the host back and goes to the pool.
//!
//! INVARIANTS
//! (H1) Of all lent threads one at a time is at work. So if a built-in function does not look at the
//!      clock, one thread is lost to those who serve, and no second one. The watchdog takes the host
//!      away then, as from any thread; only the answer has to wait for the function.
//! (H2) A lent thread has as much stack as a thread of the pool: a script that runs here has the same
//!      depth to go to as there.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::job::{Custody, Session, Stop, TAKEN, Task, panic_text};
use super::{Bench, Pool, Shared};

thread_local! {
    static IS_LENT: Cell<bool> = const { Cell::new(false) };
    /// With the number of the pool that it is of.
    static BENCH: RefCell<Option<(u64, Bench)>> = const { RefCell::new(None) };
}

/// Lends the present thread to scripts. Its stack must be of [`Limits::thread_stack_bytes`] (H2).
///
/// [`Limits::thread_stack_bytes`]: crate::Limits::thread_stack_bytes
pub fn lend_thread() {
    IS_LENT.set(true);
}

/// Makes ready for the next script what the last one on this thread has used. For a thread that has
/// nothing else to do; otherwise the next script does it.
pub fn tidy_thread() {
    BENCH.with_borrow_mut(|bench| bench.iter_mut().for_each(|(_, bench)| bench.renew()));
}

/// The right to work here (H1).
pub struct Place<'p> {
    shared: &'p Arc<Shared>,
}

impl Pool {
    /// A place for work on the present thread; none if it is not lent, or another one is at work.
    pub fn place_here(&self) -> Option<Place<'_>> {
        let is_free = || !self.shared.is_at_work_there.swap(true, Ordering::Acquire);
        (IS_LENT.get() && is_free()).then(|| Place { shared: &self.shared })
    }
}

impl Place<'_> {
    /// Does the work, which has so much time. Gives the host back if the work has not taken it.
    pub fn run<H: Send + 'static, T>(
        self,
        host: H,
        time: Duration,
        work: impl FnOnce(&mut Session<'_, H>) -> T,
    ) -> (Result<T, Stop>, Option<H>) {
        let custody = Arc::new(Custody::new(host));
        let watched: Arc<dyn Task> = Arc::new(Lent(custody.clone()));
        self.shared.start_watching(&mut self.shared.state.lock(), watched.clone(), false);
        // Nobody else has the bench: work does not come back to here, its place is taken.
        let mut bench = self.take_bench();
        let mut session =
            Session { custody: &custody, bench: &mut bench, started: Instant::now(), time };
        let result = catch_unwind(AssertUnwindSafe(|| work(&mut session)));
        self.shared.state.lock().running.retain(|other| !Arc::ptr_eq(&other.job, &watched));
        BENCH.set(Some((self.shared.number, bench)));
        let host = custody.take().ok();
        (result.map_err(|panic| Stop::Fault(panic_text(&*panic))), host)
    }

    fn take_bench(&self) -> Bench {
        let own = BENCH.take().filter(|(number, _)| *number == self.shared.number);
        own.map_or_else(|| Bench::new(&self.shared.options.limits), |(_, bench)| bench)
    }
}

/// Work on a lent thread, as the watchdog sees it.
struct Lent<H>(Arc<Custody<H>>);

impl<H: Send + 'static> Task for Lent<H> {
    fn run(&self, _: &mut Bench) {}

    fn revoke(&self) {
        self.0.revoke();
    }

    fn overdue(&self) {
        self.0.revoke();
    }

    fn refuse(&self) {
        self.0.revoke();
    }

    fn is_committing(&self) -> bool {
        self.0.is(TAKEN)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.shared.is_at_work_there.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::super::PoolOptions;
    use super::*;
    use crate::call::Limits;

    fn on_lent_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| {
            let stack = Limits::default().thread_stack_bytes();
            let lent = thread::Builder::new().stack_size(stack);
            let run = || {
                lend_thread();
                work()
            };
            lent.spawn_scoped(scope, run).unwrap().join().unwrap()
        })
    }

    #[test]
    fn only_threads_that_are_lent_and_one_at_a_time() {
        let pool = Pool::new(PoolOptions::default());
        assert!(pool.place_here().is_none(), "not lent");
        on_lent_thread(|| {
            let place = pool.place_here().unwrap();
            assert!(on_lent_thread(|| pool.place_here().is_none()), "taken");
            assert!(Pool::new(PoolOptions::default()).place_here().is_some(), "another's");
            let (done, host) = place.run((), Duration::from_secs(1), |_| 5);
            assert_eq!((done, host), (Ok(5), Some(())));
            assert!(pool.place_here().is_some(), "free again");
        });
    }

    #[test]
    fn the_host_comes_back_unless_it_was_taken() {
        let pool = Pool::new(PoolOptions::default());
        on_lent_thread(|| {
            let run = |work: &dyn Fn(&mut Session<'_, String>)| {
                let place = pool.place_here().unwrap();
                place.run("host".to_owned(), Duration::from_secs(1), |session| work(session))
            };
            assert_eq!(run(&|_| ()), (Ok(()), Some("host".to_owned())));
            let take = |session: &mut Session<'_, String>| drop(session.take_host().unwrap());
            assert_eq!(run(&take), (Ok(()), None));
            let panic = |_: &mut Session<'_, String>| panic!("no");
            assert_eq!(run(&panic), (Err(Stop::Fault("no".to_owned())), Some("host".to_owned())));
            assert!(pool.place_here().is_some());
        });
    }
}
