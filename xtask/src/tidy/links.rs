//! Relative links in documents lead to files that are there.

use std::path::Path;

use super::Files;

/// Checks every Markdown file.
pub fn check(files: &Files) -> Vec<String> {
    let mut findings = Vec::new();
    for path in files.ending(".md") {
        let directory = Path::new(path).parent().unwrap_or(Path::new(""));
        for (line, target) in links(&files.text(path)) {
            if !files.root.join(directory).join(&target).exists() {
                findings.push(format!("{path}:{line} links to {target}, which is not there"));
            }
        }
    }
    findings
}

/// Files that a text links to, with the numbers of their lines. Code is not looked at.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    let mut is_code = false;
    for (at, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        if !is_code {
            links.extend(targets(line).map(|target| (at + 1, target)));
        }
    }
    links
}

fn targets(line: &str) -> impl Iterator<Item = String> + '_ {
    // Every other piece between backticks is code.
    let prose: Vec<&str> = line.split('`').step_by(2).collect();
    let prose = prose.join("`");
    let ends: Vec<usize> = prose.match_indices("](").map(|(at, _)| at + 2).collect();
    ends.into_iter().filter_map(move |start| {
        let inside = prose[start..].split(')').next()?;
        let target = inside.split_whitespace().next()?.trim_matches(['<', '>']);
        let target = target.split('#').next()?;
        let is_elsewhere = target.contains("://") || target.starts_with("mailto:");
        (!target.is_empty() && !is_elsewhere).then(|| target.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_links_count() {
        let found = |text: &str| -> Vec<String> {
            links(text).into_iter().map(|(_, target)| target).collect()
        };
        assert_eq!(found("see [a](a.md) and [b](b/c.md#d \"title\")"), ["a.md", "b/c.md"]);
        assert!(found("[a](https://example.com/a) [b](#b) [c](mailto:a@example.com)").is_empty());
        assert!(found("`[a](a.md)`").is_empty());
        assert!(found("```\n[a](a.md)\n```").is_empty());
        assert_eq!(links("x\n![a](a.png)"), [(2, "a.png".to_owned())]);
    }
}
