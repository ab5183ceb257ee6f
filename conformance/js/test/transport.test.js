// What other clients do on the wire and this SDK does not: chunked bodies, HTTP/2 without asking,
// other spellings of signatures, flags and paths, addresses made of rids.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { request } from "node:http";
import { connect } from "node:http2";

import { serve, test } from "../lib/fixture.js";
import { KEY, startServer } from "../lib/server.js";

const t = serve();

function sign(method, type, link, { date = new Date().toUTCString(), dateHeader = "" } = {}) {
  const text = `${method}\n${type}\n${link}\n${date.toLowerCase()}\n${dateHeader.toLowerCase()}\n`;
  const signature = createHmac("sha256", Buffer.from(KEY, "base64")).update(text).digest("base64");
  return { token: `type=master&ver=1.0&sig=${signature}`, date };
}

/** One request over an HTTP/2 session. */
async function overHttp2(session, headers, body) {
  const stream = session.request(headers, { endStream: body === undefined });
  if (body !== undefined) stream.end(body);
  const status = new Promise((done, failed) => {
    stream.on("response", (answer) => done(answer[":status"]));
    stream.on("error", failed);
  });
  let text = "";
  for await (const chunk of stream) text += chunk;
  return { status: await status, text };
}

test("a chunked body is read", async () => {
  const container = await t.container();
  const path = `/dbs/${t.database.id}/colls/${container.id}/docs`;
  const { token, date } = sign("post", "docs", `dbs/${t.database.id}/colls/${container.id}`);
  const status = await new Promise((done, failed) => {
    const headers = {
      authorization: encodeURIComponent(token),
      "x-ms-date": date,
      "transfer-encoding": "chunked",
      "x-ms-documentdb-partitionkey": '["p"]',
    };
    const call = request(t.server.endpoint + path, { method: "POST", headers }, (answer) => {
      answer.resume().on("end", () => done(answer.statusCode));
    });
    call.on("error", failed);
    call.write('{"id":"a",');
    call.write('"pk":"p"}');
    call.end();
  });
  assert.equal(status, 201);
  assert.equal((await container.item("a", "p").read()).statusCode, 200);
});

test("a client that expects 100-continue gets it", async () => {
  const container = await t.container();
  const path = `/dbs/${t.database.id}/colls/${container.id}/docs`;
  const { token, date } = sign("post", "docs", `dbs/${t.database.id}/colls/${container.id}`);
  const body = '{"id":"a","pk":"p"}';
  const { status, continued } = await new Promise((done, failed) => {
    let continued = false;
    const headers = {
      authorization: encodeURIComponent(token),
      "x-ms-date": date,
      "content-length": body.length,
      expect: "100-continue",
      "x-ms-documentdb-partitionkey": '["p"]',
    };
    const call = request(t.server.endpoint + path, { method: "POST", headers }, (answer) => {
      answer.resume().on("end", () => done({ status: answer.statusCode, continued }));
    });
    call.on("error", failed);
    call.on("continue", () => {
      continued = true;
      call.end(body);
    });
  });
  assert.deepEqual({ status, continued }, { status: 201, continued: true });
});

test("HTTP/2 with prior knowledge works on the plain port", async () => {
  const session = connect(t.server.endpoint);
  try {
    const { token, date } = sign("get", "dbs", "");
    const answers = await Promise.all(
      Array.from({ length: 20 }, () =>
        overHttp2(session, {
          ":path": "/dbs",
          authorization: encodeURIComponent(token),
          "x-ms-date": date,
        }),
      ),
    );
    for (const { status, text } of answers) {
      assert.equal(status, 200);
      assert.ok(JSON.parse(text).Databases.some(({ id }) => id === t.database.id));
    }
  } finally {
    session.close();
  }
});

test("HTTP/2 takes headers of 32 kilobytes as well", async () => {
  const session = connect(t.server.endpoint);
  try {
    const { token, date } = sign("get", "dbs", "");
    const parts = Array.from({ length: 3_000 }, (_, n) => `${n + 100}:-1#1`);
    const { status } = await overHttp2(session, {
      ":path": "/dbs",
      authorization: encodeURIComponent(token),
      "x-ms-date": date,
      "x-ms-session-token": parts.join(","),
    });
    assert.equal(status, 200);
  } finally {
    session.close();
  }
});

test("TLS offers HTTP/2", async () => {
  const server = await startServer({ args: ["--tls", "self-signed"] });
  const session = connect(server.endpoint, { rejectUnauthorized: false });
  try {
    const { token, date } = sign("get", "", "");
    const headers = { ":path": "/", authorization: encodeURIComponent(token), "x-ms-date": date };
    const { status, text } = await overHttp2(session, headers);
    assert.equal(session.alpnProtocol, "h2");
    assert.equal(status, 200);
    const [location] = JSON.parse(text).writableLocations;
    assert.equal(location.databaseAccountEndpoint, `${server.endpoint}/`);
  } finally {
    // The session ends before its server does: a reset after that is nobody's fault.
    const closed = new Promise((resolve) => session.close(resolve));
    await closed;
    session.destroy();
    await server.kill();
  }
});

test("signatures may be spelled in other ways", async () => {
  const { token, date } = sign("get", "dbs", "");
  const lower = encodeURIComponent(token).replace(/%../g, (escape) => escape.toLowerCase());
  const get = (headers) => t.raw("GET", "/dbs", { headers });
  assert.equal((await get({ authorization: lower, "x-ms-date": date })).status, 200, "lower-case");
  const both = sign("get", "dbs", "", { dateHeader: date, date });
  const authorization = encodeURIComponent(both.token);
  assert.equal((await get({ authorization, "x-ms-date": date, date })).status, 200, "both dates");
});

test("flags may be capitalised, versions unknown, content types odd", async () => {
  const container = await t.container();
  const path = `/dbs/${t.database.id}/colls/${container.id}/docs`;
  const upsert = await t.raw("POST", path, {
    body: { id: "a", pk: "p" },
    headers: {
      "x-ms-documentdb-partitionkey": '[ "p" ]',
      "x-ms-documentdb-is-upsert": "True",
      "x-ms-version": "2099-01-01",
      "content-type": "text/plain",
    },
  });
  assert.equal(upsert.status, 201, upsert.text);
  const query = await t.raw("POST", path, {
    body: { query: "SELECT * FROM c" },
    headers: {
      "x-ms-documentdb-isquery": "True",
      "x-ms-documentdb-query-enablecrosspartition": "True",
      "content-type": "application/query+json; charset=utf-8",
    },
  });
  assert.equal(query.status, 200, query.text);
  assert.equal(query.json.Documents.length, 1);
});

test("a path may begin with two slashes", async () => {
  const { status } = await t.raw("GET", `//dbs/${t.database.id}`);
  assert.equal(status, 200);
});

test("resources answer to their rids", async () => {
  const container = await t.container();
  const { resource: item } = await container.items.create({ id: "a", pk: "p" });
  const { resource: definition } = await container.read();
  const [, db, , coll, , doc] = item._self.split("/");
  const read = (path, type, rid) =>
    t.raw("GET", path, {
      sign: { type, link: rid.toLowerCase() },
      headers: { "x-ms-documentdb-partitionkey": '["p"]' },
    });
  assert.equal((await read(`/dbs/${db}`, "dbs", db)).json.id, t.database.id);
  const ranges = await read(`/dbs/${db}/colls/${coll}/pkranges`, "pkranges", coll);
  assert.equal(ranges.json?.PartitionKeyRanges?.length, 1, ranges.text);
  assert.equal(ranges.json._rid, definition._rid);
  const found = await read(`/dbs/${db}/colls/${coll}/docs/${doc}`, "docs", doc);
  assert.equal(found.json?.id, "a", found.text);
});

test("one connection serves thousands of requests", async () => {
  const container = await t.container();
  await container.items.create({ id: "a", pk: "p" });
  for (let n = 0; n < 2_000; n += 50) {
    const reads = Array.from({ length: 50 }, () => container.item("a", "p").read());
    for (const { statusCode } of await Promise.all(reads)) assert.equal(statusCode, 200);
  }
});
