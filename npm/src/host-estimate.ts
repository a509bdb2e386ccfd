/** Memory estimates on the host, from a model's headers. */

import type { DeviceMemories, DeviceMemory } from "./backend-fit.js";
import { type DownloadSize, openHeaders } from "./header-source.js";
import type { HostPlatform } from "./host-platform.js";
import { ModelBytes } from "./model-bytes.js";
import { openLoader } from "./open-loader.js";
import type { FetchOptions } from "./open-model.js";
import type { ModelSource } from "./sources.js";
import { openStorage } from "./store/browser-storage.js";
import type { WasmLoader } from "./wasm.js";
import { startWasm } from "./wasm-instance.js";

/** A prepared estimate and its read operation. */
export interface EstimateOperation {
  readonly bytes: ModelBytes;
  estimate(): Promise<DownloadSize & DeviceMemories>;
}

/** Prepares the estimate of a source. */
export function prepareEstimate(
  platform: HostPlatform,
  source: ModelSource,
  fetchOptions: FetchOptions,
): EstimateOperation {
  const { build, openModel } = platform;
  let size: DownloadSize = { bytes: undefined, storedBytes: 0 };
  const bytes = new ModelBytes(async (signal) => {
    const storage = fetchOptions.store ? await openStorage() : undefined;
    const { model, ...found } = await openHeaders(source, fetchOptions, { openModel, storage }, signal);
    size = found;
    return model;
  });
  const estimate = async () => {
    const [entry] = await Promise.all([bytes.start(), startWasm(build, undefined, 1)]);
    bytes.signal.throwIfAborted();
    const loader = await openLoader(platform, entry, bytes, { headersOnly: true });
    try {
      return { ...size, processor: memoryOf(loader, false), gpu: memoryOf(loader, true) };
    } finally {
      loader.free();
      await bytes.end();
    }
  };
  return { bytes, estimate };
}

/** The engine's numbers with names. */
export function memoryOf(loader: WasmLoader, onGpu: boolean): DeviceMemory {
  const [context = 0, weights = 0, cache = 0, steps = 0, largestWeight = 0, largestBuffer = 0, total = 0] =
    loader.estimate(onGpu);
  return { context, weights, cache, steps, largestWeight, largestBuffer, total };
}
