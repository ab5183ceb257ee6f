// What the test files share: a server per file, names that never collide, skips, and helpers that
// say what a failure was about.

import assert from "node:assert/strict";
import { createHmac, randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { request } from "node:http";
import { basename } from "node:path";
import { after, before, test as nodeTest } from "node:test";

import { CosmosClient } from "@azure/cosmos";

import { KEY, startServer } from "./server.js";

const SKIPS = readSkips();

/** Declares one case. A line in skips.toml, `"file: name" = "reason"`, turns it off. */
export function test(name, options, fn = options) {
  const file = basename(process.argv[1], ".test.js");
  const reason = SKIPS.get(`${file}: ${name}`);
  nodeTest(name, { ...(options === fn ? {} : options), ...(reason ? { skip: reason } : {}) }, fn);
}

/**
 * A server for this file, a client for it, and a database that the cases share.
 *
 * `prepare` runs once before the cases, for data that all of them only read.
 */
export function serve(prepare = async () => {}) {
  const fixture = new Fixture();
  before(async () => {
    fixture.server = await startServer();
    fixture.client = fixture.connect();
    const { database } = await fixture.client.databases.create({ id: unique("db") });
    fixture.database = database;
    await prepare();
  });
  after(async () => {
    fixture.clients.forEach((client) => client.dispose());
    const complaints = fixture.server?.complaints() ?? [];
    await fixture.server?.kill();
    assert.deepEqual(complaints, [], "the server logged warnings or errors");
  });
  return fixture;
}

class Fixture {
  clients = [];

  /** A client of its own, for a case about keys, tokens or sessions. */
  connect(options = {}) {
    const auth = options.resourceTokens || options.permissionFeed ? {} : { key: KEY };
    const client = new CosmosClient({ endpoint: this.server.endpoint, ...auth, ...options });
    this.clients.push(client);
    return client;
  }

  /** A fresh container, keyed by `/pk` with hash version 2 unless the case says otherwise. */
  async container(definition = {}, options = undefined) {
    const partitionKey = { paths: ["/pk"], kind: "Hash", version: 2 };
    const body = { id: unique("c"), partitionKey, ...definition };
    const { container } = await this.database.containers.create(body, options);
    return container;
  }

  /** One signed request, for what the SDK refuses to send. */
  raw(method, path, options) {
    return rawRequest(this.server.endpoint, method, path, options);
  }
}

export function unique(prefix) {
  return `${prefix}-${randomUUID().slice(0, 13)}`;
}

/** Expects a failure of the service with this status and, if given, sub-status. */
export async function fails(promise, code, substatus) {
  let outcome;
  try {
    outcome = await promise;
  } catch (thrown) {
    // Batches wrap the answer of the service in an error without a status.
    const error = thrown.code === undefined && thrown.cause ? thrown.cause : thrown;
    assert.equal(error.code, code, `${error.code}: ${error.message ?? error}`);
    if (substatus !== undefined) assert.equal(error.substatus ?? 0, substatus, error.message);
    assert.ok(error.body?.code && error.body?.message, "an error body has code and message");
    return error;
  }
  assert.fail(`expected ${code}, succeeded with ${outcome?.statusCode ?? outcome?.code ?? "?"}`);
}

/** Asks until the answer satisfies, and fails loudly when it never does. */
export async function until(what, ask, { withinMs = 10_000, everyMs = 50 } = {}) {
  const deadline = Date.now() + withinMs;
  for (;;) {
    const answer = await ask();
    if (answer) return answer;
    if (Date.now() > deadline) assert.fail(`not within ${withinMs} ms: ${what}`);
    await new Promise((wake) => setTimeout(wake, everyMs));
  }
}

/** Numbers in [0, 1) that a seed repeats. */
export function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export async function all(iterator) {
  return (await iterator.fetchAll()).resources;
}

/** All pages of a query, each as its own array, following continuations through new iterators. */
export async function pages(items, query, options) {
  const found = [];
  let continuationToken;
  do {
    const page = await items.query(query, { ...options, continuationToken }).fetchNext();
    found.push(page.resources);
    continuationToken = page.continuationToken;
    assert.ok(found.length < 1000, "the continuation never ended");
  } while (continuationToken);
  return found;
}

export function ids(resources) {
  return resources.map((resource) => resource.id);
}

export function sorted(values) {
  return [...values].sort();
}

/** The user's own properties of an item. */
export function user(resource) {
  const { _rid, _self, _etag, _ts, _attachments, _lsn, ...rest } = resource;
  return rest;
}

export function rawRequest(endpoint, method, path, { body, headers = {}, key = KEY, sign } = {}) {
  const date = new Date().toUTCString();
  const { type, link } = sign ?? signed(path);
  const text = `${method.toLowerCase()}\n${type}\n${link}\n${date.toLowerCase()}\n\n`;
  const signature = createHmac("sha256", Buffer.from(key, "base64")).update(text).digest("base64");
  const authorization = encodeURIComponent(`type=master&ver=1.0&sig=${signature}`);
  const payload = body === undefined || Buffer.isBuffer(body) ? body : textOf(body);
  return new Promise((done, failed) => {
    const options = {
      method,
      headers: { authorization, "x-ms-date": date, "x-ms-version": "2020-07-15", ...headers },
    };
    const call = request(endpoint + path, options, (response) => {
      const chunks = [];
      response.on("data", (chunk) => chunks.push(chunk));
      response.on("error", failed);
      response.on("end", () => {
        const text = Buffer.concat(chunks).toString("utf8");
        done({ status: response.statusCode, headers: response.headers, text, json: json(text) });
      });
    });
    call.on("error", failed);
    call.end(payload);
  });
}

function textOf(body) {
  return typeof body === "string" ? body : JSON.stringify(body);
}

function json(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

// An even number of segments names a resource, an odd number a feed below one.
function signed(path) {
  const segments = path.split("/").filter(Boolean).map(decodeURIComponent);
  const feed = segments.length % 2 === 1;
  const type = (feed ? segments.at(-1) : segments.at(-2)) ?? "";
  return { type, link: (feed ? segments.slice(0, -1) : segments).join("/") };
}

function readSkips() {
  const text = readFileSync(new URL("../skips.toml", import.meta.url), "utf8");
  const lines = text.split("\n").filter((line) => line.trim() && !line.startsWith("#"));
  return new Map(
    lines.map((line) => {
      const match = /^"([^"]+)"\s*=\s*"([^"]+)"$/.exec(line.trim());
      if (!match) throw new Error(`skips.toml: not a skip with a reason: ${line}`);
      return [match[1], match[2]];
    }),
  );
}
