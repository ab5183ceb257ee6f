// Optimistic concurrency: If-Match on every write, If-None-Match on reads.

import assert from "node:assert/strict";

import { fails, serve, test } from "../lib/fixture.js";

const t = serve();

const ifMatch = (condition) => ({ accessCondition: { type: "IfMatch", condition } });
const ifNoneMatch = (condition) => ({ accessCondition: { type: "IfNoneMatch", condition } });

async function item() {
  const container = await t.container();
  const { resource, item } = await container.items.create({ id: "a", pk: "p", v: 0 });
  return { container, item, etag: resource._etag };
}

test("replace with the current etag succeeds, with a stale one it is 412", async () => {
  const { item: one, etag } = await item();
  await one.replace({ id: "a", pk: "p", v: 1 }, ifMatch(etag));
  await fails(one.replace({ id: "a", pk: "p", v: 2 }, ifMatch(etag)), 412);
  assert.equal((await one.read()).resource.v, 1);
});

test("delete honours If-Match", async () => {
  const { item: one, etag } = await item();
  await fails(one.delete(ifMatch('"00000000-0000-0000-0000-000000000000"')), 412);
  assert.equal((await one.delete(ifMatch(etag))).statusCode, 204);
});

test("patch honours If-Match", async () => {
  const { item: one, etag } = await item();
  const operations = [{ op: "incr", path: "/v", value: 1 }];
  const { resource } = await one.patch(operations, ifMatch(etag));
  assert.equal(resource.v, 1);
  await fails(one.patch(operations, ifMatch(etag)), 412);
  assert.equal((await one.read()).resource.v, 1);
});

test("upsert honours If-Match on an item that exists, and creates one that does not", async () => {
  const { container, etag } = await item();
  await container.items.upsert({ id: "a", pk: "p", v: 1 }, ifMatch(etag));
  await fails(container.items.upsert({ id: "a", pk: "p", v: 2 }, ifMatch(etag)), 412);
  const created = await container.items.upsert({ id: "new", pk: "p" }, ifMatch(etag));
  assert.equal(created.statusCode, 201);
});

test("If-Match * means that the item must exist", async () => {
  const { container, item: one } = await item();
  assert.equal((await one.replace({ id: "a", pk: "p", v: 1 }, ifMatch("*"))).statusCode, 200);
  await fails(container.item("none", "p").replace({ id: "none", pk: "p" }, ifMatch("*")), 404);
});

test("read with the current etag answers 304 without a body", async () => {
  const { item: one, etag } = await item();
  const { statusCode, resource, headers } = await one.read(ifNoneMatch(etag));
  assert.equal(statusCode, 304);
  assert.ok(!resource);
  assert.equal(headers.etag, etag);
  await one.replace({ id: "a", pk: "p", v: 1 });
  const changed = await one.read(ifNoneMatch(etag));
  assert.equal(changed.statusCode, 200);
  assert.equal(changed.resource.v, 1);
});

test("upsert with If-None-Match * refuses to replace", async () => {
  const { container } = await item();
  await fails(container.items.upsert({ id: "a", pk: "p", v: 9 }, ifNoneMatch("*")), 412);
  const created = await container.items.upsert({ id: "new", pk: "p" }, ifNoneMatch("*"));
  assert.equal(created.statusCode, 201);
});

test("of many writers with one etag, one wins", async () => {
  const { item: one, etag } = await item();
  const attempts = Array.from({ length: 16 }, (_, n) =>
    one.replace({ id: "a", pk: "p", v: n + 1 }, ifMatch(etag)).then(
      ({ resource }) => resource.v,
      (error) => error.code,
    ),
  );
  const outcomes = await Promise.all(attempts);
  const winners = outcomes.filter((outcome) => outcome !== 412);
  assert.equal(winners.length, 1, JSON.stringify(outcomes));
  assert.equal((await one.read()).resource.v, winners[0]);
});

test("increments by many writers all count", async () => {
  const { item: one } = await item();
  const operations = [{ op: "incr", path: "/v", value: 1 }];
  await Promise.all(Array.from({ length: 32 }, () => one.patch(operations)));
  assert.equal((await one.read()).resource.v, 32);
});
