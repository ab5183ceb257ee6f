//! How far long work has come: a bar on a terminal, a line every few seconds otherwise.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Between two lines where there is no terminal.
const LINE_PERIOD: Duration = Duration::from_secs(5);

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Items.
    Items,
    /// Access patterns.
    Patterns,
}

/// The progress of one piece of work. Shared by threads. Goes to standard error.
pub struct Progress {
    label: String,
    unit: Unit,
    bar: ProgressBar,
    /// When the next line is due; `None` with a bar.
    next_line: Option<Mutex<Instant>>,
}

impl Progress {
    /// Begins; `total` is 0 if nobody knows it.
    pub fn new(label: impl Into<String>, unit: Unit, total: u64) -> Progress {
        let is_terminal = std::io::stderr().is_terminal();
        let length = (total > 0).then_some(total);
        let target = match is_terminal {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        };
        let label = label.into();
        let bar = ProgressBar::with_draw_target(length, target).with_message(label.clone());
        bar.set_style(style(unit, length.is_some()));
        let next_line = (!is_terminal).then(|| Mutex::new(Instant::now() + LINE_PERIOD));
        Progress { label, unit, bar, next_line }
    }

    /// Says how much is done.
    pub fn set(&self, done: u64) {
        self.bar.set_position(done);
        if self.is_line_due() {
            eprintln!("{}", self.line());
        }
    }

    /// Prints a line beside the progress.
    pub fn say(&self, line: &str) {
        self.bar.suspend(|| eprintln!("{line}"));
    }

    /// Ends; what the work came to is for the caller to print.
    pub fn finish(self) {
        self.bar.finish_and_clear();
    }

    fn is_line_due(&self) -> bool {
        let Some(next) = &self.next_line else { return false };
        let mut next = next.lock().expect("no code panics while holding this lock");
        let is_due = Instant::now() >= *next;
        if is_due {
            *next = Instant::now() + LINE_PERIOD;
        }
        is_due
    }

    fn line(&self) -> String {
        let count = |n: u64| match self.unit {
            Unit::Bytes => HumanBytes(n).to_string(),
            Unit::Items => format!("{} items", HumanCount(n)),
            Unit::Patterns => format!("{} patterns", HumanCount(n)),
        };
        let done = self.bar.position();
        match self.bar.length() {
            Some(total) => {
                let percent = done.min(total) * 100 / total.max(1);
                format!("{}: {percent} % ({} of {})", self.label, count(done), count(total))
            }
            None => format!("{}: {}", self.label, count(done)),
        }
    }
}

fn style(unit: Unit, has_total: bool) -> ProgressStyle {
    let template = match (unit, has_total) {
        (Unit::Bytes, true) => "{msg} {wide_bar} {bytes}/{total_bytes} {eta}",
        (Unit::Items | Unit::Patterns, true) => "{msg} {wide_bar} {human_pos}/{human_len} {eta}",
        (Unit::Bytes, false) => "{msg} {spinner} {bytes}",
        (Unit::Items | Unit::Patterns, false) => "{msg} {spinner} {human_pos}",
    };
    ProgressStyle::with_template(template).expect("the templates are right")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_where_there_is_no_terminal() {
        let line = |unit, total, done| {
            let progress = Progress::new("import", unit, total);
            progress.set(done);
            progress.line()
        };
        assert_eq!(line(Unit::Items, 2_000, 500), "import: 25 % (500 items of 2,000 items)");
        assert_eq!(line(Unit::Bytes, 0, 2 << 20), "import: 2.00 MiB");
        assert_eq!(line(Unit::Items, 10, 20), "import: 100 % (20 items of 10 items)");
    }
}
