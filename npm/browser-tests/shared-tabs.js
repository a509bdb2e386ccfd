/** Tabs with a shared model for the tests. A step that never ends fails with what each tab does at that moment. */

import { PATIENCE_MS } from "../test-support/patience.js";

/** The model's path on the test's server. */
export const MODEL = "/node_modules/setun/model/stories.safetensors";
export const PROMPT = "Once upon a time";

/** With penalties, which look back on all tokens, and a long text. */
export const OPTIONS = { maxTokens: 150, minTokens: 150, temperature: 0.9, topK: 40, frequencyPenalty: 0.4 };

/** One thread, so that a model is one worker. */
export const LOAD = { shared: true, resume: true, threads: 1 };

/** Milliseconds after which a step counts as one that never ends: before its test does. */
const PATIENCE = PATIENCE_MS / 2;

/** Milliseconds in which a page answers that is not blocked. */
const ANSWER = 5_000;

/** @typedef {import("playwright-core").Page} Page */

/** What each open tab does, and since when. @type {Map<Page, { stage: string, since: number }>} */
const tabs = new Map();

/** @param {Page} page @param {string} stage */
function note(page, stage) {
  tabs.set(page, { stage, since: Date.now() });
}

/**
 * Waits for a step.
 * @template Result @param {string} step @param {Promise<Result>} work @returns {Promise<Result>}
 */
export async function inTime(step, work, patience = PATIENCE) {
  const late = Symbol("late");
  const given = await Promise.race([work, after(patience, late)]);
  if (given !== late) return /** @type {Result} */ (given);
  throw new Error(`${step}: not after ${patience / 1000} s\n${(await reports()).join("\n")}`);
}

/** @template Value @param {number} milliseconds @param {Value} value @returns {Promise<Value>} */
function after(milliseconds, value) {
  return new Promise((resolve) => setTimeout(resolve, milliseconds, value).unref());
}

/** What each tab does, and the locks of the first that answers. */
async function reports() {
  const all = [...tabs];
  const locks = await Promise.all(
    all.map(([page]) => Promise.race([locksOf(page), after(ANSWER, undefined)])),
  );
  const lines = all.map(([page, { stage, since }], index) => {
    const seconds = ((Date.now() - since) / 1000).toFixed(1);
    const blocked = locks[index] === undefined ? ", it does not answer" : "";
    return `tab ${index}: ${stage}, for ${seconds} s, workers: ${page.workers().length}${blocked}`;
  });
  return [...lines, locks.find((each) => each !== undefined) ?? "no tab knows the locks"];
}

/** Names of models are left out, since all tabs have the same. @param {Page} page */
function locksOf(page) {
  const query = page.evaluate(async () => {
    const { held = [], pending = [] } = await navigator.locks.query();
    const names = (/** @type {LockInfo[]} */ locks) =>
      locks.map(({ name, clientId }) => `${name?.replace(/\[.*\]/, "model")} by ${clientId?.slice(0, 8)}`);
    return `locks held: ${names(held).join(", ")}; pending: ${names(pending).join(", ")}`;
  });
  return query.catch(() => undefined);
}

/**
 * A page with the package.
 * @param {{ newPage(): Promise<any> }} opener @param {string} url @returns {Promise<Page>}
 */
export function openPageAt(opener, url) {
  return inTime("a page opens", beginPage(opener, url));
}

/** @param {{ newPage(): Promise<any> }} opener @param {string} url @returns {Promise<Page>} */
async function beginPage(opener, url) {
  const page = await opener.newPage();
  page.on("close", () => tabs.delete(page));
  page.on("crash", () => tabs.delete(page));
  page.on("console", (/** @type {import("playwright-core").ConsoleMessage} */ message) => {
    const [, phase] = /^load: (.+)/.exec(message.text()) ?? [];
    if (phase !== undefined) note(page, phase);
  });
  note(page, "navigates");
  await page.goto(url);
  note(page, "imports the package");
  await page.waitForFunction(() => "setun" in window);
  note(page, "has the package");
  return page;
}

/**
 * A tab with the shared model.
 * @param {{ newPage(): Promise<any> }} opener @param {string} url @param {object} load
 */
export async function openTabAt(opener, url, load = LOAD) {
  const page = await openPageAt(opener, url);
  await loadIn(page, load);
  return page;
}

/** @param {Page} page @param {object} load */
export async function loadIn(page, load = LOAD) {
  note(page, "begins to load");
  const loaded = page.evaluate(
    async ({ source, load }) => {
      const all = /** @type {any} */ (globalThis);
      let last = "";
      const onProgress = (/** @type {{ phase: string }} */ { phase }) => {
        if (phase !== last) console.debug(`load: ${phase}`);
        last = phase;
      };
      all.model = await all.setun.load(source, { ...load, onProgress });
    },
    { source: MODEL, load },
  );
  await inTime("a tab loads", loaded);
  note(page, "has the model");
}

/**
 * Starts a text in a tab, whose reader waits at a token until it is released: a text that nobody reads does not end.
 * @param {Page} page @param {number} seed @param {number} [hold]
 */
export async function begin(page, seed, hold = 0) {
  const begun = page.evaluate(
    ({ prompt, options, seed, hold }) => {
      const all = /** @type {any} */ (globalThis);
      all.text = "";
      all.tokens = 0;
      const released = new Promise((resolve) => {
        all.release = resolve;
      });
      all.end = (async () => {
        const generation = all.model.generate(prompt, { ...options, seed });
        for await (const { text } of generation) {
          all.text += text;
          all.tokens += 1;
          if (all.tokens === hold) await released;
        }
        const { text, tokens } = await generation.result;
        return { read: all.text, text, tokens: tokens.length, events: all.tokens };
      })();
    },
    { prompt: PROMPT, options: OPTIONS, seed, hold },
  );
  await inTime("a text begins", begun);
  note(page, "tells a text");
}

/** @param {Page} page */
export const release = (page) => page.evaluate(() => /** @type {any} */ (globalThis).release());

/** @param {Page} page */
export async function end(page) {
  const given = await inTime(
    "a text ends",
    page.evaluate(() => /** @type {any} */ (globalThis).end),
  );
  note(page, "has a whole text");
  return given;
}

/** What {@link end} gives of an undisturbed text. @param {string | undefined} text */
export const whole = (text) => ({ read: text, text, tokens: 150, events: 150 });

/** @param {Page} page @param {number} count */
export const hasTokens = (page, count) =>
  page.waitForFunction((count) => /** @type {any} */ (globalThis).tokens >= count, count);

/** @param {Page[]} pages */
export const workersOf = (pages) => pages.reduce((sum, page) => sum + page.workers().length, 0);

/** The tab whose worker has the model. @param {Page[]} pages */
export function leaderOf(pages) {
  const leader = pages.find((page) => page.workers().length > 0);
  if (leader === undefined) throw new Error("no tab has a worker");
  return leader;
}

/** @param {Page} page */
export async function crash(page) {
  const crashed = page.waitForEvent("crash");
  const session = await page.context().newCDPSession(page);
  session.send("Page.crash").catch(() => undefined);
  await crashed;
}

/**
 * Sends a page the event that a browser sends before it freezes one, or after. The protocol's own freeze does nothing
 * to pages that are visible, as all of Playwright's are.
 * @param {Page} page @param {"freeze" | "resume"} type
 */
export const send = (page, type) => page.evaluate((type) => document.dispatchEvent(new Event(type)), type);
