/** Feature detection for browsers and Node. */

import { relaxedSimd, simd, threads } from "wasm-feature-detect";
import { environment } from "./environment.js";
import type { Build, Features, Gpu } from "./pick-build.js";

/** Sizes of shared memory to try, in pages of 64 KiB: 4, 2 and 1 GiB. Phones refuse the larger ones. */
const SHARED_MEMORY_PAGES = [65_536, 32_768, 16_384];

/** Shared memory of a threaded build, and its maximum. */
export interface SharedMemory {
  readonly memory: WebAssembly.Memory;
  readonly maximumPages: number;
}

/** Detects the features that `pickBuild` needs; the GPU only on request. */
export async function detectFeatures(
  builds: readonly Build[],
  sharedMemory: SharedMemory | undefined,
  lookForGpu: boolean,
): Promise<Features> {
  const gpu = lookForGpu ? detectGpu() : undefined;
  const [simd128, relaxed] = await Promise.all([simd(), relaxedSimd()]);
  return {
    host: environment(),
    builds,
    simd128,
    relaxed,
    sharedMemoryPages: sharedMemory?.maximumPages ?? 0,
    cores: globalThis.navigator?.hardwareConcurrency ?? 1,
    ...(await gpu),
  };
}

async function detectGpu(): Promise<Pick<Features, "gpuName" | "gpuBufferBytes"> & { gpu: Gpu }> {
  const api = globalThis.navigator?.gpu;
  if (api === undefined) return { gpu: globalThis.isSecureContext === false ? "insecure" : "no-api" };
  const adapter = await api.requestAdapter({ powerPreference: "high-performance" }).catch(() => null);
  if (adapter === null) return { gpu: "no-adapter" };
  const { description = "", vendor = "", architecture = "" } = adapter.info ?? {};
  return {
    gpu: isSoftware(adapter) ? "software" : "ready",
    gpuName: description || `${vendor} ${architecture}`.trim(),
    gpuBufferBytes: Math.min(adapter.limits.maxBufferSize, adapter.limits.maxStorageBufferBindingSize),
  };
}

/** Browsers have moved this property from the adapter to its description. */
function isSoftware(adapter: GPUAdapter): boolean {
  const { isFallbackAdapter } = adapter as { readonly isFallbackAdapter?: boolean };
  return adapter.info?.isFallbackAdapter ?? isFallbackAdapter ?? false;
}

/**
 * The largest available shared memory with `initialPages`; none without cross-origin isolation.
 *
 * The maximum is reserved as address space, so only an attempt says whether a browser grants it.
 */
export async function reserveSharedMemory(initialPages: number): Promise<SharedMemory | undefined> {
  if (globalThis.crossOriginIsolated !== true || !(await threads())) return undefined;
  for (const maximumPages of SHARED_MEMORY_PAGES) {
    try {
      const memory = new WebAssembly.Memory({ initial: initialPages, maximum: maximumPages, shared: true });
      return { memory, maximumPages };
    } catch {
      // Refused. Try a smaller one.
    }
  }
  return undefined;
}
