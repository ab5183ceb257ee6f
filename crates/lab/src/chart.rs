//! Charts as SVG: lollipops on a logarithmic scale, stacked bars, curves.
//!
//! Charts say what belongs to which model by `data-model` and take their colors from the page, so
//! that they follow its theme. Every mark carries its numbers as a title.

use std::fmt::Write;

use crate::results::SweepResult;
use crate::table::short;

/// Width of all charts, in units of their own.
const WIDTH: f64 = 1000.0;
/// Where names of rows end and data begins.
const LEFT: f64 = 250.0;
/// What is kept free for numbers at the right.
const RIGHT: f64 = 90.0;

/// How far marks on curves must be apart for their numbers to stand above them.
const TURN_WIDTH: f64 = 70.0;

/// One row of a chart of lollipops.
pub struct Row {
    /// In bold.
    pub label: String,
    /// Behind it.
    pub title: String,
    /// (value, published value) of each model; a value of 0 is not drawn.
    pub values: Vec<(f64, Option<f64>)>,
}

/// Text for a page: nothing in it is taken for markup.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A scale from values to places.
struct Scale {
    from: f64,
    to: f64,
    left: f64,
    right: f64,
    is_log: bool,
}

impl Scale {
    fn at(&self, value: f64) -> f64 {
        let place = |value: f64| if self.is_log { value.max(1e-9).log10() } else { value };
        let (from, to) = (place(self.from), place(self.to));
        let share = if to > from { (place(value) - from) / (to - from) } else { 0.5 };
        self.left + share.clamp(-0.02, 1.02) * (self.right - self.left)
    }

    /// Whole powers of ten around values.
    fn decades(values: impl Iterator<Item = f64>, left: f64, right: f64) -> Scale {
        let (mut low, mut high) = (f64::INFINITY, 0f64);
        values.filter(|value| *value > 0.0).for_each(|value| {
            low = low.min(value);
            high = high.max(value);
        });
        let (low, high) = if low.is_finite() { (low, high) } else { (1.0, 10.0) };
        let from = 10f64.powf(low.log10().floor());
        let to = 10f64.powf(high.log10().ceil()).max(from * 10.0);
        Scale { from, to, left, right, is_log: true }
    }

    /// Places for grid lines: (value, whether it has a number).
    fn ticks(&self) -> Vec<(f64, bool)> {
        if !self.is_log {
            let step = round_step((self.to - self.from) / 5.0);
            let first = (self.from / step).ceil() as i64;
            let last = (self.to / step + 1e-9).floor() as i64;
            return (first..=last).map(|n| (n as f64 * step, true)).collect();
        }
        let mut ticks = Vec::new();
        let mut power = 10f64.powf(self.from.log10().floor());
        while power <= self.to * 1.0001 {
            ticks.extend([(power, true), (power * 2.0, false), (power * 5.0, false)]);
            power *= 10.0;
        }
        ticks.retain(|(value, _)| (self.from * 0.999..=self.to * 1.001).contains(value));
        ticks
    }
}

/// A step of 1, 2 or 5 times a power of ten.
fn round_step(step: f64) -> f64 {
    let power = 10f64.powf(step.max(1e-9).log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| step <= power * factor);
    power * factor.unwrap_or(10.0)
}

/// A number on an axis.
fn tick_text(value: f64) -> String {
    match value {
        v if v >= 1e9 => format!("{}G", v / 1e9),
        v if v >= 1e6 => format!("{}M", v / 1e6),
        v if v >= 1e3 => format!("{}k", v / 1e3),
        v => format!("{}", (v * 1e6).round() / 1e6),
    }
}

/// A lollipop for each model in each row; rings are published figures.
pub fn lollipops(
    rows: &[Row],
    models: &[&str],
    text: &dyn Fn(f64) -> String,
    unit: &str,
) -> String {
    let lane = 15.0;
    let (top, gap) = (30.0, 14.0);
    let height_of_row = models.len() as f64 * lane + gap;
    let height = top + rows.len() as f64 * height_of_row;
    let values = rows.iter().flat_map(|row| row.values.iter());
    let values = values.flat_map(|(value, published)| [*value, published.unwrap_or(0.0)]);
    let scale = Scale::decades(values, LEFT, WIDTH - RIGHT);
    let mut svg = open(height, unit);
    grid(&mut svg, &scale, top - 8.0, height);
    for (at, row) in rows.iter().enumerate() {
        let y = top + at as f64 * height_of_row;
        let middle = y + (height_of_row - gap) / 2.0;
        let _ = write!(
            svg,
            r#"<text x="0" y="{:.1}" class="strong">{}</text><text x="42" y="{:.1}" class="soft">{}</text>"#,
            middle + 4.0,
            escape(&row.label),
            middle + 4.0,
            escape(&row.title)
        );
        for (model, (value, published)) in row.values.iter().enumerate() {
            let y = y + (model as f64 + 0.5) * lane;
            lollipop(&mut svg, &scale, (model, models[model]), y, (*value, *published), text, unit);
        }
    }
    svg + "</svg>"
}

fn lollipop(
    svg: &mut String,
    scale: &Scale,
    (at, id): (usize, &str),
    y: f64,
    (value, published): (f64, Option<f64>),
    text: &dyn Fn(f64) -> String,
    unit: &str,
) {
    if value <= 0.0 {
        return;
    }
    let x = scale.at(value);
    let said = published.map(|p| format!(", published {}", text(p))).unwrap_or_default();
    let _ = write!(
        svg,
        r#"<g data-model="{at}" style="--c:var(--m{})"><title>{}: {} {unit}{said}</title><line class="stem" x1="{LEFT}" x2="{x:.1}" y1="{y:.1}" y2="{y:.1}"/>"#,
        at % 6,
        escape(id),
        text(value),
    );
    let mut end = x;
    if let Some(published) = published.filter(|published| *published > 0.0) {
        let ring = scale.at(published);
        // The number stands beside its own mark, unless the ring is in the way.
        let is_in_the_way = (x..x + 60.0).contains(&ring);
        end = if is_in_the_way { ring } else { x };
        let _ = write!(svg, r#"<circle class="ring" cx="{ring:.1}" cy="{y:.1}" r="5.5"/>"#);
    }
    let _ = write!(
        svg,
        r#"<circle class="dot" cx="{x:.1}" cy="{y:.1}" r="4"/><text class="small own" x="{:.1}" y="{:.1}">{}</text></g>"#,
        end + 10.0,
        y + 4.0,
        text(value)
    );
}

/// A bar for each model, made of parts: (label, value).
pub fn stacked(models: &[&str], parts: &[Vec<(String, f64)>], unit: &str) -> String {
    let (lane, top) = (54.0, 6.0);
    let height = top + models.len() as f64 * lane;
    let total = |parts: &Vec<(String, f64)>| parts.iter().map(|(_, value)| value).sum::<f64>();
    let most = parts.iter().map(total).fold(0.0, f64::max);
    let left = 60.0;
    let scale = Scale { from: 0.0, to: most.max(1e-9), left, right: WIDTH - 150.0, is_log: false };
    let mut svg = open(height, unit);
    for (at, (id, parts)) in models.iter().zip(parts).enumerate() {
        let y = top + at as f64 * lane;
        let _ =
            write!(svg, r#"<text x="0" y="{:.1}" class="strong">{}</text>"#, y + 26.0, escape(id));
        let _ = write!(svg, r#"<g data-model="{at}" style="--c:var(--m{})">"#, at % 6);
        let mut sum = 0.0;
        for (n, (label, value)) in parts.iter().enumerate() {
            let (from, to) = (scale.at(sum), scale.at(sum + value));
            sum += value;
            let opacity = 1.0 - 0.65 * n as f64 / parts.len().max(1) as f64;
            let _ = write!(
                svg,
                r#"<g><title>{}: {} {unit}</title><rect class="bar" x="{from:.1}" y="{:.1}" width="{:.2}" height="32" style="opacity:{opacity:.2}"/>"#,
                escape(label),
                short(*value),
                y + 5.0,
                (to - from).max(0.0),
            );
            if to - from > 11.0 * label.len() as f64 {
                let _ = write!(
                    svg,
                    r#"<text class="small on" x="{:.1}" y="{:.1}" text-anchor="middle">{}</text>"#,
                    (from + to) / 2.0,
                    y + 25.5,
                    escape(label)
                );
            }
            svg.push_str("</g>");
        }
        let _ = write!(
            svg,
            r#"<text x="{:.1}" y="{:.1}">{}</text></g>"#,
            scale.at(sum) + 10.0,
            y + 26.0,
            short(sum)
        );
    }
    svg + "</svg>"
}

/// A curve for each model; where the cheapest changes there is a mark.
pub fn curves(sweep: &SweepResult, models: &[&str], unit: &str) -> String {
    let (height, top, bottom) = (360.0, 20.0, 320.0);
    let (left, right) = (70.0, WIDTH - 60.0);
    let (from, to) = match (sweep.xs.first(), sweep.xs.last()) {
        (Some(from), Some(to)) => (*from, *to),
        (Some(_), None) | (None, Some(_)) | (None, None) => (0.0, 1.0),
    };
    let horizontal = Scale { from, to, left, right, is_log: sweep.is_log };
    let values = sweep.curves.iter().flatten().copied();
    let vertical = Scale::decades(values, bottom, top);
    let mut svg = open(height, unit);
    for (value, has_number) in vertical.ticks() {
        let (y, minor) = (vertical.at(value), if has_number { "" } else { " minor" });
        let _ = write!(
            svg,
            r#"<line class="grid{minor}" x1="{left}" x2="{right}" y1="{y:.1}" y2="{y:.1}"/>"#
        );
        if has_number {
            let text = tick_text(value);
            let _ = write!(
                svg,
                r#"<text class="small soft" x="{:.1}" y="{:.1}" text-anchor="end">{text}</text>"#,
                left - 10.0,
                y + 4.0
            );
        }
    }
    for (value, _) in horizontal.ticks().iter().filter(|(_, has_number)| *has_number) {
        let (x, text) = (horizontal.at(*value), tick_text(*value));
        let _ = write!(
            svg,
            r#"<text class="small soft" x="{x:.1}" y="{:.1}" text-anchor="middle">{text}</text>"#,
            bottom + 20.0
        );
    }
    if let Some(now) = sweep.now.filter(|now| (from..=to).contains(now)) {
        let x = horizontal.at(now);
        let _ = write!(
            svg,
            r#"<line class="now" x1="{x:.1}" x2="{x:.1}" y1="{top}" y2="{bottom}"/><text class="small soft" x="{:.1}" y="{:.1}">now</text>"#,
            x + 6.0,
            top + 10.0
        );
    }
    let ends = sweep.curves.iter().map(|curve| vertical.at(curve.last().copied().unwrap_or(1.0)));
    let ends = apart(&ends.collect::<Vec<f64>>(), 14.0);
    for (at, curve) in sweep.curves.iter().enumerate() {
        let point =
            |(x, y): (&f64, &f64)| format!("{:.1},{:.1}", horizontal.at(*x), vertical.at(*y));
        let points: Vec<String> = sweep.xs.iter().zip(curve).map(point).collect();
        let _ = write!(
            svg,
            r#"<g data-model="{at}" style="--c:var(--m{})"><polyline class="curve" points="{}"/><text class="small" x="{:.1}" y="{:.1}">{}</text></g>"#,
            at % 6,
            points.join(" "),
            right + 8.0,
            ends[at] + 4.0,
            escape(models[at])
        );
    }
    let turns: Vec<f64> = sweep.crossings.iter().map(|turn| horizontal.at(turn.x)).collect();
    for (at, crossing) in sweep.crossings.iter().enumerate() {
        let (x, y) = (turns[at], vertical.at(crossing.cost));
        let (anchor, shift) = beside(&turns, at);
        let (below, above) = (models[crossing.below], models[crossing.above]);
        let text = short(crossing.x);
        let _ = write!(
            svg,
            r#"<g><title>{} below, {} above {text}</title><circle class="turn" cx="{x:.1}" cy="{y:.1}" r="6"/><text class="strong" x="{:.1}" y="{:.1}" text-anchor="{anchor}">{text}</text></g>"#,
            escape(below),
            escape(above),
            x + shift,
            y - 14.0
        );
    }
    svg + "</svg>"
}

/// Where the number of a mark stands: above it, and away from a neighbor that is close.
fn beside(places: &[f64], at: usize) -> (&'static str, f64) {
    let is_close =
        |other: Option<&f64>| other.is_some_and(|other| (other - places[at]).abs() < TURN_WIDTH);
    let has_left = is_close(at.checked_sub(1).and_then(|before| places.get(before)));
    let has_right = is_close(places.get(at + 1));
    match (has_left, has_right) {
        (false, true) => ("end", 6.0),
        (true, false) => ("start", -6.0),
        (false, false) | (true, true) => ("middle", 0.0),
    }
}

/// Places moved just so far that neighbors keep their distance.
fn apart(places: &[f64], distance: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_by(|a, b| places[*a].total_cmp(&places[*b]));
    let mut moved = places.to_vec();
    let mut least = f64::NEG_INFINITY;
    for at in order {
        moved[at] = moved[at].max(least);
        least = moved[at] + distance;
    }
    moved
}

fn open(height: f64, label: &str) -> String {
    let label = escape(label);
    format!(r#"<svg viewBox="0 0 {WIDTH} {height:.0}" role="img" aria-label="{label}">"#)
}

fn grid(svg: &mut String, scale: &Scale, top: f64, bottom: f64) {
    for (value, has_number) in scale.ticks() {
        let (x, minor) = (scale.at(value), if has_number { "" } else { " minor" });
        // Writing to memory cannot fail.
        let _ = write!(
            svg,
            r#"<line class="grid{minor}" x1="{x:.1}" x2="{x:.1}" y1="{top}" y2="{bottom:.1}"/>"#
        );
        if has_number {
            let text = tick_text(value);
            let _ = write!(
                svg,
                r#"<text class="small soft" x="{x:.1}" y="{:.1}" text-anchor="middle">{text}</text>"#,
                top - 6.0
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_close_marks_stand_apart() {
        let places = [100.0, 169.0, 400.0, 470.0];
        let anchors: Vec<&str> = (0..places.len()).map(|at| beside(&places, at).0).collect();
        assert_eq!(anchors, ["end", "start", "middle", "middle"]);
        assert_eq!(beside(&[1.0, 2.0, 3.0], 1), ("middle", 0.0));
        assert_eq!(beside(&[1.0], 0), ("middle", 0.0));
    }

    #[test]
    fn scales() {
        let scale = Scale::decades([3.0, 250.0].into_iter(), 0.0, 300.0);
        assert_eq!((scale.from, scale.to), (1.0, 1000.0));
        assert_eq!(scale.at(10.0).round(), 100.0);
        let numbers: Vec<f64> =
            scale.ticks().iter().filter(|tick| tick.1).map(|tick| tick.0.round()).collect();
        assert_eq!(numbers, [1.0, 10.0, 100.0, 1000.0]);
        let linear = Scale { from: 0.0, to: 100.0, left: 0.0, right: 10.0, is_log: false };
        let ticks: Vec<f64> = linear.ticks().iter().map(|tick| tick.0).collect();
        assert_eq!(ticks, [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        assert_eq!([0.001, 1.0, 2000.0, 5e6].map(tick_text), ["0.001", "1", "2k", "5M"]);
        let one = Scale::decades([5.0].into_iter(), 0.0, 1.0);
        assert_eq!((one.from, one.to), (1.0, 10.0));
    }

    #[test]
    fn labels_keep_their_distance() {
        assert_eq!(apart(&[10.0, 100.0, 12.0], 14.0), [10.0, 100.0, 24.0]);
        assert_eq!(apart(&[5.0, 5.0, 5.0], 10.0), [5.0, 15.0, 25.0]);
        assert!(apart(&[], 1.0).is_empty());
    }

    #[test]
    fn marks_carry_their_numbers() {
        let row = Row {
            label: "Q<1>".into(),
            title: "a & b".into(),
            values: vec![(201.5, Some(200.0)), (0.0, None)],
        };
        let svg = lollipops(&[row], &["v1", "v2"], &|value| format!("{value}"), "RU");
        assert!(svg.contains("Q&lt;1&gt;") && svg.contains("a &amp; b"), "{svg}");
        assert!(svg.contains("<title>v1: 201.5 RU, published 200</title>"), "{svg}");
        assert_eq!(svg.matches("class=\"dot\"").count(), 1);
        assert_eq!(svg.matches("class=\"ring\"").count(), 1);
        let bars = stacked(&["v1"], &[vec![("Q1".into(), 10.0), ("Q2".into(), 30.0)]], "RU");
        assert_eq!(bars.matches("<rect").count(), 2);
        assert!(bars.contains(">40</text>"), "{bars}");
    }
}
