/** Checks which builds can run a model: a pure function of its memory and of the browser's limits. */

import { hostName, noSimd, remedy } from "./environment.js";
import { SetunError } from "./errors.js";
import { BUILDS, type Build, type Features, isThreaded, whyNoGpu } from "./pick-build.js";
import type { HeadType, WasmLoader } from "./wasm.js";

/** Memory of a model on a device, in bytes. */
export interface EstimatedMemory {
  /** Weights in the format of the device. */
  readonly weights: number;
  /** KV cache of one whole context. It grows with the texts. */
  readonly cache: number;
  /** Recurrent state of one text, whatever its length; 0 for a model without. */
  readonly state: number;
  /** Buffers of steps, at the size for long prompts. */
  readonly steps: number;
  /** Peak of all memory. */
  readonly total: number;
  /** The largest weight, which is in memory twice while it is loaded. */
  readonly largestWeight: number;
  /** The largest buffer; on a GPU the largest that cannot be split. */
  readonly largestBuffer: number;
}

/** Memory with its context length in tokens. */
export interface DeviceMemory extends EstimatedMemory {
  readonly context: number;
}

/** Memory on the CPU with each kind of head. */
export type HeadMemories = Readonly<Record<HeadType, DeviceMemory>>;

/** Memory on each kind of device. */
export interface DeviceMemories {
  readonly processor: HeadMemories;
  /** `undefined` if only processors compute the model. */
  readonly gpu: DeviceMemory | undefined;
}

/** Memory limits of a browser. */
export interface Limits {
  /** Whether the model runs in a worker. */
  readonly inWorker: boolean;
  /** Maximum size of a GPU buffer. */
  readonly gpuBufferBytes: number | undefined;
}

/** Whether a build can run a model. */
interface BackendFit {
  readonly backend: string;
  readonly build: Build;
  readonly fits: boolean;
  readonly reason: string;
}

const PAGE_BYTES = 65_536;

/** Address space of WebAssembly. A browser may grant less, as phones do, which shows only when it is requested. */
const WASM_PAGES = 65_536;

const WASM_BYTES = WASM_PAGES * PAGE_BYTES;

/** The program, the tokenizer and read buffers. */
const PROGRAM_BYTES = 64 << 20;

/** Checks all builds of the package, the best for the CPU first. `given` is the option `headType`. */
export function checkBackends(
  { processor, gpu }: DeviceMemories,
  features: Features,
  limits: Limits,
  given?: HeadType,
): BackendFit[] {
  const best: readonly Build[] = ["relaxed-threads", "simd128-threads", "relaxed", "simd128"];
  const order = [...best, ...BUILDS.filter((build) => !best.includes(build))];
  return order
    .filter((build) => features.builds.includes(build))
    .map((build) => {
      if (build === "webgpu")
        return { backend: "webgpu", build, ...checkGpu(gpu, features, limits.gpuBufferBytes) };
      const backend = build.replace("-threads", "");
      return { backend, build, ...checkProcessor(build, processor, features, limits, given) };
    });
}

/**
 * The head that a load takes. A screen is left out where the memory of WebAssembly has no room for it: the texts are the
 * same, and a step takes longer.
 */
export function headOf(
  memoryOf: (head: HeadType) => Pick<EstimatedMemory, "weights" | "steps">,
  given: HeadType = "auto",
  maxBytes = WASM_BYTES,
): HeadType {
  if (given !== "auto") return given;
  const [auto, stored] = [memoryOf("auto"), memoryOf("stored")];
  const isTight = auto.weights + auto.steps + PROGRAM_BYTES > maxBytes;
  return isTight && stored.weights < auto.weights ? "stored" : "auto";
}

/** A sentence about a head that was taken for its size; `undefined` if it is the one that was asked for. */
export function headWarning(head: HeadType, given: HeadType = "auto"): string | undefined {
  if (head === given) return undefined;
  return (
    "the head is kept without its screen, for which WebAssembly has no room: steps take longer, texts are the same; " +
    'headType: "int8" needs less memory, and has slightly other logits'
  );
}

/**
 * The head that a load takes. Refuses weights that the memory of WebAssembly can never have, before they are read.
 *
 * @throws {SetunError} `out-of-memory`
 */
export function refuseTooLarge(
  name: string,
  loader: Pick<WasmLoader, "estimate">,
  memoryPages = WASM_PAGES,
  given?: HeadType,
): HeadType {
  const maxBytes = memoryPages * PAGE_BYTES;
  const memoryOf = (head: HeadType) => {
    const [, weights = 0, , steps = 0] = loader.estimate(false, head);
    return { weights, steps };
  };
  const head = headOf(memoryOf, given, maxBytes);
  const found = whyTooLarge(memoryOf(head).weights, maxBytes);
  if (found === undefined) return head;
  const { weights } = memoryOf("int8");
  const advice =
    head !== "int8" && weights <= maxBytes ? `headType: "int8" needs ${formatBytes(weights)}; ` : "";
  throw new SetunError("out-of-memory", `${name}: its weights ${found}; ${advice}${remedy("size")}`);
}

/** Why bytes do not fit in memory, with `need` or `needs`; `undefined` if they do. */
function whyTooLarge(bytes: number, maxBytes: number, need = "need"): string | undefined {
  if (bytes <= maxBytes) return undefined;
  return `${need} ${formatBytes(bytes)}, but at most ${formatBytes(maxBytes)} are available`;
}

type Fit = Pick<BackendFit, "fits" | "reason">;

function checkProcessor(
  build: Build,
  memories: HeadMemories,
  features: Features,
  limits: Limits,
  given: HeadType | undefined,
): Fit {
  const why = whyNoProcessor(build, features, limits);
  if (why !== undefined) return { fits: false, reason: why };
  const maxBytes = isThreaded(build) ? features.sharedMemoryPages * PAGE_BYTES : WASM_BYTES;
  const head = headOf((type) => memories[type], given, maxBytes);
  const memory = memories[head];
  const withHead = head === (given ?? "auto") ? "" : `, with headType: "${head}"`;
  const bytes = memory.total + PROGRAM_BYTES;
  if (bytes <= maxBytes)
    return {
      fits: true,
      reason: `needs ${formatBytes(bytes)} of at most ${formatBytes(maxBytes)}${withHead}`,
    };
  const tokens = tokensThatFit(memory, maxBytes);
  if (tokens > 0) {
    const reason = `needs ${formatBytes(leastBytes(memory))} of at most ${formatBytes(maxBytes)}${withHead}`;
    return { fits: true, reason: `${reason}, which leaves room for ${tokens} of ${memory.context} tokens` };
  }
  const reason = whyTooLarge(leastBytes(memory), maxBytes, "needs") ?? "has no room for a text";
  const isLess = head !== "int8" && tokensThatFit(memories.int8, maxBytes) > 0;
  const advice = isLess ? `; headType: "int8" needs ${formatBytes(leastBytes(memories.int8))}` : "";
  return { fits: false, reason: reason + withHead + advice };
}

/** Bytes without a KV cache, which grows with the texts. */
function leastBytes({ weights, state, steps }: EstimatedMemory): number {
  return weights + state + steps + PROGRAM_BYTES;
}

/** Tokens of a text for which there is room. */
function tokensThatFit(memory: DeviceMemory, maxBytes: number): number {
  const room = maxBytes - leastBytes(memory);
  const bytesOfToken = memory.cache / memory.context;
  return room <= 0 ? 0 : Math.min(memory.context, Math.floor(room / bytesOfToken));
}

function whyNoProcessor(build: Build, features: Features, { inWorker }: Limits): string | undefined {
  const { host } = features;
  if (!features.simd128) return noSimd(host);
  if (build.startsWith("relaxed") && !features.relaxed) return `${hostName(host)} has no relaxed SIMD`;
  if (!isThreaded(build)) return undefined;
  if (!inWorker && (host === "page" || host === "worker")) return "threads need a worker";
  if (features.cores < 2) return "there is one logical processor";
  return inWorker && features.sharedMemoryPages > 0 ? undefined : remedy("isolation", host);
}

/** Browsers report limits of buffers, but not the memory of a GPU. */
function checkGpu(
  memory: EstimatedMemory | undefined,
  features: Features,
  maxBufferBytes: number | undefined,
): Fit {
  if (memory === undefined) return { fits: false, reason: "GPUs do not compute recurrent layers yet" };
  const why = features.simd128 ? whyNoGpu(features) : noSimd(features.host);
  if (why !== "" || maxBufferBytes === undefined)
    return { fits: false, reason: why || "no GPU was looked for" };
  const host = 2 * memory.largestWeight + PROGRAM_BYTES;
  if (host > WASM_BYTES) {
    return {
      fits: false,
      reason: `its largest weight, ${formatBytes(memory.largestWeight)}, cannot be loaded`,
    };
  }
  const buffer = `${formatBytes(memory.largestBuffer)} in one buffer, of at most ${formatBytes(maxBufferBytes)}`;
  if (memory.largestBuffer > maxBufferBytes) return { fits: false, reason: `needs ${buffer}` };
  const all = `needs ${formatBytes(memory.total)} of GPU memory, which browsers do not report, and ${buffer}`;
  const note = features.gpu === "software" ? '; a software adapter, used only with backend: "webgpu"' : "";
  return { fits: true, reason: all + note };
}

function formatBytes(bytes: number): string {
  if (bytes >= 1e9) return `${(bytes / 1e9).toFixed(2)} GB`;
  return `${(bytes / 1e6).toFixed(bytes >= 1e7 ? 0 : 1)} MB`;
}
