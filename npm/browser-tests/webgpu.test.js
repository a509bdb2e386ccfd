/** WebGPU in Chromium, on whatever adapter it finds: in software, a token takes seconds. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { launchChromium, openPage } from "../test-support/browsers.js";
import { fetched, INDEX_HTML, PLAIN_MAIN, tellStory } from "../test-support/page.js";
import { makeProject } from "../test-support/project.js";
import { startServer } from "../test-support/server.js";

const PROMPT = "Once upon a time";

/** Of the longest text. */
const TOKENS = 6;

/** Natural logarithms of probabilities that lie closer than this may change places. */
const NEAR = 0.01;

/** @type {Awaited<ReturnType<typeof makeProject>>} */
let project;
/** @type {import("playwright-core").Browser} */
let browser;
/** @type {Awaited<ReturnType<typeof startServer>>} */
let server;

beforeAll(async () => {
  project = await makeProject({ "index.html": INDEX_HTML, "main.js": PLAIN_MAIN });
  server = await startServer({ root: project.folder });
  browser = await launchChromium({ webgpu: true });
});
afterAll(async () => {
  await browser?.close();
  await server?.stop();
  await project?.remove();
});

/** @param {import("playwright-core").Page} page @param {object} load @param {object} options */
function tell(page, load, options) {
  return page.evaluate(tellStory, { prompt: PROMPT, options: { temperature: 0, ...options }, load });
}

/**
 * Runs in the page: the code and message that `load` fails with.
 * @param {object} load
 */
async function failure(load) {
  const { setun } = /** @type {any} */ (globalThis);
  return setun.load(undefined, load).then(
    () => undefined,
    (/** @type {any} */ { code, message }) => ({ code, message }),
  );
}

describe("WebGPU", () => {
  it("streams what WebAssembly streams, up to the first near tie, and fetches its own build alone", async () => {
    const { page, requests, errors, close } = await openPage(browser, `${server.url}/index.html`);
    const options = { maxTokens: TOKENS, logprobs: true };
    const story = await tell(page, { backend: "webgpu" }, options);
    expect(fetched(requests).code).toEqual(["/node_modules/setun/dist/wasm/webgpu/setun_bg.wasm"]);
    const expected = await tell(page, { backend: "wasm" }, options);
    await close();
    expect(errors).toEqual([]);
    expect(story.info).toMatchObject({ backend: "webgpu", build: "webgpu", threads: 1, worker: true });
    expect(story.info.level).not.toBe("");
    expect(story.result).toMatchObject({ backend: "webgpu", build: "webgpu", level: story.info.level });
    expect(story.deltas).toHaveLength(TOKENS);
    expect(story.deltas[0]).toBe(expected.deltas[0]);
    for (const [place, { token, logprob }] of expected.tokens.entries()) {
      expect(Math.abs(story.tokens[place].logprob - logprob)).toBeLessThan(NEAR);
      if (story.tokens[place].token !== token) break;
    }
  });

  it("takes turns with WebAssembly on one page, in a worker and without", async () => {
    const { page, errors, close } = await openPage(browser, `${server.url}/index.html`);
    const texts = [];
    for (const load of [
      { backend: "webgpu" },
      { backend: "wasm" },
      { backend: "webgpu", worker: false },
      { backend: "webgpu" },
    ]) {
      const { result } = await tell(page, load, { maxTokens: 2 });
      expect(result.backend).toBe(load.backend === "wasm" ? "cpu" : "webgpu");
      texts.push(result.text);
    }
    await close();
    expect(errors).toEqual([]);
    expect(new Set(texts).size).toBe(1);
  });

  it("can be used again after a generation was aborted", async () => {
    const { page, errors, close } = await openPage(browser, `${server.url}/index.html`);
    const [reason, alone, again] = await page.evaluate(async (prompt) => {
      const { setun } = /** @type {any} */ (globalThis);
      const model = await setun.load(undefined, { backend: "webgpu" });
      const options = { maxTokens: 2, temperature: 0 };
      const alone = await model.generate(prompt, options).text();
      const controller = new AbortController();
      const reason = await (async () => {
        for await (const _ of model.generate(prompt, { signal: controller.signal }))
          controller.abort("enough");
      })().catch((/** @type {unknown} */ thrown) => thrown);
      const again = await model.generate(prompt, options).text();
      await model.dispose();
      return [reason, alone, again];
    }, PROMPT);
    await close();
    expect(errors).toEqual([]);
    expect(reason).toBe("enough");
    expect(again).toBe(alone);
  });
});

describe("a driver that refuses", () => {
  it("a program or memory is an error with its words, and the next model runs", async () => {
    const { page, errors, close } = await openPage(browser, `${server.url}/index.html`);
    const [program, memory, text] = await page.evaluate(async (prompt) => {
      const { setun } = /** @type {any} */ (globalThis);
      const { createShaderModule, createBuffer } = GPUDevice.prototype;
      const load = { backend: "webgpu", worker: false };
      const tell = async () => {
        const model = await setun.load(undefined, load);
        const end = () => model.dispose();
        return model.generate(prompt, { maxTokens: 1, temperature: 0 }).text().finally(end);
      };
      const failure = (/** @type {any} */ { code, message }) => ({ code, message });
      GPUDevice.prototype.createShaderModule = function (descriptor) {
        return createShaderModule.call(this, { ...descriptor, code: "no program" });
      };
      const program = await tell().catch(failure);
      GPUDevice.prototype.createShaderModule = createShaderModule;
      GPUDevice.prototype.createBuffer = function (descriptor) {
        return createBuffer.call(this, { ...descriptor, size: 2 ** 42 });
      };
      const memory = await setun.load(undefined, load).catch(failure);
      GPUDevice.prototype.createBuffer = createBuffer;
      return [program, memory, await tell()];
    }, PROMPT);
    await close();
    expect(errors).toEqual([]);
    expect(program).toEqual({ code: "device-lost", message: expect.stringContaining("parsing WGSL") });
    expect(memory).toEqual({ code: "device-lost", message: expect.stringContaining("Buffer size") });
    expect(text.length).toBeGreaterThan(0);
  });
});

describe("where there is no WebGPU", () => {
  it.each([
    ["no API", "Reflect.deleteProperty(Navigator.prototype, 'gpu')", /this browser has no WebGPU/],
    ["no adapter", "GPU.prototype.requestAdapter = async () => null", /this browser finds no GPU/],
  ])("it is refused, with a remedy, and nothing is fetched: %s", async (_, script, reason) => {
    const context = await browser.newContext();
    await context.addInitScript(script);
    const page = await context.newPage();
    const before = server.requests.length;
    await page.goto(`${server.url}/index.html`);
    await page.waitForFunction(() => "setun" in window);
    const error = await page.evaluate(failure, { backend: "webgpu" });
    await context.close();
    expect(error).toEqual({ code: "backend-unavailable", message: expect.stringMatching(reason) });
    expect(fetched(server.requests.slice(before))).toEqual({ code: [], models: [] });
  });

  it("the worker's own refusal comes with the same code", async () => {
    const context = await browser.newContext();
    const page = await context.newPage();
    await page.goto(`${server.url}/index.html`);
    await page.waitForFunction(() => "setun" in window);
    // The page's first look finds an adapter; the engine's own, on the same thread, does not.
    const error = await page.evaluate(async (failure) => {
      const found = GPU.prototype.requestAdapter;
      let looks = 0;
      GPU.prototype.requestAdapter = async function (options) {
        looks += 1;
        return looks === 1 ? found.call(this, options) : null;
      };
      return new Function(`return (${failure})({ backend: "webgpu", worker: false })`)();
    }, failure.toString());
    await context.close();
    expect(error).toMatchObject({
      code: "backend-unavailable",
      message: expect.stringContaining("no webgpu adapter"),
    });
  });

  it("a browser without the switch either runs it or refuses it", async () => {
    const plain = await launchChromium();
    const { page, close } = await openPage(plain, `${server.url}/index.html`);
    const error = await page.evaluate(failure, { backend: "webgpu" });
    await close();
    await plain.close();
    expect([undefined, "backend-unavailable"]).toContain(error?.code);
  });
});
