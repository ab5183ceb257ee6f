// The change feed of a busy container while its server is killed and started again.
//
// Writers own their partition keys and number their items 1, 2, 3 … within each; a number is only
// given out when the one before it was acknowledged. Two readers follow, one per mode of the feed.
// A reader that meets number n of a key must have met n - 1: nothing is missing and nothing is out
// of order. It may meet n again only if the server was started anew in between, because a writer
// repeats a write whose answer a kill has swallowed.
//
// COSMOLABE_SEED repeats the times of the kills, COSMOLABE_LONG=1 takes a minute.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { ChangeFeedMode, ChangeFeedStartFrom, CosmosClient } from "@azure/cosmos";

import { random, test, until } from "../lib/fixture.js";
import { KEY, startServer } from "../lib/server.js";

const DURATION_MS = process.env.COSMOLABE_LONG === "1" ? 60_000 : 20_000;
const SEED = Number(process.env.COSMOLABE_SEED ?? Date.now() % 1_000_000);
const WRITERS = 4;
const KEYS_PER_WRITER = 3;

/** Follows one mode of the feed and checks what every change may be, given those before it. */
class Reader {
  last = new Map();
  repeats = 0;
  #token;
  #iterator;

  constructor(container, mode, world) {
    Object.assign(this, { container, mode, world });
  }

  /** One page. A failed read is repeated from the last token by a new iterator. */
  async step() {
    this.#iterator ??= this.container.items.getChangeFeedIterator({
      changeFeedMode: this.mode,
      changeFeedStartFrom: this.#token
        ? ChangeFeedStartFrom.Continuation(this.#token)
        : ChangeFeedStartFrom.Now(),
      maxItemCount: 50,
    });
    try {
      const page = await this.#iterator.readNext();
      this.#token = page.continuationToken;
      if (page.statusCode === 200) page.result.forEach((change) => this.#check(change));
      return page.statusCode;
    } catch (error) {
      if (error.code === "ERR_ASSERTION") throw error;
      this.world.tolerate(error);
      this.#iterator = undefined;
      return undefined;
    }
  }

  #check(change) {
    const versions = this.mode === ChangeFeedMode.AllVersionsAndDeletes;
    const { pk, n } = versions ? change.current : change;
    const lsn = versions ? change.metadata.lsn : change._lsn;
    const last = this.last.get(pk) ?? { n: 0, lsn: 0, starts: this.world.starts };
    const where = `${this.mode}, key ${pk}: ${n} after ${last.n} (lsn ${lsn} after ${last.lsn})`;
    assert.ok(lsn > last.lsn, `positions only grow: ${where}`);
    if (n === last.n) {
      assert.ok(this.world.starts > last.starts, `a repeat without a restart: ${where}`);
      this.repeats += 1;
    } else {
      assert.equal(n, last.n + 1, `missing or out of order: ${where}`);
    }
    this.last.set(pk, { n, lsn, starts: this.world.startsAtWrite(pk, n) });
  }
}

/** What the writers and readers know of the server's life. */
class World {
  starts = 1;
  down = false;
  #begun = new Map();

  /** The starts that had happened when a number was first sent. */
  startsAtWrite(pk, n) {
    return this.#begun.get(`${pk}/${n}`) ?? this.starts;
  }

  begin(pk, n) {
    this.#begun.set(`${pk}/${n}`, this.starts);
  }

  /** Failures are part of the game only around a kill. */
  tolerate(error) {
    const broken = typeof error.code !== "number";
    assert.ok(broken, `the server answered ${error.code}: ${error.message}`);
  }
}

test("nothing is lost, swapped or repeated by kills", { timeout: DURATION_MS + 60_000 }, async (ctx) => {
  ctx.diagnostic(`COSMOLABE_SEED=${SEED}`);
  const next = random(SEED);
  const folder = mkdtempSync(join(tmpdir(), "cosmolabe-feed-"));
  const dataDir = join(folder, "data");
  const world = new World();
  let server = await startServer({ dataDir });
  const { port } = server;
  const client = new CosmosClient({ endpoint: server.endpoint, key: KEY });
  try {
    const { database } = await client.databases.create({ id: "d" });
    const { container } = await database.containers.create({
      id: "c",
      partitionKey: { paths: ["/pk"], kind: "Hash", version: 2 },
      throughput: 20_000,
      changeFeedPolicy: { retentionDuration: 60 },
    });
    const readers = [ChangeFeedMode.LatestVersion, ChangeFeedMode.AllVersionsAndDeletes].map(
      (mode) => new Reader(container, mode, world),
    );
    for (const reader of readers) assert.equal(await reader.step(), 304, "from now on");

    const end = Date.now() + DURATION_MS;
    const written = new Map();

    const write = async (writer) => {
      for (let turn = 0; Date.now() < end; turn++) {
        const pk = `w${writer}-${turn % KEYS_PER_WRITER}`;
        const n = (written.get(pk) ?? 0) + 1;
        world.begin(pk, n);
        const body = { id: `${pk}-${n}`, pk, n };
        while (!(await container.items.upsert(body).catch((e) => world.tolerate(e)))) await sleep(20);
        written.set(pk, n);
      }
    };

    const read = async (reader) => {
      while (Date.now() < end) {
        if ((await reader.step()) !== 200) await sleep(20);
      }
    };

    const kill = async () => {
      let kills = 0;
      for (;;) {
        await sleep(1_000 + next() * 3_000);
        if (Date.now() > end) return kills;
        await server.kill();
        await sleep(next() * 300);
        world.starts += 1;
        server = await startServer({ dataDir, port });
        kills += 1;
      }
    };

    const [kills] = await Promise.all([
      kill(),
      ...Array.from({ length: WRITERS }, (_, writer) => write(writer)),
      ...readers.map(read),
    ]);
    assert.ok(kills >= 3, `${kills} kills`);

    for (const reader of readers) {
      await until("the reader to arrive", async () => (await reader.step()) === 304, { everyMs: 0 });
      for (const [pk, n] of written) assert.equal(reader.last.get(pk)?.n, n, `${reader.mode}, ${pk}`);
    }
    const total = [...written.values()].reduce((sum, n) => sum + n, 0);
    assert.ok(total > 100, `${total} writes`);
    ctx.diagnostic(`${total} writes, ${kills} kills, ${readers.map((r) => r.repeats)} repeats`);
  } finally {
    client.dispose();
    await server.kill();
    rmSync(folder, { recursive: true, force: true });
  }
});
