import { describe, expect, it } from "vitest";
import { BUILDS, type Features, mayUseGpu, pickBuild } from "../src/pick-build.js";

const everything: Features = {
  host: "page",
  builds: BUILDS,
  simd128: true,
  relaxed: true,
  sharedMemoryPages: 65_536,
  cores: 4,
};

const auto = { backend: "auto", threads: undefined };

describe("pickBuild", () => {
  it.each([
    ["everything", {}, "relaxed-threads", 4],
    ["no shared memory", { sharedMemoryPages: 0 }, "relaxed", 1],
    ["no relaxed SIMD", { relaxed: false }, "simd128-threads", 4],
    ["neither", { relaxed: false, sharedMemoryPages: 0 }, "simd128", 1],
    ["one core", { cores: 1 }, "relaxed", 1],
    ["very many cores", { cores: 128 }, "relaxed-threads", 8],
    ["a package without threads", { builds: ["simd128", "relaxed"] }, "relaxed", 1],
    ["a package with simd128 alone", { builds: ["simd128"] }, "simd128", 1],
  ] as const)("picks the best available build: %s", (_, less, build, threads) => {
    expect(pickBuild({ ...everything, ...less }, auto)).toMatchObject({ build, backend: "auto", threads });
  });

  it.each([
    ["cpu", "relaxed-threads", "cpu"],
    ["wasm", "relaxed-threads", "cpu"],
    ["relaxed", "relaxed-threads", "relaxed"],
    ["simd128", "simd128-threads", "simd128"],
    ["scalar", "relaxed-threads", "scalar"],
  ])("picks the requested backend: %s", (backend, build, told) => {
    expect(pickBuild(everything, { backend, threads: undefined })).toEqual({
      build,
      backend: told,
      threads: 4,
      workers: 0,
    });
  });

  it.each([
    [1, "relaxed", 1],
    [2, "relaxed-threads", 2],
    [16, "relaxed-threads", 16],
  ])("uses the requested threads: %i", (threads, build, used) => {
    expect(pickBuild(everything, { backend: "auto", threads })).toEqual({
      build,
      backend: "auto",
      threads: used,
      workers: 0,
    });
  });

  it.each([
    [undefined, 3],
    [1, 0],
    [2, 1],
    [16, 15],
  ])("has workers where memory cannot be shared: %s threads", (threads, workers) => {
    const choice = pickBuild({ ...everything, sharedMemoryPages: 0 }, { backend: "auto", threads });
    expect(choice).toEqual({ build: "relaxed", backend: "auto", threads: 1, workers });
  });

  it.each([
    ["avx2", { gpu: "ready" }, "auto, cpu, wasm, simd128, relaxed, scalar, webgpu"],
    ["avx2", {}, "auto, cpu, wasm, simd128, relaxed, scalar"],
    ["relaxed", { relaxed: false }, "auto, cpu, wasm, simd128, scalar"],
    [
      "auto",
      { relaxed: false, simd128: false },
      "none: this browser has no WebAssembly SIMD: use a current version",
    ],
  ] as const)("has no fallback: %s", (backend, less, available) => {
    const pick = () => pickBuild({ ...everything, ...less }, { backend, threads: undefined });
    const message = `backend "${backend}" is not available here; available: ${available}`;
    expect(pick).toThrow(expect.objectContaining({ code: "backend-unavailable", message }));
  });

  it("has at most three workers that were not requested, and none for the reference", () => {
    const features = { ...everything, sharedMemoryPages: 0, cores: 16 };
    expect(pickBuild(features, auto).workers).toBe(3);
    expect(pickBuild(features, { backend: "scalar", threads: 4 }).workers).toBe(0);
  });

  it.each(["ready", "software"] as const)("picks WebGPU if it is requested and available: %s", (gpu) => {
    const features: Features = { ...everything, gpu };
    const choice = { build: "webgpu", backend: "webgpu", threads: 1, workers: 0 };
    expect(pickBuild(features, { backend: "webgpu", threads: 4 })).toEqual(choice);
    expect(pickBuild(features, auto).build).toBe("relaxed-threads");
  });

  it("looks for a GPU unless another backend is named", () => {
    expect(["cpu", "wasm", "relaxed", "simd128", "scalar"].some(mayUseGpu)).toBe(false);
    expect(["auto", "webgpu"].every(mayUseGpu)).toBe(true);
  });

  it.each([
    [{ gpu: "no-api" }, /this browser has no WebGPU/],
    [{ gpu: "no-adapter" }, /finds no GPU .* turn on graphics acceleration/],
    [{ gpu: "insecure" }, /serve it over https/],
    [{ gpu: "no-api", host: "worker" }, /this browser has no WebGPU in workers/],
    [{ gpu: "no-api", host: "node" }, /: Node has no WebGPU: take backend: "cpu"/],
    [{ gpu: "ready", builds: ["simd128"] }, /no WebGPU build: import "setun"/],
    [{ builds: ["simd128"], host: "service-worker" }, /a service worker runs models on the CPU/],
  ] as const)("explains why there is no WebGPU: %j", (less, reason) => {
    const pick = () => pickBuild({ ...everything, ...less }, { backend: "webgpu", threads: undefined });
    const message = expect.stringMatching(reason);
    expect(pick).toThrow(expect.objectContaining({ code: "backend-unavailable", message }));
  });
});
