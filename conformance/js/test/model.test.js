// Random operations against a model: a map of what should be stored. After every operation the
// status must be the model's; in the end reads, queries and the change feed must agree with it.
//
// COSMOLABE_SEED repeats a run.

import assert from "node:assert/strict";

import { ChangeFeedStartFrom } from "@azure/cosmos";

import { all, pages, random, serve, sorted, test, user } from "../lib/fixture.js";

const t = serve();

const SEED = Number(process.env.COSMOLABE_SEED ?? Date.now() % 1_000_000);
const OPERATIONS = 1_500;
const PAGE_SIZES = [1, 3, 17, 100];

// One value of every kind and neighbours of each, in the order in which the service sorts them.
const VALUES = [
  undefined,
  null,
  false,
  true,
  -1e300, -2, -1.5, -0.5, 0, 1e-7, 0.5, 1, 2, 10, 9007199254740991, 1e300,
  "", " ", "0", "10", "2", "A", "a", "aa", "b", "z", "é", "\ud7ff", "\uffee", "😀",
]; // prettier-ignore

function chance(next) {
  const below = (count) => Math.floor(next() * count);
  return { below, pick: (list) => list[below(list.length)] };
}

function body(id, pk, value, n) {
  return value === undefined ? { id, pk, n } : { id, pk, n, value };
}

/** One random operation on the container and on the model; answers both statuses. */
async function operate(container, model, { below, pick }, n) {
  const [id, pk] = [`i${below(40)}`, pick(["p", "q", 1, null])];
  const key = JSON.stringify([pk, id]);
  const known = model.get(key);
  const item = container.item(id, pk);
  const next = body(id, pk, pick(VALUES), n);
  const attempt = (promise) => promise.then((r) => r.statusCode ?? r.code, (e) => e.code);
  const store = () => model.set(key, next);
  const kinds = {
    create: async () => {
      const status = await attempt(container.items.create({ ...next }));
      if (!known) store();
      return [status, known ? 409 : 201];
    },
    upsert: async () => {
      const status = await attempt(container.items.upsert({ ...next }));
      store();
      return [status, known ? 200 : 201];
    },
    replace: async () => {
      const status = await attempt(item.replace({ ...next }));
      if (known) store();
      return [status, known ? 200 : 404];
    },
    patch: async () => {
      const operations = [{ op: "set", path: "/n", value: n }, { op: "add", path: "/patched", value: true }];
      const status = await attempt(item.patch(operations));
      if (known) model.set(key, { ...known, n, patched: true });
      return [status, known ? 200 : 404];
    },
    delete: async () => {
      const status = await attempt(item.delete());
      model.delete(key);
      return [status, known ? 204 : 404];
    },
    batch: async () => {
      const other = JSON.stringify([pk, "batched"]);
      const operations = [
        { operationType: "Upsert", resourceBody: body("batched", pk, n, n) },
        { operationType: "Delete", id },
      ];
      const status = await attempt(container.items.batch(operations, pk));
      if (known) {
        model.set(other, body("batched", pk, n, n));
        if (id !== "batched") model.delete(key);
      }
      return [status, known ? 200 : 207];
    },
    read: async () => {
      const { statusCode, resource } = await item.read();
      if (known) assert.deepEqual(user(resource), known);
      return [statusCode, known ? 200 : 404];
    },
  };
  const kind = pick(["create", "create", "upsert", "upsert", "replace", "patch", "delete", "batch", "read"]);
  return [kind, ...(await kinds[kind]())];
}

const canonical = (items) => sorted(items.map((item) => JSON.stringify(Object.entries(user(item)).sort())));

test("random operations end where the model ends", async (ctx) => {
  ctx.diagnostic(`COSMOLABE_SEED=${SEED}`);
  const dice = chance(random(SEED));
  const container = await t.container({ throughput: 20_000 });
  const model = new Map();
  for (let n = 0; n < OPERATIONS; n++) {
    const [kind, actual, expected] = await operate(container, model, dice, n);
    assert.equal(actual, expected, `operation ${n}, ${kind} (COSMOLABE_SEED=${SEED})`);
  }
  const expected = canonical([...model.values()]);
  assert.deepEqual(canonical(await all(container.items.readAll())), expected);
  for (const maxItemCount of PAGE_SIZES) {
    const found = (await pages(container.items, "SELECT * FROM c", { maxItemCount })).flat();
    assert.deepEqual(canonical(found), expected, `pages of ${maxItemCount}`);
  }
  const changes = [];
  const changeFeedStartFrom = ChangeFeedStartFrom.Beginning();
  const feed = container.items.getChangeFeedIterator({ changeFeedStartFrom, maxItemCount: 9 });
  for (let page = await feed.readNext(); page.statusCode === 200; page = await feed.readNext()) {
    changes.push(...page.result);
  }
  assert.deepEqual(canonical(changes), expected, "change feed");
});

test("queries over values of every kind agree with a filter of the model", async (ctx) => {
  ctx.diagnostic(`COSMOLABE_SEED=${SEED}`);
  const { below, pick } = chance(random(SEED));
  const one = await t.container();
  const many = await t.container({ throughput: 30_000 });
  const rows = Array.from({ length: 120 }, (_, n) => {
    const rank = below(VALUES.length);
    return { n, rank, body: { ...body(`i${n}`, `p${below(12)}`, VALUES[rank], n), flag: below(2) === 1 } };
  });
  for (const container of [one, many]) {
    await container.items.executeBulkOperations(
      rows.map((row) => ({
        operationType: "Create",
        partitionKey: row.body.pk,
        resourceBody: { ...row.body },
      })),
    );
  }

  const compare = { "=": (x) => x === 0, "<": (x) => x < 0, "<=": (x) => x <= 0, ">": (x) => x > 0, ">=": (x) => x >= 0 };
  const comparable = (value, with_) =>
    value !== undefined && (value === null || with_ === null ? value === with_ : typeof value === typeof with_);
  const ask = async (query, value, expected) => {
    const spec = { query, parameters: [{ name: "@v", value }] };
    for (const container of [one, many]) {
      const maxItemCount = pick(PAGE_SIZES);
      const found = (await pages(container.items, spec, { maxItemCount })).flat();
      assert.deepEqual(found.sort((x, y) => x - y), expected, `${query} with ${JSON.stringify(value)}`);
    }
  };
  for (let round = 0; round < 40; round++) {
    const value = pick(VALUES.slice(1));
    const at = VALUES.indexOf(value);
    const operator = pick(Object.keys(compare));
    const holds = (row) => comparable(VALUES[row.rank], value) && compare[operator](Math.sign(row.rank - at));
    const and = below(2) === 1;
    const expected = rows.filter((row) => holds(row) && (!and || row.body.flag)).map((row) => row.n);
    await ask(`SELECT VALUE c.n FROM c WHERE c["value"] ${operator} @v${and ? " AND c.flag" : ""}`, value, expected);
  }

  for (const direction of ["ASC", "DESC"]) {
    for (const container of [one, many]) {
      for (const maxItemCount of PAGE_SIZES) {
        const query = `SELECT c.n, c["value"] FROM c ORDER BY c["value"] ${direction}`;
        const found = (await pages(container.items, query, { maxItemCount })).flat();
        const ranks = found.map((row) => VALUES.findIndex((value) => value === row.value));
        const inOrder = rows.map((row) => row.rank).sort((x, y) => (direction === "ASC" ? x - y : y - x));
        assert.deepEqual(ranks, inOrder, `${direction}, pages of ${maxItemCount}`);
        assert.equal(new Set(found.map((row) => row.n)).size, rows.length);
      }
    }
  }
});
