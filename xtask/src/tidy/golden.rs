//! Golden files that no test reads.
//!
//! A crate's golden files are in `golden/<topic>/`. Some Rust file of the crate names the topic's
//! directory; otherwise nobody would notice when its files stop being true.

use std::collections::BTreeSet;

use super::Files;

/// Checks every topic of every crate.
pub fn check(files: &Files) -> Vec<String> {
    let is_read = |(name, topic): &(&str, &str)| {
        let directory = format!("golden/{topic}");
        let prefix = format!("crates/{name}/");
        let sources = files.ending(".rs").filter(|path| path.starts_with(&prefix));
        sources.map(|path| files.text(path)).any(|text| text.contains(&directory))
    };
    let topics = topics(files.all.iter().map(String::as_str));
    topics
        .into_iter()
        .filter(|topic| !is_read(topic))
        .map(|(name, topic)| {
            format!("no test of {name} reads crates/{name}/golden/{topic}: run it or remove it")
        })
        .collect()
}

/// The crates and topics that golden files belong to.
fn topics<'a>(paths: impl Iterator<Item = &'a str>) -> BTreeSet<(&'a str, &'a str)> {
    paths
        .filter_map(|path| {
            let mut parts = path.strip_prefix("crates/")?.split('/');
            let name = parts.next()?;
            (parts.next()? == "golden").then_some((name, parts.next()?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_belong_to_topics() {
        let paths =
            ["crates/query/golden/plan/a", "crates/query/golden/plan/b", "crates/query/src"];
        assert_eq!(topics(paths.into_iter()), BTreeSet::from([("query", "plan")]));
    }
}
