/** Estimates of download size and memory before a download. */

import { checkBackends, type EstimatedMemory, headOf, type Limits } from "./backend-fit.js";
import { checkEstimateOptions } from "./check-options.js";
import { type Connect, Connection, requestWithProgress } from "./connection.js";
import { detectFeatures, mostSharedPages } from "./features.js";
import { modelRequest, type Platform } from "./load.js";
import type { EstimateOptions } from "./options.js";
import { type Build, type Features, pickBuild } from "./pick-build.js";
import type { ModelRequest } from "./protocol.js";
import type { LoadSource } from "./sources.js";
import { missingBytesFor, storageEstimate } from "./store/quota.js";
import type { HeadType } from "./wasm.js";

/** Download size, storage and memory of a model, in bytes. */
export interface ModelEstimate {
  /** Size of the download; 0 for local files, `undefined` if a server does not report. */
  readonly bytes: number | undefined;
  /** Bytes of the download that the browser's store has already. */
  readonly storedBytes: number;
  /** Memory on the CPU, with the head that `load` takes there. */
  readonly memory: EstimatedMemory;
  /** That head: the option `headType`, or `"stored"` where `"auto"` has no room for its screen. */
  readonly headType: HeadType;
  /** Context length in tokens. */
  readonly context: number;
  /** Storage of this origin; absent if nothing is stored. */
  readonly storage: EstimatedStorage | undefined;
  /** Each build of this package, the best for the CPU first. */
  readonly backends: readonly EstimatedBackend[];
}

/** Storage of this origin in bytes. */
export interface EstimatedStorage {
  /** Maximum that the browser grants. */
  readonly quota: number;
  /** Bytes in use. */
  readonly usage: number;
  /** Whether the rest of the download fits. */
  readonly fits: boolean;
}

/** Whether a build can run a model here. */
export interface EstimatedBackend {
  /** Value of the option `backend` of `load`. */
  readonly backend: string;
  /** The WebAssembly build. */
  readonly build?: Build;
  /** Whether it can run the model. */
  readonly fits: boolean;
  /** Memory, or the reason why it cannot run. */
  readonly reason: string;
}

/** `models.estimate` for one platform. */
export type Estimate = (source?: LoadSource, options?: EstimateOptions) => Promise<ModelEstimate>;

/** Makes the `estimate` of an entry point. */
export function estimateOn(platform: Platform): Estimate {
  return async (source, options = {}) => {
    checkEstimateOptions(options);
    const { inWorker, model } = await modelRequest(platform, source, options);
    const { features, limits } = await probeBrowser(platform, inWorker);
    const { build } = pickBuild(features, { backend: "cpu", threads: 1 });
    const found = await readHeaders(
      await platform.connect(build, inWorker, options.assetsUrl),
      model,
      options,
    );
    const { bytes, storedBytes, processor, gpu } = found;
    const browser = model.fetchOptions.store ? await storageEstimate() : undefined;
    const fits = missingBytesFor((bytes ?? 0) - storedBytes, browser) === 0;
    const headType = headOf((type) => processor[type], options.headType);
    const { context, ...memory } = processor[headType];
    return {
      bytes,
      storedBytes,
      memory,
      headType,
      context,
      storage: browser && { ...browser, fits },
      backends: checkBackends({ processor, gpu }, features, limits, options.headType),
    };
  };
}

/** Features and memory limits of this browser. */
async function probeBrowser(
  { builds, initialSharedPages }: Platform,
  inWorker: boolean,
): Promise<{ features: Features; limits: Limits }> {
  const mayThread = inWorker && initialSharedPages > 0;
  const shared = mayThread ? await mostSharedPages() : 0;
  const features = await detectFeatures(builds, shared, builds.includes("webgpu"));
  return { features, limits: { inWorker, gpuBufferBytes: features.gpuBufferBytes } };
}

async function readHeaders(connect: Connect, model: ModelRequest, { signal, headType }: EstimateOptions) {
  const connection = new Connection(connect);
  try {
    return await requestWithProgress(
      connection,
      { type: "estimate", ...model, ...(headType && { headType }) },
      "estimated",
      signal ? { signal } : {},
    );
  } finally {
    connection.close();
  }
}
