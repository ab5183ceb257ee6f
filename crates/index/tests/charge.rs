//! What items are charged for.
//!
//! Goal: T and Δ as the cost model defines them. Method: items and containers small enough to
//! count by hand.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use index::{Policy, Terms, charge_difference, charge_terms, leaf_count};
use item::Draft;
use model::container::ContainerDefinition;
use serde_json::{Value, json};

fn container(extra: Value) -> ContainerDefinition {
    let mut body = json!({"id": "c", "partitionKey": {"paths": ["/pk"], "version": 2}});
    body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    ContainerDefinition::parse(&body).unwrap()
}

fn both(policy: &Policy, item: &Value) -> (Terms, Terms) {
    let draft = Draft::parse(item.to_string().as_bytes()).unwrap();
    (policy.terms(draft.root()), policy.composite_terms(draft.root()))
}

fn charged(container: &ContainerDefinition, item: Value) -> u32 {
    charge_terms(container, &both(&Policy::of(container), &item).0)
}

fn changed(container: &ContainerDefinition, old: Value, new: Value) -> u32 {
    let policy = Policy::of(container);
    let (old, new) = (both(&policy, &old), both(&policy, &new));
    charge_difference((&old.0, &old.1), (&new.0, &new.1))
}

#[test]
fn a_leaf_is_two_terms_and_the_key_one() {
    let container = container(json!({}));
    assert_eq!(charged(&container, json!({"id": "1"})), 3);
    assert_eq!(charged(&container, json!({"id": "1", "pk": "p", "n": 1})), 7);
    assert_eq!(charged(&container, json!({"id": "1", "o": {"a": 1, "b": null}})), 7);
}

#[test]
fn equal_elements_are_one_leaf_and_empty_ones_too() {
    let container = container(json!({}));
    assert_eq!(charged(&container, json!({"id": "1", "t": ["x", "x", "y"]})), 7);
    assert_eq!(charged(&container, json!({"id": "1", "t": [], "o": {}})), 7);
    assert_eq!(charged(&container, json!({"id": "1", "t": [{}, {}, {"a": 1}]})), 7);
}

#[test]
fn the_key_is_free_if_it_is_the_id() {
    let by_id = container(json!({"partitionKey": {"paths": ["/id"]}}));
    assert_eq!(charged(&by_id, json!({"id": "1", "name": "n"})), 4);
    let levels = container(json!({"partitionKey": {"paths": ["/t", "/u", "/id"]}}));
    assert_eq!(charged(&levels, json!({"id": "1"})), 4);
}

#[test]
fn composite_indexes_and_unique_keys_are_one_each() {
    let container = container(json!({
        "indexingPolicy": {"compositeIndexes": [[{"path": "/a"}, {"path": "/b"}]]},
        "uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/a"]}, {"paths": ["/b"]}]},
    }));
    assert_eq!(charged(&container, json!({"id": "1"})), 6);
}

#[test]
fn without_an_index_the_id_and_the_key_remain() {
    let none = container(json!({"indexingPolicy": {"indexingMode": "none"}}));
    let excluded = container(json!({"indexingPolicy": {"excludedPaths": [{"path": "/*"}]}}));
    for container in [none, excluded] {
        assert_eq!(charged(&container, json!({"id": "1", "a": 1, "b": [2]})), 3);
    }
}

#[test]
fn undefined_terms_are_free() {
    let policy = json!({"includedPaths": [{"path": "/*"}, {"path": "/a/?"}]});
    let container = container(json!({ "indexingPolicy": policy }));
    assert_eq!(charged(&container, json!({"id": "1"})), 3);
    let root = Draft::parse(br#"{"id":"1"}"#).unwrap();
    assert_eq!(leaf_count(&Policy::of(&container), root.root()), 1);
}

#[test]
fn a_replacement_pays_for_what_changes() {
    let plain = container(json!({}));
    let item = json!({"id": "1", "n": 1, "t": ["x"]});
    assert_eq!(changed(&plain, item.clone(), item.clone()), 0);
    assert_eq!(changed(&plain, item.clone(), json!({"id": "1", "n": 2, "t": ["x"]})), 4);
    assert_eq!(changed(&plain, item.clone(), json!({"id": "1", "n": 1, "t": ["x", "y"]})), 2);
    assert_eq!(changed(&plain, item, json!({"id": "1", "n": 1, "t": []})), 4);
    let composite = json!({"compositeIndexes": [[{"path": "/a"}, {"path": "/b"}]]});
    let composite = container(json!({ "indexingPolicy": composite }));
    assert_eq!(changed(&composite, json!({"id": "1", "a": 1}), json!({"id": "1", "a": 2})), 6);
}

/// A term holds 192 bytes of a string; what is behind them counts all the same.
#[test]
fn long_strings_are_told_apart_to_their_ends() {
    let container = container(json!({}));
    let item = |texts: &[String]| json!({"id": "1", "t": texts});
    for length in [191, 192, 193, 5000] {
        let text = |end: &str| "x".repeat(length - 1) + end;
        assert_eq!(charged(&container, item(&[text("a"), text("b"), text("a")])), 7, "{length}");
        let changed =
            |old: &str, new: &str| changed(&container, item(&[text(old)]), item(&[text(new)]));
        assert_eq!((changed("a", "a"), changed("a", "b")), (0, 4), "{length}");
    }
    let moved = |name: &str| json!({"id": "1", name: "x".repeat(300)});
    assert_eq!(changed(&container, moved("a"), moved("b")), 4);
}
