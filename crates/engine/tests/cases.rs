//! Goal: every case of the query conformance set gives the expected rows from stored containers,
//! with all the indexes its dataset asks for.
//! Method: one container for each dataset, on every store, on one physical partition and on seven,
//! in pages of one and of all.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::HashMap;
use std::sync::Arc;

use common::*;
use engine::ops::*;
use engine::{Container, Error};
use item::Value;
use query::testing::same_rows;
use serde_json::{Value as Json, json};

const CASES: &str = include_str!("../../query/tests/data/query-cases.jsonl");
const DATASETS: &str = include_str!("../../query/tests/data/query-datasets.json");

/// The container of a dataset.
fn definition(id: &str, set: &Json) -> Json {
    let list = |name: &str| set[name].as_array().cloned().unwrap_or_default();
    let composite = |index: &Json| -> Json {
        let key = |key: &Json| json!({"path": key[0], "order": key[1]});
        index.as_array().unwrap().iter().map(key).collect()
    };
    let spatial = |path: &Json| json!({"path": path, "types": ["Point", "LineString", "Polygon"]});
    let language = "en-US";
    let text = |path: &Json| json!({"path": path, "language": language});
    let vector = |vector: &Json| json!({"path": vector["path"], "type": "flat"});
    json!({
        "id": id,
        "partitionKey": {"paths": ["/id"], "kind": "Hash", "version": 2},
        "indexingPolicy": {
            "compositeIndexes": list("compositeIndexes").iter().map(composite).collect::<Json>(),
            "spatialIndexes": list("spatialIndexes").iter().map(spatial).collect::<Json>(),
            "fullTextIndexes":
                list("fullTextPaths").iter().map(|path| json!({"path": path})).collect::<Json>(),
            "vectorIndexes": list("vectorPaths").iter().map(vector).collect::<Json>(),
        },
        "fullTextPolicy": {
            "defaultLanguage": language,
            "fullTextPaths": list("fullTextPaths").iter().map(text).collect::<Json>(),
        },
        "vectorEmbeddingPolicy": {"vectorEmbeddings": list("vectorPaths")},
    })
}

fn container(db: &Db, id: &str, set: &Json, docs: &Json, ru: u32) -> Arc<Container> {
    let container = db.container_with(definition(id, set), Some(Throughput::Manual(ru)));
    for doc in docs.as_array().unwrap() {
        let key = json!([doc["id"]]).to_string();
        db.write(&container, &key, plain(WriteKind::Create(draft(doc)))).unwrap();
    }
    container
}

fn run(db: &Db, c: &Container, case: &Json, items_max: usize) -> Result<Vec<Value>, Error> {
    let given = case["parameters"].as_array().cloned().unwrap_or_default();
    let parameter = |p: &Json| {
        let value = Value::parse(p["value"].to_string().as_bytes()).unwrap();
        (p["name"].as_str().unwrap().to_owned(), value)
    };
    let text = case["query"].as_str().unwrap().into();
    let query = QueryText { text, parameters: given.iter().map(parameter).collect() };
    let (mut rows, mut continuation) = (Vec::new(), None);
    loop {
        let page =
            PageRequest { items_max: Some(items_max), continuation, ..PageRequest::default() };
        let found = db.engine.query_items(&db.ctx(), c, &Scope::Container, &query, &page)?;
        rows.extend(found.rows.iter().map(|row| Value::parse(row).unwrap()));
        continuation = found.continuation;
        if continuation.is_none() {
            return Ok(rows);
        }
    }
}

fn check(db: &Db, ru: u32) {
    let datasets: Json = serde_json::from_str(DATASETS).unwrap();
    let mut containers: HashMap<String, Arc<Container>> = HashMap::new();
    let mut wrong = Vec::new();
    for line in CASES.lines() {
        let case: Json = serde_json::from_str(line).unwrap();
        let id = case["id"].as_str().unwrap().to_owned();
        let name = case["dataset"].as_str().unwrap_or(&id).to_owned();
        let c = containers.entry(name.clone()).or_insert_with(|| match case["dataset"].as_str() {
            Some(name) => container(db, name, &datasets[name], &datasets[name]["docs"], ru),
            None => container(db, &id, &json!({}), &case["data"], ru),
        });
        for items_max in [1000, 1] {
            let is_right = match run(db, c, &case, items_max) {
                Err(Error::InvalidQuery(_) | Error::Invalid(_)) => case["error"] == true,
                Err(error) => panic!("{id}: {error}"),
                Ok(_) if case["error"] == true => false,
                Ok(rows) => {
                    let expect = Value::parse(case["expect"].to_string().as_bytes()).unwrap();
                    same_rows(&rows, expect.as_array().unwrap(), case["ordered"] == true)
                }
            };
            if !is_right {
                let rows = run(db, c, &case, items_max).map(|rows| Value::array(rows).to_json());
                wrong.push(format!("{id}, pages of {items_max}: {}\n   {rows:?}", case["query"]));
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_case_is_right_on_one_partition() {
    on_every_store(|db| check(db, 400));
}

#[test]
fn every_case_is_right_on_seven_partitions() {
    on_every_store(|db| check(db, 70_000));
}
