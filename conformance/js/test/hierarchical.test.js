// Hierarchical partition keys: full keys for points, prefixes for queries, holes for missing levels.

import assert from "node:assert/strict";

import { PartitionKeyBuilder } from "@azure/cosmos";

import { all, fails, ids, serve, sorted, test } from "../lib/fixture.js";

const t = serve();

const KEY = { paths: ["/tenant", "/user", "/session"], kind: "MultiHash", version: 2 };

async function filled(definition = {}) {
  const container = await t.container({ partitionKey: KEY, ...definition });
  for (const tenant of ["t1", "t2"]) {
    for (const user of ["u1", "u2"]) {
      for (const session of [1, 2]) {
        const id = `${tenant}-${user}-${session}`;
        await container.items.create({ id, tenant, user, session, v: session });
      }
    }
  }
  return container;
}

test("point operations take the whole key", async () => {
  const container = await filled();
  const item = container.item("t1-u1-1", ["t1", "u1", 1]);
  assert.equal((await item.read()).resource.v, 1);
  const replaced = { id: "t1-u1-1", tenant: "t1", user: "u1", session: 1, v: 9 };
  assert.equal((await item.replace(replaced)).resource.v, 9);
  assert.equal((await item.patch([{ op: "incr", path: "/v", value: 1 }])).resource.v, 10);
  assert.equal((await item.delete()).statusCode, 204);
  assert.equal((await container.item("t1-u1-2", ["t1", "u1", 1]).read()).statusCode, 404);
});

test("part of a key is not enough for a point read", async () => {
  const container = await filled();
  const { status } = await t.raw(
    "GET",
    `/dbs/${t.database.id}/colls/${container.id}/docs/t1-u1-1`,
    { headers: { "x-ms-documentdb-partitionkey": '["t1","u1"]' } },
  );
  assert.equal(status, 400);
});

test("no level of the key may be patched or replaced", async () => {
  const container = await filled();
  const item = container.item("t1-u1-1", ["t1", "u1", 1]);
  await fails(item.patch([{ op: "set", path: "/user", value: "u9" }]), 400);
  const moved = { id: "t1-u1-1", tenant: "t1", user: "u1", session: 2 };
  await fails(item.replace(moved), 400, 1001);
});

test("queries by prefix find what is below it", async () => {
  const container = await filled({ throughput: 20_000 });
  const find = async (partitionKey) =>
    sorted(ids(await all(container.items.query("SELECT * FROM c", { partitionKey }))));
  assert.deepEqual(await find(["t1"]), ["t1-u1-1", "t1-u1-2", "t1-u2-1", "t1-u2-2"]);
  assert.deepEqual(await find(["t1", "u2"]), ["t1-u2-1", "t1-u2-2"]);
  assert.deepEqual(await find(["t1", "u2", 2]), ["t1-u2-2"]);
  assert.deepEqual(await find(["t3"]), []);
});

test("filters on any level find across partitions", async () => {
  const container = await filled({ throughput: 20_000 });
  const find = async (filter) =>
    sorted(ids(await all(container.items.query(`SELECT * FROM c WHERE ${filter}`))));
  assert.deepEqual(await find("c.tenant = 't2' AND c.user = 'u1'"), ["t2-u1-1", "t2-u1-2"]);
  assert.equal((await find("c.session = 2")).length, 4);
});

test("levels may be missing, null, numbers or booleans", async () => {
  const container = await t.container({ partitionKey: KEY });
  await container.items.create({ id: "a", tenant: "t", session: null, mark: "hole" });
  await container.items.create({ id: "a", tenant: "t", user: null, session: null, mark: "null" });
  await container.items.create({ id: "a", tenant: 1, user: true, session: 1.5, mark: "mixed" });
  const hole = new PartitionKeyBuilder().addValue("t").addNoneValue().addNullValue().build();
  assert.equal((await container.item("a", hole).read()).resource.mark, "hole");
  assert.equal((await container.item("a", ["t", null, null]).read()).resource.mark, "null");
  assert.equal((await container.item("a", [1, true, 1.5]).read()).resource.mark, "mixed");
});

test("ids are unique within the whole key", async () => {
  const container = await t.container({ partitionKey: KEY });
  await container.items.create({ id: "a", tenant: "t", user: "u", session: 1 });
  await container.items.create({ id: "a", tenant: "t", user: "u", session: 2 });
  await fails(container.items.create({ id: "a", tenant: "t", user: "u", session: 2 }), 409);
});

test("delete by partition key takes the full key", async () => {
  const container = await filled();
  await container.deleteAllItemsForPartitionKey(["t1", "u1", 1]);
  assert.equal((await container.item("t1-u1-1", ["t1", "u1", 1]).read()).statusCode, 404);
  assert.equal((await container.item("t1-u1-2", ["t1", "u1", 2]).read()).statusCode, 200);
});

test("delete by partition key takes a prefix", async () => {
  const container = await filled();
  await container.deleteAllItemsForPartitionKey(["t1"]);
  const left = sorted(ids(await all(container.items.readAll())));
  assert.deepEqual(left, ["t2-u1-1", "t2-u1-2", "t2-u2-1", "t2-u2-2"]);
});

test("a key may end with the id", async () => {
  const container = await t.container({
    partitionKey: { paths: ["/tenant", "/id"], kind: "MultiHash", version: 2 },
  });
  await container.items.create({ id: "a", tenant: "t" });
  assert.equal((await container.item("a", ["t", "a"]).read()).statusCode, 200);
  const found = await all(container.items.query("SELECT * FROM c", { partitionKey: ["t"] }));
  assert.deepEqual(ids(found), ["a"]);
});
