// Stored procedures, triggers and user-defined functions as resources of a container.

import assert from "node:assert/strict";

import { all, fails, ids, serve, sorted, test, unique } from "../lib/fixture.js";

const t = serve();

// The three kinds differ in names only; a trigger says when it runs, too.
const KINDS = [
  {
    what: "stored procedures",
    feed: (container) => container.scripts.storedProcedures,
    one: (container, id) => container.scripts.storedProcedure(id),
    keyword: "sprocs",
    most: 100,
  },
  {
    what: "triggers",
    feed: (container) => container.scripts.triggers,
    one: (container, id) => container.scripts.trigger(id),
    keyword: "triggers",
    most: 25,
    more: { triggerType: "Pre", triggerOperation: "All" },
  },
  {
    what: "user-defined functions",
    feed: (container) => container.scripts.userDefinedFunctions,
    one: (container, id) => container.scripts.userDefinedFunction(id),
    keyword: "udfs",
    most: 50,
  },
];

for (const { what, feed, one, keyword, most, more = {} } of KINDS) {
  const body = "function (x) { return x; }";

  test(`${what} are created, read and deleted`, async () => {
    const container = await t.container();
    const { statusCode, resource } = await feed(container).create({ id: "s", body, ...more });
    assert.equal(statusCode, 201);
    assert.equal(resource.body, body);
    assert.match(resource._self, new RegExp(`^dbs/[^/]+/colls/[^/]+/${keyword}/[^/]+/$`));
    assert.ok(resource._etag && resource._ts && resource._rid);
    assert.deepEqual((await one(container, "s").read()).resource, resource);
    assert.equal((await one(container, "s").delete()).statusCode, 204);
    await fails(one(container, "s").read(), 404);
    await fails(one(container, "s").delete(), 404);
  });

  test(`${what} are made from functions`, async () => {
    const container = await t.container();
    const { resource } = await feed(container).create({ id: "s", body: function (x) { return x + 1; }, ...more });
    assert.equal(resource.body, "function (x) { return x + 1; }");
  });

  test(`${what} are replaced, by etag if wanted`, async () => {
    const container = await t.container();
    const { resource: first } = await feed(container).create({ id: "s", body, ...more });
    const changed = { ...first, body: "function () { return 2; }" };
    const accessCondition = { type: "IfMatch", condition: first._etag };
    const { resource } = await one(container, "s").replace(changed, { accessCondition });
    assert.equal(resource.body, changed.body);
    assert.equal(resource._rid, first._rid);
    assert.notEqual(resource._etag, first._etag);
    await fails(one(container, "s").replace(changed, { accessCondition }), 412);
    await fails(one(container, "none").replace({ id: "none", body, ...more }), 404);
  });

  test(`${what} are listed and queried`, async () => {
    const container = await t.container();
    assert.deepEqual(await all(feed(container).readAll()), []);
    for (const id of ["a", "b", "c"]) await feed(container).create({ id, body, ...more });
    assert.deepEqual(sorted(ids(await all(feed(container).readAll()))), ["a", "b", "c"]);
    assert.deepEqual(sorted(ids(await all(feed(container).readAll({ maxItemCount: 1 })))), ["a", "b", "c"]);
    const query = { query: "SELECT * FROM s WHERE s.id = @id", parameters: [{ name: "@id", value: "b" }] };
    assert.deepEqual(ids(await all(feed(container).query(query))), ["b"]);
  });

  test(`${what} have ids of their own in each container`, async () => {
    const [container, other] = [await t.container(), await t.container()];
    await feed(container).create({ id: "s", body, ...more });
    await fails(feed(container).create({ id: "s", body, ...more }), 409);
    assert.equal((await feed(other).create({ id: "s", body, ...more })).statusCode, 201);
    await container.delete();
    assert.equal((await one(other, "s").read()).statusCode, 200);
    await fails(feed(container).create({ id: "s", body, ...more }), 404);
  });

  test(`${what} that are no JavaScript are refused`, async () => {
    const container = await t.container();
    const { resource } = await feed(container).create({ id: "good", body, ...more });
    for (const broken of ["function ( {", "function () { return }; }", "function () { let a; let a; }", "x =", "   "]) {
      const error = await fails(feed(container).create({ id: "bad", body: broken, ...more }), 400);
      assert.equal(error.body.code, "BadRequest", broken);
      await fails(one(container, "good").replace({ ...resource, body: broken }), 400);
    }
    assert.deepEqual(ids(await all(feed(container).readAll())), ["good"]);
    assert.equal((await one(container, "good").read()).resource.body, body);
  });

  test(`a container has at most ${most} ${what}`, async () => {
    const container = await t.container();
    const create = (n) => feed(container).create({ id: `s${n}`, body, ...more });
    for (let n = 0; n < most; n += 1) await create(n);
    await fails(create(most), 403);
    await one(container, "s0").delete();
    assert.equal((await create(most)).statusCode, 201);
  });
}

test("a script needs an id and a body", async () => {
  const container = await t.container();
  const base = `/dbs/${t.database.id}/colls/${container.id}`;
  for (const { keyword, more = {} } of KINDS) {
    for (const body of [{ body: "function () {}" }, { id: "s" }, { id: "s", body: 7 }, { id: "a/b", body: "function () {}" }]) {
      const { status, json } = await t.raw("POST", `${base}/${keyword}`, { body: { ...body, ...more } });
      assert.equal(status, 400, `${keyword} ${JSON.stringify(body)}`);
      assert.ok(json.message);
    }
  }
});

test("a trigger says when it runs", async () => {
  const container = await t.container();
  const body = "function () {}";
  const create = (triggerType, triggerOperation) =>
    container.scripts.triggers.create({ id: unique("t"), body, triggerType, triggerOperation });
  for (const type of ["Pre", "Post", "pre", "post"]) {
    for (const operation of ["All", "Create", "Update", "Replace", "Delete", "Upsert", "all", "delete"]) {
      const { resource } = await create(type, operation);
      assert.deepEqual([resource.triggerType, resource.triggerOperation], [type, operation]);
      await container.scripts.trigger(resource.id).delete();
    }
  }
  await fails(create("During", "All"), 400);
  await fails(create("Pre", "Read"), 400);
  await fails(create(undefined, "All"), 400);
});

test("a container shows how many scripts it has", async () => {
  const container = await t.container();
  await container.scripts.storedProcedures.create({ id: "s", body: "function () {}" });
  const { headers } = await container.read({ populateQuotaInfo: true });
  assert.match(headers["x-ms-resource-usage"], /storedProcedures=1;/);
  assert.match(headers["x-ms-resource-quota"], /storedProcedures=100;/);
});
