import { describe, expect, it } from "vitest";
import { checkBackends, type DeviceMemory, type Limits, refuseTooLarge } from "../src/backend-fit.js";
import { BUILDS, type Features } from "../src/pick-build.js";

const memory: DeviceMemory = {
  ...{ context: 4096, weights: 1e9, cache: 2e8, steps: 1e8, total: 1.3e9 },
  ...{ largestWeight: 3e8, largestBuffer: 2e8 },
};
const features: Features = {
  ...{ host: "page", builds: BUILDS, simd128: true, relaxed: true, sharedMemoryPages: 65_536, cores: 8 },
  ...{ gpu: "ready", gpuName: "a card" },
};
const limits: Limits = { inWorker: true, gpuBufferBytes: 2 ** 31 };

/** By build, whether it fits and why. */
function fitsOf(
  more: Partial<DeviceMemory> = {},
  other: Partial<Features> = {},
  limit: Partial<Limits> = {},
) {
  const taken = { ...memory, ...more };
  const found = checkBackends(
    { processor: taken, gpu: taken },
    { ...features, ...other },
    { ...limits, ...limit },
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
    expect(checkBackends({ processor: memory, gpu: memory }, features, limits)[0]).toEqual({
      backend: "relaxed",
      build: "relaxed-threads",
      fits: true,
      reason: "needs 1.37 GB of at most 4.29 GB",
    });
  });

  it("compares memory with the limit of WebAssembly and of shared memory", () => {
    const large = fitsOf({ total: 2 ** 32 - 2 ** 26 });
    expect(large.simd128).toBe("true: needs 4.29 GB of at most 4.29 GB");
    expect(fitsOf({ total: 2 ** 32 - 2 ** 26 + 1 }).simd128).toMatch(/^false: needs 4\.29 GB, but/);
    const small = fitsOf({}, { sharedMemoryPages: 16_384 });
    expect(small["simd128-threads"]).toBe("false: needs 1.37 GB, but at most 1.07 GB are available");
    expect(small.simd128).toMatch(/^true/);
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

  it("takes what fits", () => refuseTooLarge("a.gguf", loader(4.29e9)));
});
