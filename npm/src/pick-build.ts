/** Choice of the WebAssembly build: a pure function of the browser's features. */

import { type Environment, noAdapter, noGpuBuild, noSimd, noWebGpu } from "./environment.js";
import { SetunError } from "./errors.js";

/** The WebAssembly builds of the package. */
export const BUILDS = ["simd128", "relaxed", "simd128-threads", "relaxed-threads", "webgpu"] as const;

/** One of {@link BUILDS}. */
export type Build = (typeof BUILDS)[number];

/** Whether a build has threads, and so shared memory. */
export const isThreaded = (build: Build): boolean => build.endsWith("-threads");

/**
 * State of the GPU: `ready`, `software` for a software adapter, `insecure` on a page without https, `no-api` without
 * WebGPU, `no-adapter` without a device.
 */
export type Gpu = "ready" | "software" | "insecure" | "no-api" | "no-adapter";

/** Features of the machine, the browser and the package. */
export interface Features {
  readonly host: Environment;
  /** The builds of this package. */
  readonly builds: readonly Build[];
  readonly simd128: boolean;
  readonly relaxed: boolean;
  /** Maximum shared memory in pages of 64 KiB; 0 without threads. */
  readonly sharedMemoryPages: number;
  /** Logical processors. */
  readonly cores: number;
  /** Absent if no GPU was looked for: {@link mayUseGpu}. */
  readonly gpu?: Gpu | undefined;
  /** Name of the GPU. */
  readonly gpuName?: string | undefined;
  /** Maximum size of a GPU buffer. */
  readonly gpuBufferBytes?: number | undefined;
}

/** The requested backend and threads. */
export interface BuildRequest {
  readonly backend: string;
  /** Maximum number of threads. Default: the logical processors, at most {@link DEFAULT_MAX_THREADS}. */
  readonly threads: number | undefined;
}

/** The chosen build with its options. */
export interface BuildChoice {
  readonly build: Build;
  /** The engine's backend: `auto`, `cpu`, `scalar`, `webgpu` or an instruction level. */
  readonly backend: string;
  readonly threads: number;
  /** Workers that may share the weights with the model's own, where there is no shared memory. */
  readonly workers: number;
}

/** Beyond this, the barrier between operations costs more than further threads gain. */
export const DEFAULT_MAX_THREADS = 8;

/** The model's own worker and those that share its weights: each is sent every input of a layer, one after the other. */
export const DEFAULT_MAX_WORKERS = 4;

type Level = "simd128" | "relaxed";

/** Backends that need no GPU. Looking for one would start its driver. */
const CPU_BACKENDS = ["cpu", "wasm", "simd128", "relaxed", "scalar"];

/** Reasons and remedies. */
const NO_GPU: Record<Exclude<Gpu, "ready" | "software">, (host: Environment) => string> = {
  insecure: () => "WebGPU needs a secure page: serve it over https or from localhost",
  "no-api": noWebGpu,
  "no-adapter": noAdapter,
};

/** Whether a backend may use a GPU. */
export function mayUseGpu(backend: string): boolean {
  return !CPU_BACKENDS.includes(backend);
}

/** Why no GPU can run, with a remedy; empty if one can. */
export function whyNoGpu({ host, gpu, builds }: Features): string {
  if (!builds.includes("webgpu")) return noGpuBuild(host);
  return gpu === undefined || gpu === "ready" || gpu === "software" ? "" : NO_GPU[gpu](host);
}

/**
 * Chooses the requested build, or the best one that can run.
 *
 * @throws {SetunError} `backend-unavailable` if the requested backend cannot run here; the message lists those that
 * can.
 */
export function pickBuild(features: Features, { backend, threads }: BuildRequest): BuildChoice {
  const levels = availableLevels(features);
  const isThere = features.gpu === "ready" || features.gpu === "software";
  const hasGpu = isThere && features.simd128 && features.builds.includes("webgpu");
  if (backend === "webgpu" && hasGpu) return { build: "webgpu", backend, threads: 1, workers: 0 };
  const gpu = hasGpu ? ["webgpu"] : [];
  const names = levels.length === 0 ? [] : ["auto", "cpu", "wasm", ...levels, "scalar", ...gpu];
  const level = names.includes(backend)
    ? (levels.find((level) => level === backend) ?? levels.at(-1))
    : undefined;
  if (level === undefined) {
    const found = names.length === 0 ? `none: ${noSimd(features.host)}` : names.join(", ");
    const reason = backend === "webgpu" ? whyNoGpu(features) : "";
    const why = reason === "" ? "" : `: ${reason}`;
    throw new SetunError(
      "backend-unavailable",
      `backend "${backend}" is not available here${why}; available: ${found}`,
    );
  }
  const threaded: Build = `${level}-threads`;
  const canShare = features.sharedMemoryPages > 0 && features.builds.includes(threaded);
  const most = canShare ? DEFAULT_MAX_THREADS : DEFAULT_MAX_WORKERS;
  const requested = threads ?? Math.min(features.cores, most);
  const engine = engineName(backend);
  if (requested > 1 && canShare) return { build: threaded, backend: engine, threads: requested, workers: 0 };
  return { build: level, backend: engine, threads: 1, workers: engine === "scalar" ? 0 : requested - 1 };
}

/** The available instruction levels, the slowest first. */
function availableLevels(features: Features): Level[] {
  const levels: Level[] = ["simd128", "relaxed"];
  return levels.filter((level) => features[level] && features.builds.includes(level));
}

/** The build determines the instruction level. */
function engineName(backend: string): string {
  return backend === "wasm" ? "cpu" : backend;
}
