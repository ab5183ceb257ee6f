//! Counting tests in the output of their runners.
//!
//! ```text
//!   cargo    test result: ok. 12 passed; 0 failed; 1 ignored; …
//!   node     # pass 12            ℹ pass 12
//!   pytest   ==== 1 failed, 11 passed, 2 skipped in 3.21s ====
//!   maven    [ERROR] Tests run: 12, Failures: 1, Errors: 0, Skipped: 2
//!   go       --- PASS: TestItems (0.01s)
//! ```

use std::ops::AddAssign;

/// How many tests passed and failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Those that did what they should.
    pub passed: u64,
    /// Those that did not.
    pub failed: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}

impl Tally {
    /// What one line of a runner's output adds; nothing for any other line.
    pub fn of_line(line: &str) -> Tally {
        let line = plain(line);
        // Those of parts of a test are indented.
        match line.split_once(": ") {
            Some(("--- PASS", _)) => return Tally { passed: 1, failed: 0 },
            Some(("--- FAIL", _)) => return Tally { passed: 0, failed: 1 },
            Some(_) | None => {}
        }
        // Those of single classes have a time.
        if let Some((_, rest)) = line.split_once("Tests run: ") {
            return if rest.contains("Time elapsed") { Tally::default() } else { maven(rest) };
        }
        let line = line.trim();
        if let Some(rest) = line.strip_prefix("test result: ") {
            return counts(rest.split(['.', ';']));
        }
        if let Some(rest) = line.strip_prefix("# ").or_else(|| line.strip_prefix("ℹ ")) {
            return node(rest);
        }
        let inner = line.trim_matches(['=', ' ']);
        match inner.rsplit_once(" in ") {
            Some((list, time)) if time.contains('s') => counts(list.split(',')),
            Some(_) | None => Tally::default(),
        }
    }
}

/// Sums parts like `12 passed`. Errors outside of tests count as failures.
fn counts<'a>(parts: impl Iterator<Item = &'a str>) -> Tally {
    let mut tally = Tally::default();
    for part in parts {
        let Some((number, word)) = part.trim().split_once(' ') else { continue };
        let Ok(number) = number.parse::<u64>() else { continue };
        match word {
            "passed" => tally.passed += number,
            "failed" | "error" | "errors" => tally.failed += number,
            _ => {}
        }
    }
    tally
}

fn maven(text: &str) -> Tally {
    let numbers = text.split(", ").map(|part| part.rsplit_once(": ").map_or(part, |(_, n)| n));
    let numbers: Vec<u64> = numbers.filter_map(|number| number.trim().parse().ok()).collect();
    let [run, failures, errors, skipped] = numbers[..] else { return Tally::default() };
    let failed = failures + errors;
    Tally { passed: run.saturating_sub(failed + skipped), failed }
}

fn node(text: &str) -> Tally {
    match text.split_once(' ').map(|(word, number)| (word, number.parse())) {
        Some(("pass", Ok(passed))) => Tally { passed, failed: 0 },
        Some(("fail" | "cancelled", Ok(failed))) => Tally { passed: 0, failed },
        _ => Tally::default(),
    }
}

/// The line without the codes that color it.
fn plain(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut parts = line.split('\x1b');
    text.extend(parts.next());
    for part in parts {
        text.push_str(part.split_once('m').map_or(part, |(_, rest)| rest));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, passed: u64, failed: u64) {
        assert_eq!(Tally::of_line(line), Tally { passed, failed }, "{line}");
    }

    #[test]
    fn lines_of_all_runners() {
        check("test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; finished in 1s", 12, 0);
        check("test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured", 3, 2);
        check("test result: \x1b[32mok\x1b[m. 7 passed; 0 failed", 7, 0);
        check("# pass 41", 41, 0);
        check("# fail 2", 0, 2);
        check("ℹ pass 5", 5, 0);
        check("ℹ cancelled 1", 0, 1);
        check("==== 1 failed, 11 passed, 2 skipped in 3.21s ====", 11, 1);
        check("\x1b[32m==== \x1b[32m\x1b[1m2 passed\x1b[0m\x1b[32m in 0.01s\x1b[0m ====", 2, 0);
        check("3 passed, 1 error in 0.50s", 3, 1);
        check("[INFO] Tests run: 12, Failures: 0, Errors: 0, Skipped: 0", 12, 0);
        check("[ERROR] Tests run: 12, Failures: 1, Errors: 2, Skipped: 3", 6, 3);
        check("--- PASS: TestItems (0.01s)", 1, 0);
        check("--- FAIL: TestItems (0.01s)", 0, 1);
    }

    #[test]
    fn other_lines_count_nothing() {
        for line in
            ["", "test a ... ok", "# Subtest: 3 passed", "# tests 9", "1 passed", "ok 1 - x"]
        {
            check(line, 0, 0);
        }
        check("    --- PASS: TestItems/one (0.00s)", 0, 0);
        let of_a_class =
            "[INFO] Tests run: 5, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 1 s";
        check(of_a_class, 0, 0);
    }
}
