/** The built page without a network, and on a host that sends no headers. */

import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { launch } from "../browser.mjs";
import { PATIENCE, startPreview } from "./preview.mjs";

/** @type {import("playwright-core").Browser} */
let browser;
/** @type {import("playwright-core").BrowserContext} */
let context;
/** @type {import("playwright-core").Page} */
let page;
/** @type {Awaited<ReturnType<typeof startPreview>>} */
let server;

before(async () => {
  browser = await launch();
});
after(() => browser.close());
beforeEach(async () => {
  server = await startPreview({ SETUN_ISOLATED: "0" });
  context = await browser.newContext();
  page = await context.newPage();
  await page.goto(server.url);
  // On the first visit the service worker loads the page again.
  await page.waitForFunction(() => crossOriginIsolated && document.readyState === "complete", null, PATIENCE);
});
afterEach(async () => {
  await context.close();
  await server.stop();
});

/** A short story with the controls as they are. */
async function story() {
  await page.fill("#max-tokens", "12");
  await page.fill("#seed", "3");
  await page.click("#run");
  await page.waitForSelector("#run:enabled", PATIENCE);
  assert.equal(
    await page.getAttribute("#status", "data-state"),
    "done",
    (await page.textContent("#status")) ?? "",
  );
  return page.textContent("#text");
}

describe("the page on a host of static files", () => {
  it("becomes isolated, so that threads run", async () => {
    await story();
    const builds = await page.evaluate(() => [
      document.querySelector("#build-used")?.textContent,
      isSecureContext,
    ]);
    assert.match(
      (await page.textContent("#isolation")) ?? "",
      /is cross-origin isolated: threads can be used/,
    );
    assert.match(String(builds[0]), /^(relaxed|simd128)/);
    assert.equal(await page.evaluate(() => new SharedArrayBuffer(8).byteLength), 8);
  });

  it("opens and runs after a reload without a server, and loads only once", async () => {
    const text = await story();
    await server.stop();
    assert.equal(await fetch(server.url).catch(() => "refused"), "refused");
    await page.reload();
    assert.equal(await story(), text);
    assert.equal(await page.evaluate(() => crossOriginIsolated), true);
    for (const view of ["chat", "models", "benchmark", "parity", "explorer"]) {
      await page.click(`nav a[href="#${view}"]`);
      await page.waitForSelector(`[data-view~="${view}"]:visible`);
    }
    await page.click('nav a[href="#chat"]');
    await page.fill("#message", "Once upon a time");
    await page.keyboard.press("Enter");
    await page.waitForSelector("article .note:not(:empty)", PATIENCE);
    assert.equal(await page.isVisible("#page-status"), false);
  });

  it("runs without a server even if nothing ran before: the build is fetched when the page is idle", async () => {
    await page.goto(`${server.url}#models`);
    await page.waitForSelector("#offline-note:visible", PATIENCE);
    await server.stop();
    await page.click('nav a[href="#story"]');
    await page.reload();
    assert.ok(((await story()) ?? "").length > 10);
  });

  it("can be installed", async () => {
    const session = await context.newCDPSession(page);
    const { errors, url } = await session.send("Page.getAppManifest");
    assert.deepEqual(errors, []);
    assert.match(url, /manifest\.webmanifest$/);
    const { installabilityErrors } = await session.send("Page.getInstallabilityErrors");
    // Tests run in windows that keep nothing.
    assert.deepEqual(
      installabilityErrors.filter(({ errorId }) => errorId !== "in-incognito"),
      [],
    );
  });

  it("answers with the page's files alone, each with the headers", async () => {
    const found = await page.evaluate(async () => {
      const [asset, model, absent] = await Promise.all([
        fetch(document.querySelector("script[src]")?.getAttribute("src") ?? ""),
        fetch("./package.json", { method: "HEAD" }),
        fetch("./nothing.gguf"),
      ]);
      return [asset, model, absent].map((answer) => answer.headers.get("cross-origin-embedder-policy"));
    });
    assert.deepEqual(found, ["require-corp", null, null]);
  });
});

it("keeps what the first story fetched before the service worker was there", async () => {
  const host = await startPreview({});
  const visitor = await launch([], { isFirstVisit: true });
  try {
    page = await visitor.newPage();
    await page.goto(host.url);
    await page.waitForSelector('#status[data-state="done"]', PATIENCE);
    await page.waitForFunction(
      async () => {
        const caches = await Promise.all(
          (await window.caches.keys()).map((name) => window.caches.open(name)),
        );
        const kept = (await Promise.all(caches.map((cache) => cache.keys()))).flat();
        return [".wasm", ".safetensors"].every((end) => kept.some(({ url }) => url.endsWith(end)));
      },
      null,
      PATIENCE,
    );
    await host.stop();
    await page.reload();
    assert.ok(((await story()) ?? "").length > 10);
  } finally {
    await visitor.close();
    await host.stop();
  }
});
