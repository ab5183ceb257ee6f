//! The functions under the prelude: what touches the host, the clock or the log.
//!
//! They never throw for a script's mistake. They return what is wrong as `{number, message}`, and the
//! prelude throws it, so that all errors of the API are made in one place.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::OnceLock;
use std::time::Instant;

use base::Random;
use item::{Object, Value};
use rquickjs::{Ctx, Function, Object as JsObject, String as JsString, Value as JsValue};

use crate::call::Limits;
use crate::convert::{self, Bounds, Unfit};
use crate::errors::{self, Thrown};
use crate::machine::{End, Watch, prelude};
use crate::operation::{ItemLink, Operation, Page};
use crate::port::{Port, PortError};
use crate::program::Program;
use crate::translate::{self, Captures};

/// What the natives of one machine share with the run of its script.
pub(crate) struct Desk {
    pub(crate) watch: Rc<Watch>,
    pub(crate) port: RefCell<Option<Box<dyn Port>>>,
    queue: RefCell<VecDeque<Queued>>,
    /// Bytes that all of them hold. They are outside the memory of the engine, but bounded like it.
    queued_bytes: Cell<usize>,
    pub(crate) log: RefCell<String>,
    pub(crate) aborted: RefCell<Option<Thrown>>,
    /// Until when operations are queued.
    pub(crate) accept_until: Cell<Option<Instant>>,
    /// Whether the host is working; a panic is then the host's.
    pub(crate) is_in_host: Cell<bool>,
    random: Random,
    log_bytes_left: Cell<usize>,
    limits: Limits,
}

impl Desk {
    pub(crate) fn new(watch: Rc<Watch>, limits: &Limits) -> Desk {
        Desk {
            watch,
            port: RefCell::default(),
            queue: RefCell::default(),
            queued_bytes: Cell::new(0),
            log: RefCell::default(),
            aborted: RefCell::default(),
            accept_until: Cell::new(None),
            is_in_host: Cell::new(false),
            random: Random::from_entropy(),
            log_bytes_left: Cell::new(limits.log_bytes),
            limits: limits.clone(),
        }
    }

    /// What was queued first.
    pub(crate) fn next(&self) -> Option<Queued> {
        let queued = self.queue.borrow_mut().pop_front()?;
        self.queued_bytes.set(self.queued_bytes.get() - queued.bytes);
        Some(queued)
    }

    /// Forgets everything about a run.
    pub(crate) fn rewind(&self) {
        self.clear();
        drop(self.port.borrow_mut().take());
        self.log.borrow_mut().clear();
        self.aborted.borrow_mut().take();
        self.accept_until.set(None);
        self.is_in_host.set(false);
        self.log_bytes_left.set(self.limits.log_bytes);
    }

    /// Forgets what is queued.
    pub(crate) fn clear(&self) {
        self.queue.borrow_mut().clear();
        self.queued_bytes.set(0);
    }

    fn push(&self, operation: Operation, has_callback: bool) {
        let bytes = held_bytes(&operation);
        self.queued_bytes.set(self.queued_bytes.get() + bytes);
        self.queue.borrow_mut().push_back(Queued { operation, has_callback, bytes });
    }

    /// Asks the host. What ends the script is noted; `None` then.
    pub(crate) fn ask<R>(
        &self,
        question: impl FnOnce(&dyn Port) -> Result<R, PortError>,
    ) -> Option<Result<R, Refusal>> {
        let port = self.port.borrow();
        let port = port.as_ref()?;
        self.is_in_host.set(true);
        let answer = question(&**port);
        self.is_in_host.set(false);
        match answer {
            Ok(answer) => Some(Ok(answer)),
            Err(PortError::Refused { number, message }) => Some(Err(Refusal { number, message })),
            Err(PortError::Fatal) => {
                self.watch.stop(End::Fatal);
                None
            }
            Err(PortError::Revoked) => {
                self.watch.stop(End::Revoked);
                None
            }
        }
    }

    pub(crate) fn bounds(&self) -> Bounds<'_> {
        Bounds { bytes_max: self.limits.body_bytes, watch: Some(&*self.watch) }
    }

    fn accepts(&self) -> bool {
        let is_time = self.accept_until.get().is_some_and(|until| Instant::now() < until);
        let has_room = self.queued_bytes.get() < self.limits.memory_bytes;
        let is_open = is_time && has_room && self.watch.end().is_none();
        is_open && matches!(self.ask(|port| port.accepts()), Some(Ok(true)))
    }
}

/// An operation that waits for its turn.
pub(crate) struct Queued {
    pub(crate) operation: Operation,
    /// Whether anybody wants to see the result.
    pub(crate) has_callback: bool,
    /// What it holds in memory.
    bytes: usize,
}

/// An error that the prelude is to throw or hand to a callback.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) number: u16,
    pub(crate) message: String,
}

/// Why an operation was not queued: a refusal, or an exception that is pending.
enum Snag {
    Refused(Refusal),
    Thrown(rquickjs::Error),
}

impl From<rquickjs::Error> for Snag {
    fn from(error: rquickjs::Error) -> Snag {
        Snag::Thrown(error)
    }
}

impl From<Unfit> for Snag {
    fn from(unfit: Unfit) -> Snag {
        match unfit {
            Unfit::Thrown(error) => Snag::Thrown(error),
            Unfit::TooLarge => refused(413, "Request size is too large"),
            Unfit::Invalid(why) => refused(400, why),
            // Nobody will read it: the next interrupt ends the script.
            Unfit::Late => refused(408, "The time is over."),
        }
    }
}

fn refused(number: u16, message: impl Into<String>) -> Snag {
    Snag::Refused(Refusal { number, message: message.into() })
}

/// The object the prelude calls `native`.
pub(crate) fn install<'js>(ctx: &Ctx<'js>, desk: &Rc<Desk>) -> rquickjs::Result<JsObject<'js>> {
    let native = JsObject::new(ctx.clone())?;
    let own = desk.clone();
    let queue =
        move |operation: JsObject<'js>, has_callback: bool| queue(&own, &operation, has_callback);
    native.set("queue", Function::new(ctx.clone(), queue)?)?;
    let own = desk.clone();
    let evaluate = move |ctx: Ctx<'js>, expression: String, values: Vec<JsValue<'js>>| {
        evaluate(&own, &ctx, &expression, &values)
    };
    native.set("evaluate", Function::new(ctx.clone(), evaluate)?)?;
    let load = |ctx: Ctx<'js>| load_queries(&ctx);
    native.set("loadQueries", Function::new(ctx.clone(), load)?)?;
    native.set("translate", Function::new(ctx.clone(), translate_predicate)?)?;
    let path = |source: JsString<'js>| translate_path(&source);
    native.set("translatePath", Function::new(ctx.clone(), path)?)?;
    let own = desk.clone();
    let fits = move |value: JsValue<'js>| fits(&own, &value);
    native.set("fits", Function::new(ctx.clone(), fits)?)?;
    let own = desk.clone();
    native.set("log", Function::new(ctx.clone(), move |text: JsValue<'js>| log(&own, &text))?)?;
    let own = desk.clone();
    native
        .set("halt", Function::new(ctx.clone(), move |error: JsValue<'js>| halt(&own, &error))?)?;
    Ok(native)
}

/// More than loading the query API takes.
const QUERIES_BYTES: usize = 512 << 10;

/// Loads the query API, if there is memory for it (M3).
fn load_queries<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<Function<'js>> {
    let probe = JsString::from_str(ctx.clone(), &" ".repeat(QUERIES_BYTES))?;
    drop(probe);
    queries().load(ctx)
}

fn queries() -> &'static Program {
    static QUERIES: OnceLock<Program> = OnceLock::new();
    prelude(&QUERIES, "queries", include_str!("prelude/queries.js"))
}

/// Queues an operation: true, false, or a refusal.
fn queue<'js>(
    desk: &Desk,
    operation: &JsObject<'js>,
    has_callback: bool,
) -> rquickjs::Result<JsValue<'js>> {
    let ctx = operation.ctx();
    if !desk.accepts() {
        return Ok(JsValue::new_bool(ctx.clone(), false));
    }
    match read_operation(desk, operation) {
        Ok(operation) => {
            desk.push(operation, has_callback);
            Ok(JsValue::new_bool(ctx.clone(), true))
        }
        Err(Snag::Refused(refusal)) => Ok(refusal_object(ctx, &refusal)?.into_value()),
        Err(Snag::Thrown(error)) => Err(error),
    }
}

/// What an operation holds in memory, roughly.
fn held_bytes(operation: &Operation) -> usize {
    let values = match operation {
        Operation::Read { .. } | Operation::ReadFeed { .. } | Operation::Delete { .. } => 0,
        Operation::Query { text, parameters, .. } => {
            text.len()
                + parameters.iter().map(|(_, value)| convert::held_bytes(value)).sum::<usize>()
        }
        Operation::Create { body, .. }
        | Operation::Upsert { body, .. }
        | Operation::Replace { body, .. } => convert::held_bytes(body),
    };
    size_of::<Operation>() + values
}

fn refusal_object<'js>(ctx: &Ctx<'js>, refusal: &Refusal) -> rquickjs::Result<JsObject<'js>> {
    let object = JsObject::new(ctx.clone())?;
    object.set("number", refusal.number)?;
    object.set("message", refusal.message.as_str())?;
    Ok(object)
}

fn read_operation(desk: &Desk, operation: &JsObject<'_>) -> Result<Operation, Snag> {
    let kind: String = operation.get("kind")?;
    Ok(match kind.as_str() {
        "read" => Operation::Read {
            item: link(operation)?,
            if_none_match: text(operation, "ifNoneMatch")?,
        },
        "feed" => Operation::ReadFeed { page: page(operation)? },
        "query" => Operation::Query {
            text: text(operation, "text")?.unwrap_or_default(),
            parameters: parameters(desk, operation)?,
            page: page(operation)?,
            is_scan_enabled: operation.get("isScanEnabled")?,
        },
        "create" => Operation::Create {
            body: body(desk, operation)?,
            is_indexed: operation.get("isIndexed")?,
        },
        "upsert" => Operation::Upsert {
            body: body(desk, operation)?,
            etag: text(operation, "etag")?,
            is_indexed: operation.get("isIndexed")?,
        },
        "replace" => Operation::Replace {
            item: link(operation)?,
            body: body(desk, operation)?,
            etag: text(operation, "etag")?,
            is_indexed: operation.get("isIndexed")?,
        },
        "delete" => Operation::Delete { item: link(operation)?, etag: text(operation, "etag")? },
        other => return Err(refused(400, format!("Unknown operation {other}"))),
    })
}

fn text(operation: &JsObject<'_>, name: &str) -> Result<Option<String>, Snag> {
    let value: JsValue<'_> = operation.get(name)?;
    Ok(value.as_string().map(convert::to_string).transpose()?)
}

fn link(operation: &JsObject<'_>) -> Result<ItemLink, Snag> {
    match text(operation, "rid")? {
        Some(rid) => Ok(ItemLink::Rid(rid)),
        None => Ok(ItemLink::Id(text(operation, "id")?.unwrap_or_default())),
    }
}

fn page(operation: &JsObject<'_>) -> Result<Page, Snag> {
    let items_max: f64 = operation.get("itemsMax")?;
    Ok(Page { items_max: items_max as usize, continuation: text(operation, "continuation")? })
}

fn parameters(desk: &Desk, operation: &JsObject<'_>) -> Result<Vec<(String, Value)>, Snag> {
    let list: Vec<JsObject<'_>> = operation.get("parameters")?;
    let mut parameters = Vec::with_capacity(list.len());
    for parameter in &list {
        let value: JsValue<'_> = parameter.get("value")?;
        let name = text(parameter, "name")?.unwrap_or_default();
        parameters.push((name, convert::to_value(&value, desk.bounds())?));
    }
    Ok(parameters)
}

/// The body of a write: an object, or JSON text of one. The caller's object is left alone.
fn body(desk: &Desk, operation: &JsObject<'_>) -> Result<Value, Snag> {
    let given: JsValue<'_> = operation.get("body")?;
    let value = match given.as_string() {
        Some(text) => parse_body(&convert::to_string(text)?)?,
        None => convert::to_value(&given, desk.bounds())?,
    };
    let Value::Object(object) = value else {
        return Err(refused(400, "Invalid body: an object or a JSON string is expected."));
    };
    let generates_id: Option<bool> = operation.get("generatesId")?;
    let id = object.get("id");
    let lacks_id = id.is_undefined() || id.is_null() || id.as_str() == Some("");
    if generates_id == Some(true) && lacks_id {
        return Ok(with_id(&object, desk.random.guid()));
    }
    Ok(Value::Object(object))
}

fn parse_body(text: &str) -> Result<Value, Snag> {
    Value::parse(text.as_bytes()).map_err(|error| refused(400, format!("Invalid body: {error}")))
}

fn with_id(object: &Object, id: String) -> Value {
    let mut object = object.clone();
    object.insert("id", Value::from(id));
    Value::object(object)
}

/// `{value}` or `{error}`.
fn evaluate<'js>(
    desk: &Desk,
    ctx: &Ctx<'js>,
    expression: &str,
    values: &[JsValue<'js>],
) -> rquickjs::Result<JsObject<'js>> {
    let result = JsObject::new(ctx.clone())?;
    let parameters = values
        .iter()
        .enumerate()
        .map(|(at, value)| Ok((format!("@{at}"), convert::to_value(value, desk.bounds())?)));
    let answer = match parameters.collect::<Result<Vec<_>, Unfit>>().map_err(Snag::from) {
        Ok(parameters) => desk.ask(|port| port.evaluate(expression, parameters)),
        Err(Snag::Refused(refusal)) => Some(Err(refusal)),
        Err(Snag::Thrown(error)) => return Err(error),
    };
    match answer {
        Some(Ok(value)) => result.set("value", convert::from_value(ctx, &value)?)?,
        Some(Err(refusal)) => result.set("error", refusal_object(ctx, &refusal)?)?,
        None => {}
    }
    Ok(result)
}

/// A predicate as `{text, parameters}`, or undefined.
fn translate_predicate<'js>(
    ctx: Ctx<'js>,
    source: JsString<'js>,
    captures: JsValue<'js>,
    parameters_before: usize,
) -> rquickjs::Result<JsValue<'js>> {
    let captures = captured(&captures)?;
    let source = convert::to_string(&source)?;
    let Some(found) = translate::predicate(&source, &captures, parameters_before) else {
        return Ok(JsValue::new_undefined(ctx));
    };
    let result = JsObject::new(ctx.clone())?;
    result.set("text", found.text)?;
    let parameters = rquickjs::Array::new(ctx.clone())?;
    for (at, (name, value)) in found.parameters.iter().enumerate() {
        let parameter = JsObject::new(ctx.clone())?;
        parameter.set("name", name.as_str())?;
        parameter.set("value", convert::from_value(&ctx, value)?)?;
        parameters.set(at, parameter)?;
    }
    result.set("parameters", parameters)?;
    Ok(result.into_value())
}

fn translate_path(source: &JsString<'_>) -> rquickjs::Result<Option<String>> {
    Ok(translate::path(&convert::to_string(source)?))
}

/// Captured variables that are scalars; others cannot be said in SQL.
fn captured(captures: &JsValue<'_>) -> rquickjs::Result<Captures> {
    let Some(object) = captures.as_object() else { return Ok(Captures::new()) };
    let unbound = Bounds { bytes_max: usize::MAX, watch: None };
    let mut scalars = Captures::new();
    for member in object.props::<JsString<'_>, JsValue<'_>>() {
        let (name, value) = member?;
        if !value.is_object()
            && let Ok(value) = convert::to_value(&value, unbound)
            && !value.is_undefined()
        {
            scalars.insert(convert::to_string(&name)?, value);
        }
    }
    Ok(scalars)
}

/// Whether a body is short enough. What has no text fits.
fn fits(desk: &Desk, value: &JsValue<'_>) -> rquickjs::Result<bool> {
    match convert::to_text(value, desk.bounds()) {
        Ok(_) => Ok(true),
        Err(Unfit::TooLarge) => Ok(false),
        Err(Unfit::Thrown(error)) => Err(error),
        Err(Unfit::Invalid(_) | Unfit::Late) => Ok(true),
    }
}

/// Appends to the log, if it has room.
fn log(desk: &Desk, text: &JsValue<'_>) -> rquickjs::Result<bool> {
    let text = text.as_string().map(convert::to_string).transpose()?.unwrap_or_default();
    let left = desk.log_bytes_left.get().checked_sub(escaped_bytes(&text));
    if let Some(left) = left {
        desk.log_bytes_left.set(left);
        desk.log.borrow_mut().push_str(&text);
    }
    Ok(left.is_some())
}

/// The length of a text escaped as `encodeURIComponent` does.
fn escaped_bytes(text: &str) -> usize {
    let stays = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.!~*'()".contains(&byte);
    text.bytes().map(|byte| if stays(byte) { 1 } else { 3 }).sum()
}

/// Notes why the script gives up; the next interrupt ends it.
fn halt(desk: &Desk, error: &JsValue<'_>) {
    let thrown = if error.is_undefined() {
        Thrown { message: "Error: aborted".to_owned(), ..Thrown::default() }
    } else {
        errors::read(error)
    };
    desk.aborted.borrow_mut().get_or_insert(thrown);
    desk.watch.stop(End::Abort);
}
