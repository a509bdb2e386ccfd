/** Stopping and aborting generations in a worker. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { launchChromium, openPage } from "../test-support/browsers.js";
import { INDEX_HTML, PLAIN_MAIN } from "../test-support/page.js";
import { makeProject } from "../test-support/project.js";
import { startServer } from "../test-support/server.js";

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

describe("stop()", () => {
  it("ends a long prefill before its last rows", async () => {
    const { finishReason, generated, rows, promptTokens } = await page.evaluate(async () => {
      const { model, longPrompt } = /** @type {any} */ (globalThis);
      const before = await model.metrics();
      const generation = model.generate(`First: ${longPrompt}`, { temperature: 0 });
      await new Promise((resolve) => setTimeout(resolve, 100));
      generation.stop();
      const { finishReason, usage } = await generation.result;
      const rows = (await model.metrics()).rows - before.rows;
      return { finishReason, generated: usage.completionTokens, rows, promptTokens: usage.promptTokens };
    });
    expect({ finishReason, generated }).toEqual({ finishReason: "aborted", generated: 0 });
    expect(rows).toBeLessThan(promptTokens);
  });

  it("ends a generation, and keeps the text so far", async () => {
    const end = await page.evaluate(async () => {
      const { model } = /** @type {any} */ (globalThis);
      const generation = model.generate("Once upon a time", { temperature: 0 });
      let text = "";
      let tokens = 0;
      for await (const delta of generation) {
        text += delta.text;
        tokens += 1;
        if (tokens === 5) generation.stop();
      }
      const { finishReason, text: whole } = await generation.result;
      return { finishReason, same: whole === text };
    });
    expect(end).toEqual({ finishReason: "aborted", same: true });
  });
});

describe("an aborted signal", () => {
  it("rejects with its reason in a long prefill, and the worker is free for the next request", async () => {
    const { same, next, rows, promptTokens } = await page.evaluate(async () => {
      const { model, longPrompt } = /** @type {any} */ (globalThis);
      const prompt = `Second: ${longPrompt}`;
      const before = await model.metrics();
      const controller = new AbortController();
      const reason = { attempt: 1 };
      const generation = model.generate(prompt, { signal: controller.signal });
      await new Promise((resolve) => setTimeout(resolve, 100));
      controller.abort(reason);
      const same = await generation.text().catch((/** @type {unknown} */ error) => error === reason);
      const next = await model.generate("A", { maxTokens: 1 }).result;
      const rows = (await model.metrics()).rows - before.rows;
      const { length: promptTokens } = await model.tokenize(prompt);
      return { same, next: next.usage.completionTokens, rows, promptTokens };
    });
    expect({ same, next }).toEqual({ same: true, next: 1 });
    expect(rows).toBeLessThan(promptTokens);
  });

  it("ends a beam search, and the worker is free for the next one", async () => {
    const { same, next, rows, promptTokens } = await page.evaluate(async () => {
      const { model, longPrompt } = /** @type {any} */ (globalThis);
      const prompt = `Third: ${longPrompt}`;
      const before = await model.metrics();
      const controller = new AbortController();
      const reason = { attempt: 1 };
      const found = model.beamSearch(prompt, { signal: controller.signal });
      await new Promise((resolve) => setTimeout(resolve, 100));
      controller.abort(reason);
      const same = await found.catch((/** @type {unknown} */ error) => error === reason);
      const [next] = await model.beamSearch("A", { maxTokens: 1 });
      const rows = (await model.metrics()).rows - before.rows;
      const { length: promptTokens } = await model.tokenize(prompt);
      return { same, next: next.tokens.length, rows, promptTokens };
    });
    expect({ same, next }).toEqual({ same: true, next: 1 });
    expect(rows).toBeLessThan(promptTokens);
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
      const contextOverflow = { type: "sliding_window", sinks: 4, window: 64 };
      const endless = { temperature: 1, minTokens: 1e6, contextOverflow };
      const running = model.generate("Once upon a time", endless).result.catch(code);
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
