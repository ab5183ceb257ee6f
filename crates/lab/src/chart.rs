//! Charts as SVG: lollipops on a logarithmic scale, stacked bars, curves.
//!
//! Charts say what belongs to which model by `data-model` and take their colors from the page, so
//! that they follow its theme. Every mark carries its numbers as a title.
//!
//! INVARIANTS
//! (H1) No text stands on another one, and none beyond the edges: margins follow from the texts in
//!      them, and a text that finds no room is shortened, with all of it in a title.

mod curves;
mod lollipops;
mod scale;
mod stacked;
mod words;

pub use curves::curves;
pub use lollipops::{Mark, Row, lollipops};
pub use stacked::stacked;

/// Width of all charts, in units of their own.
const WIDTH: f64 = 920.0;

/// Text for a page: nothing in it is taken for markup.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn open(height: f64, label: &str) -> String {
    let label = escape(label);
    format!(r#"<svg viewBox="0 0 {WIDTH} {height:.0}" role="img" aria-label="{label}">"#)
}

/// A text that begins, ends or has its middle at a place. What was shortened has a title.
fn text(class: &str, (x, y): (f64, f64), anchor: &str, words: &str, whole: &str) -> String {
    let title = match words == whole {
        true => String::new(),
        false => format!("<title>{}</title>", escape(whole)),
    };
    let words = escape(words);
    format!(
        r#"<text class="{class}" x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{title}{words}</text>"#
    )
}
