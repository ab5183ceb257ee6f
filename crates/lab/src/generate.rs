//! Values from a seed: amounts, texts, dates.
//!
//! INVARIANTS
//! (G1) A value depends on its seed only: not on what was drawn before, nor on threads.
//! (G2) A text has exactly the length drawn for it, in ASCII, so sizes in bytes are known.

use serde_json::Value;

use crate::expression::{Template, number};
use crate::file::Amount;

/// Pseudo-random numbers of one value.
#[derive(Clone, Debug)]
pub struct Draw(u64);

impl Draw {
    /// The sequence of these numbers together.
    pub fn of(parts: &[u64]) -> Draw {
        let mix = |state: u64, part: &u64| scramble(state ^ scramble(part.wrapping_add(STEP)));
        Draw(parts.iter().fold(STEP, mix))
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        scramble(self.0)
    }

    /// A number from 0 up to, without, `end`; 0 if there is none.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.number()) * u128::from(end)) >> 64) as u64
    }

    /// A number from 0 up to, without, 1.
    pub fn fraction(&mut self) -> f64 {
        (self.number() >> 11) as f64 / (1u64 << 53) as f64
    }
}

const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

fn scramble(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A number that stands for a name.
pub fn name_hash(name: &str) -> u64 {
    name.bytes().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}

impl Amount {
    /// Draws an amount.
    pub fn draw(&self, draw: &mut Draw) -> u64 {
        match *self {
            Amount::Exactly(count) => count,
            Amount::Uniform { min, max } => min + draw.below(max.saturating_sub(min) + 1),
            Amount::LogNormal { median, p99, max } => {
                let sigma = (p99 as f64 / median as f64).ln() / NORMAL_P99;
                let drawn = median as f64 * (sigma * normal(draw)).exp();
                (drawn.round() as u64).min(max)
            }
        }
    }

    /// What is wrong with it.
    pub fn check(&self) -> Result<(), String> {
        match *self {
            Amount::Exactly(_) => Ok(()),
            Amount::Uniform { min, max } if min <= max => Ok(()),
            Amount::Uniform { min, max } => Err(format!("min {min} is above max {max}")),
            Amount::LogNormal { median, p99, max } => {
                match 0 < median && median <= p99 && p99 <= max {
                    true => Ok(()),
                    false => Err("it needs 0 < median <= p99 <= max".to_owned()),
                }
            }
        }
    }
}

/// Where 99 % of a standard normal distribution lie below.
const NORMAL_P99: f64 = 2.326_347_874;

/// Twelve uniform numbers make a bell that is good enough for sizes.
fn normal(draw: &mut Draw) -> f64 {
    (0..12).map(|_| draw.fraction()).sum::<f64>() - 6.0
}

/// How a field gets its value.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Generator {
    Guid,
    Word { length: Amount },
    Text { length: Amount },
    Integer { min: i64, max: i64 },
    Number { min: f64, max: f64, decimals: u32 },
    Choice(Vec<Value>),
    Date { from_ms: i64, to_ms: i64 },
    Sequence,
    Computed(Template),
}

impl Generator {
    /// Draws a value; `ordinal` is the number of the instance. Computed ones have no draw.
    pub fn draw(&self, draw: &mut Draw, ordinal: u64) -> Value {
        match self {
            Generator::Guid => guid(draw).into(),
            Generator::Word { length } => word(draw, *length).into(),
            Generator::Text { length } => text(draw, *length).into(),
            Generator::Integer { min, max } => {
                let width = max.abs_diff(*min).saturating_add(1);
                min.wrapping_add_unsigned(draw.below(width)).into()
            }
            Generator::Number { min, max, decimals } => {
                let unit = 10f64.powi(*decimals as i32);
                number(((min + draw.fraction() * (max - min)) * unit).round() / unit)
            }
            Generator::Choice(of) => of[draw.below(of.len() as u64) as usize].clone(),
            Generator::Date { from_ms, to_ms } => {
                let width = to_ms.abs_diff(*from_ms);
                iso_date(from_ms.wrapping_add_unsigned(draw.below(width))).into()
            }
            Generator::Sequence => ordinal.into(),
            Generator::Computed(_) => Value::Null,
        }
    }
}

fn guid(draw: &mut Draw) -> String {
    let (a, b) = (draw.number(), draw.number());
    format!(
        "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
        a >> 32,
        (a >> 16) & 0xffff,
        a & 0xfff,
        0x8000 | (b >> 48) & 0x3fff,
        b & 0xffff_ffff_ffff
    )
}

const CONSONANTS: &[u8] = b"bcdfghklmnprstvw";
const VOWELS: &[u8] = b"aeiou";

fn word(draw: &mut Draw, length: Amount) -> String {
    let length = length.draw(draw) as usize;
    let mut out = String::with_capacity(length);
    push_word(draw, &mut out, length);
    out
}

/// Consonants and vowels in turn: neither words of a language nor noise.
fn push_word(draw: &mut Draw, out: &mut String, length: usize) {
    let mut bits = draw.number();
    for at in 0..length {
        if at % 8 == 7 {
            bits = draw.number();
        }
        let letters = if at % 2 == 0 { CONSONANTS } else { VOWELS };
        out.push(letters[(bits & 0xff) as usize % letters.len()] as char);
        bits >>= 8;
    }
}

fn text(draw: &mut Draw, length: Amount) -> String {
    let length = length.draw(draw) as usize;
    let mut out = String::with_capacity(length + 12);
    while out.len() < length {
        if !out.is_empty() {
            out.push(' ');
        }
        let letters = 2 + draw.below(9) as usize;
        push_word(draw, &mut out, letters);
    }
    out.truncate(length); // G2
    if out.ends_with(' ') {
        out.pop();
        out.push('.');
    }
    out
}

const DAY_MS: i64 = 86_400_000;

/// Milliseconds since 1970 as a date with milliseconds: 24 characters.
pub fn iso_date(ms: i64) -> String {
    let (days, rest) = (ms.div_euclid(DAY_MS), ms.rem_euclid(DAY_MS));
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (rest / 3_600_000, rest / 60_000 % 60, rest / 1000 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", rest % 1000)
}

/// Milliseconds since 1970 of the beginning of a day written `2019-06-30`.
pub fn parse_day(text: &str) -> Option<i64> {
    let mut parts = text.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let days = days_from_civil(year, month, day);
    (civil(days) == (year, month, day)).then_some(days * DAY_MS)
}

/// The day of a number of days since 1970. Years begin in March here, so that the odd day of a leap
/// year is the last one.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_replays() {
        let numbers = |parts: &[u64]| {
            let mut draw = Draw::of(parts);
            (0..5).map(|_| draw.number()).collect::<Vec<_>>()
        };
        assert_eq!(numbers(&[1, 2]), numbers(&[1, 2])); // G1
        assert_ne!(numbers(&[1, 2]), numbers(&[2, 1]));
        assert_ne!(numbers(&[0]), numbers(&[0, 0]));
    }

    #[test]
    fn amounts_keep_their_bounds() {
        let amounts = |amount: Amount| {
            amount.check().unwrap();
            let mut all: Vec<u64> = (0..4000).map(|n| amount.draw(&mut Draw::of(&[n]))).collect();
            all.sort_unstable();
            all
        };
        let uniform = amounts(Amount::Uniform { min: 5, max: 50 });
        assert_eq!((uniform[0], uniform[3999]), (5, 50));
        let mean = uniform.iter().sum::<u64>() as f64 / 4000.0;
        assert!((26.5..28.5).contains(&mean), "{mean}");
        let skewed = amounts(Amount::LogNormal { median: 100, p99: 1000, max: 1500 });
        assert!((90..110).contains(&skewed[2000]), "{}", skewed[2000]);
        assert!((850..1150).contains(&skewed[3960]), "{}", skewed[3960]);
        assert_eq!(skewed[3999], 1500);
        assert_eq!(amounts(Amount::Exactly(7))[3999], 7);
        assert!(Amount::Uniform { min: 2, max: 1 }.check().is_err());
        assert!(Amount::LogNormal { median: 0, p99: 1, max: 1 }.check().is_err());
    }

    #[test]
    fn texts_have_their_length() {
        for length in [0, 1, 2, 13, 40, 1280] {
            let amount = Amount::Exactly(length);
            for n in 0..20 {
                assert_eq!(text(&mut Draw::of(&[n]), amount).len() as u64, length); // G2
                let word = word(&mut Draw::of(&[n]), amount);
                assert_eq!(word.len() as u64, length);
                assert!(word.bytes().all(|byte| byte.is_ascii_lowercase()));
            }
        }
        assert_eq!(guid(&mut Draw::of(&[1])).len(), 36);
    }

    #[test]
    fn dates() {
        assert_eq!(iso_date(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(iso_date(951_782_400_123), "2000-02-29T00:00:00.123Z");
        assert_eq!(parse_day("2000-02-29"), Some(951_782_400_000));
        assert_eq!(parse_day("1970-01-01"), Some(0));
        assert_eq!(iso_date(parse_day("2019-12-31").unwrap() - 1), "2019-12-30T23:59:59.999Z");
        for text in ["2019-02-29", "2019-13-01", "2019", "soon", ""] {
            assert_eq!(parse_day(text), None, "{text}");
        }
    }

    #[test]
    fn generators_draw_what_they_say() {
        let draw = |generator: Generator| generator.draw(&mut Draw::of(&[7]), 41);
        assert_eq!(draw(Generator::Sequence), 41);
        let integer = draw(Generator::Integer { min: -3, max: 3 }).as_i64().unwrap();
        assert!((-3..=3).contains(&integer));
        let price = draw(Generator::Number { min: 1.0, max: 2.0, decimals: 2 }).as_f64().unwrap();
        assert!((1.0..=2.0).contains(&price) && (price * 100.0).fract().abs() < 1e-9);
        assert_eq!(draw(Generator::Choice(vec![true.into()])), true);
        let date = draw(Generator::Date { from_ms: 0, to_ms: DAY_MS });
        assert!(date.as_str().unwrap().starts_with("1970-01-01T"));
    }
}
