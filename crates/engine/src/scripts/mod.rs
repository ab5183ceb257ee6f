//! Stored procedures, triggers and user-defined functions: who runs what in which transaction.
//!
//! ```text
//! execute            lock ─▶ this thread, for a moment: procedure ─▶ commit ─▶ answer when durable
//!                         └▶ script thread: the same, from the beginning
//! write + triggers   lock ─▶ script thread: pre-trigger ─▶ write ─▶ post-trigger ─▶ commit ─▶ …
//! query + functions          script thread: one page, one runtime for all calls
//! ```
//!
//! The lock travels with the transaction into the pool of script threads. Whoever takes the
//! transaction out of there ends it: the script's thread to commit, the watchdog or a client that
//! went away to abandon it. There is no third way, so nothing is ever half done.
//!
//! To wake a thread, and to be woken by it, takes longer than most procedures. One that was over
//! soon the last time is run by whoever asks for it, if his thread is lent to scripts. What is not
//! over after [`Limits::here`](script::Limits::here) is abandoned and begins again on a script
//! thread: nobody has seen any of it.

mod decision;
mod functions;
mod host;
mod programs;

pub(crate) use functions::Functions;
pub(crate) use programs::{Programs, compile};

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use base::{Ctx, Deadline};
use item::Value;
use script::{Call, Collection, Failure, Role, Running, Session, Stop, TriggerOperation};
use storage::txn::Committed;
use store::Commit;

use crate::charge::{self, Bill, Origin};
use crate::items::{self, Applied};
use crate::lock::PartitionGuard;
use crate::ops::{
    Execution, FeedPage, PageRequest, QueryText, ResourceKind, Scope, ScriptAnswer,
    TriggeredAnswer, Triggers, WriteItem, WriteKind,
};
use crate::query::may_call_functions;
use crate::transaction::Transaction;
use crate::{Container, Core, Engine, Error, Pending, RefusedError, Result, ScriptError};
use decision::{Decision, decision};
use host::ScriptHost;
use programs::Prepared;

/// Something a script thread works on. Dropping it before it is there abandons it.
pub struct Scripted<T> {
    decision: Decision<T>,
    _running: Option<Running>,
}

impl<T> Scripted<T> {
    fn ready(answer: Result<T>) -> Scripted<T> {
        Scripted::decided(Pending::ready(answer))
    }

    fn decided(pending: Pending<T>) -> Scripted<T> {
        Scripted { decision: Decision::decided(pending), _running: None }
    }

    /// Blocks the thread until the answer is there.
    pub fn wait(self) -> Result<T> {
        self.decision.wait()
    }
}

impl<T> Future for Scripted<T> {
    type Output = Result<T>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T>> {
        self.decision.poll(cx)
    }
}

/// The pool and what it is told about every script.
pub(crate) struct Scripts {
    pool: script::Pool,
    limits: script::Limits,
}

impl Scripts {
    pub fn new(options: script::PoolOptions) -> Scripts {
        Scripts { limits: options.limits.clone(), pool: script::Pool::new(options) }
    }

    /// Hands work to a script thread. `scripts` are blamed if time runs out.
    fn submit<H: Send + 'static, T: Send + 'static>(
        &self,
        core: &Arc<Core>,
        ctx: &Ctx,
        (host, blamed): (H, Vec<Arc<Prepared>>),
        work: impl FnOnce(&mut Session<'_, H>) -> Result<Pending<T>> + Send + 'static,
    ) -> Scripted<T> {
        let (decider, decision) = decision();
        let core = core.clone();
        let answer = move |done: std::result::Result<Result<Pending<T>>, Stop>| {
            let result = match done {
                Ok(result) => result,
                Err(Stop::Overdue) => Err(Error::Timeout),
                Err(Stop::Unavailable) => Err(Error::Unavailable),
                Err(Stop::Fault(what)) => Err(Error::Fault(what)),
            };
            if matches!(result, Err(Error::Timeout)) {
                blamed.iter().for_each(|script| script.timed_out(core.clock.now()));
            }
            // Whoever has the answer may close the database.
            drop((core, blamed));
            decider.decide(result.unwrap_or_else(|error| Pending::ready(Err(error))));
        };
        let running = self.pool.submit(host, ctx.deadline().instant(), work, answer);
        Scripted { decision, _running: Some(running) }
    }
}

impl Engine {
    /// Runs a stored procedure in the logical partition of the guard.
    pub fn execute(
        &self,
        ctx: &Ctx,
        guard: PartitionGuard,
        execution: Execution,
    ) -> Scripted<ScriptAnswer> {
        let container = guard.container.clone();
        if let Err(error) = self.core.admit(ctx, &container, &[guard.key.partition]) {
            return Scripted::ready(Err(error));
        }
        let prepared = self.core.procedure(&container, &execution.procedure);
        let prepared = match prepared {
            Ok(prepared) => prepared,
            Err(error) => return Scripted::ready(Err(error)),
        };
        let (script, quick) = (prepared.clone(), self.core.scripts.limits.here / 2);
        let call = Call {
            program: prepared.program.clone(),
            role: Role::Procedure { arguments: execution.arguments },
            collection: self.core.collection(&container),
            is_logging: execution.is_logging,
        };
        let transaction = Transaction::begin(&self.core, ctx, guard);
        let work = move |session: &mut Session<'_, ScriptHost>| {
            let begun = Instant::now();
            let outcome = run_script(session, &call)?;
            script.was_quick(begun.elapsed() <= quick);
            let log = execution.is_logging.then_some(outcome.log);
            let body = outcome.body;
            finish(session, move |spent, partition, lsn, _| {
                let (charge, receipt) = spent.finish();
                ScriptAnswer { body, log, charge, receipt, partition, lsn }
            })
        };
        let pool = &self.core.scripts.pool;
        let Some(place) = prepared.is_quick().then(|| pool.place_here()).flatten() else {
            return self.core.transact_scripted(ctx, transaction, vec![prepared], work);
        };
        let (begun, time) = (Instant::now(), self.core.scripts.limits.here);
        match self.core.try_here(ctx, place, transaction, &work) {
            Tried::Done(pending) => Scripted::decided(pending),
            Tried::Revoked => {
                prepared.was_trusted_in_vain(begun.elapsed(), time);
                prepared.timed_out(self.core.clock.now());
                Scripted::ready(Err(Error::Timeout))
            }
            Tried::InVain(guard) => {
                prepared.was_trusted_in_vain(begun.elapsed(), time);
                let transaction = Transaction::begin(&self.core, ctx, *guard);
                self.core.transact_scripted(ctx, transaction, vec![prepared], work)
            }
        }
    }

    /// Decides and enqueues one write with its triggers, all in one transaction.
    pub fn write_with_triggers(
        &self,
        ctx: &Ctx,
        guard: PartitionGuard,
        write: WriteItem,
        triggers: &Triggers,
    ) -> Scripted<TriggeredAnswer> {
        let container = guard.container.clone();
        let core = &self.core;
        if let Err(error) = core.admit(ctx, &container, &[guard.key.partition]) {
            return Scripted::ready(Err(error));
        }
        let pre =
            triggers.pre.as_deref().map(|name| core.trigger(&container, name, TriggerType::Pre));
        let post =
            triggers.post.as_deref().map(|name| core.trigger(&container, name, TriggerType::Post));
        let (pre, post) = match (pre.transpose(), post.transpose()) {
            (Ok(pre), Ok(post)) => (pre, post),
            (Err(error), _) | (_, Err(error)) => return Scripted::ready(Err(error)),
        };
        let blamed = [&pre, &post].into_iter().flatten().map(|trigger| trigger.script.clone());
        let blamed = blamed.collect();
        let triggered = Triggered { pre, post, collection: core.collection(&container) };
        let transaction = Transaction::begin(core, ctx, guard);
        core.transact_scripted(ctx, transaction, blamed, move |session| {
            triggered.write(session, write)
        })
    }

    /// Runs one page of a query that calls user-defined functions.
    pub fn query_with_functions(
        &self,
        ctx: &Ctx,
        container: &Arc<Container>,
        scope: Scope,
        query: &QueryText,
        page: PageRequest,
    ) -> Scripted<FeedPage> {
        let core = self.core.clone();
        let started = page.wants_times.then(Instant::now);
        let bound = core.bind(container, query);
        let compiled = started.map(|started| started.elapsed());
        let prepared = bound.and_then(|bound| Ok((core.functions_of(container, &bound)?, bound)));
        let (programs, bound) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => return Scripted::ready(Err(error)),
        };
        let (container, deadline) = (container.clone(), ctx.deadline());
        let wants_receipt = ctx.wants_receipt();
        self.core.scripts.submit(&self.core, ctx, ((), Vec::new()), move |session| {
            let functions = session.functions(&programs);
            let functions = Functions::new(functions.map_err(|failure| failed(failure, None))?);
            let ctx = core.ctx(deadline).with_receipt(wants_receipt);
            let page = core.query_page(&ctx, &container, &scope, bound, &page, &functions)?;
            Ok(Pending::ready(Ok(page.compiled_in(compiled))))
        })
    }

    /// Whether a query calls user-defined functions.
    pub fn calls_functions(&self, query: &QueryText) -> bool {
        let parse = || self.core.parsed.get(&query.text);
        may_call_functions(&query.text)
            && parse().is_ok_and(|parsed| parsed.query.calls_functions())
    }
}

/// What became of an attempt to run a procedure on the present thread.
enum Tried<T> {
    Done(Pending<T>),
    /// Nothing was done, and the lock is still held.
    InVain(Box<PartitionGuard>),
    /// The watchdog has ended it.
    Revoked,
}

/// When a trigger runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TriggerType {
    Pre,
    Post,
}

struct Trigger {
    script: Arc<Prepared>,
    name: String,
    /// As its definition spells it.
    operation: String,
}

impl Trigger {
    /// A trigger runs only on the operation it was made for. An upsert is one, and also what it
    /// turns out to be.
    fn check(&self, operation: TriggerOperation, turns_out: TriggerOperation) -> Result<()> {
        let own = self.operation.to_ascii_lowercase();
        let fits = |operation: TriggerOperation| match operation {
            TriggerOperation::Create => own == "create",
            TriggerOperation::Replace => own == "replace" || own == "update",
            TriggerOperation::Upsert => own == "upsert",
            TriggerOperation::Delete => own == "delete",
        };
        if own == "all" || fits(operation) || fits(turns_out) {
            return Ok(());
        }
        Err(Error::Invalid(format!(
            "The trigger '{}' is defined for the operation '{}' and cannot run on '{operation:?}'.",
            self.name, self.operation
        )))
    }
}

/// A write with its triggers.
struct Triggered {
    pre: Option<Trigger>,
    post: Option<Trigger>,
    collection: Collection,
}

impl Triggered {
    fn write(
        self,
        session: &mut Session<'_, ScriptHost>,
        mut write: WriteItem,
    ) -> Result<Pending<TriggeredAnswer>> {
        let operation = operation_of(&write.kind)?;
        let turns_out = with_host(session, |host| turns_out(host, &write.kind))??;
        for trigger in [&self.pre, &self.post].into_iter().flatten() {
            trigger.check(operation, turns_out)?;
        }
        if let Some(trigger) = &self.pre {
            let body = body_of(&write.kind);
            let outcome =
                run_script(session, &self.call(trigger, Role::PreTrigger { operation, body }))?;
            if let Some(changed) = outcome.request {
                let change = |host: &mut ScriptHost| change_body(host, &mut write.kind, &changed);
                let done = with_host(session, change)?;
                done.or_else(|error| refused(session, error))?;
            }
        }
        let request = self.post.as_ref().and_then(|_| body_of(&write.kind));
        let written = with_host(session, |host| host.write(Origin::Client, write))?;
        let (applied, response) = written.or_else(|error| refused(session, error))?;
        let mut body = None;
        if let Some(trigger) = &self.post {
            let role = Role::PostTrigger { operation, request, response };
            body = run_script(session, &self.call(trigger, role))?.body;
        }
        finish(session, move |spent, partition, lsn, committed| TriggeredAnswer {
            answer: items::answer(Applied { bill: spent, ..applied }, committed, partition, lsn),
            body,
        })
    }

    fn call(&self, trigger: &Trigger, role: Role) -> Call {
        let collection = self.collection.clone();
        Call { program: trigger.script.program.clone(), role, collection, is_logging: false }
    }
}

/// A refusal of the write itself: what its triggers did until then is paid for, and it with that.
fn refused<T>(session: &mut Session<'_, ScriptHost>, error: Error) -> Result<T> {
    if matches!(error, Error::Timeout | Error::Unavailable | Error::Fault(_)) {
        return Err(error);
    }
    let spent = with_host(session, |host| {
        let bill = charge::refused(&host.ctx, &error);
        host.spent.add_operation(|| "refused write".to_owned(), bill);
        host.pay();
        std::mem::take(&mut host.spent)
    })?;
    let (charge, receipt) = spent.finish();
    Err(Error::AfterTriggers(Box::new(RefusedError { error, charge, receipt })))
}

fn operation_of(kind: &WriteKind) -> Result<TriggerOperation> {
    match kind {
        WriteKind::Create(_) => Ok(TriggerOperation::Create),
        WriteKind::Upsert(_) => Ok(TriggerOperation::Upsert),
        WriteKind::Replace(..) => Ok(TriggerOperation::Replace),
        WriteKind::Delete(_) => Ok(TriggerOperation::Delete),
        WriteKind::Patch(..) => {
            Err(Error::NotSupported("Triggers do not run on patches. Use a replace.".into()))
        }
    }
}

/// What an upsert becomes; anything else is what it is.
fn turns_out(host: &mut ScriptHost, kind: &WriteKind) -> Result<TriggerOperation> {
    let WriteKind::Upsert(draft) = kind else { return operation_of(kind) };
    let id = draft.root().get("id").and_then(|node| node.as_str().map(|id| id.into_owned()));
    let exists = host.transaction.step(|txn, _| Ok(txn.get(&id.unwrap_or_default())?.is_some()))?;
    Ok(if exists { TriggerOperation::Replace } else { TriggerOperation::Create })
}

fn body_of(kind: &WriteKind) -> Option<Value> {
    match kind {
        WriteKind::Create(draft) | WriteKind::Upsert(draft) | WriteKind::Replace(_, draft) => {
            Some(draft.root().to_value())
        }
        WriteKind::Patch(..) | WriteKind::Delete(_) => None,
    }
}

/// Takes the body a pre-trigger has made of the request.
fn change_body(host: &ScriptHost, kind: &mut WriteKind, changed: &Value) -> Result<()> {
    match kind {
        WriteKind::Create(draft) | WriteKind::Upsert(draft) | WriteKind::Replace(_, draft) => {
            *draft = host.draft(changed)?;
        }
        WriteKind::Patch(..) | WriteKind::Delete(_) => {}
    }
    Ok(())
}

impl Core {
    /// Has a script thread work in a transaction. A refusal, too, waits for what it was derived
    /// from; that time is over does not depend on data.
    fn transact_scripted<T: Send + 'static>(
        self: &Arc<Core>,
        ctx: &Ctx,
        transaction: Transaction,
        blamed: Vec<Arc<Prepared>>,
        work: impl FnOnce(&mut Session<'_, ScriptHost>) -> Result<Pending<T>> + Send + 'static,
    ) -> Scripted<T> {
        let (core, run) = (self.clone(), self.scripts.limits.run);
        let depends = transaction.depends_on_pending;
        let host = ScriptHost::new(transaction, ctx.fork());
        self.scripts.submit(self, ctx, (host, blamed), move |session| {
            with_host(session, |host| host.start(Deadline::after(run)))?;
            core.after_pending(depends, work(session))
        })
    }

    /// A result, once what it was derived from is durable.
    fn after_pending<T>(&self, depends: bool, done: Result<Pending<T>>) -> Result<Pending<T>> {
        match done {
            Ok(pending) => Ok(pending),
            Err(error @ (Error::Timeout | Error::Unavailable)) => Err(error),
            Err(error) if depends => {
                Ok(Pending::after(self.store.commit(Commit::default()), Err(error)))
            }
            Err(error) => Err(error),
        }
    }

    /// Runs a procedure on the present thread, for a moment.
    fn try_here<T>(
        &self,
        ctx: &Ctx,
        place: script::Place<'_>,
        transaction: Transaction,
        work: &impl Fn(&mut Session<'_, ScriptHost>) -> Result<Pending<T>>,
    ) -> Tried<T> {
        let (depends, time) = (transaction.depends_on_pending, self.scripts.limits.here);
        let host = ScriptHost::new(transaction, ctx.fork());
        let (done, host) = place.run(host, time, |session| {
            with_host(session, |host| host.start_trial(Deadline::after(time)))?;
            work(session)
        });
        let done = done.map_err(|stop| Error::Fault(stop.to_string())).flatten();
        match (done, host) {
            (Err(Error::Timeout), Some(host)) => {
                Tried::InVain(Box::new(host.transaction.into_guard()))
            }
            (Err(Error::Unavailable), None) => Tried::Revoked,
            (done, _) => {
                let done = self.after_pending(depends, done);
                Tried::Done(done.unwrap_or_else(|error| Pending::ready(Err(error))))
            }
        }
    }

    fn procedure(&self, container: &Container, name: &str) -> Result<Arc<Prepared>> {
        let number = container.layout.container;
        let resource = self.catalog.script(ResourceKind::StoredProcedure, number, name);
        self.programs.get(&resource.ok_or(Error::NotFound)?)
    }

    fn trigger(&self, container: &Container, name: &str, wanted: TriggerType) -> Result<Trigger> {
        let resource = self.catalog.script(ResourceKind::Trigger, container.layout.container, name);
        let resource = resource
            .ok_or_else(|| Error::Invalid(format!("The trigger '{name}' does not exist.")))?;
        let text = |name: &str| resource.body.get(name).and_then(serde_json::Value::as_str);
        let kind = match text("triggerType").map(str::to_ascii_lowercase).as_deref() {
            Some("post") => TriggerType::Post,
            _ => TriggerType::Pre,
        };
        if kind != wanted {
            let message =
                format!("The trigger '{name}' is a {kind:?}-trigger, not a {wanted:?}-trigger.");
            return Err(Error::Invalid(message));
        }
        let operation = text("triggerOperation").unwrap_or("All").to_owned();
        let script = self.programs.get(&resource)?;
        Ok(Trigger { script, name: name.to_owned(), operation })
    }

    /// What scripts are told about their container.
    fn collection(&self, container: &Container) -> Collection {
        const MEGABYTE: f64 = 1024.0 * 1024.0;
        let bytes =
            container.bytes.iter().map(|bytes| bytes.load(std::sync::atomic::Ordering::Relaxed));
        Collection {
            self_link: format!("dbs/{}/colls/{}/", container.database_rid(), container.rid()),
            alt_link: format!("dbs/{}/colls/{}", container.database_name(), container.name()),
            size_mb: bytes.sum::<i64>().max(0) as f64 / MEGABYTE,
            size_mb_max: self.logical_partition_bytes_max as f64 / MEGABYTE,
        }
    }
}

/// What nobody is told: the watchdog has answered already, or the client has gone. Not a timeout,
/// which would count against the script.
const REVOKED: Error = Error::Unavailable;

/// Access to the transaction; an error if the watchdog or the client ended it.
fn with_host<R>(
    session: &mut Session<'_, ScriptHost>,
    work: impl FnOnce(&mut ScriptHost) -> R,
) -> Result<R> {
    session.with_host(work).map_err(|_| REVOKED)
}

/// Runs one script of a transaction.
fn run_script(session: &mut Session<'_, ScriptHost>, call: &Call) -> Result<script::Outcome> {
    with_host(session, |host| charge::start_script(&mut host.spent))?;
    let failure = match session.execute(call) {
        Ok(outcome) => {
            with_host(session, |host| charge::add_fuel(&mut host.spent, outcome.fuel))?;
            return Ok(outcome);
        }
        Err(failure) => failure,
    };
    let told = with_host(session, |host| {
        if let Failure::Exception { fuel, .. } = &failure {
            charge::add_fuel(&mut host.spent, *fuel);
        }
        let is_over = match &failure {
            Failure::Timeout { .. } => true,
            Failure::Fatal => matches!(host.fatal, None | Some(Error::Timeout)),
            Failure::Exception { .. } | Failure::Revoked => false,
        };
        // What begins again elsewhere is paid for there.
        if !(host.is_trial && is_over) {
            host.pay();
        }
        (std::mem::take(&mut host.spent), host.fatal.take())
    })?;
    Err(failed(failure, Some(told)))
}

/// Commits the transaction; the answer waits until everything it depends on is durable.
fn finish<T>(
    session: &mut Session<'_, ScriptHost>,
    answer: impl FnOnce(Bill, u32, u64, &[Option<item::Item>]) -> T,
) -> Result<Pending<T>> {
    let host = session.take_host().map_err(|_| REVOKED)?;
    host.pay();
    let ScriptHost { transaction, spent, .. } = host;
    let (core, partition) = (transaction.core.clone(), transaction.partition());
    let (container, depends) = (transaction.container().clone(), transaction.depends_on_pending);
    match transaction.commit()? {
        Some(Committed { lsn, versions, ticket }) => {
            Ok(Pending::after(ticket, Ok(answer(spent, partition, lsn, &versions))))
        }
        None => {
            let answer = Ok(answer(spent, partition, container.session(partition), &[]));
            Ok(match depends {
                true => Pending::after(core.store.commit(Commit::default()), answer),
                false => Pending::ready(answer),
            })
        }
    }
}

/// Why a script did not come to its end, as its client is told.
fn failed(failure: Failure, host: Option<(Bill, Option<Error>)>) -> Error {
    let (spent, fatal) = host.unwrap_or_default();
    match failure {
        Failure::Exception { number, message, stack, log, .. } => {
            let message = exception_text(&message, &stack);
            let (charge, receipt) = spent.finish();
            Error::Script(Box::new(ScriptError { number, message, log, charge, receipt }))
        }
        Failure::Timeout { .. } => Error::Timeout,
        Failure::Revoked => REVOKED,
        Failure::Fatal => fatal.unwrap_or(Error::Timeout),
    }
}

/// The sentence about an exception that nobody caught.
fn exception_text(message: &str, stack: &str) -> String {
    let sentence = "Encountered exception while executing function. Exception = ";
    match stack.trim_end() {
        "" => format!("{sentence}{message}"),
        stack => format!("{sentence}{message}\r\nStack trace: {stack}"),
    }
}
