//! Stacked bars: what a total is made of, for each model.

use std::fmt::Write;

use super::scale::{Kind, Scale};
use super::words::{SIZE, SMALL, bold_width, shortened, width};
use super::{WIDTH, escape, open, text};
use crate::table::short;

/// The height of one model.
const LANE: f64 = 54.0;
/// Above the first bar.
const TOP: f64 = 6.0;
/// What names may take, at most.
const NAMES_MAX: f64 = 180.0;
/// A part that is narrower is put together with others.
const SLIVER: f64 = 14.0;

/// One part of a bar.
#[derive(Clone, Debug, PartialEq)]
struct Part {
    label: String,
    value: f64,
    title: String,
}

/// A bar for each model, made of parts: (label, value), the largest first.
pub fn stacked(models: &[&str], parts: &[Vec<(String, f64)>], unit: &str) -> String {
    let height = TOP + models.len() as f64 * LANE;
    let total = |parts: &Vec<(String, f64)>| parts.iter().map(|(_, value)| value).sum::<f64>();
    let totals: Vec<f64> = parts.iter().map(total).collect();
    let names = models.iter().map(|id| bold_width(id, SIZE)).fold(0.0, f64::max).min(NAMES_MAX);
    let numbers = totals.iter().map(|total| width(&short(*total), SIZE)).fold(0.0, f64::max);
    let scale = Scale {
        from: 0.0,
        to: totals.iter().copied().fold(1e-9, f64::max),
        left: names + 16.0,
        right: WIDTH - numbers - 16.0,
        kind: Kind::Linear,
    };
    let mut svg = open(height, unit);
    for (at, (id, parts)) in models.iter().zip(parts).enumerate() {
        let y = TOP + at as f64 * LANE;
        let name = shortened(id, names, &|words| bold_width(words, SIZE));
        svg += &text("strong", (0.0, y + 26.0), "start", &name, id);
        let _ = write!(svg, r#"<g data-model="{at}" style="--c:var(--m{})">"#, at % 6);
        svg += &bar(&scale, y, &merged(&scale, parts, unit));
        let sum = short(totals[at]);
        svg += &text("", (scale.at(totals[at]) + 10.0, y + 26.0), "start", &sum, &sum);
        svg += "</g>";
    }
    svg + "</svg>"
}

/// The parts, with slivers at the end put together.
fn merged(scale: &Scale, parts: &[(String, f64)], unit: &str) -> Vec<Part> {
    let title = |(label, value): &(String, f64)| format!("{label}: {} {unit}", short(*value));
    let is_seen = |value: f64| scale.at(value) - scale.at(0.0) >= SLIVER;
    let seen = parts.iter().take_while(|(_, value)| is_seen(*value)).count();
    // One sliver alone is not made better by another name.
    let seen = if parts.len() - seen > 1 { seen } else { parts.len() };
    let (seen, slivers) = parts.split_at(seen);
    let mut out: Vec<Part> = seen
        .iter()
        .map(|part| Part { label: part.0.clone(), value: part.1, title: title(part) })
        .collect();
    let value: f64 = slivers.iter().map(|(_, value)| value).sum();
    if value > 0.0 {
        let titles: Vec<String> = slivers.iter().map(title).collect();
        out.push(Part { label: "other".to_owned(), value, title: titles.join("; ") });
    }
    out
}

fn bar(scale: &Scale, y: f64, parts: &[Part]) -> String {
    let mut svg = String::new();
    let mut sum = 0.0;
    for (n, part) in parts.iter().enumerate() {
        let (from, to) = (scale.at(sum), scale.at(sum + part.value));
        sum += part.value;
        let opacity = 1.0 - 0.62 * n as f64 / parts.len().max(1) as f64;
        // Writing to memory cannot fail.
        let _ = write!(
            svg,
            r#"<g><title>{}</title><rect class="bar" x="{from:.1}" y="{:.1}" width="{:.2}" height="32" style="opacity:{opacity:.2}"/>"#,
            escape(&part.title),
            y + 5.0,
            (to - from).max(0.0),
        );
        if to - from > bold_width(&part.label, SMALL) + 10.0 {
            let place = ((from + to) / 2.0, y + 25.5);
            svg += &text("small on", place, "middle", &part.label, &part.label);
        }
        svg += "</g>";
    }
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slivers_are_put_together() {
        let scale = Scale { from: 0.0, to: 1000.0, left: 0.0, right: 1000.0, kind: Kind::Linear };
        let labels = |values: &[f64]| {
            let part = |(at, value): (usize, &f64)| (format!("p{at}"), *value);
            let parts: Vec<_> = values.iter().enumerate().map(part).collect();
            let merged = merged(&scale, &parts, "RU");
            let sum: f64 = merged.iter().map(|part| part.value).sum();
            assert_eq!(sum, values.iter().sum::<f64>(), "nothing is lost");
            merged.into_iter().map(|part| part.label).collect::<Vec<_>>()
        };
        assert_eq!(labels(&[900.0, 80.0, 10.0, 5.0, 5.0]), ["p0", "p1", "other"]);
        assert_eq!(labels(&[900.0, 10.0]), ["p0", "p1"], "one has its own name");
        assert_eq!(labels(&[900.0, 0.0, 0.0]), ["p0"]);
        assert!(labels(&[]).is_empty());
    }

    #[test]
    fn names_of_models_are_not_cut() {
        let parts = vec![vec![("read".to_owned(), 10.0)]];
        let svg = stacked(&["referenced"], &parts, "RU");
        assert!(svg.contains(">referenced</text>"), "{svg}");
        let long = "a-model-with-a-name-that-nobody-would-give-to-a-model";
        let svg = stacked(&[long], &parts, "RU");
        assert!(svg.contains(&format!("<title>{long}</title>a-model-")), "{svg}");
    }
}
