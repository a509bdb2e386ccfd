/** What callers may ask for, checked before any work. */

import { SetunError } from "./errors.js";
import type { ChatMessage, LoadProgress } from "./messages.js";
import type { WasmGenerateOptions } from "./wasm.js";

/** Options of {@link load}. Unknown or out-of-range ones throw `bad-option` before any work. */
export interface LoadOptions {
  /** Called as bytes arrive. */
  onProgress?: (progress: LoadProgress) => void;
  /** Aborts, as in `fetch`: the promise rejects with `signal.reason`. */
  signal?: AbortSignal;
  /**
   * What runs the model: `auto` (default), the GPU if it is faster and passes its self-test, else the processor; `cpu`
   * or its other name `wasm`; one level: `simd128`, `relaxed`, `scalar`; or `webgpu`.
   * One that is asked for and cannot run here throws `backend-unavailable`; nothing else is taken instead.
   */
  backend?: string;
  /** Most threads to use, 1 to 64. More than one needs a cross-origin isolated page and a worker. */
  threads?: number;
  /** Whether to run in a module worker: by default in browsers. Node has none. */
  worker?: boolean;
  /**
   * Whether to keep what is downloaded in the browser's store, so that the next `load` needs no network: by default where
   * the browser has one, for addresses and names of hubs. Files and bytes that are given are never kept, nor is anything
   * in Node or without a worker.
   */
  store?: boolean;
  /** Requests at once for what is kept, 1 to 16; 4 unless given. */
  connections?: number;
  /** Proves to the hub who asks. It is sent to the endpoint alone. */
  token?: string;
  /** Address of the hub that names like `hf:owner/name` are of; `https://huggingface.co` unless given. */
  endpoint?: string;
}

/** Options of `models.estimate`, with the meaning that they have for `load`. */
export type EstimateOptions = Pick<LoadOptions, "signal" | "worker" | "store" | "token" | "endpoint">;

/** Options of {@link Model.generate} and {@link Model.chat}. Unknown or out-of-range ones throw `bad-option` before any work. */
export interface GenerateOptions {
  /** Most tokens to produce. Default: what fits the context. */
  maxTokens?: number;
  /** Sampling temperature: 0, which always takes the likeliest token, or 0.000001 and more. Default, as for all sampling: the model's own. */
  temperature?: number;
  /** Sample among this many of the likeliest tokens; 0 means all. */
  topK?: number;
  /** Sample among the fewest tokens whose probabilities reach this sum, 0 to 1; 0 leaves the likeliest alone, 1 means all. */
  topP?: number;
  /** Leave out tokens less likely than this share of the likeliest one, 0 to 1. */
  minP?: number;
  /** Divide (or multiply, if negative) the logits of tokens that occurred; 1 changes nothing. */
  repetitionPenalty?: number;
  /** Seed of the sampler, 0 to 2⁶⁴ − 1. The same seed, prompt and model give the same text, here and natively. Default: random, and reported. */
  seed?: number | bigint;
  /** Texts that end the generation; they are not part of its text. */
  stop?: string[];
  /** Whether to report each token's log-probability. */
  logprobs?: boolean;
  /** Aborts, as in `fetch`: the iteration rejects with `signal.reason`. */
  signal?: AbortSignal;
}

type Check = (value: unknown) => boolean;

/** A rule, and what it expects in words. */
type Rules<Options> = { readonly [Name in keyof Options]-?: readonly [Check, string] };

const isCount: Check = (value) => Number.isSafeInteger(value) && (value as number) >= 0;
const isNumber = (value: unknown): value is number => typeof value === "number" && Number.isFinite(value);
const isSeed: Check = (value) =>
  typeof value === "bigint" ? value >= 0n && value < 1n << 64n : isCount(value);
const isSignal: Check = (value) => value instanceof AbortSignal;

const GENERATE: Rules<GenerateOptions> = {
  maxTokens: [(value) => isCount(value) && value !== 0, "a whole number, 1 or more"],
  temperature: [
    (value) => isNumber(value) && (value === 0 || value >= 1e-6),
    "0, or a number of 0.000001 or more",
  ],
  topK: [isCount, "a whole number, 0 or more"],
  topP: [(value) => isNumber(value) && value >= 0 && value <= 1, "a number from 0 to 1"],
  minP: [(value) => isNumber(value) && value >= 0 && value <= 1, "a number from 0 to 1"],
  repetitionPenalty: [(value) => isNumber(value) && value > 0, "a number above 0"],
  seed: [isSeed, "a whole number from 0 to 2^64 - 1, as a bigint beyond 2^53"],
  stop: [
    (value) => Array.isArray(value) && value.every((text) => typeof text === "string" && text !== ""),
    "an array of texts, none empty",
  ],
  logprobs: [(value) => typeof value === "boolean", "true or false"],
  signal: [isSignal, "an AbortSignal"],
};

const LOAD: Rules<LoadOptions> = {
  onProgress: [(value) => typeof value === "function", "a function"],
  signal: [isSignal, "an AbortSignal"],
  backend: [(value) => typeof value === "string", "the name of a backend"],
  threads: [
    (value) => isCount(value) && (value as number) >= 1 && (value as number) <= 64,
    "a whole number from 1 to 64",
  ],
  worker: [(value) => typeof value === "boolean", "true or false"],
  store: [(value) => typeof value === "boolean", "true or false"],
  connections: [
    (value) => isCount(value) && (value as number) >= 1 && (value as number) <= 16,
    "a whole number from 1 to 16",
  ],
  token: [(value) => typeof value === "string" && /^[\x21-\x7e]+$/.test(value), "a text without spaces"],
  endpoint: [
    (value) => typeof value === "string" && /^https?:\/\/[^/]/.test(value),
    "an address that begins with https://",
  ],
};

/** @throws {SetunError} `bad-option` */
export function checkLoadOptions(options: LoadOptions): void {
  check(options, LOAD);
}

/** @throws {SetunError} `bad-option` */
export function checkEstimateOptions(options: EstimateOptions): void {
  const { signal, worker, store, token, endpoint } = LOAD;
  check(options, { signal, worker, store, token, endpoint });
}

/**
 * The options for the engine: checked, without those left `undefined`, and without the signal, which stays on the page.
 *
 * @throws {SetunError} `bad-option`
 */
export function engineOptions(options: GenerateOptions): WasmGenerateOptions {
  check(options, GENERATE);
  const { signal: _, ...rest } = options;
  return Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined));
}

/** @throws {SetunError} `bad-option` */
export function checkMessages(messages: readonly ChatMessage[]): void {
  const isMessage = (message: unknown) =>
    typeof message === "object" &&
    message !== null &&
    "role" in message &&
    typeof message.role === "string" &&
    "content" in message &&
    typeof message.content === "string";
  if (!Array.isArray(messages) || !messages.every(isMessage)) {
    throw new SetunError("bad-option", "messages: expected an array of {role, content}, both texts");
  }
}

/** @throws {SetunError} `bad-option` */
export function checkText(name: string, text: string): void {
  if (typeof text !== "string")
    throw new SetunError("bad-option", `${name}: expected a text, found ${typeof text}`);
}

function check<Options extends object>(options: Options, rules: Rules<Options>): void {
  if (typeof options !== "object" || options === null) {
    throw new SetunError("bad-option", `options: expected an object, found ${String(options)}`);
  }
  for (const [name, value] of Object.entries(options)) {
    if (!Object.hasOwn(rules, name)) {
      const known = Object.keys(rules).join(", ");
      throw new SetunError("bad-option", `${name}: there is no such option; known: ${known}`);
    }
    const [accepts, expected] = rules[name as keyof Options];
    if (value !== undefined && !accepts(value)) {
      throw new SetunError("bad-option", `${name}: expected ${expected}, found ${String(value)}`);
    }
  }
}
