//! Goal: the counts of items per path are right after any writes, for every path that all policies
//! in play index (N1), and for all paths once a change of policy is finished (N2).
//!
//! Method: random transactions, among them changes of policy with writes at every point of them,
//! against a list of bodies that is counted from scratch after every step.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::sync::Arc;

use index::Path;
use item::Draft;
use model::container::ContainerDefinition;
use model::partition_key::PartitionKey;
use proptest::prelude::*;
use serde_json::{Value, json};
use storage::cache::ItemCache;
use storage::counts::corrections;
use storage::pending::Pending;
use storage::scan::PartitionReader;
use storage::shape::{Layout, LogicalKey, Shape, Start};
use storage::txn::{At, Body, Txn};
use storage::visibility::Visibility;
use store::{Commit, Store, View};
use store_memory::MemoryStore;

const PATHS: [&str; 6] = ["", "id", "_ts", "a", "a/b", "c"];
const VISIBILITY: Visibility<'_> = Visibility { now: 1, default_ttl: None, erasures: &[] };

/// One write of a transaction.
#[derive(Debug, Clone)]
enum Write {
    /// Creates the item or replaces it.
    Put {
        id: u8,
        body: usize,
        is_indexed: bool,
    },
    Delete {
        id: u8,
    },
}

#[derive(Debug, Clone)]
enum Step {
    Transaction(Vec<Write>),
    /// Puts another policy in force.
    Change(usize),
    /// Looks at a view, for the corrections.
    Look,
    /// Adds the corrections of the last look and forgets the retired policies.
    Finish,
}

fn bodies() -> [Value; 6] {
    [
        json!({}),
        json!({"a": 1}),
        json!({"a": {"b": null}}),
        json!({"a": {"b": [1, {"b": 2}]}, "c": "x"}),
        json!({"c": {}}),
        json!({"a": [{"b": 1}], "c": [1, 2]}),
    ]
}

fn policies() -> [Value; 4] {
    let only =
        |path: &str| json!({"includedPaths": [{"path": path}], "excludedPaths": [{"path": "/*"}]});
    [json!({}), only("/a/?"), only("/a/*"), json!({"indexingMode": "none", "automatic": false})]
}

fn definition(policy: usize) -> Arc<ContainerDefinition> {
    let body = json!({
        "id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
        "indexingPolicy": policies()[policy],
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
    /// Body and whether it is indexed.
    model: BTreeMap<u8, (Value, bool)>,
    /// A view that has all writes decided under earlier policies.
    seen: Option<View>,
}

impl Db {
    fn new() -> Db {
        let definition = definition(0);
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
            model: BTreeMap::new(),
            seen: None,
        }
    }

    fn run(&mut self, step: &Step) {
        match step {
            Step::Transaction(writes) => self.transact(writes),
            Step::Change(policy) => {
                let old = std::mem::replace(&mut self.shape, Shape::new(definition(*policy)));
                self.shape.retired = old.retired;
                self.shape.retired.push(old.policy);
                self.seen = None;
            }
            Step::Look => self.seen = Some(self.store.view()),
            Step::Finish => self.finish(),
        }
    }

    fn transact(&mut self, writes: &[Write]) {
        let at =
            At { layout: &self.layout, shape: &self.shape, key: &self.key, visibility: VISIBILITY };
        let mut txn = Txn::begin(at, self.store.view(), &mut self.pending);
        for write in writes {
            match write {
                Write::Put { id, body, is_indexed } => {
                    let (name, mut value) = (id.to_string(), bodies()[*body].clone());
                    (value["id"], value["pk"]) = (json!(name), json!("p"));
                    let draft = Draft::parse(value.to_string().as_bytes()).unwrap();
                    let body = Body::new(&self.shape, draft);
                    match txn.get(&name).unwrap() {
                        Some(old) => txn.replace(old, &name, body, *is_indexed).unwrap(),
                        None => drop(txn.create(&name, body, *is_indexed).unwrap()),
                    }
                    self.model.insert(*id, (value, *is_indexed));
                }
                Write::Delete { id } => {
                    if let Some(handle) = txn.get(&id.to_string()).unwrap() {
                        txn.delete(handle);
                    }
                    self.model.remove(id);
                }
            }
        }
        if let Some(committed) = txn.commit(&self.store, &self.cache, 1).unwrap() {
            committed.ticket.wait().unwrap();
        }
    }

    fn finish(&mut self) {
        let Some(view) = self.seen.take() else { return };
        let place = &self.layout.partitions[0].place;
        let merges = corrections(&view, place, &self.shape.policy).unwrap();
        self.store.commit(Commit { merges, ..Commit::default() }).wait().unwrap();
        self.shape.retired.clear();
    }

    fn check(&self) {
        let view = self.store.view();
        let partition = &self.layout.partitions[0];
        let visibility = VISIBILITY;
        let reader = PartitionReader { layout: &self.layout, partition, view: &view, visibility };
        for text in PATHS {
            let path = Path::of_properties(text.split('/').filter(|name| !name.is_empty()));
            let count = reader.items_with_path(&path).unwrap();
            if self.shape.is_complete(&path) {
                assert_eq!(count, self.count(text), "{text}");
            }
        }
    }

    /// How many indexed items have a value at a path.
    fn count(&self, path: &str) -> u64 {
        let pointer = if path.is_empty() { String::new() } else { format!("/{path}") };
        let is_counted = |(body, is_indexed): &&(Value, bool)| {
            *is_indexed && (path == "_ts" || body.pointer(&pointer).is_some())
        };
        self.model.values().filter(is_counted).count() as u64
    }

    fn stored_counts(&self) -> u64 {
        let range = self.layout.partitions[0].place.all_path_counts();
        self.store.view().reader().count(store::Space::Meta, &range).unwrap()
    }
}

fn check(steps: &[Step]) {
    let mut db = Db::new();
    for step in steps {
        db.run(step);
        db.check();
    }
    for step in [Step::Look, Step::Finish] {
        db.run(&step);
        db.check();
    }
    db.transact(&[0, 1, 2, 3].map(|id| Write::Delete { id }));
    db.check();
    assert_eq!(db.stored_counts(), 0, "sums that are zero are gone");
}

fn any_write() -> impl Strategy<Value = Write> {
    let is_indexed = prop::bool::weighted(0.8);
    prop_oneof![
        3 => (0..4u8, 0..6usize, is_indexed)
            .prop_map(|(id, body, is_indexed)| Write::Put { id, body, is_indexed }),
        1 => (0..4u8).prop_map(|id| Write::Delete { id }),
    ]
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => prop::collection::vec(any_write(), 1..4).prop_map(Step::Transaction),
        2 => (0..4usize).prop_map(Step::Change),
        2 => Just(Step::Look),
        1 => Just(Step::Finish),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn counts_agree_with_the_items(steps in prop::collection::vec(any_step(), 1..30)) {
        check(&steps);
    }
}

#[test]
fn an_item_left_out_of_the_index_does_not_count() {
    let mut db = Db::new();
    let put = |is_indexed| Step::Transaction(vec![Write::Put { id: 1, body: 3, is_indexed }]);
    db.run(&put(false));
    assert_eq!((db.count(""), db.stored_counts()), (0, 0));
    db.run(&put(true));
    assert_eq!((db.count(""), db.stored_counts()), (1, 6)); // root, a, a/b, c, id, pk
    db.check();
    db.run(&put(false));
    assert_eq!((db.count(""), db.stored_counts()), (0, 0));
}
