//! Goal: the words of texts are found under their terms, and nowhere else, after any write and
//! while the language changes.
//!
//! Method: a handful of transactions on one partition; after each, the ordinals under a word, and
//! what `verify` has to say.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use index::{Path, TermRange, full_text_range};
use item::Draft;
use model::container::ContainerDefinition;
use model::partition_key::PartitionKey;
use serde_json::{Value, json};
use storage::cache::ItemCache;
use storage::keys;
use storage::pending::Pending;
use storage::shape::{Layout, LogicalKey, Shape, Start};
use storage::txn::{At, Body, Txn};
use storage::verify::verify;
use storage::visibility::Visibility;
use store::{ScanOptions, Space, Store};
use store_memory::MemoryStore;

/// Ten digits, as drafts expect.
const NOW: u32 = 1_700_000_000;
const VISIBILITY: Visibility<'_> = Visibility { now: NOW, default_ttl: None, erasures: &[] };

fn definition(language: &str) -> Arc<ContainerDefinition> {
    let body = json!({
        "id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
        "indexingPolicy": {"fullTextIndexes": [{"path": "/text"}]},
        "fullTextPolicy": {"fullTextPaths": [{"path": "/text", "language": language}]},
    });
    Arc::new(ContainerDefinition::parse(&body).unwrap())
}

struct Db {
    store: MemoryStore,
    layout: Layout,
    shape: Shape,
    key: LogicalKey,
    cache: Arc<ItemCache>,
    pending: Pending,
}

impl Db {
    fn new() -> Db {
        let definition = definition("en-US");
        let start = Start { sequence: 0, first_log: 0 };
        let layout = Layout::new((1, 1), definition.partition_key.clone(), 1, start, |_| 0);
        let key = LogicalKey::new(&layout, PartitionKey::parse(r#"["p"]"#).unwrap());
        Db {
            store: MemoryStore::new(),
            layout,
            shape: Shape::new(definition),
            key,
            cache: Arc::new(ItemCache::new(0)),
            pending: Pending::default(),
        }
    }

    /// Creates or replaces an item; without a text it is deleted.
    fn write(&mut self, id: &str, text: Option<Value>) {
        let at =
            At { layout: &self.layout, shape: &self.shape, key: &self.key, visibility: VISIBILITY };
        let mut txn = Txn::begin(at, self.store.view(), &mut self.pending);
        let old = txn.get(id).unwrap();
        let body = text.map(|text| {
            let body = json!({"id": id, "pk": "p", "text": text}).to_string();
            Body::new(&self.shape, Draft::parse(body.as_bytes()).unwrap())
        });
        match (old, body) {
            (Some(old), Some(body)) => txn.replace(old, id, body, true).unwrap(),
            (None, Some(body)) => drop(txn.create(id, body, true).unwrap()),
            (Some(old), None) => txn.delete(old),
            (None, None) => {}
        }
        let committed = txn.commit(&self.store, &self.cache, NOW).unwrap();
        committed.unwrap().ticket.wait().unwrap();
    }

    /// How many items have a word, and that nothing else is wrong.
    fn check(&self, token: &str, expect: usize) {
        let partition = &self.layout.partitions[0];
        let TermRange { start, end, .. } = full_text_range(&Path::of_properties(["text"]), token);
        let range = partition.place.texts(&start, &end);
        let view = self.store.view();
        let found = view.reader().scan(Space::Term, &range, ScanOptions::default()).unwrap();
        let ordinals = found.rows.iter().filter_map(|row| keys::ordinal_of(&row.key));
        assert_eq!(ordinals.count(), expect, "{token}");
        let report = verify(&view, &self.layout, &self.shape, partition, |_| {}).unwrap();
        assert!(report.findings.is_empty(), "{:?}", report.findings);
    }
}

#[test]
fn terms_follow_the_text() {
    let mut db = Db::new();
    db.write("1", Some(json!("Red bicycles and a red barn")));
    db.write("2", Some(json!("The bicycle")));
    db.write("3", Some(json!(42)));
    db.check("bicycl", 2);
    db.check("red", 1);
    db.check("the", 0);
    db.write("1", Some(json!("a barn")));
    db.check("bicycl", 1);
    db.check("red", 0);
    db.check("barn", 1);
    db.write("2", None);
    db.check("bicycl", 0);
    db.write("1", Some(Value::Null));
    db.check("barn", 0);
}

#[test]
fn a_language_that_changes_leaves_nothing_behind() {
    let mut db = Db::new();
    db.write("1", Some(json!("Die alten Häuser")));
    db.write("2", Some(json!("Häuser")));
    db.check("häuser", 2);
    assert!(index::Policy::differs(&db.shape.definition, &definition("de-DE")));
    let old = std::mem::replace(&mut db.shape, Shape::new(definition("de-DE")));
    db.shape.retired = vec![old.policy];
    db.check("haus", 0);
    db.write("1", Some(json!("Die alten Häuser")));
    db.write("2", Some(json!("Häuser")));
    db.check("haus", 2);
    db.check("häuser", 0);
    db.shape.retired.clear();
    db.check("haus", 2);
    db.write("1", None);
    db.write("2", None);
    db.check("haus", 0);
}
