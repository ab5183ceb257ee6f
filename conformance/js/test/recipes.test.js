// Scripts as people write and paste them: those of a blog platform, and the usual recipes.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";

import { all, fails, ids, serve, sorted, test, user } from "../lib/fixture.js";
import { after, before, exists, procedure, said } from "../lib/scripts.js";

const t = serve();

const POSTS = { partitionKey: { paths: ["/postId"], kind: "Hash", version: 2 } };
const FEED = { partitionKey: { paths: ["/type"], kind: "Hash", version: 2 } };

// --- A blog platform ---------------------------------------------------------------------------

function createComment(postId, comment) {
  const collection = getContext().getCollection();
  collection.readDocument(`${collection.getAltLink()}/docs/${postId}`, function (err, post) {
    if (err) throw err;
    post.commentCount++;
    collection.replaceDocument(post._self, post, function (err) {
      if (err) throw err;
      comment.postId = postId;
      collection.createDocument(collection.getSelfLink(), comment);
    });
  });
}

function updateUsernames(userId, username) {
  const collection = getContext().getCollection();
  const query = { query: "SELECT * FROM p WHERE p.userId = @userId", parameters: [{ name: "@userId", value: userId }] };
  collection.queryDocuments(collection.getSelfLink(), query, function (err, found) {
    if (err) throw err;
    for (const item of found) {
      item.userUsername = username;
      collection.upsertDocument(collection.getSelfLink(), item);
    }
  });
}

// Keeps the newest items. The count does not include the item that was just written.
function truncateFeed() {
  const most = 5;
  const collection = getContext().getCollection();
  collection.queryDocuments(collection.getSelfLink(), "SELECT VALUE COUNT(1) FROM f", function (err, counts) {
    if (err) throw err;
    const excess = counts[0] + 1 - most;
    if (excess > 0) removeOldest(excess);
  });

  function removeOldest(count) {
    const query = `SELECT TOP ${count} * FROM f ORDER BY f.creationDate`;
    collection.queryDocuments(collection.getSelfLink(), query, function (err, oldest) {
      if (err) throw err;
      removeNext(oldest);
    });
  }

  function removeNext(items) {
    if (items.length === 0) return;
    collection.deleteDocument(items[0]._self, function (err) {
      if (err) throw err;
      removeNext(items.slice(1));
    });
  }
}

async function withPost() {
  const container = await t.container(POSTS);
  const post = { id: "p1", type: "post", postId: "p1", userId: "u1", userUsername: "ada", title: "t", commentCount: 0, likeCount: 0 };
  await container.items.create(post);
  return container;
}

const comment = (n) => ({ id: `c${n}`, type: "comment", userId: "u2", userUsername: "bob", content: "text", creationDate: "2026-01-01" });

test("createComment counts and creates in one transaction", async () => {
  const container = await withPost();
  const execute = await procedure(container, createComment);
  const response = await execute("p1", ["p1", comment(1)]);
  assert.ok(!response.resource);
  await execute("p1", ["p1", comment(2)]);
  assert.equal((await container.item("p1", "p1").read()).resource.commentCount, 2);
  const comments = await all(container.items.query("SELECT VALUE c.id FROM c WHERE c.type = 'comment'", { partitionKey: "p1" }));
  assert.deepEqual(sorted(comments), ["c1", "c2"]);
});

test("createComment makes up an id", async () => {
  const container = await withPost();
  const { id, ...nameless } = comment(1);
  await (await procedure(container, createComment))("p1", ["p1", nameless]);
  const [made] = await all(container.items.query("SELECT * FROM c WHERE c.type = 'comment'"));
  assert.match(made.id, /^[0-9a-f-]{36}$/);
  assert.equal(made.postId, "p1");
});

test("createComment undoes its count when the comment exists or the post does not", async () => {
  const container = await withPost();
  const execute = await procedure(container, createComment);
  await execute("p1", ["p1", comment(1)]);
  await fails(execute("p1", ["p1", comment(1)]), 400, 409);
  await fails(execute("p1", ["p9", comment(2)]), 400, 404);
  assert.equal((await container.item("p1", "p1").read()).resource.commentCount, 1);
  assert.ok(!(await exists(container, "c2", "p1")));
});

test("createComment loses no count among many writers", async () => {
  const container = await withPost();
  const execute = await procedure(container, createComment);
  await Promise.all(Array.from({ length: 30 }, (_, n) => execute("p1", ["p1", comment(n)])));
  assert.equal((await container.item("p1", "p1").read()).resource.commentCount, 30);
});

test("updateUsernames changes one partition at a time", async () => {
  const container = await withPost();
  await container.items.create({ ...comment(1), postId: "p1", userId: "u1", userUsername: "ada" });
  await container.items.create({ ...comment(2), postId: "p1" });
  await container.items.create({ id: "p2", type: "post", postId: "p2", userId: "u1", userUsername: "ada" });
  const execute = await procedure(container, updateUsernames);
  const names = async () => Object.fromEntries((await all(container.items.readAll())).map((item) => [item.id, item.userUsername]));
  await execute("p1", ["u1", "lovelace"]);
  assert.deepEqual(await names(), { p1: "lovelace", c1: "lovelace", c2: "bob", p2: "ada" });
  const places = await all(container.items.query("SELECT DISTINCT VALUE p.postId FROM p WHERE p.userId = 'u1'"));
  for (const place of places) await execute(place, ["u1", "king"]);
  assert.deepEqual(await names(), { p1: "king", c1: "king", c2: "bob", p2: "king" });
});

test("updateUsernames handles the first hundred items only", async () => {
  const container = await t.container(POSTS);
  const create = (n) => ({ operationType: "Create", resourceBody: { id: `i${n}`, postId: "p1", userId: "u1", userUsername: "ada" } });
  for (const from of [0, 60]) await container.items.batch(Array.from({ length: 60 }, (_, n) => create(from + n)), "p1");
  await (await procedure(container, updateUsernames))("p1", ["u1", "king"]);
  const [changed] = await all(container.items.query("SELECT VALUE COUNT(1) FROM c WHERE c.userUsername = 'king'"));
  assert.equal(changed, 100);
});

test("truncateFeed keeps the newest", async () => {
  const container = await t.container(FEED);
  const postTriggerInclude = await after(container, truncateFeed);
  for (let n = 0; n < 8; n += 1) {
    await container.items.upsert({ id: `p${n}`, type: "post", creationDate: `2026-01-0${n + 1}` }, { postTriggerInclude });
  }
  assert.deepEqual(sorted(ids(await all(container.items.readAll()))), ["p3", "p4", "p5", "p6", "p7"]);
});

test("truncateFeed does not see the item that fires it", async () => {
  const container = await t.container(FEED);
  const postTriggerInclude = await after(container, truncateFeed);
  const write = (n) => container.items.upsert({ id: `p${n}`, type: "post", creationDate: `2026-01-0${n + 1}` }, { postTriggerInclude });
  for (const n of [1, 2, 3, 4, 5]) await write(n);
  // The oldest of the others goes, though the new item is older still.
  await write(0);
  assert.deepEqual(sorted(ids(await all(container.items.readAll()))), ["p0", "p2", "p3", "p4", "p5"]);
  // An update is counted already, so one item too many goes.
  await write(5);
  assert.deepEqual(sorted(ids(await all(container.items.readAll()))), ["p2", "p3", "p4", "p5"]);
});

test("the procedure in the README runs as it is printed", async () => {
  const container = await t.container({ partitionKey: { paths: ["/customer"] } });
  await container.items.create({ id: "1", customer: "ada", total: 42 });
  const readme = await readFile(new URL("../../../README.md", import.meta.url), "utf8");
  const [, code] = /```js\n(const \{ scripts \}[^]*?)```/.exec(readme);
  const AsyncFunction = (async () => {}).constructor;
  assert.equal(await new AsyncFunction("container", `${code}\nreturn total;`)(container), 50);
  assert.equal((await container.item("1", "ada").read()).resource.total, 50);
});

// --- Recipes -----------------------------------------------------------------------------------

function bulkImport(items) {
  const collection = getContext().getCollection();
  const link = collection.getSelfLink();
  let count = 0;
  if (!items) throw new Error("The array is undefined or null.");
  if (items.length === 0) getContext().getResponse().setBody(0);
  else tryCreate(items[count]);

  function tryCreate(item) {
    const accepted = collection.createDocument(link, item, created);
    // Out of time: the caller goes on with the rest.
    if (!accepted) getContext().getResponse().setBody(count);
  }

  function created(err) {
    if (err) throw err;
    count += 1;
    if (count >= items.length) getContext().getResponse().setBody(count);
    else tryCreate(items[count]);
  }
}

test("bulk import goes on where the last call stopped", async () => {
  const container = await t.container();
  const execute = await procedure(container, bulkImport);
  const items = Array.from({ length: 300 }, (_, n) => ({ id: `i${n}`, pk: "p", n }));
  let done = 0;
  for (let calls = 0; done < items.length; calls += 1) {
    assert.ok(calls < 20, "it gets on");
    done += (await execute("p", [items.slice(done)])).resource;
  }
  const [count] = await all(container.items.query("SELECT VALUE COUNT(1) FROM c"));
  assert.equal(count, 300);
  assert.equal((await execute("p", [[]])).resource, 0);
  assert.match(said(await fails(execute("p"), 400)), /undefined or null/);
  await fails(execute("p", [[{ id: "new", pk: "p" }, { id: "i0", pk: "p" }]]), 400, 409);
  assert.ok(!(await exists(container, "new")));
});

function bulkDelete(query) {
  const collection = getContext().getCollection();
  const response = getContext().getResponse();
  const body = { deleted: 0, continuation: true };
  if (!query) throw new Error("The query is undefined or null.");
  tryQueryAndDelete();

  function tryQueryAndDelete(continuation) {
    const accepted = collection.queryDocuments(collection.getSelfLink(), query, { continuation: continuation }, function (err, found, options) {
      if (err) throw err;
      if (found.length > 0) {
        tryDelete(found, options.continuation);
      } else if (options.continuation) {
        tryQueryAndDelete(options.continuation);
      } else {
        body.continuation = false;
        response.setBody(body);
      }
    });
    if (!accepted) response.setBody(body);
  }

  function tryDelete(items, continuation) {
    if (items.length > 0) {
      const accepted = collection.deleteDocument(items[0]._self, {}, function (err) {
        if (err) throw err;
        body.deleted++;
        items.shift();
        tryDelete(items, continuation);
      });
      if (!accepted) response.setBody(body);
    } else if (continuation) {
      tryQueryAndDelete(continuation);
    } else {
      body.continuation = false;
      response.setBody(body);
    }
  }
}

test("bulk delete removes what a query finds, page by page", async () => {
  const container = await t.container();
  const items = Array.from({ length: 250 }, (_, n) => ({ id: `i${n}`, pk: "p", odd: n % 2 === 1 }));
  const load = await procedure(container, bulkImport);
  assert.equal((await load("p", [items])).resource, 250);
  await container.items.create({ id: "theirs", pk: "q", odd: true });
  const execute = await procedure(container, bulkDelete);
  let deleted = 0;
  for (let more = true, calls = 0; more; calls += 1) {
    assert.ok(calls < 20, "it gets on");
    const { resource } = await execute("p", ["SELECT c._self FROM c WHERE c.odd"]);
    deleted += resource.deleted;
    more = resource.continuation;
  }
  assert.equal(deleted, 125);
  const [left] = await all(container.items.query("SELECT VALUE COUNT(1) FROM c"));
  assert.equal(left, 126);
});

function count(filter, continuation) {
  const collection = getContext().getCollection();
  const query = filter ? `SELECT * FROM c WHERE ${filter}` : "SELECT * FROM c";
  let result = 0;
  next(continuation);

  function next(token) {
    const accepted = collection.queryDocuments(collection.getSelfLink(), query, { continuation: token }, function (err, found, options) {
      if (err) throw err;
      result += found.length;
      if (options.continuation) next(options.continuation);
      else answer(null);
    });
    if (!accepted) answer(token);
  }

  function answer(token) {
    getContext().getResponse().setBody({ count: result, continuation: token });
  }
}

test("a procedure counts over pages", async () => {
  const container = await t.container();
  const items = Array.from({ length: 230 }, (_, n) => ({ id: `i${n}`, pk: "p", n }));
  await (await procedure(container, bulkImport))("p", [items]);
  const execute = await procedure(container, count);
  assert.deepEqual((await execute("p")).resource, { count: 230, continuation: null });
  assert.deepEqual((await execute("p", ["c.n < 120"])).resource, { count: 120, continuation: null });
  assert.equal((await execute("q")).resource.count, 0);
});

test("a procedure sums", async () => {
  const container = await t.container();
  for (const price of [1.5, 2, 40]) await container.items.create({ id: `i${price}`, pk: "p", price });
  await container.items.create({ id: "free", pk: "p" });
  const execute = await procedure(container, function sum(property) {
    const collection = getContext().getCollection();
    collection.queryDocuments(collection.getSelfLink(), "SELECT * FROM c", function (err, items) {
      if (err) throw new Error("Error: " + err.message);
      let total = 0;
      items.forEach((item) => { if (typeof item[property] === "number") total += item[property]; });
      getContext().getResponse().setBody(total);
    });
  });
  assert.equal((await execute("p", ["price"])).resource, 43.5);
  assert.equal((await execute("p", ["none"])).resource, 0);
});

test("a procedure updates by a field", async () => {
  const container = await t.container();
  for (const [id, status] of [["a", "new"], ["b", "new"], ["c", "done"]]) await container.items.create({ id, pk: "p", status });
  const execute = await procedure(container, function update(field, from, to) {
    const collection = getContext().getCollection();
    let changed = 0;
    const accepted = collection.filter(function (doc) { return doc[field] === from; }, function (err, items) {
      if (err) throw err;
      items.forEach(function (item) {
        const etag = item._etag;
        item[field] = to;
        const ok = collection.replaceDocument(item._self, item, { etag: etag }, function (err) {
          if (err) throw err;
          changed += 1;
          getContext().getResponse().setBody(changed);
        });
        if (!ok) throw new Error("not accepted");
      });
    });
    if (!accepted.isAccepted) throw new Error("not accepted");
  });
  assert.equal((await execute("p", ["status", "new", "open"])).resource, 2);
  const items = await all(container.items.query("SELECT c.id, c.status FROM c ORDER BY c.id"));
  assert.deepEqual(items.map((item) => item.status), ["open", "open", "done"]);
});

test("a trigger keeps a property unique", async () => {
  const container = await t.container();
  const preTriggerInclude = await before(container, function uniqueName() {
    const collection = getContext().getCollection();
    const item = getContext().getRequest().getBody();
    const query = { query: "SELECT * FROM c WHERE c.name = @name AND c.id != @id", parameters: [{ name: "@name", value: item.name }, { name: "@id", value: item.id }] };
    const accepted = collection.queryDocuments(collection.getSelfLink(), query, function (err, found) {
      if (err) throw err;
      if (found.length > 0) throw new Error(409, "The name " + item.name + " is taken.");
    });
    if (!accepted) throw new Error("The name could not be checked.");
  });
  const write = (id, name) => container.items.upsert({ id, pk: "p", name }, { preTriggerInclude });
  await write("a", "Ada");
  assert.match(said(await fails(write("b", "Ada"), 400, 409)), /taken/);
  await write("b", "Bob");
  await write("a", "Ada");
  assert.equal((await all(container.items.readAll())).length, 2);
});

function updateMetadata() {
  const context = getContext();
  const collection = context.getCollection();
  const created = context.getResponse().getBody();
  const query = 'SELECT * FROM root r WHERE r.id = "_metadata"';
  const accepted = collection.queryDocuments(collection.getSelfLink(), query, function (err, found) {
    if (err) throw new Error("Error" + err.message);
    if (found.length !== 1) throw new Error("Unable to find metadata document");
    const metadata = found[0];
    metadata.createdDocuments += 1;
    metadata.createdNames += " " + created.name;
    metadata.bytes = Math.max(metadata.bytes, created.size || 0);
    const ok = collection.replaceDocument(metadata._self, metadata, function (err) {
      if (err) throw new Error("Unable to update metadata, abort");
    });
    if (!ok) throw new Error("Unable to update metadata, abort");
  });
  if (!accepted) throw new Error("Unable to update metadata, abort");
}

test("a post-trigger keeps metadata", async () => {
  const container = await t.container();
  const postTriggerInclude = await after(container, updateMetadata, "Create");
  const create = (id, size) => container.items.create({ id, pk: "p", name: id, size }, { postTriggerInclude });
  assert.match(said(await fails(create("early", 1), 400)), /Unable to find metadata/);
  assert.ok(!(await exists(container, "early")));
  await container.items.create({ id: "_metadata", pk: "p", createdDocuments: 0, createdNames: "", bytes: 0 });
  await create("a", 5);
  await create("b", 3);
  const { resource } = await container.item("_metadata", "p").read();
  assert.deepEqual(user(resource), { id: "_metadata", pk: "p", createdDocuments: 2, createdNames: " a b", bytes: 5 });
});

test("metadata counts every one of many concurrent writes", async () => {
  const container = await t.container();
  await container.items.create({ id: "_metadata", pk: "p", createdDocuments: 0, createdNames: "", bytes: 0 });
  const postTriggerInclude = await after(container, updateMetadata, "Create");
  const create = (n) => container.items.create({ id: `i${n}`, pk: "p", name: "x", size: n }, { postTriggerInclude });
  await Promise.all(Array.from({ length: 24 }, (_, n) => create(n)));
  const { resource } = await container.item("_metadata", "p").read();
  assert.deepEqual([resource.createdDocuments, resource.bytes], [24, 23]);
});

test("a pre-trigger brings items into a canonical form", async () => {
  const container = await t.container();
  const preTriggerInclude = await before(container, function validateToDoItemTimestamp() {
    const request = getContext().getRequest();
    const item = request.getBody();
    if (!("timestamp" in item)) item.timestamp = new Date().getTime();
    if (typeof item.email === "string") item.email = item.email.trim().toLowerCase();
    item.tags = [...new Set(item.tags || [])].sort();
    request.setBody(item);
  });
  const started = Date.now();
  const { resource } = await container.items.create({ id: "a", pk: "p", email: " Ada@Example.ORG ", tags: ["b", "a", "b"] }, { preTriggerInclude });
  assert.equal(resource.email, "ada@example.org");
  assert.deepEqual(resource.tags, ["a", "b"]);
  assert.ok(Math.abs(resource.timestamp - started) < 60_000);
});

test("a pre-trigger checks a foreign key and keeps a count", async () => {
  const container = await t.container({ partitionKey: { paths: ["/library"], kind: "Hash", version: 2 } });
  await container.items.create({ id: "author-1", library: "l", type: "author", countOfBooks: 0 });
  const preTriggerInclude = await before(container, function addBook() {
    const collection = getContext().getCollection();
    const book = getContext().getRequest().getBody();
    if (book.type !== "book") return;
    collection.readDocument(collection.getAltLink() + "/docs/" + book.authorId, function (err, author) {
      if (err && err.number === ErrorCodes.NotFound) throw new Error(404, "There is no author " + book.authorId);
      if (err) throw err;
      author.countOfBooks += 1;
      const accepted = collection.replaceDocument(author._self, author, { etag: author._etag }, function (err) {
        if (err) throw err;
      });
      if (!accepted) throw new Error("not accepted");
    });
  }, "Create");
  const create = (id, authorId) => container.items.create({ id, library: "l", type: "book", authorId }, { preTriggerInclude });
  await create("b1", "author-1");
  await create("b2", "author-1");
  assert.match(said(await fails(create("b3", "author-9"), 400, 404)), /no author author-9/);
  await fails(create("b2", "author-1"), 409);
  assert.equal((await container.item("author-1", "l").read()).resource.countOfBooks, 2);
  assert.ok(!(await exists(container, "b3", "l")));
});

test("a procedure swaps two items, all or nothing", async () => {
  const container = await t.container();
  await container.items.create({ id: "one", pk: "p", item: "sword" });
  await container.items.create({ id: "two", pk: "p", item: "shield" });
  const execute = await procedure(container, function tradeItems(first, second) {
    const collection = getContext().getCollection();
    const find = (id, then) => {
      const query = { query: "SELECT * FROM players c WHERE c.id = @id", parameters: [{ name: "@id", value: id }] };
      const accepted = collection.queryDocuments(collection.getSelfLink(), query, {}, (err, found) => {
        if (err) throw new Error("Error" + err.message);
        if (found.length !== 1) throw "Unable to find both names";
        then(found[0]);
      });
      if (!accepted) throw "Unable to read player details, abort ";
    };
    find(first, (one) => find(second, (two) => {
      [one.item, two.item] = [two.item, one.item];
      collection.replaceDocument(one._self, one, (err) => {
        if (err) throw "Unable to update player 1, abort ";
        collection.replaceDocument(two._self, two, (err) => {
          if (err) throw "Unable to update player 2, abort";
        });
      });
    }));
  });
  await execute("p", ["one", "two"]);
  const items = await all(container.items.query("SELECT c.id, c.item FROM c ORDER BY c.id"));
  assert.deepEqual(items, [{ id: "one", item: "shield" }, { id: "two", item: "sword" }]);
  assert.match(said(await fails(execute("p", ["one", "three"]), 400)), /Unable to find both names/);
});

test("a procedure made of promises and async functions", async () => {
  const container = await t.container();
  await container.items.create({ id: "a", pk: "p", n: 1 });
  await container.items.create({ id: "b", pk: "p", n: 2 });
  const execute = await procedure(container, function main(by) {
    const collection = __;
    const promised = (call) =>
      new Promise((resolve, reject) => {
        const accepted = call((err, result, info) => (err ? reject(err) : resolve({ result, info })));
        if (!accepted) reject(new Error(429, "not accepted"));
      });
    async function work() {
      const { result } = await promised((done) => collection.queryDocuments(collection.getSelfLink(), "SELECT * FROM c", done));
      const changed = await Promise.all(
        result.map((item) => promised((done) => collection.replaceDocument(item._self, { ...item, n: item.n + by }, done))),
      );
      return changed.map(({ result: item }) => item.n);
    }
    work().then((numbers) => __.response.setBody(numbers)).catch((err) => getContext().abort(err));
  });
  assert.deepEqual((await execute("p", [10])).resource.sort(), [11, 12]);
});
