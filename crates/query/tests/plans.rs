//! Goal: plans are what a reader would expect, and read no more than they should.
//! Method: a golden script, `data/plans.golden`: each query with its plan, how many rows it gives and
//! what it read. `UPDATE_GOLDEN=1` writes the script anew; the difference is for a person to judge.

#![allow(clippy::unwrap_used)] // A test that cannot go on fails there.

use std::fmt::Write;

use base::Ctx;
use item::Value;
use query::testing::{TestFunctions, VecSource, item};
use query::{Direction, PageLimits, Parameters, Path, Strategy};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/plans.golden");

/// Four places, by country.
fn places() -> VecSource {
    let bodies = [
        r#"{"id":"1","country":"no","city":"Oslo","size":7,"tags":["a","b"],"notes":{"stars":3}}"#,
        r#"{"id":"2","country":"no","city":"Bergen","size":3,"notes":{"stars":5}}"#,
        r#"{"id":"3","country":"se","city":"Oslo","size":5,"tags":["b"],"notes":{"stars":4}}"#,
        r#"{"id":"4","country":"se","city":"Malmo"}"#,
    ];
    let items = bodies.iter().zip(1..).map(|(body, ordinal)| item(body, ordinal));
    let mut source = VecSource::new(items, 2).keyed(&[vec!["country".to_owned()]]);
    source.excluded = vec![Path::of(["notes", "stars"])];
    source
}

/// Three thousand posts, comments and likes of fifty users, with an index for their dates.
fn many() -> VecSource {
    let body = |n: u64| {
        let kind = ["post", "comment", "like"][(n % 3) as usize];
        let (user, odd) = (n % 50, n % 2);
        format!(
            r#"{{"id":"{n}","country":"no","type":"{kind}","user":"u{user}","odd":{odd},"date":{n}}}"#
        )
    };
    let items = (1..=3000).map(|n| item(&body(n), n));
    let mut source = VecSource::new(items, 2).keyed(&[vec!["country".to_owned()]]);
    let up = Direction::Ascending;
    source.composites = vec![vec![(Path::of(["type"]), up), (Path::of(["date"]), up)]];
    source
}

fn source(name: &str) -> VecSource {
    match name {
        "places" => places(),
        "places of no" => places().fixed(vec![Value::from("no")]),
        "places, some invisible" => {
            let mut source = places();
            source.is_exact = false;
            source
        }
        "many" => many(),
        other => panic!("the script names a source {other}"),
    }
}

/// What the script says about a query.
fn explain(source: &VecSource, text: &str, strategy: Strategy) -> String {
    let (parsed, schema) = (sql::parse(text).unwrap(), TestFunctions::schema());
    let bound = query::bind_with(&parsed, &Parameters::new(), &schema).unwrap();
    let functions = TestFunctions::of(&bound);
    let keys = [vec!["country".to_owned()]];
    let routing = query::routing(&bound, &keys);
    let plan = match query::plan_by(bound, &routing, source, None, strategy) {
        Ok(plan) => plan,
        Err(error) => return format!("refused: {error}\n"),
    };
    let ctx = Ctx::background();
    let limits = PageLimits::default();
    let page = query::execute_with(&ctx, &plan, source, None, limits, &functions).unwrap();
    let (read, mut out) = (ctx.meter().read(), plan.to_string());
    let few = page.rows.iter().take(3).map(|row| String::from_utf8_lossy(row));
    let few: Vec<_> = few.map(|row| row.chars().take(40).collect::<String>()).collect();
    let more = if page.rows.len() > 3 { " …" } else { "" };
    writeln!(out, "rows: {} = {}{more}", page.rows.len(), few.join(" ")).unwrap();
    let (terms, items, scanned) = (read.terms_read, read.items_read, read.items_scanned);
    writeln!(out, "read: {terms} entries, {items} items; scanned: {scanned} items").unwrap();
    out
}

#[test]
fn plans_are_as_written() {
    let script = std::fs::read_to_string(SCRIPT).unwrap();
    let (mut result, mut over) = (String::new(), source("places"));
    for line in script.lines() {
        if let Some(name) = line.strip_prefix("over ") {
            over = source(name);
            writeln!(result, "{line}\n").unwrap();
        } else if line.starts_with('#') {
            writeln!(result, "{line}").unwrap();
        } else if let Some(query) = line.strip_prefix("literally ") {
            writeln!(result, "{line}\n{}", explain(&over, query, Strategy::Literal)).unwrap();
        } else if line.starts_with("SELECT") {
            writeln!(result, "{line}\n{}", explain(&over, line, Strategy::Least)).unwrap();
        }
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(SCRIPT, &result).unwrap();
    }
    assert!(result == script, "plans changed; look at the difference after UPDATE_GOLDEN=1");
}
