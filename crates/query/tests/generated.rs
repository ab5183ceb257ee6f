//! Goal: any query on any data gives the same rows with the index and without it, on one partition
//! and on seven, in pages of one, three and all (E1, E2).
//! Method: generated items and queries; the plainest layout that can run a query is the oracle for
//! all others, and for its own order.

#![allow(clippy::unwrap_used)] // A test that cannot go on fails there.

use base::Ctx;
use item::{Item, Value};
use query::testing::{
    GeneratedQuery, Generator, TestFunctions, VecSource, generated_composites, item, rows_in_pages,
};
use query::{Direction, PageLimits, Parameters};

const SEEDS: u64 = 120;
const QUERIES_PER_SEED: usize = 12;

/// The rows of every plan that could serve the query, in pages of two.
fn run_all_plans(source: &VecSource, text: &str) -> Vec<(String, Vec<String>)> {
    let (parsed, schema) = (sql::parse(text).unwrap(), TestFunctions::schema());
    let bound = query::bind_with(&parsed, &Parameters::new(), &schema).unwrap();
    let functions = TestFunctions::of(&bound);
    let limits = PageLimits { rows_max: 2, ..PageLimits::default() };
    let run = |plan: &query::Plan| {
        let (mut rows, mut state) = (Vec::new(), None);
        loop {
            let ctx = Ctx::background();
            let page = query::execute_with(&ctx, plan, source, state.as_ref(), limits, &functions)
                .unwrap();
            rows.extend(page.rows.iter().map(|row| String::from_utf8(row.to_vec()).unwrap()));
            let Some(next) = page.state else { return (plan.to_string(), rows) };
            state = Some(next);
        }
    };
    let plans = query::testing::all_plans(&bound, &[vec!["pk".to_owned()]], source);
    plans.iter().map(run).collect()
}

fn layout(items: &[Item], partitions: usize) -> VecSource {
    let mut source = VecSource::new(items.to_vec(), partitions).keyed(&[vec!["pk".to_owned()]]);
    source.composites = generated_composites();
    source.string_bytes_max = 6;
    source
}

/// No index, but what sorting demands; nothing is answered by counting.
fn plainest(items: &[Item]) -> VecSource {
    let mut source = layout(items, 1);
    source.is_exact = false;
    source.string_bytes_max = 1000;
    source.composites = generated_composites();
    source
}

fn is_in_order(query: &GeneratedQuery, rows: &[String]) -> bool {
    rows.is_sorted_by(|a, b| {
        let (a, b) = (Value::parse(a.as_bytes()).unwrap(), Value::parse(b.as_bytes()).unwrap());
        for (name, direction) in &query.order {
            // Arrays are all alike, and so are objects.
            let rank = |value: &Value| match value {
                Value::Array(_) => Value::array(Vec::new()),
                Value::Object(_) => Value::parse(b"{}").unwrap(),
                Value::Undefined | Value::Null => value.clone(),
                Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
            };
            let order = rank(a.get(name)).compare(&rank(b.get(name)));
            let order = if *direction == Direction::Descending { order.reverse() } else { order };
            if order.is_ne() {
                return order.is_lt();
            }
        }
        true
    })
}

fn sorted(rows: &[String]) -> Vec<String> {
    let mut rows = rows.to_vec();
    rows.sort();
    rows
}

#[test]
fn rows_do_not_depend_on_how_they_are_found() {
    for seed in 0..SEEDS {
        let mut generator = Generator::new(seed, "longer-");
        generator.calls_functions = seed % 3 == 0;
        let count = (seed % 23) as usize;
        let items: Vec<Item> =
            (0..count).map(|number| item(&generator.body(number), number as u64 * 3 + 1)).collect();
        let plain = plainest(&items);
        for _ in 0..QUERIES_PER_SEED {
            let query = generator.query();
            let mut scanned = plain.clone();
            scanned.is_indexed = !query.order.is_empty();
            let expect = rows_in_pages(&scanned, &query.text, 1000);
            assert!(is_in_order(&query, &expect), "{seed}: {}\n{expect:#?}", query.text);
            for partitions in [1, 7] {
                let source = layout(&items, partitions);
                let rows = rows_in_pages(&source, &query.text, 1000);
                let at = format!("{seed}, {partitions} partitions: {}", query.text);
                assert!(is_in_order(&query, &rows), "{at}\n{rows:#?}");
                assert_eq!(sorted(&rows), sorted(&expect), "{at}");
                for (plan, rows) in run_all_plans(&source, &query.text) {
                    assert!(is_in_order(&query, &rows), "{at}\n{plan}\n{rows:#?}");
                    assert_eq!(sorted(&rows), sorted(&expect), "{at}\n{plan}");
                }
                for rows_max in [1, 3] {
                    assert_eq!(
                        rows_in_pages(&source, &query.text, rows_max),
                        rows,
                        "{at}, in {rows_max}s"
                    );
                }
            }
        }
    }
}

/// A walk along the order meets hundreds of items that another condition does not want: it stops
/// loading them, and misses none that it wants.
#[test]
fn an_order_with_few_wanted_items() {
    let bodies = (0..600).map(|n| {
        let kind = if n % 40 == 7 { "wanted" } else { "other" };
        format!(r#"{{"id":"{n}","pk":"{}","kind":"{kind}","n":{}}}"#, n % 5, n * 7919 % 601)
    });
    let items: Vec<Item> = bodies.zip(1..).map(|(body, n)| item(&body, n)).collect();
    for direction in ["ASC", "DESC"] {
        let text =
            format!("SELECT c.n, c.id FROM c WHERE c.kind = 'wanted' ORDER BY c.n {direction}");
        let expect = rows_in_pages(&plainest(&items), &text, 1000);
        assert_eq!(expect.len(), 15);
        for partitions in [1, 7] {
            for (plan, rows) in run_all_plans(&layout(&items, partitions), &text) {
                assert_eq!(rows, expect, "{plan}");
            }
        }
    }
}
