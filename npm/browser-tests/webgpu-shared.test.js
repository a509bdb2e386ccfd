/** One model on the GPU for all tabs in Chromium, on a software adapter where a token takes seconds. */

import { expect, it } from "vitest";
import { gpuStage, MODEL } from "../test-support/gpu-stage.js";

const LOAD = { backend: "webgpu", shared: true };
const TEXT = { prompt: "Once upon a time", options: { temperature: 0, maxTokens: 4 } };

/** Token at which the reader waits, before the end of the text. */
const HOLD = 1;

const stage = gpuStage();

/** A tab with the shared model. @param {import("playwright-core").BrowserContext} context */
async function openTab(context) {
  const page = await context.newPage();
  await page.goto(`${stage.server.url}/index.html`);
  await page.waitForFunction(() => "setun" in window);
  await page.evaluate(
    async ({ source, load }) => {
      const all = /** @type {any} */ (globalThis);
      all.model = await all.setun.load(source, load);
    },
    { source: MODEL, load: LOAD },
  );
  return page;
}

it("lives on in the next tab when its own is closed, and the text is the undisturbed one", async () => {
  const context = await stage.browser.newContext();
  const leader = await openTab(context);
  const follower = await openTab(context);
  expect([leader, follower].map((page) => page.workers().length)).toEqual([1, 0]);
  const { text, backend } = await leader.evaluate(
    ({ prompt, options }) => /** @type {any} */ (globalThis).model.generate(prompt, options).result,
    TEXT,
  );
  expect(backend).toBe("webgpu");
  await follower.evaluate(
    ({ prompt, options, hold }) => {
      const all = /** @type {any} */ (globalThis);
      const released = new Promise((resolve) => {
        all.release = resolve;
      });
      all.read = [];
      all.end = (async () => {
        const generation = all.model.generate(prompt, options);
        for await (const delta of generation) {
          all.read.push(delta.text);
          if (all.read.length === hold) await released;
        }
        return { ...(await generation.result), read: all.read };
      })();
    },
    { ...TEXT, hold: HOLD },
  );
  await follower.waitForFunction((hold) => /** @type {any} */ (globalThis).read.length >= hold, HOLD);
  await leader.close();
  await follower.evaluate(() => /** @type {any} */ (globalThis).release());
  const told = await follower.evaluate(() => /** @type {any} */ (globalThis).end);
  expect(told.text).toBe(text);
  expect(told.read.join("")).toBe(text);
  expect(told.read).toHaveLength(TEXT.options.maxTokens);
  // The next text needs the new worker, also if this one had arrived before the tab was closed.
  const next = await follower.evaluate(
    ({ prompt, options }) => /** @type {any} */ (globalThis).model.generate(prompt, options).result,
    { ...TEXT, options: { ...TEXT.options, maxTokens: 1 } },
  );
  expect(text.startsWith(next.text) && next.text !== "").toBe(true);
  expect(next.backend).toBe("webgpu");
  expect(follower.workers()).toHaveLength(1);
  await context.close();
});
