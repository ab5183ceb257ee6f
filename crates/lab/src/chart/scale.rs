//! Scales: from values to places, and the numbers on an axis.

use std::fmt::Write;

use super::text;

/// How far numbers beside each other are apart, at least.
const GAP_ACROSS: f64 = 46.0;
/// How far numbers above each other are apart, at least.
const GAP_UPWARDS: f64 = 24.0;

/// How a scale grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// By equal steps.
    Linear,
    /// By equal factors.
    Log,
    /// By equal factors, but for a beginning at 0.
    LogFromZero,
}

/// A scale from values to places.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// The value where it begins.
    pub from: f64,
    /// The value where it ends.
    pub to: f64,
    /// The place of the first value.
    pub left: f64,
    /// The place of the last value.
    pub right: f64,
    /// How it grows.
    pub kind: Kind,
}

impl Scale {
    /// The place of a value.
    pub fn at(&self, value: f64) -> f64 {
        let place = |value: f64| match self.kind {
            Kind::Linear => value,
            Kind::Log => value.max(1e-9).log10(),
            Kind::LogFromZero => value.max(0.0).ln_1p(),
        };
        let (from, to) = (place(self.from), place(self.to));
        let share = if to > from { (place(value) - from) / (to - from) } else { 0.5 };
        self.left + share.clamp(-0.02, 1.02) * (self.right - self.left)
    }

    /// The next 1, 2 or 5 times a power of ten around values.
    pub fn around(values: impl Iterator<Item = f64>, left: f64, right: f64) -> Scale {
        let (low, high) = bounds(values);
        let to = round_step(high).max(round_step(low * 2.0));
        let below = 10f64.powf(low.log10().floor());
        let from = [5.0, 2.0, 1.0].into_iter().map(|n| n * below).find(|from| *from <= low);
        Scale { from: from.unwrap_or(below), to, left, right, kind: Kind::Log }
    }

    /// Places for grid lines: (value, whether it has a number). Numbers keep their distance.
    pub fn ticks(&self) -> Vec<(f64, bool)> {
        let mut ticks = match self.kind {
            Kind::Linear => self.steps(),
            Kind::Log | Kind::LogFromZero => self.powers(),
        };
        ticks.retain(|(value, _)| (self.from * 0.999..=self.to * 1.001).contains(value));
        if self.kind != Kind::Linear {
            self.number_more(&mut ticks);
        }
        ticks
    }

    /// Where powers of ten leave room for all of them, doubles and halves have numbers as well;
    /// and so have both ends.
    fn number_more(&self, ticks: &mut Vec<(f64, bool)>) {
        // Values grow upwards, places downwards.
        let gap = if self.left > self.right { GAP_UPWARDS } else { GAP_ACROSS };
        let apart = |a: f64, b: f64| (self.at(a) - self.at(b)).abs();
        let least = ticks.windows(2).map(|pair| apart(pair[0].0, pair[1].0));
        if least.fold(f64::INFINITY, f64::min) >= gap {
            ticks.iter_mut().for_each(|tick| tick.1 = true);
        }
        for end in [self.from, self.to] {
            if !ticks.iter().any(|tick| tick.1 && apart(tick.0, end) < gap) {
                ticks.push((end, true));
            }
        }
    }

    fn steps(&self) -> Vec<(f64, bool)> {
        let step = round_step((self.to - self.from) / 5.0);
        let first = (self.from / step).ceil() as i64;
        let last = (self.to / step + 1e-9).floor() as i64;
        (first..=last).map(|n| (n as f64 * step, true)).collect()
    }

    fn powers(&self) -> Vec<(f64, bool)> {
        let (mut ticks, mut power) = match self.kind {
            Kind::LogFromZero => (vec![(0.0, true)], 1.0),
            Kind::Linear | Kind::Log => (Vec::new(), 10f64.powf(self.from.log10().floor())),
        };
        while power <= self.to * 1.0001 {
            ticks.extend([(power, true), (power * 2.0, false), (power * 5.0, false)]);
            power *= 10.0;
        }
        ticks
    }

    /// Lines across a chart at the ticks, with their numbers above.
    pub fn grid(&self, top: f64, bottom: f64) -> String {
        let mut svg = String::new();
        for (value, has_number) in self.ticks() {
            let (x, minor) = (self.at(value), if has_number { "" } else { " minor" });
            // Writing to memory cannot fail.
            let _ = write!(
                svg,
                r#"<line class="grid{minor}" x1="{x:.1}" x2="{x:.1}" y1="{top}" y2="{bottom:.1}"/>"#
            );
            if has_number {
                let number = number(value);
                svg += &text("small soft", (x, top - 6.0), "middle", &number, &number);
            }
        }
        svg
    }
}

/// The least and the greatest of positive values.
fn bounds(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let start = (f64::INFINITY, 0f64);
    let positive = values.filter(|value| *value > 0.0);
    let (low, high) = positive.fold(start, |(low, high), value| (low.min(value), high.max(value)));
    if low.is_finite() { (low, high) } else { (1.0, 10.0) }
}

/// A step of 1, 2 or 5 times a power of ten, not below a value.
fn round_step(step: f64) -> f64 {
    let power = 10f64.powf(step.max(1e-9).log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| step <= power * factor * 1.0001);
    power * factor.unwrap_or(10.0)
}

/// A number on an axis.
pub fn number(value: f64) -> String {
    let short = |value: f64, unit: &str| format!("{}{unit}", (value * 1e6).round() / 1e6);
    match value {
        v if v >= 1e9 => format!("{}M", crate::table::grouped((v / 1e6).round() as u64)),
        v if v >= 1e6 => short(v / 1e6, "M"),
        v if v >= 1e3 => short(v / 1e3, "k"),
        v => short(v, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(scale: &Scale) -> Vec<String> {
        let mut ticks: Vec<f64> =
            scale.ticks().iter().filter(|tick| tick.1).map(|tick| tick.0).collect();
        ticks.sort_by(f64::total_cmp);
        ticks.into_iter().map(number).collect()
    }

    #[test]
    fn places() {
        let scale = Scale { from: 1.0, to: 1000.0, left: 0.0, right: 300.0, kind: Kind::Log };
        assert_eq!(scale.at(10.0).round(), 100.0);
        assert_eq!(numbers(&scale), ["1", "10", "100", "1k"]);
        let wide = Scale { right: 900.0, ..scale };
        assert_eq!(numbers(&wide), ["1", "2", "5", "10", "20", "50", "100", "200", "500", "1k"]);
        let upwards = Scale { from: 200.0, left: 300.0, right: 0.0, to: 100_000.0, ..scale };
        let expect = ["200", "500", "1k", "2k", "5k", "10k", "20k", "50k", "100k"];
        assert_eq!(numbers(&upwards), expect);
        let low = Scale { left: 200.0, ..upwards };
        assert_eq!(numbers(&low), ["200", "1k", "10k", "100k"], "both ends");
    }

    #[test]
    fn close_around_values() {
        let around = |values: [f64; 2]| {
            let scale = Scale::around(values.into_iter(), 0.0, 300.0);
            (scale.from, scale.to)
        };
        assert_eq!(around([2_540.0, 55_104.0]), (2_000.0, 100_000.0));
        assert_eq!(around([5.0, 20.0]), (5.0, 20.0));
        assert_eq!(around([7.0, 7.0]), (5.0, 20.0));
    }

    #[test]
    fn axes() {
        let linear = Scale { from: 0.0, to: 100.0, left: 0.0, right: 10.0, kind: Kind::Linear };
        assert_eq!(numbers(&linear), ["0", "20", "40", "60", "80", "100"]);
        let zero = Scale { to: 500.0, right: 600.0, kind: Kind::LogFromZero, ..linear };
        assert_eq!(numbers(&zero), ["0", "1", "10", "100", "500"]);
        let wide = Scale { right: 900.0, ..zero };
        assert_eq!(numbers(&wide), ["0", "1", "2", "5", "10", "20", "50", "100", "200", "500"]);
        assert_eq!(zero.at(0.0), 0.0);
        let log = Scale { from: 1.0, to: 700.0, left: 0.0, right: 200.0, kind: Kind::Log };
        assert_eq!(numbers(&log), ["1", "10", "100", "700"], "an end has its number");
        let texts = [0.001, 1.0, 2000.0, 5e6, 2e9].map(number);
        assert_eq!(texts, ["0.001", "1", "2k", "5M", "2,000M"]);
    }
}
