//! Goal: a page ends where its limits say, for the reason it says, and its state is good for the
//! same query only.

#![allow(clippy::unwrap_used)] // A test that cannot go on fails there.

use std::sync::Arc;
use std::time::Duration;

use base::{Ctx, Deadline, Random, SystemClock};
use query::testing::{VecSource, all_plans, item};
use query::{Error, Page, PageEnd, PageLimits, Parameters, Plan, State};

fn source() -> VecSource {
    let body = |n: u64| item(&format!(r#"{{"id":"{n}","v":{},"tags":[1,2,3]}}"#, n % 3), n);
    VecSource::new((1..=100).map(body), 3)
}

fn plan(text: &str, source: &VecSource) -> Plan {
    let bound = query::bind(&sql::parse(text).unwrap(), &Parameters::new()).unwrap();
    query::plan(bound, &[vec!["id".to_owned()]], source, None).unwrap()
}

fn page(ctx: &Ctx, text: &str, state: Option<&State>, limits: PageLimits) -> Result<Page, Error> {
    let source = source();
    query::execute(ctx, &plan(text, &source), &source, state, limits)
}

fn late() -> Ctx {
    let deadline = Deadline::after(Duration::ZERO);
    Ctx::new(Arc::new(SystemClock), Arc::new(Random::from_seed(1)), deadline)
}

#[test]
fn a_page_ends_for_a_reason() {
    let ctx = Ctx::background();
    let check = |text: &str, limits: PageLimits, rows: usize, end: PageEnd| {
        let page = page(&ctx, text, None, limits).unwrap();
        assert_eq!((page.rows.len(), page.end), (rows, end), "{text}");
        assert_eq!(page.state.is_none(), end == PageEnd::Exhausted, "{text}");
    };
    let rows = |rows_max| PageLimits { rows_max, ..PageLimits::default() };
    check("SELECT VALUE c.id FROM c", rows(10), 10, PageEnd::Rows);
    check("SELECT VALUE c.id FROM c", rows(100), 100, PageEnd::Exhausted);
    check("SELECT TOP 10 VALUE c.id FROM c", rows(10), 10, PageEnd::Exhausted);
    check("SELECT VALUE c.id FROM c OFFSET 95 LIMIT 10", rows(10), 5, PageEnd::Exhausted);
    let bytes = |bytes_max| PageLimits { bytes_max, ..rows(1000) };
    check("SELECT VALUE 'abcd' FROM c", bytes(20), 3, PageEnd::Bytes);
    check("SELECT VALUE 'abcd' FROM c", bytes(1), 1, PageEnd::Bytes);
    check("SELECT VALUE t FROM c JOIN t IN c.tags", rows(4), 4, PageEnd::Rows);
}

#[test]
fn no_row_is_lost_between_pages_of_any_size() {
    let ctx = Ctx::background();
    for text in [
        "SELECT VALUE c.id FROM c",
        "SELECT VALUE c.id FROM c WHERE c.v IN (0, 1, 2)",
        "SELECT VALUE c.id FROM c ORDER BY c.v DESC",
        "SELECT DISTINCT VALUE c.id FROM c",
        "SELECT VALUE c.id FROM c GROUP BY c.id",
        "SELECT VALUE c.id || '-' || ToString(t) FROM c JOIN t IN c.tags",
    ] {
        let whole = page(&ctx, text, None, PageLimits { rows_max: 1000, ..Default::default() });
        let whole = whole.unwrap().rows;
        for bytes_max in [1, 7, 50] {
            let limits = PageLimits { bytes_max, rows_max: 1000, ..PageLimits::default() };
            let (mut rows, mut state) = (Vec::new(), None);
            loop {
                let page = page(&ctx, text, state.as_ref(), limits).unwrap();
                rows.extend(page.rows);
                state = page.state;
                if state.is_none() {
                    break;
                }
            }
            assert_eq!(rows, whole, "{text} in pages of {bytes_max} bytes");
        }
    }
}

/// Clients count pages: rows that fill the last one are not followed by an empty one.
#[test]
fn the_last_page_knows_that_it_is() {
    let ctx = Ctx::background();
    let body = |n: u64| {
        let text = format!(r#"{{"id":"{n}","v":{},"w":{},"tags":["x","y"]}}"#, n % 4, n % 2);
        item(&text, n)
    };
    let source = VecSource::new((1..=100).map(body), 1);
    for (text, count) in [
        ("SELECT * FROM c", 100),
        ("SELECT * FROM c WHERE c.v = 1", 25),
        ("SELECT VALUE c.id FROM c WHERE c.v IN (0, 3)", 50),
        ("SELECT * FROM c WHERE c.v > 1", 50),
        ("SELECT * FROM c WHERE c.v = 1 AND c.w = 1", 25),
        ("SELECT * FROM c WHERE c.v != 1 AND c.v != 3", 50),
        ("SELECT * FROM c WHERE c.v + 1 > 3", 25),
        ("SELECT * FROM c WHERE ARRAY_CONTAINS(c.tags, 'x')", 100),
        ("SELECT * FROM c ORDER BY c.v", 100),
        ("SELECT * FROM c ORDER BY c.v DESC", 100),
        ("SELECT * FROM c ORDER BY c.nothing DESC", 100),
        ("SELECT * FROM c WHERE c.v >= 2 ORDER BY c.v DESC", 50),
        ("SELECT VALUE t FROM c JOIN t IN c.tags WHERE c.v = 2", 50),
        ("SELECT DISTINCT VALUE c.id FROM c", 100),
        ("SELECT c.id, COUNT(1) AS n FROM c GROUP BY c.id", 100),
        ("SELECT * FROM c OFFSET 50 LIMIT 100", 50),
    ] {
        let bound = query::bind(&sql::parse(text).unwrap(), &Parameters::new()).unwrap();
        for plan in all_plans(&bound, &[vec!["id".to_owned()]], &source) {
            for rows_max in [5, 25, 100].into_iter().filter(|max| count % max == 0) {
                let limits = PageLimits { rows_max, ..PageLimits::default() };
                let (mut pages, mut state) = (Vec::new(), None);
                loop {
                    let page = query::execute(&ctx, &plan, &source, state.as_ref(), limits);
                    let page = page.unwrap();
                    pages.push(page.rows.len());
                    state = page.state;
                    if state.is_none() {
                        break;
                    }
                }
                // A filter that is tried on items lets nobody know that nothing more will pass.
                let may_follow = text.contains(" AND ") || plan.to_string().contains("Scan");
                pages.pop_if(|last| may_follow && *last == 0);
                assert_eq!(pages, vec![rows_max; count / rows_max], "{text}: {plan}");
            }
        }
    }
}

#[test]
fn a_state_is_good_for_its_query_only() {
    let ctx = Ctx::background();
    let limits = PageLimits { rows_max: 5, ..PageLimits::default() };
    let first = page(&ctx, "SELECT * FROM c WHERE c.v = 1", None, limits).unwrap();
    let state = first.state.expect("more rows");
    assert!(page(&ctx, "SELECT * FROM c WHERE c.v = 1", Some(&state), limits).is_ok());
    let other = page(&ctx, "SELECT * FROM c WHERE c.v = 2", Some(&state), limits);
    assert!(matches!(other, Err(Error::WrongState)));
}

#[test]
fn time_ends_a_page_but_not_without_progress() {
    let ctx = late();
    let (mut state, mut rows, mut pages) = (None, 0, 0);
    loop {
        let limits = PageLimits { rows_max: 1000, ..PageLimits::default() };
        let page = page(&ctx, "SELECT VALUE c.id FROM c ORDER BY c.v", state.as_ref(), limits);
        let page = page.unwrap();
        rows += page.rows.len();
        pages += 1;
        state = page.state;
        if state.is_none() {
            break;
        }
        assert_eq!(page.end, PageEnd::Deadline);
    }
    assert_eq!(rows, 100);
    assert!(pages > 1);
}

#[test]
fn a_blocking_operator_out_of_time_or_memory_is_an_error() {
    let text = "SELECT c.id, COUNT(1) AS n FROM c GROUP BY c.id";
    let result = page(&late(), text, None, PageLimits::default());
    assert!(matches!(result, Err(Error::Deadline)));
    let limits = PageLimits { memory_bytes_max: 100, ..PageLimits::default() };
    let result = page(&Ctx::background(), text, None, limits);
    assert!(matches!(result, Err(Error::TooLarge { bytes_max: 100 })));
}

#[test]
fn a_sort_without_memory_for_its_page_makes_shorter_pages() {
    let limits = PageLimits { memory_bytes_max: 1000, ..PageLimits::default() };
    for text in
        ["SELECT DISTINCT VALUE c.id FROM c", "SELECT DISTINCT VALUE c.v FROM c ORDER BY c.v"]
    {
        let whole = page(&Ctx::background(), text, None, PageLimits::default()).unwrap();
        let (mut state, mut rows) = (None, Vec::new());
        loop {
            let page = page(&Ctx::background(), text, state.as_ref(), limits).unwrap();
            assert!(page.rows.len() < 20);
            rows.extend(page.rows);
            state = page.state;
            if state.is_none() {
                break;
            }
        }
        assert_eq!(rows, whole.rows, "{text}");
    }
    let text = "SELECT DISTINCT VALUE c.id FROM c OFFSET 50 LIMIT 10";
    let result = page(&Ctx::background(), text, None, limits);
    assert!(matches!(result, Err(Error::TooLarge { bytes_max: 1000 })));
}

#[test]
fn an_item_gone_between_pages_takes_no_other_rows_along() {
    let text = "SELECT c.id, t FROM c JOIN t IN c.tags ORDER BY c.v DESC";
    let ctx = Ctx::background();
    let limits = PageLimits { rows_max: 4, ..PageLimits::default() };
    let items: Vec<_> =
        (1..=6).map(|n| item(&format!(r#"{{"id":"{n}","v":1,"tags":[1,2,3]}}"#), n)).collect();
    let before = VecSource::new(items.clone(), 1);
    let first = query::execute(&ctx, &plan(text, &before), &before, None, limits).unwrap();
    // Item 6 is done, item 5 has one row done and disappears.
    let after = VecSource::new(items.into_iter().filter(|item| item.ordinal() != 5), 1);
    let next = query::execute(&ctx, &plan(text, &after), &after, first.state.as_ref(), limits);
    let rows: Vec<_> = next.unwrap().rows;
    assert_eq!(&rows[0][..], br#"{"id":"4","t":1}"#);
}
