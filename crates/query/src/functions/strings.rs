//! String functions. Positions and lengths count UTF-16 code units, as the service does.

use item::{Kind, Value, write_number};

use super::{boolean, integer, number, optional, string, whole};
use crate::datum::Datum;

/// Most characters REPLICATE makes.
const REPLICATE_MAX: usize = 10_000;

fn units(text: &str) -> Vec<u16> {
    text.encode_utf16().collect()
}

fn text_of(units: &[u16]) -> String {
    String::from_utf16_lossy(units)
}

pub(super) fn concat(arguments: &[Datum<'_>]) -> Value {
    let parts: Option<Vec<_>> = arguments.iter().map(Datum::as_str).collect();
    string(parts.map(|parts| parts.concat()))
}

/// What is equal for two strings that differ in case only. Characters are folded one by one: what a
/// string begins with, it begins with when both are folded.
fn folded(text: &str) -> String {
    text.chars().flat_map(char::to_lowercase).collect()
}

/// Characters without a counterpart in the invariant culture: the micro sign, and the two letters i
/// that exist in Turkish only.
const UNMAPPED: [char; 3] = ['µ', 'ı', 'İ'];

/// One character for each, as in the invariant culture: one that would become several stays.
fn mapped<I: Iterator<Item = char>>(text: &str, map: fn(char) -> I) -> String {
    let single = |c: char| {
        if UNMAPPED.contains(&c) {
            return c;
        }
        let mut mapped = map(c);
        mapped.next().filter(|_| mapped.next().is_none()).unwrap_or(c)
    };
    text.chars().map(single).collect()
}

/// Tests two strings, ignoring case if the third argument says so.
fn test(arguments: &[Datum<'_>], test: fn(&str, &str) -> bool) -> Value {
    let result = || {
        let (text, other) = (arguments[0].as_str()?, arguments[1].as_str()?);
        Some(match optional(arguments, 2, Datum::as_bool)?.unwrap_or(false) {
            true => test(&folded(&text), &folded(&other)),
            false => test(&text, &other),
        })
    };
    boolean(result())
}

pub(super) fn contains(arguments: &[Datum<'_>]) -> Value {
    test(arguments, |text, other| text.contains(other))
}

pub(super) fn starts_with(arguments: &[Datum<'_>]) -> Value {
    test(arguments, |text, other| text.starts_with(other))
}

pub(super) fn ends_with(arguments: &[Datum<'_>]) -> Value {
    test(arguments, |text, other| text.ends_with(other))
}

pub(super) fn string_equals(arguments: &[Datum<'_>]) -> Value {
    test(arguments, |text, other| text == other)
}

/// One answer decides; without it a term that is no string makes the result undefined.
fn contains_several(arguments: &[Datum<'_>], ignore_case: bool, decisive: bool) -> Value {
    let fold = |text: &str| if ignore_case { folded(text) } else { text.to_owned() };
    let Some(text) = arguments[0].as_str().map(|text| fold(&text)) else {
        return Value::Undefined;
    };
    let terms: Vec<_> = arguments[1..].iter().map(|t| t.as_str().map(|t| fold(&t))).collect();
    let decides = terms.iter().flatten().any(|term| text.contains(term.as_str()) == decisive);
    let is_defined = terms.iter().all(Option::is_some);
    boolean(if decides { Some(decisive) } else { is_defined.then_some(!decisive) })
}

pub(super) fn contains_any_ci(arguments: &[Datum<'_>]) -> Value {
    contains_several(arguments, true, true)
}

pub(super) fn contains_any_cs(arguments: &[Datum<'_>]) -> Value {
    contains_several(arguments, false, true)
}

pub(super) fn contains_all_ci(arguments: &[Datum<'_>]) -> Value {
    contains_several(arguments, true, false)
}

pub(super) fn contains_all_cs(arguments: &[Datum<'_>]) -> Value {
    contains_several(arguments, false, false)
}

pub(super) fn index_of(arguments: &[Datum<'_>]) -> Value {
    let position = || {
        let (text, wanted) = (units(&arguments[0].as_str()?), units(&arguments[1].as_str()?));
        let from = optional(arguments, 2, integer)?.unwrap_or(0).max(0) as usize;
        let last = (text.len() + 1).saturating_sub(wanted.len());
        let found = (from..last).find(|at| text[*at..].starts_with(&wanted));
        Some(found.map_or(-1.0, |at| at as f64))
    };
    number(position())
}

/// With a third argument the match must end at or before that index.
pub(super) fn last_index_of(arguments: &[Datum<'_>]) -> Value {
    let position = || {
        let (text, wanted) = (units(&arguments[0].as_str()?), units(&arguments[1].as_str()?));
        let end = match optional(arguments, 2, integer)? {
            Some(index) => usize::try_from(index.saturating_add(1)).unwrap_or(0).min(text.len()),
            None => text.len(),
        };
        let last = (end + 1).saturating_sub(wanted.len());
        let found = (0..last).rev().find(|at| text[*at..].starts_with(&wanted));
        Some(found.map_or(-1.0, |at| at as f64))
    };
    number(position())
}

pub(super) fn left(arguments: &[Datum<'_>]) -> Value {
    let part = || {
        let text = units(&arguments[0].as_str()?);
        if text.is_empty() && arguments[1].as_f64().is_some() {
            return Some(String::new());
        }
        let count = whole(&arguments[1])?.clamp(0, text.len() as i64) as usize;
        Some(text_of(&text[..count]))
    };
    string(part())
}

pub(super) fn right(arguments: &[Datum<'_>]) -> Value {
    let part = || {
        let text = units(&arguments[0].as_str()?);
        let count = whole(&arguments[1])?.clamp(0, text.len() as i64) as usize;
        Some(text_of(&text[text.len() - count..]))
    };
    string(part())
}

pub(super) fn substring(arguments: &[Datum<'_>]) -> Value {
    let part = || {
        let text = units(&arguments[0].as_str()?);
        let numbers = arguments[1].as_f64().zip(arguments[2].as_f64());
        if text.is_empty() && numbers.is_some() {
            return Some(String::new());
        }
        let (start, length) = (whole(&arguments[1])?, whole(&arguments[2])?);
        if start < 0 || start >= text.len() as i64 || length <= 0 {
            return Some(String::new());
        }
        let end = start.saturating_add(length).min(text.len() as i64);
        Some(text_of(&text[start as usize..end as usize]))
    };
    string(part())
}

pub(super) fn length(arguments: &[Datum<'_>]) -> Value {
    number(arguments[0].as_str().map(|text| text.encode_utf16().count() as f64))
}

pub(super) fn lower(arguments: &[Datum<'_>]) -> Value {
    string(arguments[0].as_str().map(|text| mapped(&text, char::to_lowercase)))
}

pub(super) fn upper(arguments: &[Datum<'_>]) -> Value {
    string(arguments[0].as_str().map(|text| mapped(&text, char::to_uppercase)))
}

/// Strips white space, or the characters of the second argument.
fn trimmed(arguments: &[Datum<'_>], at_start: bool, at_end: bool) -> Value {
    let part = || {
        let text = arguments[0].as_str()?;
        let chars = optional(arguments, 1, Datum::as_str)?;
        let strips = |c: char| match &chars {
            Some(chars) => chars.contains(c),
            None => c.is_whitespace(),
        };
        let text = if at_start { text.trim_start_matches(strips) } else { &text };
        let text = if at_end { text.trim_end_matches(strips) } else { text };
        Some(text.to_owned())
    };
    string(part())
}

pub(super) fn trim(arguments: &[Datum<'_>]) -> Value {
    trimmed(arguments, true, true)
}

pub(super) fn trim_start(arguments: &[Datum<'_>]) -> Value {
    trimmed(arguments, true, false)
}

pub(super) fn trim_end(arguments: &[Datum<'_>]) -> Value {
    trimmed(arguments, false, true)
}

pub(super) fn replace(arguments: &[Datum<'_>]) -> Value {
    let replaced = || {
        let (text, find) = (arguments[0].as_str()?, arguments[1].as_str()?);
        let with = arguments[2].as_str()?;
        (!find.is_empty()).then(|| text.replace(&*find, &with))
    };
    string(replaced())
}

pub(super) fn replicate(arguments: &[Datum<'_>]) -> Value {
    let replicated = || {
        let text = arguments[0].as_str()?;
        let count = arguments[1].as_f64().filter(|n| n.is_finite() && *n >= 0.0)?.trunc();
        let length = text.encode_utf16().count() as f64 * count;
        (length <= REPLICATE_MAX as f64).then(|| match text.is_empty() {
            true => String::new(),
            false => text.repeat(count as usize),
        })
    };
    string(replicated())
}

pub(super) fn reverse(arguments: &[Datum<'_>]) -> Value {
    string(arguments[0].as_str().map(|text| text.chars().rev().collect()))
}

pub(super) fn join(arguments: &[Datum<'_>]) -> Value {
    let joined = || {
        let elements = arguments[0].elements()?;
        let parts: Option<Vec<_>> = elements.iter().map(Datum::as_str).collect();
        Some(parts?.join(&*arguments[1].as_str()?))
    };
    string(joined())
}

pub(super) fn split(arguments: &[Datum<'_>]) -> Value {
    let pieces = || {
        let (text, separator) = (arguments[0].as_str()?, arguments[1].as_str()?);
        if separator.is_empty() {
            return Some(Value::array(vec![Value::from(&*text)]));
        }
        Some(Value::array(text.split(&*separator).map(Value::from).collect()))
    };
    pieces().unwrap_or_default()
}

/// One side of the first or last delimiter; undefined if there is none.
fn side(
    arguments: &[Datum<'_>],
    split: for<'a> fn(&'a str, &str) -> Option<(&'a str, &'a str)>,
    after: bool,
) -> Value {
    let part = || {
        let (text, delimiter) = (arguments[0].as_str()?, arguments[1].as_str()?);
        let (left, right) = split(&text, &delimiter)?;
        Some(if after { right } else { left }.to_owned())
    };
    string(part())
}

pub(super) fn substring_after(arguments: &[Datum<'_>]) -> Value {
    side(arguments, |text, delimiter| text.split_once(delimiter), true)
}

pub(super) fn substring_before(arguments: &[Datum<'_>]) -> Value {
    side(arguments, |text, delimiter| text.split_once(delimiter), false)
}

pub(super) fn last_substring_after(arguments: &[Datum<'_>]) -> Value {
    side(arguments, |text, delimiter| text.rsplit_once(delimiter), true)
}

pub(super) fn last_substring_before(arguments: &[Datum<'_>]) -> Value {
    side(arguments, |text, delimiter| text.rsplit_once(delimiter), false)
}

pub(super) fn to_string(arguments: &[Datum<'_>]) -> Value {
    let value = arguments[0].to_value();
    match &value {
        Value::Undefined | Value::String(_) => value,
        Value::Number(number) => Value::from(number_text(*number)),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
            Value::from(value.to_json())
        }
    }
}

/// The shortest text, with an exponent where C's `%.17g` has one: it has a sign and at least three
/// digits.
fn number_text(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let text = format!("{number:e}");
    let parts = text.split_once('e').and_then(|(mantissa, exponent)| {
        Some((mantissa, exponent.parse::<i32>().ok()?)).filter(|(_, e)| !(-4..17).contains(e))
    });
    if let Some((mantissa, exponent)) = parts {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:03}", exponent.unsigned_abs());
    }
    let mut out = Vec::new();
    write_number(&mut out, number);
    String::from_utf8(out).unwrap_or_default()
}

/// Parses JSON of one kind.
fn parsed(argument: &Datum<'_>, kind: Kind) -> Value {
    let value = argument.as_str().and_then(|text| Value::parse(text.as_bytes()).ok());
    value.filter(|value| value.kind() == Some(kind)).unwrap_or_default()
}

pub(super) fn string_to_number(arguments: &[Datum<'_>]) -> Value {
    parsed(&arguments[0], Kind::Number)
}

pub(super) fn string_to_boolean(arguments: &[Datum<'_>]) -> Value {
    parsed(&arguments[0], Kind::Bool)
}

pub(super) fn string_to_null(arguments: &[Datum<'_>]) -> Value {
    parsed(&arguments[0], Kind::Null)
}

pub(super) fn string_to_array(arguments: &[Datum<'_>]) -> Value {
    parsed(&arguments[0], Kind::Array)
}

pub(super) fn string_to_object(arguments: &[Datum<'_>]) -> Value {
    parsed(&arguments[0], Kind::Object)
}
