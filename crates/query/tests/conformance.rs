//! Goal: every case of the query conformance set gives the expected rows.
//! Method: each case runs over a source in memory in several layouts and page sizes. A case the
//! executor refuses as not supported yet must be listed in `data/not-yet.txt`, and a listed case
//! that passes must be taken off the list. A wrong result is never accepted.

use std::collections::BTreeSet;

use base::Ctx;
use item::Value;
use query::VectorPath;
use query::testing::{VecSource, item, same_rows};
use query::{Direction, Error, FullTextPath, Metric, PageLimits, Parameters, Path, Schema};
use serde_json::Value as Json;

const CASES: &str = include_str!("data/query-cases.jsonl");
const DATASETS: &str = include_str!("data/query-datasets.json");
const NOT_YET: &str = include_str!("data/not-yet.txt");

fn source(case: &Json, datasets: &Json, partitions: usize) -> VecSource {
    let set = case["dataset"].as_str().map(|name| &datasets[name]);
    let docs = set.map_or(&case["data"], |set| &set["docs"]).as_array().expect("documents");
    let items = docs.iter().zip(1..).map(|(doc, ordinal)| item(&doc.to_string(), ordinal));
    let mut source = VecSource::new(items, partitions);
    let composites = set.and_then(|set| set["compositeIndexes"].as_array());
    let key = |key: &Json| {
        let direction = match key[1].as_str().expect("an order") {
            "descending" | "desc" | "DESC" => Direction::Descending,
            _ => Direction::Ascending,
        };
        (path(&key[0]), direction)
    };
    source.composites = composites.map_or(Vec::new(), |all| {
        all.iter().map(|index| index.as_array().expect("keys").iter().map(key).collect()).collect()
    });
    source
}

fn path(text: &Json) -> Path {
    Path::of(text.as_str().expect("a path").trim_start_matches('/').split('/'))
}

/// The policies a dataset asks for.
fn schema(case: &Json, datasets: &Json) -> Schema {
    let Some(name) = case["dataset"].as_str() else { return Schema::default() };
    let list =
        |name: &str, list: &str| datasets[name][list].as_array().cloned().unwrap_or_default();
    let full_text = |text: &Json| FullTextPath { path: path(text), language: "en-US".to_owned() };
    let vector = |vector: &Json| {
        let metric = match vector["distanceFunction"].as_str().expect("a metric") {
            "euclidean" => Metric::Euclidean,
            "dotproduct" => Metric::DotProduct,
            _ => Metric::Cosine,
        };
        VectorPath { path: path(&vector["path"]), metric }
    };
    Schema {
        vectors: list(name, "vectorPaths").iter().map(vector).collect(),
        full_text: list(name, "fullTextPaths").iter().map(full_text).collect(),
        computed: Vec::new(),
        functions: Vec::new(),
    }
}

fn parameters(case: &Json) -> Parameters {
    let given = case["parameters"].as_array().cloned().unwrap_or_default();
    let parameter = |p: &Json| {
        let value = Value::parse(p["value"].to_string().as_bytes()).expect("JSON");
        (p["name"].as_str().expect("a name").to_owned(), value)
    };
    given.iter().map(parameter).collect()
}

/// All rows over all pages of at most `rows_max` rows.
fn run(
    case: &Json,
    schema: &Schema,
    source: &VecSource,
    rows_max: usize,
) -> Result<Vec<Value>, Error> {
    let query = sql::parse(case["query"].as_str().expect("a query"))?;
    let bound = query::bind_with(&query, &parameters(case), schema)?;
    let plan = query::plan(bound, &[vec!["id".to_owned()]], source, None)?;
    let ctx = Ctx::background();
    let limits = PageLimits { rows_max, ..PageLimits::default() };
    let (mut rows, mut state) = (Vec::new(), None);
    loop {
        let page = query::execute(&ctx, &plan, source, state.as_ref(), limits)?;
        assert!(page.rows.len() <= rows_max);
        rows.extend(page.rows.iter().map(|row| Value::parse(row).expect("JSON")));
        let Some(next) = page.state else { return Ok(rows) };
        state = Some(query::State::decode(&next.encode())?);
    }
}

/// `Ok(true)` if the case passes, `Ok(false)` if it is not supported yet.
fn check(
    case: &Json,
    schema: &Schema,
    source: &VecSource,
    rows_max: usize,
) -> Result<bool, String> {
    let is_error = case["error"].as_bool() == Some(true);
    match run(case, schema, source, rows_max) {
        Err(Error::Unsupported { .. }) => Ok(false),
        Err(_) if is_error => Ok(true),
        Err(error) => Err(format!("failed: {error}")),
        Ok(rows) if is_error => {
            Err(format!("should have failed, gave {}", Value::array(rows).to_json()))
        }
        Ok(rows) => {
            let expect = Value::parse(case["expect"].to_string().as_bytes()).expect("JSON");
            let is_ordered = case["ordered"].as_bool() == Some(true);
            match same_rows(&rows, expect.as_array().expect("rows"), is_ordered) {
                true => Ok(true),
                false => {
                    let (rows, expect) = (Value::array(rows).to_json(), &case["expect"]);
                    Err(format!("gave {rows}\n   not {expect}"))
                }
            }
        }
    }
}

#[test]
fn every_case_passes_or_is_listed() {
    let datasets: Json = serde_json::from_str(DATASETS).expect("JSON");
    let listed: BTreeSet<&str> =
        NOT_YET.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    let (mut passed, mut not_yet, mut wrong) = (0, BTreeSet::new(), Vec::new());
    for line in CASES.lines() {
        let case: Json = serde_json::from_str(line).expect("JSON");
        let id = case["id"].as_str().expect("an id").to_owned();
        let mut is_supported = true;
        for (partitions, rows_max, is_indexed) in
            [(1, 1000, true), (1, 1, true), (3, 2, true), (3, 1000, false)]
        {
            let mut source = source(&case, &datasets, partitions);
            source.is_indexed = is_indexed || case["query"].to_string().contains("ORDER BY");
            match check(&case, &schema(&case, &datasets), &source, rows_max) {
                Ok(passes) => is_supported &= passes,
                Err(why) => wrong.push(format!(
                    "{id} ({partitions} partitions, pages of {rows_max})\n   {}\n   {why}",
                    case["query"]
                )),
            }
        }
        if is_supported {
            passed += 1;
        } else {
            not_yet.insert(id);
        }
    }
    assert!(wrong.is_empty(), "{} wrong results\n{}", wrong.len(), wrong.join("\n"));
    let not_yet: BTreeSet<&str> = not_yet.iter().map(String::as_str).collect();
    let now_passing: Vec<_> = listed.difference(&not_yet).collect();
    let unlisted: Vec<_> = not_yet.difference(&listed).collect();
    println!("{passed} cases pass, {} not yet", not_yet.len());
    assert!(now_passing.is_empty(), "take off data/not-yet.txt: {now_passing:?}");
    assert!(unlisted.is_empty(), "not supported, not listed: {unlisted:?}");
}
