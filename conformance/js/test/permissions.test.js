// Users, permissions, and what a resource token lets its holder do.

import assert from "node:assert/strict";

import { ChangeFeedStartFrom, CosmosClient } from "@azure/cosmos";

import { all, fails, ids, serve, sorted, test, unique } from "../lib/fixture.js";

const t = serve();

async function grant(container, permissionMode, more = {}, options = undefined) {
  const { user } = await t.database.users.create({ id: unique("user") });
  const body = { id: unique("permission"), permissionMode, resource: container.url, ...more };
  const { resource } = await user.permissions.create(body, options);
  return { user, resource };
}

/** A container as the holder of one token sees it. */
function holding(token, container) {
  const client = t.connect({ resourceTokens: { [container.url]: token } });
  return client.database(t.database.id).container(container.id);
}

test("users can be created, read, renamed, listed, queried and deleted", async () => {
  const { database } = await t.client.databases.create({ id: unique("db") });
  const { resource, statusCode, user } = await database.users.create({ id: "ada" });
  assert.equal(statusCode, 201);
  assert.equal(resource._permissions, "permissions/");
  assert.deepEqual((await user.read()).resource, resource);
  await fails(database.users.create({ id: "ada" }), 409);
  assert.equal((await database.users.upsert({ id: "bob" })).statusCode, 201);
  assert.equal((await database.users.upsert({ id: "bob" })).statusCode, 200);
  assert.deepEqual(sorted(ids(await all(database.users.readAll()))), ["ada", "bob"]);
  const query = {
    query: "SELECT * FROM u WHERE u.id = @id",
    parameters: [{ name: "@id", value: "bob" }],
  };
  assert.deepEqual(ids(await all(database.users.query(query))), ["bob"]);
  assert.equal((await user.replace({ id: "grace" })).resource.id, "grace");
  await fails(database.user("ada").read(), 404);
  assert.equal((await database.user("grace").delete()).statusCode, 204);
  await fails(database.user("grace").read(), 404);
});

test("permissions can be created, read, replaced, listed and deleted", async () => {
  const container = await t.container();
  const { user } = await t.database.users.create({ id: unique("user") });
  const body = { id: "p", permissionMode: "Read", resource: container.url };
  const { resource, statusCode, permission } = await user.permissions.create(body);
  assert.equal(statusCode, 201);
  assert.equal(resource.permissionMode, "Read");
  assert.equal(resource.resource, container.url);
  assert.match(resource._token, /^type=resource&ver=1(\.0)?&sig=.+/);
  assert.ok((await permission.read()).resource._token);
  const replaced = await permission.replace({ ...body, permissionMode: "All" });
  assert.equal(replaced.resource.permissionMode, "All");
  assert.deepEqual(ids(await all(user.permissions.readAll())), ["p"]);
  assert.equal((await permission.delete()).statusCode, 204);
  await fails(permission.read(), 404);
});

test("a user has one permission per resource", async () => {
  const container = await t.container();
  const { user } = await grant(container, "Read");
  const second = { id: unique("permission"), permissionMode: "All", resource: container.url };
  await fails(user.permissions.create(second), 409);
});

test("a permission needs a mode and a resource", async () => {
  const container = await t.container();
  const { user } = await t.database.users.create({ id: unique("user") });
  const create = (permissionMode, resource) =>
    user.permissions.create({ id: unique("p"), permissionMode, resource });
  await fails(create("Everything", container.url), 400);
  await fails(create(undefined, container.url), 400);
  await fails(create("Read", undefined), 400);
  await fails(create("Read", "no/link"), 400);
});

test("a token does not open a container made later under the same name", async () => {
  const container = await t.container();
  const { resource } = await grant(container, "All");
  await container.delete();
  await t.container({ id: container.id });
  await container.items.create({ id: "secret", pk: "p" });
  const held = holding(resource._token, container);
  await assert.rejects(held.item("secret", "p").read(), (e) => [401, 403].includes(e.code));
});

test("a read token reads, queries and follows the feed, and writes nothing", async () => {
  const container = await t.container();
  await container.items.create({ id: "a", pk: "p" });
  const { resource } = await grant(container, "Read");
  const held = holding(resource._token, container);
  assert.equal((await held.item("a", "p").read()).resource.id, "a");
  assert.deepEqual(ids(await all(held.items.query("SELECT * FROM c"))), ["a"]);
  assert.equal((await held.read()).resource.id, container.id);
  const changeFeedStartFrom = ChangeFeedStartFrom.Beginning();
  const feed = held.items.getChangeFeedIterator({ changeFeedStartFrom });
  assert.deepEqual(ids((await feed.readNext()).result), ["a"]);
  await fails(held.items.create({ id: "b", pk: "p" }), 403);
  await fails(held.items.upsert({ id: "a", pk: "p" }), 403);
  await fails(held.item("a", "p").replace({ id: "a", pk: "p" }), 403);
  await fails(held.item("a", "p").patch([{ op: "set", path: "/v", value: 1 }]), 403);
  await fails(held.item("a", "p").delete(), 403);
  await fails(held.items.batch([{ operationType: "Delete", id: "a" }], "p"), 403);
  assert.equal((await container.item("a", "p").read()).statusCode, 200);
});

test("a token for everything writes in its container, and not beside it", async () => {
  const container = await t.container();
  const other = await t.container();
  await other.items.create({ id: "secret", pk: "p" });
  const { resource } = await grant(container, "All");
  const held = holding(resource._token, container);
  assert.equal((await held.items.create({ id: "a", pk: "p" })).statusCode, 201);
  assert.equal((await held.item("a", "p").delete()).statusCode, 204);
  const trespasser = t
    .connect({ resourceTokens: { [other.url]: resource._token } })
    .database(t.database.id)
    .container(other.id);
  const error = await trespasser.item("secret", "p").read().then((r) => r, (e) => e);
  assert.ok([401, 403].includes(error.code ?? error.statusCode), `${error.code ?? error.statusCode}`);
  await assert.rejects(held.delete(), (e) => e.code === 403 || e.code === 401);
});

test("a token for one item opens that item only", async () => {
  const container = await t.container();
  const { item } = await container.items.create({ id: "mine", pk: "p" });
  await container.items.create({ id: "other", pk: "p" });
  const { user } = await t.database.users.create({ id: unique("user") });
  const { resource } = await user.permissions.create({
    id: "p",
    permissionMode: "Read",
    resource: item.url,
  });
  const client = t.connect({ resourceTokens: { [item.url]: resource._token, [container.url]: resource._token } });
  const held = client.database(t.database.id).container(container.id);
  assert.equal((await held.item("mine", "p").read()).resource.id, "mine");
  await assert.rejects(held.item("other", "p").read(), (e) => e.code === 403);
  await fails(held.item("mine", "p").delete(), 403);
});

test("a token for one partition key stays within it", async () => {
  const container = await t.container();
  await container.items.create({ id: "a", pk: "mine" });
  await container.items.create({ id: "b", pk: "theirs" });
  const { resource } = await grant(container, "All", { resourcePartitionKey: ["mine"] });
  const held = holding(resource._token, container);
  assert.equal((await held.item("a", "mine").read()).resource.id, "a");
  assert.equal((await held.items.create({ id: "c", pk: "mine" })).statusCode, 201);
  await assert.rejects(held.item("b", "theirs").read(), (e) => e.code === 403);
  await fails(held.items.create({ id: "d", pk: "theirs" }), 403);
  const own = held.items.query("SELECT * FROM c", { partitionKey: "mine" });
  assert.deepEqual(sorted(ids(await all(own))), ["a", "c"]);
  const across = held.items.query("SELECT * FROM c");
  await assert.rejects(across.fetchAll(), (e) => e.code === 403);
});

test("a token for one partition key finds no other road to the rest", async () => {
  const container = await t.container();
  await container.items.create({ id: "a", pk: "mine" });
  const { resource: secret } = await container.items.create({ id: "b", pk: "theirs" });
  const { resource } = await grant(container, "All", { resourcePartitionKey: ["mine"] });
  const authorization = encodeURIComponent(resource._token);
  const docs = `/dbs/${t.database.id}/colls/${container.id}/docs`;
  const key = (value) => ({ "x-ms-documentdb-partitionkey": JSON.stringify([value]) });
  const call = async (method, path, headers = {}, body) =>
    (await t.raw(method, path, { headers: { authorization, ...headers }, body })).status;
  const isQuery = { "x-ms-documentdb-isquery": "true", "content-type": "application/query+json" };
  const range = { "x-ms-documentdb-partitionkeyrangeid": "0" };
  const batch = { "x-ms-cosmos-is-batch-request": "true" };
  const foreign = { operationType: "Read", id: "b", partitionKey: '["theirs"]' };
  const [, db, , coll, , doc] = secret._self.split("/");
  assert.equal(await call("GET", `${docs}/a`, key("mine")), 200);
  const roads = {
    "read feed": () => call("GET", docs),
    "change feed": () => call("GET", docs, { "A-IM": "Incremental Feed" }),
    "change feed of a range": () => call("GET", docs, { "A-IM": "Incremental Feed", ...range }),
    "query of a range": () => call("POST", docs, { ...isQuery, ...range }, { query: "SELECT * FROM c" }),
    "query of another key": () => call("POST", docs, { ...isQuery, ...key("theirs") }, { query: "SELECT * FROM c" }),
    "bulk": async () => {
      const headers = { authorization, ...batch, ...range, "x-ms-cosmos-batch-atomic": "false" };
      const { status, json } = await t.raw("POST", docs, { headers, body: [foreign] });
      return status === 207 ? json[0].statusCode : status;
    },
    "batch of another key": () => call("POST", docs, { ...batch, ...key("theirs"), "x-ms-cosmos-batch-atomic": "true" }, [foreign]),
    "rid of an item": () => call("GET", `/dbs/${db}/colls/${coll}/docs/${doc}`, key("theirs")),
    "create without a key": () => call("POST", docs, {}, { id: "c", pk: "theirs" }),
    "delete of another key": () =>
      call("POST", `/dbs/${t.database.id}/colls/${container.id}/operations/partitionkeydelete`, key("theirs")),
    "the definition": () => call("PUT", `/dbs/${t.database.id}/colls/${container.id}`, {}, { id: container.id }),
    "its deletion": () => call("DELETE", `/dbs/${t.database.id}/colls/${container.id}`),
    "other containers": () => call("GET", `/dbs/${t.database.id}/colls`),
    "permissions": () => call("GET", `/dbs/${t.database.id}/users`),
  };
  for (const [road, walk] of Object.entries(roads)) {
    const status = await walk();
    assert.ok([401, 403].includes(status), `${road}: ${status}`);
  }
  assert.equal((await container.item("b", "theirs").read()).statusCode, 200);
});

test("a permission feed opens a client", async () => {
  const container = await t.container();
  await container.items.create({ id: "a", pk: "p" });
  const { resource } = await grant(container, "Read");
  const client = t.connect({ permissionFeed: [resource] });
  const held = client.database(t.database.id).container(container.id);
  assert.equal((await held.item("a", "p").read()).resource.id, "a");
});

test("the account opens to any token, the rest does not", async () => {
  const container = await t.container();
  const { resource } = await grant(container, "All");
  const client = t.connect({ resourceTokens: { [container.url]: resource._token } });
  assert.ok((await client.getDatabaseAccount()).resource);
  const authorization = encodeURIComponent(resource._token);
  for (const path of ["/dbs", `/dbs/${t.database.id}/colls`, "/offers", `/dbs/${t.database.id}/users`]) {
    const { status } = await t.raw("GET", path, { headers: { authorization } });
    assert.equal(status, 403, path);
  }
});

test("a token that was tampered with opens nothing", async () => {
  const container = await t.container();
  await container.items.create({ id: "a", pk: "p" });
  const { resource } = await grant(container, "Read");
  const token = resource._token;
  const path = `/dbs/${t.database.id}/colls/${container.id}/docs/a`;
  const read = async (authorization) =>
    (
      await t.raw("GET", path, {
        headers: {
          authorization: encodeURIComponent(authorization),
          "x-ms-documentdb-partitionkey": '["p"]',
        },
      })
    ).status;
  assert.equal(await read(token), 200);
  const middle = Math.floor(token.length / 2);
  const flipped = token[middle] === "A" ? "B" : "A";
  const spoiled = token.slice(0, middle) + flipped + token.slice(middle + 1);
  assert.ok([401, 403].includes(await read(spoiled)));
  assert.equal(await read("type=resource&ver=1&sig=nonsense;nonsense;"), 401);
});

test("the lifetime of a token has limits", async () => {
  const container = await t.container();
  const { user } = await t.database.users.create({ id: unique("user") });
  const { permission } = await user.permissions.create({
    id: "p",
    permissionMode: "Read",
    resource: container.url,
  });
  const short = await permission.read({ resourceTokenExpirySeconds: 600 });
  assert.ok(short.resource._token);
  const long = await permission.read({ resourceTokenExpirySeconds: 86_400 });
  assert.notEqual(long.resource._token, short.resource._token);
  await fails(permission.read({ resourceTokenExpirySeconds: 86_401 }), 400);
  await fails(permission.read({ resourceTokenExpirySeconds: 599 }), 400);
});

test("deleting a user takes its permissions along", async () => {
  const container = await t.container();
  const { user, resource } = await grant(container, "Read");
  await user.delete();
  await t.database.users.create({ id: user.id });
  await fails(t.database.user(user.id).permission(resource.id).read(), 404);
});

test("a wrong key is 401", async () => {
  const client = new CosmosClient({
    endpoint: t.server.endpoint,
    key: Buffer.alloc(64, 7).toString("base64"),
  });
  await fails(client.database(t.database.id).read(), 401);
  client.dispose();
});

test("a request without or with a malformed authorization is 401", async () => {
  for (const authorization of ["", "nonsense", encodeURIComponent("type=master&ver=1.0&sig=AAAA")]) {
    const { status, json } = await t.raw("GET", "/dbs", { headers: { authorization } });
    assert.equal(status, 401, authorization);
    assert.equal(json.code, "Unauthorized");
  }
});
