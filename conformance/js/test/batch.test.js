// Transactional batches: order, atomicity, statuses of the guilty and the innocent, limits.

import assert from "node:assert/strict";

import { all, fails, ids, serve, sorted, test, user } from "../lib/fixture.js";

const t = serve();

const create = (id, more = {}) => ({
  operationType: "Create",
  resourceBody: { id, pk: "p", ...more },
});

function statuses(response) {
  return response.result.map((one) => one.statusCode);
}

test("all six operations run in order and see each other", async () => {
  const container = await t.container();
  const { resource: before } = await container.items.create({ id: "old", pk: "p", v: 1 });
  await container.items.create({ id: "doomed", pk: "p" });
  const response = await container.items.batch(
    [
      create("new", { v: 1 }),
      { operationType: "Upsert", resourceBody: { id: "up", pk: "p", v: 1 } },
      { operationType: "Upsert", resourceBody: { id: "up", pk: "p", v: 2 } },
      { operationType: "Replace", id: "old", ifMatch: before._etag, resourceBody: { id: "old", pk: "p", v: 2 } },
      { operationType: "Patch", id: "new", resourceBody: { operations: [{ op: "incr", path: "/v", value: 5 }] } },
      { operationType: "Read", id: "new" },
      { operationType: "Delete", id: "doomed" },
    ],
    "p",
  );
  assert.equal(response.code, 200);
  assert.deepEqual(statuses(response), [201, 201, 200, 200, 200, 200, 204]);
  const [created, , upserted, replaced, , read, deleted] = response.result;
  assert.equal(created.resourceBody.v, 1);
  assert.equal(created.eTag, created.resourceBody._etag);
  assert.equal(upserted.resourceBody.v, 2);
  assert.equal(replaced.resourceBody.v, 2);
  assert.equal(read.resourceBody.v, 6);
  assert.equal(deleted.resourceBody, undefined);
  assert.ok(response.result.every((one) => typeof one.requestCharge === "number"));
  assert.deepEqual(sorted(ids(await all(container.items.readAll()))), ["new", "old", "up"]);
});

test("one failure undoes everything: 207, its own status, and 424 for the rest", async () => {
  const container = await t.container();
  await container.items.create({ id: "taken", pk: "p", v: 1 });
  const response = await container.items.batch(
    [
      create("first"),
      { operationType: "Replace", id: "taken", resourceBody: { id: "taken", pk: "p", v: 2 } },
      create("taken"),
      create("last"),
    ],
    "p",
  );
  assert.equal(response.code, 207);
  assert.deepEqual(statuses(response), [424, 424, 409, 424]);
  const items = await all(container.items.readAll());
  assert.deepEqual(items.map(user), [{ id: "taken", pk: "p", v: 1 }]);
});

test("each kind of failure keeps its status", async () => {
  const container = await t.container();
  await container.items.create({ id: "a", pk: "p", v: 1 });
  const failing = [
    [{ operationType: "Read", id: "none" }, 404],
    [{ operationType: "Delete", id: "none" }, 404],
    [{ operationType: "Replace", id: "none", resourceBody: { id: "none", pk: "p" } }, 404],
    [{ operationType: "Replace", id: "a", ifMatch: '"stale"', resourceBody: { id: "a", pk: "p" } }, 412],
    [{ operationType: "Patch", id: "a", resourceBody: { operations: [{ op: "remove", path: "/none" }] } }, 400],
    [
      {
        operationType: "Patch",
        id: "a",
        resourceBody: { condition: "from c where c.v = 2", operations: [{ op: "set", path: "/v", value: 3 }] },
      },
      412,
    ],
    [{ operationType: "Create", resourceBody: { id: "b", pk: "other" } }, 400],
  ];
  for (const [operation, status] of failing) {
    const response = await container.items.batch([create("innocent"), operation], "p");
    assert.equal(response.code, 207, JSON.stringify(operation));
    assert.deepEqual(statuses(response), [424, status], JSON.stringify(operation));
  }
  assert.deepEqual(ids(await all(container.items.readAll())), ["a"]);
});

test("a batch of one hundred operations runs, one of one hundred and one is refused", async () => {
  const container = await t.container();
  const operations = Array.from({ length: 100 }, (_, n) => create(`i${n}`));
  const response = await container.items.batch(operations, "p");
  assert.equal(response.code, 200);
  assert.equal(response.result.length, 100);
  const path = `/dbs/${t.database.id}/colls/${container.id}/docs`;
  const refused = await t.raw("POST", path, {
    body: Array.from({ length: 101 }, (_, n) => create(`j${n}`)),
    headers: {
      "x-ms-documentdb-partitionkey": '["p"]',
      "x-ms-cosmos-is-batch-request": "true",
      "x-ms-cosmos-batch-atomic": "true",
    },
  });
  assert.equal(refused.status, 400);
  assert.equal((await all(container.items.readAll())).length, 100);
});

test("an empty or malformed batch is a plain 400", async () => {
  const container = await t.container();
  await fails(container.items.batch([], "p"), 400);
  const path = `/dbs/${t.database.id}/colls/${container.id}/docs`;
  const headers = {
    "x-ms-documentdb-partitionkey": '["p"]',
    "x-ms-cosmos-is-batch-request": "true",
    "x-ms-cosmos-batch-atomic": "true",
  };
  for (const body of ["{", "{}", '[{"operationType":"Dance","id":"a"}]', '[{"operationType":"Read"}]']) {
    assert.equal((await t.raw("POST", path, { body, headers })).status, 400, body);
  }
});

test("items of one batch share a timestamp but not an etag", async () => {
  const container = await t.container();
  const { result } = await container.items.batch([create("a"), create("b"), create("c")], "p");
  const bodies = result.map((one) => one.resourceBody);
  assert.equal(new Set(bodies.map((body) => body._ts)).size, 1);
  assert.equal(new Set(bodies.map((body) => body._etag)).size, 3);
});

test("a batch can be asked for no bodies", async () => {
  const container = await t.container();
  const response = await container.items.batch([create("a"), create("b")], "p", {
    contentResponseOnWriteEnabled: false,
  });
  assert.deepEqual(statuses(response), [201, 201]);
  assert.ok(response.result.every((one) => one.resourceBody === undefined && one.eTag));
});

test("a batch works under a null key, a missing key and a hierarchical key", async () => {
  const container = await t.container();
  const nulls = [{ operationType: "Create", resourceBody: { id: "n", pk: null } }];
  assert.equal((await container.items.batch(nulls, null)).code, 200);
  const missing = [{ operationType: "Create", resourceBody: { id: "m" } }];
  assert.equal((await container.items.batch(missing, undefined)).code, 200);
  const deep = await t.container({
    partitionKey: { paths: ["/t", "/u"], kind: "MultiHash", version: 2 },
  });
  const full = [{ operationType: "Create", resourceBody: { id: "h", t: "t1", u: "u1" } }];
  assert.equal((await deep.items.batch(full, ["t1", "u1"])).code, 200);
  assert.equal((await deep.item("h", ["t1", "u1"]).read()).statusCode, 200);
});

test("a batch above two megabytes is refused", async () => {
  const container = await t.container();
  const big = "x".repeat(1_100_000);
  await fails(container.items.batch([create("a", { big }), create("b", { big })], "p"), 413);
  assert.deepEqual(await all(container.items.readAll()), []);
});
