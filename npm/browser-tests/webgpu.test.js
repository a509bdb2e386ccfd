/**
 * WebGPU in Chromium, on a software adapter where a token takes seconds, and a device from ten seconds to minutes to
 * open: the plain check opens fewer of them.
 */

import { describe, expect, it } from "vitest";
import { launchChromium, openPage } from "../test-support/browsers.js";
import { embeddedModel, largeModel } from "../test-support/checkpoint.js";
import { gpuStage, MODEL } from "../test-support/gpu-stage.js";
import { onnxModels } from "../test-support/onnx.js";
import { fetched, tellStory } from "../test-support/page.js";
import { IS_FULL } from "../test-support/selection.js";

const PROMPT = "Once upon a time";

/** Of the longest text. */
const TOKENS = 6;

/** Natural logarithms of probabilities that lie closer than this may change places. */
const NEAR = 0.01;

/** @type {Buffer} */
let large;

const stage = gpuStage((folder) => {
  large = largeModel(embeddedModel(folder).folder);
  return { "large.safetensors": large, ...onnxModels(folder) };
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
  it("streams the same text as WebAssembly up to the first near tie, and fetches only its own build", async () => {
    const { page, requests, errors, close } = await openPage(stage.browser, `${stage.server.url}/index.html`);
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

  if (IS_FULL) {
    it("takes turns with WebAssembly on one page, in a worker and without", async () => {
      const { page, errors, close } = await openPage(stage.browser, `${stage.server.url}/index.html`);
      const texts = [];
      for (const load of [{ backend: "webgpu", worker: false }, { backend: "wasm" }, { backend: "webgpu" }]) {
        const { result } = await tell(page, load, { maxTokens: 2 });
        expect(result.backend).toBe(load.backend === "wasm" ? "cpu" : "webgpu");
        texts.push(result.text);
      }
      await close();
      expect(errors).toEqual([]);
      expect(new Set(texts).size).toBe(1);
    });
  }
});

describe("a large model", () => {
  it("moves to the GPU as it arrives, and is never in WebAssembly's memory", async () => {
    const { page, errors, close } = await openPage(stage.browser, `${stage.server.url}/index.html`);
    const [gpu, cpu] = await page.evaluate(async () => {
      const { setun } = /** @type {any} */ (globalThis);
      const { instantiate } = WebAssembly;
      /** @type {WebAssembly.Memory | undefined} */
      let memory;
      /** @type {any} */ (WebAssembly).instantiate = async (/** @type {[any, any]} */ ...input) => {
        const instance = /** @type {any} */ (await instantiate(...input));
        memory = instance.exports.memory;
        return instance;
      };
      const sizes = [];
      for (const backend of ["webgpu", "cpu"]) {
        const model = await setun.load("large.safetensors", { backend, threads: 1, worker: false });
        sizes.push(memory?.buffer.byteLength ?? 0);
        await model.dispose();
      }
      return sizes;
    });
    await close();
    expect(errors).toEqual([]);
    expect(cpu).toBeGreaterThan(large.length);
    expect(gpu).toBeLessThan(large.length / 2);
  });

  if (IS_FULL) {
    it("is not loaded to its end once its signal is aborted", async () => {
      const { page, errors, close } = await openPage(stage.browser, `${stage.server.url}/index.html`);
      const { same, bytes } = await page.evaluate(async () => {
        const { setun } = /** @type {any} */ (globalThis);
        const { read, cancel } = ReadableStreamDefaultReader.prototype;
        let bytes = 0;
        const controller = new AbortController();
        let end = () => {};
        /** The download was aborted, or is over. */
        const ended = new Promise((resolve) => {
          end = () => controller.signal.aborted && resolve(undefined);
        });
        ReadableStreamDefaultReader.prototype.read = async function () {
          const turn = await read.call(this).catch((thrown) => {
            end();
            throw thrown;
          });
          bytes += turn.value?.length ?? 0;
          if (turn.done) end();
          return turn;
        };
        ReadableStreamDefaultReader.prototype.cancel = async function (reason) {
          end();
          return cancel.call(this, reason);
        };
        const reason = new Error("enough");
        const onProgress = (/** @type {any} */ { loadedBytes }) => {
          if (loadedBytes > 10e6) controller.abort(reason);
        };
        const options = { backend: "webgpu", worker: false, onProgress, signal: controller.signal };
        const loading = setun.load("large.safetensors", options);
        const thrown = await loading.catch((/** @type {unknown} */ error) => error);
        await ended;
        return { same: thrown === reason, bytes };
      });
      await close();
      expect(errors).toEqual([]);
      expect(same).toBe(true);
      expect(bytes).toBeGreaterThan(10e6);
      expect(bytes).toBeLessThan(large.length / 2);
    });
  }
});

describe("a device", () => {
  it("in software is not used by auto, and no build is fetched for it", async () => {
    const { page, requests, errors, close } = await openPage(stage.browser, `${stage.server.url}/index.html`);
    const { used, devices, test, webnn } = await page.evaluate(async (story) => {
      const model = await /** @type {any} */ (globalThis).setun.load(story, { store: false });
      const told = { used: model.info, devices: model.deviceReport().devices, test: await model.selfTest() };
      const webnn = (await model.deviceReport({ webnn: true })).devices.at(-1);
      await model.dispose();
      return { ...told, webnn };
    }, MODEL);
    await close();
    expect(errors).toEqual([]);
    expect(webnn).toMatchObject({ device: "webnn", verdict: "absent" });
    expect(requests.filter((address) => address.endsWith("/webnn.js"))).toEqual([]);
    expect(used.backend).toBe("cpu");
    expect(devices).toMatchObject([
      { device: "cpu", level: used.level, verdict: "chosen" },
      { device: "webgpu", verdict: "software", level: expect.stringMatching(/./) },
    ]);
    expect(test).toMatchObject({ device: "cpu", level: used.level, passed: true, reason: "" });
    expect(fetched(requests).code).toEqual([expect.not.stringContaining("webgpu")]);
  });

  it("that is requested by name runs a self-test, an aborted generation and a response format", async () => {
    const { page, errors, close } = await openPage(stage.browser, `${stage.server.url}/index.html`);
    const { used, devices, test, text, reason, again, formed } = await page.evaluate(async (prompt) => {
      const model = await /** @type {any} */ (globalThis).setun.load(undefined, { backend: "webgpu" });
      const options = { maxTokens: 2, temperature: 0 };
      const [test, text] = await Promise.all([model.selfTest(), model.generate(prompt, options).text()]);
      const controller = new AbortController();
      const reason = await (async () => {
        for await (const _ of model.generate(prompt, { signal: controller.signal }))
          controller.abort("enough");
      })().catch((/** @type {unknown} */ thrown) => thrown);
      const again = await model.generate(prompt, options).text();
      const responseFormat = { type: "choice", choices: [" there was", " a dog"] };
      const formed = await model.generate(prompt, { temperature: 0, responseFormat }).text();
      await model.dispose();
      return { used: model.info, devices: model.deviceReport().devices, test, text, reason, again, formed };
    }, PROMPT);
    await close();
    expect(errors).toEqual([]);
    const device = { device: "webgpu", level: used.level };
    expect(devices).toEqual([{ ...device, verdict: "chosen", reason: "it was requested by name" }]);
    expect(test).toMatchObject({ ...device, passed: true, reason: "" });
    expect(text.length).toBeGreaterThan(0);
    expect(reason).toBe("enough");
    expect(again).toBe(text);
    expect([" there was", " a dog"]).toContain(formed);
  });

  it.each([["the built-in model", MODEL], ...(IS_FULL ? [["ONNX", "/fused/graph/"]] : [])])(
    "that is lost during a generation is opened again, and the generation continues: %s",
    async (_, source) => {
      const { page, errors, close } = await openPage(stage.browser, `${stage.server.url}/index.html`);
      const { alone, disturbed, expected, again, used } = await page.evaluate(
        async ({ prompt, source }) => {
          const { setun } = /** @type {any} */ (globalThis);
          const { requestDevice } = GPUAdapter.prototype;
          /** @type {GPUDevice | undefined} */
          let device;
          GPUAdapter.prototype.requestDevice = async function (descriptor) {
            device = await requestDevice.call(this, descriptor);
            return device;
          };
          const load = { backend: "webgpu", worker: false, store: false };
          const options = { maxTokens: 4, minTokens: 4, temperature: 1, seed: 7 };
          const reads = () =>
            performance
              .getEntriesByType("resource")
              .filter(({ name }) => /(safetensors|onnx_data)$/.test(name)).length;
          const tokensOf = async (/** @type {any} */ model) =>
            (await model.generate(prompt, options).result).tokens;
          const model = await setun.load(source, load);
          const alone = await tokensOf(model);
          const before = reads();
          const disturbed = [];
          for await (const { token } of model.generate(prompt, options)) {
            if (disturbed.push(token) === 2) device?.destroy();
          }
          const again = reads() - before;
          await model.dispose();
          const onProcessor = await setun.load(source, { ...load, backend: "cpu" });
          const expected = await tokensOf(onProcessor);
          await onProcessor.dispose();
          return { alone, disturbed, expected, again, used: model.info.backend };
        },
        { prompt: PROMPT, source },
      );
      await close();
      expect(errors).toEqual([]);
      expect(used).toBe("webgpu");
      expect(alone).toHaveLength(4);
      expect(disturbed).toEqual(alone);
      // Later ones may be near ties.
      expect(alone[0]).toBe(expected[0]);
      expect(again).toBeGreaterThan(0);
    },
  );
});

describe("a driver that refuses", () => {
  it("a program or memory is an error with its message, and the next model runs", async () => {
    const { page, errors, close } = await openPage(stage.browser, `${stage.server.url}/index.html`);
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
    const refused = (/** @type {string} */ words) => ({
      code: "backend-unavailable",
      message: expect.stringContaining(words),
    });
    expect(program).toEqual(refused("parsing WGSL"));
    expect(memory).toEqual(refused("Buffer size"));
    expect(text.length).toBeGreaterThan(0);
  });
});

describe("where there is no WebGPU", () => {
  it.each([
    ["no API", "Reflect.deleteProperty(Navigator.prototype, 'gpu')", /this browser has no WebGPU/],
    ["no adapter", "GPU.prototype.requestAdapter = async () => null", /this browser finds no GPU/],
  ])("it is refused with a remedy, and nothing is fetched: %s", async (_, script, reason) => {
    const context = await stage.browser.newContext();
    await context.addInitScript(script);
    const page = await context.newPage();
    const before = stage.server.requests.length;
    await page.goto(`${stage.server.url}/index.html`);
    await page.waitForFunction(() => "setun" in window);
    const error = await page.evaluate(failure, { backend: "webgpu" });
    await context.close();
    expect(error).toEqual({ code: "backend-unavailable", message: expect.stringMatching(reason) });
    expect(fetched(stage.server.requests.slice(before))).toEqual({ code: [], models: [] });
  });

  it("the worker's own refusal comes with the same code", async () => {
    const context = await stage.browser.newContext();
    const page = await context.newPage();
    await page.goto(`${stage.server.url}/index.html`);
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
    const { page, close } = await openPage(plain, `${stage.server.url}/index.html`);
    const error = await page.evaluate(failure, { backend: "webgpu" });
    await close();
    await plain.close();
    expect([undefined, "backend-unavailable"]).toContain(error?.code);
  });
});
