// Looks at the pages of `forge report` and `forge serve` in headless Chromium.
//
//   node check.mjs FORGE CHROMIUM FOLDER
//
// FOLDER gets the pages and a picture of each at three widths, light and dark. Exits with 1 if anything is wrong.

import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const require = createRequire(join(process.env.PAGE_MODULES ?? import.meta.dirname, "package.json"));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

const [forge, browserPath, folder] = process.argv.slice(2);
const root = resolve(import.meta.dirname, "../..");
const widths = [1280, 768, 390];
const schemes = ["light", "dark"];
let checks = 0;
const wrong = [];
const expect = (fine, what) => {
  checks += 1;
  if (!fine) wrong.push(what);
};

// A store with the example, and one with hostile texts in every field. PAGE_TRANSCRIPT names a transcript to look at, too.
const place = mkdtempSync(join(tmpdir(), "forge-page-"));
const inStore = (name, ...commands) => {
  const home = join(place, name);
  mkdirSync(home, { recursive: true });
  const environment = { ...process.env, HOME: home, XDG_CONFIG_HOME: join(home, "config"), FORGE_STORE: join(home, "store") };
  for (const words of commands) execFileSync(forge, words, { cwd: home, env: environment, stdio: ["ignore", "pipe", "inherit"] });
  return { home, environment };
};
mkdirSync(folder, { recursive: true });
const example = inStore(
  "example",
  ["init"],
  ["import", "events", join(root, "docs/example/session.jsonl")],
  ["report", "-o", resolve(folder, "example.html")],
  ["report", "--no-script", "-o", resolve(folder, "plain.html")],
);
inStore("odd", ["init"], ["import", "events", join(root, "tests/page/odd.jsonl")], ["report", "-o", resolve(folder, "odd.html")]);
const pages = ["example", "plain", "odd"];
const own = process.env.PAGE_TRANSCRIPT;
if (own) {
  inStore("transcript", ["init"], ["import", own], ["report", "-o", resolve(folder, "transcript.html")]);
  pages.push("transcript");
}

const browserHome = mkdtempSync(join(tmpdir(), "forge-browser-"));
const options = {
  executablePath: browserPath,
  args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  reducedMotion: "reduce",
};
const context = await chromium.launchPersistentContext(browserHome, options);

const open = async (address, width = 1280, scheme = "light") => {
  const page = await context.newPage();
  await page.setViewportSize({ width, height: 900 });
  await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") wrong.push(`${address}: console: ${message.text()}`);
  });
  page.on("pageerror", (error) => wrong.push(`${address}: ${error.message}`));
  page.on("request", (request) => {
    const isOwn = /^(file:|http:\/\/127\.0\.0\.1:)/.test(request.url());
    if (!isOwn) wrong.push(`${address}: asks for ${request.url()}`);
  });
  await page.goto(address);
  return page;
};
const unfold = (page) => page.evaluate(() => document.querySelectorAll("details").forEach((fold) => (fold.open = true)));
const tooWide = (page) =>
  page.evaluate(() => {
    const edge = document.documentElement.clientWidth + 0.5;
    const scrolls = (element) => {
      for (let outer = element.parentElement; outer; outer = outer.parentElement) {
        if (["auto", "scroll", "hidden"].includes(getComputedStyle(outer).overflowX)) return true;
      }
      return false;
    };
    const beyond = [...document.body.querySelectorAll("*")].filter((element) => {
      const box = element.getBoundingClientRect();
      return box.width > 0 && box.right > edge && getComputedStyle(element).position !== "absolute" && !scrolls(element);
    });
    const page = document.documentElement.scrollWidth > document.documentElement.clientWidth ? ["the page"] : [];
    return [...page, ...beyond.slice(0, 5).map((element) => element.tagName + "." + element.getAttribute("class") + ": " + element.textContent.slice(0, 60))];
  });
const violations = async (page) => {
  // The page's policy forbids foreign scripts; a debugger may run one.
  const session = await context.newCDPSession(page);
  await session.send("Runtime.evaluate", { expression: axe });
  const run = "axe.run(document, { resultTypes: ['violations'] }).then((found) => JSON.stringify(found.violations.map((one) => [one.id, one.nodes.slice(0, 3).map((node) => node.target.join(' ') + ' ' + (node.any[0]?.message ?? ''))])))";
  const { result } = await session.send("Runtime.evaluate", { expression: run, awaitPromise: true });
  return JSON.parse(result.value ?? '[["axe did not run", []]]');
};

for (const name of pages) {
  const address = "file://" + resolve(folder, name + ".html");
  for (const scheme of schemes) {
    for (const width of widths) {
      const page = await open(address, width, scheme);
      await page.screenshot({ path: join(folder, `${name}-${width}-${scheme}.png`), fullPage: false });
      await unfold(page);
      const found = await violations(page);
      expect(found.length === 0, `${name} ${width} ${scheme}: axe: ${JSON.stringify(found)}`);
      await page.close();
    }
  }
  const page = await open(address, 375);
  await unfold(page);
  const beyond = await tooWide(page);
  expect(beyond.length === 0, `${name}: past the right edge at 375: ${beyond.join(" | ")}`);
  const foreign = await page.evaluate(() => document.querySelectorAll("script:not([type]), img, iframe, object, embed, link, base, [onload], [onerror], [onclick], [onmouseover]").length);
  expect(foreign <= 1, `${name}: ${foreign} scripts, images or handlers`);
  const dead = await page.evaluate(() =>
    [...document.querySelectorAll('a[href^="#"]')].map((link) => link.getAttribute("href")).filter((href) => !document.getElementById(decodeURIComponent(href.slice(1)))),
  );
  expect(dead.length === 0, `${name}: links that lead nowhere: ${dead.slice(0, 5)}`);
  await page.emulateMedia({ media: "print", colorScheme: "dark" });
  const unprinted = await page.evaluate(() => [...document.querySelectorAll(".line > div > details > summary")].filter((line) => !line.getClientRects().length).length);
  expect(unprinted === 0, `${name}: ${unprinted} lines of the story are not printed`);
  const ink = await page.evaluate(() => getComputedStyle(document.body).color);
  expect(ink === "rgb(28, 30, 34)", `${name}: printed in the colours of the dark scheme: ${ink}`);
  await page.close();
}

// The keyboard: the skip link, the slider, from prompt to prompt, and a link that opens its fold.
const page = await open("file://" + resolve(folder, "example.html"));
await page.keyboard.press("Tab");
expect(await page.evaluate(() => document.activeElement.classList.contains("skip")), "the first stop is not the skip link");
await page.keyboard.press("Enter");
expect(page.url().endsWith("#main"), "the skip link does not lead to the report");
const heard = () => page.evaluate(() => document.getElementById("slider").getAttribute("aria-valuetext"));
await page.focus("#slider");
const atEnd = await heard();
const held = () => page.evaluate(() => document.getElementById("moment").textContent);
expect((await held()).includes(".98 ✓ confirmed"), "the slider's last moment lacks what was confirmed");
await page.keyboard.press("Home");
expect((await heard()) !== atEnd && !(await held()).includes("confirmed"), "the slider's first moment has hindsight");
await page.evaluate(() => document.activeElement.blur());
await page.keyboard.press("j");
const first = await page.evaluate(() => document.querySelector(".here")?.id);
await page.keyboard.press("j");
const second = await page.evaluate(() => document.querySelector(".here")?.id);
await page.keyboard.press("k");
const back = await page.evaluate(() => document.querySelector(".here")?.id);
expect(first && second && first !== second && back === first, `j and k go from ${first} to ${second} to ${back}`);
await page.evaluate(() => (location.hash = "#file-1"));
expect(await page.evaluate(() => document.querySelector("#file-1 details").open), "a link does not open its fold");
await page.uncheck("#show-claims");
expect(await page.evaluate(() => !document.querySelector(".of-claims").offsetParent), "a filter hides nothing");

// Two moments, by keys: the second slider, what changed, and the replay.
const value = (id) => page.evaluate((id) => Number(document.getElementById(id).value), id);
await page.evaluate(() => document.activeElement.blur());
await page.keyboard.press("c");
expect(await page.isVisible("#from") && await page.isVisible("#changes"), "c does not compare");
await page.focus("#slider");
await page.keyboard.press("End");
await page.focus("#from");
await page.keyboard.press("Home");
const changed = () => page.textContent("#changes");
expect(/H4 new, 0\.98 ✓ confirmed/.test(await changed()), `from the first moment to the last: ${(await changed()).slice(0, 300)}`);
await page.keyboard.press("End");
expect((await changed()).includes("No claim and no check changed."), "a moment differs from itself");
await page.keyboard.press("Home");
const last = await value("slider");
await page.focus("#slider");
for (const key of [",", ",", "."]) await page.keyboard.press(key);
expect((await value("slider")) === last - 1, "the keys , and . do not step");
expect((await page.locator(".cursor.since").count()) === (await page.locator(".cursor:not(.since)").count()), "the charts lack a line for a moment");
await page.waitForFunction(() => /moment=\d+.*hide=claims|hide=claims.*moment=\d+/.test(location.search) && /since=\d+/.test(location.search));
// A link restores the view.
const copied = await open(page.url());
const seen = (one) => one.evaluate(() => [document.getElementById("slider").value, document.getElementById("from").value, document.getElementById("changes").textContent, document.getElementById("show-claims").checked, document.getElementById("show-edits").checked]);
expect(JSON.stringify(await seen(copied)) === JSON.stringify(await seen(page)), `a link shows ${JSON.stringify(await seen(copied))}`);
await unfold(copied);
const controls = await violations(copied);
expect(controls.length === 0, `controls: axe: ${JSON.stringify(controls)}`);
await copied.locator("#moments").screenshot({ path: join(folder, "controls.png") });
await copied.setViewportSize({ width: 375, height: 800 });
const wideControls = await tooWide(copied);
expect(wideControls.length === 0, `controls: past the right edge at 375: ${wideControls.join(" | ")}`);
await copied.close();
await page.evaluate(() => document.activeElement.blur());
await page.keyboard.press("j");
const chosen = await page.evaluate(() => document.querySelector(".here")?.id);
await page.waitForFunction((id) => location.hash === "#" + id, chosen);

// The replay runs, stops at the end, and where a claim changes if that is wanted.
await page.selectOption("#speed", "60");
await page.focus("#slider");
await page.keyboard.press("Home");
await page.keyboard.press("Space");
expect((await page.textContent("#play")) === "Pause", "the space bar does not play");
await page.waitForFunction((last) => Number(document.getElementById("slider").value) === last, last);
await page.waitForFunction(() => document.getElementById("play").textContent === "Play");
await page.check("#stop");
await page.evaluate(() => document.activeElement.blur());
await page.keyboard.press("p");
await page.waitForFunction(() => document.getElementById("play").textContent === "Play");
const stopped = await value("slider");
expect(stopped > 0 && stopped < last, `the replay stops at ${stopped} of ${last}`);
await page.close();

// The page that is served: the token, the moments, and what comes while it is open.
const server = spawn(forge, ["serve"], { cwd: example.home, env: example.environment, stdio: ["ignore", "ignore", "pipe"] });
try {
  const start = await new Promise((found, failed) => {
    let said = "";
    server.stderr.on("data", (bytes) => {
      said += bytes;
      const address = said.match(/http:\S+/);
      if (address) found(address[0]);
    });
    server.on("exit", () => failed(new Error(`forge serve ended: ${said}`)));
  });
  const served = await open(start);
  expect(!served.url().includes("token"), "the token stays in the address");
  expect((await violations(served)).length === 0, `sessions: axe: ${JSON.stringify(await violations(served))}`);
  await served.click(".sessions a");
  await served.waitForSelector("#story .line");
  const before = await served.locator("#story .line").count();
  execFileSync(forge, ["note", "add", "written while the page is open"], { cwd: example.home, env: example.environment, stdio: "ignore" });
  await served.waitForSelector("text=written while the page is open", { state: "attached", timeout: 20_000 });
  expect((await served.locator("#story .line").count()) > before, "the story does not grow");
  expect((await violations(served)).length === 0, `served: axe: ${JSON.stringify(await violations(served))}`);
  // What one looks at stays while the page changes.
  await served.evaluate(() => document.activeElement.blur());
  for (const key of ["c", ",", ","]) await served.keyboard.press(key);
  await served.uncheck("#show-edits");
  const looked = () => served.evaluate(() => [document.querySelector("#moment b").textContent, document.querySelector("#changes b").textContent, document.getElementById("show-edits").checked]);
  const wasLooked = JSON.stringify(await looked());
  execFileSync(forge, ["note", "add", "a second note"], { cwd: example.home, env: example.environment, stdio: "ignore" });
  await served.waitForSelector("text=a second note", { state: "attached", timeout: 20_000 });
  expect(JSON.stringify(await looked()) === wasLooked, `what is looked at moves: ${wasLooked} to ${JSON.stringify(await looked())}`);
  await served.waitForFunction(() => location.search.includes("moment="));
  await served.reload();
  expect(JSON.stringify(await looked()) === wasLooked, "a served link does not restore the view");
  const every = await served.getAttribute("#changes a", "href");
  const session = new URL(served.url()).pathname;
  expect(every.startsWith(session + "/diff/"), `'every change' leads to ${every}`);
  for (const [path, text] of [
    ["/at/2025-03-11T10:45:00Z", "As of"],
    [every.slice(session.length), "Changes from"],
    ["/diff/start/HEAD", "Changes from"],
    ["/e/hypothesis:H4", "hypothesis H4"],
    ["/search?q=clock", "Search: clock"],
  ]) {
    await served.goto(new URL(session + path, start).href);
    expect((await served.textContent("main")).includes(text), `${path} lacks '${text}'`);
    const found = await violations(served);
    expect(found.length === 0, `${path}: axe: ${JSON.stringify(found)}`);
  }
  await served.setViewportSize({ width: 375, height: 800 });
  const beyond = await tooWide(served);
  expect(beyond.length === 0, `search: past the right edge at 375: ${beyond.join(" | ")}`);
} finally {
  server.kill("SIGTERM");
}

await context.close();
for (const used of [place, browserHome]) rmSync(used, { recursive: true, force: true });
writeFileSync(join(folder, "result.txt"), [...new Set(wrong)].join("\n") + "\n");
for (const one of new Set(wrong)) console.error("scripts/page: " + one);
console.log(`forge pages: ${checks} checks, ${new Set(wrong).size} wrong`);
process.exit(wrong.length ? 1 : 0);
