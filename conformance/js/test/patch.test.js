// Patch: the operations, their errors, the condition, and that a failing patch changes nothing.

import assert from "node:assert/strict";

import { fails, serve, test, user } from "../lib/fixture.js";

const t = serve();

async function patched(body, operations) {
  const container = await t.container();
  const { item } = await container.items.create({ id: "a", pk: "p", ...body });
  const { resource, statusCode } = await item.patch(operations);
  assert.equal(statusCode, 200);
  assert.deepEqual((await item.read()).resource, resource);
  const { id, pk, ...rest } = user(resource);
  return rest;
}

async function refused(body, operations, status = 400) {
  const container = await t.container();
  const { item, resource } = await container.items.create({ id: "a", pk: "p", ...body });
  const error = await fails(item.patch(operations), status);
  assert.deepEqual((await item.read()).resource, resource, "nothing changed");
  return error;
}

test("add sets a member, inserts into an array and appends to it", async () => {
  const result = await patched({ list: [1, 3], o: {}, old: 1 }, [
    { op: "add", path: "/new", value: { deep: true } },
    { op: "add", path: "/old", value: 2 },
    { op: "add", path: "/o/x", value: null },
    { op: "add", path: "/list/1", value: 2 },
    { op: "add", path: "/list/-", value: 4 },
    { op: "add", path: "/list/4", value: 5 },
  ]);
  assert.deepEqual(result, { list: [1, 2, 3, 4, 5], o: { x: null }, old: 2, new: { deep: true } });
});

test("set overwrites members and array elements", async () => {
  const result = await patched({ list: [1, 2, 3], a: 1 }, [
    { op: "set", path: "/a", value: 2 },
    { op: "set", path: "/b", value: 3 },
    { op: "set", path: "/list/1", value: "two" },
  ]);
  assert.deepEqual(result, { list: [1, "two", 3], a: 2, b: 3 });
});

test("replace needs its target", async () => {
  const result = await patched({ a: 1, list: [1, 2] }, [
    { op: "replace", path: "/a", value: "one" },
    { op: "replace", path: "/list/0", value: 9 },
  ]);
  assert.deepEqual(result, { a: "one", list: [9, 2] });
  await refused({ a: 1 }, [{ op: "replace", path: "/b", value: 1 }]);
});

test("remove takes members and closes gaps in arrays", async () => {
  const result = await patched({ a: 1, b: { c: 2, d: 3 }, list: [1, 2, 3] }, [
    { op: "remove", path: "/a" },
    { op: "remove", path: "/b/c" },
    { op: "remove", path: "/list/0" },
  ]);
  assert.deepEqual(result, { b: { d: 3 }, list: [2, 3] });
  await refused({ a: 1 }, [{ op: "remove", path: "/b" }]);
  await refused({ list: [1] }, [{ op: "remove", path: "/list/1" }]);
});

test("incr counts up and down, and starts at nothing", async () => {
  const result = await patched({ a: 1, b: 2.5 }, [
    { op: "incr", path: "/a", value: 4 },
    { op: "incr", path: "/b", value: -1 },
    { op: "incr", path: "/c", value: 7 },
  ]);
  assert.deepEqual(result, { a: 5, b: 1.5, c: 7 });
  await refused({ a: "text" }, [{ op: "incr", path: "/a", value: 1 }]);
  await refused({ a: 1 }, [{ op: "incr", path: "/a", value: "1" }]);
});

test("move takes a value elsewhere", async () => {
  const result = await patched({ a: { x: 1 }, b: 2 }, [
    { op: "move", from: "/a/x", path: "/c" },
    { op: "move", from: "/b", path: "/a" },
  ]);
  assert.deepEqual(result, { a: 2, c: 1 });
  await refused({ a: 1 }, [{ op: "move", from: "/none", path: "/b" }]);
  await refused({ a: { b: 1 } }, [{ op: "move", from: "/a", path: "/a/b" }]);
});

test("paths escape slash and tilde", async () => {
  const result = await patched({ "a/b": 1, "c~d": 2 }, [
    { op: "set", path: "/a~1b", value: 3 },
    { op: "incr", path: "/c~0d", value: 1 },
  ]);
  assert.deepEqual(result, { "a/b": 3, "c~d": 3 });
});

test("operations apply in order, all or none", async () => {
  const result = await patched({}, [
    { op: "add", path: "/a", value: {} },
    { op: "add", path: "/a/b", value: 1 },
    { op: "incr", path: "/a/b", value: 1 },
  ]);
  assert.deepEqual(result, { a: { b: 2 } });
  await refused({ v: 1 }, [
    { op: "set", path: "/v", value: 2 },
    { op: "remove", path: "/none" },
  ]);
});

test("a parent must exist, and an index may not leave a gap", async () => {
  await refused({}, [{ op: "add", path: "/a/b", value: 1 }]);
  await refused({ list: [1] }, [{ op: "add", path: "/list/3", value: 1 }]);
  await refused({ list: [1] }, [{ op: "set", path: "/list/x", value: 1 }]);
});

test("id, partition key and system properties are out of reach", async () => {
  for (const path of ["/id", "/pk", "/_etag", "/_ts", "/_rid", "/_self"]) {
    const error = await refused({}, [{ op: "set", path, value: "other" }]);
    assert.ok(error.message.length > 0, path);
  }
});

test("what is not an operation is refused", async () => {
  await refused({ a: 1 }, [{ op: "copy", from: "/a", path: "/b" }]);
  await refused({ a: 1 }, [{ op: "test", path: "/a", value: 1 }]);
  await refused({ a: 1 }, [{ op: "set", path: "a", value: 1 }]);
  await refused({ a: 1 }, [{ op: "set", path: "", value: 1 }]);
  await refused({ a: 1 }, []);
});

test("a condition decides whether the patch applies", async () => {
  const container = await t.container();
  const { item } = await container.items.create({ id: "a", pk: "p", v: 1 });
  const operations = [{ op: "incr", path: "/v", value: 1 }];
  const { resource } = await item.patch({ condition: "from c where c.v = 1", operations });
  assert.equal(resource.v, 2);
  await fails(item.patch({ condition: "from c where c.v = 1", operations }), 412, 1110);
  assert.equal((await item.read()).resource.v, 2);
  await fails(item.patch({ condition: "from c where c.v =", operations }), 400);
});

test("ten operations are allowed, eleven are not", async () => {
  const operations = (count) =>
    Array.from({ length: count }, (_, n) => ({ op: "set", path: `/p${n}`, value: n }));
  assert.equal(Object.keys(await patched({}, operations(10))).length, 10);
  await refused({}, operations(11));
});

test("patch of a missing item is 404", async () => {
  const container = await t.container();
  await fails(container.item("none", "p").patch([{ op: "set", path: "/a", value: 1 }]), 404);
});

test("a patch may not make an item larger than allowed", async () => {
  const half = "x".repeat(1_100_000);
  const container = await t.container();
  const { item } = await container.items.create({ id: "a", pk: "p", one: half });
  await fails(item.patch([{ op: "add", path: "/two", value: half }]), 413);
  assert.equal((await item.read()).resource.two, undefined);
});
