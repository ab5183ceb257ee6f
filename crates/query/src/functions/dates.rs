//! Date and time functions, on the proleptic Gregorian calendar in UTC.
//!
//! A moment is a count of ticks of 100 ns since 1970, which holds every date the canonical text
//! can write (years 1 to 9999) exactly.

use item::Value;

use super::{date_format, integer, number, optional, string};
use crate::datum::Datum;
use crate::eval::Env;

const TICKS_PER_SECOND: i64 = 10_000_000;
const TICKS_PER_MILLI: i64 = 10_000;
const TICKS_PER_DAY: i64 = 86_400 * TICKS_PER_SECOND;
/// 1601-01-01, before which no bin can begin.
const ORIGIN_MIN: i64 = -134_774 * TICKS_PER_DAY;

/// What a moment can be taken apart into, or moved by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Year,
    Month,
    /// Everything below a month has a fixed length in ticks; shorter than a tick is a fraction.
    Span(Span),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Span {
    Day,
    Hour,
    Minute,
    Second,
    Milli,
    Micro,
    Nano,
}

impl Part {
    fn from_name(name: &str) -> Option<Part> {
        Some(match name {
            "year" | "yyyy" | "yy" => Part::Year,
            "month" | "mm" | "m" => Part::Month,
            "day" | "dd" | "d" => Part::Span(Span::Day),
            "hour" | "hh" => Part::Span(Span::Hour),
            "minute" | "mi" | "n" => Part::Span(Span::Minute),
            "second" | "ss" | "s" => Part::Span(Span::Second),
            "millisecond" | "ms" => Part::Span(Span::Milli),
            "microsecond" | "mcs" => Part::Span(Span::Micro),
            "nanosecond" | "ns" => Part::Span(Span::Nano),
            _ => return None,
        })
    }
}

impl Span {
    /// Its length in nanoseconds.
    fn nanos(self) -> i128 {
        match self {
            Span::Day => 86_400_000_000_000,
            Span::Hour => 3_600_000_000_000,
            Span::Minute => 60_000_000_000,
            Span::Second => 1_000_000_000,
            Span::Milli => 1_000_000,
            Span::Micro => 1_000,
            Span::Nano => 1,
        }
    }
}

/// A moment on the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Civil {
    pub year: i64,
    pub month: i64,
    pub day: i64,
    /// Ticks since midnight.
    ticks: i64,
}

/// Days since 1970 of a date; the algorithm of Howard Hinnant's `days_from_civil`.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

fn days_in_month(year: i64, month: i64) -> i64 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

impl Civil {
    pub(super) fn from_ticks(ticks: i64) -> Civil {
        let (year, month, day) = civil_from_days(ticks.div_euclid(TICKS_PER_DAY));
        Civil { year, month, day, ticks: ticks.rem_euclid(TICKS_PER_DAY) }
    }

    /// The ticks of a date that exists.
    fn to_ticks(self) -> Option<i64> {
        let is_date = (1..=9999).contains(&self.year)
            && (1..=12).contains(&self.month)
            && (1..=days_in_month(self.year, self.month)).contains(&self.day)
            && (0..TICKS_PER_DAY).contains(&self.ticks);
        is_date
            .then(|| days_from_civil(self.year, self.month, self.day) * TICKS_PER_DAY + self.ticks)
    }

    /// Days since the last Sunday; 1970 began with a Thursday.
    pub(super) fn day_of_week(self) -> usize {
        (days_from_civil(self.year, self.month, self.day) + 4).rem_euclid(7) as usize
    }

    pub(super) fn hour(self) -> i64 {
        self.ticks / (3600 * TICKS_PER_SECOND)
    }

    pub(super) fn minute(self) -> i64 {
        self.ticks / (60 * TICKS_PER_SECOND) % 60
    }

    pub(super) fn second(self) -> i64 {
        self.ticks / TICKS_PER_SECOND % 60
    }

    pub(super) fn fraction(self) -> i64 {
        self.ticks % TICKS_PER_SECOND
    }
}

fn is_in_range(ticks: i64) -> bool {
    (1..=9999).contains(&Civil::from_ticks(ticks).year)
}

/// Reads `YYYY-MM-DD`, optionally with `Z` or a time after `T` or a space.
pub(super) fn parse(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let digits = |from: usize, count: usize| -> Option<i64> {
        let part = bytes.get(from..from + count)?;
        let is_number = part.iter().all(u8::is_ascii_digit);
        is_number.then(|| part.iter().fold(0, |n, digit| n * 10 + i64::from(digit - b'0')))
    };
    let is = |at: usize, expect: &[u8]| bytes.get(at).is_some_and(|b| expect.contains(b));
    let (year, month, day) = (digits(0, 4)?, digits(5, 2)?, digits(8, 2)?);
    if !is(4, b"-") || !is(7, b"-") {
        return None;
    }
    let mut ticks = 0;
    let mut end = 10;
    if is(10, b"T ") {
        let (hour, minute, second) = (digits(11, 2)?, digits(14, 2)?, digits(17, 2)?);
        if !is(13, b":") || !is(16, b":") || hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        ticks = (hour * 3600 + minute * 60 + second) * TICKS_PER_SECOND;
        end = 19;
        if is(19, b".") {
            let count = bytes[20..].iter().take_while(|b| b.is_ascii_digit()).count();
            if !(1..=7).contains(&count) {
                return None;
            }
            ticks += digits(20, count)? * 10i64.pow(7 - count as u32);
            end = 20 + count;
        }
    }
    if is(end, b"Z") {
        end += 1;
    }
    let moment = Civil { year, month, day, ticks }.to_ticks()?;
    (end == bytes.len()).then_some(moment)
}

fn format(ticks: i64) -> String {
    let civil = Civil::from_ticks(ticks);
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:07}Z",
        civil.year,
        civil.month,
        civil.day,
        civil.hour(),
        civil.minute(),
        civil.second(),
        civil.fraction()
    )
}

fn canonical(ticks: Option<i64>) -> Value {
    string(ticks.filter(|ticks| is_in_range(*ticks)).map(format))
}

fn moment(argument: &Datum<'_>) -> Option<i64> {
    parse(&argument.as_str()?)
}

fn part(argument: &Datum<'_>) -> Option<Part> {
    Part::from_name(&argument.as_str()?)
}

/// A moment moved by so many parts; a day past the end of a month becomes the last of it.
fn moved(ticks: i64, part: Part, count: i64) -> Option<i64> {
    let months = match part {
        Part::Year => count.checked_mul(12)?,
        Part::Month => count,
        Part::Span(span) => {
            let nanos = i128::from(count) * span.nanos() + i128::from(ticks) * 100;
            return i64::try_from(nanos.div_euclid(100)).ok();
        }
    };
    let civil = Civil::from_ticks(ticks);
    let month = (civil.year * 12 + civil.month - 1).checked_add(months)?;
    let (year, month) = (month.div_euclid(12), month.rem_euclid(12) + 1);
    let day = civil.day.min(days_in_month(year, month));
    Civil { year, month, day, ..civil }.to_ticks()
}

pub(super) fn add(arguments: &[Datum<'_>]) -> Value {
    let result = || moved(moment(&arguments[2])?, part(&arguments[0])?, integer(&arguments[1])?);
    canonical(result())
}

pub(super) fn bin(arguments: &[Datum<'_>]) -> Value {
    let start = || {
        let ticks = moment(&arguments[0])?;
        let Part::Span(span) = part(&arguments[1])? else { return None };
        let size = optional(arguments, 2, integer)?.unwrap_or(1);
        let origin = optional(arguments, 3, moment)?.unwrap_or(0);
        if size <= 0 || origin < ORIGIN_MIN {
            return None;
        }
        let size = span.nanos() * i128::from(size);
        let since = i128::from(ticks - origin) * 100;
        let start = since.div_euclid(size) * size;
        i64::try_from(start.div_euclid(100)).ok()?.checked_add(origin)
    };
    canonical(start())
}

pub(super) fn diff(arguments: &[Datum<'_>]) -> Value {
    let crossed = || {
        let part = part(&arguments[0])?;
        let (start, end) = (moment(&arguments[1])?, moment(&arguments[2])?);
        Some((boundaries(part, end) - boundaries(part, start)) as f64)
    };
    number(crossed())
}

/// How many boundaries of a part lie before a moment, counted from some fixed one.
fn boundaries(part: Part, ticks: i64) -> i128 {
    let civil = Civil::from_ticks(ticks);
    match part {
        Part::Year => civil.year.into(),
        Part::Month => (civil.year * 12 + civil.month).into(),
        Part::Span(span) => (i128::from(ticks) * 100).div_euclid(span.nanos()),
    }
}

pub(super) fn from_parts(arguments: &[Datum<'_>]) -> Value {
    let ticks = || {
        let parts: Option<Vec<i64>> = arguments.iter().map(integer).collect();
        let parts = parts?;
        let at = |index: usize| parts.get(index).copied().unwrap_or(0);
        let (hour, minute, second, fraction) = (at(3), at(4), at(5), at(6));
        let is_time = (0..24).contains(&hour)
            && (0..60).contains(&minute)
            && (0..60).contains(&second)
            && (0..TICKS_PER_SECOND).contains(&fraction);
        let ticks = (hour * 3600 + minute * 60 + second) * TICKS_PER_SECOND + fraction;
        is_time.then(|| Civil { year: at(0), month: at(1), day: at(2), ticks }.to_ticks()).flatten()
    };
    canonical(ticks())
}

fn part_of(part: Part, ticks: i64) -> f64 {
    let civil = Civil::from_ticks(ticks);
    let value = match part {
        Part::Year => civil.year,
        Part::Month => civil.month,
        Part::Span(Span::Day) => civil.day,
        Part::Span(Span::Hour) => civil.hour(),
        Part::Span(Span::Minute) => civil.minute(),
        Part::Span(Span::Second) => civil.second(),
        Part::Span(Span::Milli) => civil.fraction() / TICKS_PER_MILLI,
        Part::Span(Span::Micro) => civil.fraction() / 10,
        Part::Span(Span::Nano) => civil.fraction() * 100,
    };
    value as f64
}

pub(super) fn date_part(arguments: &[Datum<'_>]) -> Value {
    let both = part(&arguments[0]).zip(moment(&arguments[1]));
    number(both.map(|(part, ticks)| part_of(part, ticks)))
}

pub(super) fn year(arguments: &[Datum<'_>]) -> Value {
    number(moment(&arguments[0]).map(|ticks| part_of(Part::Year, ticks)))
}

pub(super) fn month(arguments: &[Datum<'_>]) -> Value {
    number(moment(&arguments[0]).map(|ticks| part_of(Part::Month, ticks)))
}

pub(super) fn day(arguments: &[Datum<'_>]) -> Value {
    number(moment(&arguments[0]).map(|ticks| part_of(Part::Span(Span::Day), ticks)))
}

pub(super) fn to_ticks(arguments: &[Datum<'_>]) -> Value {
    number(moment(&arguments[0]).map(|ticks| ticks as f64))
}

pub(super) fn to_timestamp(arguments: &[Datum<'_>]) -> Value {
    number(moment(&arguments[0]).map(|ticks| ticks.div_euclid(TICKS_PER_MILLI) as f64))
}

pub(super) fn from_ticks(arguments: &[Datum<'_>]) -> Value {
    canonical(scaled(&arguments[0], 1))
}

pub(super) fn from_timestamp(arguments: &[Datum<'_>]) -> Value {
    canonical(scaled(&arguments[0], TICKS_PER_MILLI))
}

/// A number in units of so many ticks, if it is anywhere near the calendar.
fn scaled(argument: &Datum<'_>, ticks: i64) -> Option<i64> {
    let number = argument.as_f64()?;
    if (number * ticks as f64).abs() >= 4e18 {
        return None;
    }
    // As integers: far from 1970 a product of numbers would not be exact.
    let parts = (number.fract() * ticks as f64) as i64;
    (number.trunc() as i64).checked_mul(ticks)?.checked_add(parts)
}

pub(super) fn date_format(arguments: &[Datum<'_>]) -> Value {
    let text = || {
        let civil = Civil::from_ticks(moment(&arguments[0])?);
        date_format::write(&civil, &arguments[1].as_str()?)
    };
    string(text())
}

fn now(env: &Env<'_>) -> i64 {
    env.ctx.now().as_millis() as i64 * TICKS_PER_MILLI
}

fn started(env: &Env<'_>) -> i64 {
    env.started.as_millis() as i64 * TICKS_PER_MILLI
}

pub(super) fn current_date_time(env: &Env<'_>, _: &[Datum<'_>]) -> Value {
    canonical(Some(now(env)))
}

pub(super) fn current_ticks(env: &Env<'_>, _: &[Datum<'_>]) -> Value {
    Value::Number(now(env) as f64)
}

pub(super) fn current_timestamp(env: &Env<'_>, _: &[Datum<'_>]) -> Value {
    Value::Number(env.ctx.now().as_millis() as f64)
}

pub(super) fn static_date_time(env: &Env<'_>, _: &[Datum<'_>]) -> Value {
    canonical(Some(started(env)))
}

pub(super) fn static_ticks(env: &Env<'_>, _: &[Datum<'_>]) -> Value {
    Value::Number(started(env) as f64)
}

pub(super) fn static_timestamp(env: &Env<'_>, _: &[Datum<'_>]) -> Value {
    Value::Number(env.started.as_millis() as f64)
}

/// `NOW()` or `NOW(part, n)`. One argument is undefined, as a part without a number says nothing.
pub(super) fn now_plus(env: &Env<'_>, arguments: &[Datum<'_>]) -> Value {
    match arguments {
        [] => canonical(Some(started(env))),
        [name, count] => {
            let both = part(name).zip(integer(count));
            canonical(both.and_then(|(part, count)| moved(started(env), part, count)))
        }
        _ => Value::Undefined,
    }
}

pub(super) fn ago(env: &Env<'_>, arguments: &[Datum<'_>]) -> Value {
    let both = part(&arguments[0]).zip(integer(&arguments[1]).and_then(i64::checked_neg));
    canonical(both.and_then(|(part, count)| moved(started(env), part, count)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_ticks_agree() {
        for text in [
            "1970-01-01T00:00:00.0000000Z",
            "0001-01-01T00:00:00.0000000Z",
            "9999-12-31T23:59:59.9999999Z",
            "2000-02-29T12:34:56.7891234Z",
            "1900-03-01T00:00:00.0000000Z",
        ] {
            assert_eq!(format(parse(text).expect(text)), text);
        }
    }

    #[test]
    fn only_the_documented_forms_are_dates() {
        for text in ["2021-01-02", "2021-01-02Z", "2021-01-02 03:04:05", "2021-01-02T03:04:05.1Z"] {
            assert!(parse(text).is_some(), "{text}");
        }
        for text in [
            "2021-1-2",
            "2021-02-29",
            "2021-01-02T03:04",
            "2021-01-02T03:04:05.12345678Z",
            "2021-01-02T03:04:05+01:00",
            "2021-01-02T24:00:00",
            "0000-01-01",
            "2021-01-02x",
            "",
        ] {
            assert!(parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_month_later_is_never_in_the_month_after() {
        let moved = |text, count| format(moved(parse(text).unwrap(), Part::Month, count).unwrap());
        assert_eq!(moved("2024-01-31", 1), "2024-02-29T00:00:00.0000000Z");
        assert_eq!(moved("2024-03-31", -13), "2023-02-28T00:00:00.0000000Z");
    }
}
