import { describe, expect, it } from "vitest";
import {
  checkBackends,
  type DeviceMemory,
  headWarning,
  type Limits,
  refuseTooLarge,
} from "../src/backend-fit.js";
import { BUILDS, type Features } from "../src/pick-build.js";
import type { HeadType } from "../src/wasm.js";

const memory: DeviceMemory = {
  ...{ context: 4096, weights: 1e9, cache: 2e8, state: 0, steps: 1e8, total: 1.3e9 },
  ...{ largestWeight: 3e8, largestBuffer: 2e8 },
};
const features: Features = {
  ...{ host: "page", builds: BUILDS, simd128: true, relaxed: true, sharedMemoryPages: 65_536, cores: 8 },
  ...{ gpu: "ready", gpuName: "a card" },
};
const limits: Limits = { inWorker: true, gpuBufferBytes: 2 ** 31 };

/** Memory with each head: without a screen, and with half of the head. */
function withHeads(of: DeviceMemory, screen = 0, half = 0) {
  const without = (bytes: number) => ({ ...of, weights: of.weights - bytes, total: of.total - bytes });
  return { auto: of, screened: of, stored: without(screen), int8: without(screen + half) };
}

/** By build, whether it fits and why. */
function fitsOf(
  more: Partial<DeviceMemory> = {},
  other: Partial<Features> = {},
  limit: Partial<Limits> = {},
  heads: readonly [number, number, HeadType?] = [0, 0],
) {
  const taken = { ...memory, ...more };
  const [screen, half, given] = heads;
  const found = checkBackends(
    { processor: withHeads(taken, screen, half), gpu: taken },
    { ...features, ...other },
    { ...limits, ...limit },
    given,
  );
  return Object.fromEntries(found.map(({ build, fits, reason }) => [build, `${fits}: ${reason}`]));
}

describe("checkBackends", () => {
  it("has all builds of the package, the best first", () => {
    expect(Object.keys(fitsOf())).toEqual([
      "relaxed-threads",
      "simd128-threads",
      "relaxed",
      "simd128",
      "webgpu",
    ]);
    expect(Object.keys(fitsOf({}, { builds: ["simd128"] }))).toEqual(["simd128"]);
    expect(checkBackends({ processor: withHeads(memory), gpu: memory }, features, limits)[0]).toEqual({
      backend: "relaxed",
      build: "relaxed-threads",
      fits: true,
      reason: "needs 1.37 GB of at most 4.29 GB",
    });
  });

  it("compares memory with the limit of WebAssembly and of shared memory", () => {
    const large = fitsOf({ total: 2 ** 32 - 2 ** 26 });
    expect(large.simd128).toBe("true: needs 4.29 GB of at most 4.29 GB");
    const full = { weights: 2 ** 32 - 2 ** 26 - 1e8 };
    expect(fitsOf({ ...full, total: 5e9 }).simd128).toBe("false: has no room for a text");
    expect(fitsOf({ weights: full.weights + 1, total: 5e9 }).simd128).toMatch(/^false: needs 4\.29 GB, but/);
    const small = fitsOf({}, { sharedMemoryPages: 16_384 });
    expect(small["simd128-threads"]).toBe("false: needs 1.17 GB, but at most 1.07 GB are available");
    expect(small.simd128).toMatch(/^true/);
  });

  it("says how many tokens there is room for, where it is not the whole context", () => {
    const weights = 2 ** 32 - 2 ** 26 - 1e8 - 1e8;
    expect(fitsOf({ weights, total: weights + 3e8 }).simd128).toBe(
      "true: needs 4.19 GB of at most 4.29 GB, which leaves room for 2048 of 4096 tokens",
    );
  });

  it("counts a recurrent state with the text that has it, whatever its length", () => {
    const weights = 2 ** 32 - 2 ** 26 - 2e8 - 1e8;
    expect(fitsOf({ weights, state: 1e8, total: weights + 4e8 }).simd128).toBe(
      "true: needs 4.19 GB of at most 4.29 GB, which leaves room for 2048 of 4096 tokens",
    );
  });

  it("has no GPU for a model that only processors compute", () => {
    const found = checkBackends({ processor: withHeads(memory), gpu: undefined }, features, limits);
    const gpu = found.find(({ build }) => build === "webgpu");
    expect(gpu).toMatchObject({ fits: false, reason: "GPUs do not compute recurrent layers yet" });
    expect(found.filter(({ fits }) => fits).length).toBe(found.length - 1);
  });

  describe("of a model with the bytes of Llama3 8B", () => {
    const large = { weights: 4.375e9, total: 5.43e9, cache: 1.074e9, steps: 1e8, context: 8192 };
    const [screen, half] = [525e6, 525e6];

    it("leaves out the screen of the head", () => {
      expect(fitsOf(large, {}, {}, [screen, half]).simd128).toBe(
        'true: needs 4.02 GB of at most 4.29 GB, with headType: "stored", which leaves room for 2119 of 8192 tokens',
      );
    });

    it("takes the head that is asked for", () => {
      expect(fitsOf(large, {}, {}, [screen, half, "int8"]).simd128).toBe(
        "true: needs 3.49 GB of at most 4.29 GB, which leaves room for 6123 of 8192 tokens",
      );
      expect(fitsOf(large, {}, {}, [screen, half, "screened"]).simd128).toBe(
        'false: needs 4.54 GB, but at most 4.29 GB are available; headType: "int8" needs 3.49 GB',
      );
    });

    it("names the smaller head where only that fits", () => {
      expect(fitsOf(large, { sharedMemoryPages: 60_000 }, {}, [screen, half])["simd128-threads"]).toBe(
        'false: needs 4.02 GB, but at most 3.93 GB are available, with headType: "stored"; headType: "int8" needs 3.49 GB',
      );
    });
  });

  it.each([
    [{ sharedMemoryPages: 0 }, {}, "relaxed-threads", /not cross-origin isolated/],
    [{ cores: 1 }, {}, "simd128-threads", /one logical processor/],
    [{}, { inWorker: false }, "simd128-threads", /need a worker/],
    [{ relaxed: false }, {}, "relaxed", /no relaxed SIMD/],
    [{ simd128: false }, {}, "webgpu", /no WebAssembly SIMD/],
    [{ gpu: "no-api" }, {}, "webgpu", /has no WebGPU/],
    [{ gpu: "no-adapter" }, {}, "webgpu", /finds no GPU/],
    [{}, { gpuBufferBytes: 1e8 }, "webgpu", /200 MB in one buffer, of at most 100 MB/],
  ] as const)("says why a build cannot run: %j %j", (other, limit, build, why) => {
    expect(fitsOf({}, other, limit)[build]).toMatch(/^false/);
    expect(fitsOf({}, other, limit)[build]).toMatch(why);
  });

  it("loads weights of a GPU through WebAssembly's memory", () => {
    expect(fitsOf({ largestWeight: 2.2e9 }).webgpu).toBe(
      "false: its largest weight, 2.20 GB, cannot be loaded",
    );
    expect(fitsOf({ total: 9e9 }).webgpu).toMatch(/^true: needs 9\.00 GB of GPU memory/);
    expect(fitsOf({}, { gpu: "software" }).webgpu).toMatch(/^true: .*only with backend: "webgpu"$/);
  });
});

describe("refuseTooLarge", () => {
  const loader = (weights: number) => ({
    estimate: () => Float64Array.of(512, weights, 0, 0, 0, 0, weights),
  });

  it("names what the weights need and what there is", () => {
    expect(() => refuseTooLarge("a.gguf", loader(4.3e9))).toThrow(
      expect.objectContaining({
        code: "out-of-memory",
        message: expect.stringMatching(
          /^a\.gguf: its weights need 4\.30 GB, but at most 4\.29 GB are available; take/,
        ),
      }),
    );
    expect(() => refuseTooLarge("a.gguf", loader(3e9), 16_384)).toThrow(/need 3\.00 GB.* at most 1\.07 GB/);
  });

  it("takes what fits", () => {
    expect(refuseTooLarge("a.gguf", loader(4e9))).toBe("auto");
    expect(refuseTooLarge("a.gguf", loader(4.29e9))).toBe("auto");
  });

  /** Bytes of the weights by the head. */
  const heads = (auto: number, stored: number, int8: number) => ({
    estimate: (_: boolean, head: HeadType = "auto") => {
      const weights = { auto, screened: auto, stored, int8 }[head];
      return Float64Array.of(512, weights, 0, 0, 0, 0, weights);
    },
  });

  it("leaves out the screen of a head, where only that fits", () => {
    expect(refuseTooLarge("a.gguf", heads(4.4e9, 3.9e9, 3.4e9))).toBe("stored");
    expect(refuseTooLarge("a.gguf", heads(4.4e9, 3.9e9, 3.4e9), undefined, "int8")).toBe("int8");
    expect(() => refuseTooLarge("a.gguf", heads(4.4e9, 3.9e9, 3.4e9), undefined, "screened")).toThrow(
      /need 4\.40 GB, .*; headType: "int8" needs 3\.40 GB; take/,
    );
    expect(refuseTooLarge("a.gguf", heads(3e9, 2.5e9, 2e9))).toBe("auto");
  });

  it("names the smaller head where only that fits", () => {
    expect(() => refuseTooLarge("a.gguf", heads(5e9, 4.5e9, 4e9))).toThrow(
      /need 4\.50 GB, but at most 4\.29 GB are available; headType: "int8" needs 4\.00 GB; take/,
    );
    expect(() => refuseTooLarge("a.gguf", heads(6e9, 5.5e9, 5e9))).toThrow(/are available; take/);
  });
});

describe("headWarning", () => {
  it("is about a head that was not asked for", () => {
    expect(headWarning("stored")).toMatch(/without its screen.*texts are the same; headType: "int8"/);
    expect(headWarning("stored", "stored")).toBeUndefined();
    expect(headWarning("auto")).toBeUndefined();
    expect(headWarning("int8", "int8")).toBeUndefined();
  });
});
