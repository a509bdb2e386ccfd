/** What callers may ask for, checked before any work. */

import { isContext } from "./context-strategy.js";
import { SetunError } from "./errors.js";
import { type FilterRule, isFilterRule } from "./filter.js";
import { isProcessor, type LogitsProcessorInput } from "./processors.js";
import type { ChatMessage, LoadProgress } from "./protocol.js";
import {
  grammarSource,
  RESPONSE_FORMATS,
  type RequestOptions,
  type ResponseFormat,
} from "./response-format.js";
import { SAMPLING_STEPS, type SamplingStep } from "./sampling-steps.js";
import type { LoadSource } from "./sources.js";
import type { ContextStrategy, EngineLimits } from "./wasm.js";

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
  /**
   * A smaller model of the same vocabulary, from wherever models come and in the same way, which guesses tokens for all
   * generations but those with a `lookahead` of 0. It changes no text. Its weights, and a cache of as many positions as
   * the model's, come on top of the model's memory.
   */
  draft?: LoadSource;
  /** Whole contexts that the cache may grow to, 1 to 65536; 8 unless given. Memory is taken as it is used. */
  contexts?: number;
  /** Most generations that run at once, 1 to 65536; 64 unless given. Others wait. */
  streams?: number;
  /** Most generations that wait, 1 to 65536; 1024 unless given. One more rejects with `busy`. */
  queue?: number;
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
  /** Most tokens to produce. Default: what fits the context; with a `context` that goes on, no end. */
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
  /** Let the temperature move by up to this with the entropy; 0 leaves it fixed. */
  dynamicTemperature?: number;
  /** The exponent of a dynamic temperature, above 0; 1 unless given. */
  dynamicTemperatureExponent?: number;
  /** Keep logits within so many standard deviations of the best; 0 means all. */
  topNSigma?: number;
  /** Sample among the tokens of the most typical information whose probabilities reach this sum, 0 to 1. */
  typicalP?: number;
  /** Leave out tokens below this probability. */
  epsilonCutoff?: number;
  /** Leave out tokens below a probability that is lower where the entropy is high. */
  etaCutoff?: number;
  /** How often the likeliest tokens but the last of them are left out (XTC), 0 to 1. */
  xtcProbability?: number;
  /** The probability that counts as likely there, 0 to 0.5; 0.1 unless given. */
  xtcThreshold?: number;
  /** Steer towards this surprise a token, in bits (mirostat 2); 0 means not to. */
  mirostatTau?: number;
  /** How fast mirostat follows; 0.1 unless given. */
  mirostatEta?: number;
  /** Taken from a token's logit for each time that it was generated, -2 to 2. The prompt does not count. */
  frequencyPenalty?: number;
  /** Taken once from the logits of tokens that were generated, -2 to 2. The prompt does not count. */
  presencePenalty?: number;
  /** No run of so many tokens comes twice, prompt included; 0 means any may. */
  noRepeatNgram?: number;
  /** Taken from the logits of tokens that would prolong a repetition, prompt included (DRY); 0 means nothing. */
  dryMultiplier?: number;
  /** By how much a longer repetition costs more there, 1 or more; 1.75 unless given. */
  dryBase?: number;
  /** The length of a repetition, in tokens, that costs the multiplier alone; 2 unless given. */
  dryAllowedLength?: number;
  /** Tokens that DRY looks back; 0, as unless given, means all. */
  dryRange?: number;
  /** Texts that end repetitions for DRY; a line break, `:`, `"` and `*` unless given. */
  dryBreakers?: string[];
  /** What is added to the logits of tokens, by their ids. */
  logitBias?: Record<number, number>;
  /** The ids of the tokens that may come; all unless given. */
  allowedTokens?: number[];
  /** The ids of tokens that may not come. */
  bannedTokens?: number[];
  /** Texts that may not come, in the tokens that the tokenizer gives them at the beginning of a text and after a space. */
  ban?: string[];
  /** Tokens to produce before the text may end by itself; stop texts end it all the same. */
  minTokens?: number;
  /**
   * The last steps of sampling, each at most once. Those left out come before, in the order of Hugging Face's
   * `generate`, which is that of {@link SAMPLING_STEPS}.
   */
  samplingOrder?: SamplingStep[];
  /** Steps of one's own, one after the other: modules that the model's worker loads, each once. */
  processors?: readonly LogitsProcessorInput[];
  /** Seed of the sampler, 0 to 2⁶⁴ − 1. The same seed, prompt and model give the same text, here and natively. Default: random, and reported. */
  seed?: number | bigint;
  /** Texts that end the generation; they are not part of its text. */
  stop?: string[];
  /**
   * Words that the text is not to show, found behind the `stop` texts: each is replaced, or ends the text. Nothing of one is
   * ever shown; of those that begin at one place the first counts. Tokens are not filtered.
   */
  filter?: FilterRule[];
  /** The form that the text is to have, if it ends by itself: a JSON schema, a grammar, one of several texts. */
  form?: ResponseFormat;
  /** Whether to report each token's log-probability. */
  logprobs?: boolean;
  /** How many of the likeliest tokens to report with each token, with their log-probabilities; 0, as unless given, means none. */
  topLogprobs?: number;
  /** Whether to report the prompt's tokens with their log-probabilities: `prompt` of the generation. They are computed anew. */
  echo?: boolean;
  /**
   * Most tokens to guess at once, 0 to 255: from what followed the same words earlier, which is faster where a text repeats
   * itself, or by the model's `draft`. Never another text. 0 guesses none, as unless given where there is no draft; 12 is a
   * good number, and with a draft the default.
   */
  lookahead?: number;
  /**
   * What becomes of a text that fills the context, or a prompt that does not fit: `"stop"`, as unless given, ends the one
   * and refuses the other; `{ keep, room }` cuts tokens out of the middle, all but the first `keep`, so that there is room
   * for `room` more; `{ sinks, window }` keeps the first `sinks` tokens and the last `window`.
   */
  context?: ContextStrategy;
  /** Those of a higher priority start first, and keep their memory longer; 0 unless given. From -2147483648 to 2147483647. */
  priority?: number;
  /** Milliseconds from the call on, after which the generation ends with what it has, and `finishReason: "deadline"`. */
  deadline?: number;
  /** Aborts, as in `fetch`: the iteration rejects with `signal.reason`. */
  signal?: AbortSignal;
}

type Check = (value: unknown) => boolean;

/** A rule, and what it expects in words. */
export type Rules<Options> = { readonly [Name in keyof Options]-?: readonly [Check, string] };

const isCount: Check = (value) => Number.isSafeInteger(value) && (value as number) >= 0;
const isNumber = (value: unknown): value is number => typeof value === "number" && Number.isFinite(value);
const isSeed: Check = (value) =>
  typeof value === "bigint" ? value >= 0n && value < 1n << 64n : isCount(value);
const within =
  (min: number, max = Number.MAX_VALUE): Check =>
  (value) =>
    isNumber(value) && value >= min && value <= max;
const isProbability = within(0, 1);
const isCutoff: Check = (value) => isNumber(value) && value >= 0 && value < 1;
const isPositive: Check = (value) => isNumber(value) && value > 0;
const isToken: Check = (value) => isCount(value) && (value as number) < 2 ** 32;
const isArrayOf =
  (accepts: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(accepts);
const areStrings = isArrayOf((text) => typeof text === "string" && text !== "");
const isLogitBias: Check = (value) =>
  typeof value === "object" &&
  value !== null &&
  !Array.isArray(value) &&
  Object.entries(value).every(
    ([token, bias]) => /^\d+$/.test(token) && isToken(Number(token)) && isNumber(bias),
  );
const isOrder: Check = (value) =>
  isArrayOf((step) => SAMPLING_STEPS.includes(step as SamplingStep))(value) &&
  new Set(value as unknown[]).size === (value as unknown[]).length;
const isBoolean: Check = (value) => typeof value === "boolean";
const isSignal: Check = (value) => value instanceof AbortSignal;

const isLimit: Check = (value) => isCount(value) && (value as number) >= 1 && (value as number) <= 65536;

const LIMIT = [isLimit, "a whole number from 1 to 65536"] as const;
const PROBABILITY = [isProbability, "a number from 0 to 1"] as const;
const CUTOFF = [isCutoff, "a number of 0 or more, below 1"] as const;
const NON_NEGATIVE = [within(0), "a number of 0 or more"] as const;
const POSITIVE = [isPositive, "a number above 0"] as const;
const PENALTY = [within(-2, 2), "a number from -2 to 2"] as const;
const BOOLEAN = [isBoolean, "true or false"] as const;
const COUNT = [isCount, "a whole number, 0 or more"] as const;
const STRINGS = [areStrings, "an array of texts, none empty"] as const;
const TOKENS = [isArrayOf(isToken), "an array of ids of tokens"] as const;

/** Those of a generation. */
export const GENERATE: Rules<GenerateOptions> = {
  maxTokens: [(value) => isCount(value) && value !== 0, "a whole number, 1 or more"],
  temperature: [
    (value) => isNumber(value) && (value === 0 || value >= 1e-6),
    "0, or a number of 0.000001 or more",
  ],
  topK: COUNT,
  topP: PROBABILITY,
  minP: PROBABILITY,
  repetitionPenalty: POSITIVE,
  dynamicTemperature: NON_NEGATIVE,
  dynamicTemperatureExponent: POSITIVE,
  topNSigma: NON_NEGATIVE,
  typicalP: PROBABILITY,
  epsilonCutoff: CUTOFF,
  etaCutoff: CUTOFF,
  xtcProbability: PROBABILITY,
  xtcThreshold: [within(0, 0.5), "a number from 0 to 0.5"],
  mirostatTau: NON_NEGATIVE,
  mirostatEta: NON_NEGATIVE,
  frequencyPenalty: PENALTY,
  presencePenalty: PENALTY,
  noRepeatNgram: COUNT,
  dryMultiplier: NON_NEGATIVE,
  dryBase: [within(1), "a number of 1 or more"],
  dryAllowedLength: COUNT,
  dryRange: COUNT,
  dryBreakers: STRINGS,
  logitBias: [isLogitBias, "an object of numbers by the ids of tokens"],
  allowedTokens: TOKENS,
  bannedTokens: TOKENS,
  ban: STRINGS,
  minTokens: COUNT,
  samplingOrder: [isOrder, `an array of steps, none twice, of ${SAMPLING_STEPS.join(", ")}`],
  processors: [isArrayOf(isProcessor), "an array of addresses of modules, or of {module, options?}"],
  seed: [isSeed, "a whole number from 0 to 2^64 - 1, as a bigint beyond 2^53"],
  stop: STRINGS,
  filter: [
    isArrayOf(isFilterRule),
    "an array of {word, wholeWord?, ignoreCase?} with either replace or stop: true",
  ],
  form: [(value) => grammarSource(value) !== undefined, RESPONSE_FORMATS],
  logprobs: BOOLEAN,
  topLogprobs: COUNT,
  echo: BOOLEAN,
  lookahead: [(value) => isCount(value) && (value as number) <= 255, "a whole number from 0 to 255"],
  context: [isContext, `"stop", or counts {keep, room} or {sinks, window}, the second 1 or more`],
  priority: [
    (value) => Number.isInteger(value) && (value as number) === ((value as number) | 0),
    "a whole number from -2147483648 to 2147483647",
  ],
  deadline: [within(0, 2 ** 53), "milliseconds, 0 or more"],
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
  draft: [(value) => value !== null && value !== "", "whatever a model is loaded from"],
  contexts: LIMIT,
  streams: LIMIT,
  queue: LIMIT,
  worker: BOOLEAN,
  store: BOOLEAN,
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
 * The options for the engine: checked, without those left `undefined`, and without the signal, which stays on the page, and
 * processors, which go another way.
 *
 * @throws {SetunError} `bad-option`
 */
export function engineOptions(options: GenerateOptions): RequestOptions {
  check(options, GENERATE);
  const { signal: _, processors: __, ...rest } = options;
  const form = grammarSource(options.form);
  return Object.fromEntries(Object.entries({ ...rest, form }).filter(([, value]) => value !== undefined));
}

/** What an engine is told of how much it does at once. */
export function engineLimits({ contexts, streams, queue }: LoadOptions): EngineLimits {
  return {
    ...(contexts !== undefined && { contexts }),
    ...(streams !== undefined && { streams }),
    ...(queue !== undefined && { queue }),
  };
}

/** @throws {SetunError} `bad-option` */
export function checkCount(count: number): void {
  if (isLimit(count)) return;
  throw new SetunError("bad-option", `count: expected ${LIMIT[1]}, found ${String(count)}`);
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
export function checkString(name: string, text: string): void {
  if (typeof text !== "string")
    throw new SetunError("bad-option", `${name}: expected a text, found ${typeof text}`);
}

/** @throws {SetunError} `bad-option` */
export function checkStrings(name: string, texts: readonly string[]): void {
  if (areStrings(texts)) return;
  throw new SetunError("bad-option", `${name}: expected ${STRINGS[1]}, found ${String(texts)}`);
}

/** @throws {SetunError} `bad-option` */
export function checkBytes(bytes: Uint8Array): void {
  if (bytes instanceof Uint8Array) return;
  throw new SetunError("bad-option", `bytes: expected a Uint8Array, found ${typeof bytes}`);
}

/** @throws {SetunError} `bad-option` */
export function checkTokens(tokens: readonly unknown[], vocabulary: number): void {
  const wrong = tokens.find((token) => !isCount(token) || (token as number) >= vocabulary);
  if (wrong === undefined) return;
  throw new SetunError("bad-option", `tokens: expected ids below ${vocabulary}, found ${String(wrong)}`);
}

/** @throws {SetunError} `bad-option` for what there is no rule for, or breaks its rule. */
export function check<Options extends object>(options: Options, rules: Rules<Options>): void {
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
