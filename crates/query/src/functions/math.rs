//! Mathematical functions.

use std::f64::consts::PI;

use base::Ctx;
use item::Value;

use super::{integer, number, optional};
use crate::datum::Datum;

/// Functions of one number.
macro_rules! of_one {
    ($($name:ident = $body:expr;)+) => {
        $(pub(super) fn $name(arguments: &[Datum<'_>]) -> Value {
            let body: fn(f64) -> f64 = $body;
            number(arguments[0].as_f64().map(body))
        })+
    };
}

/// Functions of two numbers.
macro_rules! of_two {
    ($($name:ident = $body:expr;)+) => {
        $(pub(super) fn $name(arguments: &[Datum<'_>]) -> Value {
            let body: fn(f64, f64) -> f64 = $body;
            let both = arguments[0].as_f64().zip(arguments[1].as_f64());
            number(both.map(|(a, b)| body(a, b)))
        })+
    };
}

/// Functions of two 64-bit integers.
macro_rules! of_two_integers {
    ($($name:ident = $body:expr;)+) => {
        $(pub(super) fn $name(arguments: &[Datum<'_>]) -> Value {
            let body: fn(i64, i64) -> Option<i64> = $body;
            let both = integer(&arguments[0]).zip(integer(&arguments[1]));
            number(both.and_then(|(a, b)| body(a, b)).map(|result| result as f64))
        })+
    };
}

of_one! {
    abs = f64::abs;
    ceiling = f64::ceil;
    floor = f64::floor;
    trunc = f64::trunc;
    sign = |x| if x == 0.0 || x.is_nan() { x } else { x.signum() };
    sqrt = f64::sqrt;
    square = |x| x * x;
    exp = f64::exp;
    log10 = f64::log10;
    sin = f64::sin;
    cos = f64::cos;
    tan = f64::tan;
    cot = |x| 1.0 / x.tan();
    asin = f64::asin;
    acos = f64::acos;
    atan = f64::atan;
    degrees = |x| x * (180.0 / PI);
    radians = |x| x * (PI / 180.0);
}

of_two! {
    power = f64::powf;
    atn2 = f64::atan2;
}

of_two_integers! {
    int_add = |a, b| Some(a.wrapping_add(b));
    int_sub = |a, b| Some(a.wrapping_sub(b));
    int_mul = |a, b| Some(a.wrapping_mul(b));
    int_div = |a, b| (b != 0).then(|| a.wrapping_div(b));
    int_mod = |a, b| (b != 0).then(|| a.wrapping_rem(b));
    int_bit_and = |a, b| Some(a & b);
    int_bit_or = |a, b| Some(a | b);
    int_bit_xor = |a, b| Some(a ^ b);
    int_bit_left_shift = |a, b| Some(a.wrapping_shl(b as u32));
    int_bit_right_shift = |a, b| Some(a.wrapping_shr(b as u32));
}

pub(super) fn int_bit_not(arguments: &[Datum<'_>]) -> Value {
    number(integer(&arguments[0]).map(|a| !a as f64))
}

/// Half away from zero, to so many decimal places.
pub(super) fn round(arguments: &[Datum<'_>]) -> Value {
    let rounded = || {
        let x = arguments[0].as_f64()?;
        Some(match optional(arguments, 1, integer)? {
            None | Some(0) => x.round(),
            Some(digits) => {
                let scale = 10f64.powi(digits.clamp(-400, 400) as i32);
                let scaled = (x * scale).round() / scale;
                // Digits beyond what a double has change nothing.
                if scaled.is_finite() { scaled } else { x }
            }
        })
    };
    number(rounded())
}

pub(super) fn log(arguments: &[Datum<'_>]) -> Value {
    let logarithm = || {
        let x = arguments[0].as_f64()?;
        Some(match optional(arguments, 1, |base| base.as_f64())? {
            None => x.ln(),
            Some(base) => x.ln() / base.ln(),
        })
    };
    number(logarithm())
}

pub(super) fn pi(_: &[Datum<'_>]) -> Value {
    Value::Number(PI)
}

pub(super) fn rand(ctx: &Ctx) -> Value {
    // 53 random bits make every double of the form k / 2⁵³ equally likely.
    Value::Number((ctx.random().next() >> 11) as f64 / (1u64 << 53) as f64)
}

pub(super) fn number_bin(arguments: &[Datum<'_>]) -> Value {
    let bin = || {
        let x = arguments[0].as_f64()?;
        let size = optional(arguments, 1, |size| size.as_f64())?.unwrap_or(1.0);
        (size != 0.0).then(|| (x / size).floor() * size)
    };
    number(bin())
}
