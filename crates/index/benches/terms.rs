//! How long the work of a write takes: `cargo bench -p index`.
//!
//! Prints the median of many rounds. Plain `std`, because one number per function is all we need.

use std::hint::black_box;
use std::time::Instant;

use index::{Policy, diff};
use item::Draft;
use model::container::IndexingPolicy;
use model::epk::EffectivePartitionKey;
use model::partition_key::{
    HashVersion, PartitionKey, PartitionKeyDefinition, PartitionKind, PropertyPath,
};
use serde_json::{Value, json};

const ROUNDS: usize = 200;
const CALLS: usize = 2_000;

fn measure<T>(name: &str, mut call: impl FnMut() -> T) {
    let mut rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            (0..CALLS).for_each(|_| drop(black_box(call())));
            start.elapsed().as_nanos() as f64 / CALLS as f64
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    println!("{name:<44} {:>8.0} ns", rounds[ROUNDS / 2]);
}

/// About 1 KB with 12 leaves.
fn flat() -> Value {
    json!({
        "id": "7f1c2b9e-0d1f-4c35-9a0e-2f8f5b1c7d11", "type": "post", "postId": "p-000123",
        "userId": "u-4711", "userUsername": "somebody", "title": "Modelling data with care",
        "content": "x".repeat(600), "creationDate": "2024-05-17T09:12:33Z", "likeCount": 17,
        "commentCount": 4, "isPublished": true, "editor": null,
    })
}

/// The same with 25 leaves, some in arrays and objects.
fn nested() -> Value {
    let mut item = flat();
    item["content"] = json!("x".repeat(300));
    item["tags"] = json!(["data", "modelling", "cosmos", "rust"]);
    item["author"] = json!({"name": "S. B.", "city": "Oslo", "age": 44, "vip": false});
    item["visits"] = json!([{"day": 1, "n": 5}, {"day": 2, "n": 6}, {"n": 7}]);
    item
}

fn policy(json: Value) -> Policy {
    Policy::compile(&IndexingPolicy::parse(&json).expect("a valid policy"))
}

fn main() {
    let everything = policy(json!({}));
    let listed = policy(json!({
        "includedPaths": [{"path": "/userId/?"}, {"path": "/creationDate/?"}, {"path": "/author/city/?"}],
        "excludedPaths": [{"path": "/*"}],
        "compositeIndexes": [[{"path": "/userId"}, {"path": "/creationDate", "order": "descending"}]],
    }));
    for (name, item) in [("12 leaves", flat()), ("25 leaves", nested())] {
        let text = item.to_string();
        let draft = Draft::parse(text.as_bytes()).expect("a valid item");
        let root = draft.root();
        println!("{name}, {} bytes", text.len());
        measure("  terms, everything indexed", || everything.terms(root));
        measure("  terms, three paths listed", || listed.terms(root));
        measure("  composite terms, one index of two paths", || listed.composite_terms(root));
        let mut changed = item.clone();
        changed["likeCount"] = json!(18);
        let changed = Draft::parse(changed.to_string().as_bytes()).expect("a valid item");
        let (old, new) = (everything.terms(root), everything.terms(changed.root()));
        measure("  diff, one property changed", || diff(Some(&old), Some(&new)).added.len());
    }
    let header = r#"["7f1c2b9e-0d1f-4c35-9a0e-2f8f5b1c7d11"]"#;
    let key = PartitionKey::parse(header).expect("a valid key");
    let definition = PartitionKeyDefinition {
        paths: vec![PropertyPath::parse("/pk").expect("a valid path")],
        kind: PartitionKind::Hash,
        version: HashVersion::V2,
        system_key: false,
    };
    println!("partition key of 36 characters");
    measure("  parse the header", || PartitionKey::parse(header));
    measure("  effective partition key", || EffectivePartitionKey::of(&definition, &key));
    measure("  locality", || index::locality(&key.to_bytes()));
    measure("  time term", || index::ts_term(1_700_000_000));
}
