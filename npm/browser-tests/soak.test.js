/** A tab gives back what models and random requests used. `SETUN_SOAK_MINUTES=60` runs the latter longer. */

import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { launchChromium, openPage } from "../test-support/browsers.js";
import { INDEX_HTML, PLAIN_MAIN } from "../test-support/page.js";
import { PATIENCE_MS } from "../test-support/patience.js";
import { makeProject } from "../test-support/project.js";
import { makeRandomRequests } from "../test-support/random-requests.js";
import { IS_FULL, REPEAT, SEED } from "../test-support/selection.js";
import { startServer } from "../test-support/server.js";

const MINUTES = Number(process.env.SETUN_SOAK_MINUTES ?? 0);

/** Models that are loaded and disposed one after the other, and those of them before memory is compared. */
const MODELS = IS_FULL ? 50 : 20;
const FIRST_MODELS = 10;

/** Rounds of a short run, and those after which everything has been used once. */
const ROUNDS = IS_FULL ? 4 : 3;
const WARM_UP = 2;

/** What collectors of garbage leave for later differs by less. */
const SLACK_BYTES = 64e6;

const PAGE_BYTES = 4096;

/** @type {Awaited<ReturnType<typeof makeProject>>} */
let project;
/** @type {import("playwright-core").Browser} */
let browser;
/** @type {Awaited<ReturnType<typeof startServer>>} */
let server;
/** @type {Awaited<ReturnType<typeof openPage>>} */
let opened;

beforeAll(async () => {
  project = await makeProject({ "index.html": INDEX_HTML, "main.js": PLAIN_MAIN });
  server = await startServer({ root: project.folder, isolated: true });
  browser = await launchChromium();
  opened = await openPage(browser, `${server.url}/index.html`);
});
afterAll(async () => {
  await browser?.close();
  await server?.stop();
  await project?.remove();
});

/** Bytes in memory of the processes of pages; 0 where they cannot be read. */
async function residentBytes() {
  const page = await opened.page.context().newCDPSession(opened.page);
  await page.send("HeapProfiler.collectGarbage");
  await page.detach();
  const all = await browser.newBrowserCDPSession();
  const { processInfo } = await all.send("SystemInfo.getProcessInfo");
  await all.detach();
  const renderers = processInfo.filter(({ type }) => type === "renderer");
  const bytes = await Promise.all(renderers.map(({ id }) => bytesOf(id)));
  return bytes.reduce((sum, each) => sum + each, 0);
}

/** The second field of Linux's `/proc/ID/statm` (proc(5)) are pages in memory. @param {number} id */
async function bytesOf(id) {
  if (process.platform !== "linux") return 0;
  return PAGE_BYTES * Number((await readFile(`/proc/${id}/statm`, "utf8")).split(" ")[1]);
}

/**
 * Runs in the page: loads models, in a worker and on the page's thread in turn, and disposes each after a token.
 *
 * The file is fetched once: a browser that is driven keeps the answers of a page, up to 200 MB.
 */
async function loadAndDispose(/** @type {number} */ count) {
  const all = /** @type {any} */ (globalThis);
  const fetched = async () => (await fetch("./node_modules/setun/model/stories.safetensors")).blob();
  all.file ??= new File([await fetched()], "stories.safetensors");
  for (let index = 0; index < count; index += 1) {
    const model = await all.setun.load(all.file, { worker: index % 2 === 0, backend: "cpu" });
    await model.generate("The", { maxTokens: 1 }).text();
    await model.dispose();
  }
}

it(`gives back the memory and workers of ${MODELS} disposed models`, async () => {
  const { page, errors } = opened;
  await page.evaluate(loadAndDispose, FIRST_MODELS);
  await expect.poll(() => page.workers().length).toBe(0);
  const start = await residentBytes();
  await page.evaluate(loadAndDispose, MODELS - FIRST_MODELS);
  await expect.poll(() => page.workers().length).toBe(0);
  expect(await residentBytes()).toBeLessThan(start + SLACK_BYTES);
  expect(errors).toEqual([]);
});

it(
  `returns to the memory and workers of its start (${REPEAT})`,
  async () => {
    const { page, errors } = opened;
    await page.evaluate(async () => {
      const all = /** @type {any} */ (globalThis);
      all.model = await all.setun.load(undefined, { maxConcurrent: 4 });
    });
    const end = Date.now() + 60_000 * MINUTES;
    const workers = opened.page.workers().length;
    let start = await residentBytes();
    for (let round = 0; round < ROUNDS || Date.now() < end; round += 1) {
      const rest = await page.evaluate(makeRandomRequests, { seed: SEED + round, callers: 3, operations: 8 });
      expect(rest).toMatchObject({ usedBlocks: 0, cachedBlocks: 0 });
      // A browser takes some seconds to end a worker that is blocked.
      await expect.poll(() => opened.page.workers().length).toBe(workers);
      const found = await residentBytes();
      if (round < WARM_UP) start = found;
      expect(found).toBeLessThan(start + SLACK_BYTES);
      if (MINUTES > 0 && round % 20 === 0) console.log(`round ${round}`, rest, found);
    }
    expect(errors).toEqual([]);
  },
  PATIENCE_MS + 60_000 * MINUTES,
);
