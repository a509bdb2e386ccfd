/** `setun/isolate` on a host that sends no headers, in Chromium and Firefox: reloads are counted by the server. */

import { copyFile, readFile } from "node:fs/promises";
import { join } from "node:path";
import { brotliCompressSync } from "node:zlib";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { launchChromium, launchFirefox } from "../test-support/browsers.js";
import { INDEX_HTML, STORY, tellStory } from "../test-support/page.js";
import { makeProject } from "../test-support/project.js";
import { IS_FULL } from "../test-support/selection.js";
import { startServer } from "../test-support/server.js";

/** Isolates itself as the address says, and then makes the package reachable, unless it is loaded again. */
const MAIN = `import * as setun from "./node_modules/setun/dist/index.js";
import { isolate } from "./node_modules/setun/dist/isolate.js";
const { own, ...options } = JSON.parse(new URLSearchParams(location.search).get("options") ?? "{}");
if (own) options.serviceWorker = await navigator.serviceWorker.register(own, { type: "module" });
const outcome = await isolate(options);
if (outcome.status !== "reloading") Object.assign(window, { setun, outcome });
`;

/** A page's own worker, which answers everything. */
const OWN = `import { addIsolationHeaders } from "./node_modules/setun/dist/isolate.js";
addEventListener("install", () => skipWaiting());
addEventListener("activate", (event) => event.waitUntil(clients.claim()));
addEventListener("fetch", (event) => event.respondWith(fetch(event.request).then((response) => addIsolationHeaders(response))));
`;

const FILES = {
  "index.html": INDEX_HTML,
  "main.js": MAIN,
  "own.js": OWN,
  "imported.js": 'importScripts("./node_modules/setun/dist/isolate-worker.js");\n',
  "idle.js": 'addEventListener("fetch", () => {});\n',
  "framing.html": '<!doctype html><title>frame</title><iframe src="./index.html"></iframe>\n',
};

/** Most bytes after brotli: of what a page imports, and of the worker. */
const BUDGETS = { "isolate.js": 2_400, "isolate-worker.js": 700 };

/** @type {Awaited<ReturnType<typeof makeProject>>} */
let project;
/** @type {Awaited<ReturnType<typeof startServer>>} */
let server;

beforeAll(async () => {
  project = await makeProject(FILES);
  const worker = "isolate-worker.js";
  await copyFile(join(project.folder, "node_modules/setun/dist", worker), join(project.folder, worker));
});
afterAll(() => project?.remove());
beforeEach(async () => {
  server = await startServer({ root: project.folder, strict: true });
});
afterEach(() => server.stop());

it.each(Object.entries(BUDGETS))("%s is within its budget", async (name, budget) => {
  const script = await readFile(join(project.folder, "node_modules/setun/dist", name));
  expect(brotliCompressSync(script).length).toBeLessThan(budget);
});

/** @param {object} options Of `isolate`, or `own`, the address of another worker. */
const address = (options = {}) => `${server.url}/index.html?options=${JSON.stringify(options)}`;

const loads = () => server.requests.filter((path) => path === "/index.html").length;

/** Runs in the page: what became of the call, and whether there is shared memory. */
const outcome = () => ({
  .../** @type {any} */ (globalThis).outcome,
  isIsolated: crossOriginIsolated && new SharedArrayBuffer(8).byteLength === 8,
});

const isReady = () => "outcome" in window;

/** Runs in the page: what it has of another origin. @param {string} origin */
async function foreignParts(origin) {
  const image = new Image();
  const isShown = new Promise((resolve) => {
    image.onload = () => resolve(true);
    image.onerror = () => resolve(false);
  });
  image.src = `${origin}/dot.svg`;
  const heard = () =>
    new Promise((resolve) => addEventListener("message", ({ data }) => resolve(data), { once: true }));
  const frame = document.body.appendChild(document.createElement("iframe"));
  frame.src = `${origin}/told`;
  const fromFrame = await heard();
  open(`${origin}/told`);
  return { image: await isShown, frame: fromFrame, window: await heard() };
}

describe("Chromium", () => {
  /** @type {import("playwright-core").Browser} */
  let browser;
  /** @type {import("playwright-core").BrowserContext} */
  let context;
  /** @type {import("playwright-core").Page} */
  let page;

  beforeAll(async () => {
    browser = await launchChromium();
  });
  afterAll(() => browser?.close());
  beforeEach(async () => {
    context = await browser.newContext();
    page = await context.newPage();
  });
  afterEach(() => context.close());

  /** @param {string} url @param {import("playwright-core").Page} opened */
  async function open(url, opened = page) {
    await opened.goto(url);
    await opened.waitForFunction(isReady);
    return opened.evaluate(outcome);
  }

  it("runs threads after one reload, and after none on the next visit", async () => {
    expect(await open(address())).toEqual({ status: "isolated", isIsolated: true });
    expect(loads()).toBe(2);
    const { result } = await page.evaluate(tellStory, STORY);
    expect(result.build).toBe("relaxed-threads");
    expect(await open(address(), await context.newPage())).toMatchObject({ isIsolated: true });
    expect(loads()).toBe(3);
  });

  it("has the headers of each policy, also of one that is changed", async () => {
    const headers = async () => {
      const { "document-isolation-policy": document, "cross-origin-embedder-policy": embedder } =
        (await page.reload())?.headers() ?? {};
      return document ?? embedder;
    };
    for (const [policy, value] of [
      ["require-corp", "require-corp"],
      ["credentialless", "credentialless"],
      ["document", "isolate-and-credentialless"],
    ]) {
      expect(await open(address({ policy }))).toEqual({ status: "isolated", isIsolated: true });
      const isInstalled = async () => !(await navigator.serviceWorker.ready).installing;
      await expect.poll(() => page.evaluate(isInstalled)).toBe(true);
      expect(await headers(), policy).toBe(value);
    }
    // One reload for the first policy; the page stays isolated when it is changed. Each is visited and loaded again.
    expect(loads()).toBe(1 + 2 * 3);
  });

  it("leaves what is of other origins, and windows keep their opener", async () => {
    const others = await startServer({
      root: project.folder,
      answers: { "/dot.svg": sendImage, "/told": sendTelling },
    });
    const other = others.url.replace("127.0.0.1", "localhost");
    const lax = await startServer({ root: project.folder });
    await open(`${lax.url}/index.html`);
    expect(await page.evaluate(foreignParts, other)).toEqual({
      image: true,
      frame: "parent",
      window: "opener",
    });
    await lax.stop();
    await others.stop();
  });

  it("isolates a frame of a page that is not isolated", async () => {
    await page.goto(`${server.url}/framing.html`);
    const [, frame] = page.frames();
    await frame?.waitForFunction(isReady);
    expect(await frame?.evaluate(outcome)).toEqual({ status: "isolated", isIsolated: true });
    expect(await page.evaluate(() => crossOriginIsolated)).toBe(false);
    expect(loads()).toBe(2);
  });

  it("takes the page's own worker", async () => {
    expect(await open(address({ own: "./own.js" }))).toEqual({ status: "isolated", isIsolated: true });
    expect(loads()).toBe(2);
  });

  it("registers and loads nothing where the server isolates", async () => {
    const isolated = await startServer({ root: project.folder, isolated: true });
    expect(await open(`${isolated.url}/index.html`)).toEqual({ status: "isolated", isIsolated: true });
    expect(await page.evaluate(async () => (await navigator.serviceWorker.getRegistrations()).length)).toBe(
      0,
    );
    expect(isolated.requests.filter((path) => path === "/index.html")).toHaveLength(1);
    await isolated.stop();
  });

  it.each([
    [{ serviceWorker: "./absent.js" }, "service-worker-failed", 1],
    [{ serviceWorker: "./node_modules/setun/dist/isolate-worker.js" }, "scope", 1],
    [{ own: "./idle.js" }, "not-isolated", 2],
  ])("says why it does not isolate: %j", async (options, reason, count) => {
    const expected = { status: "unsupported", reason, message: expect.any(String), isIsolated: false };
    expect(await open(address(options))).toEqual(expected);
    expect(loads()).toBe(count);
    // Nor later in this tab.
    expect(await open(address(options))).toMatchObject({ reason });
    expect(loads()).toBe(count + 1);
  });

  it("leaves the worker that a page has", async () => {
    await open(address({ own: "./idle.js" }));
    const found = await open(address());
    expect(found).toMatchObject({
      reason: "other-service-worker",
      message: expect.stringContaining("/idle.js"),
    });
  });

  it("loads no page again without service workers", async () => {
    await context.close();
    context = await browser.newContext();
    await context.addInitScript(() => Reflect.deleteProperty(Navigator.prototype, "serviceWorker"));
    page = await context.newPage();
    expect(await open(address())).toMatchObject({ reason: "no-service-worker", isIsolated: false });
    expect(loads()).toBe(1);
  });
});

if (IS_FULL) {
  describe("Firefox", () => {
    /** @type {Awaited<ReturnType<typeof launchFirefox>>} */
    let browser;
    beforeAll(async () => {
      browser = await launchFirefox();
    });
    afterAll(() => browser?.close());

    it("runs threads after one reload", async () => {
      const page = await browser.newPage();
      await page.goto(address());
      await page.waitForFunction(isReady);
      expect(await page.evaluate(outcome)).toEqual({ status: "isolated", isIsolated: true });
      expect(loads()).toBe(2);
      const { result } = await page.evaluate(tellStory, STORY);
      expect(result.build).toMatch(/-threads$/);
    });

    it.each([
      ["./imported.js", { status: "isolated", isIsolated: true }, 2],
      ["./absent.js", { reason: "service-worker-failed", isIsolated: false }, 1],
    ])("takes the worker of an address, or says why not: %s", async (serviceWorker, expected, count) => {
      const page = await browser.newPage();
      await page.goto(address({ serviceWorker }));
      await page.waitForFunction(isReady);
      expect(await page.evaluate(outcome)).toMatchObject(expected);
      expect(loads()).toBe(count);
    });
  });
}

/** @param {import("node:http").IncomingMessage} _ @param {import("node:http").ServerResponse} response */
function sendImage(_, response) {
  const image = '<svg xmlns="http://www.w3.org/2000/svg" width="2" height="2"/>';
  response.writeHead(200, { "content-type": "image/svg+xml" }).end(image);
}

/** A page that tells who opened it. @param {import("node:http").IncomingMessage} _ @param {import("node:http").ServerResponse} response */
function sendTelling(_, response) {
  const script = 'opener ? opener.postMessage("opener", "*") : parent.postMessage("parent", "*")';
  response.writeHead(200, { "content-type": "text/html" }).end(`<script>${script}</script>`);
}
