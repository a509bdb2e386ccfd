/** One model for all tabs. `SETUN_TAB_ROUNDS=20` ends more leaders, `SETUN_SEED` at the tokens of another run. */

import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { launchChromium, launchFirefox, launchInPuppeteer } from "../test-support/browsers.js";
import { embeddedModel, largeModel } from "../test-support/checkpoint.js";
import { drawNumbers } from "../test-support/draw-requests.js";
import { INDEX_HTML, PLAIN_MAIN } from "../test-support/page.js";
import { makeProject } from "../test-support/project.js";
import { IS_FULL, REPEAT, SEED } from "../test-support/selection.js";
import { startServer } from "../test-support/server.js";
import { useAll } from "../test-support/use-all.js";
import {
  begin,
  crash,
  end,
  hasTokens,
  LOAD,
  leaderOf,
  loadIn,
  MODEL,
  OPTIONS,
  openPageAt,
  openTabAt,
  PROMPT,
  release,
  send,
  whole,
  workersOf,
} from "./shared-tabs.js";

const ROUNDS = Number(process.env.SETUN_TAB_ROUNDS ?? (IS_FULL ? 3 : 1));

/** Token at which readers wait, before the end of every text. */
const HOLD = 130;

/** Tokens at which leaders end: at most 60 rounds have different ones. */
const ENDS = drawNumbers(2 * ROUNDS, SEED, HOLD - 9);

/** @type {Awaited<ReturnType<typeof makeProject>>} */
let project;
/** @type {Awaited<ReturnType<typeof startServer>>} */
let server;
/** @type {import("playwright-core").Browser} */
let browser;
/** Tabs of one context share locks and storage. @type {import("playwright-core").BrowserContext} */
let context;
/** The undisturbed text of each seed. @type {string[]} */
let texts;

beforeAll(async () => {
  project = await makeProject({ "index.html": INDEX_HTML, "main.js": PLAIN_MAIN });
  server = await startServer({ root: project.folder, isolated: true });
  browser = await launchChromium();
  context = await browser.newContext();
  const page = await openPage();
  texts = await page.evaluate(
    async ({ prompt, options, model: source }) => {
      const model = await /** @type {any} */ (globalThis).setun.load(source, { threads: 1 });
      const seeds = [0, 1, 2, 3];
      const texts = await Promise.all(
        seeds.map((seed) => model.generate(prompt, { ...options, seed }).text()),
      );
      await model.dispose();
      return texts;
    },
    { prompt: PROMPT, options: OPTIONS, model: MODEL },
  );
  await context.close();
});
afterAll(async () => {
  await browser?.close();
  await server?.stop();
  await project?.remove();
});
beforeEach(async () => {
  context = await browser.newContext();
});
afterEach(() => context.close());

const openPage = (opener = context) => openPageAt(opener, `${server.url}/index.html`);

/** A tab with the shared model. */
const openTab = (load = LOAD, opener = /** @type {{ newPage(): Promise<any> }} */ (context)) =>
  openTabAt(opener, `${server.url}/index.html`, load);

describe("four tabs", () => {
  it("have one worker, read the model once, and tell their own texts at once", async () => {
    const before = server.requests.filter((path) => path === MODEL).length;
    const pages = await Promise.all([0, 1, 2, 3].map(() => openTab()));
    expect(workersOf(pages)).toBe(1);
    await Promise.all(pages.map((page, seed) => begin(page, seed)));
    expect(await Promise.all(pages.map(end))).toEqual(texts.map(whole));
    const requests = server.requests.filter((path) => path === MODEL).length - before;
    const alone = await requestsOfOneLoad();
    expect(requests).toBe(alone);
  });

  it("have it, too, if one hears of the leader before it has its own lock", async () => {
    const [late, leader] = [await openPage(), await openPage()];
    await late.evaluate(() => {
      const { prototype } = LockManager;
      const { request } = prototype;
      const leads = new Promise((resolve) => {
        /** @type {any} */ (globalThis).otherLeads = resolve;
      });
      prototype.request = /** @type {any} */ (
        async function (/** @type {any[]} */ ...given) {
          await leads;
          return Reflect.apply(request, this, given);
        }
      );
    });
    const loads = loadIn(late);
    await loadIn(leader);
    await late.evaluate(() => /** @type {any} */ (globalThis).otherLeads());
    await loads;
    expect(workersOf([late])).toBe(0);
    await begin(late, 1);
    expect(await end(late)).toEqual(whole(texts[1]));
  });

  it.runIf(process.platform === "linux")("take at most 1.25 times the memory of one", async () => {
    const { folder } = embeddedModel(project.folder);
    await writeFile(join(project.folder, "large.safetensors"), largeModel(folder, { layers: 45 }));
    const pages = await Promise.all([0, 1, 2, 3].map(() => openPage()));
    const empty = await memoryOf(pages);
    await useLarge(pages.slice(0, 1));
    const one = (await memoryOf(pages)) - empty;
    await useLarge(pages.slice(1));
    const four = (await memoryOf(pages)) - empty;
    console.log(`memory of one tab ${one} bytes, of four ${four}: ${(four / one).toFixed(3)} times`);
    expect(workersOf(pages)).toBe(1);
    expect(four / one).toBeLessThanOrEqual(1.25);
  });
});

/** Loads a model of 146 MB in each tab, and tells a text. @param {import("playwright-core").Page[]} pages */
async function useLarge(pages) {
  const told = pages.map((page) =>
    page.evaluate(async () => {
      const all = /** @type {any} */ (globalThis);
      all.model = await all.setun.load("/large.safetensors", { shared: true, threads: 1, store: false });
      await all.model.generate("Once", { maxTokens: 20 }).result;
    }),
  );
  await Promise.all(told);
}

/**
 * Bytes of the processes of all pages after a collection of garbage: private ones, and the share of what several map
 * (proc(5), smaps_rollup). What empty pages take is the browser's.
 * @param {import("playwright-core").Page[]} pages
 */
async function memoryOf(pages) {
  for (const page of pages) {
    const session = await context.newCDPSession(page);
    await session.send("HeapProfiler.collectGarbage");
    await session.detach();
  }
  const session = await browser.newBrowserCDPSession();
  const { processInfo } = await session.send("SystemInfo.getProcessInfo");
  await session.detach();
  const renderers = processInfo.filter(({ type }) => type === "renderer");
  const sizes = renderers.map(async ({ id }) => {
    const rollup = await readFile(`/proc/${id}/smaps_rollup`, "utf8");
    return 1024 * Number(/^Pss:\s+(\d+) kB$/m.exec(rollup)?.[1]);
  });
  return (await Promise.all(sizes)).reduce((sum, bytes) => sum + bytes, 0);
}

/** Requests for the model that a load makes which nobody shares. */
async function requestsOfOneLoad() {
  const before = server.requests.filter((path) => path === MODEL).length;
  const own = await browser.newContext();
  const page = await own.newPage();
  await page.goto(`${server.url}/index.html`);
  await page.waitForFunction(() => "setun" in window);
  await page.evaluate((source) => /** @type {any} */ (globalThis).setun.load(source, { threads: 1 }), MODEL);
  await own.close();
  return server.requests.filter((path) => path === MODEL).length - before;
}

describe("a leader that ends", () => {
  it.each([
    ["closes", ENDS.slice(0, ROUNDS)],
    ["crashes", ENDS.slice(ROUNDS)],
  ])("changes no text: it %s", async (how, positions) => {
    let pages = await Promise.all([0, 1, 2, 3].map(() => openTab()));
    console.log(`${REPEAT}: it ${how} at tokens ${positions.join(", ")}`);
    for (const position of positions) {
      await Promise.all(pages.map((page, seed) => begin(page, seed, HOLD)));
      const leader = leaderOf(pages);
      await hasTokens(leader, position);
      if (how === "closes") await leader.close();
      else await crash(leader);
      await Promise.all(pages.filter((page) => page !== leader).map(release));
      const seeds = [0, 1, 2, 3].filter((seed) => pages[seed] !== leader);
      const ends = await Promise.all(seeds.map((seed) => end(/** @type {any} */ (pages[seed]))));
      const expected = seeds.map((seed) => whole(texts[seed]));
      expect(ends, `${how} at token ${position}`).toEqual(expected);
      const left = pages.filter((page) => page !== leader);
      // The next leader may still load, where texts were whole before the last one ended.
      await expect.poll(() => workersOf(left)).toBeGreaterThan(0);
      expect(workersOf(left)).toBe(1);
      if (how === "crashes") await leader.close();
      pages = [...left, await openTab()];
    }
  });

  it("by dispose serves the others without another load", async () => {
    const pages = await Promise.all([0, 1].map(() => openTab()));
    const leader = leaderOf(pages);
    const [other] = pages.filter((page) => page !== leader);
    if (other === undefined) throw new Error("two tabs");
    await begin(other, 1);
    await leader.evaluate(() => /** @type {any} */ (globalThis).model.dispose());
    expect(await end(other)).toEqual(whole(texts[1]));
    expect(leader.workers()).toHaveLength(1);
    await other.evaluate(() => /** @type {any} */ (globalThis).model.dispose());
    await expect.poll(() => workersOf(pages)).toBe(0);
  });

  it("by a freeze lets the next one lead; it and a frozen follower go on when they thaw", async () => {
    const pages = await Promise.all([0, 1, 2].map(() => openTab()));
    await Promise.all(pages.map((page, seed) => begin(page, seed, HOLD)));
    const leader = leaderOf(pages);
    const [follower, other] = pages.filter((page) => page !== leader);
    if (follower === undefined || other === undefined) throw new Error("three tabs");
    await Promise.all([leader, follower].map((page) => hasTokens(page, 20)));
    for (const page of [follower, leader]) await send(page, "freeze");
    // The lock is free: only this one waits for it.
    await expect.poll(() => other.workers().length).toBe(1);
    await expect.poll(() => leader.workers()).toHaveLength(0);
    for (const page of [follower, leader]) await send(page, "resume");
    await Promise.all(pages.map(release));
    expect(await Promise.all(pages.map(end))).toEqual(pages.map((_, seed) => whole(texts[seed])));
    expect(workersOf(pages)).toBe(1);
  });

  it("by a freeze of Chromium lets a follower go on, and goes on when it is active again", async () => {
    const chromium = await launchInPuppeteer();
    try {
      const leader = await openTab(LOAD, chromium);
      await begin(leader, 0, HOLD);
      await leader.waitForFunction(() => /** @type {any} */ (globalThis).tokens >= 20);
      await leader.evaluate("globalThis.beats = 0; setInterval(() => (beats += 1), 10);");
      const beats = () => leader.evaluate("beats");
      const follower = await openTab(LOAD, chromium);
      await begin(follower, 1, HOLD);
      const session = await /** @type {any} */ (leader).createCDPSession();
      await session.send("Page.setWebLifecycleState", { state: "frozen" });
      await expect.poll(() => follower.workers().length).toBe(1);
      const frozenAt = await beats();
      await release(follower);
      expect(await end(follower)).toEqual(whole(texts[1]));
      expect(await beats()).toBe(frozenAt);
      await session.send("Page.setWebLifecycleState", { state: "active" });
      await release(leader);
      expect(await end(leader)).toEqual(whole(texts[0]));
    } finally {
      await chromium.close();
    }
  });
});

describe("a tab that is reloaded", () => {
  it.each([
    ["shared", LOAD],
    ["not shared", { ...LOAD, shared: false }],
  ])("continues its text: %s", async (_, load) => {
    const page = await openTab(load);
    // What the host may send ahead of a reader must not be the rest of the text.
    await begin(page, 2, 30);
    await hasTokens(page, 30);
    await page.reload();
    await page.waitForFunction(() => "setun" in window);
    const { before, rest, result, left } = await page.evaluate(
      async ({ source, load }) => {
        const model = await /** @type {any} */ (globalThis).setun.load(source, load);
        const [kept] = model.resumable();
        const generation = kept.continue();
        let rest = "";
        for await (const { text } of generation) rest += text;
        const { text, tokens, usage } = await generation.result;
        const result = { text, tokens: tokens.length, usage };
        return { before: kept.text, rest, result, left: model.resumable().length };
      },
      { source: MODEL, load },
    );
    expect(before.length).toBeGreaterThan(0);
    expect(before + rest).toBe(texts[2]);
    expect([result.text, result.tokens, left]).toEqual([texts[2], 150, 0]);
  });
});

describe("a follower", () => {
  it("has all methods of a model", async () => {
    const pages = [await openTab(), await openTab()];
    const [first, second] = await Promise.all(pages.map((page) => page.evaluate(useAll)));
    expect(second).toEqual(first);
    expect(first?.errors).toEqual(["bad-option", "unsupported-model", "context-full", "mine"]);
  });
});

describe("shared", () => {
  it("is refused where tabs cannot share", async () => {
    const page = await openPage();
    const codes = await page.evaluate(async () => {
      const { load } = /** @type {any} */ (globalThis).setun;
      const refused = (/** @type {any} */ error) => [error.code, error.message.split(":")[0]];
      return [
        await load(undefined, { shared: true, worker: false }).catch(refused),
        await load({ "a.gguf": new Uint8Array(8) }, { shared: true }).catch(refused),
      ];
    });
    expect(codes).toEqual(Array(2).fill(["bad-option", "shared"]));
  });
});

describe("Firefox", () => {
  it("shares a model and goes on when its leader is closed", async () => {
    const firefox = await launchFirefox();
    try {
      const open = async () => {
        const page = await openPage(firefox);
        await page.evaluate(async () => {
          const all = /** @type {any} */ (globalThis);
          all.model = await all.setun.load(undefined, { shared: true, threads: 1 });
        });
        return page;
      };
      const first = await open();
      const second = await open();
      /** @type {any} */
      const begun = second.evaluate(
        async ({ prompt, options }) => {
          const all = /** @type {any} */ (globalThis);
          const generation = all.model.generate(prompt, { ...options, seed: 1 });
          let text = "";
          for await (const delta of generation) {
            text += delta.text;
            all.tokens = (all.tokens ?? 0) + 1;
          }
          return text;
        },
        { prompt: PROMPT, options: OPTIONS },
      );
      await second.waitForFunction(() => /** @type {any} */ (globalThis).tokens >= 20);
      await first.close();
      expect(await begun).toBe(texts[1]);
    } finally {
      await firefox.close();
    }
  });
});
