//! Weighted totals, and where the cheapest model changes. Arithmetic on measured cells.
//!
//! INVARIANTS
//! (M1) A crossing is where one model becomes cheaper than the one that was cheapest; models that
//!      cross above the cheapest do not matter.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::expression::{Each, Expression, Path, Scope, Visit};
use crate::results::{Crossing, Results, SweepResult};
use crate::workload::{Over, Sweep, Workload};

/// Points of a curve.
const POINTS: usize = 121;
/// The share of an even axis in whose beginning a crossing would be hard to see.
const EARLY: f64 = 0.1;
/// Halvings between two points, until a crossing is exact enough.
const HALVINGS: usize = 40;

/// Drivers as names of expressions.
struct Drivers<'a>(&'a BTreeMap<String, f64>);

impl Scope for Drivers<'_> {
    fn get(&self, path: &Path) -> Result<Value, String> {
        let value = self.0.get(&path.root).ok_or_else(|| format!("no driver `{}`", path.root))?;
        Ok(Value::from(*value))
    }

    fn each(&self, each: &Each, _: &mut dyn FnMut(&dyn Scope) -> Visit) -> Visit {
        Err(format!("`{}` is a number", each.path.root))
    }
}

/// How often a pattern happens.
pub fn weight(expression: &Expression, drivers: &BTreeMap<String, f64>) -> f64 {
    number_of(expression, drivers).unwrap_or(0.0)
}

/// The value of an expression over drivers, or why it has none.
pub(crate) fn number_of(
    expression: &Expression,
    drivers: &BTreeMap<String, f64>,
) -> Result<f64, String> {
    let value = expression.evaluate(&Drivers(drivers))?;
    value.as_f64().ok_or_else(|| format!("a weight is a number, not {value}"))
}

/// Charges measured at points of a count: by pattern and model, (count, RU).
pub type Measured = BTreeMap<(usize, usize), Vec<(f64, f64)>>;

/// The curves of a sweep; `measured` is what was measured for it, if it is over a count.
pub fn sweep(
    workload: &Workload,
    results: &Results,
    models: &[usize],
    sweep: &Sweep,
    measured: &Measured,
) -> SweepResult {
    let weights = |drivers: &BTreeMap<String, f64>| -> Vec<f64> {
        workload.patterns.iter().map(|pattern| weight(&pattern.weight, drivers)).collect()
    };
    let cell = |pattern: usize, model: usize| {
        let (pattern, model) = (&workload.patterns[pattern].id, &workload.models[model].id);
        results.cell(pattern, model).map_or(0.0, |cell| cell.total_ru())
    };
    let total = |weights: &[f64], model: usize, x: f64| -> f64 {
        let cost = |(pattern, weight): (usize, &f64)| {
            let ru = match measured.get(&(pattern, model)) {
                Some(points) => interpolate(points, x),
                None => cell(pattern, model),
            };
            weight * ru
        };
        weights.iter().enumerate().map(cost).sum()
    };
    let costs = |x: f64| -> Vec<f64> {
        let drivers = match &sweep.over {
            Over::Driver { name, .. } => {
                let mut drivers = workload.drivers.clone();
                drivers.insert(name.clone(), x);
                drivers
            }
            Over::Count { .. } => workload.drivers.clone(),
        };
        let weights = weights(&drivers);
        models.iter().map(|model| total(&weights, *model, x)).collect()
    };
    let (from, to, now) = bounds(workload, &sweep.over);
    let mut is_log = sweep.is_log && from > 0.0;
    let mut xs = spread(from, to, is_log);
    let is_early = |crossing: &Crossing| crossing.x - from < (to - from) * EARLY;
    if from >= 0.0 && !is_log && crossings(&xs, &costs).iter().any(is_early) {
        is_log = true;
        xs = spread(from, to, is_log);
    }
    let rows: Vec<Vec<f64>> = xs.iter().map(|x| costs(*x)).collect();
    let curve = |model: usize| rows.iter().map(|row| row[model]).collect();
    SweepResult {
        id: sweep.id.clone(),
        title: sweep.title.clone(),
        is_log,
        now,
        curves: (0..models.len()).map(curve).collect(),
        crossings: crossings(&xs, &costs),
        xs,
    }
}

fn bounds(workload: &Workload, over: &Over) -> (f64, f64, Option<f64>) {
    match over {
        Over::Driver { name, from, to } => (*from, *to, workload.drivers.get(name).copied()),
        Over::Count { sample, points } => {
            let at = |point: Option<&(u64, usize)>| point.map_or(0.0, |(count, _)| *count as f64);
            let child = points.first().and_then(|(count, other)| {
                let counts = &workload.samples[*other].counts;
                counts.iter().rev().find(|(_, known)| known == count).map(|(child, _)| *child)
            });
            let counts = &workload.samples[*sample].counts;
            let now = counts.iter().find(|(entity, _)| Some(*entity) == child);
            (at(points.first()), at(points.last()), now.map(|(_, count)| *count as f64))
        }
    }
}

/// Points from one number to another, evenly or by equal factors; from 0, by equal factors of what
/// is one more.
fn spread(from: f64, to: f64, is_log: bool) -> Vec<f64> {
    let at = |n: usize| {
        let share = n as f64 / (POINTS - 1) as f64;
        match is_log {
            true if from > 0.0 => from * (to / from).powf(share),
            true => (share * to.ln_1p()).exp_m1(),
            false => from + (to - from) * share,
        }
    };
    (0..POINTS).map(at).collect()
}

/// A value between measured points; beyond them, that of the last.
pub fn interpolate(points: &[(f64, f64)], x: f64) -> f64 {
    let above = points.partition_point(|(at, _)| *at < x);
    match (points.get(above.wrapping_sub(1)), points.get(above)) {
        (Some(a), Some(b)) => a.1 + (b.1 - a.1) * (x - a.0) / (b.0 - a.0),
        (Some(only), None) | (None, Some(only)) => only.1,
        (None, None) => 0.0,
    }
}

/// Where the cheapest model changes along rising points (M1).
pub fn crossings(xs: &[f64], costs: &dyn Fn(f64) -> Vec<f64>) -> Vec<Crossing> {
    let mut found = Vec::new();
    for pair in xs.windows(2) {
        let (mut low, mut high) = (pair[0], pair[1]);
        let (below, above) = (cheapest(&costs(low)), cheapest(&costs(high)));
        if below == above {
            continue;
        }
        for _ in 0..HALVINGS {
            let middle = (low + high) / 2.0;
            let row = costs(middle);
            match row[below] <= row[above] {
                true => low = middle,
                false => high = middle,
            }
        }
        found.push(Crossing { x: high, cost: costs(high)[above], below, above });
    }
    found
}

/// The cheapest; the first of equal ones.
fn cheapest(costs: &[f64]) -> usize {
    let better = |best: usize, at: usize| if costs[at] < costs[best] { at } else { best };
    (0..costs.len()).fold(0, better)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crossing_is_exact() {
        // Two straight lines: 100 and 10 + 3x cross at 30.
        let costs = |x: f64| vec![100.0, 10.0 + 3.0 * x];
        let found = crossings(&spread(0.0, 100.0, false), &costs);
        assert_eq!(found.len(), 1);
        assert!((found[0].x - 30.0).abs() < 1e-6, "{found:?}");
        assert!((found[0].cost - 100.0).abs() < 1e-6);
        assert_eq!((found[0].below, found[0].above), (1, 0));
        let logarithmic = crossings(&spread(1.0, 1000.0, true), &costs);
        assert!((logarithmic[0].x - 30.0).abs() < 1e-6);
        let from_zero = spread(0.0, 1000.0, true);
        assert!(from_zero[0] == 0.0 && (from_zero[POINTS - 1] - 1000.0).abs() < 1e-6);
        assert!((crossings(&from_zero, &costs)[0].x - 30.0).abs() < 1e-6);
    }

    #[test]
    fn only_the_cheapest_matters() {
        // The second and third cross above the first: nobody cares.
        let costs = |x: f64| vec![1.0, 50.0, x];
        assert!(crossings(&spread(10.0, 90.0, false), &costs).is_empty()); // M1
        let three = |x: f64| vec![x, 20.0 + x / 2.0, 60.0];
        let found = crossings(&spread(0.0, 200.0, false), &three);
        let pairs: Vec<_> = found.iter().map(|one| (one.below, one.above)).collect();
        assert_eq!(pairs, [(0, 1), (1, 2)]);
        assert!((found[0].x - 40.0).abs() < 1e-6 && (found[1].x - 80.0).abs() < 1e-6);
        let equal = |_: f64| vec![5.0, 5.0];
        assert!(crossings(&spread(0.0, 1.0, false), &equal).is_empty());
    }

    #[test]
    fn between_and_beyond_points() {
        let points = [(0.0, 1.0), (10.0, 2.0), (20.0, 10.0)];
        for (x, expect) in [(0.0, 1.0), (5.0, 1.5), (10.0, 2.0), (15.0, 6.0), (99.0, 10.0)] {
            assert_eq!(interpolate(&points, x), expect, "{x}");
        }
        assert_eq!(interpolate(&[], 1.0), 0.0);
    }

    #[test]
    fn weights_are_expressions_over_drivers() {
        let drivers = BTreeMap::from([("reads".to_owned(), 100.0)]);
        let expression = Expression::parse("reads / 4 + 1").unwrap();
        assert_eq!(weight(&expression, &drivers), 26.0);
        assert_eq!(weight(&expression, &BTreeMap::new()), 0.0);
    }
}
