//! One runtime: an engine instance with its limits, made before it is needed.
//!
//! Making and freeing one takes far longer than running a short script. So it is made once, kept as it
//! then is, and put back to that after each use:
//!
//! ```text
//! new → keep → [ load → start → … → rewind ]*
//! ```
//!
//! INVARIANTS
//! (M1) Every use finds the machine as `keep` found it, byte for byte: a script cannot see what another
//!      left.
//! (M2) Code of a script runs only after `start`, so there is always a deadline and a memory limit.
//! (M3) Bytecode is read only while there is memory for it.
//! (M4) Of a use no handle on a value outlives it; handles from before `keep` are neither dropped nor
//!      added to. Native functions, of which the binding keeps a prototype, are made before `keep` only.
//! (M5) A machine in which the binding panicked is not used again.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use base::Random;
use rquickjs::context::intrinsic;
use rquickjs::{Context, Ctx, Function, Persistent, Runtime};

use crate::call::Limits;
use crate::memory::Memory;
use crate::program::Program;

/// Interpreter steps between two polls of the interrupt handler, as the engine counts them.
pub(crate) const STEPS_PER_POLL: u64 = 10_000;

/// Polls after which a script lets others run at each poll: five million steps. Whoever wants to answer
/// a request would otherwise wait until the system takes the processor from it, for milliseconds.
const POLLS_UNTIL_YIELDING: u64 = 500;

/// Garbage that a runtime may hold before it looks for cycles. Most scripts end before.
const COLLECT_FROM_BYTES: usize = 8 << 20;

/// Memory beyond the limit for a script that has to end. The engine makes an error for that, and if
/// there is no memory for it, throws something that the script can catch.
const RESERVE_BYTES: usize = 32 << 10;

/// What a script can use of the language. Without `Eval`, `eval` and `new Function` throw.
type Intrinsics = (
    intrinsic::Date,
    intrinsic::RegExpCompiler,
    intrinsic::RegExp,
    intrinsic::Json,
    intrinsic::Proxy,
    intrinsic::MapSet,
    intrinsic::TypedArrays,
    intrinsic::Promise,
    intrinsic::WeakRef,
);

/// The function of a program, in its machine.
pub(crate) type Loaded = Persistent<Function<'static>>;

/// A runtime with its one context.
pub(crate) struct Machine {
    /// Held so that no script can free it: its other half is outside the memory of the runtime.
    _random: Persistent<Function<'static>>,
    pub(crate) context: Context,
    pub(crate) watch: Rc<Watch>,
    pub(crate) limits: Limits,
    pub(crate) memory: Memory,
    /// False: the binding panicked in it.
    is_sound: Cell<bool>,
}

impl Machine {
    /// A runtime with the guards in place. Costs about as much as a hundred function calls.
    pub(crate) fn new(limits: &Limits) -> rquickjs::Result<Machine> {
        let memory = Memory::default();
        let runtime = Runtime::new_with_alloc(memory.clone())?;
        runtime.set_max_stack_size(limits.stack_bytes);
        runtime.set_gc_threshold(COLLECT_FROM_BYTES);
        let watch = Rc::new(Watch::new(memory.clone(), limits.memory_bytes));
        let polled = watch.clone();
        runtime.set_interrupt_handler(Some(Box::new(move || polled.poll())));
        let context = Context::custom::<Intrinsics>(&runtime)?;
        let random = context.with(|ctx| {
            let numbers = Random::from_entropy();
            let random = Function::new(ctx.clone(), move || fraction(numbers.next()))?;
            guards().load(&ctx)?.call::<_, ()>((random.clone(),))?;
            Ok::<_, rquickjs::Error>(Persistent::save(&ctx, random))
        })?;
        Ok(Machine {
            _random: random,
            context,
            watch,
            limits: limits.clone(),
            memory,
            is_sound: Cell::new(true),
        })
    }

    /// Makes the present state the one that every use begins with.
    pub(crate) fn keep(&self) {
        self.memory.keep();
    }

    /// Puts the machine back after a use. False: it cannot be used again.
    pub(crate) fn rewind(&mut self) -> bool {
        // M5.
        if !self.is_sound.get() {
            return false;
        }
        self.watch.rewind();
        // SAFETY: M4. Nobody is inside, which would take a reference to this machine.
        #[allow(unsafe_code)]
        unsafe {
            self.memory.restore();
        }
        true
    }

    /// Calls into the engine. The binding panics where an allocation of the engine fails; that is noted.
    pub(crate) fn guarded<T>(&self, call: impl FnOnce(Ctx<'_>) -> T) -> std::thread::Result<T> {
        let called = catch_unwind(AssertUnwindSafe(|| self.context.with(call)));
        if called.is_err() {
            self.is_sound.set(false);
        }
        called
    }

    /// Loads a program. Before `start`, because the engine does not survive running out of memory
    /// while it reads bytecode.
    pub(crate) fn load(&self, program: &Program) -> rquickjs::Result<Loaded> {
        let load = |ctx: Ctx<'_>| program.load(&ctx).map(|loaded| Persistent::save(&ctx, loaded));
        self.guarded(load).unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Puts the limits of a call in place.
    pub(crate) fn start(&self, until: Instant, revoked: Option<Arc<AtomicBool>>) {
        self.memory.set_limit(self.limits.memory_bytes);
        self.watch.start(until, revoked);
    }

    /// Runs promise jobs until there are none, or the script has to end.
    pub(crate) fn run_jobs(&self, ctx: &Ctx<'_>) {
        while self.watch.end().is_none() && ctx.execute_pending_job() {}
    }
}

/// A number from 0 to below 1, from as many bits as it has.
fn fraction(bits: u64) -> f64 {
    (bits >> (u64::BITS - f64::MANTISSA_DIGITS)) as f64 / (1u64 << f64::MANTISSA_DIGITS) as f64
}

fn guards() -> &'static Program {
    static GUARDS: OnceLock<Program> = OnceLock::new();
    prelude(&GUARDS, "guards", include_str!("prelude/guards.js"))
}

/// What stack traces call our own modules.
pub(crate) const PRELUDE: &str = "prelude";

/// A module of ours, compiled once per process.
pub(crate) fn prelude(
    once: &'static OnceLock<Program>,
    name: &str,
    text: &str,
) -> &'static Program {
    once.get_or_init(|| {
        Program::module(&format!("<{PRELUDE}>/{name}"), text).expect("the prelude is valid")
    })
}

/// Why a script has to end, whatever it would like to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Timeout,
    Revoked,
    Fatal,
    Abort,
}

/// What the interrupt handler looks at.
pub(crate) struct Watch {
    until: Cell<Option<Instant>>,
    revoked: RefCell<Option<Arc<AtomicBool>>>,
    end: Cell<Option<End>>,
    polls: Cell<u64>,
    memory: Memory,
    memory_bytes_max: usize,
}

impl Watch {
    fn new(memory: Memory, memory_bytes_max: usize) -> Watch {
        Watch {
            until: Cell::default(),
            revoked: RefCell::default(),
            end: Cell::default(),
            polls: Cell::default(),
            memory,
            memory_bytes_max,
        }
    }

    /// Forgets everything about a use.
    fn rewind(&self) {
        drop(self.revoked.borrow_mut().take());
        self.until.set(None);
        self.end.set(None);
        self.polls.set(0);
    }

    /// Sets the deadline, and the flag by which others end the script.
    fn start(&self, until: Instant, revoked: Option<Arc<AtomicBool>>) {
        self.polls.set(0);
        self.until.set(Some(until));
        *self.revoked.borrow_mut() = revoked;
    }

    /// Interpreter steps so far.
    pub(crate) fn fuel(&self) -> u64 {
        self.polls.get() * STEPS_PER_POLL
    }

    /// Whether the script has to end. The first reason stays.
    pub(crate) fn end(&self) -> Option<End> {
        if self.end.get().is_none() {
            if self.is_revoked() {
                self.end.set(Some(End::Revoked));
            } else if self.until.get().is_some_and(|until| Instant::now() >= until) {
                self.end.set(Some(End::Timeout));
            }
        }
        self.end.get()
    }

    /// Ends the script at its next poll.
    pub(crate) fn stop(&self, end: End) {
        if self.end.get().is_none() {
            self.end.set(Some(end));
        }
    }

    /// Why the script has ended, if it had to.
    pub(crate) fn ended(&self) -> Option<End> {
        self.end.get()
    }

    fn poll(&self) -> bool {
        self.polls.set(self.polls.get() + 1);
        if self.polls.get() > POLLS_UNTIL_YIELDING {
            std::thread::yield_now();
        }
        let has_ended = self.end().is_some();
        if has_ended {
            self.memory.set_limit(self.memory_bytes_max.saturating_add(RESERVE_BYTES));
        }
        has_ended
    }

    fn is_revoked(&self) -> bool {
        self.revoked.borrow().as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::fraction;

    #[test]
    fn fractions_are_below_one() {
        assert_eq!(fraction(0), 0.0);
        assert_eq!(fraction(1 << 63), 0.5);
        assert_eq!(fraction(u64::MAX), 1.0 - f64::EPSILON / 2.0);
    }
}
