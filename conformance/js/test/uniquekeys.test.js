// Unique keys: their scope is the logical partition, and a missing value counts as null.

import assert from "node:assert/strict";

import { fails, serve, test, until } from "../lib/fixture.js";

const t = serve();

const unique = (...paths) => ({ uniqueKeyPolicy: { uniqueKeys: [{ paths }] } });

test("a second item with the value is a conflict within the partition key only", async () => {
  const container = await t.container(unique("/email"));
  await container.items.create({ id: "a", pk: "p", email: "x@y" });
  await fails(container.items.create({ id: "b", pk: "p", email: "x@y" }), 409);
  await container.items.create({ id: "b", pk: "q", email: "x@y" });
  await container.items.create({ id: "c", pk: "p", email: "X@Y" });
});

test("values compare with their type", async () => {
  const container = await t.container(unique("/u"));
  for (const u of [1, "1", true, "true", "null", null]) {
    await container.items.create({ id: `i-${typeof u}-${u}`, pk: "p", u });
  }
  await fails(container.items.create({ id: "again", pk: "p", u: 1.0 }), 409);
});

test("a missing value counts as null, once per partition key", async () => {
  const container = await t.container(unique("/u"));
  await container.items.create({ id: "a", pk: "p" });
  await fails(container.items.create({ id: "b", pk: "p" }), 409);
  await fails(container.items.create({ id: "c", pk: "p", u: null }), 409);
  await container.items.create({ id: "a", pk: "q" });
});

test("several paths are unique together", async () => {
  const container = await t.container(unique("/name/first", "/name/last"));
  const name = (first, last) => ({ name: { first, last } });
  await container.items.create({ id: "a", pk: "p", ...name("Ada", "L") });
  await container.items.create({ id: "b", pk: "p", ...name("Ada", "M") });
  await container.items.create({ id: "c", pk: "p", ...name("Bob", "L") });
  await container.items.create({ id: "d", pk: "p", name: { first: "Ada" } });
  await fails(container.items.create({ id: "e", pk: "p", ...name("Ada", "L") }), 409);
  await fails(container.items.create({ id: "f", pk: "p", name: { first: "Ada" } }), 409);
});

test("every way of writing is checked, and a refusal changes nothing", async () => {
  const container = await t.container(unique("/u"));
  await container.items.create({ id: "a", pk: "p", u: 1 });
  const { item } = await container.items.create({ id: "b", pk: "p", u: 2 });
  await fails(item.replace({ id: "b", pk: "p", u: 1 }), 409);
  await fails(item.patch([{ op: "set", path: "/u", value: 1 }]), 409);
  await fails(container.items.upsert({ id: "b", pk: "p", u: 1 }), 409);
  await fails(container.items.upsert({ id: "new", pk: "p", u: 1 }), 409);
  const batch = await container.items.batch(
    [{ operationType: "Create", resourceBody: { id: "c", pk: "p", u: 1 } }],
    "p",
  );
  assert.deepEqual([batch.code, batch.result[0].statusCode], [207, 409]);
  assert.equal((await item.read()).resource.u, 2);
});

test("a value is free again after a change, a delete or an expiry", async () => {
  const container = await t.container({ ...unique("/u"), defaultTtl: -1 });
  const { item } = await container.items.create({ id: "a", pk: "p", u: 1 });
  await item.replace({ id: "a", pk: "p", u: 2 });
  const { item: second } = await container.items.create({ id: "b", pk: "p", u: 1 });
  await second.delete();
  await container.items.create({ id: "c", pk: "p", u: 1, ttl: 1 });
  await until("the value to be free", async () => {
    const attempt = await container.items.create({ id: "d", pk: "p", u: 1 }).catch((e) => e);
    assert.ok([201, 409].includes(attempt.statusCode ?? attempt.code), `${attempt.message}`);
    return attempt.statusCode === 201;
  });
});

test("writing an item back over itself is no violation", async () => {
  const container = await t.container(unique("/u"));
  const { item } = await container.items.create({ id: "a", pk: "p", u: 1 });
  assert.equal((await item.replace({ id: "a", pk: "p", u: 1, v: 2 })).statusCode, 200);
  assert.equal((await container.items.upsert({ id: "a", pk: "p", u: 1 })).statusCode, 200);
});
