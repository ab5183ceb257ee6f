// Change feed, all versions and deletes: every write in order, deletes, expiry, previous images.

import assert from "node:assert/strict";

import { ChangeFeedMode, ChangeFeedStartFrom } from "@azure/cosmos";

import { serve, test, until } from "../lib/fixture.js";

const t = serve();

const RETAINED = { changeFeedPolicy: { retentionDuration: 10 } };

function versions(container, changeFeedStartFrom, maxItemCount) {
  return container.items.getChangeFeedIterator({
    changeFeedMode: ChangeFeedMode.AllVersionsAndDeletes,
    changeFeedStartFrom,
    maxItemCount,
  });
}

async function fromNow(container, scope) {
  const iterator = versions(container, ChangeFeedStartFrom.Now(scope));
  assert.equal((await iterator.readNext()).statusCode, 304);
  return iterator;
}

async function drain(iterator) {
  const found = [];
  for (let reads = 0; reads < 1000; reads++) {
    const page = await iterator.readNext();
    if (page.statusCode === 304) return { found, token: page.continuationToken };
    found.push(...page.result);
  }
  return assert.fail("the feed never came to an end");
}

const kinds = (found) => found.map((change) => change.metadata.operationType);

test("every version of an item is there, in order", async () => {
  const container = await t.container(RETAINED);
  const iterator = await fromNow(container);
  const { item } = await container.items.create({ id: "a", pk: "p", v: 1 });
  await item.replace({ id: "a", pk: "p", v: 2 });
  await container.items.upsert({ id: "a", pk: "p", v: 3 });
  await item.patch([{ op: "incr", path: "/v", value: 1 }]);
  await item.delete();
  const { found } = await drain(iterator);
  assert.deepEqual(kinds(found), ["create", "replace", "replace", "replace", "delete"]);
  const current = found.slice(0, 4).map((change) => change.current.v);
  assert.deepEqual(current, [1, 2, 3, 4]);
  const lsns = found.map((change) => change.metadata.lsn);
  assert.deepEqual(lsns, [...lsns].sort((x, y) => x - y));
  assert.equal(new Set(lsns).size, 5);
  assert.ok(found.every((change) => Number.isInteger(change.metadata.crts)));
});

test("a delete names the item and its key, and keeps the previous image", async () => {
  const container = await t.container(RETAINED);
  const { item } = await container.items.create({ id: "a", pk: "p", v: 7 });
  const iterator = await fromNow(container);
  await item.delete();
  const { found } = await drain(iterator);
  assert.equal(found.length, 1);
  const [{ current, previous, metadata }] = found;
  assert.ok(current === undefined || Object.keys(current).length === 0);
  assert.equal(metadata.operationType, "delete");
  assert.equal(metadata.id, "a");
  assert.deepEqual(metadata.partitionKey, { pk: "p" });
  assert.equal(previous.v, 7);
  assert.ok(!metadata.timeToLiveExpired);
});

test("an expired item is deleted with a mark", async () => {
  const container = await t.container({ ...RETAINED, defaultTtl: -1 });
  const iterator = await fromNow(container);
  await container.items.create({ id: "a", pk: "p", ttl: 1 });
  const seen = [];
  await until(
    "the expiry in the feed",
    async () => {
      seen.push(...(await drain(iterator)).found);
      return seen.some((change) => change.metadata.operationType === "delete");
    },
    { withinMs: 20_000, everyMs: 200 },
  );
  assert.deepEqual(kinds(seen), ["create", "delete"]);
  assert.equal(seen[1].metadata.timeToLiveExpired, true);
  assert.equal(seen[1].metadata.id, "a");
});

test("a batch is one position, its writes are all there", async () => {
  const container = await t.container(RETAINED);
  const iterator = await fromNow(container);
  await container.items.batch(
    [
      { operationType: "Create", resourceBody: { id: "a", pk: "p" } },
      { operationType: "Create", resourceBody: { id: "b", pk: "p" } },
      { operationType: "Delete", id: "a" },
    ],
    "p",
  );
  const { found } = await drain(iterator);
  assert.equal(new Set(found.map((change) => change.metadata.lsn)).size, 1);
  assert.ok(found.some((change) => change.current?.id === "b"));
});

test("by partition key, and resumed by a token", async () => {
  const container = await t.container(RETAINED);
  const iterator = await fromNow(container, "p");
  await container.items.create({ id: "a", pk: "p" });
  await container.items.create({ id: "b", pk: "q" });
  const { found, token } = await drain(iterator);
  assert.deepEqual(found.map((change) => change.current.id), ["a"]);
  await container.item("a", "p").delete();
  await container.item("b", "q").delete();
  const resumed = versions(container, ChangeFeedStartFrom.Continuation(token));
  const later = (await drain(resumed)).found;
  assert.deepEqual(later.map((change) => change.metadata.id), ["a"]);
});

test("there is no beginning and no point in time", async () => {
  const container = await t.container(RETAINED);
  for (const start of [ChangeFeedStartFrom.Beginning(), ChangeFeedStartFrom.Time(new Date())]) {
    const error = await versions(container, start).readNext().then(() => undefined, (e) => e);
    assert.equal(error?.code, 400, `${error?.message}`);
  }
});

test("a container without retention has no such feed", async () => {
  const container = await t.container();
  const iterator = versions(container, ChangeFeedStartFrom.Now());
  const error = await iterator.readNext().then(() => undefined, (e) => e);
  assert.equal(error?.code, 400, `${error?.message}`);
  assert.match(error.message, /retention|changeFeedPolicy/i);
});
