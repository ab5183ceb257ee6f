// What queries answer, over one physical partition and over three: aggregates, groups, order,
// joins, subqueries, parameters, functions, errors. `answers` asks each in three page sizes.

import assert from "node:assert/strict";

import { answers as expects, ask, byText, shelves } from "../lib/books.js";
import { all, fails, serve, test } from "../lib/fixture.js";

let one, many;
const t = serve(async () => {
  [one, many] = await shelves(t);
});

const answers = (query, expected, options) => expects([one, many], query, expected, options);
const inOrder = (query, expected) => answers(query, expected, { ordered: true });
const where = (filter, ...expected) => answers(`SELECT VALUE c.id FROM c WHERE ${filter}`, expected);

test("aggregates as values", async () => {
  await answers("SELECT VALUE COUNT(1) FROM c", [12]);
  await answers("SELECT VALUE COUNT(c.stars) FROM c", [10]);
  await answers("SELECT VALUE SUM(c.price) FROM c", [168.5]);
  await answers("SELECT VALUE AVG(c.year) FROM c WHERE c.land = 'dk'", [1939.5]);
  await answers("SELECT VALUE MIN(c.year) FROM c", [1835]);
  await answers("SELECT VALUE MAX(c.id) FROM c", ["winter"]);
});

test("aggregates by name stand in one row", async () => {
  await answers(
    "SELECT COUNT(1) AS n, SUM(c.price) AS sum, AVG(c.price) AS mean, MIN(c.price) AS least, MAX(c.price) AS most FROM c WHERE c.land = 'se'",
    [{ n: 4, sum: 52, mean: 13, least: 7, most: 20 }],
  );
  await answers("SELECT COUNT(1), MAX(c.year) FROM c", [{ $1: 12, $2: 1945 }]);
});

test("aggregates over nothing", async () => {
  await answers("SELECT VALUE COUNT(1) FROM c WHERE false", [0]);
  await answers("SELECT VALUE SUM(c.none) FROM c", [0]);
  await answers("SELECT VALUE AVG(c.none) FROM c", []);
  await answers("SELECT VALUE MAX(c.none) FROM c", []);
  await answers("SELECT COUNT(c.none) AS n, AVG(c.none) AS mean FROM c", [{ n: 0 }]);
});

test("aggregates over several types", async () => {
  await answers("SELECT VALUE SUM(c.stars) FROM c", []);
  await answers("SELECT VALUE AVG(c.stars) FROM c WHERE IS_NUMBER(c.stars)", [4.25]);
  await answers("SELECT VALUE MIN(c.stars) FROM c WHERE IS_PRIMITIVE(c.stars)", [null]);
  await answers("SELECT VALUE MAX(c.stars) FROM c WHERE IS_PRIMITIVE(c.stars)", ["three"]);
  await answers("SELECT VALUE MAX(c.stars) FROM c", []);
});

test("aggregates of expressions", async () => {
  await answers("SELECT VALUE SUM(c.price * 2) FROM c", [337]);
  await answers("SELECT VALUE MAX(ARRAY_LENGTH(c.tags)) FROM c", [3]);
});

test("groups carry several aggregates", async () => {
  await answers(
    "SELECT c.land, COUNT(1) AS n, SUM(c.price) AS sum, MIN(c.year) AS first, MAX(c.year) AS last, AVG(c.price) AS mean FROM c GROUP BY c.land",
    [
      { land: "no", n: 4, sum: 44.5, first: 1867, last: 1894, mean: 11.125 },
      { land: "se", n: 4, sum: 52, first: 1887, last: 1906, mean: 13 },
      { land: "dk", n: 2, sum: 29, first: 1937, last: 1942, mean: 14.5 },
      { land: "fi", n: 2, sum: 43, first: 1835, last: 1945, mean: 21.5 },
    ],
  );
});

test("groups by two keys", async () => {
  await answers("SELECT c.land, c.author, COUNT(1) AS n FROM c WHERE c.land IN ('no', 'fi') GROUP BY c.land, c.author", [
    { land: "no", author: "Hamsun", n: 2 },
    { land: "no", author: "Ibsen", n: 2 },
    { land: "fi", author: "Lönnrot", n: 1 },
    { land: "fi", author: "Waltari", n: 1 },
  ]);
});

test("groups by an expression, and the missing value is a group", async () => {
  await answers("SELECT c.year < 1900 AS old, COUNT(1) AS n FROM c GROUP BY c.year < 1900", [
    { old: true, n: 8 },
    { old: false, n: 4 },
  ]);
  await answers("SELECT ARRAY_LENGTH(c.editions) AS editions, COUNT(1) AS n FROM c GROUP BY ARRAY_LENGTH(c.editions)", [
    { editions: 2, n: 2 },
    { editions: 1, n: 1 },
    { editions: 0, n: 1 },
    { n: 8 },
  ]);
  await answers("SELECT VALUE COUNT(1) FROM c GROUP BY c.land", [4, 4, 2, 2]);
});

test("TOP, OFFSET and LIMIT take different groups", async () => {
  for (const container of [one, many]) {
    for (const maxItemCount of [undefined, 1, 3]) {
      const lands = async (query) => (await all(container.items.query(query, { maxItemCount }))).map((row) => row.land);
      assert.equal(new Set(await lands("SELECT TOP 3 c.land, COUNT(1) AS n FROM c GROUP BY c.land")).size, 3);
      assert.equal(new Set(await lands("SELECT c.land, COUNT(1) AS n FROM c GROUP BY c.land OFFSET 1 LIMIT 2")).size, 2);
      assert.equal((await lands("SELECT c.land, COUNT(1) AS n FROM c GROUP BY c.land OFFSET 3 LIMIT 9")).length, 1);
    }
  }
});

test("groups over joined rows", async () => {
  await answers("SELECT tag, COUNT(1) AS n FROM c JOIN tag IN c.tags GROUP BY tag", [
    { tag: "classic", n: 5 },
    { tag: "short", n: 1 },
    { tag: "play", n: 3 },
    { tag: "long", n: 4 },
    { tag: "children", n: 1 },
    { tag: "memoir", n: 1 },
    { tag: "epic", n: 1 },
  ]);
});

test("ORDER BY a number, both ways", async () => {
  const ids = ["father", "ghosts", "pan", "inferno", "hunger", "winter", "gösta", "peer", "africa", "egyptian", "nils", "kalevala"];
  await inOrder("SELECT VALUE c.id FROM c ORDER BY c.price", ids);
  await inOrder("SELECT VALUE c.id FROM c ORDER BY c.price ASC", ids);
  await inOrder("SELECT VALUE c.id FROM c ORDER BY c.price DESC", ids.toReversed());
});

test("ORDER BY a string is ordinal", async () => {
  const ids = ["africa", "egyptian", "father", "ghosts", "gösta", "hunger", "inferno", "kalevala", "nils", "pan", "peer", "winter"];
  await inOrder("SELECT VALUE c.id FROM c ORDER BY c.id", ids);
  await inOrder("SELECT VALUE c.id FROM c ORDER BY c.id DESC", ids.toReversed());
});

test("ORDER BY brings missing values and every type in their order", async () => {
  for (const container of [one, many]) {
    for (const maxItemCount of [undefined, 1, 3]) {
      const order = async (direction) =>
        all(container.items.query(`SELECT c.id, c.stars FROM c ORDER BY c.stars ${direction}`, { maxItemCount }));
      const stars = [undefined, undefined, null, false, true, 3, 4, 5, 5, "three", [5], { of: 5 }];
      const up = await order("ASC");
      assert.deepEqual(up.map((row) => row.stars), stars);
      assert.equal(new Set(up.map((row) => row.id)).size, 12);
      const down = await order("DESC");
      assert.deepEqual(down.map((row) => row.stars), stars.toReversed());
      assert.equal(new Set(down.map((row) => row.id)).size, 12);
    }
  }
});

test("ORDER BY under a filter, by a key that is not projected", async () => {
  await inOrder("SELECT c.author, c.price FROM c WHERE c.land = 'se' AND c.price > 7 ORDER BY c.year DESC", [
    { author: "Lagerlöf", price: 20 },
    { author: "Strindberg", price: 11 },
    { author: "Lagerlöf", price: 14 },
  ]);
});

test("ORDER BY a path into an object, and with brackets", async () => {
  await inOrder("SELECT VALUE c.stars FROM c WHERE IS_DEFINED(c.stars.of) ORDER BY c.stars.of", [{ of: 5 }]);
  await inOrder('SELECT VALUE c["id"] FROM c WHERE c["land"] = "dk" ORDER BY c["year"]', ["africa", "winter"]);
});

test("ORDER BY an expression is 400", async () => {
  for (const container of [one, many]) {
    await fails(container.items.query("SELECT * FROM c ORDER BY LOWER(c.id)").fetchAll(), 400);
    await fails(container.items.query("SELECT * FROM c ORDER BY c.price + 1").fetchAll(), 400);
  }
});

test("DISTINCT rows and values", async () => {
  await answers("SELECT DISTINCT c.land FROM c", [{ land: "no" }, { land: "se" }, { land: "dk" }, { land: "fi" }]);
  await answers("SELECT DISTINCT VALUE c.land FROM c", ["no", "se", "dk", "fi"]);
  await answers("SELECT DISTINCT VALUE c.stars FROM c", [5, 4, null, 3, "three", [5], { of: 5 }, true, false]);
  await answers("SELECT DISTINCT c.stars FROM c WHERE NOT IS_DEFINED(c.stars)", [{}]);
  await answers("SELECT DISTINCT VALUE tag FROM c JOIN tag IN c.tags WHERE c.land = 'no'", ["classic", "short", "play"]);
});

test("DISTINCT VALUE in order", async () => {
  await inOrder("SELECT DISTINCT VALUE c.land FROM c ORDER BY c.land", ["dk", "fi", "no", "se"]);
  await inOrder("SELECT DISTINCT VALUE c.land FROM c ORDER BY c.land DESC", ["se", "no", "fi", "dk"]);
  await inOrder("SELECT DISTINCT c.author FROM c WHERE c.year < 1890 ORDER BY c.author", [
    { author: "Ibsen" },
    { author: "Lönnrot" },
    { author: "Strindberg" },
  ]);
});

test("DISTINCT VALUE in the order of another key keeps the first of equal rows", async () => {
  await inOrder("SELECT DISTINCT VALUE c.land FROM c ORDER BY c.year", ["fi", "no", "se", "dk"]);
  await inOrder("SELECT DISTINCT VALUE c.land FROM c ORDER BY c.year DESC", ["fi", "dk", "se", "no"]);
});

test("COUNT of distinct rows", async () => {
  await answers("SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.land FROM c)", [4]);
});

test("TOP in order", async () => {
  await inOrder("SELECT TOP 5 VALUE c.year FROM c ORDER BY c.year", [1835, 1867, 1881, 1887, 1890]);
  await inOrder("SELECT TOP 2 VALUE c.year FROM c ORDER BY c.year DESC", [1945, 1942]);
  await inOrder("SELECT TOP 0 VALUE c.year FROM c ORDER BY c.year", []);
  await inOrder("SELECT DISTINCT TOP 2 VALUE c.land FROM c ORDER BY c.land", ["dk", "fi"]);
});

test("OFFSET and LIMIT in order", async () => {
  await inOrder("SELECT VALUE c.year FROM c ORDER BY c.year OFFSET 4 LIMIT 5", [1890, 1891, 1894, 1897, 1906]);
  await inOrder("SELECT VALUE c.year FROM c ORDER BY c.year OFFSET 0 LIMIT 1", [1835]);
  await inOrder("SELECT VALUE c.year FROM c ORDER BY c.year OFFSET 10 LIMIT 100", [1942, 1945]);
  await inOrder("SELECT VALUE c.year FROM c ORDER BY c.year OFFSET 12 LIMIT 5", []);
  await inOrder("SELECT VALUE c.year FROM c ORDER BY c.year OFFSET 3 LIMIT 0", []);
});

test("TOP, OFFSET and LIMIT without an order give as many different rows", async () => {
  for (const container of [one, many]) {
    for (const maxItemCount of [undefined, 1, 3]) {
      const rows = async (query) => new Set(await all(container.items.query(query, { maxItemCount }))).size;
      assert.equal(await rows("SELECT TOP 7 VALUE c.id FROM c"), 7);
      assert.equal(await rows("SELECT VALUE c.id FROM c OFFSET 5 LIMIT 4"), 4);
      assert.equal(await rows("SELECT VALUE c.id FROM c OFFSET 9 LIMIT 40"), 3);
    }
  }
});

test("JOIN into an array", async () => {
  await answers("SELECT c.id, e.lang FROM c JOIN e IN c.editions", [
    { id: "hunger", lang: "no" },
    { id: "hunger", lang: "en" },
    { id: "pan", lang: "no" },
    { id: "inferno", lang: "fr" },
    { id: "inferno", lang: "sv" },
  ]);
  await answers("SELECT VALUE e.copies FROM c JOIN e IN c.editions WHERE e.lang = 'no'", [300, 100]);
});

test("JOIN of two arrays is their product within the item", async () => {
  await answers("SELECT e.lang, tag FROM c JOIN e IN c.editions JOIN tag IN c.tags WHERE c.id = 'hunger'", [
    { lang: "no", tag: "classic" },
    { lang: "no", tag: "short" },
    { lang: "en", tag: "classic" },
    { lang: "en", tag: "short" },
  ]);
});

test("JOIN under ORDER BY and aggregates", async () => {
  await inOrder("SELECT c.id, tag FROM c JOIN tag IN c.tags WHERE tag = 'long' ORDER BY c.price DESC", [
    { id: "kalevala", tag: "long" },
    { id: "egyptian", tag: "long" },
    { id: "africa", tag: "long" },
    { id: "gösta", tag: "long" },
  ]);
  await answers("SELECT VALUE SUM(e.copies) FROM c JOIN e IN c.editions", [1020]);
});

test("FROM an array of the items", async () => {
  await answers("SELECT VALUE e.copies FROM e IN c.editions WHERE e.copies >= 100", [300, 500, 100]);
  await answers("SELECT VALUE COUNT(1) FROM tag IN c.tags", [16]);
});

test("EXISTS looks into an array", async () => {
  await where("EXISTS(SELECT VALUE e FROM e IN c.editions WHERE e.copies > 90)", "hunger", "pan");
  await where("NOT EXISTS(SELECT VALUE tag FROM tag IN c.tags)", "inferno", "winter");
  await answers("SELECT c.id, EXISTS(SELECT VALUE e FROM e IN c.editions WHERE e.lang = 'en') AS english FROM c WHERE c.author = 'Hamsun'", [
    { id: "hunger", english: true },
    { id: "pan", english: false },
  ]);
});

test("ARRAY makes an array of a subquery", async () => {
  await answers("SELECT c.id, ARRAY(SELECT VALUE e.lang FROM e IN c.editions) AS langs FROM c WHERE c.land = 'no'", [
    { id: "hunger", langs: ["no", "en"] },
    { id: "pan", langs: ["no"] },
    { id: "peer", langs: [] },
    { id: "ghosts", langs: [] },
  ]);
  await answers("SELECT VALUE ARRAY(SELECT tag AS t FROM tag IN c.tags WHERE tag != 'epic') FROM c WHERE c.id = 'kalevala'", [
    [{ t: "long" }, { t: "classic" }],
  ]);
});

test("scalar subqueries", async () => {
  await answers("SELECT c.id, (SELECT VALUE SUM(e.copies) FROM e IN c.editions) AS copies FROM c WHERE c.land = 'no'", [
    { id: "hunger", copies: 800 },
    { id: "pan", copies: 100 },
    { id: "peer", copies: 0 },
    { id: "ghosts", copies: 0 },
  ]);
  await where("(SELECT VALUE COUNT(1) FROM tag IN c.tags) = 2", "hunger", "peer", "gösta", "africa");
  for (const container of [one, many]) {
    await fails(container.items.query("SELECT VALUE (SELECT VALUE tag FROM tag IN c.tags) FROM c").fetchAll(), 400);
  }
});

test("JOIN of a subquery", async () => {
  await answers(
    "SELECT c.id, e.lang FROM c JOIN (SELECT VALUE e FROM e IN c.editions WHERE e.copies > 90) AS e",
    [{ id: "hunger", lang: "no" }, { id: "hunger", lang: "en" }, { id: "pan", lang: "no" }],
  );
});

test("parameters of every type", async () => {
  const text = "SELECT VALUE c.id FROM c WHERE c.stars = @stars";
  await answers(ask(text, { stars: 5 }), ["hunger", "gösta"]);
  await answers(ask(text, { stars: "three" }), ["father"]);
  await answers(ask(text, { stars: null }), ["ghosts"]);
  await answers(ask(text, { stars: true }), ["kalevala"]);
  await answers(ask(text, { stars: [5] }), ["nils"]);
  await answers(ask(text, { stars: { of: 5 } }), ["winter"]);
});

test("parameters in every place", async () => {
  await inOrder(ask("SELECT TOP @n VALUE c.year FROM c ORDER BY c.year", { n: 3 }), [1835, 1867, 1881]);
  await inOrder(ask("SELECT VALUE c.year FROM c ORDER BY c.year OFFSET @skip LIMIT @take", { skip: 1, take: 2 }), [1867, 1881]);
  await answers(ask("SELECT VALUE c[@name] FROM c WHERE c.tags[@i] = @tag", { name: "id", i: 1, tag: "long" }), ["gösta", "africa", "kalevala"]);
  await answers(ask("SELECT c.id, @extra AS extra FROM c WHERE c.id IN (@a, @b)", { extra: { x: [1] }, a: "pan", b: "nils" }), [
    { id: "pan", extra: { x: [1] } },
    { id: "nils", extra: { x: [1] } },
  ]);
  await answers(ask("SELECT VALUE c.id FROM c WHERE ARRAY_CONTAINS(@lands, c.land) AND c.year BETWEEN @from AND @to", { lands: ["fi", "dk"], from: 1900, to: 1940 }), ["africa"]);
  await answers(ask("SELECT VALUE c.id FROM c WHERE c.id LIKE @like", { like: "p%" }), ["pan", "peer"]);
  await answers(ask("SELECT VALUE e.copies FROM c JOIN e IN c.editions WHERE e.lang = @lang", { lang: "sv" }), [80]);
});

test("a parameter is never read as text of the query", async () => {
  await answers(ask("SELECT VALUE c.id FROM c WHERE c.id = @id", { id: "x' OR '1' = '1" }), []);
});

test("LIKE", async () => {
  await where("c.id LIKE 'p%'", "pan", "peer");
  await where("c.id LIKE '%er'", "hunger", "peer", "father", "winter");
  await where("c.id LIKE '_a%'", "pan", "father", "kalevala");
  await where("c.id LIKE '[e-g]%'", "egyptian", "father", "ghosts", "gösta");
  await where("c.id NOT LIKE '%[aeo]%'", "nils");
  await where("c.printed LIKE '18_!0%' ESCAPE '!'", "hunger");
});

test("regular expressions", async () => {
  await where("RegexMatch(c.id, '^[a-h].*n')", "hunger", "egyptian");
  await where("RegexMatch(c.author, '^l', 'i') AND RegexMatch(c.id, 's$')", "nils");
});

test("functions of strings", async () => {
  await where("STARTSWITH(c.author, 'L')", "gösta", "nils", "kalevala");
  await where("STARTSWITH(c.author, 'HAM', true)", "hunger", "pan");
  await where("CONTAINS(c.id, 'er') AND ENDSWITH(c.id, 'r')", "hunger", "peer", "father", "winter");
  await answers("SELECT UPPER(c.id) AS u, LENGTH(c.author) AS l, SUBSTRING(c.id, 1, 2) AS s, CONCAT(c.land, '-', c.id) AS k, INDEX_OF(c.id, 's') AS i FROM c WHERE c.id = 'gösta'", [
    { u: "GÖSTA", l: 8, s: "ös", k: "se-gösta", i: 2 },
  ]);
});

test("functions of dates", async () => {
  await where("c.printed > '1881-01-01T00:00:00.0000000Z' AND c.printed < '1894-01-01T00:00:00.0000000Z'", "hunger", "ghosts");
  await where("DateTimePart('month', c.printed) = 12", "pan", "ghosts");
  await answers(
    "SELECT DateTimeAdd('day', 20, c.printed) AS later, DateTimeDiff('year', c.printed, '1900-01-01') AS years, YEAR(c.printed) AS y FROM c WHERE c.id = 'hunger'",
    [{ later: "1890-07-05T12:00:00.0000000Z", years: 10, y: 1890 }],
  );
  await answers("SELECT VALUE DateTimeToTimestamp('1970-01-02')", [86_400_000]);
});

test("functions of arrays", async () => {
  await where("ARRAY_CONTAINS(c.tags, 'play')", "peer", "ghosts", "father");
  await where("ARRAY_CONTAINS(c.editions, {lang: 'no'}, true)", "hunger", "pan");
  await where("ARRAY_LENGTH(c.tags) = 3", "kalevala");
  await where("ARRAY_CONTAINS_ANY(c.tags, 'epic', 'memoir')", "kalevala", "africa");
  await answers("SELECT VALUE ARRAY_SLICE(c.tags, 1) FROM c WHERE c.id = 'kalevala'", [["long", "classic"]]);
  await answers("SELECT VALUE ARRAY_CONCAT(c.tags, [c.land]) FROM c WHERE c.author = 'Hamsun'", [["classic", "short", "no"], ["classic", "no"]]);
  await answers("SELECT VALUE SetIntersect(c.tags, ['long']) FROM c WHERE c.author = 'Lagerlöf'", [["long"], []]);
});

test("functions of numbers and types", async () => {
  await answers("SELECT VALUE ROUND(c.price / 3) FROM c WHERE c.author = 'Hamsun'", [4, 3]);
  await where("IS_NUMBER(c.stars) AND FLOOR(c.price) = 9", "pan");
  await where("IS_OBJECT(c.stars) OR IS_ARRAY(c.stars)", "winter", "nils");
  await answers("SELECT VALUE IIF(c.year < 1890, 'old', c.stars ?? 'none') FROM c WHERE c.land = 'dk' OR c.author = 'Ibsen'", ["old", "old", { of: 5 }, "none"]);
});

test("a partition key as an option or as a filter gives the same rows", async () => {
  await answers("SELECT VALUE c.id FROM c ORDER BY c.price", ["gösta", "nils"], { ordered: true, partitionKey: "Lagerlöf" });
  await answers("SELECT VALUE COUNT(1) FROM c", [2], { partitionKey: "Ibsen" });
  await answers("SELECT c.land, SUM(c.price) AS sum FROM c GROUP BY c.land", [{ land: "dk", sum: 29 }], { partitionKey: "Blixen" });
  await answers("SELECT VALUE c.id FROM c", [], { partitionKey: "nobody" });
  await where("c.author = 'Lagerlöf'", "gösta", "nils");
  await where("c.author IN ('Ibsen', 'Waltari')", "peer", "ghosts", "egyptian");
});

test("prefixes of a hierarchical key", async () => {
  const partitionKey = { paths: ["/land", "/author", "/id"], kind: "MultiHash", version: 2 };
  const containers = await shelves(t, { partitionKey });
  const find = (query, key, expected, options) => expects(containers, query, expected, { partitionKey: key, ...options });
  await find("SELECT VALUE c.id FROM c", ["se"], ["inferno", "father", "gösta", "nils"]);
  await find("SELECT VALUE c.id FROM c WHERE c.price > 8", ["no", "Hamsun"], ["hunger", "pan"]);
  await find("SELECT VALUE c.id FROM c", ["no", "Hamsun", "pan"], ["pan"]);
  await find("SELECT VALUE c.year FROM c ORDER BY c.year DESC", ["no"], [1894, 1890, 1881, 1867], { ordered: true });
  await find("SELECT VALUE SUM(c.price) FROM c", ["fi"], [43]);
  await find("SELECT c.author, COUNT(1) AS n FROM c GROUP BY c.author", ["se"], [{ author: "Strindberg", n: 2 }, { author: "Lagerlöf", n: 2 }]);
  await find("SELECT VALUE c.id FROM c", ["xx"], []);
});

test("the client merges aggregates and groups to the same rows", async () => {
  const merged = (query, expected) => expects([many], query, expected, { forceQueryPlan: true });
  await merged("SELECT VALUE SUM(c.price) FROM c", [168.5]);
  await merged("SELECT VALUE AVG(c.year) FROM c WHERE c.land IN ('dk', 'fi')", [1914.75]);
  await merged("SELECT COUNT(1) AS n, MIN(c.year) AS first FROM c", [{ n: 12, first: 1835 }]);
  await merged("SELECT c.land, COUNT(1) AS n, MAX(c.price) AS most FROM c GROUP BY c.land", [
    { land: "no", n: 4, most: 15 },
    { land: "se", n: 4, most: 20 },
    { land: "dk", n: 2, most: 16 },
    { land: "fi", n: 2, most: 25 },
  ]);
  await merged("SELECT DISTINCT VALUE c.land FROM c", ["no", "se", "dk", "fi"]);
});

test("the client merges order, TOP, OFFSET and LIMIT to the same rows", async () => {
  const merged = (query, expected) => expects([many], query, expected, { forceQueryPlan: true, ordered: true });
  await merged("SELECT VALUE c.year FROM c WHERE c.price > 10 ORDER BY c.year", [1835, 1867, 1890, 1891, 1897, 1906, 1937, 1942, 1945]);
  await merged("SELECT TOP 3 VALUE c.year FROM c ORDER BY c.year DESC", [1945, 1942, 1937]);
  await merged("SELECT VALUE c.year FROM c ORDER BY c.year OFFSET 2 LIMIT 3", [1881, 1887, 1890]);
  await merged("SELECT DISTINCT VALUE c.land FROM c ORDER BY c.land DESC", ["se", "no", "fi", "dk"]);
});

test("a syntax error says where and near what", async () => {
  const wrong = async (query, code, start, text) => {
    const error = await fails(one.items.query(query).fetchAll(), 400);
    const { errors } = JSON.parse(/\{.*\}/.exec(error.body.message)[0]);
    assert.equal(errors[0].code, code, query);
    assert.equal(errors[0].severity, "Error");
    assert.equal(errors[0].location.start, start, query);
    assert.match(errors[0].message, text);
  };
  await wrong("SELECT * FORM c", "SC1001", 9, /incorrect syntax near 'FORM'/);
  await wrong("SELECT VALUE c.id\nFROM c\nWHERE c.x = = 1", "SC1001", 37, /incorrect syntax near '='/);
  await wrong("SELECT x.id FROM c", "SC2001", 7, /Identifier 'x' could not be resolved/);
  await wrong("SELECT VALUE nope(c.id) FROM c", "SC2005", 13, /'nope' is not a recognized built-in function name/);
});

test("what cannot be answered is 400", async () => {
  const wrong = ["SELECT * FROM c JOIN t IN c.tags", "SELECT c.land, COUNT(1) FROM c", "SELECT * FROM c GROUP BY c.land", "SELECT VALUE SQRT(-c.price) FROM c", "SELECT * FROM c OFFSET 3", "SELECT TOP -1 * FROM c", "SELECT VALUE ABS(c.price, 1) FROM c", "SELECT * FROM c WHERE c.id IN ()"];
  for (const query of wrong) {
    for (const container of [one, many]) await fails(container.items.query(query).fetchAll(), 400);
  }
});

test("system properties are there to be asked for", async () => {
  for (const container of [one, many]) {
    const { resource } = await container.item("pan", "Hamsun").read();
    const query = ask("SELECT c._rid, c._etag, c._ts FROM c WHERE c._rid = @rid AND c._ts = @ts", { rid: resource._rid, ts: resource._ts });
    const { _rid, _etag, _ts } = resource;
    assert.deepEqual(byText(await all(container.items.query(query))), [{ _rid, _etag, _ts }]);
  }
});
