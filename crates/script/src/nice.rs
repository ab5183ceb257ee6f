//! How much of the processor a script thread gets.
//!
//! ```text
//! threads that answer requests      0
//! script threads                   10   short scripts are part of answering
//! a script that goes on and on     19   until it is over
//! ```
//!
//! On Linux niceness belongs to the thread. A thread may always become nicer, but needs a permission to
//! go back; without it, it is replaced. Elsewhere all threads are equal.

use std::cell::Cell;

const NICENESS: i32 = 10;
const NICENESS_TIRED: i32 = 19;

thread_local! {
    static THREAD: Cell<Thread> = const { Cell::new(Thread::Other) };
}

#[derive(Clone, Copy, PartialEq)]
enum Thread {
    /// Not one of ours; its niceness is not our business.
    Other,
    Script,
    TiredScript,
}

/// Makes this thread a script thread.
pub(crate) fn settle() {
    set(NICENESS);
    THREAD.set(Thread::Script);
}

/// Puts this thread behind all others, if it is a script thread.
pub(crate) fn tire() {
    if THREAD.get() == Thread::Script {
        set(NICENESS_TIRED);
        THREAD.set(Thread::TiredScript);
    }
}

/// Ends what `tire` did. False: it may not, and the thread should be replaced.
pub(crate) fn recover() -> bool {
    if THREAD.get() == Thread::TiredScript {
        THREAD.set(Thread::Script);
        return set(NICENESS);
    }
    true
}

#[cfg(target_os = "linux")]
fn set(niceness: i32) -> bool {
    let thread = Some(rustix::thread::gettid());
    rustix::process::setpriority_process(thread, niceness).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn set(_: i32) -> bool {
    true
}
