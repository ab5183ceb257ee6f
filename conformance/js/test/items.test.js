// Items: create, read, replace, upsert, delete; what is kept of a body; keys of every type; ids.

import assert from "node:assert/strict";

import { all, fails, ids, serve, sorted, test, unique, user } from "../lib/fixture.js";

const t = serve();

test("create answers 201 with the item and its system properties", async () => {
  const container = await t.container();
  const { resource: parent } = await container.read();
  const body = { id: "a", pk: "p", name: "first" };
  const { resource, statusCode, headers, etag } = await container.items.create(body);
  assert.equal(statusCode, 201);
  assert.deepEqual(user(resource), { id: "a", pk: "p", name: "first" });
  assert.equal(Buffer.from(resource._rid.replaceAll("-", "/"), "base64").length, 16);
  assert.ok(resource._self.startsWith(parent._self), `${resource._self} is below ${parent._self}`);
  assert.equal(resource._self, `${parent._self}docs/${resource._rid}/`);
  assert.equal(resource._attachments, "attachments/");
  assert.equal(etag, resource._etag);
  assert.ok(Math.abs(resource._ts - Date.now() / 1000) < 120, "_ts is now, in seconds");
  assert.equal(headers["x-ms-alt-content-path"], `dbs/${t.database.id}/colls/${container.id}`);
  assert.equal(headers["x-ms-content-path"], parent._rid);
});

test("read answers what was written, with the headers clients rely on", async () => {
  const container = await t.container();
  const { resource: created, item } = await container.items.create({ id: "a", pk: "p" });
  const { resource, statusCode, headers, requestCharge, activityId } = await item.read();
  assert.equal(statusCode, 200);
  assert.deepEqual(resource, created);
  assert.equal(headers.etag, created._etag);
  assert.ok(requestCharge > 0);
  assert.match(activityId, /^[0-9a-f-]{36}$/);
  assert.match(headers["x-ms-session-token"], /^0:-1#\d+$/);
  assert.equal(headers["x-ms-documentdb-partitionkeyrangeid"], "0");
  assert.match(headers["content-type"], /^application\/json/);
});

test("a missing item resolves with 404 and no resource", async () => {
  const container = await t.container();
  const { statusCode, resource, headers } = await container.item("none", "p").read();
  assert.equal(statusCode, 404);
  assert.equal(resource, undefined);
  assert.ok(headers["x-ms-session-token"], "404 carries a session token");
  assert.ok([undefined, "0"].includes(headers["x-ms-substatus"]));
});

test("an id is unique within its partition key, not beyond", async () => {
  const container = await t.container();
  await container.items.create({ id: "a", pk: "p", v: 1 });
  await fails(container.items.create({ id: "a", pk: "p", v: 2 }), 409);
  await container.items.create({ id: "a", pk: "q", v: 3 });
  assert.equal((await container.item("a", "p").read()).resource.v, 1);
  assert.equal((await container.item("a", "q").read()).resource.v, 3);
});

test("the client generates a missing id, the server refuses to", async () => {
  const container = await t.container();
  const { resource } = await container.items.create({ pk: "p" });
  assert.match(resource.id, /^[0-9a-f-]{36}$/);
  await fails(container.items.create({ pk: "p" }, { disableAutomaticIdGeneration: true }), 400);
});

test("replace answers 200, a new etag and the same rid", async () => {
  const container = await t.container();
  const { resource: before, item } = await container.items.create({ id: "a", pk: "p", v: 1, w: 1 });
  const { resource, statusCode } = await item.replace({ id: "a", pk: "p", v: 2 });
  assert.equal(statusCode, 200);
  assert.deepEqual(user(resource), { id: "a", pk: "p", v: 2 });
  assert.equal(resource._rid, before._rid);
  assert.notEqual(resource._etag, before._etag);
  const { resource: same } = await item.replace({ id: "a", pk: "p", v: 2 });
  assert.notEqual(same._etag, resource._etag, "every write has its own etag");
});

test("replace of a missing item is 404", async () => {
  const container = await t.container();
  await fails(container.item("none", "p").replace({ id: "none", pk: "p" }), 404);
});

test("replace may change the id, to one that is free", async () => {
  const container = await t.container();
  const { resource: before, item } = await container.items.create({ id: "old", pk: "p" });
  await container.items.create({ id: "taken", pk: "p" });
  await fails(item.replace({ id: "taken", pk: "p" }), 409);
  const { resource } = await item.replace({ id: "new", pk: "p" });
  assert.equal(resource.id, "new");
  assert.equal(resource._rid, before._rid);
  assert.equal((await container.item("old", "p").read()).statusCode, 404);
  assert.equal((await container.item("new", "p").read()).statusCode, 200);
});

test("replace may not change the partition key", async () => {
  const container = await t.container();
  const { item } = await container.items.create({ id: "a", pk: "p" });
  await fails(item.replace({ id: "a", pk: "q" }), 400, 1001);
  assert.equal((await item.read()).resource.pk, "p");
});

test("upsert creates with 201, then replaces wholly with 200", async () => {
  const container = await t.container();
  const first = await container.items.upsert({ id: "a", pk: "p", v: 1, kept: true });
  assert.equal(first.statusCode, 201);
  const second = await container.items.upsert({ id: "a", pk: "p", v: 2 });
  assert.equal(second.statusCode, 200);
  assert.deepEqual(user(second.resource), { id: "a", pk: "p", v: 2 });
  assert.equal(second.resource._rid, first.resource._rid);
});

test("delete answers 204 and then 404", async () => {
  const container = await t.container();
  const { item } = await container.items.create({ id: "a", pk: "p" });
  const { statusCode, resource } = await item.delete();
  assert.equal(statusCode, 204);
  assert.ok(!resource, "no body");
  await fails(item.delete(), 404);
  assert.equal((await item.read()).statusCode, 404);
  assert.equal((await container.items.create({ id: "a", pk: "p" })).statusCode, 201);
});

test("values of every JSON type survive, in order", async () => {
  const container = await t.container();
  const body = {
    id: "a",
    pk: "p",
    zeta: 1,
    alpha: [1, "two", null, true, { three: 3 }, []],
    nested: { b: { c: { d: "deep" } }, a: {} },
    text: 'quotes " backslash \\ newline \n tab \t null \u0000 é 😀 \u2028',
    numbers: [0, -1, 1.5, 1e21, 1e-7, 123456789012, -0.1, Number.MAX_SAFE_INTEGER],
    "": "an empty name",
    "a/b": "a slash",
    _own: "not a system property",
  };
  await container.items.create(structuredClone(body));
  const { resource } = await container.item("a", "p").read();
  assert.deepEqual(user(resource), body);
  assert.deepEqual(Object.keys(user(resource)), Object.keys(body));
});

test("numbers are doubles and print as such; the last of equal names wins", async () => {
  const container = await t.container();
  const path = `/dbs/${t.database.id}/colls/${container.id}/docs`;
  const body = '{"id":"a","pk":"p","n":[3.0,-0,1E2,12345678901234567890],"d":1,"d":2}';
  const headers = { "x-ms-documentdb-partitionkey": '["p"]' };
  assert.equal((await t.raw("POST", path, { body, headers })).status, 201);
  const { text } = await t.raw("GET", `${path}/a`, { headers });
  assert.ok(text.includes('"n":[3,0,100,12345678901234567000]'), text);
  assert.ok(text.includes('"d":2') && !text.includes('"d":1'), text);
});

test("system properties sent by a client are ignored", async () => {
  const container = await t.container();
  const { resource: before, item } = await container.items.create({ id: "a", pk: "p" });
  const stale = { ...before, _etag: '"stale"', _ts: 1, _rid: "AAAA", _self: "x", _attachments: "y" };
  const { resource } = await item.replace(stale);
  assert.equal(resource._rid, before._rid);
  assert.equal(resource._self, before._self);
  assert.equal(resource._attachments, "attachments/");
  assert.ok(resource._ts >= before._ts);
  assert.ok(!["\"stale\"", before._etag].includes(resource._etag));
});

test("the key in the header must be the key in the body", async () => {
  const container = await t.container();
  const path = `/dbs/${t.database.id}/colls/${container.id}/docs`;
  const wrong = await t.raw("POST", path, {
    body: { id: "a", pk: "p" },
    headers: { "x-ms-documentdb-partitionkey": '["q"]' },
  });
  assert.deepEqual([wrong.status, wrong.headers["x-ms-substatus"]], [400, "1001"]);
  const without = await t.raw("POST", path, { body: { id: "a", pk: "p" } });
  assert.equal(without.status, 201, "an old client sends no key");
  assert.equal((await t.raw("GET", `${path}/a`)).status, 400, "a read needs the key");
});

test("keys of every type are partitions of their own", async () => {
  const container = await t.container();
  const keys = ["1", 1, 1.5, true, false, null, "", "é😀", "null", "undefined", -7, 1e300];
  for (const pk of keys) await container.items.create({ id: "same", pk, mark: String(pk) });
  for (const pk of keys) {
    const { resource } = await container.item("same", pk).read();
    assert.equal(resource?.mark, String(pk), `${typeof pk} ${pk}`);
    const query = "SELECT VALUE c.mark FROM c";
    assert.deepEqual(await all(container.items.query(query, { partitionKey: pk })), [String(pk)]);
  }
});

test("a missing key is not a null key", async () => {
  const container = await t.container();
  await container.items.create({ id: "a", mark: "missing" });
  await container.items.create({ id: "a", pk: null, mark: "null" });
  assert.equal((await container.item("a", undefined).read()).resource.mark, "missing");
  assert.equal((await container.item("a", null).read()).resource.mark, "null");
  const where = async (filter) =>
    all(container.items.query(`SELECT VALUE c.mark FROM c WHERE ${filter}`));
  assert.deepEqual(await where("c.pk = null"), ["null"]);
  assert.deepEqual(await where("NOT IS_DEFINED(c.pk)"), ["missing"]);
  await container.item("a", undefined).delete();
  assert.equal((await container.item("a", null).read()).statusCode, 200);
});

test("nested and quoted key paths are followed", async () => {
  const nested = await t.container({ partitionKey: { paths: ["/a/b"], kind: "Hash", version: 2 } });
  await nested.items.create({ id: "x", a: { b: "k" } });
  assert.equal((await nested.item("x", "k").read()).statusCode, 200);
  const quoted = await t.container({
    partitionKey: { paths: ['/"odd name"/"x-y"'], kind: "Hash", version: 2 },
  });
  await quoted.items.create({ id: "x", "odd name": { "x-y": "k" } });
  assert.equal((await quoted.item("x", "k").read()).statusCode, 200);
});

test("an object or array is no partition key", async () => {
  const container = await t.container();
  const path = `/dbs/${t.database.id}/colls/${container.id}/docs`;
  for (const pk of [{ a: 1 }, [1]]) {
    const { status } = await t.raw("POST", path, { body: { id: unique("i"), pk } });
    assert.equal(status, 400, JSON.stringify(pk));
  }
});

test("ids may hold almost any character", async () => {
  const container = await t.container();
  const odd = ["with space", "x y?%é", "a+b&c=d", "100%", "%41", "日本語😀", "quote\"'", "a.b:c;d,e", "~!@$^*()[]{}|<>`"];
  for (const id of odd) {
    const { statusCode } = await container.items.create({ id, pk: "p" });
    assert.equal(statusCode, 201, id);
  }
  for (const id of odd) {
    const item = container.item(id, "p");
    assert.equal((await item.read()).resource?.id, id);
    assert.equal((await item.replace({ id, pk: "p", v: 1 })).resource.v, 1);
  }
  assert.deepEqual(sorted(ids(await all(container.items.readAll()))), sorted(odd));
  for (const id of odd) assert.equal((await container.item(id, "p").delete()).statusCode, 204);
});

test("ids that cannot be addressed are refused", async () => {
  const container = await t.container();
  const path = `/dbs/${t.database.id}/colls/${container.id}/docs`;
  const headers = { "x-ms-documentdb-partitionkey": '["p"]' };
  for (const id of ["", "a/b", "a\\b", "a ", 7, null, true, ["a"], {}]) {
    const { status, json } = await t.raw("POST", path, { body: { id, pk: "p" }, headers });
    assert.equal(status, 400, JSON.stringify(id));
    assert.ok(json.message, "with a message");
  }
});

test("delete by partition key removes one logical partition", async () => {
  const container = await t.container();
  for (let n = 0; n < 5; n++) {
    await container.items.create({ id: `i${n}`, pk: "gone" });
    await container.items.create({ id: `i${n}`, pk: "stays" });
  }
  const { statusCode } = await container.deleteAllItemsForPartitionKey("gone");
  assert.equal(statusCode, 200);
  assert.equal((await container.item("i0", "gone").read()).statusCode, 404);
  assert.deepEqual(await all(container.items.query("SELECT * FROM c", { partitionKey: "gone" })), []);
  assert.equal((await all(container.items.query("SELECT * FROM c"))).length, 5);
  assert.equal((await container.items.create({ id: "i0", pk: "gone" })).statusCode, 201);
  assert.equal((await container.item("i0", "gone").read()).statusCode, 200);
});

test("an item excluded from the index is read but not found", async () => {
  const container = await t.container();
  await container.items.create({ id: "in", pk: "p", v: 1 });
  await container.items.create({ id: "out", pk: "p", v: 1 }, { indexingDirective: "Exclude" });
  assert.equal((await container.item("out", "p").read()).statusCode, 200);
  assert.deepEqual(ids(await all(container.items.query("SELECT * FROM c WHERE c.v = 1"))), ["in"]);
});

test("a container without a partition key keeps items under the missing key", async () => {
  const { container } = await t.database.containers.create({ id: unique("c") });
  const path = `/dbs/${t.database.id}/colls/${container.id}/docs`;
  const headers = { "x-ms-documentdb-partitionkey": "[{}]" };
  const created = await t.raw("POST", path, { body: { id: "a", v: 1 }, headers });
  assert.equal(created.status, 201, created.text);
  assert.equal((await container.item("a", undefined).read()).resource.v, 1);
});
