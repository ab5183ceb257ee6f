//! Numbers for people, and the table in the terminal.

use std::fmt::Write;

use crate::agreement::Agreement;
use crate::results::{Cell, Results};

/// A charge: two decimals below 100, fewer above.
pub fn ru(value: f64) -> String {
    match value {
        v if v >= 10_000.0 => grouped(v.round() as u64),
        v if v >= 1_000.0 => format!("{v:.0}"),
        v if v >= 100.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

/// A time in milliseconds.
pub fn ms(value: f64) -> String {
    match value {
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

/// A whole number with separated thousands.
pub fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A large number in short.
pub fn short(value: f64) -> String {
    match value {
        v if v >= 1e9 => format!("{:.3} billion", v / 1e9),
        v if v >= 1e6 => format!("{:.2} million", v / 1e6),
        v if v >= 10.0 || v == v.trunc() => grouped(v.round() as u64),
        v => format!("{v:.2}"),
    }
}

/// How far a value is from a published one, in percent.
pub fn difference(value: f64, published: f64) -> String {
    format!("{:+.1} %", (value / published - 1.0) * 100.0)
}

/// The table of a run: a line for each pattern and model.
pub fn table(results: &Results) -> String {
    let columns_of = columns_of(results);
    let heads = columns_of.iter().map(|column| column.head.to_owned());
    let mut rows: Vec<Vec<String>> =
        vec![["", "model"].map(str::to_owned).into_iter().chain(heads).collect()];
    let mut last = "";
    for (at, cell) in results.cells.iter().enumerate() {
        let pattern = if cell.pattern == last { "" } else { &cell.pattern };
        let texts = columns_of.iter().map(|column| column.texts[at].clone());
        let names = [pattern.to_owned(), cell.model.clone()];
        rows.push(names.into_iter().chain(texts).collect());
        last = &cell.pattern;
    }
    columns(&rows, 2) + &totals(results) + &agreement(results) + &warnings(results)
}

/// One kind of number, for all cells.
pub(crate) struct Column {
    /// What it is.
    pub head: &'static str,
    /// A text for each cell; empty where there is nothing to say.
    pub texts: Vec<String>,
}

/// The numbers of all cells; kinds of which no cell has any are left out.
pub(crate) fn columns_of(results: &Results) -> Vec<Column> {
    type Text = fn(&Cell) -> String;
    let all: [(&str, Text); 12] = [
        ("RU", |cell| ru(cell.ru)),
        ("published", |cell| cell.published_ru.map(ru).unwrap_or_default()),
        ("", |cell| cell.published_ru.map(|p| difference(cell.ru, p)).unwrap_or_default()),
        ("copies RU", |cell| match cell.propagation_ru > 0.0 {
            true => ru(cell.propagation_ru),
            false => String::new(),
        }),
        ("copies ms", |cell| cell.lag_ms.map(ms).unwrap_or_default()),
        ("requests", |cell| short_count(cell.requests)),
        ("partitions", |cell| cell.partitions.to_string()),
        ("p50 ms", |cell| ms(cell.p50_ms)),
        ("p95 ms", |cell| ms(cell.p95_ms)),
        ("p99 ms", |cell| ms(cell.p99_ms)),
        ("published", |cell| cell.published_ms.map(|ms| format!("{ms}")).unwrap_or_default()),
        ("bar", bar),
    ];
    let column = |(head, text): (&'static str, Text)| Column {
        head,
        texts: results.cells.iter().map(text).collect(),
    };
    let has_any = |column: &Column| column.texts.iter().any(|text| !text.is_empty());
    all.into_iter().map(column).filter(has_any).collect()
}

/// Rows of texts under their heads: the first columns to the left, the others to the right.
/// A row that begins with a text stands apart from those above it.
pub(crate) fn columns(rows: &[Vec<String>], left: usize) -> String {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..count).map(|column| width(column).unwrap_or(0)).collect();
    let mut out = String::new();
    for (at, row) in rows.iter().enumerate() {
        if at > 0 && !row[0].is_empty() {
            out.push('\n');
        }
        let mut line = String::new();
        for (column, (text, width)) in row.iter().zip(&widths).enumerate() {
            // Writing to memory cannot fail.
            let _ = match column < left {
                true => write!(line, "{text:<width$}  "),
                false => write!(line, "{text:>width$}  "),
            };
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// What the p50 should not exceed, and whether it does.
pub fn bar(cell: &Cell) -> String {
    match cell.bar_ms.zip(cell.meets_bar()) {
        Some((bar, true)) => format!("{} met", ms(bar)),
        Some((bar, false)) => format!("{} missed", ms(bar)),
        None => String::new(),
    }
}

fn short_count(value: f64) -> String {
    match value.fract() == 0.0 {
        true => format!("{value:.0}"),
        false => format!("{value:.1}"),
    }
}

fn totals(results: &Results) -> String {
    let mut out = format!("\nunder the mix, RU per {}\n", results.per);
    for model in &results.models {
        let _ = writeln!(out, "  {:<10} {}", model.id, short(results.total(&model.id)));
    }
    out
}

/// What whoever reads the numbers should know.
fn warnings(results: &Results) -> String {
    results.warnings.iter().map(|sentence| format!("\nwarning: {sentence}\n")).collect()
}

/// How far the run is from what it is compared with; nothing if there is nothing.
fn agreement(results: &Results) -> String {
    let mut out = String::new();
    for finding in Agreement::of(results).findings() {
        let _ = writeln!(out, "\n{}", finding.sentence);
        for cell in &finding.cells {
            let _ = writeln!(out, "  {cell}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{ModelResult, PatternResult};

    #[test]
    fn numbers() {
        let charges = [1.0, 5.714, 201.54, 2063.54, 1_234_567.0].map(ru);
        assert_eq!(charges, ["1.00", "5.71", "201.5", "2064", "1,234,567"]);
        assert_eq!([0.1234, 12.34, 306.0].map(ms), ["0.12", "12.3", "306"]);
        assert_eq!([0, 999, 1000, 1234567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(
            [0.0, 0.5, 1234.5, 2.5e6, 1.36e9].map(short),
            ["0", "0.50", "1,235", "2.50 million", "1.360 billion"]
        );
        assert_eq!(difference(110.0, 100.0), "+10.0 %");
    }

    #[test]
    fn a_line_for_each_cell() {
        let cell = |model: &str, ru| Cell {
            pattern: "Q1".into(),
            model: model.into(),
            ru,
            published_ru: Some(1.0),
            requests: 1.0,
            partitions: 1,
            ..Cell::default()
        };
        let results = Results {
            per: "day".into(),
            models: vec![ModelResult { id: "v1".into(), ..ModelResult::default() }],
            patterns: vec![PatternResult {
                id: "Q1".into(),
                weight: 10.0,
                ..PatternResult::default()
            }],
            cells: vec![cell("v1", 1.0), cell("v2", 2.0)],
            ..Results::default()
        };
        let text = table(&results);
        let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
        assert!(lines[1].starts_with("Q1  v1") && lines[1].contains("+0.0 %"), "{text}");
        assert!(lines[2].starts_with("    v2") && lines[2].contains("+100.0 %"), "{text}");
        assert_eq!(lines[4].split_whitespace().collect::<Vec<_>>(), ["v1", "10"]);
        assert!(lines[5].starts_with("1 of 2 charges are within 5 %"), "{text}");
        assert!(lines[6].starts_with("  Q1 in v2: 2.00 RU, published 1.00 (+100.0 %): "), "{text}");
    }

    #[test]
    fn columns_without_a_number_are_left_out() {
        let heads = |cell: Cell| {
            let results = Results { cells: vec![Cell::default(), cell], ..Results::default() };
            columns_of(&results).iter().map(|column| column.head).collect::<Vec<_>>().join(" ")
        };
        let always = "RU requests partitions p50 ms p95 ms p99 ms";
        assert_eq!(heads(Cell::default()), always);
        let copied = Cell { propagation_ru: 1.0, lag_ms: Some(1.0), ..Cell::default() };
        assert_eq!(heads(copied), always.replace("RU", "RU copies RU copies ms"));
        let compared = Cell { published_ms: Some(3.0), bar_ms: Some(0.3), ..Cell::default() };
        assert_eq!(heads(compared), format!("{always} published bar"));
    }

    #[test]
    fn bars_are_met_or_missed() {
        let timed = |p50_ms| Cell { p50_ms, bar_ms: Some(0.9), ..Cell::default() };
        let texts = [timed(0.9), timed(0.91), Cell::default()].map(|cell| bar(&cell));
        assert_eq!(texts, ["0.90 met", "0.90 missed", ""]);
    }
}
