/** What a model takes, before it is downloaded. */

import { checkBackends, type EstimatedMemory, type Limits } from "./backend-fit.js";
import { checkEstimateOptions } from "./check-options.js";
import { type Connect, Connection, requestWithProgress } from "./connection.js";
import { detectFeatures, reserveSharedMemory } from "./features.js";
import { modelRequest, type Platform } from "./load.js";
import type { EstimateOptions } from "./options.js";
import { type Build, type Features, pickBuild } from "./pick-build.js";
import type { ModelRequest } from "./protocol.js";
import type { LoadSource } from "./sources.js";
import { missingBytesFor, storageEstimate } from "./store/quota.js";

/** What a model takes of the network, the browser's storage and the memory, in bytes. */
export interface ModelEstimate {
  /** All of the model's files that are downloaded; 0 for files that are here, `undefined` where a server does not say. */
  readonly bytes: number | undefined;
  /** Those of them that the browser's store has already. */
  readonly storedBytes: number;
  /** Memory on the processor. */
  readonly memory: EstimatedMemory;
  /** Tokens of a whole context. */
  readonly context: number;
  /** What the browser gives this origin, and whether what is still to be downloaded fits; absent where nothing is kept. */
  readonly storage: EstimatedStorage | undefined;
  /** Each build of this package, and whether it can run the model here: the best for the processor first. */
  readonly backends: readonly EstimatedBackend[];
}

/** The browser's room for this origin. */
export interface EstimatedStorage {
  readonly quota: number;
  readonly usage: number;
  readonly fits: boolean;
}

/** Whether a build can run a model. */
export interface EstimatedBackend {
  /** As `load` takes it: a level of the processor, or `webgpu`. */
  readonly backend: string;
  readonly build?: Build;
  readonly fits: boolean;
  /** Why, or why not. */
  readonly reason: string;
}

/** `models.estimate` for one platform. */
export type Estimate = (source?: LoadSource, options?: EstimateOptions) => Promise<ModelEstimate>;

/** Makes the `estimate` of an entry point. */
export function estimateOn(platform: Platform): Estimate {
  return async (source, options = {}) => {
    checkEstimateOptions(options);
    const { inWorker, model } = await modelRequest(platform, source, options);
    const { features, limits } = await surroundings(platform, inWorker);
    const { build } = pickBuild(features, { backend: "cpu", threads: 1 });
    const found = await readHeaders(await platform.connect(build, inWorker), model, options.signal);
    const { bytes, storedBytes, processor, gpu } = found;
    const browser = model.fetchOptions.store ? await storageEstimate() : undefined;
    const fits = missingBytesFor((bytes ?? 0) - storedBytes, browser) === 0;
    const { context, ...memory } = processor;
    return {
      bytes,
      storedBytes,
      memory,
      context,
      storage: browser && { ...browser, fits },
      backends: checkBackends({ processor, gpu }, features, limits),
    };
  };
}

/** What this browser can run, and how much memory it lets a build have. */
async function surroundings(
  { builds, initialSharedPages }: Platform,
  inWorker: boolean,
): Promise<{ features: Features; limits: Limits }> {
  const mayThread = inWorker && initialSharedPages > 0;
  const shared = mayThread ? await reserveSharedMemory(initialSharedPages) : undefined;
  const features = await detectFeatures(builds, shared, builds.includes("webgpu"));
  return { features, limits: { inWorker, gpuBufferBytes: features.gpuBufferBytes } };
}

async function readHeaders(connect: Connect, model: ModelRequest, signal: AbortSignal | undefined) {
  const connection = new Connection(connect);
  try {
    return await requestWithProgress(
      connection,
      { type: "estimate", ...model },
      "estimated",
      signal ? { signal } : {},
    );
  } finally {
    connection.close();
  }
}
