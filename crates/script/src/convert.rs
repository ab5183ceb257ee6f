//! Values in and out of JavaScript.
//!
//! In: an item's nodes become JavaScript values directly, without text between. Out: by the rules of
//! `JSON.stringify`. Plain objects and arrays are walked; as soon as anything else turns up (a
//! `toJSON`, a boxed number, a proxy, a class, a cycle), the whole value goes through the engine's own
//! `JSON.stringify` instead, so there is one authority for the odd cases.
//!
//! Walking stops when the text would be longer than a limit, or the time of the script is over. That
//! also bounds arrays that only claim a length, and values that contain themselves many times over.

use std::sync::Arc;

use item::{Kind, Node, Object, Value};
use rquickjs::atom::PredefinedAtom;
use rquickjs::object::Property;
use rquickjs::{Array, Ctx, Object as JsObject, String as JsString, Type, Value as JsValue};

use crate::machine::Watch;

/// Deeper than any item may be; from here on the engine's `JSON.stringify` decides.
const DEPTH_MAX: usize = item::DEPTH_MAX + 1;

/// A part of an item as a JavaScript value.
pub(crate) fn from_node<'js>(ctx: &Ctx<'js>, node: Node<'_>) -> rquickjs::Result<JsValue<'js>> {
    Ok(match node.kind() {
        Kind::Null => JsValue::new_null(ctx.clone()),
        Kind::Bool => JsValue::new_bool(ctx.clone(), node.as_bool().unwrap_or_default()),
        Kind::Number => JsValue::new_number(ctx.clone(), node.as_f64().unwrap_or_default()),
        Kind::String => {
            JsString::from_str(ctx.clone(), &node.as_str().unwrap_or_default())?.into_value()
        }
        Kind::Array => {
            let array = Array::new(ctx.clone())?;
            for (at, element) in node.elements().enumerate() {
                array.set(at, from_node(ctx, element)?)?;
            }
            array.into_value()
        }
        Kind::Object => {
            let object = JsObject::new(ctx.clone())?;
            for (name, member) in node.members() {
                define(&object, &name, from_node(ctx, member)?)?;
            }
            object.into_value()
        }
    })
}

/// A value as a JavaScript value.
pub(crate) fn from_value<'js>(ctx: &Ctx<'js>, value: &Value) -> rquickjs::Result<JsValue<'js>> {
    Ok(match value {
        Value::Undefined => JsValue::new_undefined(ctx.clone()),
        Value::Null => JsValue::new_null(ctx.clone()),
        Value::Bool(value) => JsValue::new_bool(ctx.clone(), *value),
        Value::Number(number) => JsValue::new_number(ctx.clone(), *number),
        Value::String(text) => JsString::from_str(ctx.clone(), text)?.into_value(),
        Value::Array(elements) => {
            let array = Array::new(ctx.clone())?;
            for (at, element) in elements.iter().enumerate() {
                array.set(at, from_value(ctx, element)?)?;
            }
            array.into_value()
        }
        Value::Object(members) => {
            let object = JsObject::new(ctx.clone())?;
            for (name, member) in members.iter() {
                define(&object, name, from_value(ctx, member)?)?;
            }
            object.into_value()
        }
    })
}

/// An own property, whatever setters the prototypes have: `__proto__` is an ordinary name.
fn define<'js>(object: &JsObject<'js>, name: &str, value: JsValue<'js>) -> rquickjs::Result<()> {
    object.prop(name, Property::from(value).writable().enumerable().configurable())
}

/// Why a JavaScript value did not become one of ours.
#[derive(Debug)]
pub(crate) enum Unfit {
    /// The script threw, or holds what JSON cannot say.
    Thrown(rquickjs::Error),
    /// Its text would be too long.
    TooLarge,
    /// It is no JSON that an item could hold.
    Invalid(String),
    /// The time of the script is over.
    Late,
}

impl From<rquickjs::Error> for Unfit {
    fn from(error: rquickjs::Error) -> Unfit {
        Unfit::Thrown(error)
    }
}

/// How far a conversion may go.
#[derive(Clone, Copy)]
pub(crate) struct Bounds<'a> {
    /// Bytes of text.
    pub(crate) bytes_max: usize,
    /// The clock of the script, where the number of bytes is not bound enough.
    pub(crate) watch: Option<&'a Watch>,
}

/// A JavaScript value as `JSON.stringify` sees it; undefined for what it leaves out.
pub(crate) fn to_value(value: &JsValue<'_>, bounds: Bounds<'_>) -> Result<Value, Unfit> {
    let is_plain = matches!(value.type_of(), Type::Object | Type::Array);
    let plain = match is_plain {
        true => JsObject::new(value.ctx().clone())?.get_prototype(),
        false => None,
    };
    let mut walk = Walk { bytes_left: bounds.bytes_max, bounds, steps: 0, plain };
    match walk.value(value, 1) {
        Ok(found) => Ok(found.unwrap_or_default()),
        Err(Snag::Odd) => match stringified(value, bounds.bytes_max)? {
            Some(text) => {
                Value::parse(text.as_bytes()).map_err(|error| Unfit::Invalid(error.to_string()))
            }
            None => Ok(Value::Undefined),
        },
        Err(Snag::Unfit(unfit)) => Err(unfit),
    }
}

/// The text of a JavaScript value; none for what `JSON.stringify` leaves out.
pub(crate) fn to_text(value: &JsValue<'_>, bounds: Bounds<'_>) -> Result<Option<String>, Unfit> {
    let text = match to_value(value, bounds) {
        Ok(Value::Undefined) => return Ok(None),
        Ok(found) => found.to_json(),
        // Deeper than an item may be, which a response may be.
        Err(Unfit::Invalid(_)) => return stringified(value, bounds.bytes_max),
        Err(unfit @ (Unfit::Thrown(_) | Unfit::TooLarge | Unfit::Late)) => return Err(unfit),
    };
    if text.len() > bounds.bytes_max { Err(Unfit::TooLarge) } else { Ok(Some(text)) }
}

fn stringified(value: &JsValue<'_>, bytes_max: usize) -> Result<Option<String>, Unfit> {
    let Some(text) = value.ctx().json_stringify(value.clone())? else { return Ok(None) };
    let text = to_string(&text)?;
    if text.len() > bytes_max { Err(Unfit::TooLarge) } else { Ok(Some(text)) }
}

/// The text of a string. Halves of surrogate pairs, which UTF-8 cannot say, become U+FFFD.
pub(crate) fn to_string(text: &JsString<'_>) -> rquickjs::Result<String> {
    match text.to_string() {
        Err(rquickjs::Error::Utf8(_)) => {
            let quoted = text.ctx().json_stringify(text.clone())?;
            let quoted = quoted.map(|quoted| quoted.to_string()).transpose()?.unwrap_or_default();
            let value = Value::parse(quoted.as_bytes()).unwrap_or_default();
            Ok(value.as_str().unwrap_or_default().to_owned())
        }
        // The engine has thrown; only the binding does not say so.
        Err(rquickjs::Error::Unknown) => Err(rquickjs::Error::Exception),
        converted => converted,
    }
}

/// Values between two looks at the clock.
const STEPS_PER_LOOK: u32 = 1024;

/// What a value holds in memory, roughly.
pub(crate) fn held_bytes(value: &Value) -> usize {
    let inside = match value {
        Value::Undefined | Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(elements) => elements.iter().map(held_bytes).sum(),
        Value::Object(members) => {
            members.iter().map(|(name, member)| name.len() + held_bytes(member)).sum()
        }
    };
    size_of::<Value>() + inside
}

struct Walk<'js, 'a> {
    bounds: Bounds<'a>,
    bytes_left: usize,
    steps: u32,
    /// The prototype of plain objects.
    plain: Option<JsObject<'js>>,
}

enum Snag {
    Odd,
    Unfit(Unfit),
}

impl From<rquickjs::Error> for Snag {
    fn from(error: rquickjs::Error) -> Snag {
        Snag::Unfit(Unfit::Thrown(error))
    }
}

impl<'js> Walk<'js, '_> {
    fn value(&mut self, value: &JsValue<'js>, depth: usize) -> Result<Option<Value>, Snag> {
        Ok(Some(match value.type_of() {
            Type::Undefined
            | Type::Uninitialized
            | Type::Symbol
            | Type::Function
            | Type::Constructor => return Ok(None),
            Type::Null => self.take(4).map(|()| Value::Null)?,
            Type::Bool => {
                self.take(4).map(|()| Value::Bool(value.as_bool().unwrap_or_default()))?
            }
            Type::Int | Type::Float => self.take(1).map(|()| number(value))?,
            Type::String => self.string(value)?,
            Type::Array => self.array(value, depth)?,
            Type::Object => self.object(value, depth)?,
            Type::Promise
            | Type::Exception
            | Type::Proxy
            | Type::Module
            | Type::BigInt
            | Type::Unknown => return Err(Snag::Odd),
        }))
    }

    /// Uses up bytes of the text.
    fn take(&mut self, bytes: usize) -> Result<(), Snag> {
        self.steps += 1;
        if self.steps == STEPS_PER_LOOK {
            self.steps = 0;
            if self.bounds.watch.is_some_and(|watch| watch.end().is_some()) {
                return Err(Snag::Unfit(Unfit::Late));
            }
        }
        match self.bytes_left.checked_sub(bytes) {
            Some(left) => {
                self.bytes_left = left;
                Ok(())
            }
            None => Err(Snag::Unfit(Unfit::TooLarge)),
        }
    }

    fn string(&mut self, value: &JsValue<'js>) -> Result<Value, Snag> {
        let Some(text) = value.as_string() else { return Err(Snag::Odd) };
        let text = to_string(text)?;
        self.take(text.len() + 2)?;
        Ok(Value::String(text.into()))
    }

    fn array(&mut self, value: &JsValue<'js>, depth: usize) -> Result<Value, Snag> {
        let Some(array) = value.as_array() else { return Err(Snag::Odd) };
        Self::check_plain(array.as_object(), depth)?;
        let length: f64 = array.as_object().get(PredefinedAtom::Length)?;
        let length = length as usize;
        if length > self.bytes_left {
            return Err(Snag::Unfit(Unfit::TooLarge));
        }
        let mut elements = Vec::with_capacity(length.min(1024));
        for at in 0..length {
            self.take(1)?;
            let element = self.value(&array.get(at)?, depth + 1)?;
            elements.push(element.unwrap_or(Value::Null));
        }
        Ok(Value::array(elements))
    }

    fn object(&mut self, value: &JsValue<'js>, depth: usize) -> Result<Value, Snag> {
        let Some(object) = value.as_object() else { return Err(Snag::Odd) };
        if object.get_prototype() != self.plain {
            return Err(Snag::Odd);
        }
        Self::check_plain(object, depth)?;
        self.take(2)?;
        let mut members = Vec::new();
        for member in object.props::<JsString<'js>, JsValue<'js>>() {
            let (name, member) = member?;
            let Some(member) = self.value(&member, depth + 1)? else { continue };
            let name = to_string(&name)?;
            self.take(name.len() + 4)?;
            members.push((Arc::<str>::from(name), member));
        }
        Ok(Value::object(members.into_iter().collect::<Object>()))
    }

    fn check_plain(object: &JsObject<'js>, depth: usize) -> Result<(), Snag> {
        let to_json: JsValue<'js> = object.get(PredefinedAtom::ToJSON)?;
        if to_json.is_function() || depth > DEPTH_MAX { Err(Snag::Odd) } else { Ok(()) }
    }
}

/// A number as JSON has it.
fn number(value: &JsValue<'_>) -> Value {
    match value.as_number() {
        Some(number) if number.is_finite() => Value::Number(number),
        _ => Value::Null,
    }
}
