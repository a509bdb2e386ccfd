import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { decideDevice, explainThreads, gpuUnavailable, reportCpu, reportGpu } from "../src/choose-device.js";
import { SetunError } from "../src/errors.js";
import { connectLocal } from "../src/host-links.js";
import { loadOn } from "../src/load.js";
import type { LoadProgress } from "../src/load-progress.js";
import { BUILDS, type Build, type BuildChoice, type Features } from "../src/pick-build.js";
import type { DeviceReport, DeviceVerdict } from "../src/wasm.js";
import { countedModel, emptyLog, type FakeOptions, fakeBuild, type Log } from "./fake-wasm.js";

const files = { "a.safetensors": new Uint8Array(16) };

const cpu = (build: Build, threads: number): BuildChoice => ({ build, backend: "auto", threads });

/** What the GPU's build measures: microseconds of a layer on the GPU, and on one thread of SIMD128. */
function measured(gpu: number, processor: number): DeviceReport {
  const isFaster = gpu <= processor;
  const line = (device: string, level: string, runs: boolean, layerMicroseconds: number): DeviceVerdict => ({
    ...{ device, level, layerMicroseconds, reason: "as measured" },
    verdict: runs ? "chosen" : "slower",
  });
  const lines = [line("webgpu", "a card", isFaster, gpu), line("cpu", "simd128", !isFaster, processor)];
  return { devices: isFaster ? lines : lines.reverse() };
}

describe("decideDevice", () => {
  it.each([
    [99, 100, cpu("simd128", 1), true],
    [100, 100, cpu("simd128", 1), false],
    [62, 100, cpu("relaxed", 1), true],
    [63, 100, cpu("relaxed", 1), false],
    [24, 100, cpu("simd128-threads", 4), true],
    [26, 100, cpu("simd128-threads", 4), false],
    [15, 100, cpu("relaxed-threads", 4), true],
    [16, 100, cpu("relaxed-threads", 4), false],
    [200, 100, cpu("simd128", 1), false],
  ])("compares with the CPU build that would run: %d, %d, %j", (gpu, processor, choice, takesGpu) => {
    const judgement = decideDevice(measured(gpu, processor), choice);
    expect(judgement).toMatchObject({ takesGpu, gpu: { verdict: takesGpu ? "chosen" : "slower" } });
  });

  it("lists the device that runs first, with the estimated time of the CPU", () => {
    const choice = cpu("relaxed-threads", 2);
    const faster = reportGpu(decideDevice(measured(10, 320), choice), choice);
    expect(faster.devices).toEqual([
      {
        device: "webgpu",
        level: "a card",
        verdict: "chosen",
        reason: "the fastest for this model",
        layerMicroseconds: 10,
      },
      {
        device: "cpu",
        level: "relaxed",
        verdict: "slower",
        reason: expect.stringContaining("with 2 threads"),
        layerMicroseconds: 100,
      },
    ]);
    const engine: DeviceReport = {
      devices: [{ device: "cpu", level: "relaxed", verdict: "chosen", reason: "it is alone" }],
    };
    const slower = reportCpu(engine, decideDevice(measured(110, 320), choice), choice);
    expect(slower.devices).toMatchObject([
      {
        device: "cpu",
        verdict: "chosen",
        layerMicroseconds: 100,
        reason: expect.stringMatching(/the fastest/),
      },
      { device: "webgpu", verdict: "slower", layerMicroseconds: 110 },
    ]);
  });

  it.each(["failed", "software"] as const)("accepts only GPUs that the engine accepts: %s", (verdict) => {
    const gpu = { device: "webgpu", level: "a card", verdict, reason: "for a reason" };
    const runs = { device: "cpu", level: "simd128", verdict: "chosen", reason: "alone" } as const;
    expect(decideDevice({ devices: [runs, gpu] }, cpu("relaxed", 1))).toEqual({ takesGpu: false, gpu });
  });
});

describe("gpuUnavailable", () => {
  const features: Features = {
    ...{ host: "page", builds: BUILDS, simd128: true, relaxed: true, sharedMemoryPages: 0, cores: 1 },
    gpu: "ready",
  };

  it.each([
    [{}, undefined],
    [
      { gpu: "software", gpuName: "swift" },
      { verdict: "software", level: "swift" },
    ],
    [{ gpu: "no-api" }, { verdict: "absent", reason: expect.stringMatching(/no WebGPU/) }],
    [{ gpu: "no-adapter" }, { verdict: "absent", reason: expect.stringMatching(/finds no GPU/) }],
    [{ builds: ["simd128"] }, { verdict: "absent", reason: expect.stringMatching(/no WebGPU build/) }],
  ] as const)("decides without a build: %j", (less, expected) => {
    const judgement = gpuUnavailable({ ...features, ...less });
    if (expected === undefined) expect(judgement).toBeUndefined();
    else expect(judgement).toMatchObject({ takesGpu: false, gpu: { device: "webgpu", ...expected } });
  });
});

describe("explainThreads", () => {
  const report: DeviceReport = {
    devices: [{ device: "cpu", level: "relaxed", verdict: "chosen", reason: "alone" }],
  };
  const features = { builds: BUILDS, simd128: true, relaxed: true, sharedMemoryPages: 0, cores: 4 };

  it.each([
    ["page", true, /^alone; on one thread: the page is not cross-origin isolated: serve it with /],
    ["worker", true, /; on one thread: the page is not .* and the file of this worker/],
    ["page", false, /; on one thread: threads need a worker$/],
    ["service-worker", false, /; on one thread: a service worker has no threads/],
    ["node", false, /^alone$/],
  ] as const)("names the remedy: %s, in a worker: %s", (host, inWorker, words) => {
    const told = explainThreads(report, { ...features, host }, { inWorker, threads: undefined });
    expect(told.devices[0]?.reason).toMatch(words);
  });

  it("says nothing about one thread that was asked for, or about several", () => {
    const several = { ...features, host: "page", sharedMemoryPages: 9 } as const;
    const wanted = { inWorker: true, threads: 4 };
    expect(explainThreads(report, several, wanted)).toBe(report);
    expect(explainThreads(report, { ...several, sharedMemoryPages: 0 }, { ...wanted, threads: 1 })).toBe(
      report,
    );
  });
});

describe("load with backend auto", () => {
  let log: Log;
  /** The builds that were fetched. */
  let fetched: Build[];
  let warnings: unknown[];

  beforeEach(() => {
    log = emptyLog();
    fetched = [];
    warnings = [];
    vi.spyOn(console, "warn").mockImplementation((warning) => void warnings.push(warning));
  });
  afterEach(() => {
    vi.unstubAllGlobals();
    vi.restoreAllMocks();
  });

  function hasAdapter(adapter: object | null): void {
    const limits = { maxBufferSize: 2 ** 30, maxStorageBufferBindingSize: 2 ** 28 };
    const requestAdapter = async () => adapter && { limits, ...adapter };
    vi.stubGlobal("navigator", { hardwareConcurrency: 1, gpu: { requestAdapter } });
  }

  /** Loads where the GPU's build is such a fake. */
  function load(gpu: FakeOptions, options = {}) {
    const connect = async (build: Build) => {
      fetched.push(build);
      return connectLocal({
        build: fakeBuild(log, build === "webgpu" ? gpu : {}),
        openModel: countedModel(log),
      });
    };
    const embeddedModel = () => new URL("http://localhost/embedded.safetensors");
    const place = { initialSharedPages: 0, hasWorkers: false, baseUrl: () => "http://localhost/" };
    return loadOn({ builds: ["simd128", "webgpu"], ...place, embeddedModel, connect })(files, options);
  }

  it("uses a faster GPU, and reads the model once", async () => {
    hasAdapter({ info: { description: "a card" } });
    const seen: string[] = [];
    const onProgress = ({ phase }: LoadProgress) => seen.push(phase);
    const model = await load({ report: measured(10, 100) }, { onProgress });
    expect(model.info).toMatchObject({ backend: "webgpu", build: "webgpu" });
    expect(model.deviceReport().devices.map(({ device }) => device)).toEqual(["webgpu", "cpu"]);
    expect(await model.generate("a", { maxTokens: 3 }).text()).toBe("0 1 2 ");
    expect({ fetched, seen, warnings }).toEqual({
      fetched: ["webgpu"],
      seen: ["connecting", "packing", "connecting", "packing", "ready"],
      warnings: [],
    });
    expect(log).toMatchObject({ opened: 1, closed: 1 });
  });

  it("tells what was assumed of a model's files", async () => {
    hasAdapter({ info: { description: "a card" } });
    const model = await load({ report: measured(10, 100), warnings: ["m.gguf: one", "m.gguf: two"] });
    expect(model.info.warnings).toEqual(["m.gguf: one", "m.gguf: two"]);
    expect(warnings).toEqual(["setun: m.gguf: one", "setun: m.gguf: two"]);
  });

  it("does not use a slower GPU", async () => {
    hasAdapter({ info: { description: "a card" } });
    const model = await load({ report: measured(110, 100) });
    expect(model.info).toMatchObject({ build: "simd128" });
    expect(model.deviceReport().devices).toMatchObject([
      { device: "cpu", verdict: "chosen", layerMicroseconds: 100 },
      { device: "webgpu", verdict: "slower", layerMicroseconds: 110 },
    ]);
    await expect.poll(() => log.freed).toEqual(["loader"]);
    expect({ fetched, warnings }).toEqual({ fetched: ["webgpu", "simd128"], warnings: [] });
  });

  it.each([
    ["no adapter", null, "absent"],
    ["software", { info: { isFallbackAdapter: true, vendor: "google", architecture: "swift" } }, "software"],
    ["software, as it was told before", { isFallbackAdapter: true }, "software"],
  ])("fetches nothing more for %s", async (_, adapter, verdict) => {
    hasAdapter(adapter);
    const model = await load({});
    expect(model.deviceReport().devices[1]).toMatchObject({ device: "webgpu", verdict });
    expect({ fetched, warnings }).toEqual({ fetched: ["simd128"], warnings: [] });
  });

  it.each([
    ["the probe", {}, "the driver is odd"],
    [
      "the weights",
      { report: measured(10, 100), refusal: new SetunError("out-of-memory", "too large") },
      "too large",
    ],
    ["a crash", { report: measured(10, 100), refusal: new Error("unreachable") }, "unreachable"],
  ])("uses the CPU if the GPU fails, with a warning: %s", async (_, gpu, reason) => {
    hasAdapter({ info: { description: "a card" } });
    const model = await load(gpu);
    const [runs, failed] = model.deviceReport().devices;
    expect(runs).toMatchObject({ device: "cpu", verdict: "chosen" });
    expect(failed).toEqual({ device: "webgpu", level: "a card", verdict: "failed", reason });
    expect(warnings).toEqual([`setun: the GPU is not used: ${reason}`]);
  });

  it("fails once for an invalid model", async () => {
    hasAdapter({ info: {} });
    const refusal = new SetunError("bad-checkpoint", "a shape is odd");
    await expect(load({ report: measured(10, 100), refusal })).rejects.toMatchObject({
      code: "bad-checkpoint",
    });
    expect({ fetched, warnings }).toEqual({ fetched: ["webgpu"], warnings: [] });
  });

  it("fails if WebGPU is requested and refused", async () => {
    hasAdapter({ info: {} });
    const refusal = new SetunError("out-of-memory", "too large");
    const loading = load({ refusal }, { backend: "webgpu" });
    await expect(loading).rejects.toMatchObject({ code: "out-of-memory" });
    expect(fetched).toEqual(["webgpu"]);
  });

  it("rejects with the reason of a signal that is aborted meanwhile", async () => {
    hasAdapter({ info: {} });
    const controller = new AbortController();
    const reason = new Error("enough");
    const onProgress = () => controller.abort(reason);
    const loading = load({ report: measured(10, 100) }, { signal: controller.signal, onProgress });
    await expect(loading).rejects.toBe(reason);
    expect({ fetched, warnings }).toEqual({ fetched: ["webgpu"], warnings: [] });
  });
});
