/** A page gives the memory of a disposed model back, without a collection of garbage that somebody asks for. */

import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { launchChromium, openPage } from "../test-support/browsers.js";
import { embeddedModel, largeModel } from "../test-support/checkpoint.js";
import { INDEX_HTML, PLAIN_MAIN } from "../test-support/page.js";
import { makeProject, writeFiles } from "../test-support/project.js";
import { IS_FULL } from "../test-support/selection.js";
import { startServer } from "../test-support/server.js";

/** Models that are loaded and disposed one after the other. */
const LOADS = IS_FULL ? 10 : 3;

const LAYERS = 60;

/** What a page may keep of a model of 200 MB: compiled code, and what the next load uses again. */
const SLACK_BYTES = 64e6;

/** What a page may keep more after the last model than after the second, of 200 MB each. */
const GROWTH_BYTES = 16e6;

const PAGE_BYTES = 4096;

/** How long a browser may take to end workers and unmap their memory, on a machine that does other things. */
const PATIENCE = { timeout: 30_000, interval: 100 };

/** @type {Awaited<ReturnType<typeof makeProject>>} */
let project;
/** @type {import("playwright-core").Browser} */
let browser;
/** @type {Awaited<ReturnType<typeof startServer>>} */
let server;

beforeAll(async () => {
  project = await makeProject({ "index.html": INDEX_HTML, "main.js": PLAIN_MAIN });
  const large = largeModel(embeddedModel(project.folder).folder, { layers: LAYERS });
  await writeFiles(project.folder, { "large.safetensors": /** @type {any} */ (large) });
  server = await startServer({ root: project.folder, isolated: true });
  browser = await launchChromium({ measuresMemory: true });
});
afterAll(async () => {
  await browser?.close();
  await server?.stop();
  await project?.remove();
});

/** Bytes in memory of the processes of pages. The second field of Linux's `/proc/ID/statm` (proc(5)) are pages. */
async function residentBytes() {
  const all = await browser.newBrowserCDPSession();
  const { processInfo } = await all.send("SystemInfo.getProcessInfo");
  await all.detach();
  const renderers = processInfo.filter(({ type }) => type === "renderer");
  const bytes = await Promise.all(
    renderers.map(async ({ id }) => Number((await readFile(`/proc/${id}/statm`, "utf8")).split(" ")[1])),
  );
  return bytes.reduce((sum, each) => sum + each, 0) * PAGE_BYTES;
}

/** Bytes of a page and its workers as the browser counts them. It collects garbage. @param {import("playwright-core").Page} page */
async function countedBytes(page) {
  return page.evaluate(async () => {
    const { bytes } = await /** @type {any} */ (performance).measureUserAgentSpecificMemory();
    return /** @type {number} */ (bytes);
  });
}

/** Runs in the page: loads the model from the store or its server, writes a token, and tells the build. */
async function loadOne(/** @type {number} */ threads) {
  const all = /** @type {any} */ (globalThis);
  all.model = await all.setun.load("./large.safetensors", { threads, backend: "cpu" });
  await all.model.generate("The", { maxTokens: 1 }).text();
  return all.model.info.build;
}

/** Runs in the page. */
async function disposeIt() {
  const all = /** @type {any} */ (globalThis);
  await all.model.dispose();
  all.model = undefined;
}

it.skipIf(process.platform !== "linux").each([1, 2])(
  "after each load in a row, threads: %i",
  async (threads) => {
    const { page, errors, close } = await openPage(browser, `${server.url}/index.html`);
    await countedBytes(page);
    const before = await residentBytes();
    const curve = [];
    let second = before;
    for (let load = 0; load < LOADS; load += 1) {
      expect(await page.evaluate(loadOne, threads)).toBe(threads > 1 ? "relaxed-threads" : "relaxed");
      const loaded = await residentBytes();
      expect(loaded - before).toBeGreaterThan(150e6);
      await page.evaluate(disposeIt);
      await vi.waitFor(
        async () => expect((await residentBytes()) - before).toBeLessThan(SLACK_BYTES),
        PATIENCE,
      );
      const after = await residentBytes();
      if (load === 1) second = after;
      curve.push([loaded, after].map((bytes) => Math.round(bytes / 1e6)));
    }
    console.info(
      `threads ${threads}, MB before: ${Math.round(before / 1e6)}, with the model and after it: ${curve.join("; ")}`,
    );
    await vi.waitFor(async () => expect(await residentBytes()).toBeLessThan(second + GROWTH_BYTES), PATIENCE);
    const counted = await countedBytes(page);
    console.info(`threads ${threads}, MB as the browser counts them: ${Math.round(counted / 1e6)}`);
    // A model that was left would be 200 MB.
    expect(counted).toBeLessThan(SLACK_BYTES);
    expect(errors).toEqual([]);
    await close();
  },
);
