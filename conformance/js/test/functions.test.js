// User-defined functions: wherever an expression stands in a query, over one partition and several.

import assert from "node:assert/strict";

import { all, fails, serve, test } from "../lib/fixture.js";
import { answers, ask, BOOKS, byText, shelves } from "../lib/books.js";
import { define, run } from "../lib/scripts.js";

let both;
const t = serve(async () => {
  both = await shelves(t);
  await define(both, "tax", function (price) {
    if (price === undefined) throw new Error("no price");
    if (price < 10) return price * 0.1;
    if (price < 15) return price * 0.2;
    return price * 0.4;
  });
  await define(both, "isOld", function (year) { return year < 1890; });
  await define(both, "joined", function (tags, glue) { return tags.join(glue); });
  await define(both, "onlyEven", function (n) { if (n % 2 === 0) return n; });
  await define(both, "century", function (year) { return Math.floor(year / 100) + 1; });
  await define(both, "pair", function (a, b) { return { a: a, b: [b] }; });
  await define(both, "fails", function () { throw new Error("always"); });
  await define(both, "outside", function () { return [typeof getContext, typeof __, typeof require].join(); });
});

const tax = (price) => (price < 10 ? price * 0.1 : price < 15 ? price * 0.2 : price * 0.4);

test("a function computes what is selected", async () => {
  const expected = BOOKS.map(({ id, price }) => ({ id, tax: tax(price) }));
  await answers(both, "SELECT c.id, udf.tax(c.price) AS tax FROM c", expected);
});

test("a function filters", async () => {
  const expected = BOOKS.filter((book) => book.year < 1890).map((book) => book.id);
  await answers(both, "SELECT VALUE c.id FROM c WHERE udf.isOld(c.year)", expected);
  await answers(both, "SELECT VALUE c.id FROM c WHERE udf.isOld(c.year) AND c.land = 'no'", ["peer", "ghosts"]);
  await answers(both, "SELECT VALUE c.id FROM c WHERE udf.tax(c.price) > 7", ["kalevala", "nils", "egyptian"]);
});

test("a function stands beside ORDER BY", async () => {
  const rows = [...BOOKS].sort((one, other) => one.year - other.year).map(({ id, year }) => ({ id, century: Math.floor(year / 100) + 1 }));
  await answers(both, "SELECT c.id, udf.century(c.year) AS century FROM c ORDER BY c.year", rows, { ordered: true });
});

test("functions are aggregated and grouped by", async () => {
  const count = BOOKS.filter((book) => book.year < 1900).length;
  for (const container of both) {
    const groups = await all(container.items.query("SELECT udf.century(c.year) AS century, COUNT(1) AS n FROM c GROUP BY udf.century(c.year)"));
    assert.deepEqual(byText(groups), byText([{ century: 19, n: count }, { century: 20, n: BOOKS.length - count }]));
    const [most] = await all(container.items.query("SELECT VALUE MAX(udf.tax(c.price)) FROM c"));
    assert.equal(most, 10);
  }
});

test("arguments are texts, arrays, objects and parameters", async () => {
  const query = ask("SELECT VALUE udf.joined(c.tags, @glue) FROM c WHERE c.author = 'Hamsun'", { glue: "+" });
  await answers(both, query, ["classic+short", "classic"]);
  await answers(both, "SELECT VALUE udf.pair(c.id, {x: c.year}) FROM c WHERE c.id = 'pan'", [{ a: "pan", b: [{ x: 1894 }] }]);
});

test("functions are called on functions, in joins and in subqueries", async () => {
  await answers(both, "SELECT VALUE udf.century(udf.onlyEven(c.year)) FROM c WHERE c.author = 'Hamsun'", [19, 19]);
  await answers(both, "SELECT VALUE udf.tax(e.copies) FROM c JOIN e IN c.editions WHERE c.id = 'hunger'", [120, 200]);
  await answers(both, "SELECT VALUE ARRAY(SELECT VALUE udf.joined([t, c.land], ':') FROM t IN c.tags) FROM c WHERE c.id = 'peer'", [["play:no", "classic:no"]]);
});

test("a function without a result leaves nothing", async () => {
  const expected = BOOKS.map((book) => book.year).filter((year) => year % 2 === 0);
  await answers(both, "SELECT VALUE udf.onlyEven(c.year) FROM c", expected);
  await answers(both, "SELECT udf.onlyEven(c.year) AS even FROM c WHERE c.id = 'peer'", [{}]);
});

test("an undefined argument is not handed to a function", async () => {
  await answers(both, "SELECT VALUE udf.tax(c.none) FROM c", []);
});

test("an exception fails the query", async () => {
  for (const container of both) {
    const error = await fails(container.items.query("SELECT VALUE udf.fails() FROM c").fetchAll(), 400);
    assert.match(error.body.message, /always/);
  }
});

test("a function must exist, under exactly its name", async () => {
  for (const container of both) {
    for (const name of ["none", "Tax", "TAX"]) {
      await fails(container.items.query(`SELECT VALUE udf.${name}(1) FROM c`).fetchAll(), 400);
    }
  }
});

test("functions see neither context nor container", async () => {
  await answers(both, "SELECT VALUE udf.outside() FROM c WHERE c.id = 'pan'", ["undefined,undefined,undefined"]);
});

test("a query has at most ten calls", async () => {
  const [one] = both;
  const calls = (n) => `SELECT VALUE ${Array(n).fill("udf.tax(1)").join(" + ")} FROM c WHERE c.id = 'pan'`;
  assert.equal((await all(one.items.query(calls(10)))).length, 1);
  await fails(one.items.query(calls(11)).fetchAll(), 400);
});

test("a replaced function is called at once, a deleted one no more", async () => {
  const container = await t.container();
  await container.items.create({ id: "a", pk: "p" });
  await define(container, "f", function () { return 1; });
  const call = () => all(container.items.query("SELECT VALUE udf.f() FROM c"));
  assert.deepEqual(await call(), [1]);
  await container.scripts.userDefinedFunction("f").replace({ id: "f", body: function () { return 2; } });
  assert.deepEqual(await call(), [2]);
  await container.scripts.userDefinedFunction("f").delete();
  await fails(call(), 400);
});

test("a procedure asks queries with functions", async () => {
  const container = await t.container();
  for (const n of [1, 2, 3]) await container.items.create({ id: `i${n}`, pk: "p", n });
  await define(container, "twice", function (n) { return 2 * n; });
  const body = function () {
    __.queryDocuments(__.getSelfLink(), "SELECT VALUE udf.twice(c.n) FROM c WHERE udf.twice(c.n) > 2 ORDER BY c.n", function (err, rows) {
      if (err) throw err;
      __.response.setBody(rows);
    });
  };
  assert.deepEqual(await run(container, body, "p"), [4, 6]);
});

test("a function without an end is stopped", async () => {
  const container = await t.container();
  await container.items.create({ id: "a", pk: "p" });
  await define(container, "f", function () { for (;;); });
  const error = await container.items.query("SELECT VALUE udf.f() FROM c").fetchAll().then(() => assert.fail("it ended"), (thrown) => thrown);
  assert.ok([400, 408].includes(error.code), `${error.code}: ${error.message}`);
});
