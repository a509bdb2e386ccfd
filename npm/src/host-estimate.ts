/** Reading a model's headers where its host is, to say what it takes. */

import type { DeviceMemories, DeviceMemory } from "./fits.js";
import type { HostPlatform } from "./host.js";
import type { Coming } from "./open-model.js";
import { type DownloadSize, outline } from "./outline.js";
import { ModelBytes } from "./read-model.js";
import type { ModelSource } from "./sources.js";
import { openStorage } from "./store/open-storage.js";
import type { WasmLoader } from "./wasm.js";
import { startWasm } from "./wasm-instance.js";

/** An estimate that is yet to be begun, and the bytes that it reads. */
export interface Estimating {
  readonly bytes: ModelBytes;
  estimate(): Promise<DownloadSize & DeviceMemories>;
}

/** Prepares an estimate of a source. */
export function estimating(
  { build, openModel }: HostPlatform,
  source: ModelSource,
  coming: Coming,
): Estimating {
  let size: DownloadSize = { bytes: undefined, storedBytes: 0 };
  const bytes = new ModelBytes(async (signal) => {
    const storage = coming.store ? await openStorage() : undefined;
    const { model, ...found } = await outline(source, coming, { openModel, storage }, signal);
    size = found;
    return model;
  });
  const estimate = async () => {
    const [{ layout, name }] = await Promise.all([bytes.begin(), startWasm(build, undefined, 1)]);
    bytes.signal.throwIfAborted();
    const loader = await build.glue.Loader.open(layout, name, bytes, true);
    try {
      return { ...size, processor: memoryOf(loader, false), gpu: memoryOf(loader, true) };
    } finally {
      loader.free();
      await bytes.end();
    }
  };
  return { bytes, estimate };
}

/** An estimate with names. */
function memoryOf(loader: WasmLoader, onGpu: boolean): DeviceMemory {
  const [context = 0, weights = 0, cache = 0, steps = 0, largestWeight = 0, largestBuffer = 0, total = 0] =
    loader.estimate(onGpu);
  return { context, weights, cache, steps, largestWeight, largestBuffer, total };
}
