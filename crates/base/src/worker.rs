//! A background thread that belongs to somebody: it is told to stop and joined when dropped.

use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// A running background thread. Dropping it stops the thread and waits for it.
pub struct Worker {
    signal: Arc<Signal>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread sees of its owner.
pub struct Signal {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    stopping: bool,
    woken: bool,
}

impl Signal {
    /// Sleeps until woken, told to stop, or `timeout` passes. Returns false when it is time to stop.
    pub fn wait(&self, timeout: Duration) -> bool {
        let state = self.state.lock().expect("no code panics while holding this lock");
        let (mut state, _) = self
            .changed
            .wait_timeout_while(state, timeout, |s| !s.stopping && !s.woken)
            .expect("no code panics while holding this lock");
        state.woken = false;
        !state.stopping
    }

    /// Whether the owner wants the thread to end.
    pub fn is_stopping(&self) -> bool {
        self.state.lock().expect("no code panics while holding this lock").stopping
    }

    fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().expect("no code panics while holding this lock"));
        self.changed.notify_all();
    }
}

impl Worker {
    /// Starts `body` on a thread of its own. It should return soon after `Signal::wait` says false.
    pub fn spawn(name: &str, body: impl FnOnce(&Signal) + Send + 'static) -> Worker {
        let signal = Arc::new(Signal { state: Mutex::default(), changed: Condvar::new() });
        let theirs = signal.clone();
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || body(&theirs))
            .expect("the system can start a thread");
        Worker { signal, thread: Some(thread) }
    }

    /// Ends the current wait early.
    pub fn wake(&self) {
        self.signal.set(|s| s.woken = true);
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.signal.set(|s| s.stopping = true);
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            // A panic there was already reported by its own thread.
            let _ = thread.join();
        }
    }
}
