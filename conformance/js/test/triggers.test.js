// Triggers: before and after each kind of write, in its transaction, and only where they are named.

import assert from "node:assert/strict";

import { TriggerOperation } from "@azure/cosmos";

import { all, fails, ids, serve, sorted, test, user } from "../lib/fixture.js";
import { after, before, exists, said } from "../lib/scripts.js";

const t = serve();

const stamp = function () {
  const request = getContext().getRequest();
  const item = request.getBody();
  item.stamp = request.getOperationType();
  request.setBody(item);
};

// Writes down every write in an item of the same partition.
const journal = function () {
  const context = getContext();
  const collection = context.getCollection();
  const written = context.getResponse().getBody();
  const entry = { id: "journal-" + (written ? written.id : "deleted"), pk: "p", operation: context.getRequest().getOperationType() };
  const accepted = collection.upsertDocument(collection.getSelfLink(), entry, function (err) {
    if (err) throw err;
  });
  if (!accepted) throw new Error("not accepted");
};

test("a pre-trigger changes what is created", async () => {
  const container = await t.container();
  const preTriggerInclude = await before(container, stamp, TriggerOperation.Create);
  const { resource, statusCode, headers } = await container.items.create({ id: "a", pk: "p" }, { preTriggerInclude });
  assert.equal(statusCode, 201);
  assert.equal(resource.stamp, "Create");
  assert.equal(headers.etag, resource._etag);
  assert.deepEqual(user((await container.item("a", "p").read()).resource), { id: "a", pk: "p", stamp: "Create" });
});

test("a pre-trigger knows which write it precedes", async () => {
  const container = await t.container();
  const options = { preTriggerInclude: [await before(container, stamp)] };
  assert.equal((await container.items.create({ id: "a", pk: "p" }, options)).resource.stamp, "Create");
  assert.equal((await container.item("a", "p").replace({ id: "a", pk: "p" }, options)).resource.stamp, "Replace");
  assert.equal((await container.items.upsert({ id: "a", pk: "p" }, options)).resource.stamp, "Upsert");
  assert.equal((await container.items.upsert({ id: "b", pk: "p" }, options)).resource.stamp, "Upsert");
});

test("a pre-trigger of a deletion has no body and may forbid it", async () => {
  const container = await t.container();
  await container.items.create({ id: "a", pk: "p" });
  const guard = await before(container, function () {
    if (getContext().getRequest().getBody() === undefined) throw new Error(403, "kept");
  }, TriggerOperation.Delete);
  const error = await fails(container.item("a", "p").delete({ preTriggerInclude: guard }), 400, 403);
  assert.match(said(error), /kept/);
  assert.ok(await exists(container, "a"));
  assert.equal((await container.item("a", "p").delete()).statusCode, 204);
});

test("a trigger runs only where it is named", async () => {
  const container = await t.container();
  await before(container, function () { throw new Error("never"); });
  await after(container, function () { throw new Error("never"); });
  const { resource } = await container.items.create({ id: "a", pk: "p" });
  assert.equal(resource.stamp, undefined);
  await container.items.create({ id: "b", pk: "p" }, { preTriggerInclude: [], postTriggerInclude: "" });
});

test("an unknown trigger is 400 and nothing is written", async () => {
  const container = await t.container();
  await fails(container.items.create({ id: "a", pk: "p" }, { preTriggerInclude: "none" }), 400);
  await fails(container.items.create({ id: "a", pk: "p" }, { postTriggerInclude: "none" }), 400);
  assert.ok(!(await exists(container, "a")));
});

test("a trigger is named for its own side of the write", async () => {
  const container = await t.container();
  const [pre, post] = [await before(container, stamp), await after(container, journal)];
  await fails(container.items.create({ id: "a", pk: "p" }, { preTriggerInclude: post }), 400);
  await fails(container.items.create({ id: "a", pk: "p" }, { postTriggerInclude: pre }), 400);
  assert.deepEqual(await all(container.items.readAll()), []);
});

test("a trigger runs only on its own operation", async () => {
  const container = await t.container();
  await container.items.create({ id: "old", pk: "p" });
  const writes = {
    create: (options) => container.items.create({ id: "new", pk: "p" }, options),
    replace: (options) => container.item("old", "p").replace({ id: "old", pk: "p" }, options),
    delete: (options) => container.item("new", "p").delete(options),
  };
  const allowed = { create: ["create"], replace: ["replace"], update: ["replace"], delete: ["delete"], all: ["create", "replace", "delete"] };
  for (const [operation, names] of Object.entries(allowed)) {
    const preTriggerInclude = await before(container, function () {}, operation);
    for (const name of ["create", "replace", "delete"]) {
      if (names.includes(name)) await writes[name]({ preTriggerInclude });
      else await fails(writes[name]({ preTriggerInclude }), 400);
      if (name === "create" && !names.includes(name)) await container.items.create({ id: "new", pk: "p" });
      if (name === "delete" && !names.includes(name)) await container.item("new", "p").delete();
    }
  }
});

test("an upsert runs triggers for upserts and for what it turns into", async () => {
  const container = await t.container();
  const upsert = (id, preTriggerInclude) => container.items.upsert({ id, pk: "p" }, { preTriggerInclude });
  const create = await before(container, stamp, "Create");
  const replace = await before(container, stamp, "Replace");
  const own = await before(container, stamp, "Upsert");
  const remove = await before(container, stamp, "Delete");
  assert.equal((await upsert("a", create)).statusCode, 201);
  await fails(upsert("a", create), 400);
  assert.equal((await upsert("a", replace)).statusCode, 200);
  await fails(upsert("b", replace), 400);
  assert.equal((await upsert("b", own)).statusCode, 201);
  assert.equal((await upsert("b", own)).statusCode, 200);
  await fails(upsert("b", remove), 400);
});

test("a throwing pre-trigger prevents the write", async () => {
  const container = await t.container();
  const preTriggerInclude = await before(container, function () {
    const item = getContext().getRequest().getBody();
    if (!item.name) throw new Error(422, "name is missing");
  });
  const error = await fails(container.items.create({ id: "a", pk: "p" }, { preTriggerInclude }), 400, 422);
  assert.match(said(error), /name is missing/);
  assert.ok(!(await exists(container, "a")));
  await container.items.create({ id: "a", pk: "p", name: "n" }, { preTriggerInclude });
});

test("a throwing post-trigger undoes the write and what it did itself", async () => {
  const container = await t.container();
  await container.items.create({ id: "old", pk: "p", n: 1 });
  const postTriggerInclude = await after(container, function () {
    const collection = getContext().getCollection();
    collection.createDocument(collection.getSelfLink(), { id: "extra", pk: "p" }, function () {
      throw new Error("too late");
    });
  });
  const options = { postTriggerInclude };
  await fails(container.items.create({ id: "new", pk: "p" }, options), 400, 0);
  await fails(container.item("old", "p").replace({ id: "old", pk: "p", n: 2 }, options), 400, 0);
  await fails(container.items.upsert({ id: "old", pk: "p", n: 3 }, options), 400, 0);
  await fails(container.item("old", "p").delete(options), 400, 0);
  const items = await all(container.items.readAll());
  assert.deepEqual(items.map(user), [{ id: "old", pk: "p", n: 1 }]);
});

test("a post-trigger writes in the transaction of each write", async () => {
  const container = await t.container();
  const options = { postTriggerInclude: await after(container, journal) };
  await container.items.create({ id: "a", pk: "p" }, options);
  await container.item("a", "p").replace({ id: "a", pk: "p", n: 2 }, options);
  await container.item("a", "p").delete(options);
  const items = await all(container.items.readAll());
  assert.deepEqual(sorted(ids(items)), ["journal-a", "journal-deleted"]);
  assert.deepEqual(items.map((item) => item.operation).sort(), ["Delete", "Replace"]);
});

test("a post-trigger changes what the client gets, not what is stored", async () => {
  const container = await t.container();
  const options = {
    postTriggerInclude: await after(container, function () {
      const response = getContext().getResponse();
      const item = response.getBody();
      item.secret = "hidden";
      item.stored = item._etag !== undefined;
      response.setBody(item);
    }),
  };
  const { resource, headers } = await container.items.create({ id: "a", pk: "p", secret: 42 }, options);
  assert.deepEqual([resource.secret, resource.stored], ["hidden", true]);
  const { resource: stored } = await container.item("a", "p").read();
  assert.deepEqual(user(stored), { id: "a", pk: "p", secret: 42 });
  assert.equal(stored._etag, headers.etag);
});

test("a post-trigger stays within the partition of its write", async () => {
  const container = await t.container();
  const postTriggerInclude = await after(container, function () {
    const collection = getContext().getCollection();
    collection.createDocument(collection.getSelfLink(), { id: "foreign", pk: "q" });
  });
  await fails(container.items.create({ id: "a", pk: "p" }, { postTriggerInclude }), 400);
  assert.deepEqual(await all(container.items.readAll()), []);
});

test("a query in a post-trigger does not see the item just written", async () => {
  const container = await t.container();
  const options = {
    postTriggerInclude: await after(container, function () {
      const collection = getContext().getCollection();
      collection.queryDocuments(collection.getSelfLink(), "SELECT VALUE COUNT(1) FROM c", function (err, rows) {
        if (err) throw err;
        getContext().getResponse().setBody({ count: rows[0] });
      });
    }),
  };
  for (const expected of [0, 1, 2]) {
    const { resource } = await container.items.create({ id: `i${expected}`, pk: "p" }, options);
    assert.equal(resource.count, expected);
  }
});

test("a pre-trigger cannot move an item to another partition", async () => {
  const container = await t.container();
  const preTriggerInclude = await before(container, function () {
    const request = getContext().getRequest();
    const item = request.getBody();
    item.pk = "elsewhere";
    request.setBody(item);
  });
  await fails(container.items.create({ id: "a", pk: "p" }, { preTriggerInclude }), 400);
  assert.deepEqual(await all(container.items.readAll()), []);
});

test("a pre-trigger has no response, and a trigger no arguments", async () => {
  const container = await t.container();
  const preTriggerInclude = await before(container, function () {
    const request = getContext().getRequest();
    const item = request.getBody();
    item.seen = [typeof getContext().getResponse, arguments.length];
    request.setBody(item);
  });
  const { resource } = await container.items.create({ id: "a", pk: "p" }, { preTriggerInclude });
  assert.deepEqual(resource.seen, ["undefined", 0]);
});

test("a write has both triggers, and no more than one of each", async () => {
  const container = await t.container();
  const [pre, post] = [await before(container, stamp), await after(container, journal)];
  await container.items.create({ id: "a", pk: "p" }, { preTriggerInclude: [pre], postTriggerInclude: [post] });
  assert.equal((await container.item("a", "p").read()).resource.stamp, "Create");
  assert.ok(await exists(container, "journal-a"));
  await fails(container.items.create({ id: "b", pk: "p" }, { preTriggerInclude: [pre, pre] }), 400);
  await fails(container.items.create({ id: "b", pk: "p" }, { postTriggerInclude: [post, "other"] }), 400);
});

test("conditions and conflicts come before the effects of triggers", async () => {
  const container = await t.container();
  await container.items.create({ id: "a", pk: "p" });
  const postTriggerInclude = await after(container, journal);
  await fails(container.items.create({ id: "a", pk: "p" }, { postTriggerInclude }), 409);
  const accessCondition = { type: "IfMatch", condition: '"stale"' };
  await fails(container.item("a", "p").replace({ id: "a", pk: "p" }, { postTriggerInclude, accessCondition }), 412);
  await fails(container.item("none", "p").delete({ postTriggerInclude }), 404);
  assert.deepEqual(ids(await all(container.items.readAll())), ["a"]);
});

test("triggers do not run in batches", async () => {
  const container = await t.container();
  const preTriggerInclude = await before(container, stamp);
  const operations = [{ operationType: "Create", resourceBody: { id: "a", pk: "p" } }];
  await fails(container.items.batch(operations, "p", { preTriggerInclude }), 400);
  assert.ok(!(await exists(container, "a")));
});

test("a replaced trigger runs its new text, a deleted one not at all", async () => {
  const container = await t.container();
  const id = await before(container, stamp);
  const body = function () {
    const request = getContext().getRequest();
    request.setBody({ ...request.getBody(), stamp: "new" });
  };
  await container.scripts.trigger(id).replace({ id, body, triggerType: "Pre", triggerOperation: "All" });
  assert.equal((await container.items.create({ id: "a", pk: "p" }, { preTriggerInclude: id })).resource.stamp, "new");
  await container.scripts.trigger(id).delete();
  await fails(container.items.create({ id: "b", pk: "p" }, { preTriggerInclude: id }), 400);
});
