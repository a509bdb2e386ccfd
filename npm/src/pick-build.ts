/** Which WebAssembly build to fetch, and what to ask of it: one pure function of what the browser can do. */

import { SetunError } from "./errors.js";

/** The WebAssembly builds of the package. */
export const BUILDS = ["simd128", "relaxed", "simd128-threads", "relaxed-threads", "webgpu"] as const;

/** One of {@link BUILDS}. */
export type Build = (typeof BUILDS)[number];

/**
 * Whether there is a GPU: `software` where a processor plays it, `no-api` where the browser has no WebGPU, `no-adapter`
 * where it has no device for it.
 */
export type Gpu = "ready" | "software" | "no-api" | "no-adapter";

/** What the machine, the browser and the package offer. */
export interface Features {
  /** The builds this package contains. */
  readonly builds: readonly Build[];
  readonly simd128: boolean;
  readonly relaxed: boolean;
  /** Largest shared memory to be had, in pages of 64 KiB; 0 where threads cannot run. */
  readonly sharedMemoryPages: number;
  /** Logical processors. */
  readonly cores: number;
  /** Absent where no GPU can run, or where nobody asks for one: {@link mayUseGpu}. */
  readonly gpu?: Gpu | undefined;
  /** The GPU, as the browser names it. */
  readonly gpuName?: string | undefined;
  /** Most bytes of a buffer that it lets a program have. */
  readonly gpuBufferBytes?: number | undefined;
}

/** What the caller of `load` asks for. */
export interface BuildRequest {
  readonly backend: string;
  /** Most threads to use; by default as many as there are processors, up to {@link DEFAULT_MAX_THREADS}. */
  readonly threads: number | undefined;
}

/** What to fetch, and what to ask of it. */
export interface BuildChoice {
  readonly build: Build;
  /** The name the engine is told: `auto`, `cpu`, `scalar`, `webgpu`, or the level that was forced. */
  readonly backend: string;
  readonly threads: number;
}

/** More threads than this are used only on request: the barrier between operations costs more than they bring. */
export const DEFAULT_MAX_THREADS = 8;

type Level = "simd128" | "relaxed";

/** Backends that need no look for a GPU, which would wake its driver. */
const CPU_BACKENDS = ["cpu", "wasm", "simd128", "relaxed", "scalar"];

/** What is wrong, and what to do about it. */
const NO_GPU: Record<Exclude<Gpu, "ready" | "software">, string> = {
  "no-api":
    "this browser has no WebGPU, or has it on secure pages alone (https, localhost); take a current browser",
  "no-adapter":
    "this browser finds no GPU for WebGPU; turn on graphics acceleration in its settings, or update the driver",
};

/** Whether a backend may turn out to be a GPU. */
export function mayUseGpu(backend: string): boolean {
  return !CPU_BACKENDS.includes(backend);
}

/** Why no GPU runs, with what to do about it; empty where one can. */
export function whyNoGpu({ gpu, builds }: Features): string {
  if (!builds.includes("webgpu")) return "this package is without its build";
  return gpu === "no-api" || gpu === "no-adapter" ? NO_GPU[gpu] : "";
}

/**
 * Chooses the best build that can run, or the one that was asked for.
 *
 * @throws {SetunError} `backend-unavailable` if the backend asked for cannot run here; it names those that can.
 */
export function pickBuild(features: Features, { backend, threads }: BuildRequest): BuildChoice {
  const levels = availableLevels(features);
  const isThere = features.gpu === "ready" || features.gpu === "software";
  const hasGpu = isThere && features.simd128 && features.builds.includes("webgpu");
  if (backend === "webgpu" && hasGpu) return { build: "webgpu", backend, threads: 1 };
  const gpu = hasGpu ? ["webgpu"] : [];
  const names = levels.length === 0 ? [] : ["auto", "cpu", "wasm", ...levels, "scalar", ...gpu];
  const level = names.includes(backend)
    ? (levels.find((level) => level === backend) ?? levels.at(-1))
    : undefined;
  if (level === undefined) {
    const found = names.length === 0 ? "none: this browser has no WebAssembly SIMD" : names.join(", ");
    const reason = backend === "webgpu" ? whyNoGpu(features) : "";
    const why = reason === "" ? "" : `: ${reason}`;
    throw new SetunError(
      "backend-unavailable",
      `backend "${backend}" is not available here${why}; available: ${found}`,
    );
  }
  const threaded: Build = `${level}-threads`;
  const wanted = threads ?? Math.min(features.cores, DEFAULT_MAX_THREADS);
  const canShare = features.sharedMemoryPages > 0 && features.builds.includes(threaded);
  const build = wanted > 1 && canShare ? threaded : level;
  return { build, backend: engineName(backend), threads: build === threaded ? wanted : 1 };
}

/** The levels that this browser can run and this package has, worst first. */
function availableLevels(features: Features): Level[] {
  const levels: Level[] = ["simd128", "relaxed"];
  return levels.filter((level) => features[level] && features.builds.includes(level));
}

/** The build decides the level. */
function engineName(backend: string): string {
  return backend === "wasm" ? "cpu" : backend;
}
