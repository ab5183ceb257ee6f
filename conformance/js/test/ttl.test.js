// Time to live: expired items are absent at once, everywhere, and make room for new ones.

import assert from "node:assert/strict";

import { all, fails, ids, serve, sorted, test, until } from "../lib/fixture.js";

const t = serve();

async function gone(container, id, pk = "p") {
  await until(`${id} to expire`, async () => {
    const { statusCode } = await container.item(id, pk).read();
    return statusCode === 404;
  });
}

test("the container's default applies to items without their own", async () => {
  const container = await t.container({ defaultTtl: 1 });
  await container.items.create({ id: "default", pk: "p" });
  await container.items.create({ id: "longer", pk: "p", ttl: 1000 });
  await container.items.create({ id: "never", pk: "p", ttl: -1 });
  await gone(container, "default");
  assert.deepEqual(sorted(ids(await all(container.items.readAll()))), ["longer", "never"]);
});

test("an item's ttl needs a default of -1 or more", async () => {
  const on = await t.container({ defaultTtl: -1 });
  const off = await t.container();
  for (const container of [on, off]) {
    await container.items.create({ id: "short", pk: "p", ttl: 1 });
    await container.items.create({ id: "plain", pk: "p" });
  }
  await gone(on, "short");
  assert.equal((await on.item("plain", "p").read()).statusCode, 200);
  assert.equal((await off.item("short", "p").read()).statusCode, 200);
});

test("an expired item is absent from queries, feeds, writes and counts", async () => {
  const container = await t.container({ defaultTtl: -1 });
  await container.items.create({ id: "a", pk: "p", ttl: 1, v: 1 });
  await container.items.create({ id: "b", pk: "p", v: 1 });
  await gone(container, "a");
  assert.deepEqual(ids(await all(container.items.query("SELECT * FROM c WHERE c.v = 1"))), ["b"]);
  assert.deepEqual(await all(container.items.query("SELECT VALUE COUNT(1) FROM c")), [1]);
  await fails(container.item("a", "p").replace({ id: "a", pk: "p" }), 404);
  await fails(container.item("a", "p").patch([{ op: "set", path: "/v", value: 2 }]), 404);
  await fails(container.item("a", "p").delete(), 404);
});

test("a new item may take an expired one's place", async () => {
  const container = await t.container({ defaultTtl: -1 });
  await container.items.create({ id: "a", pk: "p", ttl: 1, v: 1 });
  await gone(container, "a");
  assert.equal((await container.items.create({ id: "a", pk: "p", v: 2 })).statusCode, 201);
  assert.equal((await container.item("a", "p").read()).resource.v, 2);
  await container.items.create({ id: "b", pk: "p", ttl: 1 });
  await gone(container, "b");
  assert.equal((await container.items.upsert({ id: "b", pk: "p" })).statusCode, 201);
});

test("every write starts the clock again", async () => {
  const container = await t.container({ defaultTtl: 3 });
  const { item, resource } = await container.items.create({ id: "a", pk: "p", v: 0 });
  // Rewritten well within its three seconds, the item outlives its first expiry.
  await until("the first expiry to pass", async () => {
    await item.patch([{ op: "incr", path: "/v", value: 1 }]);
    return Date.now() / 1000 > resource._ts + 5;
  }, { everyMs: 400 });
  assert.equal((await item.read()).statusCode, 200);
});

test("a ttl that is no positive whole number is refused", async () => {
  const container = await t.container({ defaultTtl: -1 });
  for (const ttl of [0, -2, 1.5, "10", null, true, 2147483648]) {
    await fails(container.items.create({ id: "a", pk: "p", ttl }), 400);
  }
  assert.equal((await container.items.create({ id: "a", pk: "p", ttl: 2147483647 })).statusCode, 201);
});

test("switching ttl on lets old items expire", async () => {
  const container = await t.container();
  await container.items.create({ id: "a", pk: "p" });
  const { resource } = await container.read();
  await container.replace({ ...resource, defaultTtl: 1 });
  await gone(container, "a");
  const { resource: current } = await container.read();
  delete current.defaultTtl;
  await container.replace(current);
  assert.equal((await container.item("a", "p").read()).statusCode, 404, "expired stays expired");
});
