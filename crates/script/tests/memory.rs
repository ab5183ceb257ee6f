//! Goal: running out of memory ends a script, never the process, wherever it happens.
//! Method: the same busy script under many memory limits of a range, so that all kinds of allocations
//! are once the one that fails.

#![allow(clippy::unwrap_used)] // A test that cannot go on fails there.

mod common;

use common::{Shelf, call, execute, procedure};
use item::Value;
use script::{Failure, Limits, Pool, PoolOptions};

const BUSY: &str = r"
function busy(n) {
  work().catch((e) => getContext().abort(e));
  async function work() {
  var c = getContext().getCollection(), kept = [];
  var read = (id) => new Promise((resolve, reject) => c.readDocument(c.getAltLink() + '/docs/' + id, (e, d) => e ? reject(e) : resolve(d)));
  class Shape { constructor(x) { this.x = x; } get area() { return this.x ** 2; } }
  for (let i = 0; i < n; i++) {
    kept.push(new Shape(i), { ['key' + i]: `text ${i}`, list: [i, [i]] }, new Map([[i, i]]));
    var all = await Promise.all([read('a'), (async () => { await null; return i; })(), Promise.resolve(new Date(i))]);
    try { await read('gone'); } catch (e) { kept.push(e.message + all.length); }
    kept.sort(() => 0).map((k) => k);
    /(?<a>x+)y/.exec('xxy');
    JSON.parse(JSON.stringify(kept.slice(-3)));
  }
  for (let g of (function* () { for (let i = 0; i < n; i++) yield [...'abc']; })()) kept.push(g);
  c.upsertDocument(c.getSelfLink(), { id: 'b', kept: kept.length });
  __.response.setBody(kept.length);
  }
}";

/// Bodies that wait are outside the memory of the engine; when they hold as much as it may, operations
/// are not accepted any more.
#[test]
fn the_queue_is_bounded_like_the_memory() {
    let limits = Limits { memory_bytes: 4 << 20, ..Limits::default() };
    let pool = Pool::new(PoolOptions { threads: 1, limits });
    let source = "function () { var body = { id: 'x', list: new Array(1e4).fill(1) }, n = 0; \
        while (__.upsertDocument(__.getSelfLink(), body)) n++; __.response.setBody(n); }";
    let outcome = execute(&pool, &Shelf::default(), call(source, procedure(&[]))).unwrap();
    let queued: usize = std::str::from_utf8(&outcome.body.unwrap()).unwrap().parse().unwrap();
    let each = 10_000 * size_of::<Value>();
    assert!((1..=2).contains(&(queued - (4 << 20) / each)), "{queued} of {each} bytes");
}

#[test]
fn every_allocation_may_fail() {
    let shelf = Shelf::with(&[r#"{"id":"a","n":1}"#]);
    let call = call(BUSY, procedure(&[Value::Number(40.0)]));
    let (mut done, mut failed) = (0, 0);
    for memory_bytes in (180_000..480_000).step_by(997) {
        let limits = Limits { memory_bytes, ..Limits::default() };
        let pool = Pool::new(PoolOptions { threads: 1, limits });
        let outcome = execute(&pool, &shelf, call.clone());
        // On the same thread, after whatever it was that failed.
        assert_eq!(
            format!("{outcome:?}"),
            format!("{:?}", execute(&pool, &shelf, call.clone())),
            "{memory_bytes}"
        );
        match outcome {
            Ok(_) => done += 1,
            // Mostly "out of memory"; where the engine makes a built-in function on its first use,
            // "not a function".
            Err(Failure::Exception { .. }) => failed += 1,
            Err(other) => panic!("{memory_bytes}: {other:?}"),
        }
    }
    assert!(done > 50 && failed > 50, "{done} done, {failed} failed");
}
