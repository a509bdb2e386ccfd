/** Backend `auto` in Chromium, whose software adapter is presented as a GPU where a test needs one. */

import { describe, expect, it } from "vitest";
import { gpuStage, MODEL } from "../test-support/gpu-stage.js";
import { fetched } from "../test-support/page.js";

const PROMPT = "Once upon a time";

const stage = gpuStage();

describe("a GPU that is no known software adapter", () => {
  /**
   * Loads on a page that `prepare` has changed, and returns a summary.
   * @param {string} prepare @param {object} load @param {string} source
   */
  async function loadThere(prepare, load = {}, source = MODEL) {
    const context = await stage.browser.newContext();
    await context.addInitScript(
      "Object.defineProperty(GPUAdapterInfo.prototype, 'isFallbackAdapter', { get: () => false })",
    );
    const page = await context.newPage();
    const warnings = /** @type {string[]} */ ([]);
    page.on("console", (message) => message.type() === "warning" && warnings.push(message.text()));
    const before = stage.server.requests.length;
    await page.goto(`${stage.server.url}/index.html`);
    await page.waitForFunction(() => "setun" in window);
    const story = await page.evaluate(
      async ({ prompt, prepare, load, source }) => {
        await new Function(`return (async () => { ${prepare} })()`)();
        const model = await /** @type {any} */ (globalThis).setun.load(source || undefined, {
          worker: false,
          ...load,
        });
        const text = await model.generate(prompt, { maxTokens: 2, temperature: 0 }).text();
        await model.dispose();
        return { used: model.info, devices: model.deviceReport().devices, text };
      },
      { prompt: PROMPT, prepare, load, source },
    );
    await context.close();
    return { ...story, warnings, ...fetched(stage.server.requests.slice(before)) };
  }

  it("is probed, and not used if the CPU is faster", async () => {
    const { used, devices, code, warnings } = await loadThere("");
    expect(used.backend).toBe("cpu");
    expect(devices).toMatchObject([
      { device: "cpu", verdict: "chosen" },
      { device: "webgpu", verdict: "slower" },
    ]);
    expect(devices[1].layerMicroseconds).toBeGreaterThan(devices[0].layerMicroseconds);
    expect(code).toHaveLength(2);
    expect(warnings).toEqual([]);
  });

  it("is not looked for without a source, where the built-in model runs", async () => {
    const { used, devices, code } = await loadThere("", {}, "");
    expect(used.backend).toBe("cpu");
    expect(devices).toMatchObject([{ device: "cpu", verdict: "chosen" }]);
    expect(code).toHaveLength(1);
  });

  it("is used if it is faster, and the model is read once", async () => {
    const { used, devices, code, models, text } = await loadThere(`
      const { Loader } = await import("/node_modules/setun/dist/wasm/webgpu/setun.js");
      const { probe } = Loader.prototype;
      Loader.prototype.probe = async function (options) {
        const { devices } = await probe.call(this, options);
        const faster = (found) => found.device === "webgpu" ? { ...found, layerMicroseconds: 0.1 } : found;
        return { devices: devices.map(faster) };
      };`);
    expect(used).toMatchObject({ backend: "webgpu", build: "webgpu" });
    expect(devices).toMatchObject([
      { device: "webgpu", verdict: "chosen", layerMicroseconds: 0.1 },
      { device: "cpu", verdict: "slower" },
    ]);
    expect(code).toEqual([expect.stringContaining("webgpu")]);
    expect(models).toHaveLength(1);
    expect(text).toBe((await loadThere("", { backend: "wasm" })).text);
  });

  it("is not used if its driver fails, with a warning", async () => {
    const { used, devices, warnings } = await loadThere(`
      const { createShaderModule } = GPUDevice.prototype;
      GPUDevice.prototype.createShaderModule = function (descriptor) {
        return createShaderModule.call(this, { ...descriptor, code: "no program" });
      };`);
    expect(used.backend).toBe("cpu");
    const reason = expect.stringContaining("parsing WGSL");
    expect(devices).toMatchObject([
      { device: "cpu", verdict: "chosen" },
      { device: "webgpu", verdict: "failed", reason },
    ]);
    expect(warnings.filter((warning) => warning.startsWith("setun: the GPU is not used"))).toHaveLength(1);
  });
});
