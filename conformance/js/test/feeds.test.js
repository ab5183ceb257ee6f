// Read feeds and continuations: pages follow one another without gap or repeat.

import assert from "node:assert/strict";

import { all, ids, pages, serve, sorted, test } from "../lib/fixture.js";

const t = serve();

async function filled(count, definition) {
  const container = await t.container(definition);
  const operations = Array.from({ length: count }, (_, n) => ({
    operationType: "Create",
    partitionKey: `p${n % 7}`,
    resourceBody: { id: `i${String(n).padStart(4, "0")}`, pk: `p${n % 7}`, n },
  }));
  await container.items.executeBulkOperations(operations);
  return container;
}

const names = (count) => Array.from({ length: count }, (_, n) => `i${String(n).padStart(4, "0")}`);

test("readAll meets every item once", async () => {
  const container = await filled(150);
  const found = await all(container.items.readAll());
  assert.deepEqual(sorted(ids(found)), names(150));
});

test("readAll of an empty container is an empty array", async () => {
  const container = await t.container();
  assert.deepEqual(await all(container.items.readAll()), []);
});

test("pages are as large as asked, and resume through a new iterator", async () => {
  const container = await filled(53);
  const found = await pages(container.items, "SELECT * FROM c", { maxItemCount: 10 });
  assert.ok(found.every((page) => page.length <= 10));
  assert.ok(found.length >= 6, `${found.length} pages`);
  assert.deepEqual(sorted(ids(found.flat())), names(53));
});

test("pages resume across physical partitions", async () => {
  const container = await filled(90, { throughput: 30_000 });
  const found = await pages(container.items, "SELECT * FROM c", { maxItemCount: 7 });
  assert.deepEqual(sorted(ids(found.flat())), names(90));
});

test("pages of one partition key stay within it", async () => {
  const container = await filled(70);
  const options = { maxItemCount: 3, partitionKey: "p2" };
  const found = (await pages(container.items, "SELECT * FROM c", options)).flat();
  assert.equal(found.length, 10);
  assert.ok(found.every((item) => item.pk === "p2"));
});

test("maxItemCount -1 leaves the size to the server", async () => {
  const container = await filled(30);
  const first = await container.items.query("SELECT * FROM c", { maxItemCount: -1 }).fetchNext();
  assert.equal(first.resources.length, 30);
  assert.equal(first.continuationToken, undefined);
});

test("the REST read feed pages by max-item-count", async () => {
  const container = await filled(25);
  const path = `/dbs/${t.database.id}/colls/${container.id}/docs`;
  const seen = [];
  let continuation;
  do {
    const headers = { "x-ms-max-item-count": "10" };
    if (continuation) headers["x-ms-continuation"] = continuation;
    const answer = await t.raw("GET", path, { headers });
    assert.equal(answer.status, 200, answer.text);
    assert.equal(answer.json._count, answer.json.Documents.length);
    assert.equal(answer.headers["x-ms-item-count"], String(answer.json._count));
    assert.notEqual(answer.headers["x-ms-continuation"], "");
    seen.push(...ids(answer.json.Documents));
    continuation = answer.headers["x-ms-continuation"];
  } while (continuation);
  assert.deepEqual(sorted(seen), names(25));
});

test("a page is cut at four megabytes", async () => {
  const container = await t.container();
  const text = "x".repeat(900_000);
  for (let n = 0; n < 8; n++) await container.items.create({ id: `i${n}`, pk: "p", text });
  const found = await pages(container.items, "SELECT * FROM c", { maxItemCount: -1 });
  assert.ok(found.length >= 2, `${found.length} pages for seven megabytes`);
  for (const page of found) assert.ok(JSON.stringify(page).length <= 4.2 * 1024 * 1024);
  assert.equal(found.flat().length, 8);
});

test("a continuation is short, and of no use to another query", async () => {
  const container = await filled(40);
  const first = await container.items
    .query("SELECT * FROM c WHERE c.n >= 0", { maxItemCount: 5 })
    .fetchNext();
  assert.ok(first.continuationToken.length < 1024);
  const { status } = await t.raw("POST", `/dbs/${t.database.id}/colls/${container.id}/docs`, {
    body: { query: "SELECT * FROM c WHERE c.n < 3" },
    headers: {
      "content-type": "application/query+json",
      "x-ms-documentdb-isquery": "true",
      "x-ms-documentdb-query-enablecrosspartition": "true",
      "x-ms-continuation": first.continuationToken,
    },
  });
  assert.equal(status, 400);
});

test("a tampered continuation is refused", async () => {
  const container = await filled(20);
  const options = { maxItemCount: 5 };
  const first = await container.items.query("SELECT * FROM c", options).fetchNext();
  const spoiled = `${first.continuationToken.slice(0, -4)}AAAA`;
  const second = container.items.query("SELECT * FROM c", { ...options, continuationToken: spoiled });
  const error = await second.fetchNext().then(() => undefined, (e) => e);
  assert.equal(error?.code, 400, `${error?.message}`);
});
