/** Which builds can run a model here: one pure function of what it takes and what there is. */

import { BUILDS, type Build, type Features, whyNoGpu } from "./pick-build.js";

/** Memory that a model takes on a device, in bytes. */
export interface EstimatedMemory {
  /** The weights as the device keeps them. */
  readonly weights: number;
  /** The KV cache of one whole context; it grows with the texts. */
  readonly cache: number;
  /** Buffers of steps, once a long prompt was read. */
  readonly steps: number;
  /** Most of all at once. */
  readonly total: number;
  /** The largest weight, which is there once more while it is loaded. */
  readonly largestWeight: number;
  /** The largest buffer; of a GPU's only those that are not cut. */
  readonly largestBuffer: number;
}

/** The same with the tokens of the context that it is for. */
export interface DeviceMemory extends EstimatedMemory {
  readonly context: number;
}

/** What a model takes of each kind of device. */
export interface DeviceMemories {
  readonly processor: DeviceMemory;
  readonly gpu: DeviceMemory;
}

/** What a browser lets a build have. */
export interface Limits {
  /** Whether it is to run in a worker. */
  readonly inWorker: boolean;
  /** Most bytes of a GPU's buffer. */
  readonly gpuBufferBytes: number | undefined;
}

/** Whether a build can run a model. */
interface BackendFit {
  readonly backend: string;
  readonly build: Build;
  readonly fits: boolean;
  readonly reason: string;
}

const PAGE_BYTES = 65_536;

/** Most that WebAssembly addresses. A browser may give less, on phones above all, and tells only when it is asked for. */
const WASM_BYTES = 65_536 * PAGE_BYTES;

/** The program itself, the tokenizer and what passes through while files are read. */
const PROGRAM_BYTES = 64 << 20;

/** Judges all builds of the package, those for the processor first, the best of them at the beginning. */
export function checkBackends(
  { processor, gpu }: DeviceMemories,
  features: Features,
  limits: Limits,
): BackendFit[] {
  const best: readonly Build[] = ["relaxed-threads", "simd128-threads", "relaxed", "simd128"];
  const order = [...best, ...BUILDS.filter((build) => !best.includes(build))];
  return order
    .filter((build) => features.builds.includes(build))
    .map((build) => {
      if (build === "webgpu")
        return { backend: "webgpu", build, ...checkGpu(gpu, features, limits.gpuBufferBytes) };
      const backend = build.replace("-threads", "");
      return { backend, build, ...checkProcessor(build, processor, features, limits) };
    });
}

type Fit = Pick<BackendFit, "fits" | "reason">;

function checkProcessor(build: Build, memory: EstimatedMemory, features: Features, limits: Limits): Fit {
  const why = whyNoProcessor(build, features, limits);
  if (why !== undefined) return { fits: false, reason: why };
  const maxBytes = build.endsWith("-threads") ? features.sharedMemoryPages * PAGE_BYTES : WASM_BYTES;
  const needed = memory.total + PROGRAM_BYTES;
  const amounts = `${formatBytes(needed)} of at most ${formatBytes(maxBytes)} of memory`;
  return needed <= maxBytes
    ? { fits: true, reason: `it takes ${amounts}` }
    : { fits: false, reason: `it would take ${amounts}` };
}

function whyNoProcessor(build: Build, features: Features, { inWorker }: Limits): string | undefined {
  if (!features.simd128) return "this browser has no WebAssembly SIMD";
  if (build.startsWith("relaxed") && !features.relaxed) return "this browser has no relaxed SIMD";
  if (!build.endsWith("-threads")) return undefined;
  if (!inWorker) return "threads need a worker";
  if (features.cores < 2) return "there is one processor";
  return features.sharedMemoryPages > 0 ? undefined : "the page is not cross-origin isolated";
}

/** Browsers do not tell how much memory a GPU has; buffers have limits that they tell. */
function checkGpu(memory: EstimatedMemory, features: Features, maxBufferBytes: number | undefined): Fit {
  const why = features.simd128 ? whyNoGpu(features) : "this browser has no WebAssembly SIMD";
  if (why !== "" || maxBufferBytes === undefined)
    return { fits: false, reason: why || "no GPU was looked for" };
  const host = 2 * memory.largestWeight + PROGRAM_BYTES;
  if (host > WASM_BYTES) {
    return {
      fits: false,
      reason: `its largest weight, ${formatBytes(memory.largestWeight)}, cannot be loaded`,
    };
  }
  const buffer = `${formatBytes(memory.largestBuffer)} in one buffer, of at most ${formatBytes(maxBufferBytes)}`;
  if (memory.largestBuffer > maxBufferBytes) return { fits: false, reason: `it would take ${buffer}` };
  const all = `it takes ${formatBytes(memory.total)} of a GPU's memory, which browsers do not tell, and ${buffer}`;
  const note = features.gpu === "software" ? "; a processor plays this GPU: it runs by name only" : "";
  return { fits: true, reason: all + note };
}

function formatBytes(bytes: number): string {
  if (bytes >= 1e9) return `${(bytes / 1e9).toFixed(2)} GB`;
  return `${(bytes / 1e6).toFixed(bytes >= 1e7 ? 0 : 1)} MB`;
}
