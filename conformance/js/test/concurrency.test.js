// Many clients at once: one winner where there can be only one, and never half a batch.

import assert from "node:assert/strict";

import { all, serve, test } from "../lib/fixture.js";

const t = serve();

const together = (count, work) => Promise.all(Array.from({ length: count }, (_, n) => work(n)));

const outcome = (promise) =>
  promise.then(
    ({ statusCode, code }) => statusCode ?? code,
    (error) => error.code ?? error.cause?.code,
  );

test("of many creates of one id, one succeeds", async () => {
  const container = await t.container();
  const outcomes = await together(40, (n) => outcome(container.items.create({ id: "a", pk: "p", n })));
  assert.equal(outcomes.filter((code) => code === 201).length, 1);
  assert.equal(outcomes.filter((code) => code === 409).length, 39);
});

test("of many items with one unique value, one succeeds", async () => {
  const container = await t.container({ uniqueKeyPolicy: { uniqueKeys: [{ paths: ["/u"] }] } });
  const outcomes = await together(40, (n) =>
    outcome(container.items.create({ id: `i${n}`, pk: "p", u: "same" })),
  );
  assert.equal(outcomes.filter((code) => code === 201).length, 1);
  assert.equal((await all(container.items.readAll())).length, 1);
});

test("of many deletes of one item, one succeeds", async () => {
  const container = await t.container();
  const { item } = await container.items.create({ id: "a", pk: "p" });
  const outcomes = await together(20, () => outcome(item.delete()));
  assert.equal(outcomes.filter((code) => code === 204).length, 1);
  assert.equal(outcomes.filter((code) => code === 404).length, 19);
});

test("of many containers of one name, one is created", async () => {
  const outcomes = await together(10, () =>
    outcome(t.database.containers.create({ id: "same", partitionKey: "/pk" })),
  );
  assert.equal(outcomes.filter((code) => code === 201).length, 1);
});

test("read, then replace if unchanged, loses no increment", async () => {
  const container = await t.container();
  const { item } = await container.items.create({ id: "a", pk: "p", n: 0 });
  const increment = async () => {
    for (;;) {
      const { resource } = await item.read();
      const accessCondition = { type: "IfMatch", condition: resource._etag };
      const code = await outcome(item.replace({ ...resource, n: resource.n + 1 }, { accessCondition }));
      if (code === 200) return;
      assert.equal(code, 412);
    }
  };
  await together(8, async () => {
    for (let n = 0; n < 5; n++) await increment();
  });
  assert.equal((await item.read()).resource.n, 40);
});

test("a reader never sees half a batch", async () => {
  const container = await t.container();
  const accounts = 4;
  for (let n = 0; n < accounts; n++) {
    await container.items.create({ id: `a${n}`, pk: "bank", balance: 100 });
  }
  const add = (id, value) => ({
    operationType: "Patch",
    id,
    resourceBody: { operations: [{ op: "incr", path: "/balance", value }] },
  });
  let transferring = true;
  const transfer = async (writer) => {
    for (let n = 0; n < 60; n++) {
      const [from, to] = [`a${(writer + n) % accounts}`, `a${(writer + n + 1) % accounts}`];
      const response = await container.items.batch([add(from, -7), add(to, 7)], "bank");
      assert.equal(response.code, 200);
    }
  };
  const watch = async () => {
    let looks = 0;
    while (transferring) {
      const rows = await all(
        container.items.query("SELECT VALUE c.balance FROM c", { partitionKey: "bank" }),
      );
      assert.equal(rows.reduce((sum, one) => sum + one, 0), 100 * accounts);
      looks += 1;
    }
    return looks;
  };
  const watching = together(2, watch);
  await together(3, transfer);
  transferring = false;
  for (const looks of await watching) assert.ok(looks > 0);
});
