// Queries: projections, filters, parameters, order, TOP, pages, plans and errors.

import assert from "node:assert/strict";

import { all, fails, ids, pages, serve, sorted, test } from "../lib/fixture.js";

const FAMILIES = [
  { id: "andersen", pk: "wa", city: "Seattle", children: 1, registered: true, pets: ["Fluffy"], rank: 3 },
  { id: "wakefield", pk: "ny", city: "New York", children: 2, registered: false, pets: [], rank: 1.5 },
  { id: "smith", pk: "wa", city: "Spokane", children: 3, registered: true, note: null, rank: 2 },
  { id: "miller", pk: "ny", city: "Albany", children: 0, rank: 10 },
  { id: "ødegård", pk: "no", city: "Oslo", children: 5, registered: false, rank: -1 },
];

let one, many;
const t = serve(async () => {
  one = await t.container();
  many = await t.container({ throughput: 30_000 });
  for (const container of [one, many]) {
    for (const family of FAMILIES) await container.items.create({ ...family });
  }
});

/** The same answer from a container with one physical partition and from one with three. */
async function answers(query, expected, { ordered = false } = {}) {
  for (const container of [one, many]) {
    const found = await all(container.items.query(query));
    const compare = ordered ? [found, expected] : [sorted(found), sorted(expected)];
    assert.deepEqual(...compare, typeof query === "string" ? query : query.query);
  }
}

test("SELECT * returns whole items", async () => {
  for (const container of [one, many]) {
    const found = await all(container.items.query("SELECT * FROM c WHERE c.id = 'smith'"));
    const { resource } = await container.item("smith", "wa").read();
    assert.deepEqual(found, [resource]);
  }
});

test("projections pick, rename and construct", async () => {
  const { resources } = await one.items
    .query("SELECT c.id, c.city AS town, c.pets[0] AS pet FROM c WHERE c.id = 'andersen'")
    .fetchAll();
  assert.deepEqual(resources, [{ id: "andersen", town: "Seattle", pet: "Fluffy" }]);
  await answers("SELECT VALUE {n: c.id, k: [c.pk, c.children]} FROM c WHERE c.id = 'smith'", [
    { n: "smith", k: ["wa", 3] },
  ]);
  await answers("SELECT VALUE c.note FROM c WHERE c.id IN ('smith', 'miller')", [null]);
});

test("comparisons", async () => {
  const where = (filter, ...expected) =>
    answers(`SELECT VALUE c.id FROM c WHERE ${filter}`, expected);
  await where("c.children = 2", "wakefield");
  await where("c.children != 2", "andersen", "smith", "miller", "ødegård");
  await where("c.children > 2", "smith", "ødegård");
  await where("c.children >= 3", "smith", "ødegård");
  await where("c.children < 1", "miller");
  await where("c.children <= 1", "miller", "andersen");
  await where("c.children BETWEEN 1 AND 2", "andersen", "wakefield");
  await where("c.city > 'S'", "andersen", "smith");
  await where("c.registered = true", "andersen", "smith");
  await where("c.id = 'ødegård'", "ødegård");
  await where("c.children = '2'");
});

test("AND, OR, NOT and IN", async () => {
  const where = (filter, ...expected) =>
    answers(`SELECT VALUE c.id FROM c WHERE ${filter}`, expected);
  await where("c.pk = 'wa' AND c.children > 1", "smith");
  await where("c.pk = 'no' OR c.children = 0", "miller", "ødegård");
  await where("NOT (c.pk = 'wa' OR c.pk = 'ny')", "ødegård");
  await where("c.city IN ('Oslo', 'Albany', 'Nowhere')", "miller", "ødegård");
  await where("c.city NOT IN ('Oslo', 'Albany')", "andersen", "wakefield", "smith");
  await where("(c.pk = 'wa' OR c.pk = 'ny') AND NOT c.registered", "wakefield");
});

test("defined, null and types", async () => {
  const where = (filter, ...expected) =>
    answers(`SELECT VALUE c.id FROM c WHERE ${filter}`, expected);
  await where("IS_DEFINED(c.registered)", "andersen", "wakefield", "smith", "ødegård");
  await where("NOT IS_DEFINED(c.registered)", "miller");
  await where("IS_NULL(c.note)", "smith");
  await where("c.note = null", "smith");
  await where("IS_ARRAY(c.pets)", "andersen", "wakefield");
  await where("IS_BOOL(c.registered) AND IS_STRING(c.id) AND IS_NUMBER(c.rank) AND c.rank > 2", "andersen");
});

test("string functions", async () => {
  const where = (filter, ...expected) =>
    answers(`SELECT VALUE c.id FROM c WHERE ${filter}`, expected);
  await where("STARTSWITH(c.city, 'S')", "andersen", "smith");
  await where("STARTSWITH(c.city, 's', true)", "andersen", "smith");
  await where("ENDSWITH(c.city, 'e')", "andersen", "smith");
  await where("CONTAINS(c.city, 'lan')");
  await where("CONTAINS(c.city, 'ban')", "miller");
  await where("UPPER(c.city) = 'OSLO'", "ødegård");
});

test("parameters of every type", async () => {
  const find = (filter, value, ...expected) =>
    answers(
      { query: `SELECT VALUE c.id FROM c WHERE ${filter}`, parameters: [{ name: "@v", value }] },
      expected,
    );
  await find("c.city = @v", "Oslo", "ødegård");
  await find("c.children = @v", 3, "smith");
  await find("c.registered = @v", false, "wakefield", "ødegård");
  await find("c.note = @v", null, "smith");
  await find("ARRAY_CONTAINS(@v, c.children)", [0, 1], "miller", "andersen");
  await find("c.city = @v.name", { name: "Albany" }, "miller");
});

test("ORDER BY one path, both ways", async () => {
  await answers("SELECT VALUE c.id FROM c ORDER BY c.rank", ["ødegård", "wakefield", "smith", "andersen", "miller"], { ordered: true });
  await answers("SELECT VALUE c.id FROM c ORDER BY c.rank DESC", ["miller", "andersen", "smith", "wakefield", "ødegård"], { ordered: true });
  await answers("SELECT VALUE c.city FROM c WHERE c.pk != 'no' ORDER BY c.city ASC", ["Albany", "New York", "Seattle", "Spokane"], { ordered: true });
});

test("ORDER BY keeps items that lack the path, first when ascending", async () => {
  await answers("SELECT VALUE c.id FROM c WHERE c.pk = 'ny' ORDER BY c.registered", ["miller", "wakefield"], { ordered: true });
  await answers("SELECT VALUE c.id FROM c WHERE c.pk = 'ny' ORDER BY c.registered DESC", ["wakefield", "miller"], { ordered: true });
});

test("TOP and OFFSET LIMIT", async () => {
  await answers("SELECT TOP 2 VALUE c.id FROM c ORDER BY c.rank", ["ødegård", "wakefield"], { ordered: true });
  await answers("SELECT VALUE c.id FROM c ORDER BY c.rank OFFSET 1 LIMIT 2", ["wakefield", "smith"], { ordered: true });
  for (const container of [one, many]) {
    assert.equal((await all(container.items.query("SELECT TOP 3 * FROM c"))).length, 3);
    assert.equal((await all(container.items.query("SELECT TOP 0 * FROM c"))).length, 0);
  }
});

test("a partition key restricts a query", async () => {
  for (const container of [one, many]) {
    const found = await all(
      container.items.query("SELECT VALUE c.id FROM c ORDER BY c.rank", { partitionKey: "wa" }),
    );
    assert.deepEqual(found, ["smith", "andersen"]);
  }
});

test("pages resume under filters and order", async () => {
  const container = await t.container({ throughput: 30_000 });
  for (let n = 0; n < 60; n++) {
    await container.items.create({ id: `i${n}`, pk: `p${n % 9}`, n, even: n % 2 === 0, tie: n % 3 });
  }
  const even = await pages(container.items, "SELECT VALUE c.n FROM c WHERE c.even", { maxItemCount: 4 });
  assert.deepEqual(even.flat().sort((x, y) => x - y), Array.from({ length: 30 }, (_, n) => 2 * n));
  const ordered = await pages(container.items, "SELECT VALUE c.n FROM c ORDER BY c.n DESC", { maxItemCount: 7 });
  assert.deepEqual(ordered.flat(), Array.from({ length: 60 }, (_, n) => 59 - n));
  const ties = (await pages(container.items, "SELECT c.n, c.tie FROM c ORDER BY c.tie", { maxItemCount: 7 })).flat();
  assert.deepEqual(ties.map((row) => row.tie), Array.from({ length: 60 }, (_, n) => Math.floor(n / 20)));
  assert.equal(new Set(ties.map((row) => row.n)).size, 60);
  const top = await pages(container.items, "SELECT TOP 17 VALUE c.n FROM c ORDER BY c.n", { maxItemCount: 5 });
  assert.deepEqual(top.flat(), Array.from({ length: 17 }, (_, n) => n));
});

test("COUNT counts across partitions", async () => {
  await answers("SELECT VALUE COUNT(1) FROM c", [5]);
  await answers("SELECT VALUE COUNT(1) FROM c WHERE c.pk = 'wa'", [2]);
});

test("a forced plan merges ORDER BY on the client", async () => {
  const iterator = many.items.query("SELECT * FROM c ORDER BY c.rank", { forceQueryPlan: true });
  assert.deepEqual(ids(await all(iterator)), ["ødegård", "wakefield", "smith", "andersen", "miller"]);
  const top = many.items.query("SELECT TOP 2 c.id FROM c ORDER BY c.rank DESC", { forceQueryPlan: true });
  assert.deepEqual(ids(await all(top)), ["miller", "andersen"]);
  const filter = many.items.query("SELECT * FROM c WHERE c.children > 2", { forceQueryPlan: true });
  assert.deepEqual(sorted(ids(await all(filter))), ["smith", "ødegård"]);
});

test("a forced plan merges aggregates and groups on the client", async () => {
  const forced = (query) => all(many.items.query(query, { forceQueryPlan: true }));
  assert.deepEqual(await forced("SELECT VALUE COUNT(1) FROM c"), [5]);
  assert.deepEqual(await forced("SELECT VALUE SUM(c.children) FROM c"), [11]);
  assert.deepEqual(await forced("SELECT VALUE AVG(c.children) FROM c"), [2.2]);
  assert.deepEqual(await forced("SELECT VALUE MIN(c.rank) FROM c"), [-1]);
  assert.deepEqual(await forced("SELECT VALUE MAX(c.city) FROM c"), ["Spokane"]);
  assert.deepEqual(await forced("SELECT COUNT(1) AS n, MAX(c.children) AS most FROM c"), [{ n: 5, most: 5 }]);
  assert.deepEqual(sorted(await forced("SELECT DISTINCT VALUE c.pk FROM c")), ["no", "ny", "wa"]);
  const groups = await forced("SELECT c.pk, COUNT(1) AS n FROM c GROUP BY c.pk");
  assert.deepEqual(groups.map(({ pk, n }) => `${pk} ${n}`).sort(), ["no 1", "ny 2", "wa 2"]);
  assert.deepEqual(await forced("SELECT VALUE c.id FROM c ORDER BY c.rank OFFSET 1 LIMIT 2"), ["wakefield", "smith"]);
});

test("query control resumes from tokens that the client composes", async () => {
  const container = await t.container({ throughput: 30_000 });
  for (let n = 0; n < 40; n++) {
    await container.items.create({ id: `i${n}`, pk: `p${n % 9}`, n, word: `w${n % 5}` });
  }
  const options = { enableQueryControl: true, maxItemCount: 7 };
  const plain = await pages(container.items, "SELECT VALUE c.n FROM c", options);
  assert.deepEqual(plain.flat().sort((x, y) => x - y), Array.from({ length: 40 }, (_, n) => n));
  const ordered = await pages(container.items, "SELECT VALUE c.n FROM c ORDER BY c.n DESC", options);
  assert.deepEqual(ordered.flat(), Array.from({ length: 40 }, (_, n) => 39 - n));
  const ties = await pages(container.items, "SELECT c.n, c.word FROM c ORDER BY c.word", options);
  assert.equal(new Set(ties.flat().map((row) => row.n)).size, 40);
});

test("the plan of a query has the shape clients read", async () => {
  const { result } = await many.getQueryPlan("SELECT * FROM c WHERE c.children > 1 ORDER BY c.rank DESC");
  assert.equal(result.partitionedQueryExecutionInfoVersion, 2);
  assert.equal(result.queryInfo.distinctType, "None");
  assert.ok(Array.isArray(result.queryInfo.aggregates));
  assert.deepEqual(result.queryInfo.orderBy, ["Descending"]);
  assert.deepEqual(result.queryInfo.orderByExpressions, ["c.rank"]);
  assert.match(result.queryInfo.rewrittenQuery, /documentdb-formattableorderbyquery-filter/);
  assert.equal(result.queryRanges[0].min, "");
});

test("query metrics are numbers by name", async () => {
  const options = { populateQueryMetrics: true };
  const { resources, headers } = await many.items.query("SELECT * FROM c", options).fetchAll();
  assert.equal(resources.length, 5);
  assert.ok(headers === undefined || headers);
  const page = await one.items.query("SELECT * FROM c", options).fetchNext();
  assert.ok(page.queryMetrics, "metrics were asked for");
});

test("a query that cannot be read is 400 and says where", async () => {
  for (const query of ["SELECT", "SELEC * FROM c", "SELECT * FROM c WHERE", "SELECT * FROM c WHERE c.a = ", "SELECT * FROM c ORDER BY", "SELECT * FROM c WHERE c.a == 1 AND", "SELECT ( FROM c", ""]) {
    const error = await fails(one.items.query(query).fetchAll(), 400);
    assert.ok(error.message.length > 10, query);
  }
  const error = await fails(one.items.query("SELECT * FORM c").fetchAll(), 400);
  assert.match(error.message, /syntax error/i);
  assert.match(error.message, /SC1001/);
  assert.match(error.message, /"location"/);
});

test("unknown functions and parameters are 400", async () => {
  await fails(one.items.query("SELECT VALUE NO_SUCH_FUNCTION(c.id) FROM c").fetchAll(), 400);
  await fails(one.items.query("SELECT * FROM c WHERE c.id = @missing").fetchAll(), 400);
  await fails(one.items.query("SELECT * FROM c WHERE x.id = 1").fetchAll(), 400);
  await fails(one.items.query("SELECT VALUE udf.f(c.id) FROM c").fetchAll(), 400);
});

test("ORDER BY on a path that is not indexed is 400, a filter on it scans", async () => {
  const container = await t.container({
    indexingPolicy: {
      indexingMode: "consistent",
      automatic: true,
      includedPaths: [{ path: "/*" }],
      excludedPaths: [{ path: "/hidden/*" }],
    },
  });
  await container.items.create({ id: "a", pk: "p", hidden: { v: 1 } });
  assert.deepEqual(ids(await all(container.items.query("SELECT * FROM c WHERE c.hidden.v = 1"))), ["a"]);
  await fails(container.items.query("SELECT * FROM c ORDER BY c.hidden.v").fetchAll(), 400);
});

test("ORDER BY two paths needs a composite index", async () => {
  await fails(one.items.query("SELECT * FROM c ORDER BY c.pk, c.rank").fetchAll(), 400);
  const container = await t.container({
    indexingPolicy: {
      includedPaths: [{ path: "/*" }],
      excludedPaths: [],
      compositeIndexes: [
        [
          { path: "/pk", order: "ascending" },
          { path: "/rank", order: "descending" },
        ],
      ],
    },
  });
  for (const family of FAMILIES) await container.items.create({ ...family });
  const found = await all(container.items.query("SELECT * FROM c ORDER BY c.pk ASC, c.rank DESC"));
  assert.deepEqual(ids(found), ["ødegård", "miller", "wakefield", "andersen", "smith"]);
});

test("a container without an index needs a scan to be asked for", async () => {
  const container = await t.container({
    indexingPolicy: { indexingMode: "none", automatic: false, includedPaths: [], excludedPaths: [] },
  });
  await container.items.create({ id: "a", pk: "p", v: 1 });
  const query = "SELECT * FROM c WHERE c.v = 1";
  await fails(container.items.query(query).fetchAll(), 400);
  assert.deepEqual(ids(await all(container.items.query(query, { enableScanInQuery: true }))), ["a"]);
});
