//! How far a run agrees with the figures it is compared with.
//!
//! ```text
//! published charge   what somebody else measured            within 5 %, or there is a reason
//! expected charge    what the price list gives for their    within 2.5 %
//!                    data; the workload says it
//! bar                what half of the executions should     at most
//!                    not exceed, a share of a published time
//! ```
//!
//! Figures are for the scale and seed of the workload file: on other data charges may differ, which
//! is then said.

use serde_json::{Value, json};

use crate::expression::number;
use crate::results::{Cell, Results, rounded};
use crate::table::{difference, ru};

/// How far a charge may be from a published one.
pub const PUBLISHED_SHARE: f64 = 0.05;
/// How far a charge may be from the expected one.
pub const EXPECTED_SHARE: f64 = 0.025;

/// How far a run agrees with the figures it is compared with.
#[derive(Clone, Debug)]
pub struct Agreement<'r> {
    /// With published charges.
    pub published: Compared<'r>,
    /// With expected charges.
    pub expected: Compared<'r>,
    /// With bars for times.
    pub bars: Compared<'r>,
    is_as_written: bool,
}

/// Cells that have a figure of one kind.
#[derive(Clone, Debug)]
pub struct Compared<'r> {
    /// How many there are.
    pub count: usize,
    /// Those that do not agree.
    pub beyond: Vec<&'r Cell>,
}

/// One sentence, and the cells it does not hold for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How many cells agree.
    pub sentence: String,
    /// A line for each of the others.
    pub cells: Vec<String>,
}

impl<'r> Compared<'r> {
    /// `agrees` is `None` of cells without such a figure.
    fn of(results: &'r Results, agrees: impl Fn(&Cell) -> Option<bool>) -> Compared<'r> {
        let cells = || results.cells.iter();
        Compared {
            count: cells().filter(|cell| agrees(cell).is_some()).count(),
            beyond: cells().filter(|cell| agrees(cell) == Some(false)).collect(),
        }
    }

    /// How many agree.
    pub fn within(&self) -> usize {
        self.count - self.beyond.len()
    }

    fn finding(&self, said: &str, line: impl Fn(&Cell) -> String) -> Option<Finding> {
        let more = match self.beyond.is_empty() {
            true => ".",
            false => "; not:",
        };
        let sentence = format!("{} of {} {said}{more}", self.within(), self.count);
        let cells = self.beyond.iter().map(|cell| line(cell)).collect();
        (self.count > 0).then_some(Finding { sentence, cells })
    }

    fn to_json(&self, cell: impl Fn(&Cell) -> Value) -> Value {
        let beyond: Vec<Value> = self.beyond.iter().map(|beyond| cell(beyond)).collect();
        json!({"cells": self.count, "within": self.within(), "beyond": beyond})
    }
}

impl<'r> Agreement<'r> {
    /// Compares all cells.
    pub fn of(results: &'r Results) -> Agreement<'r> {
        Agreement {
            published: Compared::of(results, |cell| {
                cell.published_ru.map(|published| is_near(cell.ru, published, PUBLISHED_SHARE))
            }),
            expected: Compared::of(results, |cell| {
                cell.expected_ru.map(|expected| is_near(cell.ru, expected, EXPECTED_SHARE))
            }),
            bars: Compared::of(results, Cell::meets_bar),
            is_as_written: results.is_as_written,
        }
    }

    /// What there is to say: nothing of figures that the workload does not have.
    pub fn findings(&self) -> Vec<Finding> {
        let found = [self.published_finding(), self.expected_finding(), self.bars_finding()];
        found.into_iter().flatten().collect()
    }

    fn published_finding(&self) -> Option<Finding> {
        let line = |cell: &Cell| {
            let because = match (&cell.because, self.is_as_written) {
                (Some(because), _) => because,
                (None, true) => "no reason is known",
                (None, false) => "figures are for another scale or seed",
            };
            format!("{}: {because}", beside(cell, "published", cell.published_ru))
        };
        let share = PUBLISHED_SHARE * 100.0;
        self.published.finding(&format!("charges are within {share} % of the published ones"), line)
    }

    fn expected_finding(&self) -> Option<Finding> {
        let line = |cell: &Cell| {
            let why = match self.is_as_written {
                true => "",
                false => ": figures are for another scale or seed",
            };
            format!("{}{why}", beside(cell, "expected", cell.expected_ru))
        };
        let share = EXPECTED_SHARE * 100.0;
        let said = format!("charges are within {share} % of what the price list gives");
        self.expected.finding(&said, line)
    }

    /// Tables mark the cells already: here they are only named.
    fn bars_finding(&self) -> Option<Finding> {
        let name = |cell: &Cell| format!("{} in {}", cell.pattern, cell.model);
        let finding = self.bars.finding("p50 meet their bars", name)?;
        let sentence = match finding.cells.is_empty() {
            true => finding.sentence,
            false => format!("{} {}.", finding.sentence, finding.cells.join(", ")),
        };
        Some(Finding { sentence, cells: Vec::new() })
    }

    /// What `--json` writes.
    pub fn to_json(&self) -> Value {
        let published = |cell: &Cell| {
            json!({
                "pattern": cell.pattern,
                "model": cell.model,
                "ru": rounded(cell.ru, 100.0),
                "published_ru": cell.published_ru.map(number),
                "because": cell.because,
            })
        };
        let expected = |cell: &Cell| {
            json!({
                "pattern": cell.pattern,
                "model": cell.model,
                "ru": rounded(cell.ru, 100.0),
                "expected_ru": cell.expected_ru.map(number),
            })
        };
        let bar = |cell: &Cell| {
            json!({
                "pattern": cell.pattern,
                "model": cell.model,
                "p50_ms": rounded(cell.p50_ms, 1000.0),
                "bar_ms": cell.bar_ms.map(|bar| rounded(bar, 1000.0)),
            })
        };
        json!({
            "is_as_written": self.is_as_written,
            "published": self.published.to_json(published),
            "expected": self.expected.to_json(expected),
            "bars": self.bars.to_json(bar),
        })
    }
}

fn is_near(value: f64, figure: f64, share: f64) -> bool {
    (value / figure - 1.0).abs() <= share
}

fn beside(cell: &Cell, what: &str, figure: Option<f64>) -> String {
    let figure = figure.unwrap_or(cell.ru);
    let by = difference(cell.ru, figure);
    format!("{} in {}: {} RU, {what} {} ({by})", cell.pattern, cell.model, ru(cell.ru), ru(figure))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(pattern: &str, ru: f64) -> Cell {
        Cell { pattern: pattern.into(), model: "m".into(), ru, ..Cell::default() }
    }

    fn published(pattern: &str, ru: f64, because: Option<&str>) -> Cell {
        let because = because.map(str::to_owned);
        Cell { published_ru: Some(100.0), because, ..cell(pattern, ru) }
    }

    fn lines(results: &Results) -> Vec<String> {
        let findings = Agreement::of(results).findings();
        let lines = |finding: Finding| [vec![finding.sentence], finding.cells].concat();
        findings.into_iter().flat_map(lines).collect()
    }

    #[test]
    fn nothing_to_compare_with() {
        let results = Results { cells: vec![cell("a", 1.0)], ..Results::default() };
        assert!(lines(&results).is_empty());
        assert_eq!(Agreement::of(&results).to_json()["published"]["cells"], 0);
    }

    #[test]
    fn published_charges_within_five_percent() {
        let cells = vec![
            published("a", 104.99, None),
            published("b", 95.01, None),
            published("c", 105.1, Some("it repeats another")),
            published("d", 94.9, None),
        ];
        let mut results = Results { cells, is_as_written: true, ..Results::default() };
        let mut expect = vec![
            "2 of 4 charges are within 5 % of the published ones; not:",
            "c in m: 105.1 RU, published 100.0 (+5.1 %): it repeats another",
            "d in m: 94.90 RU, published 100.0 (-5.1 %): no reason is known",
        ];
        assert_eq!(lines(&results), expect);
        results.is_as_written = false;
        expect[2] =
            "d in m: 94.90 RU, published 100.0 (-5.1 %): figures are for another scale or seed";
        assert_eq!(lines(&results), expect);
        let json = Agreement::of(&results).to_json();
        assert_eq!(json["published"]["within"], 2);
        let first = r#"{"pattern":"c","model":"m","ru":105.1,"published_ru":100,"because":"it repeats another"}"#;
        assert_eq!(json["published"]["beyond"][0].to_string(), first);
    }

    #[test]
    fn expected_charges_within_half_of_that() {
        let expected = |pattern: &str, ru| Cell { expected_ru: Some(200.0), ..cell(pattern, ru) };
        let near = vec![expected("a", 204.99), expected("b", 195.01)];
        let mut results = Results { cells: near, is_as_written: true, ..Results::default() };
        let all = "2 of 2 charges are within 2.5 % of what the price list gives.";
        assert_eq!(lines(&results), [all]);
        results.cells.extend([expected("c", 205.2), expected("d", 194.8)]);
        assert_eq!(
            lines(&results)[1..],
            [
                "c in m: 205.2 RU, expected 200.0 (+2.6 %)",
                "d in m: 194.8 RU, expected 200.0 (-2.6 %)"
            ]
        );
        let json = Agreement::of(&results).to_json();
        assert_eq!(
            (&json["expected"]["cells"], &json["expected"]["within"]),
            (&json!(4), &json!(2))
        );
    }

    #[test]
    fn a_bar_is_met_at_the_bar() {
        let timed = |p50_ms| Cell { p50_ms, bar_ms: Some(0.7), ..cell("a", 1.0) };
        let cells = vec![timed(0.69), timed(0.7), timed(0.71)];
        let results = Results { cells, ..Results::default() };
        assert_eq!(lines(&results), ["2 of 3 p50 meet their bars; not: a in m."]);
        let beyond = r#"[{"pattern":"a","model":"m","p50_ms":0.71,"bar_ms":0.7}]"#;
        assert_eq!(Agreement::of(&results).to_json()["bars"]["beyond"].to_string(), beyond);
    }
}
