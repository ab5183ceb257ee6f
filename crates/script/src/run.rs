//! Runs of procedures and triggers, one after the other.
//!
//! ```text
//! begin → main body → [ jobs → next operation → its callback ]* → finish
//!                       ^^^^ promises, after every turn
//! ```
//!
//! Operations are done in the order they were queued, one at a time, between turns of the script. The
//! run is over when nothing is queued and no promise job is left.
//!
//! INVARIANTS
//! (R1) No callback runs inside another turn of the script.
//! (R2) After a reason to end is noted, no further code of the script runs.

use std::panic::resume_unwind;
use std::rc::Rc;
use std::sync::OnceLock;
use std::time::Instant;

use bytes::Bytes;
use item::Value;
use rquickjs::function::Args;
use rquickjs::{Ctx, Function, Object as JsObject, Persistent, Value as JsValue};

use crate::call::{Call, Collection, Failure, Limits, Outcome, Role, TriggerOperation};
use crate::convert::{self, Unfit};
use crate::errors::{self, Thrown};
use crate::machine::{End, Loaded, Machine, prelude};
use crate::natives::{self, Desk, Queued, Refusal};
use crate::operation::Reply;
use crate::port::Port;
use crate::program::Program;

/// A machine with the server-side API in place.
pub(crate) struct Stage {
    begin: Persistent<Function<'static>>,
    deliver: Persistent<Function<'static>>,
    finish: Persistent<Function<'static>>,
    /// Held so that no script can free them: their other half is outside the memory of the machine.
    _natives: Vec<Persistent<Function<'static>>>,
    desk: Rc<Desk>,
    // Last, because the handles above must go before their runtime.
    machine: Machine,
}

/// When a call must stop queueing, and when it must end.
#[derive(Clone)]
pub(crate) struct Times {
    pub(crate) accept_until: Instant,
    pub(crate) until: Instant,
    pub(crate) revoked: std::sync::Arc<std::sync::atomic::AtomicBool>,
}

/// Why a turn was not completed.
enum Break {
    Thrown(Thrown),
    Ended,
}

impl Stage {
    pub(crate) fn new(limits: &Limits) -> rquickjs::Result<Stage> {
        let machine = Machine::new(limits)?;
        let desk = Desk::new(machine.watch.clone(), limits);
        let desk = Rc::new(desk);
        let ([begin, deliver, finish], natives) = machine.context.with(|ctx| {
            let native = natives::install(&ctx, &desk)?;
            let handles: JsObject<'_> = api().load(&ctx)?.call((native.clone(),))?;
            let save = |function| Persistent::save(&ctx, function);
            let handle = |name: &str| handles.get::<_, Function<'_>>(name).map(save);
            let natives = native.props::<String, Function<'_>>().map(|member| Ok(save(member?.1)));
            let natives = natives.collect::<rquickjs::Result<Vec<_>>>()?;
            Ok::<_, rquickjs::Error>((
                [handle("begin")?, handle("deliver")?, handle("finish")?],
                natives,
            ))
        })?;
        machine.keep();
        Ok(Stage { begin, deliver, finish, _natives: natives, desk, machine })
    }

    /// Makes the stage as new. False: it cannot be used again.
    pub(crate) fn rewind(&mut self) -> bool {
        self.desk.rewind();
        // M4: a run leaves texts and values of ours, and the handles here are as they were made.
        self.machine.rewind()
    }

    /// Runs a script to its end. After that, the stage must be rewound.
    pub(crate) fn run(
        &self,
        call: &Call,
        port: Box<dyn Port>,
        times: Times,
    ) -> Result<Outcome, Failure> {
        *self.desk.port.borrow_mut() = Some(port);
        self.desk.accept_until.set(Some(times.accept_until));
        let Ok(function) = self.machine.load(&call.program) else {
            return Err(self.failure(None));
        };
        self.machine.start(times.until, Some(times.revoked));
        let ran = self.machine.guarded(|ctx| self.run_in(&ctx, call, function));
        self.desk.clear();
        self.desk.port.borrow_mut().take();
        match ran {
            Ok(Ok(outcome)) => Ok(outcome),
            Ok(Err(Break::Thrown(thrown))) => Err(self.failure(Some(thrown))),
            Ok(Err(Break::Ended)) => Err(self.failure(None)),
            Err(panic) if self.desk.is_in_host.get() => resume_unwind(panic),
            Err(_) => Err(self.failure(Some(errors::out_of_memory()))),
        }
    }

    fn failure(&self, thrown: Option<Thrown>) -> Failure {
        let fuel = self.machine.watch.fuel();
        let aborted = || self.desk.aborted.borrow_mut().take();
        let thrown = match self.machine.watch.ended() {
            Some(End::Timeout) => return Failure::Timeout { fuel },
            Some(End::Revoked) => return Failure::Revoked,
            Some(End::Fatal) => return Failure::Fatal,
            Some(End::Abort) => aborted().unwrap_or_default(),
            None => thrown.unwrap_or_else(errors::out_of_memory),
        };
        let Thrown { number, message, stack } = thrown;
        Failure::Exception { number, message, stack, log: self.desk.log.take(), fuel }
    }

    fn run_in(&self, ctx: &Ctx<'_>, call: &Call, function: Loaded) -> Result<Outcome, Break> {
        self.turn(ctx, || self.start(ctx, call, function))?;
        while let Some(Queued { operation, has_callback, .. }) = self.desk.next() {
            let reply = self.desk.ask(|port| port.run(operation)).ok_or(Break::Ended)?;
            let reply = reply.map(|reply| Some(reply).filter(|_| has_callback));
            self.turn(ctx, || self.answer(ctx, reply))?;
        }
        self.outcome(ctx, &call.role)
    }

    /// One turn of the script, and the promise jobs that follow from it.
    fn turn(
        &self,
        ctx: &Ctx<'_>,
        body: impl FnOnce() -> rquickjs::Result<()>,
    ) -> Result<(), Break> {
        self.check(ctx, Ok(()))?;
        let result = body();
        self.check(ctx, result)?;
        self.machine.run_jobs(ctx);
        self.check(ctx, Ok(()))
    }

    /// R2: a reason to end comes before any exception, which may only be its consequence.
    fn check<T>(&self, ctx: &Ctx<'_>, result: rquickjs::Result<T>) -> Result<T, Break> {
        if self.machine.watch.end().is_some() {
            let _ = ctx.catch();
            return Err(Break::Ended);
        }
        let thrown = result.map_err(|error| errors::take(ctx, &error, &self.machine.memory));
        // Reading an exception may run code of the script.
        if self.machine.watch.end().is_some() {
            return Err(Break::Ended);
        }
        thrown.map_err(Break::Thrown)
    }

    fn start(&self, ctx: &Ctx<'_>, call: &Call, function: Loaded) -> rquickjs::Result<()> {
        let config = config(ctx, call)?;
        self.begin.clone().restore(ctx)?.call::<_, ()>((config,))?;
        let function = function.restore(ctx)?;
        let arguments: &[Value] = match &call.role {
            Role::Procedure { arguments } => arguments,
            Role::PreTrigger { .. } | Role::PostTrigger { .. } => &[],
        };
        let mut given = Args::new(ctx.clone(), arguments.len());
        for argument in arguments {
            given.push_arg(convert::from_value(ctx, argument)?)?;
        }
        given.apply::<JsValue<'_>>(&function)?;
        Ok(())
    }

    /// Hands the result of an operation to its callback; none if there is no callback.
    fn answer(&self, ctx: &Ctx<'_>, reply: Result<Option<Reply>, Refusal>) -> rquickjs::Result<()> {
        let deliver = self.deliver.clone().restore(ctx)?;
        match reply {
            Ok(None) => deliver.call(()),
            Ok(Some(Reply::Item(item))) => {
                deliver.call((200, convert::from_node(ctx, item.root())?))
            }
            Ok(Some(Reply::Created(item))) => {
                deliver.call((201, convert::from_node(ctx, item.root())?))
            }
            Ok(Some(Reply::NotModified)) => deliver.call((304,)),
            Ok(Some(Reply::Deleted)) => deliver.call((204,)),
            Ok(Some(Reply::Page { rows, continuation })) => {
                deliver.call((200, ctx.json_parse(array_text(&rows))?, continuation))
            }
            Err(Refusal { number, message }) => {
                let nothing = || JsValue::new_undefined(ctx.clone());
                deliver.call((number, nothing(), nothing(), message))
            }
        }
    }

    fn outcome(&self, ctx: &Ctx<'_>, role: &Role) -> Result<Outcome, Break> {
        let bodies = self.bodies(ctx, role);
        let (request, body) = match bodies {
            Ok(bodies) => bodies,
            Err(Unfit::Thrown(error)) => return self.check(ctx, Err(error)),
            Err(Unfit::TooLarge) => return Err(Break::Thrown(too_large())),
            Err(Unfit::Invalid(why)) => return Err(Break::Thrown(invalid(&why))),
            Err(Unfit::Late) => return Err(Break::Ended),
        };
        self.check(ctx, Ok(()))?;
        let log = self.desk.log.take();
        Ok(Outcome { body, request, log, fuel: self.machine.watch.fuel() })
    }

    fn bodies(&self, ctx: &Ctx<'_>, role: &Role) -> Result<(Option<Value>, Option<Bytes>), Unfit> {
        let finish = self.finish.clone().restore(ctx)?;
        let bodies: JsObject<'_> = finish.call(())?;
        let bounds = self.desk.bounds();
        match role {
            Role::PreTrigger { .. } => {
                let request: JsValue<'_> = bodies.get("request")?;
                let request = convert::to_value(&request, bounds)?;
                Ok((Some(request).filter(|request| !request.is_undefined()), None))
            }
            Role::Procedure { .. } | Role::PostTrigger { .. } => {
                let response: JsValue<'_> = bodies.get("response")?;
                Ok((None, convert::to_text(&response, bounds)?.map(Bytes::from)))
            }
        }
    }
}

fn too_large() -> Thrown {
    let message = "Error: Message size exceeded: the body is too large.".to_owned();
    Thrown { number: 413, message, stack: String::new() }
}

fn invalid(why: &str) -> Thrown {
    Thrown { number: 400, message: format!("Error: {why}"), stack: String::new() }
}

fn api() -> &'static Program {
    static API: OnceLock<Program> = OnceLock::new();
    prelude(&API, "api", include_str!("prelude/api.js"))
}

/// What a call brings, as the prelude reads it.
fn config<'js>(ctx: &Ctx<'js>, call: &Call) -> rquickjs::Result<JsObject<'js>> {
    let config = JsObject::new(ctx.clone())?;
    let Collection { self_link, alt_link, size_mb, size_mb_max } = &call.collection;
    config.set("selfLink", self_link.as_str())?;
    config.set("altLink", alt_link.as_str())?;
    config.set("sizeMb", *size_mb)?;
    config.set("sizeMbMax", *size_mb_max)?;
    config.set("isLogging", call.is_logging)?;
    match &call.role {
        Role::Procedure { .. } => config.set("role", "procedure")?,
        Role::PreTrigger { operation, body } => {
            config.set("role", "pre")?;
            set_request(ctx, &config, *operation, body.as_ref())?;
        }
        Role::PostTrigger { operation, request, response } => {
            config.set("role", "post")?;
            set_request(ctx, &config, *operation, request.as_ref())?;
            if let Some(item) = response {
                config.set("responseBody", convert::from_node(ctx, item.root())?)?;
            }
            config.set("quota", format!("collectionSize={};", kilobytes(*size_mb_max)))?;
            config.set("usage", format!("collectionSize={};", kilobytes(*size_mb)))?;
        }
    }
    Ok(config)
}

fn kilobytes(megabytes: f64) -> u64 {
    (megabytes * 1024.0) as u64
}

fn set_request<'js>(
    ctx: &Ctx<'js>,
    config: &JsObject<'js>,
    operation: TriggerOperation,
    body: Option<&Value>,
) -> rquickjs::Result<()> {
    config.set("operation", operation.name())?;
    match body {
        Some(body) => config.set("requestBody", convert::from_value(ctx, body)?),
        None => Ok(()),
    }
}

/// JSON texts as the text of one array, with room for the zero byte the parser wants.
fn array_text(rows: &[Bytes]) -> Vec<u8> {
    let length = rows.iter().map(|row| row.len() + 1).sum::<usize>();
    let mut text = Vec::with_capacity(length + 3);
    text.push(b'[');
    for (at, row) in rows.iter().enumerate() {
        if at > 0 {
            text.push(b',');
        }
        text.extend_from_slice(row);
    }
    text.push(b']');
    text
}
