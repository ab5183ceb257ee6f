// Goal: a report of the laboratory is what a reader needs, in a real browser: every chart is drawn,
// every word can be read, nothing goes wrong, and nothing is asked of anybody.
// Method: all workloads are run at a small scale, and their reports opened by a Chromium that tells of
// every request and every error. With SCREENSHOTS=directory, what it looked like is kept there.

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

const WORKLOADS = ["authors", "blog", "comments", "hybrid", "person", "portfolio", "publisher"];

/** Runs a workload at a scale at which that takes seconds. */
const run = (workload, ...flags) => {
  const scale = workload === "blog" ? "0.00005" : "0.05";
  const all = ["lab", "run", workload, "--scale", scale, "--repeat", "1", "--in-memory", ...flags];
  return promisify(execFile)(process.env.COSMOLABE_BIN, all);
};

let directory, browser, address, cells;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), "cosmolabe-report-"));
  const [report, json] = ["report.html", "results.json"].map((name) => join(directory, name));
  await run("blog", "--report", report, "--json", json);
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
  const bars = await page.evaluate(visible, "#mix svg .bar");
  assert.ok(bars > models && bars <= cells.length, `${bars} bars: slivers are put together`);
  const copies = cells.filter((cell) => cell.propagation_ru > 0).length;
  assert.equal(await page.evaluate(visible, "#charges svg .hollow"), copies);
  assert.equal(await page.evaluate(visible, "#sweeps svg .curve"), 3 * models);
  assert.equal(await page.evaluate(visible, "#numbers tr"), cells.length + 1);
  await keep("report-light.png", await page.screenshot());
  assert.deepEqual(page.errors, []);
  assert.deepEqual(page.requests, [address], "the file itself, and nothing else");
});

/**
 * Texts of the page that stand on each other, or beyond an edge. Everything that is folded is
 * unfolded first.
 */
const unreadable = () => {
  document.querySelectorAll("details").forEach((details) => (details.open = true));
  const texts = [];
  const add = (text, box) => {
    if (box.width > 0 && box.height > 0) texts.push({ text, box });
  };
  const walker = document.createTreeWalker(document.querySelector("body"), NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const { parentElement } = node;
    const isRead = !parentElement.closest("svg, script, style") && parentElement.checkVisibility();
    if (!isRead || !node.data.trim()) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const box of range.getClientRects()) add(node.data.trim(), box);
  }
  for (const text of document.querySelectorAll("svg text")) {
    const words = [...text.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE);
    add(words.map((node) => node.data).join(""), text.getBoundingClientRect());
  }
  const slack = 1;
  const common = (a, b) => ({
    width: Math.min(a.right, b.right) - Math.max(a.left, b.left),
    height: Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top),
  });
  const wrong = [];
  texts.forEach(({ text, box }, at) => {
    const { clientWidth } = document.documentElement;
    if (box.left < -slack || box.right > clientWidth + slack) wrong.push(`${text} is cut off`);
    for (const other of texts.slice(at + 1)) {
      const { width, height } = common(box, other.box);
      if (width > slack && height > slack) wrong.push(`${text} stands on ${other.text}`);
    }
  });
  for (const box of document.querySelectorAll(".scroll, figure")) {
    if (box.scrollWidth > box.clientWidth + slack) wrong.push(`${box.className || box.localName} is cut off`);
  }
  for (const svg of document.querySelectorAll("svg")) {
    const frame = svg.getBoundingClientRect();
    for (const text of svg.querySelectorAll("text")) {
      const { width, height } = text.getBoundingClientRect();
      const inside = common(frame, text.getBoundingClientRect());
      const isInside = inside.width > width - slack && inside.height > height - slack;
      if (!isInside) wrong.push(`${text.textContent} is beyond its chart`);
    }
  }
  return wrong;
};

for (const workload of WORKLOADS) {
  test(`every word of ${workload} can be read`, async () => {
    const file = join(directory, `${workload}.html`);
    await run(workload, "--report", file);
    for (const width of [800, 1400]) {
      const page = await browser.open(pathToFileURL(file).href, { width });
      await keep(`${workload}-${width}.png`, await page.screenshot());
      assert.deepEqual(await page.evaluate(unreadable), [], `${workload} at ${width}`);
      const said = await page.evaluate(visible, "#lessons li");
      assert.ok(said > 1 && said <= 6, `${said} lessons`);
      assert.deepEqual(page.errors, []);
    }
  });
}

test("words that cannot be read would have been seen", async () => {
  const file = join(directory, "unreadable.html");
  const chart = '<svg viewBox="0 0 100 50"><text x="5" y="20">one</text><text x="9" y="20">two</text></svg>';
  await writeFile(file, `<body>${chart}<p style="position: absolute; left: -20px">three</p></body>`);
  const page = await browser.open(pathToFileURL(file).href, { width: 400 });
  const wrong = await page.evaluate(unreadable);
  assert.ok(wrong.includes("one stands on two") && wrong.includes("three is cut off"), `${wrong}`);
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
