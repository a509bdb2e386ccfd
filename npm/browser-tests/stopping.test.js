/** Stopping and aborting generations in a worker. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { launchChromium, openPage } from "../test-support/browsers.js";
import { INDEX_HTML, PLAIN_MAIN } from "../test-support/page.js";
import { makeProject } from "../test-support/project.js";
import { startServer } from "../test-support/server.js";

/** A delay that users do not notice. */
const AT_ONCE_MS = 200;

/** A busy machine delays things now and then, so the fastest of several runs counts. */
const ATTEMPTS = 5;

/** @type {Awaited<ReturnType<typeof makeProject>>} */
let project;
/** @type {import("playwright-core").Browser} */
let browser;
/** @type {Awaited<ReturnType<typeof startServer>>} */
let server;
/** @type {import("playwright-core").Page} */
let page;

beforeAll(async () => {
  project = await makeProject({ "index.html": INDEX_HTML, "main.js": PLAIN_MAIN });
  server = await startServer({ root: project.folder });
  browser = await launchChromium();
  ({ page } = await openPage(browser, `${server.url}/index.html`));
  // The slowest backend makes a long prefill of any prompt.
  await page.evaluate(async () => {
    const all = /** @type {any} */ (globalThis);
    all.model = await all.setun.load(undefined, { backend: "scalar" });
    all.longPrompt = "Once upon a time there was a fox. ".repeat(45);
  });
});
afterAll(async () => {
  await browser?.close();
  await server?.stop();
  await project?.remove();
});

describe("stop() takes effect at once", () => {
  it("in a long prefill", async () => {
    const ends = await page.evaluate(async (attempts) => {
      const { model, longPrompt } = /** @type {any} */ (globalThis);
      const ends = [];
      for (let attempt = 0; attempt < attempts; attempt += 1) {
        const generation = model.generate(longPrompt, { temperature: 0 });
        await new Promise((resolve) => setTimeout(resolve, 100));
        const stopped = performance.now();
        generation.stop();
        const { finishReason, usage } = await generation.result;
        ends.push({
          finishReason,
          generated: usage.generatedTokens,
          milliseconds: performance.now() - stopped,
        });
      }
      return ends;
    }, ATTEMPTS);
    for (const end of ends) expect(end).toMatchObject({ finishReason: "aborted", generated: 0 });
    expect(Math.min(...ends.map(({ milliseconds }) => milliseconds))).toBeLessThan(AT_ONCE_MS);
  });

  it("while tokens are generated, and keeps the text so far", async () => {
    const ends = await page.evaluate(async (attempts) => {
      const { model } = /** @type {any} */ (globalThis);
      const ends = [];
      for (let attempt = 0; attempt < attempts; attempt += 1) {
        const generation = model.generate("Once upon a time", { temperature: 0 });
        let stopped = 0;
        let text = "";
        let tokens = 0;
        for await (const delta of generation) {
          text += delta.text;
          tokens += 1;
          if (tokens === 5) {
            stopped = performance.now();
            generation.stop();
          }
        }
        const { finishReason, text: whole } = await generation.result;
        ends.push({ finishReason, same: whole === text, milliseconds: performance.now() - stopped });
      }
      return ends;
    }, ATTEMPTS);
    for (const end of ends) expect(end).toMatchObject({ finishReason: "aborted", same: true });
    expect(Math.min(...ends.map(({ milliseconds }) => milliseconds))).toBeLessThan(AT_ONCE_MS);
  });
});

describe("an aborted signal", () => {
  it("rejects with its reason in a long prefill, and the worker is free at once", async () => {
    const ends = await page.evaluate(async (attempts) => {
      const { model, longPrompt } = /** @type {any} */ (globalThis);
      const ends = [];
      for (let attempt = 0; attempt < attempts; attempt += 1) {
        const controller = new AbortController();
        const reason = { attempt };
        const generation = model.generate(longPrompt, { signal: controller.signal });
        await new Promise((resolve) => setTimeout(resolve, 100));
        const aborted = performance.now();
        controller.abort(reason);
        const same = await generation.text().catch((/** @type {unknown} */ error) => error === reason);
        const next = await model.generate("A", { maxTokens: 1 }).result;
        ends.push({ same, next: next.usage.generatedTokens, milliseconds: performance.now() - aborted });
      }
      return ends;
    }, ATTEMPTS);
    for (const end of ends) expect(end).toMatchObject({ same: true, next: 1 });
    expect(Math.min(...ends.map(({ milliseconds }) => milliseconds))).toBeLessThan(AT_ONCE_MS);
  });

  it("ends a beam search, and the worker is free at once", async () => {
    const ends = await page.evaluate(async (attempts) => {
      const { model, longPrompt } = /** @type {any} */ (globalThis);
      const ends = [];
      for (let attempt = 0; attempt < attempts; attempt += 1) {
        const controller = new AbortController();
        const reason = { attempt };
        const found = model.beamSearch(longPrompt, { signal: controller.signal });
        await new Promise((resolve) => setTimeout(resolve, 100));
        const aborted = performance.now();
        controller.abort(reason);
        const same = await found.catch((/** @type {unknown} */ error) => error === reason);
        const [next] = await model.beamSearch("A", { maxTokens: 1 });
        ends.push({ same, next: next.tokens.length, milliseconds: performance.now() - aborted });
      }
      return ends;
    }, ATTEMPTS);
    for (const end of ends) expect(end).toMatchObject({ same: true, next: 1 });
    expect(Math.min(...ends.map(({ milliseconds }) => milliseconds))).toBeLessThan(AT_ONCE_MS);
  });

  it("leaves other generations alone", async () => {
    const [alone, beside] = await page.evaluate(async () => {
      const { model, longPrompt } = /** @type {any} */ (globalThis);
      const options = { maxTokens: 12, temperature: 0 };
      const alone = await model.generate("Once", options).text();
      const controller = new AbortController();
      const aborted = model.generate(longPrompt, { signal: controller.signal }).text();
      const beside = model.generate("Once", options).text();
      setTimeout(() => controller.abort("no more"), 50);
      await aborted.catch(() => undefined);
      return [alone, await beside];
    });
    expect(beside).toBe(alone);
    expect(alone.length).toBeGreaterThan(0);
  });
});

describe("a model that is disposed", () => {
  it("rejects what runs and what comes later", async () => {
    const codes = await page.evaluate(async () => {
      const { setun } = /** @type {any} */ (globalThis);
      const model = await setun.load();
      const running = model.generate("Once upon a time").text();
      await model.dispose();
      const code = (/** @type {any} */ error) => error.code;
      return [
        await running.catch(code),
        await model.tokenize("a").catch(code),
        await model.generate("a").text().catch(code),
      ];
    });
    expect(codes).toEqual(["disposed", "disposed", "disposed"]);
  });
});

describe("a worker that ends", () => {
  it("rejects what runs and what comes later, and a new model can be loaded", async () => {
    const codes = page.evaluate(async () => {
      const { setun } = /** @type {any} */ (globalThis);
      const model = await setun.load(undefined, { backend: "simd128", threads: 1 });
      const code = (/** @type {any} */ error) => error.code;
      const running = model.generate("Once upon a time").result.catch(code);
      /** @type {any} */ (globalThis).isRunning = true;
      return [await running, await model.metrics().catch(code), await model.tokenize("a").catch(code)];
    });
    await page.waitForFunction(() => "isRunning" in globalThis);
    await page
      .workers()
      .at(-1)
      ?.evaluate(() => globalThis.close());
    expect(await codes).toEqual(["device-lost", "device-lost", "device-lost"]);
    const text = await page.evaluate(async () => {
      const model = await /** @type {any} */ (globalThis).setun.load();
      return model.generate("Once upon a time", { maxTokens: 3 }).text();
    });
    expect(text.length).toBeGreaterThan(0);
  });
});
