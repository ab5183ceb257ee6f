//! Plans as people read them.
//!
//! ```text
//! Take: rows 10 to 20
//! └─ Project: c.id
//!    └─ Filter: c.age > 3
//!       └─ Lookup: /city = "Oslo"
//! ```

use std::fmt::{Display, Formatter, Result};

use super::{Access, Plan, Shortcut};
use crate::{Bound, Bounds, Direction, Path, Span};

impl Display for Plan {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        for (depth, line) in self.lines().iter().enumerate() {
            match depth {
                0 => writeln!(f, "{line}")?,
                _ => writeln!(f, "{}└─ {line}", "   ".repeat(depth - 1))?,
            }
        }
        Ok(())
    }
}

impl Plan {
    /// From the last operator to the first.
    fn lines(&self) -> Vec<String> {
        let query = &self.query;
        let mut lines = Vec::new();
        match (query.window.offset, query.window.end) {
            (0, None) => {}
            (offset, Some(end)) => lines.push(format!("Take: rows {offset} to {end}")),
            (offset, None) => lines.push(format!("Skip: {offset}")),
        }
        if query.block.distinct {
            lines.push("Distinct".to_owned());
        }
        if self.sorts {
            let keys: Vec<_> = query.order.iter().map(|(path, d)| format!("{path}{d}")).collect();
            lines.push(format!("Sort: {}", keys.join(", ")));
        }
        if query.ranking.is_some() {
            lines.push("Rank".to_owned());
        }
        lines.push(format!("Project: {}", query.printed.projection));
        if let Some(grouping) = &query.block.grouping {
            let (keys, aggregates) = (grouping.keys.len(), grouping.aggregates.len());
            lines.push(format!("Group: {keys} keys, {aggregates} aggregates"));
        }
        if let Some(shortcut) = &self.shortcut {
            lines.push(shortcut.to_string());
            return lines;
        }
        if let Some(filter) = &query.printed.filter {
            lines.push(format!("Filter: {filter}"));
        }
        if !query.block.sources.is_empty() {
            lines.push(format!("Expand: {} sources", query.block.sources.len()));
        }
        lines.push(self.access.to_string());
        lines
    }
}

impl Display for Access {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Access::Once => f.write_str("EmptyRow"),
            Access::Nothing => f.write_str("Nothing"),
            Access::Points(points) => write!(f, "Points: {}", points.len()),
            Access::Scan => f.write_str("Scan"),
            Access::Entries { spans, also } => {
                let is_lookup = spans.iter().all(Span::is_lookup);
                f.write_str(if is_lookup { "Lookup: " } else { "Range: " })?;
                write_spans(f, spans)?;
                also.iter().try_for_each(|span| write!(f, " and {span}"))
            }
            Access::Tested { span, test } => {
                let count = test.conditions.len();
                let plural = if count > 1 { "s" } else { "" };
                write!(f, "Test: {span}, {count} condition{plural}")
            }
            Access::Set { spans } => {
                f.write_str("Set: ")?;
                write_spans(f, spans)
            }
            Access::Keys { span, lacking } => {
                write!(f, "Keys: {span}")?;
                f.write_str(if lacking.is_some() { ", and an item without it" } else { "" })
            }
            Access::Ordered { span, direction, lacking } => {
                write!(f, "Ordered: {span}{direction}")?;
                f.write_str(if lacking.is_some() { ", and items without it" } else { "" })
            }
        }
    }
}

impl Display for Shortcut {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Shortcut::Items(_) => f.write_str("CountItems"),
            Shortcut::Entries(lists) => {
                f.write_str("CountEntries: ")?;
                for (at, spans) in lists.iter().enumerate() {
                    f.write_str(if at > 0 { " and " } else { "" })?;
                    write_spans(f, spans)?;
                }
                Ok(())
            }
            Shortcut::Values { span, .. } => write!(f, "Extremes: {span}"),
            Shortcut::Groups { span, .. } => write!(f, "CountKeys: {span}"),
        }
    }
}

fn write_spans(f: &mut Formatter<'_>, spans: &[Span]) -> Result {
    match spans {
        [span] => write!(f, "{span}"),
        [Span::Path { path, .. }, ..] if spans.iter().all(|span| span.is_of(path)) => {
            write!(f, "{path} in {} ranges", spans.len())
        }
        _ => spans.iter().enumerate().try_for_each(|(at, span)| {
            f.write_str(if at > 0 { " or " } else { "" })?;
            write!(f, "{span}")
        }),
    }
}

impl Span {
    fn is_of(&self, path: &Path) -> bool {
        matches!(self, Span::Path { path: own, .. } if own == path)
    }
}

impl Display for Span {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Span::Path { path, bounds } => write!(f, "{path}{bounds}"),
            Span::Word { path, stem } => write!(f, "{path} has {stem:?}"),
            Span::Near { path, meters, .. } if *meters == 0.0 => {
                write!(f, "{path} meets a geometry")
            }
            Span::Near { path, meters, .. } => write!(f, "{path} within {meters} m of a geometry"),
            Span::Composite { keys, equal, bounds } => {
                f.write_str("(")?;
                for (at, (path, direction)) in keys.iter().enumerate() {
                    f.write_str(if at > 0 { ", " } else { "" })?;
                    write!(f, "{path}{direction}")?;
                    match equal.get(at) {
                        Some(value) => write!(f, " = {value}")?,
                        None if at == equal.len() => write!(f, "{bounds}")?,
                        None => {}
                    }
                }
                f.write_str(")")
            }
        }
    }
}

impl Display for Bounds {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        if let Some(value) = self.single() {
            return write!(f, " = {value}");
        }
        match &self.lower {
            Bound::Included(value) => write!(f, " >= {value}")?,
            Bound::Excluded(value) => write!(f, " > {value}")?,
            Bound::Unbounded => {}
        }
        match &self.upper {
            Bound::Included(value) => write!(f, " <= {value}"),
            Bound::Excluded(value) => write!(f, " < {value}"),
            Bound::Unbounded => Ok(()),
        }
    }
}

impl Display for Direction {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(match self {
            Direction::Ascending => " ascending",
            Direction::Descending => " descending",
        })
    }
}
