// Starts the server under test and ends it.
//
// Every test file owns one server process on a port of its own, so files never see each other's
// databases and may run side by side. COSMOLABE_BIN names the binary.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const repository = fileURLToPath(new URL("../../..", import.meta.url));
export const BINARY = process.env.COSMOLABE_BIN ?? resolve(repository, "target/release/cosmolabe");

/** The public development key that the server uses when no key file is given. */
export const KEY =
  "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

const READY = /^cosmolabe \S+ ready on (https?:\/\/\S+)/;
const READY_WITHIN_MS = 20_000;
const LOUD = /"level":\s*"(WARN|ERROR)"|panicked at/;

/**
 * Starts `cosmolabe serve` and waits for its ready line.
 *
 * Without a data directory the server keeps everything in memory. `port` is for a restart at the
 * address that clients already know.
 */
export async function startServer({ dataDir, port = 0, args = [] } = {}) {
  if (!existsSync(BINARY)) throw new Error(`no server binary at ${BINARY}; set COSMOLABE_BIN`);
  const where = dataDir ? ["--data-dir", dataDir] : ["--in-memory"];
  const child = spawn(BINARY, ["serve", "--listen", `127.0.0.1:${port}`, ...where, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  const server = new Server(child);
  await server.ready();
  return server;
}

class Server {
  #child;
  #exited;
  #log = "";

  constructor(child) {
    this.#child = child;
    this.#exited = once(child, "exit").then(([code, signal]) => ({ code, signal }));
    child.stderr.setEncoding("utf8").on("data", (text) => (this.#log += text));
    // A run that ends early leaves no server behind.
    const end = () => child.kill("SIGKILL");
    process.once("exit", end);
    child.once("exit", () => process.removeListener("exit", end));
  }

  async ready() {
    const lines = createInterface({ input: this.#child.stdout });
    const line = new Promise((found) => {
      lines.on("line", (text) => {
        const match = READY.exec(text);
        if (match) found({ url: match[1] });
      });
    });
    const outcome = await Promise.race([line, this.#exited, timeout(READY_WITHIN_MS)]);
    if (!outcome?.url) {
      this.#child.kill("SIGKILL");
      throw new Error(`the server did not get ready (${JSON.stringify(outcome)}):\n${this.#log}`);
    }
    this.endpoint = outcome.url.replace(/\/$/, "");
    this.port = Number(new URL(this.endpoint).port);
  }

  /** Lines of the log that a healthy run does not have. */
  complaints() {
    return this.#log.split("\n").filter((line) => LOUD.test(line));
  }

  /** Ends the process at once, as a power cut would. */
  async kill() {
    this.#child.kill("SIGKILL");
    return this.#exited;
  }

  /** Asks the process to finish; answers how it ended, or throws when it does not in time. */
  async terminate(withinMs = 10_000) {
    this.#child.kill("SIGTERM");
    const outcome = await Promise.race([this.#exited, timeout(withinMs)]);
    if (outcome === undefined) {
      await this.kill();
      throw new Error(`the server ignored SIGTERM for ${withinMs} ms:\n${this.#log}`);
    }
    return outcome;
  }
}

function timeout(ms) {
  return new Promise((done) => setTimeout(done, ms).unref());
}
