//! Goal: nothing is left behind by thousands of executions.
//! Method: the resident size before and after many executions of all kinds. The one test of this file,
//! because others in the same process would be measured too.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)] // A test that cannot go on fails there.

mod common;

use std::sync::Arc;

use common::{Shelf, call, execute, pool, procedure, wait};
use item::Value;
use script::{Argument, Limits, Program};

/// Kilobytes of this process in memory.
fn resident_kb() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn nothing_is_left_behind() {
    let limits = Limits { memory_bytes: 4 << 20, ..common::short_limits() };
    let pool = pool(limits);
    let shelf = Shelf::with(&[r#"{"id":"a","n":1}"#]);
    let sources = [
        "async function () { var a = [new Map([[1, 2]]), /x/g, class {}]; await Promise.all(a); __.upsertDocument(__.getSelfLink(), { id: 'b', a: a }); }",
        "function () { throw new Error('x'); }",
        "function () { var a = []; for (;;) a.push([]); }",
        "function () { getContext().abort('x'); }",
        "function () { globalThis.c = {}; c.c = c; new Promise(function () {}); __.readDocuments(__.getSelfLink(), function () { throw 1; }); }",
        "async function () { await new Promise(function () {}); }",
        "function f() { f(); }",
    ];
    let calls: Vec<_> =
        sources.iter().map(|source| call(source, procedure(&[Value::Number(3.0)]))).collect();
    let udf = Arc::new(Program::compile("udf", "function (x) { return { x: [x] }; }").unwrap());
    let round = |times: usize| {
        for _ in 0..times {
            // What the host notes down is no leak.
            shelf.asked.lock().clear();
            for call in &calls {
                let _ = execute(&pool, &shelf, call.clone());
            }
            let udf = udf.clone();
            let work = move |session: &mut script::Session<'_, ()>| {
                let functions = session.functions(&[udf]).unwrap();
                functions.call(0, &[Argument::Value(&Value::from("x"))]).unwrap()
            };
            wait(&pool, (), work).unwrap();
        }
    };
    round(100);
    // 3200 executions each time. A leak of one kilobyte in each would show every time; what the
    // allocator keeps for later does not.
    let grown: Vec<usize> = (0..3)
        .map(|_| {
            let before = resident_kb();
            round(400);
            resident_kb().saturating_sub(before)
        })
        .collect();
    assert!(grown.iter().any(|kilobytes| *kilobytes < 3000), "grown by {grown:?} kB");
}
