//! Goal: user-defined functions can be called wherever an expression stands, as often as needed and
//! never for nothing, and what they fail of reaches the client.
//! Method: functions written in Rust that keep a list of their calls.

#![allow(clippy::unwrap_used)] // A test that cannot go on fails there.

use std::sync::Arc;
use std::time::Duration;

use base::{Ctx, Deadline, Random, SystemClock};
use item::Value;
use query::testing::{TestFunctions, VecSource, all_plans, item, rows_in_pages};
use query::{
    Argument, BoundQuery, Computed, Error, Page, PageEnd, PageLimits, Parameters, Schema, Udf,
    UdfError,
};

fn source() -> VecSource {
    let bodies = [
        r#"{"id":"1","v":1,"name":"ann","tags":["a","b"],"n":{"x":1}}"#,
        r#"{"id":"2","v":2,"name":"bob","tags":[]}"#,
        r#"{"id":"3","name":"cid","n":{"x":2}}"#,
        r#"{"id":"4","v":"many","tags":["b"],"n":{}}"#,
    ];
    VecSource::new(bodies.iter().zip(1..).map(|(body, ordinal)| item(body, ordinal)), 1)
}

fn bind(text: &str) -> Result<BoundQuery, Error> {
    let parsed = sql::parse(text)?;
    query::bind_with(&parsed, &Parameters::new(), &TestFunctions::schema())
}

/// One page of a query over a source, with the calls it made.
fn run_over(ctx: &Ctx, source: &VecSource, text: &str) -> (Result<Page, Error>, Vec<String>) {
    let bound = bind(text).unwrap();
    let functions = TestFunctions::of(&bound);
    let plan = query::plan(bound, &[vec!["id".to_owned()]], source, None).unwrap();
    let page = query::execute_with(ctx, &plan, source, None, PageLimits::default(), &functions);
    (page, functions.calls())
}

fn run(text: &str) -> (Result<Page, Error>, Vec<String>) {
    run_over(&Ctx::background(), &source(), text)
}

#[test]
fn functions_stand_wherever_expressions_do() {
    let check = |text: &str, expect: &str| {
        for rows_max in [1, 1000] {
            let rows = rows_in_pages(&source(), text, rows_max);
            assert_eq!(rows.join(" "), expect, "{text}");
        }
    };
    // The select list, with undefined results left out.
    check("SELECT VALUE udf.add(c.v, 1) FROM c", "2 3");
    check("SELECT TOP 1 udf.add(c.name, '!'), c.id FROM c", r#"{"$1":"ann!","id":"1"}"#);
    check("SELECT TOP 1 VALUE {\"a\": [udf.same(c.v)]} FROM c", r#"{"a":[1]}"#);
    check("SELECT VALUE udf.nothing() FROM c", "");
    check("SELECT VALUE udf.count()", "0");
    check("SELECT VALUE udf.count(1, 'a', null, [])", "4");
    check("SELECT VALUE udf.count(1, 'a', null, [], {})", "5");
    // The filter.
    check("SELECT VALUE c.id FROM c WHERE udf.isLarge(c.v)", r#""2""#);
    check("SELECT VALUE c.id FROM c WHERE NOT udf.isLarge(c.v)", r#""1""#);
    check("SELECT VALUE c.id FROM c WHERE udf.same(c.name) IN ('ann', 'cid')", r#""1" "3""#);
    check("SELECT VALUE c.id FROM c WHERE 'bob' IN (c.id, udf.same(c.name))", r#""2""#);
    check("SELECT VALUE c.id FROM c WHERE c.v BETWEEN udf.add(1, 1) AND 3", r#""2""#);
    check("SELECT VALUE c.id FROM c WHERE c.name LIKE udf.add('b', '%')", r#""2""#);
    check("SELECT VALUE c.id FROM c WHERE (udf.isLarge(c.v) ? true : c.id = '4')", r#""2" "4""#);
    check("SELECT VALUE c.id FROM c WHERE (udf.same(c.v) ?? 0) = 0", r#""3""#);
    check("SELECT VALUE c.id FROM c WHERE ARRAY_CONTAINS(udf.tags(c), 'b')", r#""1" "4""#);
    // Each other's arguments, built-in functions and what they return.
    check("SELECT VALUE udf.add(udf.add(c.v, 1), ABS(-2)) FROM c", "4 5");
    check("SELECT VALUE UPPER(udf.same(c.name)) FROM c WHERE c.id < '3'", r#""ANN" "BOB""#);
    check("SELECT VALUE udf.same(c).n.x FROM c", "1 2");
    check("SELECT VALUE udf.tags(c)[1] FROM c", r#""b""#);
    // Sources and subqueries.
    check(
        "SELECT c.id, t FROM c JOIN t IN (SELECT VALUE udf.tags(c))",
        r#"{"id":"1","t":"a"} {"id":"1","t":"b"} {"id":"4","t":"b"}"#,
    );
    check("SELECT VALUE t FROM c JOIN (SELECT VALUE udf.same(c.v)) t", r#"1 2 "many""#);
    check("SELECT VALUE (SELECT VALUE udf.add(c.v, 1)) FROM c", "2 3");
    check(
        "SELECT VALUE ARRAY(SELECT VALUE udf.add(t, 'x') FROM t IN c.tags) FROM c \
           WHERE c.id = '1'",
        r#"["ax","bx"]"#,
    );
    check(
        "SELECT VALUE c.id FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.tags \
           WHERE udf.same(t) = 'a')",
        r#""1""#,
    );
    // Groups and aggregates.
    check("SELECT VALUE SUM(udf.add(c.v, 1)) FROM c WHERE IS_NUMBER(c.v)", "5");
    check("SELECT VALUE udf.add(COUNT(1), 1) FROM c", "5");
    check("SELECT VALUE COUNT(1) FROM c WHERE udf.isLarge(c.v)", "1");
    check(
        "SELECT udf.isLarge(c.v) AS large, COUNT(1) AS n FROM c GROUP BY udf.isLarge(c.v)",
        r#"{"n":2} {"large":false,"n":1} {"large":true,"n":1}"#,
    );
    check("SELECT DISTINCT VALUE udf.isLarge(c.v) FROM c", "false true");
    // Orders: by paths, and of rows that are complete.
    check("SELECT VALUE udf.same(c.id) FROM c ORDER BY c.id DESC", r#""4" "3" "2" "1""#);
    check(
        "SELECT VALUE d.id FROM (SELECT DISTINCT c.id, c.v FROM c) d ORDER BY udf.add(d.v, 1) DESC",
        r#""2" "1" "3" "4""#,
    );
}

#[test]
fn an_undefined_argument_makes_an_undefined_result_without_a_call() {
    let (page, calls) = run("SELECT VALUE udf.count(c.v, udf.same(c.name)) FROM c");
    assert_eq!(page.unwrap().rows.len(), 2);
    // What follows an undefined argument is not evaluated; what precedes one is, if it must be.
    let expect = [r#"same("ann")"#, r#"count(1,"ann")"#, r#"same("bob")"#, r#"count(2,"bob")"#];
    assert_eq!(calls, expect);
    let (page, calls) = run("SELECT VALUE udf.count(1, 2, 3, 4, c.none) FROM c");
    assert_eq!((page.unwrap().rows.len(), calls.len()), (0, 0));
}

#[test]
fn the_functions_of_a_query_are_listed_by_first_use() {
    let text = "SELECT udf.tags(c), udf.same(udf.add(1, 2)) FROM c WHERE udf.add(c.v, udf.nothing()) \
                ORDER BY c.id";
    assert_eq!(bind(text).unwrap().functions(), ["add", "nothing", "tags", "same"]);
    assert!(bind("SELECT * FROM c").unwrap().functions().is_empty());
}

#[test]
fn an_unknown_function_is_an_error_with_its_place() {
    let check = |text: &str, expect: &str| {
        assert_eq!(bind(text).unwrap_err().to_document(), expect, "{text}");
    };
    check(
        "SELECT VALUE udf.Add(1, 2) FROM c",
        r#"{"errors":[{"severity":"Error","location":{"start":13,"end":26},"code":"SC2005","message":"The user-defined function 'Add' is not found."}]}"#,
    );
    assert!(bind("SELECT VALUE add(1, 2) FROM c").is_err());
    // Without a container there are none.
    let parsed = sql::parse("SELECT VALUE udf.add(1, 2)").unwrap();
    assert!(query::bind(&parsed, &Parameters::new()).is_err());
    let condition = sql::parse_condition("FROM c WHERE udf.isLarge(c.v)").unwrap();
    let root = source();
    let ctx = Ctx::background();
    let item = query::Source::scan(&root, &ctx, 0, None, 1).unwrap().rows.remove(0);
    assert!(query::matches(&ctx, &condition, item.root(), &Parameters::new()).is_err());
}

#[test]
fn computed_properties_call_no_functions() {
    let (name, query) = ("low".to_owned(), "SELECT VALUE udf.same(c.name) FROM c".to_owned());
    assert!(query::check_computed(&query, &[]).is_err());
    let schema = Schema { computed: vec![Computed { name, query }], ..TestFunctions::schema() };
    let parsed = sql::parse("SELECT c.low FROM c").unwrap();
    let error = query::bind_with(&parsed, &Parameters::new(), &schema).unwrap_err();
    assert!(matches!(error, Error::Refused(_)), "{error}");
}

#[test]
fn an_index_is_ordered_by_paths_only() {
    let error = bind("SELECT * FROM c ORDER BY udf.same(c.v)").unwrap_err();
    assert!(error.to_string().starts_with("2206"), "{error}");
    assert!(bind("SELECT VALUE c[udf.same('v')] FROM c").is_err());
    assert!(bind("SELECT * FROM c ORDER BY RANK udf.same(c.v)").is_err());
}

/// Functions that must not be called.
struct Untouchable;

impl Udf for Untouchable {
    fn call(&self, function: usize, _: &[Argument<'_>]) -> Result<Value, UdfError> {
        panic!("function {function} was called");
    }
}

#[test]
fn nothing_is_called_before_there_are_rows() {
    let empty = VecSource::new([], 1);
    for text in [
        "SELECT VALUE udf.add(1, 2) FROM c WHERE udf.fail(1) AND udf.same(true)",
        "SELECT DISTINCT VALUE udf.add(1, 2) FROM c WHERE c.v = udf.add(1, 2)",
        "SELECT udf.same(1), COUNT(1) FROM c WHERE c.name LIKE udf.same('a%') GROUP BY udf.same(1)",
    ] {
        let bound = bind(text).unwrap();
        query::routing(&bound, &[vec!["id".to_owned()]]);
        query::plan_info_with(
            &sql::parse(text).unwrap(),
            &Parameters::new(),
            &TestFunctions::schema(),
        )
        .unwrap();
        for plan in all_plans(&bound, &[vec!["id".to_owned()]], &empty) {
            plan.index_use(&empty);
            let (ctx, limits) = (Ctx::background(), PageLimits::default());
            query::execute_with(&ctx, &plan, &empty, None, limits, &Untouchable).unwrap();
        }
    }
}

#[test]
fn conditions_that_cost_little_are_asked_first() {
    let check = |filter: &str, expect: &[&str]| {
        let text = format!("SELECT VALUE c.id FROM c WHERE {filter}");
        for is_indexed in [true, false] {
            let mut source = source();
            source.is_indexed = is_indexed;
            let (page, calls) = run_over(&Ctx::background(), &source, &text);
            page.unwrap();
            assert_eq!(calls, expect, "{text}");
        }
    };
    check("udf.same(c.v) = 1 AND c.name = 'ann'", &["same(1)"]);
    check("udf.same(c.id) = '1' AND c.v > 1", &[r#"same("2")"#]);
    check("udf.same(c.v) = 5 OR c.id != '2'", &["same(2)"]);
    check("(udf.same(c.v) = 1 AND c.id = '1') OR c.id = '3'", &["same(1)"]);
    // What is written first is called first among calls.
    check("udf.same(c.v) = 2 AND udf.add(c.v, 1) = 3 AND c.v > 1", &["same(2)", "add(2,1)"]);
    check("udf.fail(c.v) AND c.id = 'none'", &[]);
    check("c.none = 1 AND udf.fail(c.v)", &[]);
}

#[test]
fn whether_a_query_fails_does_not_depend_on_how_items_are_found() {
    for (filter, fails) in [
        ("udf.fail(c.v) AND c.name = 'cid'", false),
        ("c.name = 'bob' AND udf.fail(c.v)", true),
        ("(c.v = 1 AND udf.fail(c.name)) OR c.v = 2", true),
        ("(c.v = 7 AND udf.fail(c.name)) OR c.v = 2", false),
        ("c.v > 1 AND (udf.fail(c.name) OR c.id = '2')", false),
    ] {
        let text = format!("SELECT VALUE c.id FROM c WHERE {filter}");
        let bound = bind(&text).unwrap();
        for is_indexed in [true, false] {
            let mut source = source();
            source.is_indexed = is_indexed;
            for plan in all_plans(&bound, &[vec!["id".to_owned()]], &source) {
                let (ctx, functions) = (Ctx::background(), TestFunctions::of(&bound));
                let limits = PageLimits::default();
                let page = query::execute_with(&ctx, &plan, &source, None, limits, &functions);
                assert_eq!(page.is_err(), fails, "{text}\n{plan}");
            }
        }
    }
}

#[test]
fn a_failure_is_told_to_the_client() {
    let (page, _) = run("SELECT VALUE udf.fail(c.name) FROM c");
    let error = page.unwrap_err();
    assert!(matches!(&error, Error::Function(_)), "{error}");
    assert_eq!(error.to_document(), r#"{"Errors":["fail(\"ann\") failed."]}"#);
    let (page, _) = run("SELECT VALUE udf.infinite()");
    assert!(matches!(page, Err(Error::Refused(_))));
    let bound = bind("SELECT VALUE udf.same(1)").unwrap();
    let plan = query::plan(bound, &[], &source(), None).unwrap();
    let ctx = Ctx::background();
    let page = query::execute(&ctx, &plan, &source(), None, PageLimits::default());
    assert!(matches!(page, Err(Error::Function(_))));
}

#[test]
fn a_function_out_of_time_fails_the_query_with_the_rows_before_it() {
    let text = "SELECT VALUE (c.id = '3' ? udf.linger(c.id) : c.id) FROM c";
    let (page, calls) = run(text);
    assert!(matches!(page, Err(Error::Deadline)));
    assert_eq!(calls, [r#"linger("3")"#]);
}

#[test]
fn time_is_up_between_two_calls_too() {
    let deadline = Deadline::after(Duration::ZERO);
    let late = Ctx::new(Arc::new(SystemClock), Arc::new(Random::from_seed(1)), deadline);
    let (page, calls) = run_over(&late, &source(), "SELECT VALUE udf.same(c.id) FROM c");
    let page = page.unwrap();
    assert_eq!((page.rows.len(), page.end, calls.len()), (1, PageEnd::Deadline, 1));
    assert!(page.state.is_some());
}
