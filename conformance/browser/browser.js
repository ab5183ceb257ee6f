// A browser, driven over the pipe of its DevTools protocol: messages are JSON, ended by a zero byte.
// Nothing needs to be installed for this but the browser itself.

import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const FLAGS = [
  "--headless=new",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-dev-shm-usage",
  "--no-first-run",
  "--disable-background-networking",
  "--remote-debugging-pipe",
];

/** Starts a browser with a profile of its own. */
export async function startBrowser() {
  const profile = await mkdtemp(join(tmpdir(), "cosmolabe-browser-"));
  const program = process.env.CHROMIUM ?? "chromium";
  const child = spawn(program, [...FLAGS, `--user-data-dir=${profile}`], {
    stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"],
  });
  return new Browser(child, profile);
}

class Browser {
  #child;
  #profile;
  #last = 0;
  #waiting = new Map();
  #listeners = new Map();

  constructor(child, profile) {
    this.#child = child;
    this.#profile = profile;
    let text = "";
    child.stdio[4].setEncoding("utf8").on("data", (chunk) => {
      const messages = (text + chunk).split("\0");
      text = messages.pop();
      messages.forEach((message) => this.#receive(JSON.parse(message)));
    });
    const fail = (error) => this.#waiting.forEach(({ reject }) => reject(error));
    child.on("error", fail).on("exit", (code) => fail(new Error(`the browser ended with ${code}`)));
  }

  #receive({ id, sessionId, method, params, result, error }) {
    if (method) {
      this.#listeners.get(sessionId)?.(method, params);
      return;
    }
    const { resolve, reject } = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (error) reject(new Error(error.message));
    else resolve(result);
  }

  send(method, params = {}, sessionId = undefined) {
    const id = ++this.#last;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#child.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    });
  }

  /** Opens a page and waits until it has loaded. `scheme` is what the reader prefers. */
  async open(url, { width = 1200, height = 900, scheme = "light" } = {}) {
    const { targetId } = await this.send("Target.createTarget", { url: "about:blank" });
    const { sessionId } = await this.send("Target.attachToTarget", { targetId, flatten: true });
    const page = new Page((method, params) => this.send(method, params, sessionId));
    this.#listeners.set(sessionId, (method, params) => page.notice(method, params));
    await page.load(url, { width, height, scheme });
    return page;
  }

  async close() {
    const ended = new Promise((resolve) => this.#child.once("exit", resolve));
    await this.send("Browser.close").catch(() => {});
    await ended;
    await rm(this.#profile, { recursive: true, force: true, maxRetries: 5 });
  }
}

class Page {
  /** What went wrong on the page, in its own words. */
  errors = [];
  /** Addresses the page asked for. */
  requests = [];
  #send;
  #loaded;

  constructor(send) {
    this.#send = send;
  }

  notice(method, params) {
    if (method === "Page.loadEventFired") this.#loaded?.();
    if (method === "Network.requestWillBeSent") this.requests.push(params.request.url);
    if (method === "Runtime.exceptionThrown") {
      const { text, exception } = params.exceptionDetails;
      this.errors.push(exception?.description ?? text);
    }
    if (method === "Runtime.consoleAPICalled" && ["error", "warning", "assert"].includes(params.type)) {
      this.errors.push(params.args.map(({ value, description }) => value ?? description).join(" "));
    }
    if (method === "Log.entryAdded" && ["error", "warning"].includes(params.entry.level)) {
      this.errors.push(`${params.entry.text} ${params.entry.url ?? ""}`);
    }
  }

  async load(url, { width, height, scheme }) {
    for (const domain of ["Page", "Network", "Runtime", "Log"]) await this.#send(`${domain}.enable`);
    await this.resize(width, height);
    const features = [{ name: "prefers-color-scheme", value: scheme }];
    await this.#send("Emulation.setEmulatedMedia", { features });
    const loaded = new Promise((resolve) => (this.#loaded = resolve));
    await this.#send("Page.navigate", { url });
    await loaded;
  }

  resize(width, height) {
    const metrics = { width, height, deviceScaleFactor: 1, mobile: false };
    return this.#send("Emulation.setDeviceMetricsOverride", metrics);
  }

  /** Calls a function in the page; what it returns comes back as JSON. */
  async evaluate(call, ...words) {
    const expression = `(${call})(...${JSON.stringify(words)})`;
    const options = { expression, returnByValue: true, awaitPromise: true };
    const { result, exceptionDetails } = await this.#send("Runtime.evaluate", options);
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }

  /** Clicks into the middle of an element, as a reader would. */
  async click(selector) {
    const { x, y } = await this.evaluate((selector) => {
      const element = document.querySelector(selector);
      element.scrollIntoView({ block: "center" });
      const { left, top, width, height } = element.getBoundingClientRect();
      return { x: left + width / 2, y: top + height / 2 };
    }, selector);
    for (const type of ["mousePressed", "mouseReleased"]) {
      await this.#send("Input.dispatchMouseEvent", { type, x, y, button: "left", clickCount: 1 });
    }
  }

  /** The whole page as a PNG. */
  async screenshot() {
    const options = { format: "png", captureBeyondViewport: true };
    const { cssContentSize } = await this.#send("Page.getLayoutMetrics");
    options.clip = { ...cssContentSize, scale: 1 };
    const { data } = await this.#send("Page.captureScreenshot", options);
    return Buffer.from(data, "base64");
  }
}
