// Throughput: manual and autoscale offers of databases and containers, read and replaced.

import assert from "node:assert/strict";

import { all, fails, serve, test, unique } from "../lib/fixture.js";

const t = serve();

test("a container's manual throughput can be read and replaced", async () => {
  const container = await t.container({ throughput: 500 });
  const { resource: definition } = await container.read();
  const { resource, offer } = await container.readOffer();
  assert.equal(resource.content.offerThroughput, 500);
  assert.equal(resource.resource, definition._self);
  assert.equal(resource.offerResourceId, definition._rid);
  assert.equal(resource.offerVersion, "V2");
  assert.equal(resource._self, `offers/${resource.id}/`);
  const body = { ...resource, content: { ...resource.content, offerThroughput: 900 } };
  const { statusCode, headers } = await offer.replace(body);
  assert.equal(statusCode, 200);
  assert.equal(headers["x-ms-offer-replace-pending"], "false");
  assert.equal((await offer.read()).resource.content.offerThroughput, 900);
  assert.equal((await container.readOffer()).resource.content.offerThroughput, 900);
});

test("an autoscale maximum can be read and replaced", async () => {
  const container = await t.container({ maxThroughput: 4000 });
  const { resource, offer } = await container.readOffer();
  assert.equal(resource.content.offerAutopilotSettings.maxThroughput, 4000);
  assert.equal(resource.content.offerThroughput, 400);
  const content = structuredClone(resource.content);
  content.offerAutopilotSettings.maxThroughput = 8000;
  await offer.replace({ ...resource, content });
  const { resource: after } = await offer.read();
  assert.equal(after.content.offerAutopilotSettings.maxThroughput, 8000);
});

test("a database shares its throughput with containers that have none", async () => {
  const { database } = await t.client.databases.create({ id: unique("db"), throughput: 600 });
  const { resource } = await database.readOffer();
  assert.equal(resource.content.offerThroughput, 600);
  const { container: shared } = await database.containers.create({ id: "s", partitionKey: "/pk" });
  assert.equal((await shared.readOffer()).resource, undefined);
  const { container: own } = await database.containers.create({
    id: "o",
    partitionKey: "/pk",
    throughput: 400,
  });
  assert.equal((await own.readOffer()).resource.content.offerThroughput, 400);
});

test("a database without throughput has no offer", async () => {
  const { database } = await t.client.databases.create({ id: unique("db") });
  assert.equal((await database.readOffer()).resource, undefined);
});

test("throughput comes in steps above a minimum", async () => {
  for (const throughput of [100, 399, 450, 401]) {
    await fails(t.container({ throughput }), 400);
  }
  for (const maxThroughput of [500, 1500, 999]) {
    await fails(t.container({ maxThroughput }), 400);
  }
  assert.ok(await t.container({ throughput: 400 }));
  assert.ok(await t.container({ maxThroughput: 1000 }));
  const container = await t.container({ throughput: 400 });
  const { resource, offer } = await container.readOffer();
  const body = { ...resource, content: { ...resource.content, offerThroughput: 450 } };
  await fails(offer.replace(body), 400);
});

test("manual and autoscale together are refused", async () => {
  const { status } = await t.raw("POST", `/dbs/${t.database.id}/colls`, {
    body: { id: unique("c"), partitionKey: { paths: ["/pk"], kind: "Hash", version: 2 } },
    headers: {
      "x-ms-offer-throughput": "400",
      "x-ms-cosmos-offer-autopilot-settings": '{"maxThroughput":4000}',
    },
  });
  assert.equal(status, 400);
});

test("an offer moves between manual and autoscale when asked by header", async () => {
  const container = await t.container({ throughput: 400 });
  const { resource, offer } = await container.readOffer();
  const migrate = (header) => ({ initialHeaders: { [header]: "true" } });
  const content = { ...resource.content, offerThroughput: -1, offerAutopilotSettings: { maxThroughput: 4000 } };
  await offer.replace({ ...resource, content }, migrate("x-ms-cosmos-migrate-offer-to-autopilot"));
  const { resource: autoscale } = await offer.read();
  assert.ok(autoscale.content.offerAutopilotSettings.maxThroughput >= 1000);
  await offer.replace(autoscale, migrate("x-ms-cosmos-migrate-offer-to-manual-throughput"));
  assert.equal((await offer.read()).resource.content.offerAutopilotSettings, undefined);
});

test("offers can be listed and queried", async () => {
  const container = await t.container({ throughput: 700 });
  const { resource: definition } = await container.read();
  const listed = await all(t.client.offers.readAll());
  assert.ok(listed.some((offer) => offer.offerResourceId === definition._rid));
  const query = {
    query: "SELECT * FROM root r WHERE r.offerResourceId = @rid",
    parameters: [{ name: "@rid", value: definition._rid }],
  };
  const [found] = await all(t.client.offers.query(query));
  assert.equal(found.content.offerThroughput, 700);
});

test("the offer goes with its container", async () => {
  const container = await t.container({ throughput: 400 });
  const { offer } = await container.readOffer();
  await container.delete();
  await fails(offer.read(), 404);
});
