// Provisioned throughput, enforced: the SDK's own retry policy waits as long as it is told and
// comes through; without retries the refusal is what the service's is.

import assert from "node:assert/strict";
import { after, before } from "node:test";

import { CosmosClient } from "@azure/cosmos";

import { all, test, unique } from "../lib/fixture.js";
import { KEY, startServer } from "../lib/server.js";

const NO_RETRY = { retryOptions: { maxRetryAttemptCount: 0, fixedRetryIntervalInMilliseconds: 0, maxWaitTimeInSeconds: 0 } };

let server, patient, impatient, database;

before(async () => {
  server = await startServer({ args: ["--enforce-throughput", "true"] });
  const connect = (connectionPolicy) => new CosmosClient({ endpoint: server.endpoint, key: KEY, connectionPolicy });
  patient = connect({ retryOptions: { maxRetryAttemptCount: 100, maxWaitTimeInSeconds: 60 } });
  impatient = connect(NO_RETRY);
  ({ database } = await patient.databases.create({ id: "d" }));
});

after(async () => {
  patient?.dispose();
  impatient?.dispose();
  await server?.kill();
});

async function make(throughput) {
  const partitionKey = { paths: ["/pk"], kind: "Hash", version: 2 };
  const { container } = await database.containers.create({ id: unique("c"), partitionKey, throughput });
  return { container, hasty: impatient.database("d").container(container.id) };
}

/** Writes until the throughput of the moment is spent; what it was refused with, and what came before. */
async function exhaust(container) {
  const written = [];
  for (let n = 0; n < 1000; n++) {
    try {
      await container.items.create({ id: `x${n}`, pk: "p", text: "t".repeat(20_000) });
      written.push(`x${n}`);
    } catch (error) {
      return { error, written };
    }
  }
  return assert.fail("nothing was refused");
}

test("a refusal says why and when to come back, and has changed nothing", async () => {
  const { hasty } = await make(400);
  const { error, written } = await exhaust(hasty);
  assert.equal(error.code, 429);
  assert.equal(error.substatus, 3200);
  const wait = Number(error.headers["x-ms-retry-after-ms"] ?? error.retryAfterInMs);
  assert.ok(wait > 0 && wait <= 2000, `${wait}`);
  await new Promise((wake) => setTimeout(wake, wait + 50));
  const { resources } = await hasty.items.query("SELECT VALUE c.id FROM c", { partitionKey: "p" }).fetchAll();
  assert.deepEqual(resources.sort(), written.sort());
});

test("the SDK waits and comes through", async () => {
  const { container } = await make(400);
  // About 1,000 RU at 400 a second: at least a second of it is waiting.
  const begun = Date.now();
  const many = Array.from({ length: 100 }, (_, n) =>
    container.items.create({ id: `i${n}`, pk: "p", text: "t".repeat(20_000) }));
  const answers = await Promise.all(many);
  assert.ok(answers.every((answer) => answer.statusCode === 201));
  assert.ok(Date.now() - begun > 1000, "nobody had to wait");
  const waited = answers.reduce((sum, answer) => sum + (answer.diagnostics.clientSideRequestStatistics.retryDiagnostics.failedAttempts.length), 0);
  assert.ok(waited > 0, "nobody was refused");
  assert.equal((await all(container.items.query("SELECT VALUE c.id FROM c"))).length, 100);
});

test("metadata is never refused, and more throughput counts at once", async () => {
  const { container, hasty } = await make(400);
  await exhaust(hasty);
  for (let n = 0; n < 20; n++) {
    await hasty.read();
    await impatient.database("d").containers.readAll().fetchAll();
  }
  const { resource: offer } = await container.readOffer();
  offer.content.offerThroughput = 10_000;
  await patient.offer(offer.id).replace(offer);
  // Whatever was owed is paid with the new throughput.
  await container.items.create({ id: "first", pk: "p" });
  for (let n = 0; n < 20; n++) await hasty.items.create({ id: `more${n}`, pk: "p" });
});

test("a container that spends its share leaves another one alone", async () => {
  const first = await make(400);
  const second = await make(400);
  const { error } = await exhaust(first.hasty);
  assert.equal(error.code, 429);
  await second.hasty.items.create({ id: "fine", pk: "p" });
});
