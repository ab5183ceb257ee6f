// Keys of one's own: read-write and read-only ones, from a key file.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before } from "node:test";

import { CosmosClient } from "@azure/cosmos";

import { all, fails, ids, test } from "../lib/fixture.js";
import { KEY, startServer } from "../lib/server.js";

const keys = Object.fromEntries(
  ["primary", "secondary", "primary_read_only", "secondary_read_only"].map((name, n) => [
    name,
    Buffer.alloc(64, n + 1).toString("base64"),
  ]),
);
const folder = mkdtempSync(join(tmpdir(), "cosmolabe-keys-"));
let server;

before(async () => {
  const file = join(folder, "keys");
  writeFileSync(file, `${Object.values(keys).join("\n")}\n`, { mode: 0o600 });
  server = await startServer({ args: ["--key-file", file] });
});

after(async () => {
  await server?.kill();
  rmSync(folder, { recursive: true });
});

async function as(key, fn) {
  const client = new CosmosClient({ endpoint: server.endpoint, key });
  try {
    return await fn(client);
  } finally {
    client.dispose();
  }
}

test("both read-write keys write", async () => {
  for (const name of ["primary", "secondary"]) {
    await as(keys[name], async (client) => {
      const { database } = await client.databases.create({ id: name });
      const { container } = await database.containers.create({ id: "c", partitionKey: "/pk" });
      assert.equal((await container.items.create({ id: "a", pk: "p" })).statusCode, 201, name);
    });
  }
});

test("read-only keys read and query, and their writes are 403", async () => {
  await as(keys.primary, async (client) => {
    const { database } = await client.databases.create({ id: "d" });
    const { container } = await database.containers.create({ id: "c", partitionKey: "/pk" });
    await container.items.create({ id: "a", pk: "p" });
  });
  for (const name of ["primary_read_only", "secondary_read_only"]) {
    await as(keys[name], async (client) => {
      const container = client.database("d").container("c");
      assert.equal((await container.item("a", "p").read()).statusCode, 200);
      assert.deepEqual(ids(await all(container.items.query("SELECT * FROM c"))), ["a"]);
      const iterator = container.items.getChangeFeedIterator();
      assert.equal((await iterator.readNext()).statusCode, 304);
      await fails(container.items.create({ id: "b", pk: "p" }), 403);
      await fails(container.item("a", "p").delete(), 403);
      await fails(container.item("a", "p").patch([{ op: "set", path: "/v", value: 1 }]), 403);
      await fails(container.items.batch([{ operationType: "Delete", id: "a" }], "p"), 403);
      await fails(client.databases.create({ id: "new" }), 403);
      await fails(container.delete(), 403);
    });
  }
});

test("the development key does not open a server with its own keys", async () => {
  await as(KEY, (client) => fails(client.database("d").read(), 401));
});
