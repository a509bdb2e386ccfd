/** Whether a GPU or the processor runs a model, where the caller leaves that open. */

import { type BuildChoice, type Features, whyNoGpu } from "./pick-build.js";
import type { DeviceReport, DeviceVerdict } from "./wasm.js";

/** How much faster relaxed SIMD generates than SIMD128, thread by thread: `docs/performance.md`. */
const RELAXED_GAIN = 1.6;

const FASTEST = "the fastest for this model";
const SLOWER = "slower for this model";

/** What was found out of a GPU, and what follows. */
export interface DeviceDecision {
  /** Whether it is to run. */
  readonly takesGpu: boolean;
  readonly gpu: DeviceVerdict;
  /** Microseconds that the processor would take for a layer, where that is known. */
  readonly cpuMicroseconds?: number;
}

/** What there is to say of the GPU before any build is fetched for it; `undefined` if it is to be probed. */
export function gpuUnavailable(features: Features): DeviceDecision | undefined {
  if (features.gpu === "software") {
    return refused("software", "a processor that plays a GPU", features.gpuName);
  }
  const reason = whyNoGpu(features);
  return reason === "" ? undefined : refused("absent", reason);
}

/** A GPU that is there and has failed. */
export function gpuFailed(features: Features, thrown: unknown): DeviceDecision {
  const reason = thrown instanceof Error ? thrown.message : String(thrown);
  return refused("failed", reason, features.gpuName);
}

/**
 * Judges what the GPU's build has measured: itself, and the processor by one thread of SIMD128. The GPU has to be faster
 * than the build for the processor that would run instead.
 */
export function decideDevice({ devices }: DeviceReport, cpu: BuildChoice): DeviceDecision {
  const gpu = devices.find(({ device }) => device === "webgpu");
  if (gpu === undefined) return refused("absent", "its build found none");
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

/** The report where the GPU runs. */
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

/** The report where the processor runs: the engine knows of no GPU. */
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

/** How much faster a build for the processor is than one thread of SIMD128. */
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
