// Containers: definitions and their defaults, every policy returned, replace, delete, refusals.

import assert from "node:assert/strict";

import { all, fails, ids, serve, sorted, test, unique } from "../lib/fixture.js";

const t = serve();

test("create fills in the defaults of a short definition", async () => {
  const body = { id: unique("c"), partitionKey: "/pk" };
  const { resource, statusCode } = await t.database.containers.create(body);
  assert.equal(statusCode, 201);
  assert.deepEqual(resource.partitionKey, { paths: ["/pk"], kind: "Hash", version: 1 });
  assert.equal(resource.indexingPolicy.indexingMode, "consistent");
  assert.equal(resource.indexingPolicy.automatic, true);
  assert.deepEqual(resource.indexingPolicy.includedPaths, [{ path: "/*" }]);
  assert.deepEqual(resource.indexingPolicy.excludedPaths, [{ path: '/"_etag"/?' }]);
  assert.deepEqual(resource.conflictResolutionPolicy, {
    mode: "LastWriterWins",
    conflictResolutionPath: "/_ts",
    conflictResolutionProcedure: "",
  });
  assert.deepEqual(resource.geospatialConfig, { type: "Geography" });
  assert.equal(resource.defaultTtl, undefined);
});

test("create answers system properties and child links", async () => {
  const { resource } = await t.database.containers.create({ id: unique("c"), partitionKey: "/pk" });
  const { resource: database } = await t.database.read();
  assert.equal(Buffer.from(resource._rid.replaceAll("-", "/"), "base64").length, 8);
  assert.equal(resource._self, `dbs/${database._rid}/colls/${resource._rid}/`);
  assert.equal(resource._docs, "docs/");
  assert.equal(resource._sprocs, "sprocs/");
  assert.equal(resource._triggers, "triggers/");
  assert.equal(resource._udfs, "udfs/");
  assert.equal(resource._conflicts, "conflicts/");
});

test("a definition without a partition key is keyed by the system path", async () => {
  const { container } = await t.database.containers.create({ id: unique("c") });
  const { resource } = await container.getPartitionKeyDefinition();
  assert.deepEqual(resource.paths, ["/_partitionKey"]);
});

test("every policy comes back as it was sent", async () => {
  const definition = {
    id: unique("c"),
    partitionKey: { paths: ["/tenant/id"], kind: "Hash", version: 2 },
    indexingPolicy: {
      indexingMode: "consistent",
      automatic: true,
      includedPaths: [{ path: "/*" }],
      excludedPaths: [{ path: "/notes/*" }, { path: "/vector/*" }, { path: '/"_etag"/?' }],
      compositeIndexes: [
        [
          { path: "/a", order: "ascending" },
          { path: "/b", order: "descending" },
        ],
      ],
      spatialIndexes: [{ path: "/where/*", types: ["Point", "Polygon"] }],
    },
    uniqueKeyPolicy: { uniqueKeys: [{ paths: ["/email"] }, { paths: ["/first", "/last"] }] },
    defaultTtl: 3600,
    conflictResolutionPolicy: {
      mode: "LastWriterWins",
      conflictResolutionPath: "/version",
      conflictResolutionProcedure: "",
    },
    geospatialConfig: { type: "Geography" },
    changeFeedPolicy: { retentionDuration: 10 },
    computedProperties: [{ name: "lower", query: "SELECT VALUE LOWER(c.name) FROM c" }],
  };
  const { container } = await t.database.containers.create(structuredClone(definition));
  const { resource } = await container.read();
  for (const policy of ["partitionKey", "uniqueKeyPolicy", "defaultTtl", "changeFeedPolicy"]) {
    assert.deepEqual(resource[policy], definition[policy], policy);
  }
  for (const policy of ["conflictResolutionPolicy", "geospatialConfig", "computedProperties"]) {
    assert.deepEqual(resource[policy], definition[policy], policy);
  }
  for (const part of Object.keys(definition.indexingPolicy)) {
    assert.deepEqual(resource.indexingPolicy[part], definition.indexingPolicy[part], part);
  }
});

test("vector and full-text policies come back as they were sent", async () => {
  const definition = {
    id: unique("c"),
    partitionKey: { paths: ["/pk"], kind: "Hash", version: 2 },
    vectorEmbeddingPolicy: {
      vectorEmbeddings: [
        { path: "/v", dataType: "float32", dimensions: 8, distanceFunction: "cosine" },
      ],
    },
    fullTextPolicy: {
      defaultLanguage: "en-US",
      fullTextPaths: [{ path: "/text", language: "en-US" }],
    },
    indexingPolicy: {
      indexingMode: "consistent",
      automatic: true,
      includedPaths: [{ path: "/*" }],
      excludedPaths: [{ path: "/v/*" }],
      vectorIndexes: [{ path: "/v", type: "flat" }],
      fullTextIndexes: [{ path: "/text" }],
    },
  };
  const { container } = await t.database.containers.create(structuredClone(definition));
  const { resource } = await container.read();
  assert.deepEqual(resource.vectorEmbeddingPolicy, definition.vectorEmbeddingPolicy);
  assert.deepEqual(resource.fullTextPolicy, definition.fullTextPolicy);
  assert.deepEqual(resource.indexingPolicy.fullTextIndexes, [{ path: "/text" }]);
  assert.equal(resource.indexingPolicy.vectorIndexes[0].type, "flat");
});

test("a hierarchical definition comes back as MultiHash", async () => {
  const partitionKey = { paths: ["/t", "/u", "/s"], kind: "MultiHash", version: 2 };
  const container = await t.container({ partitionKey });
  assert.deepEqual((await container.read()).resource.partitionKey, partitionKey);
});

test("a name is taken once, and createIfNotExists knows it", async () => {
  const body = () => ({ id: "taken", partitionKey: "/pk" });
  assert.equal((await t.database.containers.createIfNotExists(body())).statusCode, 201);
  assert.equal((await t.database.containers.createIfNotExists(body())).statusCode, 200);
  await fails(t.database.containers.create(body()), 409);
});

test("a container needs its database", async () => {
  const missing = t.client.database(unique("missing"));
  await fails(missing.containers.create({ id: "c", partitionKey: "/pk" }), 404, 1003);
  await fails(missing.container("c").read(), 404);
});

test("a missing container is 404 to read, and its items are below a missing owner", async () => {
  const missing = t.database.container(unique("missing"));
  await fails(missing.read(), 404);
  await fails(missing.delete(), 404);
  const { status, headers } = await t.raw("GET", `/dbs/${t.database.id}/colls/none/docs/a`, {
    headers: { "x-ms-documentdb-partitionkey": '["p"]' },
  });
  assert.deepEqual([status, headers["x-ms-substatus"]], [404, "1003"]);
});

test("replace changes the indexing policy and the default ttl", async () => {
  const container = await t.container();
  const { resource: before } = await container.read();
  const { resource, statusCode } = await container.replace({
    ...before,
    defaultTtl: -1,
    indexingPolicy: {
      indexingMode: "consistent",
      automatic: true,
      includedPaths: [{ path: "/*" }],
      excludedPaths: [{ path: "/big/*" }],
    },
  });
  assert.equal(statusCode, 200);
  assert.equal(resource.defaultTtl, -1);
  assert.equal(resource._rid, before._rid);
  assert.notEqual(resource._etag, before._etag);
  const { resource: read } = await container.read();
  assert.deepEqual(read, resource);
  assert.ok(read.indexingPolicy.excludedPaths.some(({ path }) => path === "/big/*"));
});

test("replace without an indexing policy goes back to the default", async () => {
  const container = await t.container({
    indexingPolicy: { includedPaths: [{ path: "/a/?" }], excludedPaths: [{ path: "/*" }] },
  });
  const { resource: before } = await container.read();
  const { indexingPolicy, ...rest } = before;
  const { resource } = await container.replace(rest);
  assert.deepEqual(resource.indexingPolicy.includedPaths, [{ path: "/*" }]);
});

test("replace honours If-Match", async () => {
  const container = await t.container();
  const { resource } = await container.read();
  const condition = { type: "IfMatch", condition: resource._etag };
  await container.replace({ ...resource, defaultTtl: 10 }, { accessCondition: condition });
  await fails(container.replace({ ...resource, defaultTtl: 20 }, { accessCondition: condition }), 412);
});

test("the partition key and the unique keys are fixed for life", async () => {
  const container = await t.container({ uniqueKeyPolicy: { uniqueKeys: [{ paths: ["/u"] }] } });
  const { resource } = await container.read();
  const otherKey = { ...resource.partitionKey, paths: ["/other"] };
  await fails(container.replace({ ...resource, partitionKey: otherKey }), 400);
  const otherUnique = { uniqueKeys: [{ paths: ["/v"] }] };
  const error = await container.replace({ ...resource, uniqueKeyPolicy: otherUnique }).catch((e) => e);
  assert.ok([400, 403].includes(error.code), `refused, not ${error.code}`);
  assert.deepEqual((await container.read()).resource, resource);
});

test("delete answers 204, and a new container of the name has a new rid and no items", async () => {
  const container = await t.container();
  await container.items.create({ id: "a", pk: "p" });
  const { resource: before } = await container.read();
  assert.equal((await container.delete()).statusCode, 204);
  await fails(container.read(), 404);
  await t.container({ id: container.id });
  const { resource: after } = await container.read();
  assert.notEqual(after._rid, before._rid);
  assert.equal((await container.item("a", "p").read()).statusCode, 404);
});

test("readAll and query list containers", async () => {
  const { database } = await t.client.databases.create({ id: unique("db") });
  for (const id of ["a", "b", "c"]) await database.containers.create({ id, partitionKey: "/pk" });
  assert.deepEqual(sorted(ids(await all(database.containers.readAll()))), ["a", "b", "c"]);
  const query = {
    query: "SELECT * FROM c WHERE c.id = @id",
    parameters: [{ name: "@id", value: "b" }],
  };
  assert.deepEqual(ids(await all(database.containers.query(query))), ["b"]);
  const first = await database.containers.readAll({ maxItemCount: 2 }).fetchNext();
  assert.equal(first.resources.length, 2);
  assert.ok(first.hasMoreResults);
});

test("read with quota info says how far the index is", async () => {
  const container = await t.container();
  const { headers } = await container.read({ populateQuotaInfo: true });
  assert.equal(headers["x-ms-documentdb-collection-index-transformation-progress"], "100");
  assert.match(headers["x-ms-resource-usage"], /documentsCount=0/);
  assert.match(headers["x-ms-resource-quota"], /=/);
});

test("a definition that contradicts itself is refused", async () => {
  const paths = (...list) => list.map((path) => ({ path }));
  const bad = {
    "key path without slash": { partitionKey: { paths: ["pk"], kind: "Hash", version: 2 } },
    "four key levels": {
      partitionKey: { paths: ["/a", "/b", "/c", "/d"], kind: "MultiHash", version: 2 },
    },
    "hierarchical key of hash version 1": {
      partitionKey: { paths: ["/a", "/b"], kind: "MultiHash", version: 1 },
    },
    "wildcard key": { partitionKey: { paths: ["/a/*"], kind: "Hash", version: 2 } },
    "ttl of zero": { defaultTtl: 0 },
    "ttl below -1": { defaultTtl: -2 },
    "root in both lists": {
      indexingPolicy: { includedPaths: paths("/*"), excludedPaths: paths("/*") },
    },
    "root in neither list": {
      indexingPolicy: { includedPaths: paths("/a/?"), excludedPaths: paths("/b/?") },
    },
    "lazy indexing": { indexingPolicy: { indexingMode: "lazy" } },
    "ttl without index": {
      defaultTtl: 10,
      indexingPolicy: { indexingMode: "none", automatic: false, includedPaths: [], excludedPaths: [] },
    },
    "composite of one path": {
      indexingPolicy: {
        includedPaths: paths("/*"),
        excludedPaths: [],
        compositeIndexes: [[{ path: "/a", order: "ascending" }]],
      },
    },
    "unique key without paths": { uniqueKeyPolicy: { uniqueKeys: [{ paths: [] }] } },
  };
  for (const [what, part] of Object.entries(bad)) {
    const refused = t.container(part).then(
      () => assert.fail(`accepted: ${what}`),
      (error) => error,
    );
    const error = await refused;
    assert.equal(error.code, 400, `${what}: ${error.message}`);
  }
});

test("a container name has at most 255 characters", async () => {
  const longest = unique("n").padEnd(255, "x");
  await t.container({ id: longest });
  assert.equal((await t.database.container(longest).read()).resource.id, longest);
  await fails(t.container({ id: `${longest}x` }), 400);
});

test("a container has one feed range, and more with much throughput", async () => {
  const one = await t.container();
  assert.equal((await one.getFeedRanges()).length, 1);
  const many = await t.container({ throughput: 30_000 });
  const ranges = await many.getFeedRanges();
  assert.equal(ranges.length, 3);
  assert.equal(ranges[0].minInclusive, "");
  assert.equal(ranges.at(-1).maxExclusive, "FF");
  for (let n = 1; n < ranges.length; n++) {
    assert.equal(ranges[n].minInclusive, ranges[n - 1].maxExclusive);
  }
  const resources = await all(many.readPartitionKeyRanges());
  assert.deepEqual(sorted(ids(resources)), ["0", "1", "2"]);
});

test("a container can be addressed by its self link", async () => {
  const container = await t.container();
  await container.items.create({ id: "a", pk: "p", v: 1 });
  const { resource } = await container.read();
  const [, dbRid, , collRid] = resource._self.split("/");
  const answer = await t.raw("GET", `/dbs/${dbRid}/colls/${collRid}`, {
    sign: { type: "colls", link: collRid.toLowerCase() },
  });
  assert.equal(answer.status, 200, answer.text);
  assert.equal(answer.json.id, container.id);
});
