/** Choice between GPU and CPU for the backend `auto`. */

import { remedy } from "./environment.js";
import { type BuildChoice, type Features, whyNoGpu } from "./pick-build.js";
import type { DeviceReport, DeviceVerdict } from "./wasm.js";

/** Speed of relaxed SIMD relative to SIMD128, per thread: `docs/performance.md`. */
const RELAXED_GAIN = 1.6;

const FASTEST = "the fastest for this model";
const SLOWER = "slower for this model";

/** A decision about the GPU. */
export interface DeviceDecision {
  /** Whether the GPU runs the model. */
  readonly takesGpu: boolean;
  readonly gpu: DeviceVerdict;
  /** Estimated microseconds per layer on the CPU, if measured. */
  readonly cpuMicroseconds?: number;
}

/** The decision before a build is fetched for the GPU; `undefined` if the GPU has to be probed. */
export function gpuUnavailable(features: Features): DeviceDecision | undefined {
  if (features.gpu === "software") {
    return refused("software", "a software adapter", features.gpuName);
  }
  const reason = whyNoGpu(features);
  return reason === "" ? undefined : refused("absent", reason);
}

/** The decision after a failure of the GPU. */
export function gpuFailed(features: Features, thrown: unknown): DeviceDecision {
  const reason = thrown instanceof Error ? thrown.message : String(thrown);
  return refused("failed", reason, features.gpuName);
}

/**
 * The decision from the measurements of the GPU build: the GPU, and one CPU thread of SIMD128.
 * The GPU must be faster than the CPU build that would run instead.
 */
export function decideDevice({ devices }: DeviceReport, cpu: BuildChoice): DeviceDecision {
  const gpu = devices.find(({ device }) => device === "webgpu");
  if (gpu === undefined) return refused("absent", "the WebGPU build found no device");
  const gpuTime = gpu.layerMicroseconds;
  const oneThread = devices.find(({ device }) => device === "cpu")?.layerMicroseconds;
  if (gpuTime === undefined || oneThread === undefined) return { takesGpu: gpu.verdict === "chosen", gpu };
  const cpuMicroseconds = oneThread / gain(cpu);
  const takesGpu = gpuTime < cpuMicroseconds;
  const verdict = takesGpu
    ? ({ verdict: "chosen", reason: FASTEST } as const)
    : ({ verdict: "slower", reason: SLOWER } as const);
  return { takesGpu, gpu: { ...gpu, ...verdict }, cpuMicroseconds };
}

/** The report if the GPU runs. */
export function reportGpu({ gpu, cpuMicroseconds }: DeviceDecision, cpu: BuildChoice): DeviceReport {
  if (cpuMicroseconds === undefined) return { devices: [gpu] };
  const level = cpu.build.replace("-threads", "");
  const reason = `${SLOWER}: ${estimate(cpu)}`;
  const processor = {
    device: "cpu",
    level,
    verdict: "slower",
    reason,
    layerMicroseconds: cpuMicroseconds,
  } as const;
  return { devices: [gpu, processor] };
}

/** The report if the CPU runs. The engine's own report lacks the GPU. */
export function reportCpu(
  engine: DeviceReport,
  { gpu, cpuMicroseconds }: DeviceDecision,
  cpu: BuildChoice,
): DeviceReport {
  if (cpuMicroseconds === undefined) return { devices: [...engine.devices, gpu] };
  const measured = { reason: `${FASTEST}: ${estimate(cpu)}`, layerMicroseconds: cpuMicroseconds };
  const devices = engine.devices.map((found) =>
    found.verdict === "chosen" ? { ...found, ...measured } : found,
  );
  return { devices: [...devices, gpu] };
}

/** The report of a CPU, with the reason and a remedy if it has one thread and more would run. */
export function explainThreads(
  report: DeviceReport,
  { host, cores, sharedMemoryPages }: Features,
  runs: number,
  { inWorker, threads = cores }: { readonly inWorker: boolean; readonly threads: number | undefined },
): DeviceReport {
  if (host === "node" || threads < 2 || runs > 1 || sharedMemoryPages > 0) return report;
  const why = inWorker || host === "service-worker" ? remedy("isolation", host) : "threads need a worker";
  const explained = (found: DeviceVerdict): DeviceVerdict =>
    found.verdict === "chosen" ? { ...found, reason: `${found.reason}; on one thread: ${why}` } : found;
  return { devices: report.devices.map(explained) };
}

/** Speed of a CPU build relative to one thread of SIMD128. */
function gain({ build, threads }: BuildChoice): number {
  return threads * (build.startsWith("relaxed") ? RELAXED_GAIN : 1);
}

function estimate({ threads }: BuildChoice): string {
  const measured = "its time is estimated from one thread of SIMD128";
  return threads === 1 ? measured : `with ${threads} threads; ${measured}`;
}

function refused(verdict: DeviceVerdict["verdict"], reason: string, level = ""): DeviceDecision {
  return { takesGpu: false, gpu: { device: "webgpu", level, verdict, reason } };
}
