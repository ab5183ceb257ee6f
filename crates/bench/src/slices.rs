//! Two sides that take turns, and what their slices come to.
//!
//! ```text
//! A B  B A  A B  …      whoever goes first alternates, so a drift of the machine favors nobody
//! ```

use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};

use crate::load::Outcome;

/// How long slices are and how many each side gets.
#[derive(Clone, Copy, Debug)]
pub struct Turns {
    /// One slice.
    pub time: Duration,
    /// Slices of each side.
    pub count: usize,
}

/// One slice of one side.
#[derive(Clone, Debug)]
pub struct Slice {
    /// What the load generator saw.
    pub outcome: Outcome,
    /// CPU the measured process spent, in seconds.
    pub server_cpu: f64,
    /// CPU the load generator spent, in seconds.
    pub load_cpu: f64,
}

/// Something that can be loaded for a slice.
pub trait Side {
    /// Loads it for a time.
    fn slice(&self, time: Duration) -> impl Future<Output = Result<Slice>>;
}

/// Medians over the slices of a side.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Requests per second, slice by slice.
    pub rates: Vec<f64>,
    /// Median of the rates.
    pub rate: f64,
    /// Median of the medians, in microseconds.
    pub p50_us: f64,
    /// Median of the 99th percentiles, in microseconds.
    pub p99_us: f64,
    /// CPU of the measured process per request, in microseconds.
    pub server_cpu_us: f64,
    /// CPU of the load generator per request, in microseconds.
    pub load_cpu_us: f64,
}

/// Lets two sides take turns.
pub async fn alternate(
    turns: Turns,
    one: &impl Side,
    other: &impl Side,
) -> Result<(Summary, Summary)> {
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for turn in 0..turns.count {
        if turn % 2 == 0 {
            first.push(one.slice(turns.time).await?);
            second.push(other.slice(turns.time).await?);
        } else {
            second.push(other.slice(turns.time).await?);
            first.push(one.slice(turns.time).await?);
        }
    }
    Ok((Summary::of(&first), Summary::of(&second)))
}

impl Summary {
    fn of(slices: &[Slice]) -> Summary {
        let each = |value: fn(&Slice) -> f64| slices.iter().map(value).collect::<Vec<f64>>();
        let rates = each(|slice| slice.outcome.rate());
        let per_request = |cpu: fn(&Slice) -> f64| {
            let requests: u64 = slices.iter().map(|slice| slice.outcome.requests).sum();
            each(cpu).iter().sum::<f64>() * 1e6 / (requests as f64).max(1.0)
        };
        Summary {
            rate: median(&rates),
            rates,
            p50_us: median(&each(|slice| f64::from(slice.outcome.percentile(50.0)))),
            p99_us: median(&each(|slice| f64::from(slice.outcome.percentile(99.0)))),
            server_cpu_us: per_request(|slice| slice.server_cpu),
            load_cpu_us: per_request(|slice| slice.load_cpu),
        }
    }

    /// Our rate as a part of the other's: the median over the turns, so that what disturbs one
    /// turn disturbs both sides of it.
    pub fn ratio_to(&self, other: &Summary) -> f64 {
        let pairs = self.rates.iter().zip(&other.rates);
        median(&pairs.map(|(ours, theirs)| ours / theirs.max(1e-9)).collect::<Vec<f64>>())
    }

    /// For the machine-readable report.
    pub fn to_json(&self) -> Value {
        let round = |number: f64| (number * 10.0).round() / 10.0;
        json!({
            "per_second": round(self.rate),
            "slices_per_second": self.rates.iter().map(|rate| round(*rate)).collect::<Vec<_>>(),
            "p50_us": round(self.p50_us),
            "p99_us": round(self.p99_us),
            "server_cpu_us_per_request": round(self.server_cpu_us),
            "load_cpu_us_per_request": round(self.load_cpu_us),
        })
    }
}

/// The middle of some numbers; 0 if there are none.
pub fn median(numbers: &[f64]) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        length if length % 2 == 1 => sorted[length / 2],
        length => (sorted[length / 2 - 1] + sorted[length / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        let check = |numbers: &[f64], expect: f64| assert_eq!(median(numbers), expect);
        check(&[], 0.0);
        check(&[3.0], 3.0);
        check(&[3.0, 1.0], 2.0);
        check(&[9.0, 1.0, 2.0], 2.0);
    }
}
