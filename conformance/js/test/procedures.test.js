// Stored procedures: arguments and answers, transactions, the collection they see, their limits.

import assert from "node:assert/strict";

import { ErrorResponse } from "@azure/cosmos";

import { all, fails, ids, serve, sorted, test } from "../lib/fixture.js";
import { exists, LOG, procedure, run, said } from "../lib/scripts.js";

const t = serve();

test("arguments arrive as they were sent", async () => {
  const container = await t.container();
  const echo = function () { getContext().getResponse().setBody(Array.prototype.slice.call(arguments)); };
  const sent = ["a", 1.5, null, true, { b: [2, "é\u2028"] }, []];
  assert.deepEqual(await run(container, echo, "p", ...sent), sent);
  const execute = await procedure(container, echo);
  assert.deepEqual((await execute("p")).resource, []);
  assert.deepEqual((await execute("p", [])).resource, []);
  assert.deepEqual((await execute("p", "alone")).resource, ["alone"]);
  assert.deepEqual((await execute("p", [[1, 2]])).resource, [[1, 2]]);
});

test("named parameters take arguments by position", async () => {
  const container = await t.container();
  const body = "function greet(name, greeting) { getContext().getResponse().setBody(greeting + ', ' + name + (arguments.length)); }";
  assert.equal(await run(container, body, "p", "Ada", "Hello"), "Hello, Ada2");
});

test("an answer is what the response was given", async () => {
  const container = await t.container();
  const execute = await procedure(container, function (value) { getContext().getResponse().setBody(value); });
  for (const value of ["text", "", 0, -1.5, true, false, [], {}, { a: { b: [null] } }, "é😀"]) {
    assert.deepEqual((await execute("p", [value])).resource, value);
  }
});

test("a procedure that sets nothing answers nothing", async () => {
  const container = await t.container();
  const response = await (await procedure(container, function () { return "ignored"; }))("p");
  assert.equal(response.statusCode, 200);
  assert.ok(!response.resource);
});

test("an answer can be built in pieces", async () => {
  const container = await t.container();
  const body = function () {
    const response = getContext().getResponse();
    response.appendBody("a");
    response.appendBody("b");
    const soFar = response.getBody();
    response.setBody(soFar + soFar);
  };
  assert.equal(await run(container, body, "p"), "abab");
});

test("the last answer counts, also from a callback", async () => {
  const container = await t.container();
  const body = function () {
    const collection = getContext().getCollection();
    getContext().getResponse().setBody("first");
    collection.queryDocuments(collection.getSelfLink(), "SELECT * FROM c", function () {
      getContext().getResponse().setBody("last");
    });
  };
  assert.equal(await run(container, body, "p"), "last");
});

test("an answer has a charge and a session token, and no etag", async () => {
  const container = await t.container();
  const body = function () { __.createDocument(__.getSelfLink(), { id: "a", pk: "p" }); };
  const { headers, requestCharge } = await (await procedure(container, body))("p");
  assert.ok(requestCharge > 4 && requestCharge < 4.2, `${requestCharge} RU: writes of scripts are rebated`);
  assert.match(headers["x-ms-session-token"], /^0:/);
  assert.equal(headers.etag, undefined);
  assert.equal(headers["x-ms-alt-content-path"], `dbs/${t.database.id}/colls/${container.id}`);
  assert.ok(await exists(container, "a"));
});

test("logs come back, escaped, when they are asked for", async () => {
  const container = await t.container();
  const execute = await procedure(container, function () {
    console.log("100% é\n");
    console.log("%s of %s", 1, "two");
  });
  const { headers } = await execute("p", [], { enableScriptLogging: true });
  assert.equal(decodeURIComponent(headers[LOG]), "100% é\n1 of two");
  assert.equal((await execute("p")).headers[LOG], undefined);
});

test("logs come back also with a failure", async () => {
  const container = await t.container();
  const execute = await procedure(container, function () { console.log("on the way"); throw new Error("out"); });
  const error = await fails(execute("p", [], { enableScriptLogging: true }), 400);
  assert.equal(decodeURIComponent(error.headers[LOG]), "on the way");
});

test("a log is as long as a header may be, and no longer", async () => {
  const container = await t.container();
  const execute = await procedure(container, function (text, count) { console.log(text.repeat(count)); });
  for (const [text, most] of [["x", 8000], [" ", 2666], ["é", 1333]]) {
    const { headers } = await execute("p", [text, most], { enableScriptLogging: true });
    assert.equal(decodeURIComponent(headers[LOG]), text.repeat(most));
    await fails(execute("p", [text, most + 1], { enableScriptLogging: true }), 400, 413);
    await execute("p", [text, most + 1]);
  }
});

test("an exception is 400 with its text and where it was thrown", async () => {
  const container = await t.container();
  const execute = await procedure(container, "function outer() { function inner() { throw new Error('no \"luck\"'); } inner(); }");
  const error = await fails(execute("p"), 400, 0);
  assert.ok(error instanceof ErrorResponse);
  assert.equal(error.body.code, "BadRequest");
  assert.match(said(error), /^Encountered exception while executing function\. Exception = Error: no "luck"/);
  assert.match(said(error), /Stack trace:[^]*inner/);
});

test("the number of an error is the sub-status", async () => {
  const container = await t.container();
  const execute = await procedure(container, function (number) { throw new Error(number, "numbered"); });
  for (const number of [404, 409, 412, 4242]) {
    assert.match(said(await fails(execute("p", [number]), 400, number)), /numbered/);
  }
  const named = await procedure(container, function () { throw new Error(ErrorCodes.Forbidden, "x"); });
  await fails(named("p"), 400, 403);
});

test("anything can be thrown", async () => {
  const container = await t.container();
  const execute = await procedure(container, function (value) { throw value; });
  assert.match(said(await fails(execute("p", ["just text"]), 400, 0)), /just text/);
  await fails(execute("p", [42]), 400);
  await fails(execute("p", [{ a: 1 }]), 400);
  const broken = await procedure(container, function () { return undefinedName.x; });
  assert.match(said(await fails(broken("p"), 400, 0)), /ReferenceError/);
});

test("a procedure that does not exist is 404", async () => {
  const container = await t.container();
  await fails(container.scripts.storedProcedure("none").execute("p"), 404, 0);
  await fails(t.database.container("none").scripts.storedProcedure("s").execute("p"), 404, 1003);
});

test("a replaced procedure runs its new text", async () => {
  const container = await t.container();
  const { scripts } = container;
  await scripts.storedProcedures.create({ id: "s", body: function () { __.response.setBody(1); } });
  assert.equal((await scripts.storedProcedure("s").execute("p")).resource, 1);
  await scripts.storedProcedure("s").replace({ id: "s", body: function () { __.response.setBody(2); } });
  assert.equal((await scripts.storedProcedure("s").execute("p")).resource, 2);
  await scripts.storedProcedure("s").delete();
  await fails(scripts.storedProcedure("s").execute("p"), 404);
});

test("a procedure creates, reads, replaces and deletes", async () => {
  const container = await t.container();
  const body = function () {
    const collection = getContext().getCollection();
    const seen = [];
    collection.createDocument(collection.getSelfLink(), { id: "a", pk: "p", n: 1 }, function (err, created) {
      if (err) throw err;
      seen.push(created.n, typeof created._etag, typeof created._ts);
      created.n = 2;
      collection.replaceDocument(created._self, created, function (err, replaced) {
        if (err) throw err;
        seen.push(replaced.n, replaced._etag !== created._etag);
        collection.readDocument(collection.getAltLink() + "/docs/a", function (err, read) {
          if (err) throw err;
          seen.push(read.n);
          collection.upsertDocument(collection.getSelfLink(), { id: "b", pk: "p" }, function (err, upserted) {
            if (err) throw err;
            collection.deleteDocument(read._self, function (err) {
              if (err) throw err;
              seen.push(upserted.id);
              getContext().getResponse().setBody(seen);
            });
          });
        });
      });
    });
  };
  assert.deepEqual(await run(container, body, "p"), [1, "string", "number", 2, true, 2, "b"]);
  assert.deepEqual(ids(await all(container.items.readAll())), ["b"]);
});

test("store calls answer whether they were accepted, and run later in order", async () => {
  const container = await t.container();
  const body = function () {
    const order = [];
    const accepted = ["a", "b", "c"].map(function (id) {
      return __.createDocument(__.getSelfLink(), { id: id, pk: "p" }, function (err, doc) {
        order.push(doc.id);
        getContext().getResponse().setBody({ accepted: accepted, order: order });
      });
    });
    order.push("main");
  };
  assert.deepEqual(await run(container, body, "p"), { accepted: [true, true, true], order: ["main", "a", "b", "c"] });
});

test("an exception undoes everything", async () => {
  const container = await t.container();
  await container.items.create({ id: "old", pk: "p", n: 1 });
  const execute = await procedure(container, function (where) {
    const collection = getContext().getCollection();
    const link = collection.getSelfLink();
    collection.createDocument(link, { id: "new", pk: "p" });
    collection.upsertDocument(link, { id: "old", pk: "p", n: 2 });
    collection.deleteDocument(collection.getAltLink() + "/docs/old", function (err) {
      if (err) throw err;
      if (where === "callback") throw new Error("late");
    });
    if (where === "body") throw new Error("early");
  });
  for (const where of ["body", "callback"]) {
    await fails(execute("p", [where]), 400);
    assert.equal((await container.item("old", "p").read()).resource.n, 1);
    assert.ok(!(await exists(container, "new")));
  }
  await execute("p", ["nowhere"]);
  assert.deepEqual(ids(await all(container.items.readAll())), ["new"]);
});

test("a failed call without a callback undoes everything, with its number", async () => {
  const container = await t.container();
  await container.items.create({ id: "taken", pk: "p" });
  const execute = await procedure(container, function () {
    __.createDocument(__.getSelfLink(), { id: "new", pk: "p" });
    __.createDocument(__.getSelfLink(), { id: "taken", pk: "p" });
  });
  await fails(execute("p"), 400, 409);
  assert.ok(!(await exists(container, "new")));
});

test("a failure that a callback swallows undoes nothing", async () => {
  const container = await t.container();
  await container.items.create({ id: "taken", pk: "p" });
  const body = function () {
    __.createDocument(__.getSelfLink(), { id: "new", pk: "p" });
    __.createDocument(__.getSelfLink(), { id: "taken", pk: "p" }, function (err) {
      getContext().getResponse().setBody(err.number);
    });
  };
  assert.equal(await run(container, body, "p"), 409);
  assert.ok(await exists(container, "new"));
});

test("abort undoes everything", async () => {
  const container = await t.container();
  const execute = await procedure(container, function () {
    __.createDocument(__.getSelfLink(), { id: "new", pk: "p" }, function () {
      getContext().abort(new Error(418, "changed my mind"));
    });
  });
  assert.match(said(await fails(execute("p"), 400, 418)), /changed my mind/);
  assert.ok(!(await exists(container, "new")));
});

test("the numbers of store errors", async () => {
  const container = await t.container();
  const { resource } = await container.items.create({ id: "a", pk: "p" });
  await container.items.upsert({ id: "a", pk: "p", n: 2 });
  const body = function (stale) {
    const numbers = [];
    const note = function (err) {
      numbers.push(err ? err.number : 0);
      getContext().getResponse().setBody(numbers);
    };
    const link = __.getAltLink();
    __.readDocument(link + "/docs/none", note);
    __.createDocument(__.getSelfLink(), { id: "a", pk: "p" }, note);
    __.replaceDocument(link + "/docs/a", { id: "a", pk: "p" }, { etag: stale }, note);
    __.replaceDocument(link + "/docs/none", { id: "none", pk: "p" }, note);
    __.deleteDocument(link + "/docs/none", note);
    __.createDocument(__.getSelfLink(), { id: "b", pk: "other" }, note);
    __.queryDocuments(__.getSelfLink(), "SELECT nonsense here", note);
  };
  assert.deepEqual(await run(container, body, "p", resource._etag), [404, 409, 412, 404, 404, 400, 400]);
});

test("wrong uses of the collection throw at once", async () => {
  const container = await t.container();
  const body = function () {
    const number = function (call) {
      try { call(); return 0; } catch (error) { return error.number; }
    };
    getContext().getResponse().setBody([
      number(function () { __.createDocument("dbs/x/colls/y", { id: "a", pk: "p" }); }),
      number(function () { __.createDocument(__.getSelfLink(), null); }),
      number(function () { __.createDocument(__.getSelfLink(), 5); }),
      number(function () { __.readDocument("nonsense"); }),
      number(function () { __.queryDocuments(__.getSelfLink(), 7); }),
      number(function () { __.queryDocuments(__.getSelfLink(), "SELECT 1", {}, "no function"); }),
      number(function () { __.createDocument(); }),
    ]);
  };
  assert.deepEqual(await run(container, body, "p"), [400, 400, 400, 400, 400, 400, 400]);
});

test("the callback of a deletion gets its info second", async () => {
  const container = await t.container();
  await container.items.create({ id: "a", pk: "p" });
  const body = function () {
    __.deleteDocument(__.getAltLink() + "/docs/a", function (err, info) {
      getContext().getResponse().setBody([err === undefined, typeof info, info.id === undefined, arguments.length]);
    });
  };
  const [noError, info, noItem] = await run(container, body, "p");
  assert.deepEqual([noError, info, noItem], [true, "object", true]);
});

test("a missing id is made up on a copy, unless that is disabled", async () => {
  const container = await t.container();
  const body = function () {
    const mine = { pk: "p" };
    __.createDocument(__.getSelfLink(), mine, function (err, made) {
      if (err) throw err;
      const options = { disableAutomaticIdGeneration: true };
      __.createDocument(__.getSelfLink(), { pk: "p" }, options, function (err) {
        getContext().getResponse().setBody([mine.id === undefined, made.id.length > 8, err.number]);
      });
    });
  };
  assert.deepEqual(await run(container, body, "p"), [true, true, 400]);
});

test("links name the container by rid and by name", async () => {
  const container = await t.container();
  const { resource } = await container.read();
  const links = await run(container, function () { __.response.setBody([__.getSelfLink(), __.getAltLink()]); }, "p");
  assert.deepEqual(links, [resource._self, `dbs/${t.database.id}/colls/${container.id}`]);
});

test("point reads see the procedure's own writes, queries do not", async () => {
  const container = await t.container();
  await container.items.create({ id: "old", pk: "p", n: 1 });
  const body = function () {
    const collection = getContext().getCollection();
    const link = collection.getSelfLink();
    collection.createDocument(link, { id: "new", pk: "p", n: 1 });
    collection.upsertDocument(link, { id: "old", pk: "p", n: 2 });
    collection.readDocument(collection.getAltLink() + "/docs/new", function (err, made) {
      if (err) throw err;
      collection.queryDocuments(link, "SELECT c.id, c.n FROM c", function (err, found) {
        if (err) throw err;
        getContext().getResponse().setBody({ read: made.id, found: found });
      });
    });
  };
  assert.deepEqual(await run(container, body, "p"), { read: "new", found: [{ id: "old", n: 1 }] });
});

test("queries have parameters, pages and continuations", async () => {
  const container = await t.container();
  for (let n = 0; n < 7; n += 1) await container.items.create({ id: `i${n}`, pk: "p", n });
  const body = function (least) {
    const collection = getContext().getCollection();
    const query = { query: "SELECT VALUE c.n FROM c WHERE c.n >= @least ORDER BY c.n DESC", parameters: [{ name: "@least", value: least }] };
    const pages = [];
    next();
    function next(continuation) {
      collection.queryDocuments(collection.getSelfLink(), query, { pageSize: 2, continuation: continuation }, function (err, rows, info) {
        if (err) throw err;
        pages.push(rows);
        if (info.continuation) next(info.continuation);
        else getContext().getResponse().setBody(pages);
      });
    }
  };
  assert.deepEqual(await run(container, body, "p", 2), [[6, 5], [4, 3], [2]]);
});

test("a query gives a hundred rows unless another size is asked for", async () => {
  const container = await t.container();
  const operations = (from) => Array.from({ length: 60 }, (_, n) => ({ operationType: "Create", resourceBody: { id: `i${from + n}`, pk: "p" } }));
  for (const from of [0, 60]) await container.items.batch(operations(from), "p");
  const body = function (pageSize) {
    const options = pageSize ? { pageSize: pageSize } : {};
    __.queryDocuments(__.getSelfLink(), "SELECT * FROM c", options, function (err, rows, info) {
      if (err) throw err;
      getContext().getResponse().setBody([rows.length, !!info.continuation]);
    });
  };
  const execute = await procedure(container, body);
  assert.deepEqual((await execute("p")).resource, [100, true]);
  assert.deepEqual((await execute("p", [121])).resource, [120, false]);
});

test("all items are read in pages", async () => {
  const container = await t.container();
  for (const id of ["a", "b", "c"]) await container.items.create({ id, pk: "p" });
  await container.items.create({ id: "foreign", pk: "q" });
  const body = function () {
    const found = [];
    (function next(continuation) {
      __.readDocuments(__.getSelfLink(), { pageSize: 2, continuation: continuation }, function (err, docs, info) {
        if (err) throw err;
        docs.forEach(function (doc) { found.push(doc.id); });
        if (info.continuation) next(info.continuation);
        else getContext().getResponse().setBody(found);
      });
    })();
  };
  assert.deepEqual(sorted(await run(container, body, "p")), ["a", "b", "c"]);
});

test("aggregates, joins and orders run within the partition", async () => {
  const container = await t.container();
  for (let n = 1; n <= 4; n += 1) await container.items.create({ id: `i${n}`, pk: "p", n, tags: ["x", `t${n}`] });
  await container.items.create({ id: "foreign", pk: "q", n: 1000 });
  const body = function (query) {
    __.queryDocuments(__.getSelfLink(), query, function (err, rows) {
      if (err) throw err;
      getContext().getResponse().setBody(rows);
    });
  };
  const execute = await procedure(container, body);
  const ask = async (query) => (await execute("p", [query])).resource;
  assert.deepEqual(await ask("SELECT VALUE SUM(c.n) FROM c"), [10]);
  assert.deepEqual(await ask("SELECT VALUE COUNT(1) FROM c JOIN t IN c.tags WHERE t = 'x'"), [4]);
  assert.deepEqual(await ask("SELECT TOP 2 VALUE c.id FROM c ORDER BY c.n DESC"), ["i4", "i3"]);
});

test("the query API of JavaScript filters, maps, sorts and chains", async () => {
  const container = await t.container();
  for (let n = 1; n <= 4; n += 1) await container.items.create({ id: `i${n}`, pk: "p", n });
  const body = function () {
    const result = __.chain()
      .filter(function (doc) { return doc.n > 1; })
      .sortByDescending(function (doc) { return doc.n; })
      .map(function (doc) { return { id: doc.id, twice: doc.n * 2 }; })
      .pluck("twice")
      .value(function (err, rows) {
        if (err) throw err;
        __.response.setBody(rows);
      });
    if (!result.isAccepted) throw new Error("not accepted");
  };
  assert.deepEqual(await run(container, body, "p"), [8, 6, 4]);
});

test("a filter without a callback becomes the answer", async () => {
  const container = await t.container();
  for (let n = 1; n <= 3; n += 1) await container.items.create({ id: `i${n}`, pk: "p", n });
  const body = function (least) {
    const result = __.filter(function (doc) { return doc.n >= least; });
    if (!result.isAccepted) throw new Error("not accepted");
  };
  const found = await run(container, body, "p", 2);
  assert.deepEqual(sorted(ids(typeof found === "string" ? JSON.parse(found) : found)), ["i2", "i3"]);
});

test("geometries are compared", async () => {
  const container = await t.container();
  const body = function () {
    const point = (x, y) => ({ type: "Point", coordinates: [x, y] });
    const square = { type: "Polygon", coordinates: [[[-1, -1], [1, -1], [1, 1], [-1, 1], [-1, -1]]] };
    const { spatial } = __;
    __.response.setBody({
      distance: Math.round(spatial.distance(point(0, 0), point(0, 1)) / 1000),
      within: [spatial.within(point(0, 0), square), spatial.within(point(5, 0), square)],
      intersects: spatial.intersects(square, point(0.5, 0.5)),
      isValid: [spatial.isValid(point(0, 1)), spatial.isValid(point(0, 100))],
      detailed: spatial.isValidDetailed(point(0, 100)).valid,
    });
  };
  const expected = { distance: 111, within: [true, false], intersects: true, isValid: [true, false], detailed: false };
  assert.deepEqual(await run(container, body, "p"), expected);
});

test("what a procedure is told about its operations", async () => {
  const container = await t.container();
  const body = function () {
    const codes = [];
    __.createDocument(__.getSelfLink(), '{"id": "a", "pk": "p"}', function (err, made, info) {
      if (err) throw err;
      codes.push(info.statusCode);
      __.readDocument(made._self, { ifNoneMatch: made._etag }, function (err, known, info) {
        if (err) throw err;
        codes.push(known === undefined, info.notModified);
        __.queryDocuments(__.getSelfLink(), "SELECT * FROM c", function (err, rows, info) {
          if (err) throw err;
          codes.push(typeof info.currentCollectionSizeInMB, typeof info.maxCollectionSizeInMB);
          __.response.setBody(codes);
        });
      });
    });
  };
  assert.deepEqual(await run(container, body, "p"), [201, true, true, "number", "number"]);
});

test("items of other partitions do not exist for a procedure", async () => {
  const container = await t.container({ throughput: 30_000 });
  for (const pk of ["p", "q", 1, null]) await container.items.create({ id: "same", pk });
  await container.items.create({ id: "theirs", pk: "q" });
  const body = function () {
    __.readDocument(__.getAltLink() + "/docs/theirs", function (err) {
      const missing = err.number;
      __.queryDocuments(__.getSelfLink(), "SELECT VALUE c.pk FROM c", function (err, rows) {
        if (err) throw err;
        __.response.setBody([missing, rows]);
      });
    });
  };
  const execute = await procedure(container, body);
  for (const key of ["p", 1, null]) {
    assert.deepEqual((await execute(key)).resource, [404, [key]]);
  }
});

test("an item of another partition cannot be created", async () => {
  const container = await t.container();
  const execute = await procedure(container, function (pk) {
    __.createDocument(__.getSelfLink(), { id: "fine", pk: "p" });
    __.createDocument(__.getSelfLink(), { id: "foreign", pk: pk });
  });
  await fails(execute("p", ["q"]), 400, 400);
  assert.deepEqual(await all(container.items.readAll()), []);
});

test("a partition key is needed, and may be undefined", async () => {
  const container = await t.container();
  await container.items.create({ id: "keyless" });
  const body = function () {
    __.queryDocuments(__.getSelfLink(), "SELECT VALUE c.id FROM c", function (err, rows) {
      if (err) throw err;
      __.response.setBody(rows);
    });
  };
  const execute = await procedure(container, body, "s");
  assert.deepEqual((await execute(undefined)).resource, ["keyless"]);
  const path = `/dbs/${t.database.id}/colls/${container.id}/sprocs/s`;
  const { status, json } = await t.raw("POST", path, { body: [] });
  assert.equal(status, 400);
  assert.match(json.message, /PartitionKey/);
});

test("a hierarchical key has all its levels", async () => {
  const partitionKey = { paths: ["/tenant", "/user"], kind: "MultiHash", version: 2 };
  const container = await t.container({ partitionKey });
  await container.items.create({ id: "a", tenant: "t", user: "u" });
  await container.items.create({ id: "b", tenant: "t", user: "v" });
  const body = function () {
    __.queryDocuments(__.getSelfLink(), "SELECT VALUE c.id FROM c", function (err, rows) {
      if (err) throw err;
      __.response.setBody(rows);
    });
  };
  const execute = await procedure(container, body);
  assert.deepEqual((await execute(["t", "u"])).resource, ["a"]);
  await fails(execute(["t"]), 400);
});

test("unique keys hold inside procedures", async () => {
  const container = await t.container({ uniqueKeyPolicy: { uniqueKeys: [{ paths: ["/mail"] }] } });
  await container.items.create({ id: "a", pk: "p", mail: "x@y" });
  const execute = await procedure(container, function () {
    __.createDocument(__.getSelfLink(), { id: "b", pk: "p", mail: "x@y" });
  });
  await fails(execute("p"), 400, 409);
});

test("promises and async functions work", async () => {
  const container = await t.container();
  const body = async function (count) {
    const collection = getContext().getCollection();
    const create = (doc) =>
      new Promise((done, failed) => {
        const accepted = collection.createDocument(collection.getSelfLink(), doc, (err, made) => (err ? failed(err) : done(made)));
        if (!accepted) failed(new Error("not accepted"));
      });
    try {
      const made = [];
      for (let n = 0; n < count; n += 1) made.push((await create({ id: `i${n}`, pk: "p" })).id);
      getContext().getResponse().setBody(made);
    } catch (err) {
      getContext().abort(err);
    }
  };
  const execute = await procedure(container, body);
  assert.deepEqual((await execute("p", [3])).resource, ["i0", "i1", "i2"]);
  await fails(execute("p", [4]), 400, 409);
  assert.ok(!(await exists(container, "i3")));
});

test("a rejected promise undoes nothing by itself", async () => {
  const container = await t.container();
  const body = function () {
    new Promise(function (done, failed) {
      __.createDocument(__.getSelfLink(), { id: "kept", pk: "p" }, function () { failed(new Error("late")); });
    });
  };
  await (await procedure(container, body))("p");
  assert.ok(await exists(container, "kept"));
});

test("runs share nothing and reach nothing outside", async () => {
  const container = await t.container();
  const execute = await procedure(container, function () {
    globalThis.count = (globalThis.count || 0) + 1;
    Array.prototype.count = (Array.prototype.count || 0) + 1;
    const outside = [typeof require, typeof process, typeof fetch, typeof setTimeout, typeof XMLHttpRequest];
    __.response.setBody({ counts: [globalThis.count, [].count], outside: outside });
  });
  for (let n = 0; n < 3; n += 1) {
    const { resource } = await execute("p");
    assert.deepEqual(resource, { counts: [1, 1], outside: Array(5).fill("undefined") });
  }
});

test("the language is modern JavaScript", async () => {
  const container = await t.container();
  const body = function ({ list, ...rest } = {}, last = "default") {
    class Sum {
      total = 0;
      add(n) { this.total += n; return this; }
    }
    const sum = list.reduce((all, n) => all.add(n), new Sum());
    const map = new Map(Object.entries(rest));
    __.response.setBody([sum.total, [...map.keys()], `${last}`, rest?.none ?? "nothing", JSON.parse('{"a":1}').a]);
  };
  assert.deepEqual(await run(container, body, "p", { list: [1, 2, 3], x: 1, y: 2 }), [6, ["x", "y"], "default", "nothing", 1]);
});

test("a procedure without an end is stopped and undone", async () => {
  const container = await t.container();
  const execute = await procedure(container, function (forever) {
    __.createDocument(__.getSelfLink(), { id: "a", pk: "p" });
    while (forever) { /* never ends */ }
  });
  const started = Date.now();
  const error = await execute("p", [true]).then(() => assert.fail("it ended"), (thrown) => thrown);
  assert.equal(error.code, 408);
  assert.ok(Date.now() - started < 15_000);
  assert.ok(!(await exists(container, "a")));
  await execute("p", [false]);
  assert.ok(await exists(container, "a"));
});

test("a procedure that recurses without end or hoards memory is stopped", async () => {
  const container = await t.container();
  const deep = await procedure(container, function f() { return f(); });
  await fails(deep("p"), 400);
  const greedy = await procedure(container, function () { const hoard = []; for (;;) hoard.push(new Array(10000).fill(hoard.length)); });
  const error = await greedy("p").then(() => assert.fail("it ended"), (thrown) => thrown);
  assert.ok([400, 408].includes(error.code), String(error.code));
  assert.equal(await run(container, function () { __.response.setBody("alive"); }, "p"), "alive");
});

test("sixteen clients count to eighty together", async () => {
  const container = await t.container();
  await container.items.create({ id: "counter", pk: "p", n: 0 });
  const id = "increment";
  await procedure(container, function (amount) {
    const collection = getContext().getCollection();
    collection.readDocument(collection.getAltLink() + "/docs/counter", function (err, counter) {
      if (err) throw err;
      counter.n += amount;
      collection.replaceDocument(counter._self, counter, function (err) {
        if (err) throw err;
        getContext().getResponse().setBody(counter.n);
      });
    });
  }, id);
  const count = async () => {
    const held = t.connect().database(t.database.id).container(container.id);
    const seen = [];
    for (let n = 0; n < 5; n += 1) seen.push((await held.scripts.storedProcedure(id).execute("p", [1])).resource);
    return seen;
  };
  const seen = (await Promise.all(Array.from({ length: 16 }, count))).flat();
  assert.equal((await container.item("counter", "p").read()).resource.n, 80);
  assert.equal(new Set(seen).size, 80, "every value is seen once");
});

test("the holder of a token executes what the token names", async () => {
  const container = await t.container();
  const execute = await procedure(container, function () { __.response.setBody("ran"); }, "s");
  assert.equal((await execute("p")).resource, "ran");
  const { user } = await t.database.users.create({ id: container.id });
  const link = `dbs/${t.database.id}/colls/${container.id}`;
  const token = async (id, permissionMode) => {
    const { resource } = await user.permissions.create({ id, permissionMode, resource: link });
    await user.permission(id).delete();
    return resource._token;
  };
  const held = async (mode) => {
    const client = t.connect({ resourceTokens: { [link]: await token(mode, mode) } });
    return client.database(t.database.id).container(container.id).scripts.storedProcedure("s");
  };
  assert.equal((await (await held("All")).execute("p")).resource, "ran");
  await fails((await held("Read")).execute("p"), 403);
});
