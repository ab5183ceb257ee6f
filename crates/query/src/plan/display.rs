//! Plans as people read them.
//!
//! ```text
//! Take: rows 10 to 20
//! └─ Project: c.id
//!    └─ Filter: c.age > 3
//!       └─ TermLookup: /city = "Oslo"
//! ```

use std::fmt::{Display, Formatter, Result};

use super::{Access, Plan};
use crate::{Bound, Bounds, Direction, Path};

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
        lines.push(format!("Project: {}", query.projection_text));
        if let Some(grouping) = &query.block.grouping {
            let (keys, aggregates) = (grouping.keys.len(), grouping.aggregates.len());
            lines.push(format!("Group: {keys} keys, {aggregates} aggregates"));
        }
        if let Some(filter) = &query.filter_text {
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
            Access::Terms { path, ranges } => {
                let is_lookup = ranges.iter().all(|range| range.single().is_some());
                f.write_str(if is_lookup { "TermLookup: " } else { "TermRange: " })?;
                write_ranges(f, path, ranges)
            }
            Access::Ordered { path, bounds, direction, with_lacking } => {
                f.write_str("OrderedTerms: ")?;
                write_ranges(f, path, std::slice::from_ref(bounds))?;
                write!(
                    f,
                    "{direction}{}",
                    if *with_lacking { ", and items without it" } else { "" }
                )
            }
        }
    }
}

fn write_ranges(f: &mut Formatter<'_>, path: &Path, ranges: &[Bounds]) -> Result {
    match ranges {
        [range] => write!(f, "{path}{range}"),
        _ => write!(f, "{path} in {} ranges", ranges.len()),
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
