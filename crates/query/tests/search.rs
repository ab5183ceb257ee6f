//! Goal: vectors, full text, rankings, computed properties and inner queries mean what is
//! documented.
//! Method: each query over a handful of items, in several layouts and page sizes; the rows, or the
//! code of the error, in one line.

#![allow(clippy::unwrap_used)] // A test that cannot go on fails there.

use base::Ctx;
use item::Value;
use query::testing::{VecSource, item};
use query::{
    Computed, Error, FullTextPath, Metric, PageLimits, Parameters, Path, Schema, State, VectorPath,
};

const ITEMS: [&str; 6] = [
    r#"{"id":"1","kind":"a","name":"Red barn","vec":[1,0],"far":[0,9],"text":"A red bicycle parked near the red barn","n":3,"tags":["x","y"]}"#,
    r#"{"id":"2","kind":"a","name":"blue","vec":[0,1],"far":[0,1],"text":"Blue bicycles and a red scooter","n":1,"tags":["y"]}"#,
    r#"{"id":"3","kind":"b","name":"Green","vec":[3,4],"far":[0,5],"text":"Green tractor in the barn","n":2,"low":"stored"}"#,
    r#"{"id":"4","kind":"b","name":"none"}"#,
    r#"{"id":"5","kind":"b","name":"odd","vec":[1,2,3],"text":42}"#,
    r#"{"id":"6","kind":"c","name":"vide","vec":[-1,0],"far":[0,-3],"text":"","de":"Die alten Häuser"}"#,
];

fn schema() -> Schema {
    let computed = |name: &str, query: &str| Computed { name: name.into(), query: query.into() };
    Schema {
        vectors: vec![
            VectorPath { path: Path::of(["vec"]), metric: Metric::Euclidean },
            VectorPath { path: Path::of(["far"]), metric: Metric::DotProduct },
        ],
        full_text: vec![FullTextPath { path: Path::of(["de"]), language: "de-DE".to_owned() }],
        computed: vec![
            computed("low", "SELECT VALUE LOWER(c.name) FROM c"),
            computed("both", "SELECT VALUE ARRAY_CONCAT(root.tags, [root.low]) FROM root"),
            computed("alias", "SELECT VALUE x.name FROM x"),
        ],
        functions: Vec::new(),
    }
}

fn rows(text: &str, partitions: usize, rows_max: usize) -> Result<Vec<String>, Error> {
    let items = ITEMS.iter().zip(1..).map(|(body, ordinal)| item(body, ordinal));
    let source = VecSource::new(items, partitions);
    let parameters = Parameters::from_iter([
        ("@v", Value::array(vec![Value::Number(1.0), Value::Number(0.0)])),
        ("@p", Value::from("vec")),
        ("@t", Value::from("red")),
        ("@w", Value::array(vec![Value::Number(1.0), Value::Number(2.0)])),
    ]);
    let bound = query::bind_with(&sql::parse(text)?, &parameters, &schema())?;
    let plan = query::plan(bound, &[vec!["id".to_owned()]], &source, None)?;
    let limits = PageLimits { rows_max, ..PageLimits::default() };
    let (mut rows, mut state): (_, Option<State>) = (Vec::new(), None);
    loop {
        let page = query::execute(&Ctx::background(), &plan, &source, state.as_ref(), limits)?;
        rows.extend(page.rows.iter().map(|row| String::from_utf8_lossy(row).into_owned()));
        let Some(next) = page.state else { return Ok(rows) };
        state = Some(State::decode(&next.encode())?);
    }
}

/// Checks the rows in their order; where rows are equal to the order, the layout decides nothing.
fn check(text: &str, expect: &str) {
    for (partitions, rows_max) in [(1, 100), (1, 1), (3, 2)] {
        let rows = rows(text, partitions, rows_max).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(rows.join(" "), expect, "{text}, {partitions} partitions");
    }
}

/// The same for rows that come in any order.
fn check_set(text: &str, expect: &str) {
    for (partitions, rows_max) in [(1, 100), (1, 1), (3, 2)] {
        let mut rows = rows(text, partitions, rows_max).unwrap_or_else(|e| panic!("{text}: {e}"));
        rows.sort();
        assert_eq!(rows.join(" "), expect, "{text}, {partitions} partitions");
    }
}

fn refuse(text: &str, code: &str) {
    match rows(text, 1, 100) {
        Err(Error::Text(error)) => assert_eq!(error.code.as_str(), code, "{text}: {error}"),
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn distances_in_projections_and_filters() {
    let of = |arguments: &str, expect: &str| {
        check_set(&format!("SELECT VALUE VectorDistance({arguments}) FROM c"), expect);
    };
    // The metric of the policy, whichever side the path is on.
    of("c.vec, [0, 0]", "1 1 1 5");
    of("[0, 0], c.vec", "1 1 1 5");
    of("c.far, [0, 2]", "-6 10 18 2");
    of("c.vec, [0, 2], true, {'distanceFunction': 'dotproduct'}", "0 0 2 8");
    of("c.vec, [2, 0], false, {distanceFunction: 'Cosine', dataType: 'Float32'}", "-1 0 0.6 1");
    of("c[@p], @v", "0 1.4142135623730951 2 4.47213595499958");
    // Without a policy: cosine.
    of("[1, 0], [3, 4]", "0.6 0.6 0.6 0.6 0.6 0.6");
    // Different dimensions, other types, no angle.
    of("c.vec, [1]", "");
    of("c.vec, 'x'", "");
    of("c.vec, ['1', '2']", "");
    of("c.vec, [0, 0], true, {'distanceFunction': 'cosine'}", "");
    of("c.vec, [1, 0], 'yes'", "");
    check_set("SELECT VALUE c.id FROM c WHERE VectorDistance(c.vec, [1, 0]) < 1.5", r#""1" "2""#);
}

#[test]
fn options_of_distances() {
    let with = |options: &str| {
        format!("SELECT VALUE c.id FROM c ORDER BY VectorDistance(c.vec, @v, false, {options})")
    };
    for options in [
        "{'searchListSizeMultiplier': 0}",
        "{'searchListSizeMultiplier': 101}",
        "{'quantizedVectorListMultiplier': 0.5}",
        "{'quantizedVectorListMultiplier': 'x'}",
        "{'distanceFunction': 'manhattan'}",
        "{'dataType': 'text'}",
    ] {
        refuse(&with(options), "SC2213");
    }
    let expect = r#""1" "2" "6" "3" "4" "5""#;
    check(&with("{'searchListSizeMultiplier': 1}"), expect);
    check(&with("{'quantizedVectorListMultiplier': 100}"), expect);
    refuse("SELECT VALUE VectorDistance(c.vec) FROM c", "SC2050");
    refuse("SELECT VALUE VectorDistance(c.vec, @v, true, c.options) FROM c", "SC1001");
}

#[test]
fn nearest_first() {
    // Those without a distance come last.
    check(
        "SELECT VALUE c.id FROM c ORDER BY VectorDistance(c.vec, [3, 3])",
        r#""3" "1" "2" "6" "4" "5""#,
    );
    check(
        "SELECT VALUE c.id FROM c ORDER BY VectorDistance(c.far, [0, 1])",
        r#""1" "3" "2" "6" "4" "5""#,
    );
    check(
        "SELECT TOP 2 c.id, VectorDistance(c.far, @v) AS s FROM c ORDER BY VectorDistance(c.far, [0, 1])",
        r#"{"id":"1","s":0} {"id":"3","s":0}"#,
    );
    check(
        "SELECT VALUE c.id FROM c WHERE c.kind = 'a' ORDER BY VectorDistance(c.vec, [0, 2]) OFFSET 1 LIMIT 5",
        r#""1""#,
    );
    check(
        "SELECT DISTINCT VALUE c.kind FROM c ORDER BY VectorDistance(c.vec, [3, 3])",
        r#""b" "a" "c""#,
    );
    check("SELECT TOP 0 * FROM c ORDER BY VectorDistance(c.vec, @v)", "");
    check(
        "SELECT TOP 2 VALUE t FROM c JOIN t IN c.tags ORDER BY VectorDistance(c.vec, @v)",
        r#""x" "y""#,
    );
    refuse("SELECT * FROM c ORDER BY VectorDistance(c.vec, @v), c.id", "SC1001");
    refuse("SELECT * FROM c ORDER BY c.id, VectorDistance(c.vec, @v)", "SC1001");
    refuse("SELECT * FROM c ORDER BY VectorDistance(c.vec, @v) DESC", "SC1001");
    refuse("SELECT * FROM c ORDER BY LOWER(c.id)", "2206");
}

#[test]
fn texts_that_contain_terms() {
    let ids = |filter: &str, expect: &str| {
        check_set(&format!("SELECT VALUE c.id FROM c WHERE {filter}"), expect);
    };
    ids("FullTextContains(c.text, 'BICYCLE')", r#""1" "2""#);
    ids("FullTextContains(c.text, 'red bicycle')", r#""1""#);
    ids("FullTextContains(c.text, 'bicycle red')", "");
    ids("FullTextContains(c.text, @t)", r#""1" "2""#);
    ids("FullTextContains(c.text, {'term': 'bycicle', 'distance': 2})", r#""1" "2""#);
    ids("FullTextContains(c.text, {'term': 'bycicle', 'distance': 0})", "");
    ids("FullTextContains(c.text, 'the')", "");
    ids("FullTextContainsAll(c.text, 'red', 'scooter')", r#""2""#);
    ids("FullTextContainsAll(c.text, 'red')", r#""1" "2""#);
    ids("FullTextContainsAll(c.text, 'red', 'the')", r#""1" "2""#);
    ids("FullTextContainsAny(c.text, 'scooter', 'tractor')", r#""2" "3""#);
    ids("FullTextContainsAny(c.text, 'nothing')", "");
    ids("fulltextcontainsany(c['text'], ['scooter', 'tractor'])", r#""2" "3""#);
    ids("NOT FullTextContains(c.text, 'red')", r#""3" "6""#);
    ids("FullTextContains(c.text, c.kind)", "");
    ids("FullTextContains(c.name, c.alias)", r#""1" "2" "3" "4" "5" "6""#);
    ids("FullTextContains(c.text, 1)", "");
    ids("FullTextContains(c.de, 'Haus')", r#""6""#);
    ids("EXISTS(SELECT VALUE t FROM t IN c.tags WHERE FullTextContains(t, 'x'))", r#""1""#);
    check_set("SELECT VALUE FullTextContains(c.text, 'barn') FROM c", "false false true true");
    refuse("SELECT * FROM c WHERE FullTextContains('red', 'red')", "SC1001");
    refuse("SELECT * FROM c WHERE FullTextContains(c.text)", "SC2050");
    refuse("SELECT * FROM c WHERE FullTextContains(c.text, 'a', 'b')", "SC2050");
}

#[test]
fn most_relevant_first() {
    let by = |rank: &str, expect: &str| {
        check(&format!("SELECT VALUE c.id FROM c ORDER BY RANK {rank}"), expect);
    };
    // An empty text has a score, a missing one has none.
    by("FullTextScore(c.text, 'red')", r#""1" "2" "3" "6" "4" "5""#);
    by("FullTextScore(c.text, 'red scooter')", r#""2" "1" "3" "6" "4" "5""#);
    by("FullTextScore(c.text, 'tractor', 'barn')", r#""3" "1" "2" "6" "4" "5""#);
    by("FullTextScore(c.text, ['tractor', 'barn'])", r#""3" "1" "2" "6" "4" "5""#);
    by("VectorDistance(c.vec, [3, 3])", r#""3" "1" "2" "6" "4" "5""#);
    check(
        "SELECT TOP 1 VALUE c.id FROM c WHERE c.kind = 'b' ORDER BY RANK FullTextScore(c.text, @t)",
        r#""3""#,
    );
    check(
        "SELECT VALUE c.id FROM c ORDER BY RANK FullTextScore(c.text, 'barn') OFFSET 1 LIMIT 1",
        r#""1""#,
    );
}

#[test]
fn ranks_are_fused() {
    let by = |arguments: &str, expect: &str| {
        check(&format!("SELECT VALUE c.id FROM c ORDER BY RANK RRF({arguments})"), expect);
    };
    // Ranks 1 2 3 4 4 3 and 3 2 1 5 5 4: the extremes win over the middle.
    by(
        "FullTextScore(c.text, 'red'), VectorDistance(c.vec, [3, 3.5])",
        r#""1" "3" "2" "6" "4" "5""#,
    );
    by(
        "FullTextScore(c.text, 'red'), FullTextScore(c.text, 'tractor'), [1, 2]",
        r#""3" "1" "2" "6" "4" "5""#,
    );
    by(
        "FullTextScore(c.text, 'red'), FullTextScore(c.text, 'tractor'), [0, 1]",
        r#""3" "1" "2" "6" "4" "5""#,
    );
    check(
        "SELECT TOP 1 VALUE c.id FROM c WHERE c.id != '1' ORDER BY RANK RRF(FullTextScore(c.text, 'red'), FullTextScore(c.text, 'scooter'))",
        r#""2""#,
    );
}

/// Does what the plan of a ranking has clients do.
#[test]
fn a_ranking_can_be_merged_by_clients() {
    for terms in ["'red'", "'red scooter'", "'tractor', 'barn'", "['barn', @t]"] {
        let text =
            format!("SELECT TOP 10 c.id FROM c ORDER BY RANK FullTextScore(c.text, {terms})");
        let parameters = Parameters::from_iter([("@t", Value::from("red"))]);
        let plan = query::plan_info_with(&sql::parse(&text).unwrap(), &parameters, &schema());
        let plan = plan.unwrap().hybrid.unwrap();
        let [component] = &plan.components[..] else { panic!("{plan:?}") };
        let counted = rows(&plan.statistics_query, 1, 100).unwrap();
        let counted: serde_json::Value = serde_json::from_str(&counted[0]).unwrap();
        let texts = &counted["fullTextStatistics"][0];
        let place = |name: &str| format!("{{documentdb-formattablehybridsearchquery-{name}}}");
        let asked = component.rewritten_query.replace(query::FILTER_PLACEHOLDER, "true");
        let asked = asked
            .replace(&place("totaldocumentcount"), &counted["documentCount"].to_string())
            .replace(&place("totalwordcount-0"), &texts["totalWordCount"].to_string())
            .replace(&place("hitcountsarray-0"), &texts["hitCounts"].to_string());
        let merged = rows(&asked, 1, 100).unwrap();
        let merged: Vec<String> = merged
            .iter()
            .map(|row| serde_json::from_str::<serde_json::Value>(row).unwrap())
            .map(|row| row["payload"]["payload"].to_string())
            .collect();
        assert_eq!(merged, rows(&text, 1, 100).unwrap(), "{text}: {asked}");
    }
    check("SELECT VALUE COUNTIF(FullTextContains(c.text, 'red')) FROM c", "2");
    check("SELECT VALUE COUNTIF(c.nothing) FROM c", "0");
    check("SELECT VALUE _FullTextScore(c.text, ['red'], 1, 2, [3, 4]) FROM c", "");
}

#[test]
fn what_cannot_be_ranked() {
    let by =
        |rank: &str, code: &str| refuse(&format!("SELECT * FROM c ORDER BY RANK {rank}"), code);
    by("LOWER(c.text)", "SC2221");
    by("udf.FullTextScore(c.text)", "SC2221");
    by("RRF(LOWER(c.text), FullTextScore(c.text, 'red'))", "SC2221");
    by("RRF(FullTextScore(c.text, 'red'))", "SC2050");
    by("RRF(FullTextScore(c.text, 'red'), [1])", "SC2050");
    by("RRF(FullTextScore(c.text, 'red'), FullTextScore(c.text, 'x'), [1])", "SC2229");
    by("RRF(FullTextScore(c.text, 'red'), FullTextScore(c.text, 'x'), [1, 2, 3])", "SC2229");
    by("RRF(FullTextScore(c.text, 'red'), FullTextScore(c.text, 'x'), [1, 'y'])", "SC2229");
    by("RRF(FullTextScore(c.text, 'red'), FullTextScore(c.text, 'x'), @w)", "SC2229");
    by("FullTextScore(c.text)", "SC2050");
    by("FullTextScore('red', 'red')", "SC1001");
    by("FullTextScore(c.text, 1)", "SC1001");
    by("FullTextScore(c.text, 'red'), c.id", "SC1001");
    refuse("SELECT * FROM t IN c.tags ORDER BY RANK FullTextScore(t, 'x')", "SC2223");
    refuse("SELECT c FROM c JOIN t IN c.tags ORDER BY RANK FullTextScore(c.text, 'x')", "SC2224");
    refuse(
        "SELECT * FROM (SELECT * FROM c) d ORDER BY RANK FullTextScore(d.c.text, 'x')",
        "SC2225",
    );
    refuse(
        "SELECT VALUE ARRAY(SELECT VALUE c.id ORDER BY RANK FullTextScore(c.text, 'x')) FROM c",
        "SC2228",
    );
    refuse("SELECT VALUE FullTextScore(c.text, 'x') FROM c", "SC2240");
    refuse("SELECT * FROM c WHERE FullTextScore(c.text, 'x') > 0", "SC2240");
    refuse("SELECT * FROM c ORDER BY FullTextScore(c.text, 'x')", "SC2240");
    refuse(
        "SELECT c.kind FROM c GROUP BY c.kind ORDER BY RANK FullTextScore(c.text, 'x')",
        "SC1001",
    );
}

#[test]
fn computed_properties() {
    check("SELECT VALUE c.low FROM c WHERE c.id = '3'", r#""green""#);
    check("SELECT c.low, c.id FROM c WHERE c.low = 'red barn'", r#"{"low":"red barn","id":"1"}"#);
    check("SELECT VALUE c['low'] FROM c WHERE c.id = '3'", r#""green""#);
    // A definition sees what is stored.
    check("SELECT VALUE c.both FROM c WHERE c.id = '3'", "");
    check("SELECT VALUE c.both FROM c WHERE c.id = '1'", r#"["x","y"]"#);
    check_set("SELECT VALUE t FROM c JOIN t IN c.both WHERE c.id = '1'", r#""x" "y""#);
    check_set("SELECT VALUE low FROM c.low WHERE low < 'g'", r#""blue""#);
    check_set("SELECT VALUE x FROM x IN c.both", r#""x" "y" "y""#);
    check("SELECT VALUE IS_DEFINED(c.sub.low) FROM c WHERE c.id = '3'", "false");
    check(
        "SELECT c.low, COUNT(1) AS n FROM c WHERE c.kind = 'a' AND c.n = 1 GROUP BY c.low",
        r#"{"low":"blue","n":1}"#,
    );
    check("SELECT VALUE c.id FROM c ORDER BY c.low DESC", r#""6" "1" "5" "4" "3" "2""#);
    check("SELECT TOP 2 VALUE c.id FROM c ORDER BY c.low", r#""2" "3""#);
    check("SELECT VALUE c.id FROM c WHERE c.kind = 'a' ORDER BY c.low, c.id", r#""2" "1""#);
    // A definition that is a path is as good as the path.
    check("SELECT TOP 1 VALUE c.id FROM c ORDER BY c.alias", r#""3""#);
    check("SELECT VALUE COUNT(1) FROM c WHERE EXISTS(SELECT VALUE 1 WHERE c.low = 'odd')", "1");
}

#[test]
fn of_equal_rows_the_first_comes_out() {
    check("SELECT DISTINCT VALUE c.kind FROM c ORDER BY c.n", r#""b" "c" "a""#);
    check("SELECT DISTINCT VALUE c.kind FROM c ORDER BY c.n DESC", r#""a" "b" "c""#);
    check(
        "SELECT DISTINCT c.kind FROM c ORDER BY c.low",
        r#"{"kind":"a"} {"kind":"b"} {"kind":"c"}"#,
    );
    check("SELECT DISTINCT VALUE c.kind FROM c ORDER BY c.kind DESC", r#""c" "b" "a""#);
    check("SELECT DISTINCT TOP 1 VALUE c.kind FROM c ORDER BY c.n DESC", r#""a""#);
    check(
        "SELECT DISTINCT VALUE {k: c.kind} FROM c ORDER BY c.kind",
        r#"{"k":"a"} {"k":"b"} {"k":"c"}"#,
    );
}

#[test]
fn star_has_no_computed_properties() {
    let row = &rows("SELECT * FROM c WHERE c.id = '3'", 1, 1).unwrap()[0];
    assert!(row.contains(r#""low":"stored""#) && !row.contains("alias"), "{row}");
}

#[test]
fn queries_over_inner_queries() {
    check("SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.kind FROM c)", "3");
    check("SELECT VALUE COUNT(1) FROM (SELECT DISTINCT c.kind FROM c) AS x", "3");
    check(
        "SELECT COUNT(1) AS n FROM (SELECT DISTINCT VALUE c.kind FROM c WHERE c.n > 0)",
        r#"{"n":2}"#,
    );
    check_set("SELECT * FROM (SELECT DISTINCT VALUE c.kind FROM c)", r#""a" "b" "c""#);
    check_set(
        "SELECT VALUE k FROM (SELECT DISTINCT VALUE c.kind FROM c) k WHERE k != 'b'",
        r#""a" "c""#,
    );
    check("SELECT VALUE x FROM (SELECT VALUE COUNT(1) FROM c) x", "6");
    check("SELECT VALUE x.n + 1 FROM (SELECT COUNT(1) AS n FROM c WHERE c.kind = 'a') x", "3");
    check("SELECT VALUE SUM(x) FROM (SELECT VALUE COUNT(1) FROM c GROUP BY c.kind) x", "6");
    check(
        "SELECT VALUE MAX(x.n) FROM (SELECT c.kind, COUNT(1) AS n FROM c GROUP BY c.kind) x WHERE x.kind != 'b'",
        "2",
    );
    check_set("SELECT VALUE t FROM t IN (SELECT DISTINCT VALUE c.tags FROM c)", r#""x" "y" "y""#);
    check_set(
        "SELECT DISTINCT VALUE t FROM (SELECT DISTINCT c.tags FROM c) d JOIN t IN d.tags",
        r#""x" "y""#,
    );
    check(
        "SELECT TOP 2 VALUE x.kind FROM (SELECT c.kind, COUNT(1) AS n FROM c GROUP BY c.kind) x ORDER BY x.n DESC",
        r#""b" "a""#,
    );
    check_set(
        "SELECT VALUE k FROM (SELECT DISTINCT VALUE c.kind FROM c) k OFFSET 0 LIMIT 10",
        r#""a" "b" "c""#,
    );
    // A stage over a stage, and a stage below a block that is none.
    check(
        "SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE y.n FROM (SELECT c.kind, COUNT(1) AS n FROM c GROUP BY c.kind) y)",
        "3",
    );
    check(
        "SELECT VALUE COUNT(1) FROM (SELECT VALUE x FROM (SELECT DISTINCT VALUE c.kind FROM c) x WHERE x != 'a') y",
        "2",
    );
    check("SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE t FROM c JOIN t IN c.tags)", "2");
    check("SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.kind FROM c WHERE false)", "0");
    check("SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE 1)", "1");
    check("SELECT VALUE x FROM (SELECT VALUE 1) x", "1");
    // Computed properties are properties of items, not of rows.
    check("SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.low FROM c)", "6");
    check(
        "SELECT VALUE x.low FROM (SELECT DISTINCT c.low FROM c WHERE c.id = '3') x",
        r#""green""#,
    );
    refuse("SELECT * FROM (SELECT c.id, COUNT(1) FROM c GROUP BY c.kind) x", "SC2102");
    refuse("SELECT * FROM (SELECT TOP 1 DISTINCT c.id FROM c) x", "SC1001");
}

#[test]
fn a_ranking_holds_one_page() {
    let body = |n: u64| format!(r#"{{"id":"{n}","v":[{n}],"pad":"{}"}}"#, "x".repeat(500));
    let items = (1..=400).map(|n| item(&body(n), n));
    let source = VecSource::new(items, 2);
    let run = |text: &str| {
        let bound = query::bind(&sql::parse(text).unwrap(), &Parameters::new()).unwrap();
        let plan = query::plan(bound, &[vec!["id".to_owned()]], &source, None).unwrap();
        let limits = PageLimits { memory_bytes_max: 100_000, ..PageLimits::default() };
        let page = query::execute(&Ctx::background(), &plan, &source, None, limits);
        page.map(|page| page.rows.len())
    };
    let order = "ORDER BY VectorDistance(c.v, [1], true, {'distanceFunction': 'dotproduct'})";
    assert_eq!(run(&format!("SELECT TOP 3 * FROM c {order}")).unwrap(), 3);
    assert_eq!(run(&format!("SELECT * FROM c {order}")).unwrap(), 100);
    let text = "SELECT VALUE COUNT(1) FROM (SELECT DISTINCT c.pad, c.id FROM c)";
    assert!(matches!(run(text), Err(Error::TooLarge { .. })));
}
