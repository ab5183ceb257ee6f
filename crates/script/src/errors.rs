//! What escaped a script, as a failure: its number, its message, and the frames that are the script's.

use rquickjs::{Ctx, Object, Value as JsValue};

use crate::convert::{self, Bounds};
use crate::machine::PRELUDE;
use crate::memory::Memory;
use crate::program::source_column;

/// Longest message that is passed on.
const MESSAGE_BYTES_MAX: usize = 16 << 10;

const SHORT: Bounds<'static> = Bounds { bytes_max: MESSAGE_BYTES_MAX, watch: None };

/// An exception, read out of the engine.
#[derive(Clone, Debug, Default)]
pub(crate) struct Thrown {
    pub(crate) number: u32,
    pub(crate) message: String,
    pub(crate) stack: String,
}

/// Takes the pending exception.
pub(crate) fn take(ctx: &Ctx<'_>, error: &rquickjs::Error, memory: &Memory) -> Thrown {
    if error.is_exception() {
        let thrown = ctx.catch();
        // The engine throws null when there is no memory left for an error.
        let is_void = thrown.is_null() && memory.has_run_out();
        return if is_void { out_of_memory() } else { read(&thrown) };
    }
    if matches!(error, rquickjs::Error::Allocation) {
        return out_of_memory();
    }
    Thrown { message: format!("InternalError: {error}"), ..Thrown::default() }
}

/// What a script finds when its memory is used up.
pub(crate) fn out_of_memory() -> Thrown {
    Thrown { message: "InternalError: out of memory".to_owned(), ..Thrown::default() }
}

/// A thrown value. Reading it may run code of the script, whose own exceptions are dropped.
pub(crate) fn read(value: &JsValue<'_>) -> Thrown {
    let thrown = match value.as_object() {
        Some(object) => read_object(object),
        None => Thrown { message: text_of(value), ..Thrown::default() },
    };
    // Whatever the getters threw.
    let _ = value.ctx().catch();
    thrown
}

fn read_object(object: &Object<'_>) -> Thrown {
    let member = |name: &str| object.get::<_, JsValue<'_>>(name).ok();
    let number = member("number").and_then(|number| number.as_number()).unwrap_or_default();
    let message = member("message").filter(|message| message.is_string());
    let message = match message {
        Some(message) => {
            let name = member("name").filter(|name| name.is_string());
            let name = name.map_or_else(|| "Error".to_owned(), |name| text_of(&name));
            format!("{name}: {}", text_of(&message))
        }
        None => convert::to_text(object.as_value(), SHORT)
            .ok()
            .flatten()
            .unwrap_or_else(|| "Error".to_owned()),
    };
    let stack = member("stack").filter(|stack| stack.is_string()).map(|stack| text_of(&stack));
    Thrown {
        number: number as u32,
        message: cut(message),
        stack: cut(frames(&stack.unwrap_or_default())),
    }
}

/// A primitive as text.
fn text_of(value: &JsValue<'_>) -> String {
    let text = match value.as_string() {
        Some(text) => convert::to_string(text).ok(),
        None if value.is_undefined() => Some("undefined".to_owned()),
        None => convert::to_text(value, SHORT).ok().flatten(),
    };
    cut(text.unwrap_or_default())
}

/// The frames that are the script's, with columns as in its source.
pub(crate) fn frames(stack: &str) -> String {
    let own = stack.lines().filter(|line| !line.contains(&format!("<{PRELUDE}>/")));
    own.map(corrected).collect::<Vec<_>>().join("\n")
}

/// A frame `at f (name:1:20)` with the column corrected on the first line.
fn corrected(frame: &str) -> String {
    let frame = frame.replacen("at default (", "at <anonymous> (", 1);
    let place = || {
        let (before, column) = frame.strip_suffix(')')?.rsplit_once(':')?;
        let (before, line) = before.rsplit_once(':')?;
        let line = line.parse().ok()?;
        Some(format!("{before}:{line}:{})", source_column(line, column.parse().ok()?)))
    };
    place().unwrap_or(frame)
}

fn cut(mut text: String) -> String {
    if text.len() > MESSAGE_BYTES_MAX {
        let end = (0..=MESSAGE_BYTES_MAX).rev().find(|&end| text.is_char_boundary(end));
        text.truncate(end.unwrap_or_default());
    }
    text
}
