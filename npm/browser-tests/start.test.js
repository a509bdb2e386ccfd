/** The start of the built-in model from a warm cache: its time is printed, and it fetches and starts nothing to spare. */

import { afterAll, beforeAll, expect, it } from "vitest";
import { launchChromium, openPage } from "../test-support/browsers.js";
import { INDEX_HTML, PLAIN_MAIN } from "../test-support/page.js";
import { makeProject } from "../test-support/project.js";
import { IS_FULL } from "../test-support/selection.js";
import { startServer } from "../test-support/server.js";

/** Loads with a warm cache. */
const ROUNDS = IS_FULL ? 5 : 1;

/** @type {Awaited<ReturnType<typeof makeProject>>} */
let project;
/** @type {import("playwright-core").Browser} */
let browser;

beforeAll(async () => {
  project = await makeProject({ "index.html": INDEX_HTML, "main.js": PLAIN_MAIN });
  browser = await launchChromium();
});
afterAll(async () => {
  await browser?.close();
  await project?.remove();
});

/** Milliseconds of one start, and when each phase of the load was first reported. @param {number} threads */
async function start(threads) {
  const { setun } = /** @type {any} */ (globalThis);
  const begun = performance.now();
  /** @type {Record<string, number>} */
  const times = {};
  const passed = () => performance.now() - begun;
  const onProgress = (/** @type {any} */ { phase }) => {
    times[phase] ??= passed();
  };
  const model = await setun.load(undefined, { threads, onProgress });
  times.loaded = passed();
  const generation = model.generate("Once upon a time", { maxTokens: 1, temperature: 0 });
  for await (const { text } of generation) {
    if (text !== undefined) times["first token"] ??= passed();
  }
  await model.dispose();
  return times;
}

it.each([
  { threads: 1, build: "relaxed", workers: 1 },
  { threads: 2, build: "relaxed-threads", workers: 3 },
])("starts $build on $threads threads", async ({ threads, build, workers }) => {
  const server = await startServer({ root: project.folder, isolated: true, cached: true });
  const { page, requests, errors, close } = await openPage(browser, `${server.url}/index.html`);
  const rounds = [];
  for (let round = 0; round <= ROUNDS; round++) {
    if (round > 0) {
      requests.length = 0;
      await page.reload();
      await page.waitForFunction(() => "setun" in window);
    }
    const started = new Set();
    page.on("worker", (worker) => started.add(worker));
    rounds.push(await page.evaluate(start, threads));
    page.removeAllListeners("worker");
    expect(started.size).toBe(workers);
  }
  const files = new Set(requests.map((address) => new URL(address).pathname.replace(/.*\/setun\//, "")));
  const again = server.requests.filter((path) => path !== "/index.html");
  await close();
  await server.stop();
  expect(errors).toEqual([]);
  print(build, rounds);
  expect([...files].filter((file) => file.endsWith(".wasm"))).toEqual([`dist/wasm/${build}/setun_bg.wasm`]);
  expect([...files].filter((file) => /worker-(?!end)/.test(file))).toEqual([`dist/worker-${build}.js`]);
  expect(again).toEqual([...new Set(again)]);
});

/** Prints the first round and the median of the others. @param {string} build @param {Record<string, number>[]} rounds */
function print(build, [cold = {}, ...warm]) {
  const median = (/** @type {string} */ phase) => {
    const sorted = warm.map((times) => times[phase] ?? Number.NaN).sort((a, b) => a - b);
    return sorted[sorted.length >> 1] ?? Number.NaN;
  };
  const phases = Object.keys(warm[0] ?? {});
  const shown = phases.map((phase) => `${phase} ${median(phase).toFixed(0)}`).join(", ");
  console.log(
    `${build}: ms from load() with a warm cache: ${shown} (first load: ${cold["first token"]?.toFixed(0)})`,
  );
}
