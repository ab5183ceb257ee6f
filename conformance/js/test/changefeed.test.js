// Change feed, latest version: every start, every scope, resuming, and its order.

import assert from "node:assert/strict";

import { ChangeFeedStartFrom } from "@azure/cosmos";

import { fails, ids, serve, sorted, test, unique, until } from "../lib/fixture.js";

const t = serve();

function feed(container, changeFeedStartFrom, maxItemCount) {
  return container.items.getChangeFeedIterator({ changeFeedStartFrom, maxItemCount });
}

/** Reads until the feed has nothing new; the iterator stays usable. */
async function drain(iterator) {
  const found = [];
  for (let reads = 0; reads < 1000; reads++) {
    const page = await iterator.readNext();
    if (page.statusCode === 304) return { found, token: page.continuationToken };
    assert.equal(page.statusCode, 200);
    assert.ok(page.result.length > 0, "200 brings changes");
    assert.equal(page.count, page.result.length);
    found.push(...page.result);
  }
  return assert.fail("the feed never came to an end");
}

async function create(container, pk, ...names) {
  for (const id of names) await container.items.create({ id, pk });
}

test("from the beginning: every live item once, in order of its last change", async () => {
  const container = await t.container();
  await create(container, "p", "a", "b", "c", "d");
  await container.items.upsert({ id: "b", pk: "p", v: 2 });
  await container.item("c", "p").delete();
  const { found } = await drain(feed(container, ChangeFeedStartFrom.Beginning()));
  assert.deepEqual(ids(found), ["a", "d", "b"]);
  assert.equal(found[2].v, 2);
  const positions = found.map((item) => item._lsn);
  assert.ok(positions.every(Number.isInteger), "changes carry _lsn");
  assert.deepEqual(positions, [...positions].sort((x, y) => x - y));
});

test("an empty feed answers 304 and picks up what comes later", async () => {
  const container = await t.container();
  const iterator = feed(container, ChangeFeedStartFrom.Beginning());
  assert.equal((await iterator.readNext()).statusCode, 304);
  await create(container, "p", "a");
  assert.deepEqual(ids((await drain(iterator)).found), ["a"]);
  await create(container, "p", "b");
  assert.deepEqual(ids((await drain(iterator)).found), ["b"]);
});

test("from now: only what comes later", async () => {
  const container = await t.container();
  await create(container, "p", "before");
  const iterator = feed(container, ChangeFeedStartFrom.Now());
  assert.deepEqual((await drain(iterator)).found, []);
  await create(container, "p", "after");
  await container.items.upsert({ id: "before", pk: "p", v: 2 });
  assert.deepEqual(ids((await drain(iterator)).found), ["after", "before"]);
});

test("from a time: only items written since", async () => {
  const container = await t.container();
  await create(container, "p", "early");
  const { resource } = await container.item("early", "p").read();
  // The feed compares whole seconds, so the second write has to fall into a later one.
  const later = await until("a later second", async () => {
    const { resource: late } = await container.items.upsert({ id: "late", pk: "p" });
    return late._ts >= resource._ts + 2 ? late : undefined;
  });
  const start = ChangeFeedStartFrom.Time(new Date(later._ts * 1000));
  assert.deepEqual(ids((await drain(feed(container, start))).found), ["late"]);
  const past = ChangeFeedStartFrom.Time(new Date((resource._ts - 60) * 1000));
  assert.deepEqual(sorted(ids((await drain(feed(container, past))).found)), ["early", "late"]);
});

test("a continuation resumes in a new iterator, exactly", async () => {
  const container = await t.container();
  await create(container, "p", "a", "b", "c", "d", "e");
  const first = await feed(container, ChangeFeedStartFrom.Beginning(), 2).readNext();
  assert.deepEqual(ids(first.result), ["a", "b"]);
  const second = feed(container, ChangeFeedStartFrom.Continuation(first.continuationToken), 2);
  const { found, token } = await drain(second);
  assert.deepEqual(ids(found), ["c", "d", "e"]);
  await create(container, "p", "f");
  const third = feed(container, ChangeFeedStartFrom.Continuation(token));
  assert.deepEqual(ids((await drain(third)).found), ["f"]);
});

test("by partition key: only its items", async () => {
  const container = await t.container({ throughput: 20_000 });
  await create(container, "p", "a", "b");
  await create(container, "q", "c");
  const iterator = feed(container, ChangeFeedStartFrom.Beginning("p"), 1);
  const { found, token } = await drain(iterator);
  assert.deepEqual(ids(found), ["a", "b"]);
  await create(container, "q", "d");
  await create(container, "p", "e");
  const resumed = feed(container, ChangeFeedStartFrom.Continuation(token));
  assert.deepEqual(ids((await drain(resumed)).found), ["e"]);
});

test("by partition key from now", async () => {
  const container = await t.container();
  await create(container, "p", "a");
  const iterator = feed(container, ChangeFeedStartFrom.Now("p"));
  await drain(iterator);
  await create(container, "q", "b");
  await create(container, "p", "c");
  assert.deepEqual(ids((await drain(iterator)).found), ["c"]);
});

test("by feed range: the ranges share the items without overlap", async () => {
  const container = await t.container({ throughput: 30_000 });
  const names = Array.from({ length: 30 }, (_, n) => `i${n}`);
  for (const id of names) await container.items.create({ id, pk: id });
  const shares = [];
  for (const range of await container.getFeedRanges()) {
    shares.push(ids((await drain(feed(container, ChangeFeedStartFrom.Beginning(range), 4))).found));
  }
  assert.equal(shares.length, 3);
  assert.ok(shares.every((share) => share.length > 0), "thirty keys reach all three ranges");
  assert.deepEqual(sorted(shares.flat()), sorted(names));
});

test("over all ranges: nothing missing, order kept within each key", async () => {
  const container = await t.container({ throughput: 30_000 });
  for (let n = 0; n < 40; n++) {
    await container.items.create({ id: `i${String(n).padStart(2, "0")}`, pk: `p${n % 8}`, n });
  }
  const { found } = await drain(feed(container, ChangeFeedStartFrom.Beginning(), 3));
  assert.equal(new Set(ids(found)).size, 40);
  for (let key = 0; key < 8; key++) {
    const own = found.filter((item) => item.pk === `p${key}`).map((item) => item.n);
    assert.deepEqual(own, [...own].sort((x, y) => x - y));
  }
});

test("by prefix of a hierarchical key", async () => {
  const container = await t.container({
    throughput: 20_000,
    partitionKey: { paths: ["/t", "/u"], kind: "MultiHash", version: 2 },
  });
  for (const [tenant, users] of [["t1", 4], ["t2", 3]]) {
    for (let n = 0; n < users; n++) {
      await container.items.create({ id: `${tenant}-${n}`, t: tenant, u: n });
    }
  }
  const { found } = await drain(feed(container, ChangeFeedStartFrom.Beginning(["t1"])));
  assert.deepEqual(sorted(ids(found)), ["t1-0", "t1-1", "t1-2", "t1-3"]);
});

test("the writes of one batch are never torn apart by a page", async () => {
  const container = await t.container();
  const operations = ["a", "b", "c", "d"].map((id) => ({
    operationType: "Create",
    resourceBody: { id, pk: "p" },
  }));
  await container.items.batch(operations, "p");
  const page = await feed(container, ChangeFeedStartFrom.Beginning(), 1).readNext();
  assert.deepEqual(sorted(ids(page.result)), ["a", "b", "c", "d"]);
  assert.equal(new Set(page.result.map((item) => item._lsn)).size, 1);
});

test("an item changed often appears once, at its newest", async () => {
  const container = await t.container();
  for (let v = 0; v < 5; v++) await container.items.upsert({ id: "a", pk: "p", v });
  await container.item("a", "p").patch([{ op: "set", path: "/extra", value: "whole item" }]);
  const { found } = await drain(feed(container, ChangeFeedStartFrom.Beginning()));
  assert.equal(found.length, 1);
  assert.deepEqual([found[0].v, found[0].extra], [4, "whole item"]);
});

test("a page is cut at four megabytes, and nothing is lost", async () => {
  const container = await t.container();
  const text = "x".repeat(900_000);
  for (let n = 0; n < 8; n++) await container.items.create({ id: `i${n}`, pk: "p", text });
  const iterator = feed(container, ChangeFeedStartFrom.Beginning(), 100);
  const first = await iterator.readNext();
  assert.ok(first.result.length < 8, `${first.result.length} items in a page`);
  const { found } = await drain(iterator);
  const names = Array.from({ length: 8 }, (_, n) => `i${n}`);
  assert.deepEqual([...ids(first.result), ...ids(found)], names);
});

test("a token does not survive the container it came from", async () => {
  const container = await t.container();
  await create(container, "p", "a");
  const { token } = await drain(feed(container, ChangeFeedStartFrom.Beginning()));
  await container.delete();
  await t.container({ id: container.id });
  const resumed = feed(container, ChangeFeedStartFrom.Continuation(token));
  await assert.rejects(resumed.readNext(), /not for the current container/);
});

test("the older iterator by partition key works too", async () => {
  const container = await t.container();
  await create(container, "p", "a", "b");
  const iterator = container.items.changeFeed("p", { startFromBeginning: true });
  const { result } = await iterator.fetchNext();
  assert.deepEqual(ids(result), ["a", "b"]);
});

test("a feed of a missing container is 404", async () => {
  const missing = t.database.container(unique("missing"));
  const iterator = feed(missing, ChangeFeedStartFrom.Beginning());
  await fails(iterator.readNext(), 404);
});
