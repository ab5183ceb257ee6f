// Databases: create, read, list, query, delete, names and their limits.

import assert from "node:assert/strict";

import { all, fails, ids, serve, test, unique } from "../lib/fixture.js";

const t = serve();

test("create answers 201 with system properties", async () => {
  const id = unique("db");
  const { resource, statusCode, headers } = await t.client.databases.create({ id });
  assert.equal(statusCode, 201);
  assert.equal(resource.id, id);
  assert.equal(Buffer.from(resource._rid.replaceAll("-", "/"), "base64").length, 4);
  assert.equal(resource._self, `dbs/${resource._rid}/`);
  assert.match(resource._etag, /^".+"$/);
  assert.equal(headers.etag, resource._etag);
  assert.ok(Math.abs(resource._ts - Date.now() / 1000) < 120, "_ts is now, in seconds");
  assert.equal(resource._colls, "colls/");
  assert.equal(resource._users, "users/");
});

test("read answers what create answered", async () => {
  const { resource: created, database } = await t.client.databases.create({ id: unique("db") });
  const { resource, statusCode } = await database.read();
  assert.equal(statusCode, 200);
  assert.deepEqual(resource, created);
});

test("creating a database twice is a conflict", async () => {
  const { database } = await t.client.databases.create({ id: unique("db") });
  await fails(t.client.databases.create({ id: database.id }), 409);
});

test("createIfNotExists creates once", async () => {
  const id = unique("db");
  assert.equal((await t.client.databases.createIfNotExists({ id })).statusCode, 201);
  assert.equal((await t.client.databases.createIfNotExists({ id })).statusCode, 200);
});

test("a missing database is 404 to read and to delete", async () => {
  const missing = t.client.database(unique("missing"));
  await fails(missing.read(), 404);
  await fails(missing.delete(), 404);
});

test("delete answers 204 and takes the containers along", async () => {
  const { database } = await t.client.databases.create({ id: unique("db") });
  const { container } = await database.containers.create({ id: "c", partitionKey: "/pk" });
  assert.equal((await database.delete()).statusCode, 204);
  await fails(database.read(), 404);
  await fails(container.read(), 404);
  await t.client.databases.create({ id: database.id });
  await fails(container.read(), 404);
});

test("readAll lists every database, page by page", async () => {
  const created = [];
  for (let n = 0; n < 3; n++) {
    created.push((await t.client.databases.create({ id: unique("list") })).database.id);
  }
  const iterator = t.client.databases.readAll({ maxItemCount: 1 });
  const seen = [];
  for await (const page of iterator.getAsyncIterator()) {
    assert.ok(page.resources.length <= 1, "a page holds one database");
    seen.push(...ids(page.resources));
  }
  for (const id of created) assert.equal(seen.filter((one) => one === id).length, 1, id);
});

test("query finds a database by a parameter", async () => {
  const { database } = await t.client.databases.create({ id: unique("db") });
  const query = {
    query: "SELECT * FROM root r WHERE r.id = @id",
    parameters: [{ name: "@id", value: database.id }],
  };
  assert.deepEqual(ids(await all(t.client.databases.query(query))), [database.id]);
});

test("names may hold spaces, non-ASCII letters and words of the protocol", async () => {
  for (const id of [unique("with space"), unique("Ünï-こんにちは-😀"), "colls", "docs", "dbs"]) {
    const { database } = await t.client.databases.create({ id });
    const { container } = await database.containers.create({ id: "docs", partitionKey: "/pk" });
    await container.items.create({ id: "docs", pk: "colls" });
    assert.equal((await container.item("docs", "colls").read()).resource.id, "docs", id);
    assert.equal((await database.read()).resource.id, id);
    await database.delete();
  }
});

test("names are case-sensitive", async () => {
  const id = unique("Case");
  await t.client.databases.create({ id });
  await fails(t.client.database(id.toLowerCase()).read(), 404);
});

test("a name has at most 255 characters", async () => {
  const longest = "n".repeat(255 - 14) + unique("").padEnd(14, "x").slice(0, 14);
  assert.equal(longest.length, 255);
  assert.equal((await t.client.databases.create({ id: longest })).statusCode, 201);
  await fails(t.client.databases.create({ id: `${longest}x` }), 400);
});

test("a name without characters, with reserved ones or a trailing space is refused", async () => {
  for (const id of ["", "a/b", "a\\b", "a?b", "a#b", "a ", 7, null]) {
    const { status, json } = await t.raw("POST", "/dbs", { body: { id } });
    assert.equal(status, 400, JSON.stringify(id));
    assert.ok(json.message.length > 0);
  }
});
