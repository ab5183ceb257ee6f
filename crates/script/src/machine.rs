//! One runtime: an engine instance with its limits, made before it is needed and used once.
//!
//! Making and freeing one takes far longer than running a short script, so each thread makes its next
//! machine while it waits and frees the spent one after the answer is out.
//!
//! INVARIANTS
//! (M1) Nothing of a machine outlives it, and no machine runs two scripts: a script cannot see what
//!      another left.
//! (M2) Code of a script runs only after `start`, so there is always a deadline and a memory limit.
//! (M3) Bytecode is read only while there is memory for it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use rquickjs::context::intrinsic;
use rquickjs::{Context, Ctx, Function, Persistent, Runtime, String as JsString};

use crate::call::Limits;
use crate::program::Program;

/// Interpreter steps between two polls of the interrupt handler, as the engine counts them.
pub(crate) const STEPS_PER_POLL: u64 = 10_000;

/// Garbage that a runtime may hold before it looks for cycles. Most scripts end before.
const COLLECT_FROM_BYTES: usize = 8 << 20;

/// Memory that is freed when a script has to end. The engine makes an error for that, and if there is
/// no memory for it, throws something that the script can catch.
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
    pub(crate) context: Context,
    pub(crate) watch: Rc<Watch>,
    pub(crate) limits: Limits,
}

impl Machine {
    /// A runtime with the guards in place. Costs about as much as a hundred function calls.
    pub(crate) fn new(limits: &Limits) -> rquickjs::Result<Machine> {
        let runtime = Runtime::new()?;
        runtime.set_max_stack_size(limits.stack_bytes);
        runtime.set_gc_threshold(COLLECT_FROM_BYTES);
        let watch = Rc::new(Watch::default());
        let polled = watch.clone();
        runtime.set_interrupt_handler(Some(Box::new(move || polled.poll())));
        let context = Context::custom::<Intrinsics>(&runtime)?;
        context.with(|ctx| {
            guards().load(&ctx)?.call::<_, ()>(())?;
            watch.set_reserve(JsString::from_str(ctx, &" ".repeat(RESERVE_BYTES))?);
            Ok::<_, rquickjs::Error>(())
        })?;
        Ok(Machine { context, watch, limits: limits.clone() })
    }

    /// Loads a program. Before `start`, because the engine does not survive running out of memory
    /// while it reads bytecode.
    pub(crate) fn load(&self, program: &Program) -> rquickjs::Result<Loaded> {
        self.context.with(|ctx| program.load(&ctx).map(|loaded| Persistent::save(&ctx, loaded)))
    }

    /// Puts the limits of a call in place.
    pub(crate) fn start(&self, until: Instant, revoked: Option<Arc<AtomicBool>>) {
        self.context.runtime().set_memory_limit(self.limits.memory_bytes);
        self.watch.start(until, revoked);
    }

    /// Runs promise jobs until there are none, or the script has to end.
    pub(crate) fn run_jobs(&self, ctx: &Ctx<'_>) {
        while self.watch.end().is_none() && ctx.execute_pending_job() {}
    }
}

/// The reserve is a value of the engine and must go before it.
impl Drop for Machine {
    fn drop(&mut self) {
        self.watch.reserve.borrow_mut().take();
    }
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
#[derive(Default)]
pub(crate) struct Watch {
    until: Cell<Option<Instant>>,
    revoked: RefCell<Option<Arc<AtomicBool>>>,
    end: Cell<Option<End>>,
    polls: Cell<u64>,
    reserve: RefCell<Option<Persistent<JsString<'static>>>>,
}

impl Watch {
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

    fn set_reserve(&self, text: JsString<'_>) {
        let ctx = text.ctx().clone();
        *self.reserve.borrow_mut() = Some(Persistent::save(&ctx, text));
    }

    fn poll(&self) -> bool {
        self.polls.set(self.polls.get() + 1);
        let has_ended = self.end().is_some();
        if has_ended {
            self.reserve.borrow_mut().take();
        }
        has_ended
    }

    fn is_revoked(&self) -> bool {
        self.revoked.borrow().as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed))
    }
}
