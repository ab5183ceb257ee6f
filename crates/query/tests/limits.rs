//! Goal: the largest queries the parser lets through are bound, planned and run within the stack
//! of an ordinary thread.

#![allow(clippy::unwrap_used)] // A test that cannot go on fails there.

use base::Ctx;
use query::testing::{VecSource, item};
use query::{PageLimits, Parameters};
use sql::limits::{ANDS_MAX, HEIGHT_MAX, NESTING_MAX, SUBQUERY_NESTING};

fn run(text: &str) -> String {
    let source = VecSource::new([item(r#"{"id":"1","x":1,"t":[1]}"#, 1)], 1);
    let query = sql::parse(text).unwrap();
    let _ = query::plan_info(&query, &Parameters::new());
    let bound = query::bind(&query, &Parameters::new()).unwrap();
    query::routing(&bound, &[vec!["id".to_owned()]]);
    let plan = query::plan(bound, &[vec!["id".to_owned()]], &source, None).unwrap();
    let ctx = Ctx::background();
    let page = query::execute(&ctx, &plan, &source, None, PageLimits::default()).unwrap();
    page.rows.iter().map(|row| String::from_utf8_lossy(row)).collect::<Vec<_>>().join(" ")
}

#[test]
fn chains() {
    let n = HEIGHT_MAX as usize - 2;
    assert_eq!(run(&format!("SELECT VALUE c.x{} FROM c", " + 1".repeat(n))), format!("{}", n + 1));
    assert_eq!(run(&format!("SELECT VALUE c{} FROM c", ".x".repeat(n))), "");
    let filter = "c.x = 1 AND ".repeat(ANDS_MAX);
    assert_eq!(run(&format!("SELECT VALUE 1 FROM c WHERE {filter} true")), "1");
}

#[test]
fn nesting() {
    let n = NESTING_MAX - 1;
    let calls = format!("{}c.x{}", "ABS(".repeat(n), ")".repeat(n));
    assert_eq!(run(&format!("SELECT VALUE {calls} FROM c")), "1");
    let arrays = format!("{}c.x{}", "[".repeat(n), "]".repeat(n));
    assert_eq!(run(&format!("SELECT VALUE {arrays} FROM c")), arrays.replace("c.x", "1"));
}

#[test]
fn nested_subqueries() {
    let n = NESTING_MAX / SUBQUERY_NESTING - 1;
    let query = format!("{}c.x{}", "(SELECT VALUE ".repeat(n), ")".repeat(n));
    assert_eq!(run(&format!("SELECT VALUE {query} FROM c")), "1");
    let filter =
        format!("{}true{}", "EXISTS(SELECT VALUE 1 FROM t IN c.t WHERE ".repeat(n), ")".repeat(n));
    assert_eq!(run(&format!("SELECT VALUE 1 FROM c WHERE {filter}")), "1");
}
