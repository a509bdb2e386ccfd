/** Which backends of this device hold a model, before anything of it is downloaded. */

import type { EstimatedBackend } from "setun";
import { size } from "../figures.js";
import { lookForGpu } from "../gpu.js";

/** Whether a model runs here. The memory of a GPU is known only from the model's headers. */
export interface Fit {
  readonly runs: "yes" | "no" | "unknown";
  readonly words: string;
}

/** Memory of this device. */
export interface Device {
  /** Shared memory for threads in bytes; 0 where there are none. */
  readonly threadedBytes: number;
  readonly hasGpu: boolean;
  /** Memory of the whole device, about, where the browser tells it. */
  readonly memoryBytes?: number;
}

/** Address space of WebAssembly. */
const WASM_BYTES = 2 ** 32;

/** The program, the tokenizer and read buffers. */
const PROGRAM_BYTES = 64 << 20;

const PAGE_BYTES = 65_536;

let detected: Promise<Device> | undefined;

/** Looks at this device, once. */
export function detectDevice(): Promise<Device> {
  detected ??= detect();
  return detected;
}

async function detect(): Promise<Device> {
  const gpu = await lookForGpu();
  const hasThreads = crossOriginIsolated && navigator.hardwareConcurrency > 1;
  const { deviceMemory } = navigator as Navigator & { readonly deviceMemory?: number };
  return {
    threadedBytes: hasThreads ? sharedBytes() : 0,
    hasGpu: gpu.isThere && !gpu.isSoftware,
    ...(deviceMemory !== undefined && { memoryBytes: deviceMemory * 2 ** 30 }),
  };
}

/** The largest shared memory that the browser reserves. Phones refuse the larger ones. */
function sharedBytes(): number {
  const sizes = [WASM_BYTES, WASM_BYTES / 2, WASM_BYTES / 4];
  return sizes.find(canReserve) ?? 0;
}

function canReserve(bytes: number): boolean {
  try {
    new WebAssembly.Memory({ initial: 1, maximum: bytes / PAGE_BYTES, shared: true });
    return true;
  } catch {
    return false;
  }
}

/** What this device holds, in a sentence. */
export function limitWords({ threadedBytes, hasGpu, memoryBytes = WASM_BYTES }: Device): string {
  const limit = (bytes: number) => size(Math.min(bytes, memoryBytes) - PROGRAM_BYTES);
  const [most, threaded] = [limit(WASM_BYTES), threadedBytes > 0 ? limit(threadedBytes) : undefined];
  const more = threaded === undefined || threaded === most ? "" : `, with threads ${threaded}`;
  const gpu = hasGpu ? " A GPU may hold a larger one: “Size and memory” tells." : "";
  return `A model runs here if it needs at most ${most} of memory${more}. That is not the size of its file.${gpu}`;
}

/** Whether a model that needs some memory runs here. */
export function fitOf(memory: number, { threadedBytes, hasGpu, memoryBytes = Infinity }: Device): Fit {
  const needed = memory + PROGRAM_BYTES;
  const backends = [
    ...(needed <= threadedBytes ? ["CPU with threads"] : []),
    ...(needed <= WASM_BYTES ? [threadedBytes > 0 ? "CPU without threads" : "CPU"] : []),
  ];
  if (backends.length > 0) {
    if (needed <= memoryBytes) return { runs: "yes", words: `Runs here: ${backends.join(", ")}` };
    const words = `Cannot run here: it needs ${size(needed)}, this device has about ${size(memoryBytes)}`;
    return { runs: "no", words };
  }
  const why = `it needs ${size(needed)}, WebAssembly has at most ${size(WASM_BYTES)}`;
  if (!hasGpu) return { runs: "no", words: `Cannot run here: ${why}, and there is no GPU` };
  const words = `Too large for the CPU: ${why}. Press “Size and memory” to see whether the GPU holds it`;
  return { runs: "unknown", words };
}

const NAMES: Readonly<Record<string, string>> = {
  "relaxed-threads": "CPU with threads",
  "simd128-threads": "CPU with threads",
  relaxed: "CPU without threads",
  simd128: "CPU without threads",
  webgpu: "GPU",
};

/** The same from an estimate, which knows every backend. */
export function estimatedFit(backends: readonly EstimatedBackend[]): Fit {
  const fitting = backends.filter(({ fits }) => fits);
  const names = new Set(fitting.map(({ backend, build }) => NAMES[build ?? backend] ?? backend));
  if (names.size > 0) return { runs: "yes", words: `Runs here: ${[...names].join(", ")}` };
  return { runs: "no", words: `Cannot run here: ${backends[0]?.reason ?? "there is no backend"}` };
}
