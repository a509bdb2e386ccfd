/** Loads from the store of a page. */

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  beginLoad,
  deleteAll,
  keptFiles,
  lockIsAwaited,
  removeKept,
  tryStory,
} from "../test-support/store-page.js";
import {
  CHUNK,
  COMING,
  makeStage,
  openProfile,
  openTab,
  SHORT,
  sha256,
} from "../test-support/store-stage.js";

const PATH = "/models/large.safetensors";

/** @type {Awaited<ReturnType<typeof makeStage>>} */
let stage;
/** @type {Awaited<ReturnType<typeof openProfile>>} */
let profile;
/** @type {import("playwright-core").Page} */
let page;
/** Address of the large model, on the pages' own server. @type {string} */
let source;

beforeAll(async () => {
  stage = await makeStage();
  profile = await openProfile();
  source = stage.url + PATH;
});
afterAll(async () => {
  await profile?.remove();
  await stage?.stop();
});
beforeEach(async () => {
  stage.models.put(PATH, stage.large, '"one"');
  page = await openTab(profile.context, stage.url);
});
afterEach(async () => {
  stage.models.clearRules();
  await page.evaluate(deleteAll);
  for (const tab of profile.context.pages()) await tab.close();
  stage.models.takeRequests();
});

const tell = (tab = page, from = source) => tab.evaluate(tryStory, { ...SHORT, source: from });
const list = (tab = page) => tab.evaluate(() => /** @type {any} */ (globalThis).setun.models.list());

/** Starts a download whose second chunk stalls, and waits until the others are stored. */
async function beginStalled() {
  stage.models.ruleAt(PATH, CHUNK, 1, { stall: CHUNK >> 1 });
  await page.evaluate(beginLoad, { source });
  await expect.poll(async () => (await list())[0]?.bytes).toBe(stage.large.length - CHUNK);
  stage.models.takeRequests();
}

/** A new tab requests nothing but the part that is missing. @param {import("playwright-core").Page} tab */
async function expectResumed(tab) {
  expect((await tell(tab)).text).toBe(stage.texts.large);
  expect(stage.models.starts(PATH)).toEqual([CHUNK]);
  expect(stage.models.sent).toBe(CHUNK);
  expect(await list(tab)).toMatchObject([{ complete: true, bytes: stage.large.length }]);
}

describe("a second load", () => {
  it("downloads nothing, in a new tab and in a new browser", async () => {
    const first = await tell();
    expect(first.text).toBe(stage.texts.large);
    const bytes = stage.large.length;
    expect(first.progress).toEqual({
      phase: "ready",
      loadedBytes: bytes,
      totalBytes: bytes,
      file: "large.safetensors",
    });
    expect(stage.models.sent).toBe(bytes);
    const kept = Object.entries(await page.evaluate(keptFiles, true));
    expect(kept.filter(([path]) => path.endsWith("/large.safetensors"))).toEqual([
      [expect.stringMatching(/^setun\/models\//), sha256(stage.large)],
    ]);
    expect(kept.filter(([path]) => COMING.test(path))).toEqual([]);
    stage.models.takeRequests();

    const second = await openTab(profile.context, stage.url);
    const again = await tell(second);
    expect(again.text).toBe(stage.texts.large);
    expect(again.progress).toMatchObject({ loadedBytes: bytes, fromStore: true });
    expect(stage.models.requests.map(({ method }) => method)).toEqual(["HEAD"]);

    await profile.restart();
    page = await openTab(profile.context, stage.url);
    expect((await tell()).text).toBe(stage.texts.large);
    expect(stage.models.sent).toBe(0);
  });

  it.each([
    ["answers nothing", { breakAfter: 0 }],
    ["fails", { status: 503 }],
    ["has the file no more", { status: 404 }],
  ])("works where the server %s", async (_, act) => {
    expect((await tell()).text).toBe(stage.texts.large);
    stage.models.ruleOfAll(PATH, Number.POSITIVE_INFINITY, act);
    expect((await tell(await openTab(profile.context, stage.url))).text).toBe(stage.texts.large);
  });

  it("downloads a changed file, and deletes the previous one", async () => {
    const other = stage.url + PATH.replace("large", "other");
    stage.models.put(new URL(other).pathname, stage.small, '"one"');
    expect((await tell(page, other)).text).toBe(stage.texts.small);
    stage.models.put(new URL(other).pathname, stage.large, '"two"');
    expect((await tell(page, other)).text).toBe(stage.texts.large);
    expect(await list()).toMatchObject([{ complete: true, bytes: stage.large.length }]);
  });

  it("downloads what the browser has evicted", async () => {
    expect((await tell()).text).toBe(stage.texts.large);
    expect(await page.evaluate(removeKept, "large.safetensors")).toBe(true);
    expect(await list()).toMatchObject([{ complete: false }]);
    stage.models.takeRequests();
    expect((await tell()).text).toBe(stage.texts.large);
    expect(stage.models.sent).toBe(stage.large.length);
    expect(await list()).toMatchObject([{ complete: true }]);
  });

  it("is not stored with `store: false`", async () => {
    const told = await page.evaluate(tryStory, { ...SHORT, source, load: { store: false } });
    expect(told.text).toBe(stage.texts.large);
    expect(await page.evaluate(keptFiles)).toEqual({});
    expect(await list()).toEqual([]);
  });
});

describe("an interrupted download", () => {
  it("resumes in a new tab after the tab was closed", async () => {
    await beginStalled();
    const next = await openTab(profile.context, stage.url);
    await page.close();
    page = next;
    await expectResumed(next);
  });

  it("resumes after the worker was terminated", async () => {
    await page.addInitScript(() => {
      const all = /** @type {any} */ (globalThis);
      all.workers = [];
      all.Worker = class extends Worker {
        /** @param {string | URL} url @param {WorkerOptions} [options] */
        constructor(url, options) {
          super(url, options);
          all.workers.push(this);
        }
      };
    });
    await page.reload();
    await page.waitForFunction(() => "setun" in globalThis);
    await beginStalled();
    const ended = await page.evaluate(() => {
      const { workers } = /** @type {any} */ (globalThis);
      for (const worker of workers) worker.terminate();
      return workers.length;
    });
    expect(ended).toBeGreaterThan(0);
    await expectResumed(page);
  });

  it("resumes after an abort, and waiting loads start at once", async () => {
    await beginStalled();
    const next = await openTab(profile.context, stage.url);
    await next.evaluate(beginLoad, { source });
    // It waits for its turn, and requests nothing.
    await expect.poll(() => next.evaluate(lockIsAwaited)).toBe(true);
    expect(stage.models.starts(PATH)).toEqual([]);
    await page.evaluate(async () => {
      const all = /** @type {any} */ (globalThis);
      // Workers hold locks of their own.
      const ofStore = (/** @type {LockInfo[] | undefined} */ locks) =>
        (locks ?? []).filter(({ name }) => !name?.startsWith("setun-worker-"));
      const name = ofStore((await navigator.locks.query()).held)[0]?.name ?? "";
      all.stop();
      const reason = await all.ended;
      if (reason !== "stopped") throw new Error(`it ended with ${reason}`);
      // The other tab may be first: then its lock is the proof.
      for (;;) {
        const { held, pending } = await navigator.locks.query();
        if (ofStore(held).some((lock) => lock.name === name) && ofStore(pending).length === 0) break;
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    });
    expect(await next.evaluate(() => /** @type {any} */ (globalThis).ended)).toBe("loaded");
    // What has arrived of the chunk is kept.
    const [start = 0, ...others] = stage.models.starts(PATH);
    expect(others).toEqual([]);
    expect(start).toBeGreaterThan(CHUNK);
    expect(start).toBeLessThanOrEqual(1.5 * CHUNK);
    expect(stage.models.sent).toBe(2 * CHUNK - start);
    expect((await tell(next)).text).toBe(stage.texts.large);
  });
});

describe("two tabs that load the same model", () => {
  it("download each byte once", async () => {
    const next = await openTab(profile.context, stage.url);
    const waits = (/** @type {import("playwright-core").Page} */ tab) =>
      tab.waitForFunction(() => /** @type {any} */ (globalThis).phase === "waiting");
    stage.models.ruleAt(PATH, CHUNK, 1, { after: Promise.any([page, next].map(waits)) });
    const told = await Promise.all([tell(), tell(next)]);
    expect(told.map(({ text }) => text)).toEqual([stage.texts.large, stage.texts.large]);
    const phases = told.map(({ seen }) => [...new Set(seen?.map(({ phase }) => phase))].join());
    // The first tab still packs after its download if its engine is the slower part.
    expect(phases.map((each) => each.replace("packing,checking", "checking")).sort()).toEqual([
      "connecting,downloading,checking,ready",
      "connecting,waiting,packing,ready",
    ]);
    expect(stage.models.starts(PATH)).toEqual([0, CHUNK, 2 * CHUNK]);
    expect(stage.models.sent).toBe(stage.large.length);
  });
});

describe("models", () => {
  it("lists, finds and deletes stored models", async () => {
    const has = (/** @type {string} */ from) =>
      page.evaluate((each) => /** @type {any} */ (globalThis).setun.models.has(each), from);
    expect(await list()).toEqual([]);
    expect(await has(source)).toBe(false);
    await tell();
    const [model, ...others] = await list();
    expect(others).toEqual([]);
    expect(model).toEqual({
      name: `127.0.0.1_${new URL(stage.url).port}/models/large.safetensors`,
      revision: expect.stringMatching(/^[0-9a-f]{16}$/),
      source,
      bytes: stage.large.length,
      files: [{ name: "large.safetensors", bytes: stage.large.length }],
      pulled: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
      complete: true,
    });
    expect(await has(source)).toBe(true);
    // Relative to the page, as in `load`.
    expect(await has("models/large.safetensors")).toBe(true);
    expect(await has("models/none.safetensors")).toBe(false);
    const deleted = await page.evaluate(async (from) => {
      const { models } = /** @type {any} */ (globalThis).setun;
      return [await models.delete(from), await models.delete(from), await models.has(from)];
    }, source);
    expect(deleted).toEqual([true, false, false]);
    expect(await list()).toEqual([]);
    expect(Object.keys(await page.evaluate(keptFiles)).filter((path) => path.includes("large"))).toEqual([]);
  });

  it("lists what has arrived of a chunk after an abort, and loads the rest", async () => {
    await beginStalled();
    await page.evaluate(() => /** @type {any} */ (globalThis).stop());
    const kept = stage.large.length - CHUNK;
    await expect.poll(async () => (await list())[0]?.bytes).toBeGreaterThan(kept);
    const [{ bytes, complete }] = await list();
    expect(complete).toBe(false);
    const told = await tell();
    expect(told.text).toBe(stage.texts.large);
    const first = told.seen?.find(({ phase }) => phase === "downloading");
    expect(first.loadedBytes).toBeGreaterThanOrEqual(bytes);
    expect(stage.models.starts(PATH)).toEqual([CHUNK + bytes - kept]);
  });

  it("lists an unfinished download, and deletes it after an abort", async () => {
    await beginStalled();
    expect(await list()).toMatchObject([
      { source, complete: false, bytes: stage.large.length - CHUNK, files: [] },
    ]);
    await page.evaluate((from) => {
      const all = /** @type {any} */ (globalThis);
      all.deletion = all.setun.models.delete(from);
    }, source);
    await expect.poll(() => page.evaluate(lockIsAwaited)).toBe(true);
    const outcome = await page.evaluate(async () => {
      const all = /** @type {any} */ (globalThis);
      all.stop();
      return [await all.deletion, await all.setun.models.list()];
    });
    expect(outcome).toEqual([true, []]);
  });

  it("estimates the download and its stored part", async () => {
    const estimate = () =>
      page.evaluate((from) => /** @type {any} */ (globalThis).setun.models.estimate(from), source);
    const bytes = stage.large.length;
    const before = await estimate();
    expect(before).toMatchObject({ bytes, storedBytes: 0, storage: { fits: true } });
    expect(before.backends.some((/** @type {any} */ { fits }) => fits)).toBe(true);
    expect(await list()).toEqual([]);
    await tell();
    expect(await estimate()).toMatchObject({ bytes, storedBytes: bytes, memory: before.memory });
  });
});
