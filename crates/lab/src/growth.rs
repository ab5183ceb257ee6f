//! Growth: the patterns that read, on the same application with more and more data.
//!
//! Every scale has a server of its own, so that no data takes cache from other data. All are
//! loaded first; then scales and models take turns in each pattern, as models do in a run.
//!
//! ELSEWHERE  Loading: `run`. Turns and cells: `measure`.

use serde_json::{Value, json};

use crate::Error;
use crate::expression::number;
use crate::measure::measure_plainly;
use crate::results::{Cell, rounded};
use crate::run::{Counted, Run};
use crate::table::{columns, ms, ru};

/// Patterns on data of several sizes.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)]
pub struct Growth {
    pub workload: String,
    pub seed: u64,
    /// As they were asked for.
    pub scales: Vec<f64>,
    /// By pattern, then by model.
    pub rows: Vec<Row>,
}

/// One pattern in one model.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// A cell for each scale.
    pub cells: Vec<Cell>,
}

impl Growth {
    /// Measures the same workload at several scales: one run for each, on servers of their own.
    pub async fn measure(runs: &[Run]) -> Result<Growth, Error> {
        let mut places = Vec::new();
        for run in runs {
            places.extend(run.prepare().await?.1);
            run.settle().await?;
        }
        let Some(first) = runs.first() else { return Ok(Growth::default()) };
        let mut rows = Vec::new();
        let (reads, _) = first.data.workload.reads_and_writes();
        first.watch.begin("measure", Counted::Patterns, reads.len() as u64);
        for (done, at) in reads.iter().enumerate() {
            let cells = measure_plainly(&mut places, *at).await?;
            rows.extend(
                (0..first.models.len()).map(|model| row(&cells, model, first.models.len())),
            );
            first.watch.set(done as u64 + 1);
        }
        first.watch.end();
        for place in places {
            place.stop().await?;
        }
        Ok(Growth {
            workload: first.data.workload.name.clone(),
            seed: first.data.seed,
            scales: runs.iter().map(|run| run.data.scale).collect(),
            rows,
        })
    }

    /// What `--json` writes.
    pub fn to_json(&self) -> Value {
        json!({
            "workload": self.workload,
            "seed": self.seed,
            "scales": self.scales.iter().copied().map(number).collect::<Vec<_>>(),
            "cells": self.rows.iter().map(Row::to_json).collect::<Vec<_>>(),
        })
    }

    /// The table: p50 and RU at each scale, and how many times the last is the first.
    pub fn table(&self) -> String {
        let at = |unit: &str| {
            let head = move |scale: &f64| format!("{unit} at {scale}");
            self.scales.iter().map(head).collect::<Vec<_>>()
        };
        let names = vec![String::new(), "model".to_owned()];
        let growth = vec!["growth".to_owned()];
        let mut rows = vec![[names, at("p50 ms"), growth.clone(), at("RU"), growth].concat()];
        let mut last = "";
        for row in &self.rows {
            rows.push(row.texts(row.pattern() != last));
            last = row.pattern();
        }
        columns(&rows, 2)
    }

    /// Patterns whose p50 grows more than so many times, in sentences.
    pub fn beyond(&self, limit: f64) -> Vec<String> {
        let sentence = |row: &Row| {
            let (pattern, model) = (row.pattern(), row.model());
            format!("the p50 of {pattern} in {model} grows {:.2} times", row.p50_growth())
        };
        let grows = |row: &&Row| row.p50_growth() > limit;
        self.rows.iter().filter(grows).map(sentence).collect()
    }
}

/// The cells of one model; those of all scales follow each other.
fn row(cells: &[Cell], model: usize, models: usize) -> Row {
    Row { cells: cells.iter().skip(model).step_by(models).cloned().collect() }
}

impl Row {
    /// The pattern.
    pub fn pattern(&self) -> &str {
        self.cells.first().map_or("", |cell| &cell.pattern)
    }

    /// The model.
    pub fn model(&self) -> &str {
        self.cells.first().map_or("", |cell| &cell.model)
    }

    /// How many times the p50 at the last scale is that at the first.
    pub fn p50_growth(&self) -> f64 {
        self.growth(|cell| cell.p50_ms)
    }

    /// How many times the charge at the last scale is that at the first.
    pub fn ru_growth(&self) -> f64 {
        self.growth(|cell| cell.ru)
    }

    fn growth(&self, value: impl Fn(&Cell) -> f64) -> f64 {
        match (self.cells.first().map(&value), self.cells.last().map(&value)) {
            (Some(first), Some(last)) if first > 0.0 => last / first,
            (_, _) => 1.0,
        }
    }

    fn texts(&self, is_first: bool) -> Vec<String> {
        let pattern = if is_first { self.pattern() } else { "" };
        let mut texts = vec![pattern.to_owned(), self.model().to_owned()];
        texts.extend(self.cells.iter().map(|cell| ms(cell.p50_ms)));
        texts.push(format!("{:.2}", self.p50_growth()));
        texts.extend(self.cells.iter().map(|cell| ru(cell.ru)));
        texts.push(format!("{:.2}", self.ru_growth()));
        texts
    }

    fn to_json(&self) -> Value {
        let of = |value: &dyn Fn(&Cell) -> Value| self.cells.iter().map(value).collect::<Vec<_>>();
        json!({
            "pattern": self.pattern(),
            "model": self.model(),
            "p50_ms": of(&|cell| rounded(cell.p50_ms, 1000.0)),
            "p95_ms": of(&|cell| rounded(cell.p95_ms, 1000.0)),
            "p99_ms": of(&|cell| rounded(cell.p99_ms, 1000.0)),
            "p50_growth": rounded(self.p50_growth(), 1000.0),
            "ru": of(&|cell| rounded(cell.ru, 100.0)),
            "ru_growth": rounded(self.ru_growth(), 1000.0),
            "requests": of(&|cell| rounded(cell.requests, 100.0)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn growth() -> Growth {
        let cell = |model: &str, p50_ms, ru| Cell {
            pattern: "Q3".into(),
            model: model.into(),
            p50_ms,
            ru,
            requests: 1.0,
            ..Cell::default()
        };
        // As patterns are measured: all models at one scale, then at the next.
        let cells =
            [cell("a", 1.0, 5.0), cell("b", 2.0, 7.0), cell("a", 1.5, 5.0), cell("b", 8.0, 70.0)];
        let rows = (0..2).map(|model| row(&cells, model, 2)).collect();
        Growth { workload: "w".into(), seed: 1, scales: vec![0.001, 0.01], rows }
    }

    #[test]
    fn the_last_scale_beside_the_first() {
        let table = growth().table();
        let words: Vec<Vec<&str>> =
            table.lines().map(|line| line.split_whitespace().collect()).collect();
        let head = "model p50 ms at 0.001 p50 ms at 0.01 growth RU at 0.001 RU at 0.01 growth";
        assert_eq!(words[0].join(" "), head);
        assert_eq!(words[2], ["Q3", "a", "1.00", "1.50", "1.50", "5.00", "5.00", "1.00"]);
        assert_eq!(words[3], ["b", "2.00", "8.00", "4.00", "7.00", "70.00", "10.00"]);
    }

    #[test]
    fn json() {
        let json = growth().to_json();
        assert_eq!(json["scales"].to_string(), "[0.001,0.01]");
        let b = r#"{"pattern":"Q3","model":"b","p50_ms":[2,8],"p95_ms":[0,0],"p99_ms":[0,0],"p50_growth":4,"ru":[7,70],"ru_growth":10,"requests":[1,1]}"#;
        assert_eq!(json["cells"][1].to_string(), b);
    }

    #[test]
    fn limits() {
        let growth = growth();
        assert!(growth.beyond(4.0).is_empty(), "at the limit");
        assert_eq!(growth.beyond(3.99), ["the p50 of Q3 in b grows 4.00 times"]);
        assert_eq!(growth.beyond(1.49).len(), 2);
        assert_eq!(Row::default().p50_growth(), 1.0);
    }
}
