// Pages of queries: every row once whatever their size, continuations that outlive the client and
// the server but not the query, and what headers tell about a page.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { CosmosClient } from "@azure/cosmos";

import { byText } from "../lib/books.js";
import { fails, pages, serve, test } from "../lib/fixture.js";
import { KEY, startServer } from "../lib/server.js";

const COUNT = 40;
const NUMBERS = Array.from({ length: COUNT }, (_, n) => n);

async function fill(container) {
  for (const n of NUMBERS) {
    await container.items.create({ id: `i${n}`, pk: `p${n % 11}`, n, tie: n % 4, word: `w${n % 7}`, list: [n, -n] });
  }
  return container;
}

let one, many;
const t = serve(async () => {
  one = await fill(await t.container());
  many = await fill(await t.container({ throughput: 30_000 }));
});

/** Expects rows through a new iterator for each page, which never holds more than was asked for. */
async function resumes(query, expected, { ordered = true, sizes = [1, 3], ...options } = {}) {
  for (const container of [one, many]) {
    for (const maxItemCount of sizes) {
      const found = await pages(container.items, query, { maxItemCount, ...options });
      assert.ok(found.every((page) => page.length <= maxItemCount), query);
      const order = ordered ? (rows) => rows : byText;
      assert.deepEqual(order(found.flat()), order(expected), `${query} in pages of ${maxItemCount}`);
    }
  }
}

test("pages of a plain query", async () => {
  await resumes("SELECT VALUE c.n FROM c", NUMBERS, { ordered: false });
  await resumes("SELECT VALUE c.n FROM c WHERE c.tie = 2", NUMBERS.filter((n) => n % 4 === 2), { ordered: false });
});

test("pages of an order, up and down", async () => {
  await resumes("SELECT VALUE c.n FROM c ORDER BY c.n", NUMBERS);
  await resumes("SELECT VALUE c.n FROM c ORDER BY c.n DESC", NUMBERS.toReversed());
});

test("pages of an order with many equal keys", async () => {
  for (const container of [one, many]) {
    for (const direction of ["ASC", "DESC"]) {
      const query = `SELECT c.n, c.tie FROM c ORDER BY c.tie ${direction}`;
      const found = (await pages(container.items, query, { maxItemCount: 3 })).flat();
      const ties = NUMBERS.map((n) => Math.floor(n / 10));
      assert.deepEqual(found.map((row) => row.tie), direction === "ASC" ? ties : ties.toReversed());
      assert.deepEqual(found.map((row) => row.n).sort((x, y) => x - y), NUMBERS);
    }
  }
});

test("pages of TOP", async () => {
  await resumes("SELECT TOP 11 VALUE c.n FROM c ORDER BY c.n DESC", NUMBERS.toReversed().slice(0, 11));
  for (const container of [one, many]) {
    const found = (await pages(container.items, "SELECT TOP 11 VALUE c.n FROM c", { maxItemCount: 3 })).flat();
    assert.equal(new Set(found).size, 11);
    assert.equal(found.length, 11);
  }
});

test("pages of OFFSET and LIMIT", async () => {
  await resumes("SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 7 LIMIT 10", NUMBERS.slice(7, 17));
  for (const container of [one, many]) {
    const found = (await pages(container.items, "SELECT VALUE c.n FROM c OFFSET 7 LIMIT 10", { maxItemCount: 3 })).flat();
    assert.equal(new Set(found).size, 10);
    assert.equal(found.length, 10);
  }
});

test("pages of DISTINCT", async () => {
  const words = ["w0", "w1", "w2", "w3", "w4", "w5", "w6"];
  await resumes("SELECT DISTINCT VALUE c.word FROM c", words, { ordered: false });
  await resumes("SELECT DISTINCT VALUE c.word FROM c ORDER BY c.word", words);
  await resumes("SELECT DISTINCT VALUE c.word FROM c ORDER BY c.word DESC", words.toReversed());
});

test("pages of groups", async () => {
  const groups = [0, 1, 2, 3].map((tie) => ({ tie, n: 10, sum: 180 + 10 * tie }));
  await resumes("SELECT c.tie, COUNT(1) AS n, SUM(c.n) AS sum FROM c GROUP BY c.tie", groups, { ordered: false });
});

test("pages break between the rows that one item joins to", async () => {
  const rows = NUMBERS.flatMap((n) => [{ n, v: n }, { n, v: 0 - n }]);
  await resumes("SELECT c.n, v FROM c JOIN v IN c.list", rows, { ordered: false });
  await resumes("SELECT c.n, v FROM c JOIN v IN c.list WHERE v > 35 ORDER BY c.n", [36, 37, 38, 39].map((n) => ({ n, v: n })));
});

test("pages within a partition key", async () => {
  await resumes("SELECT VALUE c.n FROM c ORDER BY c.n DESC", [36, 25, 14, 3], { partitionKey: "p3" });
});

test("an aggregate is one page", async () => {
  for (const container of [one, many]) {
    const found = await pages(container.items, "SELECT VALUE SUM(c.n) FROM c", { maxItemCount: 1 });
    assert.deepEqual(found.flat(), [780]);
  }
});

test("a continuation serves another client, as often as it is sent", async () => {
  const query = "SELECT VALUE c.n FROM c ORDER BY c.n";
  const first = await many.items.query(query, { maxItemCount: 5 }).fetchNext();
  const other = t.connect().database(t.database.id).container(many.id);
  for (const container of [other, many, other]) {
    const { continuationToken } = first;
    const page = await container.items.query(query, { maxItemCount: 5, continuationToken }).fetchNext();
    assert.deepEqual(page.resources, [5, 6, 7, 8, 9]);
  }
});

test("a continuation may go on in another page size", async () => {
  const query = "SELECT VALUE c.n FROM c ORDER BY c.n";
  const { continuationToken } = await many.items.query(query, { maxItemCount: 3 }).fetchNext();
  const page = await many.items.query(query, { maxItemCount: 10, continuationToken }).fetchNext();
  assert.deepEqual(page.resources, NUMBERS.slice(3, 13));
});

test("a write between pages neither repeats nor loses the rows around it", async () => {
  const container = await fill(await t.container({ throughput: 30_000 }));
  const query = "SELECT VALUE c.n FROM c ORDER BY c.n";
  const { continuationToken } = await container.items.query(query, { maxItemCount: 10 }).fetchNext();
  await container.item("i9", "p9").delete();
  await container.items.create({ id: "new", pk: "p1", n: 9.5 });
  await container.items.create({ id: "newer", pk: "p2", n: 20.5 });
  const { resources } = await container.items.query(query, { maxItemCount: 20, continuationToken }).fetchAll();
  const later = resources.filter(Number.isInteger);
  assert.deepEqual(later, NUMBERS.slice(10));
  assert.ok(resources.includes(20.5));
});

test("a continuation of another query is 400", async () => {
  for (const container of [one, many]) {
    const { continuationToken } = await container.items.query("SELECT VALUE c.n FROM c ORDER BY c.n", { maxItemCount: 3 }).fetchNext();
    for (const query of ["SELECT VALUE c.n FROM c", "SELECT VALUE c.n FROM c ORDER BY c.n DESC", "SELECT VALUE c.tie FROM c ORDER BY c.n"]) {
      await fails(container.items.query(query, { maxItemCount: 3, continuationToken }).fetchNext(), 400);
    }
  }
});

test("a continuation with other parameters is 400", async () => {
  const ask = (value) => ({ query: "SELECT VALUE c.n FROM c WHERE c.n >= @least", parameters: [{ name: "@least", value }] });
  const { continuationToken } = await many.items.query(ask(5), { maxItemCount: 3 }).fetchNext();
  await fails(many.items.query(ask(6), { maxItemCount: 3, continuationToken }).fetchNext(), 400);
});

test("a continuation of another container is 400", async () => {
  const { continuationToken } = await one.items.query("SELECT VALUE c.n FROM c", { maxItemCount: 3 }).fetchNext();
  const other = await fill(await t.container());
  await fails(other.items.query("SELECT VALUE c.n FROM c", { maxItemCount: 3, continuationToken }).fetchNext(), 400);
});

test("a forged continuation is 400", async () => {
  const query = "SELECT VALUE c.n FROM c ORDER BY c.n";
  const { continuationToken: token } = await many.items.query(query, { maxItemCount: 3 }).fetchNext();
  const middle = Math.floor(token.length / 2);
  const swapped = token.slice(0, middle) + (token[middle] === "A" ? "B" : "A") + token.slice(middle + 1);
  for (const forged of ["junk", "{}", "AAAA", "0", token.slice(0, -4), token.slice(4), `${token}x`, swapped]) {
    await fails(many.items.query(query, { maxItemCount: 3, continuationToken: forged }).fetchNext(), 400);
  }
});

test("a continuation is short printable text", async () => {
  for (const query of ["SELECT * FROM c", "SELECT * FROM c ORDER BY c.word", "SELECT DISTINCT VALUE c.n FROM c", "SELECT * FROM c OFFSET 5 LIMIT 20"]) {
    const { continuationToken } = await many.items.query(query, { maxItemCount: 3 }).fetchNext();
    assert.match(continuationToken, /^[\x21-\x7e]{1,1024}$/, query);
  }
});

test("continuations go on after the server was killed", async () => {
  const folder = mkdtempSync(join(tmpdir(), "cosmolabe-queries-"));
  const dataDir = join(folder, "data");
  let server = await startServer({ dataDir });
  const client = new CosmosClient({ endpoint: server.endpoint, key: KEY });
  try {
    const { database } = await client.databases.create({ id: "d" });
    const partitionKey = { paths: ["/pk"], kind: "Hash", version: 2 };
    const { container } = await database.containers.create({ id: "c", partitionKey, throughput: 30_000 });
    await fill(container);
    const wanted = [
      ["SELECT VALUE c.n FROM c", NUMBERS],
      ["SELECT VALUE c.n FROM c ORDER BY c.n DESC", NUMBERS.toReversed()],
      ["SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 5 LIMIT 20", NUMBERS.slice(5, 25)],
      ["SELECT TOP 9 VALUE c.n FROM c ORDER BY c.n", NUMBERS.slice(0, 9)],
      ["SELECT DISTINCT VALUE c.word FROM c", ["w0", "w1", "w2", "w3", "w4", "w5", "w6"]],
      ["SELECT c.tie, COUNT(1) AS n FROM c GROUP BY c.tie", [0, 1, 2, 3].map((tie) => ({ tie, n: 10 }))],
      ["SELECT VALUE v FROM c JOIN v IN c.list WHERE v > 0", NUMBERS.slice(1)],
    ];
    const begun = [];
    for (const [query] of wanted) begun.push(await container.items.query(query, { maxItemCount: 3 }).fetchNext());
    const { port } = server;
    await server.kill();
    server = await startServer({ dataDir, port });
    for (const [index, [query, expected]] of wanted.entries()) {
      const { resources: seen, continuationToken } = begun[index];
      const { resources: rest } = await container.items.query(query, { maxItemCount: 3, continuationToken }).fetchAll();
      const order = query.includes("ORDER BY") ? (rows) => rows : byText;
      assert.deepEqual(order([...seen, ...rest]), order(expected), query);
    }
    assert.deepEqual(server.complaints(), []);
  } finally {
    client.dispose();
    await server.kill();
    rmSync(folder, { recursive: true, force: true });
  }
});

test("query metrics count what was loaded and what came out", async () => {
  for (const container of [one, many]) {
    const options = { populateQueryMetrics: true };
    const page = await container.items.query("SELECT VALUE c.n FROM c WHERE c.n < 10", options).fetchNext();
    assert.equal(page.resources.length, 10);
    const metrics = Object.values(page.queryMetrics);
    const sum = (name) => metrics.reduce((total, each) => total + each[name], 0);
    assert.equal(sum("outputDocumentCount"), 10);
    assert.ok(sum("retrievedDocumentCount") >= 10 && sum("retrievedDocumentCount") <= COUNT);
    assert.ok(sum("outputDocumentSize") > 0);
    assert.ok(page.requestCharge > 0);
  }
});

test("index metrics name the paths that were used", async () => {
  for (const container of [one, many]) {
    const options = { populateIndexMetrics: true };
    const page = await container.items.query("SELECT VALUE c.n FROM c WHERE c.n = 7", options).fetchNext();
    assert.deepEqual(page.resources, [7]);
    assert.match(JSON.stringify(page.indexMetrics), /\/n\/\?/);
  }
});

test("the charge of all pages is the sum of theirs", async () => {
  const query = many.items.query("SELECT * FROM c ORDER BY c.n", { maxItemCount: 9 });
  const { resources, requestCharge } = await query.fetchAll();
  assert.equal(resources.length, COUNT);
  assert.ok(requestCharge > 10, `${requestCharge} RU for five pages`);
});

test("pages come one by one from an iterator", async () => {
  const found = [];
  for await (const page of many.items.query("SELECT VALUE c.n FROM c ORDER BY c.n", { maxItemCount: 7 }).getAsyncIterator()) {
    found.push(page.resources);
  }
  assert.deepEqual(found.flat(), NUMBERS);
  assert.ok(found.length >= 6);
});
