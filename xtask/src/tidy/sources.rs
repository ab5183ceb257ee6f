//! Source files: a header each, a length one can read, and wire spellings only at the edges.

use super::Files;

const LINES_MAX: usize = 900;

/// How the service spells things on the wire.
const WIRE: [&str; 4] = ["x-ms-", "\"colls\"", "\"docs\"", "pkranges"];

/// Crates that speak the wire.
const EDGES: [&str; 4] = ["gateway", "client", "server", "explorer"];

/// Places below the edges that must spell like the wire all the same, with the reason.
const EXCEPTIONS: [(&str, &str); 1] =
    [("crates/engine/src/catalog/offers.rs", "its message tells the client which header to send")];

/// Checks every Rust file of ours.
pub fn check(files: &Files) -> Vec<String> {
    let ours = |path: &&str| path.starts_with("crates/") || path.starts_with("xtask/");
    let sources = files.ending(".rs").filter(ours);
    sources.flat_map(|path| check_file(path, &files.text(path))).collect()
}

fn check_file(path: &str, text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    if path.contains("/src/") && !text.starts_with("//!") {
        findings.push(format!("{path} has no `//!` header that says what it is for"));
    }
    let lines = text.lines().count();
    if lines > LINES_MAX {
        findings.push(format!("{path} has {lines} lines; {LINES_MAX} are the most"));
    }
    if path.contains("/src/") && !is_edge(path) {
        findings.extend(wire_spellings(path, text));
    }
    findings
}

fn is_edge(path: &str) -> bool {
    let name = path.strip_prefix("crates/").and_then(|rest| rest.split('/').next());
    // This file is full of them.
    name.is_none_or(|name| EDGES.contains(&name)) || EXCEPTIONS.iter().any(|(at, _)| *at == path)
}

/// Wire spellings in code. Comments may name what they explain, and tests what they try.
fn wire_spellings(path: &str, text: &str) -> Vec<String> {
    if path.ends_with("/tests.rs") {
        return Vec::new();
    }
    let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let mut findings = Vec::new();
    for (at, line) in code.lines().enumerate() {
        let is_comment = line.trim_start().starts_with("//");
        if let Some(word) = WIRE.iter().find(|word| !is_comment && line.contains(**word)) {
            let at = at + 1;
            findings.push(format!("{path}:{at} spells {word} like the wire; only the edges do"));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(path: &str, text: &str) -> usize {
        check_file(path, text).len()
    }

    #[test]
    fn headers_and_lengths() {
        assert_eq!(count("crates/a/src/lib.rs", "//! A.\n"), 0);
        assert_eq!(count("crates/a/src/lib.rs", "fn main() {}\n"), 1);
        assert_eq!(count("crates/a/tests/b.rs", "fn main() {}\n"), 0);
        let long = |lines: usize| format!("//! A.{}", "\n".repeat(lines));
        assert_eq!(count("crates/a/src/lib.rs", &long(LINES_MAX)), 0);
        assert_eq!(count("crates/a/src/lib.rs", &format!("{}x", long(LINES_MAX))), 1);
    }

    #[test]
    fn wire_spellings_stay_at_the_edges() {
        let text = "//! A.\nlet a = \"x-ms-date\";\n";
        assert_eq!(count("crates/engine/src/a.rs", text), 1);
        assert_eq!(count("crates/gateway/src/a.rs", text), 0);
        assert_eq!(count("crates/engine/tests/a.rs", text), 0);
        assert_eq!(count("crates/engine/src/a.rs", "//! Like x-ms-date.\n"), 0);
        let tests = "//! A.\n#[cfg(test)]\nmod tests {\n    \"docs\"\n}\n";
        assert_eq!(count("crates/engine/src/a.rs", tests), 0);
    }
}
