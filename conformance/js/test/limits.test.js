// Limits, each below, at and above: item size, ids, depth, key length.

import assert from "node:assert/strict";

import { fails, serve, test } from "../lib/fixture.js";

const t = serve();

const ITEM_BYTES_MAX = 2 * 1024 * 1024;

/** An item whose JSON text has this many bytes. */
function sized(id, bytes) {
  const empty = JSON.stringify({ id, pk: "p", text: "" }).length;
  return { id, pk: "p", text: "x".repeat(bytes - empty) };
}

test("an item may have two megabytes with its system properties", async () => {
  const container = await t.container();
  const small = sized("s", 200);
  await container.items.create(structuredClone(small));
  const { text } = await t.raw("GET", `/dbs/${t.database.id}/colls/${container.id}/docs/s`, {
    headers: { "x-ms-documentdb-partitionkey": '["p"]' },
  });
  const system = Buffer.byteLength(text) - JSON.stringify(small).length;
  assert.ok(system > 0 && system < 1000, `${system} bytes of system properties`);
  const largest = sized("a", ITEM_BYTES_MAX - system);
  assert.equal((await container.items.create(largest)).statusCode, 201);
  const { resource } = await container.item("a", "p").read();
  assert.equal(resource.text.length, largest.text.length);
});

test("an item of more than two megabytes is 413, however it is written", async () => {
  const container = await t.container();
  await fails(container.items.create(sized("a", ITEM_BYTES_MAX + 1)), 413);
  await fails(container.items.upsert(sized("a", ITEM_BYTES_MAX + 1)), 413);
  await container.items.create({ id: "a", pk: "p" });
  await fails(container.item("a", "p").replace(sized("a", ITEM_BYTES_MAX + 1)), 413);
  await fails(container.items.create(sized("b", 5 * 1024 * 1024)), 413);
});

test("the size counts bytes, not characters", async () => {
  const container = await t.container();
  const text = "é".repeat(1_100_000);
  await fails(container.items.create({ id: "a", pk: "p", text }), 413);
  const fits = { id: "a", pk: "p", text: "é".repeat(1_000_000) };
  assert.equal((await container.items.create(fits)).statusCode, 201);
});

test("an id has at most 1023 bytes", async () => {
  const container = await t.container();
  for (const id of ["x".repeat(1022), "x".repeat(1023), "é".repeat(511)]) {
    assert.equal((await container.items.create({ id, pk: "p" })).statusCode, 201);
    assert.equal((await container.item(id, "p").read()).resource.id, id);
  }
  await fails(container.items.create({ id: "x".repeat(1024), pk: "p" }), 400);
  await fails(container.items.create({ id: "é".repeat(512), pk: "p" }), 400);
});

test("a partition key has at most 2048 bytes", async () => {
  const container = await t.container();
  for (const length of [2047, 2048]) {
    const pk = "k".repeat(length);
    await container.items.create({ id: "a", pk });
    assert.equal((await container.item("a", pk).read()).statusCode, 200);
  }
  await fails(container.items.create({ id: "a", pk: "k".repeat(2049) }), 400);
});

test("long keys that share their beginning stay apart", async () => {
  for (const partitionKey of ["/pk", { paths: ["/pk"], kind: "Hash", version: 2 }]) {
    const container = await t.container({ partitionKey });
    const common = "k".repeat(150);
    await container.items.create({ id: "a", pk: `${common}1`, mark: 1 });
    await container.items.create({ id: "a", pk: `${common}2`, mark: 2 });
    assert.equal((await container.item("a", `${common}1`).read()).resource.mark, 1);
    assert.equal((await container.item("a", `${common}2`).read()).resource.mark, 2);
  }
});

test("items nest 128 levels deep, not deeper", async () => {
  const container = await t.container();
  const path = `/dbs/${t.database.id}/colls/${container.id}/docs`;
  const headers = { "x-ms-documentdb-partitionkey": '["p"]' };
  const nested = (id, levels) =>
    `{"id":"${id}","pk":"p","a":${"[".repeat(levels - 1)}${"]".repeat(levels - 1)}}`;
  const create = async (id, levels) =>
    (await t.raw("POST", path, { body: nested(id, levels), headers })).status;
  assert.equal(await create("below", 127), 201);
  assert.equal(await create("at", 128), 201);
  assert.equal(await create("above", 129), 400);
  assert.equal(await create("far", 50_000), 400);
});

test("items may have many properties and long names", async () => {
  const container = await t.container();
  const body = { id: "a", pk: "p" };
  for (let n = 0; n < 5_000; n++) body[`property${n}`] = n;
  body["n".repeat(70_000)] = "a long name";
  await container.items.create(structuredClone(body));
  const { resource } = await container.item("a", "p").read();
  assert.equal(Object.keys(resource).length, Object.keys(body).length + 5);
  const found = await container.items.query("SELECT VALUE c.id FROM c WHERE c.property4999 = 4999").fetchAll();
  assert.deepEqual(found.resources, ["a"]);
});

test("a unique key policy has ten keys of sixteen paths", async () => {
  const policy = (keys, paths) => ({
    uniqueKeyPolicy: {
      uniqueKeys: Array.from({ length: keys }, (_, k) => ({
        paths: Array.from({ length: paths }, (_, p) => `/k${k}/p${p}`),
      })),
    },
  });
  assert.ok(await t.container(policy(10, 16)));
  await fails(t.container(policy(11, 1)), 400);
  await fails(t.container(policy(1, 17)), 400);
});

test("headers may have 32 kilobytes", async () => {
  const container = await t.container();
  const parts = Array.from({ length: 3_500 }, (_, n) => `${n + 100}:-1#1`);
  const sessionToken = parts.join(",").slice(0, 32_000).replace(/,[^,]*$/, "");
  assert.ok(sessionToken.length > 31_000);
  await container.items.create({ id: "a", pk: "p" });
  assert.equal((await container.item("a", "p").read({ sessionToken })).statusCode, 200);
});
