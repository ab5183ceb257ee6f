// The account document, health probes, TLS, and an orderly end.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { Agent } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { CosmosClient } from "@azure/cosmos";

import { rawRequest, serve, test, unique } from "../lib/fixture.js";
import { KEY, startServer } from "../lib/server.js";

const t = serve();

test("the account names endpoints that reach this server", async () => {
  const { resource } = await t.client.getDatabaseAccount();
  assert.equal(resource.consistencyPolicy, "Session");
  const { json, headers } = await t.raw("GET", "/");
  assert.notEqual(json.id, "localhost");
  assert.equal(json._self, "");
  for (const list of [json.writableLocations, json.readableLocations]) {
    assert.equal(list.length, 1);
    assert.equal(list[0].databaseAccountEndpoint, `${t.server.endpoint}/`);
    assert.ok(list[0].name);
  }
  assert.equal(json.enableMultipleWriteLocations, false);
  assert.ok(!("thinClientReadableLocations" in json));
  assert.ok(JSON.parse(json.queryEngineConfiguration).maxSqlQueryInputLength > 0);
  assert.match(headers["content-type"], /^application\/json/);
});

test("the endpoints follow the host that the client used", async () => {
  const { json } = await t.raw("GET", "/", { headers: { host: "database.example:4711" } });
  assert.equal(json.writableLocations[0].databaseAccountEndpoint, "http://database.example:4711/");
});

test("HEAD of the account is 200", async () => {
  assert.equal((await t.raw("HEAD", "/")).status, 200);
});

test("probes and metrics need no key", async () => {
  for (const path of ["/_cosmolabe/health", "/_cosmolabe/ready", "/_cosmolabe/metrics"]) {
    const { status } = await t.raw("GET", path, { headers: { authorization: "" } });
    assert.equal(status, 200, path);
  }
});

test("a receipt says what a charge is made of", async () => {
  const container = await t.container();
  await container.items.create({ id: "a", pk: "p" });
  const { status, headers } = await t.raw("GET", `/dbs/${t.database.id}/colls/${container.id}/docs/a`, {
    headers: { "x-ms-documentdb-partitionkey": '["p"]', "x-cosmolabe-receipt": "true" },
  });
  assert.equal(status, 200);
  const { ru, units, lines } = JSON.parse(headers["x-cosmolabe-receipt"]);
  assert.equal(ru, Number(headers["x-ms-request-charge"]));
  assert.equal(lines.reduce((sum, line) => sum + line.units, 0), units);
});

test("a self-signed certificate serves clients that accept it", async () => {
  const server = await startServer({ args: ["--tls", "self-signed"] });
  const agent = new Agent({ rejectUnauthorized: false, keepAlive: true });
  const client = new CosmosClient({ endpoint: server.endpoint, key: KEY, agent });
  const strict = new CosmosClient({
    endpoint: server.endpoint,
    key: KEY,
    connectionPolicy: { enableEndpointDiscovery: false },
  });
  try {
    assert.match(server.endpoint, /^https:/);
    const { database } = await client.databases.create({ id: unique("tls") });
    const { container } = await database.containers.create({ id: "c", partitionKey: "/pk" });
    await container.items.create({ id: "a", pk: "p" });
    assert.equal((await container.item("a", "p").read()).statusCode, 200);
    await assert.rejects(strict.database(database.id).read(), /self.signed|certificate/i);
  } finally {
    client.dispose();
    strict.dispose();
    agent.destroy();
    await server.kill();
  }
});

test("data outlives an orderly end and a sudden one", async () => {
  const folder = mkdtempSync(join(tmpdir(), "cosmolabe-data-"));
  const dataDir = join(folder, "data");
  let server = await startServer({ dataDir });
  try {
    const path = "/dbs/d/colls/c/docs";
    const headers = { "x-ms-documentdb-partitionkey": '["p"]' };
    const raw = (method, at, options) => rawRequest(server.endpoint, method, at, options);
    await raw("POST", "/dbs", { body: { id: "d" } });
    const definition = { id: "c", partitionKey: { paths: ["/pk"], kind: "Hash", version: 2 } };
    await raw("POST", "/dbs/d/colls", { body: definition });
    assert.equal((await raw("POST", path, { body: { id: "a", pk: "p" }, headers })).status, 201);
    assert.deepEqual(await server.terminate(), { code: 0, signal: null });
    server = await startServer({ dataDir });
    const { json } = await raw("GET", `${path}/a`, { headers });
    assert.equal(json.id, "a");
    assert.equal((await raw("POST", path, { body: { id: "b", pk: "p" }, headers })).status, 201);
    await server.kill();
    server = await startServer({ dataDir });
    const after = await raw("GET", `${path}/a`, { headers });
    assert.deepEqual(after.json, json, "system properties survive too");
    assert.equal((await raw("GET", `${path}/b`, { headers })).status, 200);
  } finally {
    await server.kill();
    rmSync(folder, { recursive: true });
  }
});

test("a second server on the same data is refused", async () => {
  const folder = mkdtempSync(join(tmpdir(), "cosmolabe-lock-"));
  const dataDir = join(folder, "data");
  const first = await startServer({ dataDir });
  try {
    await assert.rejects(startServer({ dataDir }), /did not get ready/);
  } finally {
    await first.kill();
    rmSync(folder, { recursive: true });
  }
});
