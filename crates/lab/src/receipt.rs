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
//! (L1) The lines add up to the charges of all requests, exactly: they are kept in the units of
//!      the server, and only what people read is rounded.

use client::{Reply, headers};
use model::RequestCharge;
use serde_json::{Value, json};

use crate::expression::number;

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

impl Receipt {
    /// Adds the receipt of an answer. One without is no receipt, and adds nothing.
    pub fn count(&mut self, reply: &Reply) {
        let receipt = reply.header(headers::RECEIPT).map(serde_json::from_str::<Value>);
        if let Some(Ok(receipt)) = receipt {
            self.add_json(&receipt);
        }
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

    /// The same lines under the heading of the copies they were spent on.
    pub fn of_copies(&self) -> impl Iterator<Item = Line> {
        self.lines
            .iter()
            .map(|line| Line { what: format!("copies: {}", line.what), ..line.clone() })
    }

    /// What `--json` writes.
    pub fn to_json(&self) -> Value {
        let line = |line: &Line| json!({"what": line.what, "count": line.count, "ru": number(line.charge.as_f64())});
        self.lines.iter().map(line).collect()
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
        assert_eq!(receipt.total().raw(), 315_000 + 700_001 + 1, "L1");
        let mut twice = receipt.clone();
        twice.add(&receipt);
        assert_eq!((twice.lines.len(), twice.total().raw()), (3, 2 * receipt.total().raw()));
        assert_eq!(receipt.of_copies().next().unwrap().what, "copies: script started");
    }
}
