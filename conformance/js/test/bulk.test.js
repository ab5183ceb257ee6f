// Bulk: many independent operations over all partitions, each with its own status.

import assert from "node:assert/strict";

import { all, serve, test } from "../lib/fixture.js";

const t = serve();

const create = (id, pk, more = {}) => ({
  operationType: "Create",
  partitionKey: pk,
  resourceBody: { id, pk, ...more },
});

test("bulk writes to every partition and answers in the order asked", async () => {
  const container = await t.container({ throughput: 20_000 });
  const operations = Array.from({ length: 90 }, (_, n) => create(`i${n}`, `p${n % 30}`, { n }));
  const response = await container.items.bulk(operations);
  assert.equal(response.length, 90);
  response.forEach((one, n) => {
    assert.equal(one.statusCode, 201);
    assert.equal(one.resourceBody.n, n);
    assert.ok(one.eTag);
  });
  assert.equal((await all(container.items.readAll())).length, 90);
});

test("operations fail alone", async () => {
  const container = await t.container();
  await container.items.create({ id: "taken", pk: "p", v: 1 });
  const response = await container.items.bulk(
    [
      create("new", "p"),
      create("taken", "p"),
      { operationType: "Read", partitionKey: "p", id: "taken" },
      { operationType: "Delete", partitionKey: "p", id: "none" },
      { operationType: "Upsert", partitionKey: "q", resourceBody: { id: "up", pk: "q" } },
      { operationType: "Replace", partitionKey: "p", id: "taken", resourceBody: { id: "taken", pk: "p", v: 2 } },
      {
        operationType: "Patch",
        partitionKey: "p",
        id: "taken",
        resourceBody: { operations: [{ op: "incr", path: "/v", value: 1 }] },
      },
    ],
    { continueOnError: true },
  );
  assert.deepEqual(
    response.map((one) => one.statusCode),
    [201, 409, 200, 404, 201, 200, 200],
  );
  assert.equal((await container.item("taken", "p").read()).resource.v, 3);
});

test("keys of every type go where point reads look for them", async () => {
  const container = await t.container({ throughput: 20_000 });
  const keys = ["s", "", 1, -1.5, true, false, null];
  const operations = keys.map((pk) => create("same", pk, { mark: String(pk) }));
  const response = await container.items.bulk(operations);
  assert.ok(response.every((one) => one.statusCode === 201), JSON.stringify(response));
  for (const pk of keys) {
    assert.equal((await container.item("same", pk).read()).resource?.mark, String(pk));
  }
});

test("a container of hash version 1 takes bulk writes", async () => {
  const container = await t.container({ partitionKey: "/pk" });
  const keys = ["a", 0, 2, -3, null, true, "é".repeat(60)];
  const response = await container.items.bulk(keys.map((pk) => create("x", pk)));
  assert.ok(response.every((one) => one.statusCode === 201), JSON.stringify(response));
});

test("executeBulkOperations writes thousands", async () => {
  const container = await t.container({ throughput: 20_000 });
  const count = 2_000;
  const operations = Array.from({ length: count }, (_, n) => create(`i${n}`, `p${n % 97}`, { n }));
  const results = await container.items.executeBulkOperations(operations);
  assert.equal(results.length, count);
  results.forEach((one, n) => {
    assert.equal(one.error, undefined, `operation ${n}: ${one.error?.message}`);
    assert.equal(one.response.statusCode, 201);
  });
  const items = await all(container.items.query("SELECT VALUE c.n FROM c"));
  assert.equal(new Set(items).size, count);
});

test("executeBulkOperations reports the operation that failed", async () => {
  const container = await t.container();
  await container.items.create({ id: "taken", pk: "p" });
  const [good, bad] = await container.items.executeBulkOperations([
    create("new", "p"),
    create("taken", "p"),
  ]);
  assert.equal(good.response.statusCode, 201);
  assert.equal(bad.error.code, 409);
});

test("hierarchical keys are hashed alike on both sides", async () => {
  const container = await t.container({
    throughput: 20_000,
    partitionKey: { paths: ["/t", "/u"], kind: "MultiHash", version: 2 },
  });
  const operations = Array.from({ length: 20 }, (_, n) => ({
    operationType: "Create",
    partitionKey: [`t${n % 4}`, n],
    resourceBody: { id: `i${n}`, t: `t${n % 4}`, u: n },
  }));
  const response = await container.items.bulk(operations);
  assert.ok(response.every((one) => one.statusCode === 201), JSON.stringify(response));
  for (let n = 0; n < 20; n++) {
    assert.equal((await container.item(`i${n}`, [`t${n % 4}`, n]).read()).statusCode, 200);
  }
});
