//! What a run came to: a cell for each pattern and model, and the JSON that scripts rely on.

use serde_json::{Value, json};

use crate::agreement::Agreement;
use crate::expression::number;
use crate::receipt::Receipt;
use crate::verify::Verdict;

/// What a run came to.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)]
pub struct Results {
    pub workload: String,
    pub title: String,
    pub about: String,
    pub scale: f64,
    pub seed: u64,
    /// Whether scale and seed are those of the file, which its figures are for.
    pub is_as_written: bool,
    /// What makes the numbers mean something else than the workload says.
    pub warnings: Vec<String>,
    /// What weights are counted per.
    pub per: String,
    pub models: Vec<ModelResult>,
    pub patterns: Vec<PatternResult>,
    /// By pattern, then by model.
    pub cells: Vec<Cell>,
    pub sweeps: Vec<SweepResult>,
}

/// A model that was measured.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)]
pub struct ModelResult {
    pub id: String,
    pub title: String,
    pub about: String,
    pub items: u64,
    pub load_ru: f64,
    pub load_seconds: f64,
    /// Building copies from the beginning of the feeds.
    pub build_ru: f64,
    pub build_changes: u64,
    pub verdicts: Vec<Verdict>,
}

/// A pattern that was measured.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)]
pub struct PatternResult {
    pub id: String,
    pub title: String,
    pub weight: f64,
    /// Whether it only reads, in all models.
    pub only_reads: bool,
}

/// One pattern in one model.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct Cell {
    pub pattern: String,
    pub model: String,
    pub ru: f64,
    pub published_ru: Option<f64>,
    /// What the price list gives for the data that the figure was published of.
    pub expected_ru: Option<f64>,
    /// Why the published charge cannot be met.
    pub because: Option<String>,
    pub requests: f64,
    pub partitions: usize,
    pub p50_ms: f64,
    pub p95_ms: f64,
    pub p99_ms: f64,
    pub published_ms: Option<f64>,
    /// What the p50 should not exceed.
    pub bar_ms: Option<f64>,
    /// What keeping copies cost because of it.
    pub propagation_ru: f64,
    /// Until the copies were right, in the middle of executions.
    pub lag_ms: Option<f64>,
    /// How many executions were charged.
    pub executions: u64,
    /// What the charge of all of them together was made of.
    pub receipt: Receipt,
    /// What keeping copies behind them was made of.
    pub copies_receipt: Receipt,
}

impl Cell {
    /// What an execution costs with all that follows from it.
    pub fn total_ru(&self) -> f64 {
        self.ru + self.propagation_ru
    }

    /// Whether half of the executions were as fast as they should be.
    pub fn meets_bar(&self) -> Option<bool> {
        self.bar_ms.map(|bar| self.p50_ms <= bar)
    }
}

/// Curves of total costs along something that varies.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)]
pub struct SweepResult {
    pub id: String,
    pub title: String,
    /// Whether points lie apart by equal factors, and so should be drawn.
    pub is_log: bool,
    /// What the thing is in the workload as it stands.
    pub now: Option<f64>,
    pub xs: Vec<f64>,
    /// By model: total RU at each x.
    pub curves: Vec<Vec<f64>>,
    pub crossings: Vec<Crossing>,
}

/// Where the cheapest model changes.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Crossing {
    pub x: f64,
    pub cost: f64,
    /// The cheapest model below, by position.
    pub below: usize,
    /// The cheapest model above.
    pub above: usize,
}

impl Results {
    /// The cell of a pattern and a model.
    pub fn cell(&self, pattern: &str, model: &str) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.pattern == pattern && cell.model == model)
    }

    /// The weighted total of a model, in RU.
    pub fn total(&self, model: &str) -> f64 {
        let cost = |pattern: &PatternResult| {
            self.cell(&pattern.id, model).map_or(0.0, |cell| pattern.weight * cell.total_ru())
        };
        self.patterns.iter().map(cost).sum()
    }

    /// All copies that differ from their sources.
    pub fn findings(&self) -> Vec<String> {
        let of_model = |model: &ModelResult| {
            let id = model.id.clone();
            let of_verdict = move |verdict: &Verdict| {
                let id = id.clone();
                let name = verdict.name.clone();
                verdict
                    .findings
                    .clone()
                    .into_iter()
                    .map(move |text| format!("{id}: {name}: {text}"))
            };
            model.verdicts.iter().flat_map(of_verdict).collect::<Vec<_>>()
        };
        self.models.iter().flat_map(of_model).collect()
    }

    /// What `--json` writes.
    pub fn to_json(&self) -> Value {
        let cells: Vec<Value> = self.cells.iter().map(cell_json).collect();
        json!({
            "workload": self.workload,
            "scale": number(self.scale),
            "seed": self.seed,
            "cells": cells,
            "models": self.models.iter().map(|model| self.model_json(model)).collect::<Vec<_>>(),
            "agreement": Agreement::of(self).to_json(),
            "warnings": self.warnings,
        })
    }

    fn model_json(&self, model: &ModelResult) -> Value {
        json!({
            "model": model.id,
            "items": model.items,
            "load_ru": rounded(model.load_ru, 100.0),
            "load_seconds": rounded(model.load_seconds, 1000.0),
            "build_ru": rounded(model.build_ru, 100.0),
            "build_changes": model.build_changes,
            "mix_ru": rounded(self.total(&model.id), 100.0),
        })
    }
}

/// A number to the nearest part of one, such as a hundredth.
pub(crate) fn rounded(value: f64, parts: f64) -> Value {
    number((value * parts).round() / parts)
}

fn cell_json(cell: &Cell) -> Value {
    let mut out = json!({
        "pattern": cell.pattern,
        "model": cell.model,
        "ru": rounded(cell.ru, 100.0),
        "published_ru": cell.published_ru.map(number),
        "requests": rounded(cell.requests, 100.0),
        "partitions": cell.partitions,
        "p50_ms": rounded(cell.p50_ms, 1000.0),
        "p95_ms": rounded(cell.p95_ms, 1000.0),
        "p99_ms": rounded(cell.p99_ms, 1000.0),
        "published_ms": cell.published_ms.map(number),
    });
    if let Some(expected) = cell.expected_ru {
        out["expected_ru"] = number(expected);
    }
    if let Some(because) = &cell.because {
        out["because"] = json!(because);
    }
    if let (Some(bar), Some(is_met)) = (cell.bar_ms, cell.meets_bar()) {
        out["bar_ms"] = rounded(bar, 1000.0);
        out["meets_bar"] = json!(is_met);
    }
    if let Some(lag) = cell.lag_ms {
        out["propagation_ru"] = rounded(cell.propagation_ru, 100.0);
        out["propagation_ms"] = rounded(lag, 1000.0);
    }
    if !cell.receipt.is_empty() {
        out["executions"] = json!(cell.executions);
        out["units"] = json!(cell.receipt.total().raw());
        out["receipt"] = cell.receipt.to_json(cell.executions);
    }
    if !cell.copies_receipt.is_empty() {
        out["propagation_units"] = json!(cell.copies_receipt.total().raw());
        out["propagation_receipt"] = cell.copies_receipt.to_json(cell.executions);
    }
    out
}

/// The value below which a share of the values lies (nearest rank); 0 of none.
pub fn percentile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles() {
        let hundred: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        let check = |values: &[f64], share, expect| assert_eq!(percentile(values, share), expect);
        check(&hundred, 0.5, 50.0);
        check(&hundred, 0.95, 95.0);
        check(&hundred, 0.99, 99.0);
        check(&hundred, 1.0, 100.0);
        check(&hundred, 0.0, 1.0);
        check(&[7.0], 0.5, 7.0);
        check(&[1.0, 2.0, 3.0], 0.5, 2.0);
        check(&[], 0.5, 0.0);
    }

    #[test]
    fn json_has_the_promised_keys() {
        let cell = Cell {
            pattern: "Q3".into(),
            model: "v2".into(),
            ru: 201.504,
            published_ru: Some(201.54),
            requests: 1.0,
            partitions: 75,
            p50_ms: 1.2,
            published_ms: Some(28.0),
            ..Cell::default()
        };
        let copied = Cell { lag_ms: Some(1.5), propagation_ru: 10.0, ..cell.clone() };
        let cells = vec![cell, copied];
        let results =
            Results { workload: "w".into(), scale: 1.0, seed: 7, cells, ..Results::default() };
        let expect = r#"{"workload":"w","scale":1,"seed":7,"cells":[{"pattern":"Q3","model":"v2","ru":201.5,"published_ru":201.54,"requests":1,"partitions":75,"p50_ms":1.2,"p95_ms":0,"p99_ms":0,"published_ms":28},"#;
        let text = results.to_json().to_string();
        assert!(text.starts_with(expect), "{text}");
        let copied = r#""published_ms":28,"propagation_ru":10,"propagation_ms":1.5}],"models":[],"#;
        assert!(text.contains(copied), "{text}");
    }

    #[test]
    fn json_of_what_a_cell_is_compared_with() {
        let cell = Cell {
            p50_ms: 2.8,
            published_ms: Some(28.0),
            expected_ru: Some(200.38),
            because: Some("it is another".into()),
            bar_ms: Some(2.8),
            ..Cell::default()
        };
        let check = |cell: &Cell, expect: &str| {
            let text = cell_json(cell).to_string();
            assert!(text.ends_with(expect), "{text}");
        };
        let compared = r#""expected_ru":200.38,"because":"it is another","bar_ms":2.8,"#;
        check(&cell, &format!(r#"{compared}"meets_bar":true}}"#));
        let slower = Cell { p50_ms: 2.801, ..cell };
        check(&slower, &format!(r#"{compared}"meets_bar":false}}"#));
        check(&Cell::default(), r#""published_ms":null}"#);
    }
}
