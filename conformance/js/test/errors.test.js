// Errors: always JSON with code and message, the right status, and a server that stays up.

import assert from "node:assert/strict";

import { fails, serve, test } from "../lib/fixture.js";

const t = serve();

test("every failure has code, message, activity id and charge", async () => {
  const container = await t.container();
  await container.items.create({ id: "a", pk: "p" });
  const error = await fails(container.items.create({ id: "a", pk: "p" }), 409);
  assert.equal(error.body.code, "Conflict");
  assert.match(error.headers["x-ms-activity-id"], /^[0-9a-f-]{36}$/);
  assert.ok(Number(error.headers["x-ms-request-charge"]) >= 0);
  const missing = await fails(t.database.container("none").read(), 404);
  assert.equal(missing.body.code, "NotFound");
});

test("a body that is no JSON object is 400", async () => {
  const container = await t.container();
  const path = `/dbs/${t.database.id}/colls/${container.id}/docs`;
  const headers = { "x-ms-documentdb-partitionkey": '["p"]' };
  const bodies = ["", "{", "[]", '"text"', "1", "null", '{"id":"a","pk":"p",}', "{'id':'a'}", '{"id":"a","pk":"p"} x', '{"id":"a","pk":"p","n":NaN}', '{"id":"a","pk":"p","n":01}', Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d])];
  for (const body of bodies) {
    const { status, json } = await t.raw("POST", path, { body, headers });
    assert.equal(status, 400, String(body));
    assert.ok(json?.code && json?.message, String(body));
  }
});

test("a malformed partition key header is 400", async () => {
  const container = await t.container();
  const path = `/dbs/${t.database.id}/colls/${container.id}/docs`;
  for (const header of ["p", '"p"', "{}", "[", '["p","q"]', "[[1]]", '[{"a":1}]']) {
    const { status, json } = await t.raw("POST", path, {
      body: { id: "a", pk: "p" },
      headers: { "x-ms-documentdb-partitionkey": header },
    });
    assert.equal(status, 400, header);
    assert.ok(json?.message, header);
  }
});

test("unknown paths are 404 or 400, and unknown verbs 405", async () => {
  const container = await t.container();
  const base = `/dbs/${t.database.id}/colls/${container.id}`;
  for (const path of ["/nothing", `${base}/attachments`, `/media/x`, `${base}/docs/a/b/c/d`]) {
    const { status, json } = await t.raw("GET", path);
    assert.ok([400, 401, 404, 405].includes(status), `${path}: ${status}`);
    assert.ok(json?.message, path);
  }
  const { status, json } = await t.raw("PUT", "/dbs", { body: {} });
  assert.ok([404, 405].includes(status), `PUT /dbs: ${status}`);
  assert.ok(json?.message);
});

test("a trailing slash changes nothing", async () => {
  const container = await t.container();
  await container.items.create({ id: "a", pk: "p" });
  const headers = { "x-ms-documentdb-partitionkey": '["p"]' };
  for (const path of [`/dbs/${t.database.id}/`, `/dbs/${t.database.id}/colls/`, `/dbs/${t.database.id}/colls/${container.id}/docs/a/`]) {
    assert.equal((await t.raw("GET", path, { headers })).status, 200, path);
  }
});

test("a stale container rid is 400 with sub-status 1024", async () => {
  const container = await t.container();
  const other = await t.container();
  await container.items.create({ id: "a", pk: "p" });
  const { resource } = await other.read();
  const answer = await t.raw("GET", `/dbs/${t.database.id}/colls/${container.id}/docs/a`, {
    headers: {
      "x-ms-documentdb-partitionkey": '["p"]',
      "x-ms-cosmos-intended-collection-rid": resource._rid,
    },
  });
  assert.deepEqual([answer.status, answer.headers["x-ms-substatus"]], [400, "1024"]);
});

test("a partition key range that does not exist is 410 with sub-status 1002", async () => {
  const container = await t.container();
  const answer = await t.raw("GET", `/dbs/${t.database.id}/colls/${container.id}/docs`, {
    headers: { "A-IM": "Incremental Feed", "x-ms-documentdb-partitionkeyrangeid": "7" },
  });
  assert.deepEqual([answer.status, answer.headers["x-ms-substatus"]], [410, "1002"]);
});

test("an activity id is echoed", async () => {
  const id = crypto.randomUUID();
  const { headers } = await t.raw("GET", "/dbs", { headers: { "x-ms-activity-id": id } });
  assert.equal(headers["x-ms-activity-id"], id);
});

test("pkranges answers 304 to its own etag", async () => {
  const container = await t.container();
  const path = `/dbs/${t.database.id}/colls/${container.id}/pkranges`;
  const first = await t.raw("GET", path, { headers: { "A-IM": "Incremental Feed" } });
  assert.equal(first.status, 200);
  assert.equal(first.json.PartitionKeyRanges.length, 1);
  const second = await t.raw("GET", path, {
    headers: { "A-IM": "Incremental Feed", "If-None-Match": first.headers.etag },
  });
  assert.equal(second.status, 304);
  assert.equal(second.headers.etag, first.headers.etag);
  assert.equal(second.text, "");
});

test("conflicts are an empty feed", async () => {
  const container = await t.container();
  const { resources } = await container.conflicts.readAll().fetchAll();
  assert.deepEqual(resources, []);
});

test("a connection survives refusals of large bodies", async () => {
  const container = await t.container();
  await fails(container.items.create({ id: "a", pk: "p", text: "x".repeat(8_000_000) }), 413);
  assert.equal((await container.items.create({ id: "a", pk: "p" })).statusCode, 201);
});
