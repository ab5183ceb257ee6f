//! Receipts: what a charge is made of.
//!
//! A charge is summed up by a [`Bill`], line by line. If a receipt is wanted the bill keeps the
//! lines; if not it keeps nothing but the sum, and an addition is all that a line costs.
//!
//! INVARIANTS
//! (R1) The lines of a receipt add up to the charge, exactly; so do those within a line.

use std::fmt::{Display, Formatter};

use model::RequestCharge;
use serde_json::{Value, json};

/// What is paid for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// A point read of an item of so many bytes, in read units.
    Read(usize),
    /// A read that found nothing, or nothing newer than the client has.
    NothingRead,
    /// The new item of so many bytes, in write quanta.
    Created(usize),
    /// The version that is replaced, in write quanta.
    OldVersion(usize),
    /// The version that replaces it, in write quanta.
    NewVersion(usize),
    /// The item that is deleted, in write quanta.
    Deleted(usize),
    /// Index terms written or removed.
    Terms,
    /// Operations of a patch.
    PatchOperations,
    /// Items of a feed page, of so many bytes together.
    Listed(usize),
    /// A feed page without items.
    EmptyPage,
    /// Physical partitions a query sought afresh.
    Partitions,
    /// Pages of physical partitions that went on from where earlier ones ended.
    PagesResumed,
    /// Equality filters beyond those that are free.
    Filters,
    /// Index entries visited.
    Entries,
    /// Rows of an aggregate that the index told of.
    Told,
    /// Items loaded through the index.
    Loaded,
    /// Their bytes.
    LoadedBytes,
    /// Items scanned.
    Scanned,
    /// Their bytes.
    ScannedBytes,
    /// The start of a stored procedure or trigger.
    ScriptStart,
    /// Steps of scripts and user-defined functions.
    Fuel,
    /// A request about something other than items.
    Metadata,
    /// A request that was refused.
    Refused,
    /// An operation within another, with lines of its own.
    Operation(String),
    /// Many lines alike, put together.
    Many(&'static str),
}

impl Work {
    /// What many lines of this kind are called together.
    fn kind(&self) -> &'static str {
        match self {
            Work::Read(_) => "items read, in read units",
            Work::Created(_) => "items written, in write quanta",
            Work::OldVersion(_) => "old versions, in write quanta",
            Work::NewVersion(_) => "new versions, in write quanta",
            Work::Deleted(_) => "items deleted, in write quanta",
            Work::Listed(_) => "items listed",
            Work::Operation(_) => "operations",
            Work::Many(kind) => kind,
            Work::NothingRead => "nothing read",
            Work::Terms => "index terms changed",
            Work::PatchOperations => "patch operations",
            Work::EmptyPage => "empty page",
            Work::Partitions => "physical partitions sought",
            Work::PagesResumed => "physical partitions resumed",
            Work::Filters => "equality filters beyond three",
            Work::Entries => "index entries visited",
            Work::Told => "rows aggregated from the index",
            Work::Loaded => "items loaded",
            Work::LoadedBytes => "bytes loaded",
            Work::Scanned => "items scanned",
            Work::ScannedBytes => "bytes scanned",
            Work::ScriptStart => "script started",
            Work::Fuel => "script steps",
            Work::Metadata => "metadata request",
            Work::Refused => "refused request",
        }
    }
}

impl Display for Work {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Work::Read(bytes) => write!(f, "item of {bytes} bytes read, in read units"),
            Work::Created(bytes) => write!(f, "item of {bytes} bytes written, in write quanta"),
            Work::OldVersion(bytes) => write!(f, "old version of {bytes} bytes, in write quanta"),
            Work::NewVersion(bytes) => write!(f, "new version of {bytes} bytes, in write quanta"),
            Work::Deleted(bytes) => write!(f, "item of {bytes} bytes deleted, in write quanta"),
            Work::Listed(bytes) => write!(f, "items of {bytes} bytes listed"),
            Work::Operation(label) => f.write_str(label),
            Work::Many(_)
            | Work::NothingRead
            | Work::Terms
            | Work::PatchOperations
            | Work::EmptyPage
            | Work::Partitions
            | Work::PagesResumed
            | Work::Filters
            | Work::Entries
            | Work::Told
            | Work::Loaded
            | Work::LoadedBytes
            | Work::Scanned
            | Work::ScannedBytes
            | Work::ScriptStart
            | Work::Fuel
            | Work::Metadata
            | Work::Refused => f.write_str(self.kind()),
        }
    }
}

/// One line of a receipt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// What is paid for.
    pub what: Work,
    /// How many of it.
    pub count: u64,
    /// Their price.
    pub charge: RequestCharge,
    /// What it consists of, if it is an operation.
    pub lines: Vec<Line>,
}

/// The itemised list of a charge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Receipt {
    /// The lines.
    pub lines: Vec<Line>,
}

impl Receipt {
    /// A receipt of one line.
    pub fn of(what: Work, charge: RequestCharge) -> Receipt {
        Receipt { lines: vec![Line { what, count: 1, charge, lines: Vec::new() }] }
    }

    /// The sum of the lines.
    pub fn total(&self) -> RequestCharge {
        self.lines.iter().map(|line| line.charge).sum()
    }

    /// Adds an operation with the lines of its own receipt.
    pub fn push_operation(&mut self, label: impl Into<String>, inner: Receipt) {
        self.lines.push(Line {
            what: Work::Operation(label.into()),
            count: 1,
            charge: inner.total(),
            lines: inner.lines,
        });
    }

    /// One line of JSON in ASCII. `units` are 1/2,100,000 RU: they add up exactly, `ru` is for
    /// people.
    pub fn to_json(&self) -> String {
        let total = self.total();
        let json = json!({
            "ru": total.as_f64(),
            "units": total.raw(),
            "lines": lines(&self.lines),
        });
        ascii(&json.to_string())
    }

    /// The same charge in a few lines, whatever the number of operations.
    pub fn condensed(&self) -> Receipt {
        let mut condensed = Receipt::default();
        self.lines.iter().for_each(|line| condensed.take_in(line));
        condensed
    }

    fn take_in(&mut self, line: &Line) {
        if !line.lines.is_empty() {
            return line.lines.iter().for_each(|line| self.take_in(line));
        }
        let what = Work::Many(line.what.kind());
        match self.lines.iter_mut().find(|own| own.what == what) {
            Some(own) => {
                (own.count, own.charge) = (own.count + line.count, own.charge + line.charge)
            }
            None => self.lines.push(Line { what, ..line.clone() }),
        }
    }

    /// Whether the lines within lines add up too (R1).
    pub fn is_consistent(&self) -> bool {
        self.lines.iter().all(Line::is_consistent)
    }
}

impl Line {
    fn is_consistent(&self) -> bool {
        let sum: RequestCharge = self.lines.iter().map(|line| line.charge).sum();
        let is_sum = self.lines.is_empty() || sum == self.charge;
        is_sum && self.lines.iter().all(Line::is_consistent)
    }
}

fn lines(lines: &[Line]) -> Value {
    let line = |line: &Line| {
        let mut json = json!({
            "what": line.what.to_string(),
            "count": line.count,
            "ru": line.charge.as_f64(),
            "units": line.charge.raw(),
        });
        if !line.lines.is_empty() {
            json["lines"] = self::lines(&line.lines);
        }
        json
    };
    lines.iter().map(line).collect()
}

/// JSON with everything beyond ASCII escaped: it stands only within strings.
fn ascii(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut units = [0; 2];
    for char in json.chars() {
        match char.is_ascii() {
            true => out.push(char),
            false => {
                let units = char.encode_utf16(&mut units).iter();
                out.extend(units.map(|unit| format!("\\u{unit:04x}")));
            }
        }
    }
    out
}

/// A charge in the making: sums, and collects if a receipt is wanted.
#[derive(Clone, Debug, Default)]
pub struct Bill {
    charge: RequestCharge,
    receipt: Option<Box<Receipt>>,
}

/// The bill of an operation that is done.
impl From<(RequestCharge, Option<Box<Receipt>>)> for Bill {
    fn from((charge, receipt): (RequestCharge, Option<Box<Receipt>>)) -> Bill {
        Bill { charge, receipt }
    }
}

impl Bill {
    /// An empty bill.
    pub fn new(wants_receipt: bool) -> Bill {
        let receipt = wants_receipt.then(Box::default);
        Bill { charge: RequestCharge::ZERO, receipt }
    }

    /// A bill of one line.
    pub fn of(wants_receipt: bool, what: Work, count: u64, each: RequestCharge) -> Bill {
        let mut bill = Bill::new(wants_receipt);
        bill.add(what, count, each);
        bill
    }

    /// Adds so many of something, at a price each.
    pub fn add(&mut self, what: Work, count: u64, each: RequestCharge) {
        self.add_sum(what, count, each * count);
    }

    /// Adds so many of something, at a price for all of them. None of it is no line.
    pub fn add_sum(&mut self, what: Work, count: u64, charge: RequestCharge) {
        self.charge += charge;
        if let Some(receipt) = self.receipt.as_mut().filter(|_| count > 0) {
            receipt.lines.push(Line { what, count, charge, lines: Vec::new() });
        }
    }

    /// Adds all of another operation.
    pub fn add_operation(&mut self, label: impl FnOnce() -> String, inner: Bill) {
        let (charge, inner) = inner.finish();
        self.charge += charge;
        if let Some(receipt) = &mut self.receipt {
            let lines = inner.map(|inner| inner.lines).unwrap_or_default();
            let what = Work::Operation(label());
            receipt.lines.push(Line { what, count: 1, charge, lines });
        }
    }

    /// What it comes to so far.
    pub fn charge(&self) -> RequestCharge {
        self.charge
    }

    /// The charge, and its receipt if one is wanted. Every charge of an item operation ends here.
    pub fn finish(self) -> (RequestCharge, Option<Box<Receipt>>) {
        let adds_up = |receipt: &Receipt| {
            receipt.total() == self.charge && receipt.is_consistent() // R1
        };
        debug_assert!(self.receipt.as_deref().is_none_or(adds_up));
        (self.charge, self.receipt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_nest() {
        let mut outer = Bill::of(true, Work::ScriptStart, 1, RequestCharge::from_raw(315_000));
        let mut inner = Bill::of(true, Work::Created(100), 26, RequestCharge::from_raw(240_000));
        inner.add(Work::Terms, 11, RequestCharge::WRITE_QUANTUM);
        outer.add_operation(|| "create a".into(), inner);
        let (charge, receipt) = outer.finish();
        assert_eq!(charge, RequestCharge::from_raw(315_000 + 26 * 240_000 + 11 * 400_000));
        assert_eq!(
            receipt.unwrap().to_json(),
            concat!(
                r#"{"ru":5.22,"units":10955000,"lines":["#,
                r#"{"what":"script started","count":1,"ru":0.15,"units":315000},"#,
                r#"{"what":"create a","count":1,"ru":5.07,"units":10640000,"lines":["#,
                r#"{"what":"item of 100 bytes written, in write quanta","#,
                r#""count":26,"ru":2.97,"units":6240000},"#,
                r#"{"what":"index terms changed","count":11,"ru":2.1,"units":4400000}]}]}"#
            )
        );
    }

    #[test]
    fn many_operations_are_condensed() {
        let mut bill = Bill::new(true);
        for bytes in 1..100 {
            let mut inner = Bill::of(true, Work::Created(bytes), 26, RequestCharge::WRITE_QUANTUM);
            inner.add(Work::Terms, 4, RequestCharge::WRITE_QUANTUM);
            bill.add_operation(|| format!("operation \u{1F600}{bytes}"), inner);
        }
        let receipt = *bill.finish().1.unwrap();
        assert!(receipt.to_json().is_ascii() && receipt.to_json().contains(r"\ud83d\ude001"));
        let condensed = receipt.condensed();
        assert_eq!(condensed.total(), receipt.total());
        let lines: Vec<_> =
            condensed.lines.iter().map(|line| (line.what.to_string(), line.count)).collect();
        let expect = [("items written, in write quanta", 99 * 26), ("index terms changed", 99 * 4)];
        assert_eq!(lines, expect.map(|(what, count)| (what.to_owned(), count)));
    }

    #[test]
    fn a_bill_without_receipt_is_only_a_sum() {
        let mut bill = Bill::new(false);
        bill.add(Work::Terms, 3, RequestCharge::WRITE_QUANTUM);
        bill.add_operation(|| unreachable!("no label is made"), Bill::new(false));
        let (charge, receipt) = bill.finish();
        assert_eq!((charge, receipt), (RequestCharge::WRITE_QUANTUM * 3, None));
    }
}
