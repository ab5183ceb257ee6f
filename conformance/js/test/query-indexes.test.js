// Queries that a definition of the container makes possible: composite, spatial, full-text and
// vector indexes, computed properties. Over one physical partition and over three.

import assert from "node:assert/strict";

import { answers as expects, ask, shelves } from "../lib/books.js";
import { all, fails, serve, test } from "../lib/fixture.js";

const t = serve();

/** The items in a container with one physical partition and in one with three. */
async function both(definition, items) {
  const containers = [await t.container(definition), await t.container({ throughput: 30_000, ...definition })];
  for (const container of containers) {
    for (const item of items) await container.items.create({ pk: item.id, ...item });
  }
  return containers;
}

function composite(...indexes) {
  const paths = (index) => index.map(([path, order]) => ({ path, order }));
  return { indexingPolicy: { includedPaths: [{ path: "/*" }], excludedPaths: [], compositeIndexes: indexes.map(paths) } };
}

test("ORDER BY two keys with a composite index, in its order and the opposite", async () => {
  const containers = await shelves(t, composite([["/land", "ascending"], ["/price", "descending"]]));
  const ids = ["africa", "winter", "kalevala", "egyptian", "peer", "hunger", "pan", "ghosts", "nils", "gösta", "inferno", "father"];
  const inOrder = (query, expected) => expects(containers, query, expected, { ordered: true });
  await inOrder("SELECT VALUE c.id FROM c ORDER BY c.land ASC, c.price DESC", ids);
  await inOrder("SELECT VALUE c.id FROM c ORDER BY c.land DESC, c.price ASC", ids.toReversed());
  await inOrder("SELECT TOP 5 VALUE c.id FROM c ORDER BY c.land, c.price DESC", ids.slice(0, 5));
  await inOrder("SELECT VALUE c.id FROM c ORDER BY c.land, c.price DESC OFFSET 3 LIMIT 4", ids.slice(3, 7));
  await inOrder("SELECT VALUE c.id FROM c WHERE c.price < 15 ORDER BY c.land, c.price DESC", ["winter", "hunger", "pan", "ghosts", "gösta", "inferno", "father"]);
});

test("ORDER BY two keys keeps items that lack them", async () => {
  const containers = await shelves(t, composite([["/stars", "ascending"], ["/year", "ascending"]]));
  const expected = [1867, 1937, 1881, 1945, 1835, 1897, 1894, 1890, 1891, 1887];
  const scalar = "NOT (IS_ARRAY(c.stars) OR IS_OBJECT(c.stars))";
  await expects(containers, `SELECT VALUE c.year FROM c WHERE ${scalar} ORDER BY c.stars, c.year`, expected, { ordered: true });
  await expects(containers, `SELECT VALUE c.year FROM c WHERE ${scalar} ORDER BY c.stars DESC, c.year DESC`, expected.toReversed(), { ordered: true });
});

test("ORDER BY two keys without their composite index is 400", async () => {
  const containers = await shelves(t, composite([["/land", "ascending"], ["/price", "descending"]]));
  for (const container of containers) {
    for (const order of ["c.land, c.price", "c.price DESC, c.land", "c.land, c.year", "c.land, c.price DESC, c.year"]) {
      const error = await fails(container.items.query(`SELECT * FROM c ORDER BY ${order}`).fetchAll(), 400);
      assert.match(error.body.message, /does not have a corresponding composite index/, order);
    }
  }
});

test("ORDER BY three keys", async () => {
  const containers = await shelves(t, composite([["/land", "ascending"], ["/author", "ascending"], ["/year", "descending"]]));
  const expected = ["winter", "africa", "kalevala", "egyptian", "pan", "hunger", "ghosts", "peer", "nils", "gösta", "inferno", "father"];
  await expects(containers, "SELECT VALUE c.id FROM c ORDER BY c.land, c.author, c.year DESC", expected, { ordered: true });
});

test("the client merges two keys to the same order", async () => {
  const [, many] = await shelves(t, composite([["/land", "ascending"], ["/price", "descending"]]));
  const expected = ["africa", "winter", "kalevala", "egyptian", "peer", "hunger", "pan", "ghosts", "nils", "gösta", "inferno", "father"];
  await expects([many], "SELECT VALUE c.id FROM c ORDER BY c.land, c.price DESC", expected, { ordered: true, forceQueryPlan: true });
});

const COMPUTED = {
  computedProperties: [
    { name: "decade", query: "SELECT VALUE FLOOR(c.year / 10) * 10 FROM c" },
    { name: "lower", query: "SELECT VALUE LOWER(c.author) FROM c" },
  ],
};

test("computed properties read like stored ones", async () => {
  const containers = await shelves(t, COMPUTED);
  const { resource } = await containers[0].read();
  assert.deepEqual(resource.computedProperties, COMPUTED.computedProperties);
  await expects(containers, "SELECT VALUE c.id FROM c WHERE c.decade = 1890", ["hunger", "pan", "inferno", "gösta"]);
  await expects(containers, "SELECT c.decade, c.lower FROM c WHERE c.id = 'nils'", [{ decade: 1900, lower: "lagerlöf" }]);
  await expects(containers, "SELECT c.decade, COUNT(1) AS n FROM c WHERE c.land = 'no' GROUP BY c.decade", [
    { decade: 1860, n: 1 },
    { decade: 1880, n: 1 },
    { decade: 1890, n: 2 },
  ]);
});

test("computed properties are no part of the item", async () => {
  for (const container of await shelves(t, COMPUTED)) {
    const [item] = await all(container.items.query("SELECT * FROM c WHERE c.id = 'pan'"));
    assert.equal(item.decade, undefined);
    assert.deepEqual(item, (await container.item("pan", "Hamsun").read()).resource);
  }
});

test("ORDER BY a computed property that is indexed", async () => {
  const indexingPolicy = { includedPaths: [{ path: "/*" }, { path: "/lower/?" }], excludedPaths: [] };
  const containers = await shelves(t, { ...COMPUTED, indexingPolicy });
  await expects(containers, "SELECT DISTINCT VALUE c.lower FROM c ORDER BY c.lower", ["blixen", "hamsun", "ibsen", "lagerlöf", "lönnrot", "strindberg", "waltari"], { ordered: true });
  await expects(containers, "SELECT VALUE c.lower FROM c WHERE c.land = 'se' ORDER BY c.lower DESC", ["strindberg", "strindberg", "lagerlöf", "lagerlöf"], { ordered: true });
});

test("computed properties whose query cannot be read are 400", async () => {
  for (const query of ["nonsense", "SELECT VALUE FROM c", "SELECT VALUE LOWER( FROM c"]) {
    await fails(t.container({ computedProperties: [{ name: "x", query }] }), 400);
  }
});

const point = (longitude, latitude) => ({ type: "Point", coordinates: [longitude, latitude] });
const PLACES = [
  { id: "oslo", at: point(10.7522, 59.9139) },
  { id: "drammen", at: point(10.2045, 59.744) },
  { id: "bergen", at: point(5.3221, 60.3913) },
  { id: "tromsø", at: point(18.9553, 69.6492) },
  { id: "stockholm", at: point(18.0686, 59.3293) },
  { id: "nowhere" },
];
const SPATIAL = {
  indexingPolicy: {
    includedPaths: [{ path: "/*" }],
    excludedPaths: [],
    spatialIndexes: [{ path: "/at/*", types: ["Point", "Polygon"] }],
  },
};

test("ST_DISTANCE finds what is near", async () => {
  const containers = await both(SPATIAL, PLACES);
  const near = (metres) => ask("SELECT VALUE c.id FROM c WHERE ST_DISTANCE(c.at, @here) < @metres", { here: point(10.75, 59.91), metres });
  await expects(containers, near(1_000), ["oslo"]);
  await expects(containers, near(50_000), ["oslo", "drammen"]);
  await expects(containers, near(350_000), ["oslo", "drammen", "bergen"]);
  await expects(containers, near(3_000_000), ["oslo", "drammen", "bergen", "stockholm", "tromsø"]);
});

test("ST_DISTANCE measures in metres", async () => {
  for (const container of await both(SPATIAL, PLACES)) {
    const query = ask("SELECT VALUE ST_DISTANCE(c.at, @here) FROM c WHERE c.id = 'bergen'", { here: point(10.7522, 59.9139) });
    const [metres] = await all(container.items.query(query));
    assert.ok(Math.abs(metres - 305_500) < 2_000, `${metres} m`);
  }
});

test("ST_WITHIN and ST_INTERSECTS", async () => {
  const containers = await both(SPATIAL, PLACES);
  const ring = [[9, 59], [12, 59], [12, 61], [9, 61], [9, 59]];
  const area = { type: "Polygon", coordinates: [ring] };
  await expects(containers, ask("SELECT VALUE c.id FROM c WHERE ST_WITHIN(c.at, @area)", { area }), ["oslo", "drammen"]);
  await expects(containers, ask("SELECT VALUE c.id FROM c WHERE ST_INTERSECTS(@area, c.at)", { area }), ["oslo", "drammen"]);
});

const TEXTS = [
  { id: "a", text: "The red bicycle is parked near the red barn" },
  { id: "b", text: "A blue bicycle and a red scooter, both old, stand in the rain by the river" },
  { id: "c", text: "A green tractor in the barn" },
  { id: "d", text: "Mountains and rivers without end" },
  { id: "e" },
];
const FULL_TEXT = {
  fullTextPolicy: { defaultLanguage: "en-US", fullTextPaths: [{ path: "/text", language: "en-US" }] },
  indexingPolicy: { includedPaths: [{ path: "/*" }], excludedPaths: [], fullTextIndexes: [{ path: "/text" }] },
};

test("FullTextContains finds words and phrases", async () => {
  const containers = await both(FULL_TEXT, TEXTS);
  const where = (filter, ...expected) => expects(containers, `SELECT VALUE c.id FROM c WHERE ${filter}`, expected);
  await where("FullTextContains(c.text, 'bicycle')", "a", "b");
  await where("FullTextContains(c.text, 'BARN')", "a", "c");
  await where("FullTextContains(c.text, 'red bicycle')", "a");
  await where("FullTextContains(c.text, 'bike')");
  await where("FullTextContainsAll(c.text, 'red', 'barn')", "a");
  await where("FullTextContainsAny(c.text, 'scooter', 'tractor')", "b", "c");
  await expects(containers, ask("SELECT VALUE c.id FROM c WHERE FullTextContains(c.text, @word)", { word: "tractor" }), ["c"]);
});

test("ORDER BY RANK FullTextScore brings the best first", async () => {
  const [one] = await both(FULL_TEXT, TEXTS);
  const rank = (query, expected) => expects([one], query, expected, { ordered: true });
  await rank("SELECT TOP 2 VALUE c.id FROM c ORDER BY RANK FullTextScore(c.text, 'red')", ["a", "b"]);
  await rank("SELECT TOP 1 VALUE c.id FROM c ORDER BY RANK FullTextScore(c.text, 'green', 'tractor')", ["c"]);
  await rank("SELECT TOP 2 VALUE c.id FROM c WHERE FullTextContains(c.text, 'barn') ORDER BY RANK FullTextScore(c.text, 'red', 'barn')", ["a", "c"]);
});

test("ORDER BY RANK over several partitions is as over one", async () => {
  const containers = await both(FULL_TEXT, TEXTS);
  const rank = (query, expected) => expects(containers, query, expected, { ordered: true });
  await rank("SELECT TOP 2 VALUE c.id FROM c ORDER BY RANK FullTextScore(c.text, 'red')", ["a", "b"]);
  await rank("SELECT VALUE c.id FROM c ORDER BY RANK FullTextScore(c.text, 'red') OFFSET 1 LIMIT 1", ["b"]);
});

test("FullTextScore elsewhere is 400", async () => {
  const [one] = await both(FULL_TEXT, TEXTS);
  await fails(one.items.query("SELECT VALUE FullTextScore(c.text, 'red') FROM c").fetchAll(), 400);
  await fails(one.items.query("SELECT * FROM c ORDER BY FullTextScore(c.text, 'red')").fetchAll(), 400);
});

const VECTORS = [
  { id: "east", v: [1, 0, 0] },
  { id: "north", v: [0, 1, 0] },
  { id: "up", v: [0, 0, 1] },
  { id: "northeast", v: [1, 1, 0] },
  { id: "far", v: [9, 9, 9] },
];

function vectors(distanceFunction, type) {
  return {
    vectorEmbeddingPolicy: { vectorEmbeddings: [{ path: "/v", dataType: "float32", dimensions: 3, distanceFunction }] },
    indexingPolicy: { includedPaths: [{ path: "/*" }], excludedPaths: [{ path: "/v/*" }], vectorIndexes: [{ path: "/v", type }] },
  };
}

test("ORDER BY VectorDistance brings the nearest first", async () => {
  const containers = await both(vectors("euclidean", "flat"), VECTORS);
  const nearest = (to, n, expected) =>
    expects(containers, ask(`SELECT TOP ${n} VALUE c.id FROM c ORDER BY VectorDistance(c.v, @to)`, { to }), expected, { ordered: true });
  await nearest([1, 0.2, 0], 1, ["east"]);
  await nearest([1, 0.2, 0], 3, ["east", "northeast", "north"]);
  await nearest([8, 8, 8], 1, ["far"]);
  await nearest([0, 0, 2], 1, ["up"]);
});

test("VectorDistance follows the function of the policy", async () => {
  const to = [2, 0, 0];
  const query = (id) => ask(`SELECT VALUE VectorDistance(c.v, @to) FROM c WHERE c.id = '${id}'`, { to });
  const euclidean = await both(vectors("euclidean", "flat"), VECTORS);
  await expects(euclidean, query("east"), [1]);
  const cosine = await both(vectors("cosine", "quantizedFlat"), VECTORS);
  await expects(cosine, query("east"), [1]);
  await expects(cosine, query("north"), [0]);
  const dot = await both(vectors("dotproduct", "diskANN"), VECTORS);
  await expects(dot, query("far"), [18]);
});

test("ORDER BY VectorDistance with a score beside it and a filter", async () => {
  const containers = await both(vectors("dotproduct", "flat"), VECTORS);
  const query = ask("SELECT TOP 2 c.id, VectorDistance(c.v, @to) AS score FROM c WHERE c.id != 'far' ORDER BY VectorDistance(c.v, @to)", { to: [2, 1, 0] });
  await expects(containers, query, [{ id: "northeast", score: 3 }, { id: "east", score: 2 }], { ordered: true });
});

test("ORDER BY RANK merged by the client is as the server has it", async () => {
  const definition = vectors("cosine", "flat");
  definition.fullTextPolicy = FULL_TEXT.fullTextPolicy;
  definition.indexingPolicy.fullTextIndexes = FULL_TEXT.indexingPolicy.fullTextIndexes;
  const items = TEXTS.slice(0, 4).map((text, at) => ({ ...text, v: VECTORS[at].v, n: at }));
  const containers = await both(definition, [...items, { id: "neither", n: 9 }]);
  const same = async (query, expected) => {
    await expects(containers, query, expected, { ordered: true });
    await expects(containers, query, expected, { ordered: true, forceQueryPlan: true });
  };
  const ids = (...ids) => ids.map((id) => ({ id }));
  await same("SELECT TOP 2 c.id FROM c ORDER BY RANK FullTextScore(c.text, 'red')", ids("a", "b"));
  await same("SELECT c.id FROM c ORDER BY RANK FullTextScore(c.text, 'red') OFFSET 1 LIMIT 1", ids("b"));
  await same("SELECT TOP 1 c.id, c.n FROM c WHERE c.n > 0 ORDER BY RANK FullTextScore(c.text, 'red', 'scooter')", [{ id: "b", n: 1 }]);
  const fused = (functions, top) => ask(`SELECT TOP ${top} c.id FROM c ORDER BY RANK RRF(${functions})`, { to: [0, 1, 0] });
  await same(fused("FullTextScore(c.text, 'bicycle'), FullTextScore(c.text, 'scooter'), FullTextScore(c.text, 'rain')", 1), ids("b"));
  await same(fused("VectorDistance(c.v, @to), FullTextScore(c.text, 'red')", 1), ids("b"));
  await same(fused("FullTextScore(c.text, 'tractor'), VectorDistance(c.v, @to), [5, 1]", 1), ids("c"));
});
