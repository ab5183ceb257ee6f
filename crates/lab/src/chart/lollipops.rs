//! Lollipops: a stem and a dot for each model in each pattern, on a logarithmic scale.
//!
//! ```text
//! add           ──────── 6.29 ●┄┄┄┄┄┄○ +37.3       hollow: what keeping copies adds
//! Add a book    ────────────● 20.6     ◎           a ring: what was published
//! ```

use std::fmt::Write;

use super::scale::Scale;
use super::words::{SIZE, SMALL, bold_width, shortened, width, wrapped};
use super::{WIDTH, escape, open, text};

/// The height of one model in a row.
const LANE: f64 = 16.0;
/// Between two rows.
const GAP: f64 = 16.0;
/// Above the first row: numbers of the scale.
const TOP: f64 = 30.0;
/// The height of a line of a title.
const LINE: f64 = 15.0;
/// Lines of a title, at most.
const LINES: usize = 2;
/// What names and titles may take, at most.
const NAMES_MAX: f64 = 250.0;
/// Between a mark and its number.
const BESIDE: f64 = 10.0;
/// How close a ring is that stands around a dot.
const AROUND: f64 = 13.0;

/// One row of a chart of lollipops.
pub struct Row {
    /// In bold.
    pub label: String,
    /// Under it.
    pub title: String,
    /// One for each model.
    pub marks: Vec<Mark>,
}

/// What one model has in a row.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mark {
    /// The value; 0 is not drawn.
    pub value: f64,
    /// What is added to it.
    pub more: f64,
    /// What was published.
    pub published: Option<f64>,
}

/// A lollipop for each model in each row.
pub fn lollipops(
    rows: &[Row],
    models: &[&str],
    number: &dyn Fn(f64) -> String,
    unit: &str,
) -> String {
    let names = Names::of(rows);
    let heights: Vec<f64> = rows.iter().map(|row| names.height(row, models.len())).collect();
    let height = TOP + heights.iter().sum::<f64>();
    let marks = || rows.iter().flat_map(|row| &row.marks);
    let values = marks()
        .flat_map(|mark| [mark.value, mark.value + mark.more, mark.published.unwrap_or(0.0)]);
    // The longest text beside a mark has room even at the end of the scale.
    let beside = marks().map(|mark| width(&mark.beside(number), SMALL)).fold(0.0, f64::max);
    // The least value has a stem as well.
    let least =
        marks().map(|mark| mark.value).filter(|value| *value > 0.0).fold(f64::MAX, f64::min);
    let values = values.chain([least * 0.75]);
    let scale = Scale::around(values, names.room + 16.0, WIDTH - beside - 24.0);
    let mut svg = open(height, unit) + &scale.grid(TOP - 8.0, height);
    let mut y = TOP;
    for (row, height) in rows.iter().zip(heights) {
        svg += &names.draw(row, y + (height - GAP) / 2.0);
        let first = y + (height - GAP - models.len() as f64 * LANE) / 2.0;
        for (model, mark) in row.marks.iter().enumerate().filter(|(_, mark)| mark.value > 0.0) {
            let lane = Lane { scale: &scale, y: first + (model as f64 + 0.5) * LANE, number };
            svg += &lane.draw(model, models[model], mark, unit);
        }
        y += height;
    }
    svg + "</svg>"
}

impl Mark {
    /// All that may stand behind it.
    fn beside(&self, number: &dyn Fn(f64) -> String) -> String {
        match self.more > 0.0 {
            true => format!("{} +{}", number(self.value), number(self.more)),
            false => number(self.value),
        }
    }
}

/// Names of rows, and the room they take.
struct Names {
    room: f64,
}

impl Names {
    fn of(rows: &[Row]) -> Names {
        let title = |title: &str| {
            let lines = wrapped(title, NAMES_MAX, LINES, &|words| width(words, SMALL));
            lines.iter().map(|line| width(line, SMALL)).fold(0.0, f64::max)
        };
        let widest = |row: &Row| bold_width(&row.label, SIZE).min(NAMES_MAX).max(title(&row.title));
        Names { room: rows.iter().map(widest).fold(0.0, f64::max) }
    }

    fn lines(&self, row: &Row) -> Vec<String> {
        wrapped(&row.title, self.room, LINES, &|words| width(words, SMALL))
    }

    fn height(&self, row: &Row, models: usize) -> f64 {
        let names = (1 + self.lines(row).len()) as f64 * LINE;
        names.max(models as f64 * LANE) + GAP
    }

    /// The label, and the title under it, around a middle.
    fn draw(&self, row: &Row, middle: f64) -> String {
        let lines = self.lines(row);
        let first = middle - lines.len() as f64 * LINE / 2.0 + 4.0;
        let label = shortened(&row.label, self.room, &|words| bold_width(words, SIZE));
        let mut svg = text("strong", (0.0, first), "start", &label, &row.label);
        let is_whole = lines.join(" ") == row.title;
        for (at, line) in lines.iter().enumerate() {
            let whole = if is_whole { line } else { &row.title };
            let y = first + (at + 1) as f64 * LINE;
            svg += &text("small soft", (0.0, y), "start", line, whole);
        }
        svg
    }
}

/// The place of one mark.
struct Lane<'a> {
    scale: &'a Scale,
    y: f64,
    number: &'a dyn Fn(f64) -> String,
}

impl Lane<'_> {
    fn draw(&self, at: usize, id: &str, mark: &Mark, unit: &str) -> String {
        let (x, y, left) = (self.scale.at(mark.value), self.y, self.scale.left);
        let mut svg = String::new();
        // Writing to memory cannot fail.
        let _ = write!(
            svg,
            r#"<g data-model="{at}" style="--c:var(--m{})"><title>{}</title><line class="stem" x1="{left:.1}" x2="{x:.1}" y1="{y:.1}" y2="{y:.1}"/>"#,
            at % 6,
            escape(&self.title(id, mark, unit)),
        );
        let end = self.scale.at(mark.value + mark.more);
        if mark.more > 0.0 {
            let _ = write!(
                svg,
                r#"<line class="more" x1="{x:.1}" x2="{end:.1}" y1="{y:.1}" y2="{y:.1}"/><circle class="hollow" cx="{end:.1}" cy="{y:.1}" r="4"/>"#
            );
        }
        let ring = mark.published.filter(|published| *published > 0.0);
        let ring = ring.map(|published| self.scale.at(published));
        if let Some(ring) = ring {
            let _ = write!(svg, r#"<circle class="ring" cx="{ring:.1}" cy="{y:.1}" r="5.5"/>"#);
        }
        let _ = write!(svg, r#"<circle class="dot" cx="{x:.1}" cy="{y:.1}" r="4"/>"#);
        svg + &self.numbers(mark, (x, end), ring) + "</g>"
    }

    /// The numbers of a mark: its own at the right of its dot, or at the left where something else is
    /// in the way; what is added behind the end of it.
    fn numbers(&self, mark: &Mark, (x, end): (f64, f64), ring: Option<f64>) -> String {
        let own = (self.number)(mark.value);
        let room = width(&own, SMALL) + 6.0;
        let put = |x: f64, anchor: &str, words: &str| {
            text("small own", (x, self.y + 4.0), anchor, words, words)
        };
        // A ring around the dot, or beside it, belongs to it.
        let close = ring.filter(|ring| (ring - x).abs() < AROUND);
        let right = close.map_or(x, |ring| ring.max(x)) + BESIDE;
        let left = ring.filter(|ring| (x - room - BESIDE..x + AROUND).contains(ring));
        let left = left.map_or(x, |ring| ring.min(x)) - BESIDE;
        let is_free = |ring: f64| !(right - 3.0..right + room).contains(&ring);
        let has_room_left = left - room > self.scale.left;
        if mark.more <= 0.0 {
            return match ring.is_none_or(is_free) {
                true => put(right, "start", &own),
                false if has_room_left => put(left, "end", &own),
                false => put(clear_of(ring, right, room), "start", &own),
            };
        }
        let more = format!("+{}", (self.number)(mark.more));
        let behind = |words: &str| {
            put(
                clear_of(ring, end.max(right - BESIDE) + BESIDE, width(words, SMALL)),
                "start",
                words,
            )
        };
        match has_room_left {
            true => put(left, "end", &own) + &behind(&more),
            false => behind(&mark.beside(self.number)),
        }
    }

    fn title(&self, id: &str, mark: &Mark, unit: &str) -> String {
        let more = match mark.more > 0.0 {
            true => format!(", copies {} {unit}", (self.number)(mark.more)),
            false => String::new(),
        };
        let published = mark.published.map(|p| format!(", published {}", (self.number)(p)));
        let own = (self.number)(mark.value);
        format!("{id}: {own} {unit}{more}{}", published.unwrap_or_default())
    }
}

/// A place for a text of a width, behind a ring that would be in it.
fn clear_of(ring: Option<f64>, x: f64, width: f64) -> f64 {
    match ring {
        Some(ring) if (x - BESIDE..x + width + 6.0).contains(&ring) => ring + BESIDE,
        Some(_) | None => x,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(label: &str, title: &str, marks: &[Mark]) -> Row {
        Row { label: label.into(), title: title.into(), marks: marks.to_vec() }
    }

    fn mark(value: f64) -> Mark {
        Mark { value, ..Mark::default() }
    }

    fn chart(marks: &[Mark]) -> String {
        let models = ["a", "b", "c"];
        lollipops(&[row("x", "y", marks)], &models[..marks.len()], &|v| format!("{v}"), "RU")
    }

    #[test]
    fn long_names_have_room_or_are_shortened() {
        let names = |label: &str, title: &str| Names::of(&[row(label, title, &[])]);
        assert!(names("comment", "").room >= bold_width("comment", SIZE));
        let long =
            "a title that is much longer than two lines of the room that there is, and so on";
        let cut = names("x", long);
        assert!(cut.room <= NAMES_MAX);
        let drawn = cut.draw(&row("x", long, &[]), 0.0);
        assert!(
            drawn.contains(&format!("<title>{long}</title>")) && drawn.contains('…'),
            "{drawn}"
        );
    }

    #[test]
    fn numbers_stand_beside_their_dots() {
        let ring = |published| Mark { published: Some(published), ..mark(100.0) };
        let anchors = |marks: &[Mark]| {
            let svg = chart(marks);
            let own = svg.split("class=\"small own\"").skip(1);
            own.map(|piece| if piece.contains("\"end\"") { "left" } else { "right" })
                .next()
                .unwrap()
        };
        assert_eq!(anchors(&[mark(100.0), mark(1.0)]), "right");
        assert_eq!(anchors(&[ring(101.0), mark(1.0)]), "right", "behind a ring around the dot");
        assert_eq!(anchors(&[ring(120.0), mark(1.0)]), "left", "a ring is at the right");
        assert_eq!(anchors(&[ring(50.0), mark(1.0)]), "right");
    }

    #[test]
    fn copies_are_hollow() {
        let svg = chart(&[Mark { value: 10.0, more: 90.0, published: None }, mark(1.0)]);
        assert_eq!(svg.matches("class=\"hollow\"").count(), 1);
        assert!(svg.contains(">+90</text>") && svg.contains("a: 10 RU, copies 90 RU"), "{svg}");
        let at_the_edge = chart(&[Mark { value: 0.7, more: 1e9, published: None }]);
        assert!(at_the_edge.contains(">0.7 +1000000000</text>"), "{at_the_edge}");
        assert!(!chart(&[mark(0.0), mark(1.0)]).contains("data-model=\"0\""), "0 is not drawn");
    }
}
