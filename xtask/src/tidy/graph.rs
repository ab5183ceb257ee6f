//! The crate graph: which crate may use which of ours. A new arrow is a design decision.
//!
//! Tests may use any crate; what ships may not use `testkit`.

use serde_json::Value;

use crate::workspace::Workspace;

/// The foundation and the contract of stores: what almost everything above may use.
const VOCABULARY: [&str; 3] = ["base", "model", "item"];

/// Every crate with the crates of ours it may use.
const ARROWS: [(&str, &[&str]); 23] = [
    ("allocator", &[]),
    ("base", &[]),
    ("model", &[]),
    ("item", &["model"]),
    ("text", &[]),
    ("index", &["model", "item", "text"]),
    ("sql", &["model"]),
    ("store", &["base"]),
    ("store-memory", &["base", "store"]),
    ("store-embedded", &["base", "store"]),
    ("store-postgres", &["base", "store"]),
    ("storage", &["base", "model", "item", "index", "store"]),
    ("query", &["base", "model", "item", "text", "index", "sql"]),
    ("script", &VOCABULARY),
    ("engine", &["base", "model", "item", "index", "sql", "store", "storage", "query", "script"]),
    ("gateway", &["base", "model", "item", "engine"]),
    ("explorer", &[]),
    ("client", &["model"]),
    ("lab", &["model", "sql", "client"]),
    ("server", EVERYTHING),
    ("testkit", &["base", "model", "store"]),
    // Programs about the product rather than parts of it.
    ("bench", &["allocator", "base", "model", "client"]),
    ("xtask", &[]),
];

const EVERYTHING: &[&str] = &[
    "allocator",
    "base",
    "model",
    "item",
    "text",
    "index",
    "sql",
    "store",
    "store-memory",
    "store-embedded",
    "store-postgres",
    "storage",
    "query",
    "script",
    "engine",
    "gateway",
    "explorer",
    "client",
    "lab",
];

/// Compares the dependencies of every member with the table.
pub fn check(workspace: &Workspace) -> Vec<String> {
    let names: Vec<&str> = workspace.members().map(name).collect();
    workspace.members().flat_map(|package| check_package(package, &names)).collect()
}

fn check_package(package: &Value, ours: &[&str]) -> Vec<String> {
    let from = name(package);
    let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == from) else {
        return vec![format!("{from} is not in the table of crates (xtask/src/tidy/graph.rs)")];
    };
    let dependencies = package["dependencies"].as_array().into_iter().flatten();
    dependencies
        .filter(|dependency| dependency["kind"].as_str() != Some("dev"))
        .map(name)
        .filter(|to| ours.contains(to) && !allowed.contains(to))
        .map(|to| format!("{from} may not use {to}: the crate graph has no such arrow"))
        .collect()
}

fn name(package: &Value) -> &str {
    package["name"].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arrows() {
        let package = |name: &str, to: &str, kind: Option<&str>| json!({"name": name, "dependencies": [{"name": to, "kind": kind}]});
        let ours = ["engine", "store", "store-embedded", "testkit"];
        let findings = |name, to, kind| check_package(&package(name, to, kind), &ours).len();
        assert_eq!(findings("engine", "store", None), 0);
        assert_eq!(findings("engine", "store-embedded", None), 1);
        assert_eq!(findings("engine", "store-embedded", Some("build")), 1);
        assert_eq!(findings("engine", "store-embedded", Some("dev")), 0);
        assert_eq!(findings("engine", "serde", None), 0);
        assert_eq!(findings("server", "testkit", None), 1);
        assert_eq!(findings("novelty", "serde", None), 1);
    }

    #[test]
    fn every_arrow_leads_to_a_crate_of_the_table() {
        for (from, allowed) in ARROWS {
            for to in allowed {
                assert!(ARROWS.iter().any(|(name, _)| name == to), "{from} -> {to}");
            }
        }
    }
}
