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
    let attempts = 0;
    all.endWithin = endWithin;

    /**
     * Begins a request with a long prompt and ends it within its prefill. The worker answers in order, so the rows that
     * it tells next are those it had when it heard of the end. Where a busy page was too late, another prompt is taken.
     * @param {(prompt: string) => Promise<{ end: () => void, ended: () => Promise<unknown> }>} begin
     */
    async function endWithin(begin) {
      const { model, longPrompt } = all;
      for (;;) {
        attempts += 1;
        const prompt = `${attempts}: ${longPrompt}`;
        const { length: promptTokens } = await model.tokenize(prompt);
        const { rows: before } = await model.metrics();
        const rows = async () => (await model.metrics()).rows - before;
        const { end, ended } = await begin(prompt);
        while ((await rows()) === 0);
        end();
        const atEnd = await rows();
        const result = await ended();
        if (atEnd < promptTokens) return { ended: result, atEnd, rows: await rows(), promptTokens };
      }
    }
  });
});

/** @param {{ atEnd: number, rows: number, promptTokens: number }} counted */
function expectEndWithin({ atEnd, rows, promptTokens }) {
  expect(atEnd).toBeGreaterThan(0);
  expect(rows).toBeLessThan(promptTokens);
}
afterAll(async () => {
  await browser?.close();
  await server?.stop();
  await project?.remove();
});

describe("stop()", () => {
  it("ends a long prefill before its last rows", async () => {
    const { ended, ...counted } = await page.evaluate(async () => {
      const { model, endWithin } = /** @type {any} */ (globalThis);
      return endWithin(async (/** @type {string} */ prompt) => {
        const generation = model.generate(prompt, { temperature: 0 });
        return {
          end: () => generation.stop(),
          ended: async () => {
            const { finishReason, usage } = await generation.result;
            return { finishReason, generated: usage.completionTokens };
          },
        };
      });
    });
    expect(ended).toEqual({ finishReason: "aborted", generated: 0 });
    expectEndWithin(counted);
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
    const { ended, ...counted } = await page.evaluate(async () => {
      const { model, endWithin } = /** @type {any} */ (globalThis);
      return endWithin(async (/** @type {string} */ prompt) => {
        const controller = new AbortController();
        const reason = { attempt: 1 };
        const generation = model.generate(prompt, { signal: controller.signal });
        const text = generation.text().catch((/** @type {unknown} */ error) => error === reason);
        return {
          end: () => controller.abort(reason),
          ended: async () => {
            const same = await text;
            const next = await model.generate("A", { maxTokens: 1 }).result;
            return { same, next: next.usage.completionTokens };
          },
        };
      });
    });
    expect(ended).toEqual({ same: true, next: 1 });
    expectEndWithin(counted);
  });

  it("ends a beam search, and the worker is free for the next one", async () => {
    const { ended, ...counted } = await page.evaluate(async () => {
      const { model, endWithin } = /** @type {any} */ (globalThis);
      return endWithin(async (/** @type {string} */ prompt) => {
        const controller = new AbortController();
        const reason = { attempt: 1 };
        const search = model.beamSearch(prompt, { signal: controller.signal });
        const found = search.catch((/** @type {unknown} */ error) => error === reason);
        return {
          end: () => controller.abort(reason),
          ended: async () => {
            const same = await found;
            const [next] = await model.beamSearch("A", { maxTokens: 1 });
            return { same, next: next.tokens.length };
          },
        };
      });
    });
    expect(ended).toEqual({ same: true, next: 1 });
    expectEndWithin(counted);
  });

  it("leaves other generations alone", async () => {
    const [alone, beside] = await page.evaluate(async () => {
      const { model, longPrompt } = /** @type {any} */ (globalThis);
      const options = { maxTokens: 12, temperature: 0 };
      const alone = await model.generate("Once", options).text();
      const controller = new AbortController();
      const aborted = model.generate(longPrompt, { signal: controller.signal }).text();
      let beside = "";
      for await (const { text } of model.generate("Once", options)) {
        beside += text;
        controller.abort("no more");
      }
      await aborted.catch(() => undefined);
      return [alone, beside];
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
