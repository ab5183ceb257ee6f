//! User-defined functions of queries.
//!
//! One runtime serves all calls of one query, so a call costs little more than the function itself:
//! the functions are resolved once, arguments go over without text between. They find the language
//! and nothing else: no context, no container, no log.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use item::{Node, Value};
use rquickjs::Ctx;
use rquickjs::function::Args;

use crate::call::{Failure, Limits};
use crate::convert::{self, Bounds, Unfit};
use crate::errors::{self, Thrown};
use crate::machine::{End, Loaded, Machine};
use crate::program::Program;

/// An argument of a function, borrowed from the query.
#[derive(Clone, Copy, Debug)]
pub enum Argument<'a> {
    /// A part of an item.
    Node(Node<'a>),
    /// A computed value.
    Value(&'a Value),
}

/// The functions of one query, in one runtime. They stay on the thread that made them.
pub struct Functions {
    functions: Vec<Loaded>,
    // Last, because the handles above must go before their runtime.
    machine: Rc<Machine>,
}

impl Functions {
    /// Functions outside a session, for a query that a script runs: its host makes them. They end at
    /// `until`.
    pub fn new(
        programs: &[Arc<Program>],
        limits: &Limits,
        until: Instant,
    ) -> Result<Functions, Failure> {
        let machine = Machine::new(limits).map_err(|_| exception(errors::out_of_memory(), 0))?;
        Functions::on(Rc::new(machine), programs, until, None)
    }

    /// Functions on a machine that was made before. Whoever made it may rewind it when it is the only
    /// owner again.
    pub(crate) fn on(
        machine: Rc<Machine>,
        programs: &[Arc<Program>],
        until: Instant,
        revoked: Option<Arc<AtomicBool>>,
    ) -> Result<Functions, Failure> {
        let load = |program: &Arc<Program>| machine.load(program);
        let functions = programs.iter().map(load).collect::<rquickjs::Result<Vec<_>>>();
        let functions = functions.map_err(|_| exception(errors::out_of_memory(), 0))?;
        machine.start(until, revoked);
        Ok(Functions { functions, machine })
    }

    /// Calls a function by its place in the list. What JSON leaves out comes back as undefined.
    pub fn call(&self, function: usize, arguments: &[Argument<'_>]) -> Result<Value, Failure> {
        let call = |ctx: Ctx<'_>| {
            if self.machine.watch.ended().is_some() {
                return Err(failure(&self.machine, &ctx, Unfit::Late));
            }
            let called = self.call_in(&ctx, function, arguments);
            called.map_err(|unfit| failure(&self.machine, &ctx, unfit))
        };
        self.machine
            .guarded(call)
            .unwrap_or_else(|_| Err(exception(errors::out_of_memory(), self.fuel())))
    }

    /// Interpreter steps so far.
    pub fn fuel(&self) -> u64 {
        self.machine.watch.fuel()
    }

    fn call_in(
        &self,
        ctx: &Ctx<'_>,
        function: usize,
        arguments: &[Argument<'_>],
    ) -> Result<Value, Unfit> {
        let function = self.functions[function].clone().restore(ctx)?;
        let mut given = Args::new(ctx.clone(), arguments.len());
        for argument in arguments {
            given.push_arg(match argument {
                Argument::Node(node) => convert::from_node(ctx, *node)?,
                Argument::Value(value) => convert::from_value(ctx, value)?,
            })?;
        }
        let result = given.apply(&function)?;
        let bytes_max = self.machine.limits.body_bytes;
        convert::to_value(&result, Bounds { bytes_max, watch: Some(&*self.machine.watch) })
    }
}

fn failure(machine: &Machine, ctx: &Ctx<'_>, unfit: Unfit) -> Failure {
    let thrown = match unfit {
        Unfit::Thrown(error) => errors::take(ctx, &error, &machine.memory),
        Unfit::TooLarge => {
            let message = "Error: The result is too large.".to_owned();
            Thrown { number: 413, message, ..Thrown::default() }
        }
        Unfit::Late => Thrown::default(),
        Unfit::Invalid(why) => Thrown { message: format!("Error: {why}"), ..Thrown::default() },
    };
    let fuel = machine.watch.fuel();
    match machine.watch.end() {
        Some(End::Timeout) => Failure::Timeout { fuel },
        Some(End::Revoked) => Failure::Revoked,
        Some(End::Fatal) => Failure::Fatal,
        Some(End::Abort) | None => exception(thrown, fuel),
    }
}

fn exception(thrown: Thrown, fuel: u64) -> Failure {
    let Thrown { number, message, stack } = thrown;
    Failure::Exception { number, message, stack, log: String::new(), fuel }
}
