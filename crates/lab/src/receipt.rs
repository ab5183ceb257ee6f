//! Receipts: what the charge of a pattern is made of.
//!
//! The server itemises one request; a pattern is several. Lines of the same kind are put together,
//! whatever the sizes of single items and however deep they lie within an operation:
//!
//! ```text
//! item of 312 bytes written, in write quanta   3 ┐
//! item of 488 bytes written, in write quanta   4 ┴─▶ items written, in write quanta   7
//! ```
//!
//! INVARIANTS
//! (L1) The lines of a cell add up to its charge, exactly. A charge is what the server prints, in
//!      hundredths of an RU; what this leaves of single requests is shared among all lines.
//! (L2) What people read adds up as well: lines are rounded to hundredths whose sum is that of the
//!      rounded total.

use client::{Reply, headers};
use model::RequestCharge;
use serde_json::{Value, json};

use crate::results::rounded;

/// Units of a hundredth of an RU.
const HUNDREDTH: u64 = RequestCharge::ONE.raw() / 100;

/// The itemised charge of several requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Receipt {
    /// A line for each kind of work, in the order in which they first came.
    pub lines: Vec<Line>,
}

/// One kind of work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// What was paid for.
    pub what: String,
    /// How many of it.
    pub count: u64,
    /// For how much.
    pub charge: RequestCharge,
}

/// One kind of work in one of several executions, as people read it.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    /// What was paid for.
    pub what: String,
    /// How many of it, on average.
    pub count: f64,
    /// For how much: whole hundredths (L2).
    pub ru: f64,
}

/// An exact charge in RU, nothing rounded.
pub(crate) fn exact(charge: RequestCharge) -> f64 {
    charge.raw() as f64 / RequestCharge::ONE.raw() as f64
}

impl Receipt {
    /// Adds the receipt of an answer. What has none is a line of its own.
    pub fn count(&mut self, reply: &Reply) {
        let receipt = reply.header(headers::RECEIPT).map(serde_json::from_str::<Value>);
        match receipt {
            Some(Ok(receipt)) => self.add_json(&receipt),
            Some(Err(_)) | None => self.add_line("not itemised", 1, printed(reply)),
        }
    }

    /// The same lines, as shares of what was charged for all of them together (L1).
    pub fn settled(mut self, charge: RequestCharge) -> Receipt {
        let shares = shares(charge.raw(), &self.raw());
        for (line, share) in self.lines.iter_mut().zip(shares) {
            line.charge = RequestCharge::from_raw(share);
        }
        self
    }

    /// Adds another receipt.
    pub fn add(&mut self, other: &Receipt) {
        other.lines.iter().for_each(|line| self.add_line(&line.what, line.count, line.charge));
    }

    /// Whether nothing was paid for.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The sum of the lines.
    pub fn total(&self) -> RequestCharge {
        self.lines.iter().map(|line| line.charge).sum()
    }

    /// The lines of one of so many executions, for people (L2).
    pub fn shown(&self, executions: u64) -> Vec<Shown> {
        let executions = executions.max(1);
        let piece = executions * HUNDREDTH;
        let hundredths = shares((self.total().raw() + piece / 2) / piece, &self.raw());
        let shown = |(line, hundredths): (&Line, u64)| Shown {
            what: line.what.clone(),
            count: line.count as f64 / executions as f64,
            ru: hundredths as f64 / 100.0,
        };
        self.lines.iter().zip(hundredths).map(shown).collect()
    }

    /// What `--json` writes: count and RU of one of so many executions, units of all of them.
    pub fn to_json(&self, executions: u64) -> Value {
        let executions = executions.max(1) as f64;
        let line = |line: &Line| {
            json!({
                "what": line.what,
                "count": rounded(line.count as f64 / executions, 100.0),
                "ru": rounded(exact(line.charge) / executions, 1e6),
                "units": line.charge.raw(),
            })
        };
        self.lines.iter().map(line).collect()
    }

    fn raw(&self) -> Vec<u64> {
        self.lines.iter().map(|line| line.charge.raw()).collect()
    }

    fn add_json(&mut self, receipt: &Value) {
        for line in receipt["lines"].as_array().into_iter().flatten() {
            match line["lines"].is_array() {
                true => self.add_json(line),
                false => {
                    let what = kind(line["what"].as_str().unwrap_or_default());
                    let charge = RequestCharge::from_raw(line["units"].as_u64().unwrap_or(0));
                    self.add_line(&what, line["count"].as_u64().unwrap_or(0), charge);
                }
            }
        }
    }

    fn add_line(&mut self, what: &str, count: u64, charge: RequestCharge) {
        match self.lines.iter_mut().find(|line| line.what == what) {
            Some(line) => (line.count, line.charge) = (line.count + count, line.charge + charge),
            None => self.lines.push(Line { what: what.to_owned(), count, charge }),
        }
    }
}

/// The charge of an answer as the server prints it.
pub(crate) fn printed(reply: &Reply) -> RequestCharge {
    hundredths(reply.charge())
}

/// A charge that was printed.
pub(crate) fn hundredths(ru: f64) -> RequestCharge {
    RequestCharge::from_raw((ru * 100.0).round() as u64 * HUNDREDTH)
}

/// Whole shares of a total, in proportion to parts. All are rounded down, and those that lose most
/// get one more, until they add up.
fn shares(total: u64, parts: &[u64]) -> Vec<u64> {
    let whole = u128::from(parts.iter().sum::<u64>()).max(1);
    let exact = |part: &u64| u128::from(*part) * u128::from(total);
    let mut shares: Vec<u64> = parts.iter().map(|part| (exact(part) / whole) as u64).collect();
    let missing = total - shares.iter().sum::<u64>();
    let mut order: Vec<usize> = (0..parts.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(exact(&parts[*at]) % whole));
    order.into_iter().take(missing as usize).for_each(|at| shares[at] += 1);
    shares
}

/// What many lines like this one are called: `item of 312 bytes read` is one of `items read`.
fn kind(what: &str) -> String {
    let split = || {
        let (thing, rest) = what.split_once(" of ")?;
        let (number, rest) = rest.split_once(" bytes")?;
        number.bytes().all(|byte| byte.is_ascii_digit()).then_some((thing, rest))
    };
    match split() {
        Some((thing, rest)) => format!("{}s{rest}", thing.trim_end_matches('s')),
        None => what.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_no_kinds() {
        let check = |what, expect| assert_eq!(kind(what), expect);
        check("item of 312 bytes read, in read units", "items read, in read units");
        check("items read, in read units", "items read, in read units");
        check("items of 900 bytes listed", "items listed");
        check("old version of 10 bytes, in write quanta", "old versions, in write quanta");
        check("index terms changed", "index terms changed");
        check("create of many bytes", "create of many bytes");
    }

    #[test]
    fn requests_and_operations_are_put_together() {
        let line = |what: &str, count: u64, units: u64| json!({"what": what, "count": count, "units": units});
        let mut operation = line("create a", 1, 700_001);
        operation["lines"] = json!([
            line("item of 9 bytes written, in write quanta", 3, 700_000),
            line("index terms changed", 1, 1),
        ]);
        let mut receipt = Receipt::default();
        receipt.add_json(&json!({"lines": [line("script started", 1, 315_000), operation]}));
        receipt
            .add_json(&json!({"lines": [line("item of 12 bytes written, in write quanta", 4, 1)]}));
        let lines: Vec<_> = receipt
            .lines
            .iter()
            .map(|line| (&line.what[..], line.count, line.charge.raw()))
            .collect();
        let expect = [
            ("script started", 1, 315_000),
            ("items written, in write quanta", 7, 700_001),
            ("index terms changed", 1, 1),
        ];
        assert_eq!(lines, expect);
        assert_eq!(receipt.total().raw(), 315_000 + 700_001 + 1);
        let mut twice = receipt.clone();
        twice.add(&receipt);
        assert_eq!((twice.lines.len(), twice.total().raw()), (3, 2 * receipt.total().raw()));
        let json = twice.to_json(2);
        let written = json!({"what": "items written, in write quanta", "count": 7, "ru": 0.333334, "units": 1_400_002});
        assert_eq!(json[1], written, "one execution, and the units of both");
    }

    #[test]
    fn rounded_lines_add_up() {
        let check = |total, parts: &[u64], expect: &[u64]| assert_eq!(shares(total, parts), expect);
        check(3, &[10, 20], &[1, 2]);
        check(31, &[104, 104, 104], &[11, 10, 10]); // Each alone would be 10.
        check(5, &[16, 16, 16], &[2, 2, 1]); // Each alone would be 2.
        check(0, &[4, 0], &[0, 0]);
        check(0, &[], &[]);
        check(u64::MAX, &[u64::MAX - 1, 1], &[u64::MAX - 1, 1]);
        let line = |raw| Line { what: "w".into(), count: 3, charge: RequestCharge::from_raw(raw) };
        let receipt = Receipt { lines: vec![line(10_400_000), line(3_200_000)] };
        let shown = receipt.shown(2);
        let shown: Vec<_> = shown.iter().map(|line| (line.count, line.ru)).collect();
        assert_eq!(shown, [(1.5, 2.48), (1.5, 0.76)], "3.24 RU");
        let settled = receipt.settled(RequestCharge::from_raw(13_608_000));
        let raw: Vec<u64> = settled.raw();
        assert_eq!(raw, [10_406_118, 3_201_882], "6.48 RU are charged, not 6.476 (L1)");
    }
}
