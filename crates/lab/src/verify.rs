//! Proving that copies are what their sources say.
//!
//! Both sides of a check are queries whose rows are `{k, v}`: under the same `k` there must be the
//! same `v`. Where `v` is a whole item, what the server adds to items is left out, so that a copy can
//! be compared to its last property. A tally compares with the number of rows under a `k`, which is how counters are proved.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::Error;
use crate::target::{Tally, Target};
use crate::workload::{Check, Model, Side};

/// What the server adds to items; two that are alike differ in it.
const SYSTEM_PROPERTIES: [&str; 5] = ["_rid", "_self", "_etag", "_attachments", "_ts"];

/// What came of one check.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The check.
    pub name: String,
    /// How many copies were compared.
    pub copies: usize,
    /// What is wrong, a sentence each.
    pub findings: Vec<String>,
}

/// Carries out the checks of a model.
pub async fn verify(model: &Model, target: &Target) -> Result<Vec<Verdict>, Error> {
    let mut verdicts = Vec::new();
    for check in &model.checks {
        let sources = rows(model, target, &check.name, &check.sources).await?;
        let copies = rows(model, target, &check.name, &check.copies).await?;
        verdicts.push(compare(check, sources, copies));
    }
    Ok(verdicts)
}

async fn rows(
    model: &Model,
    target: &Target,
    what: &str,
    side: &Side,
) -> Result<Vec<(String, Value)>, Error> {
    let container = target.container(&model.containers[side.container].name);
    let query = container.query(&side.sql, &[], -1);
    let rows = target.rows(what, &query, &mut Tally::default()).await?;
    let pair = |row: &Value| {
        let key = row.get("k").map(Value::to_string).unwrap_or_default();
        (key, own_properties(row.get("v").cloned().unwrap_or(Value::Null)))
    };
    let pairs: Vec<(String, Value)> = rows.iter().map(pair).collect();
    Ok(if side.is_tally { tally(pairs) } else { pairs })
}

/// An item without the properties that the server gives it; anything else as it is.
fn own_properties(mut value: Value) -> Value {
    if let Value::Object(properties) = &mut value {
        properties.retain(|name, _| !SYSTEM_PROPERTIES.contains(&&name[..]));
    }
    value
}

fn tally(pairs: Vec<(String, Value)>) -> Vec<(String, Value)> {
    let mut counts = BTreeMap::<String, u64>::new();
    pairs.into_iter().for_each(|(key, _)| *counts.entry(key).or_default() += 1);
    counts.into_iter().map(|(key, count)| (key, count.into())).collect()
}

/// Compares every copy with the source under its key.
fn compare(check: &Check, sources: Vec<(String, Value)>, copies: Vec<(String, Value)>) -> Verdict {
    let sources: BTreeMap<String, Value> = sources.into_iter().collect();
    let mut findings = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    let count = copies.len();
    for (key, value) in copies {
        match sources.get(&key).or(check.missing.as_ref()) {
            Some(expected) if *expected == value => {}
            Some(expected) => findings.push(format!("{key} has {value}, its source {expected}")),
            None => findings.push(format!("{key} has {value}, and no source")),
        }
        seen.insert(key);
    }
    if check.is_complete {
        let lost = sources.keys().filter(|key| !seen.contains(*key));
        findings.extend(lost.map(|key| format!("{key} has no copy")));
    }
    Verdict { name: check.name.clone(), copies: count, findings }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn findings(check: &Check, sources: &[(&str, Value)], copies: &[(&str, Value)]) -> Vec<String> {
        let owned = |pairs: &[(&str, Value)]| {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect()
        };
        compare(check, owned(sources), owned(copies)).findings
    }

    fn check() -> Check {
        let side = || Side { container: 0, sql: String::new(), is_tally: false };
        let (copies, sources) = (side(), side());
        Check { name: "names".to_owned(), copies, sources, is_complete: false, missing: None }
    }

    #[test]
    fn copies_are_compared_with_their_sources() {
        let sources = [("a", json!("Ada")), ("b", json!("Bob"))];
        assert!(
            findings(&check(), &sources, &[("a", json!("Ada")), ("a", json!("Ada"))]).is_empty()
        );
        let wrong = findings(&check(), &sources, &[("a", json!("Eve"))]);
        assert_eq!(wrong, ["a has \"Eve\", its source \"Ada\""]);
        assert_eq!(findings(&check(), &sources, &[("c", json!(1))]), ["c has 1, and no source"]);
    }

    #[test]
    fn whole_items_are_compared_without_what_the_server_adds() {
        let item = json!({"id": "1", "_rid": "r", "_ts": 7, "_etag": "e", "a": {"_ts": 1}});
        assert_eq!(own_properties(item), json!({"id": "1", "a": {"_ts": 1}}));
        assert_eq!(own_properties(json!(["_ts"])), json!(["_ts"]));
    }

    #[test]
    fn what_is_missing() {
        let sources = [("a", json!(2)), ("b", json!(1))];
        let complete = Check { is_complete: true, ..check() };
        assert_eq!(findings(&complete, &sources, &[("a", json!(2))]), ["b has no copy"]);
        let counters = Check { missing: Some(json!(0)), ..check() };
        assert!(findings(&counters, &sources, &[("c", json!(0))]).is_empty());
        assert_eq!(findings(&counters, &sources, &[("c", json!(3))]).len(), 1);
        let pairs = ["a", "b", "a"].map(|key| (key.to_owned(), Value::Null));
        let counts = [("a".to_owned(), json!(2)), ("b".to_owned(), json!(1))];
        assert_eq!(tally(pairs.to_vec()), counts);
    }
}
