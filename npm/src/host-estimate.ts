/** Memory estimates on the host, from a model's headers. */

import type { DeviceMemories, DeviceMemory, HeadMemories } from "./backend-fit.js";
import { type DownloadSize, openHeaders } from "./header-source.js";
import type { HostPlatform } from "./host-platform.js";
import { ModelBytes } from "./model-bytes.js";
import { openLoader } from "./open-loader.js";
import type { FetchOptions } from "./open-model.js";
import type { ModelSource } from "./sources.js";
import { openStorage } from "./store/browser-storage.js";
import type { HeadType, WasmLoader } from "./wasm.js";
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
  headType: HeadType | undefined,
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
      const gpu = loader.needsProcessor ? undefined : memoryOf(loader, true, headType);
      return { ...size, processor: headMemories(loader), gpu };
    } finally {
      loader.free();
      await bytes.end();
    }
  };
  return { bytes, estimate };
}

function headMemories(loader: WasmLoader): HeadMemories {
  const memory = (head: HeadType) => memoryOf(loader, false, head);
  return {
    auto: memory("auto"),
    stored: memory("stored"),
    screened: memory("screened"),
    int8: memory("int8"),
  };
}

/** The engine's numbers with names. */
function memoryOf(loader: WasmLoader, onGpu: boolean, head: HeadType | undefined): DeviceMemory {
  const numbers = loader.estimate(onGpu, head);
  const [context = 0, weights = 0, cache = 0, steps = 0] = numbers;
  const [largestWeight = 0, largestBuffer = 0, total = 0, state = 0] = numbers.slice(4);
  return { context, weights, cache, state, steps, largestWeight, largestBuffer, total };
}
