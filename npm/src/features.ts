/** Feature detection for browsers and Node. */

import { relaxedSimd, simd, threads } from "wasm-feature-detect";
import { environment, remedy } from "./environment.js";
import { SetunError } from "./errors.js";
import type { Build, Features, Gpu } from "./pick-build.js";

/** Sizes of shared memory to try, in pages of 64 KiB: 4, 2 and 1 GiB. Phones refuse the larger ones. */
const SHARED_MEMORY_PAGES = [65_536, 32_768, 16_384];

/** Sizes of the shared memory of a threaded build. */
export interface SharedPages {
  readonly initial: number;
  readonly maximum: number;
}

/** Shared memory, and the pages to which it may grow. */
export interface ReservedMemory {
  readonly memory: WebAssembly.Memory;
  readonly maximum: number;
}

/** Detects the features that `pickBuild` needs; the GPU only on request. */
export async function detectFeatures(
  builds: readonly Build[],
  sharedMemoryPages: number,
  lookForGpu: boolean,
): Promise<Features> {
  const gpu = lookForGpu ? detectGpu() : undefined;
  const [simd128, relaxed] = await Promise.all([simd(), relaxedSimd()]);
  return {
    host: environment(),
    builds,
    simd128,
    relaxed,
    sharedMemoryPages,
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
 * The maximum size of shared memory, in pages; 0 without cross-origin isolation.
 *
 * The maximum is reserved as address space, so only an attempt says whether a browser grants it. This one has no bytes:
 * a page keeps a memory until it collects its garbage.
 */
export async function mostSharedPages(): Promise<number> {
  if (globalThis.crossOriginIsolated !== true || !(await threads())) return 0;
  return reserve({ initial: 0, maximum: SHARED_MEMORY_PAGES[0] ?? 0 })?.maximum ?? 0;
}

/** Shared memory of a threaded build, in its worker. It may have a lower maximum. */
export function reserveSharedMemory(pages: SharedPages): ReservedMemory {
  const found = reserve(pages);
  if (found !== undefined) return found;
  throw new SetunError("out-of-memory", `the browser refuses shared memory; ${remedy("memory")}`);
}

function reserve({ initial, maximum: most }: SharedPages): ReservedMemory | undefined {
  for (const maximum of SHARED_MEMORY_PAGES.filter((pages) => pages <= most)) {
    try {
      return { memory: new WebAssembly.Memory({ initial, maximum, shared: true }), maximum };
    } catch {
      // Refused. Try a smaller one.
    }
  }
  return undefined;
}
