//! What was measured: a table for people, JSON for programs.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

use crate::slices::Summary;

/// A line of the table.
#[derive(Debug)]
pub struct Row {
    cells: [String; 5],
}

impl Row {
    /// Rates of ours and of another, and their ratio.
    pub fn rates(title: &str, ours: &Summary, theirs: &Summary, other: &str, ratio: f64) -> Row {
        let side = |summary: &Summary| {
            let (p50, p99) = (summary.p50_us / 1000.0, summary.p99_us / 1000.0);
            let digits = if summary.rate < 10.0 { 2 } else { 0 };
            format!("{:.digits$}/s  p50 {p50:.2} p99 {p99:.2} ms", summary.rate)
        };
        let cells = [title.into(), side(ours), side(theirs), short(ratio), other.into()];
        Row { cells }
    }

    /// CPU that the servers spent, and the load generator beside them.
    pub fn cpu(title: &str, ours: &Summary, theirs: &Summary, other: &str) -> Row {
        let side = |summary: &Summary| {
            format!("{:.1} µs (load {:.1} µs)", summary.server_cpu_us, summary.load_cpu_us)
        };
        let ratio = theirs.server_cpu_us / ours.server_cpu_us.max(1e-9);
        let cells = [title.into(), side(ours), side(theirs), short(ratio), other.into()];
        Row { cells }
    }
}

/// A promise and how it came out.
#[derive(Debug)]
pub struct Bar {
    title: String,
    value: f64,
    bound: f64,
    is_floor: bool,
}

impl Bar {
    /// The value must be at least this.
    pub fn at_least(title: &str, value: f64, bound: f64) -> Bar {
        Bar { title: title.to_owned(), value, bound, is_floor: true }
    }

    /// The value must be less than this.
    pub fn below(title: &str, value: f64, bound: f64) -> Bar {
        Bar { title: title.to_owned(), value, bound, is_floor: false }
    }

    fn is_met(&self) -> bool {
        if self.is_floor { self.value >= self.bound } else { self.value < self.bound }
    }

    fn cells(&self) -> [String; 4] {
        let sign = if self.is_floor { "≥" } else { "<" };
        let verdict = if self.is_met() { "ok" } else { "BELOW ITS BAR" };
        let (value, bound) = (short(self.value), format!("{sign} {}", self.bound));
        [self.title.clone(), value, bound, verdict.to_owned()]
    }

    fn to_json(&self) -> Value {
        let kind = if self.is_floor { "at_least" } else { "below" };
        json!({"title": self.title, "value": self.value, kind: self.bound, "is_met": self.is_met()})
    }
}

/// Everything that was measured.
#[derive(Debug)]
pub struct Report {
    machine: Value,
    settings: Value,
    notes: Vec<String>,
    rows: Vec<Row>,
    bars: Vec<Bar>,
    skipped: Vec<String>,
    failed: Vec<String>,
    values: Map<String, Value>,
}

impl Report {
    /// A report without results.
    pub fn new(machine: Value, settings: Value) -> Report {
        Report {
            machine,
            settings,
            notes: Vec::new(),
            rows: Vec::new(),
            bars: Vec::new(),
            skipped: Vec::new(),
            failed: Vec::new(),
            values: Map::new(),
        }
    }

    /// Something worth knowing; printed at once.
    pub fn note(&mut self, note: String) {
        println!("  {note}");
        self.notes.push(note);
    }

    /// A line of the table.
    pub fn row(&mut self, row: Row) {
        println!("  {}", row.cells.join("  |  "));
        self.rows.push(row);
    }

    /// A promise.
    pub fn bar(&mut self, bar: Bar) {
        self.bars.push(bar);
    }

    /// A section that could not be measured.
    pub fn skip(&mut self, section: &str, why: String) {
        println!("  {section} skipped: {why}");
        self.skipped.push(format!("{section}: {why}"));
    }

    /// Something that should have been measured but went wrong.
    pub fn fail(&mut self, what: &str, error: &anyhow::Error) {
        println!("  {what} FAILED: {error:#}");
        self.failed.push(format!("{what}: {error:#}"));
    }

    /// How many of those there were.
    pub fn failures(&self) -> usize {
        self.failed.len()
    }

    /// The numbers of a section, for programs.
    pub fn value(&mut self, section: &str, value: Value) {
        self.values.insert(section.to_owned(), value);
    }

    /// Prints the tables.
    pub fn print(&self) {
        println!("\nmachine   {}", self.machine);
        println!("settings  {}\n", self.settings);
        let head = ["", "cosmolabe", "other", "ratio", "other is"].map(str::to_owned);
        let rows = self.rows.iter().map(|row| row.cells.clone());
        print_table(std::iter::once(head).chain(rows).collect());
        println!();
        print_table(self.bars.iter().map(Bar::cells).collect());
        self.skipped.iter().for_each(|skipped| println!("not measured: {skipped}"));
        self.failed.iter().for_each(|failed| println!("FAILED: {failed}"));
    }

    /// Writes the same for programs.
    pub fn write(&self, path: &Path) -> Result<()> {
        let report = json!({
            "machine": self.machine,
            "settings": self.settings,
            "bars": self.bars.iter().map(Bar::to_json).collect::<Vec<_>>(),
            "sections": self.values,
            "notes": self.notes,
            "skipped": self.skipped,
            "failed": self.failed,
        });
        let directory = path.parent().context("the report is a file in a directory")?;
        std::fs::create_dir_all(directory)?;
        let text = serde_json::to_string_pretty(&report)?;
        std::fs::write(path, text).with_context(|| format!("{} cannot be written", path.display()))
    }
}

/// A number with two digits behind the point, or more if those would say nothing.
fn short(number: f64) -> String {
    let digits = if number.abs() < 0.1 { 4 } else { 2 };
    format!("{number:.digits$}")
}

fn print_table<const N: usize>(rows: Vec<[String; N]>) {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..N).map(|column| width(column).unwrap_or(0)).collect();
    for row in &rows {
        let cells = row.iter().zip(&widths);
        let line: Vec<String> =
            cells.map(|(cell, width)| format!("{cell:width$}", width = *width)).collect();
        println!("{}", line.join("  ").trim_end());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars() {
        assert!(Bar::at_least("a", 2.0, 2.0).is_met());
        assert!(!Bar::at_least("a", 1.9, 2.0).is_met());
        assert!(Bar::below("a", 59.9, 60.0).is_met());
        assert!(!Bar::below("a", 60.0, 60.0).is_met());
    }
}
