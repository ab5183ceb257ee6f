// Session tokens and consistency levels.

import assert from "node:assert/strict";

import { fails, serve, test } from "../lib/fixture.js";

const t = serve();

const lsn = (token) => Number(/^0:-1#(\d+)$/.exec(token)[1]);

test("a session client reads its own writes", async () => {
  const container = await t.container();
  const client = t.connect({ consistencyLevel: "Session" });
  const session = client.database(t.database.id).container(container.id);
  for (let v = 0; v < 10; v++) {
    await session.items.upsert({ id: "a", pk: "p", v });
    assert.equal((await session.item("a", "p").read()).resource.v, v);
  }
  const { resources } = await session.items.query("SELECT VALUE c.v FROM c").fetchAll();
  assert.deepEqual(resources, [9]);
});

test("the token moves forward with every write and never back", async () => {
  const container = await t.container();
  let last = 0;
  for (let n = 0; n < 5; n++) {
    const { headers } = await container.items.create({ id: `i${n}`, pk: "p" });
    const now = lsn(headers["x-ms-session-token"]);
    assert.ok(now > last, `${now} after ${last}`);
    last = now;
  }
  const { headers } = await container.item("i0", "p").read();
  assert.ok(lsn(headers["x-ms-session-token"]) >= last);
});

test("a token of the past is served", async () => {
  const container = await t.container();
  const { headers, item } = await container.items.create({ id: "a", pk: "p" });
  await container.items.create({ id: "b", pk: "p" });
  const sessionToken = headers["x-ms-session-token"];
  assert.equal((await item.read({ sessionToken })).statusCode, 200);
});

test("a token from the future is 404 with sub-status 1002", async () => {
  const container = await t.container();
  await container.items.create({ id: "a", pk: "p" });
  const answer = await t.raw("GET", `/dbs/${t.database.id}/colls/${container.id}/docs/a`, {
    headers: {
      "x-ms-documentdb-partitionkey": '["p"]',
      "x-ms-session-token": "0:-1#999999999999",
    },
  });
  assert.deepEqual([answer.status, answer.headers["x-ms-substatus"]], [404, "1002"]);
});

test("the SDK recovers from a token of the future by itself", async () => {
  const container = await t.container();
  const { item } = await container.items.create({ id: "a", pk: "p" });
  const { statusCode } = await item.read({ sessionToken: "0:-1#999999999999" });
  assert.equal(statusCode, 200);
});

test("a malformed token is 400, one of another range is ignored", async () => {
  const container = await t.container();
  await container.items.create({ id: "a", pk: "p" });
  const read = (token) =>
    t.raw("GET", `/dbs/${t.database.id}/colls/${container.id}/docs/a`, {
      headers: { "x-ms-documentdb-partitionkey": '["p"]', "x-ms-session-token": token },
    });
  assert.equal((await read("0:nonsense")).status, 400);
  assert.equal((await read("77:-1#999999999999")).status, 200);
});

test("consistency may be weakened by a request, not strengthened", async () => {
  const container = await t.container();
  const { item } = await container.items.create({ id: "a", pk: "p" });
  for (const consistencyLevel of ["Session", "ConsistentPrefix", "Eventual"]) {
    assert.equal((await item.read({ consistencyLevel })).statusCode, 200, consistencyLevel);
  }
  for (const consistencyLevel of ["Strong", "BoundedStaleness"]) {
    await fails(item.read({ consistencyLevel }), 400);
  }
});

test("each range has its own token", async () => {
  const container = await t.container({ throughput: 20_000 });
  const tokens = new Set();
  for (let n = 0; n < 20; n++) {
    const { headers } = await container.items.create({ id: "x", pk: `p${n}` });
    const range = headers["x-ms-documentdb-partitionkeyrangeid"];
    assert.ok(headers["x-ms-session-token"].startsWith(`${range}:-1#`));
    tokens.add(range);
  }
  assert.deepEqual([...tokens].sort(), ["0", "1"]);
});
