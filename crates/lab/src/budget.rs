//! Budgets: how many RU each pattern may cost in each model, and what they were spent on.
//!
//! ```toml
//! [Q3]
//! v2 = 205.0
//!
//! [Q3.v3]
//! limit = 6.47
//! lines."physical partitions sought" = 2.58
//! lines."bytes loaded" = 3.62
//! ```
//!
//! A limit is what fails. The lines are those of the receipt when the limit was written, so that a
//! cell beyond its limit can say which of them grew. Lines that pipelines spend on copies begin
//! with `copies: `.

use std::collections::BTreeMap;
use std::fmt::Write;

use toml::{Spanned, Table, Value};

use crate::read::{Mistake, line_of, mistake};
use crate::receipt::Shown;
use crate::results::{Cell, Results};
use crate::workload::Workload;

/// Lines that are named of a cell beyond its limit.
const NAMED: usize = 3;
/// Charges are printed with two decimals; half of the last one is no growth.
const GROWTH: f64 = 0.005;
/// A line is rounded so that all add up, by less than a hundredth; so was what it is compared with.
const LINE_GROWTH: f64 = 0.015;

/// Limits by pattern and model.
#[derive(Debug, Default)]
pub struct Budget {
    limits: Vec<Limit>,
}

/// What one pattern may cost in one model.
#[derive(Debug)]
struct Limit {
    pattern: String,
    model: String,
    ru: f64,
    /// The lines of the receipt at that time; none if only a limit was written.
    lines: Option<BTreeMap<String, f64>>,
}

impl Budget {
    /// Reads a budget file; patterns and models must be those of the workload.
    pub fn read(name: &str, text: &str, workload: &Workload) -> Result<Budget, Mistake> {
        type File = BTreeMap<String, BTreeMap<String, Spanned<Value>>>;
        let file: File = toml::from_str(text).map_err(|error| mistake(name, text, &error))?;
        let mut limits = Vec::new();
        for (pattern, models) in file {
            for (model, value) in models {
                let line = line_of(text, value.span().start);
                let fail = |message| Mistake { file: name.to_owned(), line, message };
                if !workload.patterns.iter().any(|known| known.id == pattern) {
                    return Err(fail(format!("there is no pattern {pattern}")));
                }
                if !workload.models.iter().any(|known| known.id == model) {
                    return Err(fail(format!("there is no model {model}")));
                }
                let (ru, lines) = limit(value.get_ref()).map_err(fail)?;
                limits.push(Limit { pattern: pattern.clone(), model, ru, lines });
            }
        }
        Ok(Budget { limits })
    }

    /// A sentence for each cell that costs more than it may. Models that did not run are left out.
    pub fn exceeded(&self, results: &Results) -> Vec<String> {
        let sentence = |limit: &Limit| {
            let cell = results.cell(&limit.pattern, &limit.model)?;
            (cell.total_ru() > limit.ru + GROWTH).then(|| limit.sentence(cell))
        };
        self.limits.iter().filter_map(sentence).collect()
    }
}

impl Limit {
    fn sentence(&self, cell: &Cell) -> String {
        let Limit { pattern, model, ru: limit, .. } = self;
        let ru = cell.total_ru();
        let percent = (ru / limit - 1.0) * 100.0;
        let mut out = format!(
            "{pattern} in {model} costs {ru:.2} RU, its budget is {limit:.2} (+{percent:.1} %)"
        );
        for (at, line) in self.grown(cell).iter().enumerate() {
            out += if at == 0 { ": " } else { ", " };
            out += line;
        }
        out
    }

    /// The lines that grew most, the first one first. Without lines that grew, the largest.
    fn grown(&self, cell: &Cell) -> Vec<String> {
        let mut grown: Vec<(f64, String)> = Vec::new();
        for Shown { what, ru: now, count } in lines(cell) {
            match &self.lines {
                None => grown.push((now, largest(&Shown { what, ru: now, count }))),
                Some(before) => {
                    let was = before.get(&what).copied().unwrap_or(0.0);
                    grown.push((now - was, format!("{what} grew from {was:.2} to {now:.2}")));
                }
            }
        }
        grown.retain(|(growth, _)| *growth > LINE_GROWTH);
        if grown.is_empty() {
            // The limit is below the lines that were recorded with it: they are all there is to say.
            grown = lines(cell).into_iter().map(|line| (line.ru, largest(&line))).collect();
        }
        grown.sort_by(|a, b| b.0.total_cmp(&a.0));
        grown.into_iter().take(NAMED).map(|(_, text)| text).collect()
    }
}

/// The budget that a run just meets.
pub fn write(results: &Results) -> String {
    let Results { workload, scale, seed, .. } = results;
    let mut out = format!("# What {workload} costs at scale {scale} with seed {seed}.\n");
    for cell in &results.cells {
        let limit = hundredths_above(cell.total_ru());
        let (pattern, model) = (key(&cell.pattern), key(&cell.model));
        // Writing to memory cannot fail.
        let _ = writeln!(out, "\n[{pattern}.{model}]\nlimit = {limit:.2}");
        for Shown { what, ru, .. } in lines(cell) {
            let _ = writeln!(out, "lines.{} = {ru:.2}", key(&what));
        }
    }
    out
}

/// All lines of a cell, those of copies behind those of the application.
fn lines(cell: &Cell) -> Vec<Shown> {
    let copies = cell.copies_receipt.shown(cell.executions);
    let copies =
        copies.into_iter().map(|line| Shown { what: format!("copies: {}", line.what), ..line });
    cell.receipt.shown(cell.executions).into_iter().chain(copies).collect()
}

/// What is said of a line that is large rather than grown.
fn largest(line: &Shown) -> String {
    format!("{} {:.2}", line.what, line.ru)
}

/// The limit below which a charge lies, at the decimals that are written.
fn hundredths_above(ru: f64) -> f64 {
    // What a division left behind the fourth decimal is no charge.
    ((ru * 10_000.0).round() / 100.0).ceil() / 100.0
}

/// A key of TOML.
fn key(text: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    match !text.is_empty() && text.chars().all(is_bare) {
        true => text.to_owned(),
        false => Value::String(text.to_owned()).to_string(),
    }
}

type Limits = (f64, Option<BTreeMap<String, f64>>);

fn limit(value: &Value) -> Result<Limits, String> {
    let Value::Table(table) = value else { return Ok((number(value)?, None)) };
    if let Some(other) = table.keys().find(|key| !["limit", "lines"].contains(&&key[..])) {
        return Err(format!("a budget has a limit and lines, not {other}"));
    }
    let ru = number(table.get("limit").ok_or("a budget has a limit")?)?;
    let lines = match table.get("lines") {
        None => None,
        Some(Value::Table(lines)) => Some(charges(lines)?),
        Some(other) => return Err(format!("lines are a table of charges, not {other}")),
    };
    Ok((ru, lines))
}

fn charges(lines: &Table) -> Result<BTreeMap<String, f64>, String> {
    lines.iter().map(|(what, charge)| Ok((what.clone(), number(charge)?))).collect()
}

fn number(value: &Value) -> Result<f64, String> {
    let number = value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64));
    number.filter(|number| *number >= 0.0).ok_or_else(|| format!("RU are a number, not {value}"))
}

#[cfg(test)]
mod tests {
    use model::RequestCharge;

    use super::*;
    use crate::receipt::{Line, Receipt};
    use crate::shelf;

    fn workload() -> Workload {
        shelf::find(shelf::names()[0]).unwrap().read().unwrap()
    }

    fn receipt(lines: &[(&str, u64)]) -> Receipt {
        let line = |&(what, hundredths): &(&str, u64)| Line {
            what: what.to_owned(),
            count: 1,
            charge: RequestCharge::from_raw(hundredths * 21_000),
        };
        Receipt { lines: lines.iter().map(line).collect() }
    }

    fn results(workload: &Workload, ru: f64, propagation_ru: f64) -> Results {
        let (pattern, model) = (workload.patterns[0].id.clone(), workload.models[0].id.clone());
        let cell = Cell { pattern, model, ru, propagation_ru, ..Cell::default() };
        Results { cells: vec![cell], ..Results::default() }
    }

    #[test]
    fn what_grew_is_named() {
        let workload = workload();
        let (pattern, model) = (&workload.patterns[0].id, &workload.models[0].id);
        let text = format!("[{pattern}]\n{model} = 10.0\n");
        let budget = Budget::read("b.toml", &text, &workload).unwrap();
        let exceeded = |ru, copies| budget.exceeded(&results(&workload, ru, copies));
        assert!(exceeded(9.99, 0.0).is_empty());
        assert!(exceeded(10.004, 0.0).is_empty());
        let over = exceeded(11.0, 0.0);
        assert_eq!(
            over,
            [format!("{pattern} in {model} costs 11.00 RU, its budget is 10.00 (+10.0 %)")]
        );
        assert_eq!(exceeded(9.0, 3.0).len(), 1, "copies count");
        assert!(budget.exceeded(&Results::default()).is_empty());
    }

    #[test]
    fn lines_that_grew_are_named_the_largest_growth_first() {
        let workload = workload();
        let mut results = results(&workload, 8.0, 2.0);
        results.cells[0].receipt = receipt(&[("items loaded", 500), ("bytes loaded", 300)]);
        results.cells[0].copies_receipt = receipt(&[("items loaded", 200)]);
        let written = write(&results);
        assert!(written.ends_with(concat!(
            "]\nlimit = 10.00\nlines.\"items loaded\" = 5.00\nlines.\"bytes loaded\" = 3.00\n",
            "lines.\"copies: items loaded\" = 2.00\n"
        )));
        let said = |results: &Results, text: &str| {
            let exceeded = Budget::read("b.toml", text, &workload).unwrap().exceeded(results);
            exceeded.first().and_then(|text| text.split_once(": ")).map(|said| said.1.to_owned())
        };
        assert_eq!(said(&results, &written), None, "a budget is met by the run that wrote it");
        let mut grown = results.clone();
        grown.cells[0].ru = 9.1;
        grown.cells[0].propagation_ru = 4.0;
        let lines = [("items loaded", 600), ("bytes loaded", 300), ("script started", 10)];
        grown.cells[0].receipt = receipt(&lines);
        grown.cells[0].copies_receipt = receipt(&[("items loaded", 400)]);
        assert_eq!(
            said(&grown, &written).unwrap(),
            "copies: items loaded grew from 2.00 to 4.00, items loaded grew from 5.00 to 6.00, \
             script started grew from 0.00 to 0.10"
        );
        let (pattern, model) = (&workload.patterns[0].id, &workload.models[0].id);
        let only_limit = format!("[{pattern}]\n{model} = 10\n");
        assert_eq!(
            said(&grown, &only_limit).unwrap(),
            "items loaded 6.00, copies: items loaded 4.00, bytes loaded 3.00",
            "the largest, where nothing is there to compare with"
        );
        let lowered = written.replace("limit = 10.00", "limit = 9.00");
        assert_eq!(
            said(&results, &lowered).unwrap(),
            "items loaded 5.00, bytes loaded 3.00, copies: items loaded 2.00",
            "the largest, where none grew"
        );
    }

    #[test]
    fn limits_are_rounded_up() {
        let check = |ru, expect| assert_eq!(hundredths_above(ru), expect);
        check(5.71, 5.71);
        check(5.714, 5.72);
        check(0.1 + 0.2, 0.3);
        check(0.0, 0.0);
    }

    #[test]
    fn names_must_be_known() {
        let workload = workload();
        let said = |text: &str| Budget::read("b.toml", text, &workload).unwrap_err().to_string();
        assert_eq!(said("\n[XX]\nv = 1.0\n"), "b.toml:3: there is no pattern XX");
        let (pattern, model) = (&workload.patterns[0].id, &workload.models[0].id);
        let text = format!("[{pattern}]\nnone = 1.0\n");
        assert_eq!(said(&text), "b.toml:2: there is no model none");
        assert!(said("[Q").starts_with("b.toml:1: "));
        let cell = |body: &str| said(&format!("[{pattern}.{model}]\n{body}\n"));
        assert_eq!(cell("lines = {}"), "b.toml:1: a budget has a limit");
        assert_eq!(cell("limit = 1\nmax = 2"), "b.toml:1: a budget has a limit and lines, not max");
        assert_eq!(cell("limit = 'x'"), "b.toml:1: RU are a number, not \"x\"");
        assert_eq!(cell("limit = -1"), "b.toml:1: RU are a number, not -1");
        assert_eq!(cell("limit = 1\nlines = 2"), "b.toml:1: lines are a table of charges, not 2");
    }
}
