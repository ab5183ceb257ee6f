// Goal: a report of the laboratory is what a reader needs, in a real browser: every chart is drawn,
// nothing goes wrong, and nothing is asked of anybody.
// Method: the blog is run at a small scale, and its report opened by a Chromium that tells of every
// request and every error. With SCREENSHOTS=directory, what it looked like is kept there.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";

import { startBrowser } from "./browser.js";

const RUN = ["lab", "run", "blog", "--scale", "0.00005", "--repeat", "1"];

let directory, browser, address, cells;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), "cosmolabe-report-"));
  const [report, json] = ["report.html", "results.json"].map((name) => join(directory, name));
  await promisify(execFile)(process.env.COSMOLABE_BIN, [...RUN, "--report", report, "--json", json]);
  ({ cells } = JSON.parse(await readFile(json, "utf8")));
  address = pathToFileURL(report).href;
  browser = await startBrowser();
});

after(async () => {
  await browser?.close();
  await rm(directory, { recursive: true, force: true });
});

async function keep(name, png) {
  if (process.env.SCREENSHOTS) await writeFile(join(process.env.SCREENSHOTS, name), png);
}

/** How many elements there are that take up room. */
const visible = (selector) => {
  const isVisible = (element) => {
    const { width, height } = element.getBoundingClientRect();
    return element.checkVisibility() && (width > 0 || height > 0);
  };
  return [...document.querySelectorAll(selector)].filter(isVisible).length;
};

/** The ratio of contrast between text and paper, by relative luminance. */
const contrast = () => {
  const luminance = (color) => {
    const linear = (part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    const [red, green, blue] = color.match(/\d+/g).slice(0, 3).map((part) => linear(part / 255));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const { color, backgroundColor } = getComputedStyle(document.body);
  const [ink, paper] = [luminance(color), luminance(backgroundColor)];
  return { isDark: paper < ink, ratio: (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05) };
};

test("every chart is drawn, and nothing is asked of anybody", async () => {
  const page = await browser.open(address);
  const models = new Set(cells.map((cell) => cell.model)).size;
  const published = (name) => cells.filter((cell) => cell[name] !== null).length;
  assert.equal(await page.evaluate(visible, "#charges svg, #times svg, #mix svg"), 3);
  assert.equal(await page.evaluate(visible, "#sweeps svg"), 3);
  assert.equal(await page.evaluate(visible, "#charges svg .dot"), cells.length);
  assert.equal(await page.evaluate(visible, "#times svg .dot"), cells.length);
  assert.equal(await page.evaluate(visible, "#charges svg .ring"), published("published_ru"));
  assert.equal(await page.evaluate(visible, "#times svg .ring"), published("published_ms"));
  assert.equal(await page.evaluate(visible, "#mix svg .bar"), cells.length);
  assert.equal(await page.evaluate(visible, "#sweeps svg .curve"), 3 * models);
  assert.equal(await page.evaluate(visible, "#numbers tr"), cells.length + 1);
  await keep("report-light.png", await page.screenshot());
  assert.deepEqual(page.errors, []);
  assert.deepEqual(page.requests, [address], "the file itself, and nothing else");
});

test("it can be read by day and by night", async () => {
  const day = await browser.open(address, { scheme: "light" });
  const night = await browser.open(address, { scheme: "dark" });
  const [light, dark] = [await day.evaluate(contrast), await night.evaluate(contrast)];
  assert.deepEqual([light.isDark, dark.isDark], [false, true]);
  assert.ok(light.ratio > 10 && dark.ratio > 10, `${light.ratio} ${dark.ratio}`);
  await keep("report-dark.png", await night.screenshot());
  await night.click("button");
  assert.equal((await night.evaluate(contrast)).isDark, false, "the reader has the last word");
  await night.click("button");
  assert.equal((await night.evaluate(contrast)).isDark, true);
  assert.deepEqual([...day.errors, ...night.errors], []);
});

test("receipts open on demand", async () => {
  const page = await browser.open(address);
  assert.equal(await page.evaluate(visible, ".receipt"), 0);
  await page.click("#receipts details:nth-of-type(3) summary");
  const models = new Set(cells.map((cell) => cell.model)).size;
  assert.equal(await page.evaluate(visible, ".receipt"), models);
  const shown = await page.evaluate(() => document.querySelector("details[open] .receipt").innerText);
  const { receipt } = cells.find((cell) => cell.pattern === "C2" && cell.model === "v1");
  for (const { what } of receipt) assert.ok(shown.includes(what), `${what} in ${shown}`);
  await keep("report-receipts.png", await page.screenshot());
});

test("it fits a telephone", async () => {
  const page = await browser.open(address, { width: 390, height: 800 });
  const { scrollWidth, clientWidth } = await page.evaluate(() => {
    const { scrollWidth, clientWidth } = document.documentElement;
    return { scrollWidth, clientWidth };
  });
  await keep("report-narrow.png", await page.screenshot());
  assert.ok(scrollWidth <= clientWidth, `${scrollWidth} of ${clientWidth}`);
});

test("errors and requests would have been seen", async () => {
  const asked = [];
  const server = createServer((request, response) => {
    asked.push(request.url);
    response.writeHead(404).end();
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const other = `http://127.0.0.1:${server.address().port}/font.woff`;
  const file = join(directory, "wrong.html");
  await writeFile(file, `<img src="${other}"><script>console.error("said"); missing();</script>`);
  const page = await browser.open(pathToFileURL(file).href);
  server.close();
  assert.ok(page.requests.includes(other));
  assert.deepEqual(asked, ["/font.woff"]);
  for (const word of ["said", "missing is not defined", "404"]) {
    assert.ok(page.errors.some((error) => error.includes(word)), `${word} in ${page.errors}`);
  }
});
