//! Curves: totals along something that varies, with a mark where the cheapest model changes.

use std::fmt::Write;

use super::scale::{Kind, Scale, number};
use super::words::{SIZE, SMALL, bold_width, shortened, width};
use super::{WIDTH, escape, open, text};
use crate::results::{Crossing, SweepResult};
use crate::table::short;

const HEIGHT: f64 = 370.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 330.0;
/// What names of models may take, at most.
const NAMES_MAX: f64 = 150.0;
/// The height of a line of text.
const LINE: f64 = 15.0;

/// A curve for each model; `unit` is what they are measured in.
pub fn curves(sweep: &SweepResult, models: &[&str], unit: &str) -> String {
    let plot = Plot::of(sweep, models);
    let mut svg = open(HEIGHT, &sweep.title);
    svg += &plot.axes(unit);
    let mut taken = Vec::new();
    if let Some(now) = sweep.now.filter(|now| (plot.x.from..=plot.x.to).contains(now)) {
        svg += &plot.now(now, &mut taken);
    }
    svg += &plot.lines(sweep, models);
    for crossing in &sweep.crossings {
        svg += &plot.crossing(crossing, models, &mut taken);
    }
    svg + "</svg>"
}

/// The two scales.
struct Plot {
    x: Scale,
    y: Scale,
    names: f64,
}

/// A piece of a chart that text stands on.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Area {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Area {
    fn meets(&self, other: &Area) -> bool {
        let apart = self.right <= other.left || other.right <= self.left;
        !(apart || self.bottom <= other.top || other.bottom <= self.top)
    }
}

impl Plot {
    fn of(sweep: &SweepResult, models: &[&str]) -> Plot {
        let (from, to) = match (sweep.xs.first(), sweep.xs.last()) {
            (Some(from), Some(to)) => (*from, *to),
            (Some(_), None) | (None, Some(_)) | (None, None) => (0.0, 1.0),
        };
        let y = Scale::around(sweep.curves.iter().flatten().copied(), BOTTOM, TOP);
        let numbers = y.ticks().into_iter().filter(|tick| tick.1).map(|tick| number(tick.0));
        let numbers = numbers.map(|number| width(&number, SMALL)).fold(0.0, f64::max);
        let names = models.iter().map(|id| width(id, SMALL)).fold(0.0, f64::max).min(NAMES_MAX);
        let kind = match (sweep.is_log, from > 0.0) {
            (false, _) => Kind::Linear,
            (true, true) => Kind::Log,
            (true, false) => Kind::LogFromZero,
        };
        let (left, right) = (numbers + 14.0, WIDTH - names - 14.0);
        Plot { x: Scale { from, to, left, right, kind }, y, names }
    }

    fn axes(&self, unit: &str) -> String {
        let (left, right) = (self.x.left, self.x.right);
        let mut svg = text("small soft", (0.0, TOP - 20.0), "start", unit, unit);
        for (value, has_number) in self.y.ticks() {
            let (y, minor) = (self.y.at(value), if has_number { "" } else { " minor" });
            // Writing to memory cannot fail.
            let _ = write!(
                svg,
                r#"<line class="grid{minor}" x1="{left:.1}" x2="{right:.1}" y1="{y:.1}" y2="{y:.1}"/>"#
            );
            if has_number {
                let number = number(value);
                svg += &text("small soft", (left - 10.0, y + 4.0), "end", &number, &number);
            }
        }
        for (value, _) in self.x.ticks().iter().filter(|(_, has_number)| *has_number) {
            let (x, number) = (self.x.at(*value), number(*value));
            let _ = write!(
                svg,
                r#"<line class="tick" x1="{x:.1}" x2="{x:.1}" y1="{BOTTOM}" y2="{:.1}"/>"#,
                BOTTOM + 5.0
            );
            svg += &text("small soft", (x, BOTTOM + 20.0), "middle", &number, &number);
        }
        svg
    }

    /// A line where things stand.
    fn now(&self, now: f64, taken: &mut Vec<Area>) -> String {
        let (x, room) = (self.x.at(now), width("now", SMALL));
        let fits = x + 6.0 + room < self.x.right;
        let (at, anchor) = if fits { (x + 6.0, "start") } else { (x - 6.0, "end") };
        let left = if fits { at } else { at - room };
        taken.push(Area { left, right: left + room, top: TOP, bottom: TOP + LINE });
        format!(
            r#"<line class="now" x1="{x:.1}" x2="{x:.1}" y1="{TOP}" y2="{BOTTOM}"/>{}"#,
            text("small soft", (at, TOP + 11.0), anchor, "now", "now")
        )
    }

    fn lines(&self, sweep: &SweepResult, models: &[&str]) -> String {
        let last = |curve: &Vec<f64>| self.y.at(curve.last().copied().unwrap_or(1.0));
        let ends: Vec<f64> = sweep.curves.iter().map(last).collect();
        let ends = apart(&ends, LINE, BOTTOM);
        let mut svg = String::new();
        for (at, curve) in sweep.curves.iter().enumerate() {
            let point = |(x, y): (&f64, &f64)| format!("{:.1},{:.1}", self.x.at(*x), self.y.at(*y));
            let points: Vec<String> = sweep.xs.iter().zip(curve).map(point).collect();
            let name = shortened(models[at], self.names, &|words| width(words, SMALL));
            let place = (self.x.right + 10.0, ends[at] + 4.0);
            let _ = write!(
                svg,
                r#"<g data-model="{at}" style="--c:var(--m{})"><polyline class="curve" points="{}"/>{}</g>"#,
                at % 6,
                points.join(" "),
                text("small own", place, "start", &name, models[at])
            );
        }
        svg
    }

    /// A ring, and its number where there is room for it.
    fn crossing(&self, crossing: &Crossing, models: &[&str], taken: &mut Vec<Area>) -> String {
        let (x, y) = (self.x.at(crossing.x), self.y.at(crossing.cost));
        let words = short(crossing.x);
        let half = bold_width(&words, SIZE) / 2.0;
        let middle = x.clamp(self.x.left + half + 4.0, self.x.right - half - 4.0);
        let area = |shift: f64| {
            let bottom = y + shift + 4.0;
            Area { left: middle - half, right: middle + half, top: bottom - LINE - 2.0, bottom }
        };
        let is_free = |shift: &f64| {
            let area = area(*shift);
            let is_inside = area.top > TOP && area.bottom < BOTTOM;
            is_inside && !taken.iter().any(|other| other.meets(&area))
        };
        let shifts = [-14.0, 26.0, -32.0, 44.0, -50.0, 62.0];
        let shift = shifts.into_iter().find(is_free);
        let label =
            shift.map(|shift| text("strong halo", (middle, y + shift), "middle", &words, &words));
        taken.extend(shift.map(area));
        format!(
            r#"<g><title>{} below, {} above {words}</title><circle class="turn" cx="{x:.1}" cy="{y:.1}" r="6"/>{}</g>"#,
            escape(models[crossing.below]),
            escape(models[crossing.above]),
            label.unwrap_or_default()
        )
    }
}

/// Places moved just so far that neighbors keep their distance, and none is below the last.
fn apart(places: &[f64], distance: f64, last: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_by(|a, b| places[*a].total_cmp(&places[*b]));
    let mut moved = places.to_vec();
    let mut least = f64::NEG_INFINITY;
    for at in &order {
        moved[*at] = moved[*at].max(least);
        least = moved[*at] + distance;
    }
    let mut most = last;
    for at in order.iter().rev() {
        moved[*at] = moved[*at].min(most);
        most = moved[*at] - distance;
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_keep_their_distance() {
        assert_eq!(apart(&[10.0, 100.0, 12.0], 14.0, 200.0), [10.0, 100.0, 24.0]);
        assert_eq!(apart(&[5.0, 5.0, 5.0], 10.0, 200.0), [5.0, 15.0, 25.0]);
        assert_eq!(apart(&[95.0, 99.0], 10.0, 100.0), [90.0, 100.0], "none is below the last");
        assert!(apart(&[], 1.0, 1.0).is_empty());
    }

    fn sweep(crossings: &[(f64, f64)]) -> SweepResult {
        let crossing = |&(x, cost): &(f64, f64)| Crossing { x, cost, below: 0, above: 1 };
        SweepResult {
            title: "Comments".into(),
            is_log: true,
            xs: vec![0.0, 10.0, 1000.0],
            curves: vec![vec![100.0, 200.0, 900.0], vec![150.0, 160.0, 170.0]],
            crossings: crossings.iter().map(crossing).collect(),
            now: Some(100.0),
            ..SweepResult::default()
        }
    }

    #[test]
    fn numbers_of_close_marks_stand_apart() {
        let svg = curves(&sweep(&[(10.0, 155.0), (10.5, 156.0), (11.0, 157.0)]), &["a", "b"], "RU");
        let ys: Vec<&str> = svg
            .split("class=\"strong halo\"")
            .skip(1)
            .map(|piece| piece.split("y=\"").nth(1).unwrap().split('"').next().unwrap())
            .collect();
        assert_eq!(ys.len(), 3);
        assert!(ys[0] != ys[1] && ys[1] != ys[2] && ys[0] != ys[2], "{ys:?}");
    }

    #[test]
    fn a_number_stays_off_the_axis() {
        let of = sweep(&[(0.0, 120.0)]);
        let plot = Plot::of(&of, &["a", "b"]);
        let svg = plot.crossing(&of.crossings[0], &["a", "b"], &mut Vec::new());
        let x = svg.split("class=\"strong halo\" x=\"").nth(1).unwrap().split('"').next().unwrap();
        assert!(x.parse::<f64>().unwrap() > plot.x.left, "{svg}");
        assert!(curves(&of, &["a", "b"], "RU per day").contains(">RU per day</text>"));
    }

    #[test]
    fn areas() {
        let area = |left, top| Area { left, right: left + 10.0, top, bottom: top + 10.0 };
        assert!(area(0.0, 0.0).meets(&area(9.0, 9.0)));
        assert!(!area(0.0, 0.0).meets(&area(10.0, 0.0)));
        assert!(!area(0.0, 0.0).meets(&area(0.0, 10.0)));
    }
}
