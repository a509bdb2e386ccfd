/** Checks of the public options, made before any work. */

import { isContextStrategy } from "./context-strategy.js";
import { SetunError } from "./errors.js";
import { isFilterRule } from "./filter.js";
import type { EstimateOptions, GenerateOptions, LoadOptions } from "./options.js";
import { isProcessor } from "./processors.js";
import type { ChatMessage } from "./protocol.js";
import { grammarSource, RESPONSE_FORMATS, type RequestOptions } from "./response-format.js";
import { SAMPLING_STEPS, type SamplingStep } from "./sampling-steps.js";
import type { EngineLimits } from "./wasm.js";

type Check = (value: unknown) => boolean;

/** A check for each option, with the values that it accepts in words. */
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

const LIMIT = [isLimit, "an integer from 1 to 65536"] as const;
const PROBABILITY = [isProbability, "a number from 0 to 1"] as const;
const CUTOFF = [isCutoff, "a number of 0 or more, below 1"] as const;
const NON_NEGATIVE = [within(0), "a number of 0 or more"] as const;
const POSITIVE = [isPositive, "a number above 0"] as const;
const PENALTY = [within(-2, 2), "a number from -2 to 2"] as const;
const BOOLEAN = [isBoolean, "true or false"] as const;
const COUNT = [isCount, "an integer, 0 or more"] as const;
const STRINGS = [areStrings, "an array of non-empty strings"] as const;
const TOKENS = [isArrayOf(isToken), "an array of token ids"] as const;

/** Checks of a generation's options. */
export const GENERATE: Rules<GenerateOptions> = {
  maxTokens: [(value) => isCount(value) && value !== 0, "an integer, 1 or more"],
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
  logitBias: [isLogitBias, "an object of numbers by token id"],
  allowedTokens: TOKENS,
  bannedTokens: TOKENS,
  ban: STRINGS,
  minTokens: COUNT,
  samplingOrder: [isOrder, `an array of distinct steps of ${SAMPLING_STEPS.join(", ")}`],
  processors: [isArrayOf(isProcessor), "an array of module URLs or of {module, options?}"],
  seed: [isSeed, "an integer from 0 to 2^64 - 1, as a bigint beyond 2^53"],
  stop: STRINGS,
  filter: [
    isArrayOf(isFilterRule),
    "an array of {word, wholeWord?, ignoreCase?} with either replace or stop: true",
  ],
  responseFormat: [(value) => grammarSource(value) !== undefined, RESPONSE_FORMATS],
  logprobs: BOOLEAN,
  topLogprobs: COUNT,
  promptLogprobs: BOOLEAN,
  lookahead: [(value) => isCount(value) && (value as number) <= 255, "an integer from 0 to 255"],
  contextStrategy: [
    isContextStrategy,
    `"stop", {type: "truncate_middle", keep, room} or {type: "attention_sinks", sinks, window}`,
  ],
  priority: [
    (value) => Number.isInteger(value) && (value as number) === ((value as number) | 0),
    "an integer from -2147483648 to 2147483647",
  ],
  deadline: [within(0, 2 ** 53), "milliseconds, 0 or more"],
  signal: [isSignal, "an AbortSignal"],
};

const LOAD: Rules<LoadOptions> = {
  onProgress: [(value) => typeof value === "function", "a function"],
  signal: [isSignal, "an AbortSignal"],
  backend: [(value) => typeof value === "string", "a backend name"],
  threads: [
    (value) => isCount(value) && (value as number) >= 1 && (value as number) <= 64,
    "an integer from 1 to 64",
  ],
  draft: [(value) => value !== null && value !== "", "a source that load takes"],
  contexts: LIMIT,
  streams: LIMIT,
  queue: LIMIT,
  worker: BOOLEAN,
  store: BOOLEAN,
  connections: [
    (value) => isCount(value) && (value as number) >= 1 && (value as number) <= 16,
    "an integer from 1 to 16",
  ],
  token: [(value) => typeof value === "string" && /^[\x21-\x7e]+$/.test(value), "a string without spaces"],
  endpoint: [
    (value) => typeof value === "string" && /^https?:\/\/[^/]/.test(value),
    "a URL that begins with https://",
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
 * Checked options for the engine, without those that are `undefined`.
 * The signal stays on the page, and processors are sent separately.
 *
 * @throws {SetunError} `bad-option`
 */
export function engineOptions(options: GenerateOptions): RequestOptions {
  check(options, GENERATE);
  const { signal: _, processors: __, responseFormat, ...rest } = options;
  const grammar = responseFormat && grammarSource(responseFormat);
  const sent = { ...rest, ...(grammar && { grammar }) };
  return Object.fromEntries(Object.entries(sent).filter(([, value]) => value !== undefined));
}

/** Limits of the engine that are set. */
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
    throw new SetunError("bad-option", "messages: expected an array of {role, content}, both strings");
  }
}

/** @throws {SetunError} `bad-option` */
export function checkString(name: string, text: string): void {
  if (typeof text !== "string")
    throw new SetunError("bad-option", `${name}: expected a string, found ${typeof text}`);
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

/** @throws {SetunError} `bad-option` for an unknown option, or a value that its check refuses. */
export function check<Options extends object>(options: Options, rules: Rules<Options>): void {
  if (typeof options !== "object" || options === null) {
    throw new SetunError("bad-option", `options: expected an object, found ${String(options)}`);
  }
  for (const [name, value] of Object.entries(options)) {
    if (!Object.hasOwn(rules, name)) {
      const known = Object.keys(rules).join(", ");
      throw new SetunError("bad-option", `${name}: unknown option; expected one of ${known}`);
    }
    const [accepts, expected] = rules[name as keyof Options];
    if (value !== undefined && !accepts(value)) {
      throw new SetunError("bad-option", `${name}: expected ${expected}, found ${String(value)}`);
    }
  }
}
