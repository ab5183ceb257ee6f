// What a client holds when the server is killed stays good after it is back: tokens, continuations,
// definitions, guarantees.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before } from "node:test";

import { ChangeFeedStartFrom, CosmosClient } from "@azure/cosmos";

import { all, fails, ids, sorted, test, unique, user } from "../lib/fixture.js";
import { KEY, startServer } from "../lib/server.js";

const folder = mkdtempSync(join(tmpdir(), "cosmolabe-restart-"));
const dataDir = join(folder, "data");
let server, client, database;

before(async () => {
  server = await startServer({ dataDir });
  client = new CosmosClient({ endpoint: server.endpoint, key: KEY });
  ({ database } = await client.databases.create({ id: "d" }));
});

after(async () => {
  client?.dispose();
  await server?.kill();
  rmSync(folder, { recursive: true, force: true });
});

async function restart() {
  const { port } = server;
  await server.kill();
  server = await startServer({ dataDir, port });
}

async function make(definition = {}) {
  const partitionKey = { paths: ["/pk"], kind: "Hash", version: 2 };
  const { container } = await database.containers.create({ id: unique("c"), partitionKey, ...definition });
  return container;
}

test("definitions, offers, users and items are as before", async () => {
  const container = await make({
    throughput: 700,
    defaultTtl: 1000,
    uniqueKeyPolicy: { uniqueKeys: [{ paths: ["/u"] }] },
  });
  const { item } = await container.items.create({ id: "a", pk: "p", u: 1 });
  const { user: person } = await database.users.create({ id: unique("u") });
  const look = async () => [
    (await container.read()).resource,
    (await container.readOffer()).resource,
    (await item.read()).resource,
    (await person.read()).resource,
  ];
  const before = await look();
  await restart();
  assert.deepEqual(await look(), before);
  await fails(container.items.create({ id: "b", pk: "p", u: 1 }), 409);
});

test("a query continuation goes on", async () => {
  const container = await make({ throughput: 20_000 });
  for (let n = 0; n < 20; n++) await container.items.create({ id: `i${n}`, pk: `p${n % 5}`, n });
  for (const query of ["SELECT VALUE c.n FROM c", "SELECT VALUE c.n FROM c ORDER BY c.n"]) {
    const first = await container.items.query(query, { maxItemCount: 6 }).fetchNext();
    await restart();
    const { continuationToken } = first;
    const rest = await all(container.items.query(query, { maxItemCount: 6, continuationToken }));
    const numbers = [...first.resources, ...rest].sort((x, y) => x - y);
    assert.deepEqual(numbers, Array.from({ length: 20 }, (_, n) => n), query);
  }
});

test("a change feed token goes on", async () => {
  const container = await make();
  await container.items.create({ id: "a", pk: "p" });
  const start = ChangeFeedStartFrom.Beginning();
  const first = await container.items.getChangeFeedIterator({ changeFeedStartFrom: start }).readNext();
  assert.deepEqual(ids(first.result), ["a"]);
  await restart();
  await container.items.create({ id: "b", pk: "p" });
  const resume = ChangeFeedStartFrom.Continuation(first.continuationToken);
  const next = await container.items.getChangeFeedIterator({ changeFeedStartFrom: resume }).readNext();
  assert.deepEqual(ids(next.result), ["b"]);
  assert.ok(next.result[0]._lsn > first.result[0]._lsn);
});

test("session tokens never go back", async () => {
  const container = await make();
  const lsn = (headers) => Number(headers["x-ms-session-token"].split("#")[1]);
  const { headers, item } = await container.items.create({ id: "a", pk: "p" });
  await restart();
  const read = await item.read({ sessionToken: headers["x-ms-session-token"] });
  assert.equal(read.statusCode, 200);
  assert.ok(lsn(read.headers) >= lsn(headers));
  const written = await container.items.create({ id: "b", pk: "p" });
  assert.ok(lsn(written.headers) > lsn(headers));
});

test("etags still guard", async () => {
  const container = await make();
  const { resource, item } = await container.items.create({ id: "a", pk: "p" });
  await restart();
  const accessCondition = { type: "IfMatch", condition: resource._etag };
  await item.replace({ id: "a", pk: "p", v: 1 }, { accessCondition });
  await restart();
  await fails(item.replace({ id: "a", pk: "p", v: 2 }, { accessCondition }), 412);
});

test("a resource token still opens its container", async () => {
  const container = await make();
  await container.items.create({ id: "a", pk: "p" });
  const { user: person } = await database.users.create({ id: unique("u") });
  const { resource } = await person.permissions.create({
    id: "p",
    permissionMode: "Read",
    resource: container.url,
  });
  await restart();
  const resourceTokens = { [container.url]: resource._token };
  const holder = new CosmosClient({ endpoint: server.endpoint, resourceTokens });
  const held = holder.database("d").container(container.id);
  assert.equal((await held.item("a", "p").read()).resource.id, "a");
  holder.dispose();
});

test("a deleted container stays deleted, and its rid is not given out again", async () => {
  const container = await make();
  const { resource: before } = await container.read();
  await container.delete();
  await restart();
  await fails(container.read(), 404);
  const next = await make({ id: container.id });
  assert.notEqual((await next.read()).resource._rid, before._rid);
});

test("a partition key stays deleted, what came later stays", async () => {
  const container = await make();
  for (const id of ["a", "b"]) await container.items.create({ id, pk: "gone" });
  await container.items.create({ id: "c", pk: "stays" });
  await container.deleteAllItemsForPartitionKey("gone");
  await container.items.create({ id: "b", pk: "gone", v: 2 });
  await restart();
  const left = (await all(container.items.readAll())).map(user);
  assert.deepEqual(sorted(left.map((item) => item.id)), ["b", "c"]);
  assert.equal(left.find((item) => item.id === "b").v, 2);
});

test("a batch is there as a whole", async () => {
  const container = await make();
  const create = (id) => ({ operationType: "Create", resourceBody: { id, pk: "p" } });
  await container.items.batch(["a", "b", "c"].map(create), "p");
  await restart();
  assert.deepEqual(sorted(ids(await all(container.items.readAll()))), ["a", "b", "c"]);
});
