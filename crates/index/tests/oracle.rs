//! The walk against a naive oracle.
//!
//! Goal: an item has exactly the terms that the written rules give it. Method: random policies and
//! items over a few names; the oracle lists all values of the item with their paths as lists of
//! text and asks every path of the policy whether it matches.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "helpers of tests")]

use std::collections::BTreeSet;

use index::encode::decode;
use index::{Path, Policy, Scalar, Terms, charge_difference, diff, leaf_count};
use item::Draft;
use model::container::IndexingPolicy;
use model::container::path::Segment;
use proptest::prelude::*;
use serde_json::{Value, json};

type Steps = Vec<String>;
type Found = BTreeSet<(Steps, String)>;

/// A path of the policy: its steps, its end, and whether it is included.
#[derive(Debug, Clone)]
struct Rule {
    steps: Steps,
    star: bool,
    included: bool,
}

impl Rule {
    fn text(&self) -> String {
        let step = |step: &String| match step.as_str() {
            "[]" => "/[]".to_owned(),
            name => format!("/\"{name}\""),
        };
        let steps: String = self.steps.iter().map(step).collect();
        format!("{steps}/{}", if self.star { "*" } else { "?" })
    }

    /// How strongly the rule speaks about a path; deeper is stronger, then `?`.
    fn strength(&self, steps: &[String]) -> Option<usize> {
        match self.star {
            true => steps.starts_with(&self.steps).then_some(2 * self.steps.len()),
            false => (steps == self.steps).then_some(2 * self.steps.len() + 1),
        }
    }
}

fn is_indexed(rules: &[Rule], steps: &[String]) -> bool {
    if steps == ["id"] {
        return true;
    }
    let rules = rules.iter().filter_map(|rule| Some((rule.strength(steps)?, rule.included)));
    rules.max_by_key(|(strength, _)| *strength).is_some_and(|(_, included)| included)
}

fn visit(value: &Value, steps: &mut Steps, out: &mut Vec<(Steps, Value)>) {
    if !steps.is_empty() {
        out.push((steps.clone(), value.clone()));
    }
    let children: Vec<(String, &Value)> = match value {
        Value::Array(elements) => elements.iter().map(|value| ("[]".to_owned(), value)).collect(),
        Value::Object(members) => {
            members.iter().map(|(name, value)| (name.clone(), value)).collect()
        }
        _ => Vec::new(),
    };
    for (step, child) in children {
        steps.push(step);
        visit(child, steps, out);
        steps.pop();
    }
}

fn values(item: &Value) -> Vec<(Steps, Value)> {
    let mut out = Vec::new();
    visit(item, &mut Vec::new(), &mut out);
    out
}

fn show(value: &Value) -> String {
    match value {
        Value::Array(_) => "array".to_owned(),
        Value::Object(_) => "object".to_owned(),
        Value::Number(number) => format!("{}", number.as_f64().unwrap()),
        other => other.to_string(),
    }
}

fn expected(rules: &[Rule], item: &Value) -> Found {
    let values = values(item);
    let indexed = values.iter().filter(|(steps, _)| is_indexed(rules, steps));
    let mut found: Found = indexed.map(|(steps, value)| (steps.clone(), show(value))).collect();
    for rule in rules.iter().filter(|rule| rule.included && !rule.steps.is_empty()) {
        if values.iter().all(|(steps, _)| *steps != rule.steps) {
            found.insert((rule.steps.clone(), "undefined".to_owned()));
        }
    }
    found
}

/// Distinct scalars and empty containers.
fn expected_leaves(rules: &[Rule], item: &Value) -> Found {
    let is_leaf = |value: &Value| match value {
        Value::Array(elements) => elements.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => true,
    };
    let values = values(item).into_iter().filter(|(_, value)| is_leaf(value));
    let indexed = values.filter(|(steps, _)| is_indexed(rules, steps));
    indexed.map(|(steps, value)| (steps, show(&value))).collect()
}

fn read(term: &[u8]) -> (Steps, String) {
    let (path, used) = Path::decode(term).unwrap();
    let (value, _) = decode(&term[used..]).unwrap();
    let step = |segment: Segment| match segment {
        Segment::Property(name) => name,
        Segment::Elements => "[]".to_owned(),
    };
    let value = match value.scalar {
        Scalar::Undefined => "undefined".to_owned(),
        Scalar::Null => "null".to_owned(),
        Scalar::Bool(bool) => bool.to_string(),
        Scalar::Number(number) => number.to_string(),
        Scalar::String(text) => Value::from(text.into_owned()).to_string(),
        Scalar::Array => "array".to_owned(),
        Scalar::Object => "object".to_owned(),
    };
    (path.segments.into_iter().map(step).collect(), value)
}

fn compile(rules: &[Rule]) -> Policy {
    let list = |included| {
        let rules = rules.iter().filter(|rule| rule.included == included);
        rules.map(|rule| json!({"path": rule.text()})).collect::<Vec<_>>()
    };
    let json = json!({"includedPaths": list(true), "excludedPaths": list(false)});
    Policy::compile(&IndexingPolicy::parse(&json).unwrap())
}

fn terms(policy: &Policy, item: &Value) -> Terms {
    policy.terms(Draft::parse(item.to_string().as_bytes()).unwrap().root())
}

fn names() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "c", "d e", "é\0", "longer name"]).prop_map(str::to_owned)
}

fn rules() -> impl Strategy<Value = Vec<Rule>> {
    let step = prop_oneof![3 => names(), 1 => Just("[]".to_owned())];
    let rule = (prop::collection::vec(step, 1..4), any::<bool>(), any::<bool>())
        .prop_map(|(steps, star, included)| Rule { steps, star, included });
    let root = any::<bool>().prop_map(|included| Rule { steps: Vec::new(), star: true, included });
    (root, prop::collection::vec(rule, 0..6)).prop_map(|(root, more)| {
        let mut rules: Vec<Rule> = vec![root];
        for rule in more {
            if !rules.iter().any(|other| other.steps == rule.steps && other.star == rule.star) {
                rules.push(rule);
            }
        }
        rules
    })
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3i64..3).prop_map(Value::from),
        (-3i64..3).prop_map(|n| Value::from(n as f64 + 0.5)),
        prop::sample::select(vec!["", "x", "y\0", "😀\"\\"]).prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(names(), inner, 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn item() -> impl Strategy<Value = Value> {
    prop::collection::btree_map(names(), value(), 0..6).prop_map(|members| {
        let mut item = json!({"id": "1"});
        item.as_object_mut().unwrap().extend(members);
        item
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn terms_are_those_of_the_rules(rules in rules(), item in item()) {
        let terms = terms(&compile(&rules), &item);
        let found: Found = terms.iter().map(read).collect();
        prop_assert_eq!(&found, &expected(&rules, &item));
        prop_assert_eq!(found.len(), terms.len());
        prop_assert!(terms.iter().is_sorted());
    }

    #[test]
    fn the_planner_is_told_what_the_walk_does(rules in rules(), item in item()) {
        let policy = compile(&rules);
        for (steps, _) in values(&item) {
            let segment = |step: &String| match step.as_str() {
                "[]" => Segment::Elements,
                name => Segment::Property(name.to_owned()),
            };
            let path = Path::new(steps.iter().map(segment).collect());
            prop_assert_eq!(policy.is_indexed(&path), is_indexed(&rules, &steps));
        }
    }

    #[test]
    fn leaves_are_counted_once(rules in rules(), old in item(), new in item()) {
        let policy = compile(&rules);
        let leaves = [&old, &new].map(|item| expected_leaves(&rules, item));
        let draft = Draft::parse(old.to_string().as_bytes()).unwrap();
        prop_assert_eq!(leaf_count(&policy, draft.root()) as usize, leaves[0].len());
        let changed = leaves[0].symmetric_difference(&leaves[1]).count();
        let (old, new, none) = (terms(&policy, &old), terms(&policy, &new), Terms::default());
        let charged = charge_difference((&old, &none), (&new, &none));
        prop_assert_eq!(charged as usize, 2 * changed);
    }

    #[test]
    fn applying_a_difference_leads_to_the_new_terms(rules in rules(), old in item(), new in item()) {
        let policy = compile(&rules);
        let (old, new) = (terms(&policy, &old), terms(&policy, &new));
        let change = diff(Some(&old), Some(&new));
        let mut set: BTreeSet<&[u8]> = old.iter().collect();
        for term in &change.removed {
            prop_assert!(set.remove(term));
        }
        for term in &change.added {
            prop_assert!(set.insert(term));
        }
        prop_assert_eq!(set, new.iter().collect::<BTreeSet<_>>());
        prop_assert!(change.removed.is_sorted() && change.added.is_sorted());
    }
}
