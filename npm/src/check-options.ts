/** Checks of the public options, made before any work. */

import { type EngineLimits, LIMITS } from "./engine-limits.js";
import { SetunError } from "./errors.js";
import type { GenerateOptions } from "./generate-options.js";
import { GENERATE, SPECULATIVE } from "./generate-rules.js";
import {
  areStrings,
  integer,
  isBoolean,
  isFunction,
  isObject,
  isSignal,
  isStringOrStrings,
  isToken,
  type Rules,
} from "./option-checks.js";
import type { EstimateOptions, LoadOptions } from "./options.js";
import type { ChatMessage } from "./protocol.js";
import { grammarSource, type RequestOptions } from "./response-format.js";
import { nearestName, shown } from "./shown.js";
import { sentTools } from "./tools.js";

const isCount = integer(1, 65536);
const BOOLEAN = [isBoolean, "true or false"] as const;

/** Whether a text is a relative or absolute http or https address. */
const isFolder = (value: unknown): boolean => {
  if (typeof value !== "string" || value === "") return false;
  try {
    return !["blob:", "data:", "javascript:"].includes(new URL(value, "https://localhost/").protocol);
  } catch {
    return false;
  }
};

export const LOAD: Rules<LoadOptions> = {
  onProgress: [isFunction, "a function"],
  signal: [isSignal, "an AbortSignal"],
  backend: [(value) => typeof value === "string", "a backend name"],
  threads: [integer(1, 64), "an integer from 1 to 64"],
  speculative: [isObject, "an object with draft"],
  ...LIMITS,
  worker: BOOLEAN,
  shared: BOOLEAN,
  resume: BOOLEAN,
  store: BOOLEAN,
  verify: BOOLEAN,
  crossOriginStorage: BOOLEAN,
  connections: [integer(1, 16), "an integer from 1 to 16"],
  assetsUrl: [isFolder, "the URL of a folder"],
  pretokenizer: [(value) => typeof value === "string" && value !== "", "a name of a pre-tokenizer"],
  token: [(value) => typeof value === "string" && /^[\x21-\x7e]+$/.test(value), "a string without spaces"],
  endpoint: [
    (value) => typeof value === "string" && /^https?:\/\/[^/]/.test(value),
    "a URL that begins with https://",
  ],
};

const LOAD_SPECULATIVE: Rules<Required<LoadOptions>["speculative"]> = {
  draft: [(value) => value !== null && value !== "", "a source that load takes"],
};

/** @throws {SetunError} `bad-option` */
export function checkLoadOptions(options: LoadOptions): void {
  check(options, LOAD);
  check(options.speculative ?? {}, LOAD_SPECULATIVE, "speculative.");
}

/** @throws {SetunError} `bad-option` */
export function checkEstimateOptions(options: EstimateOptions): void {
  const { signal, worker, store, token, endpoint, assetsUrl, headType } = LOAD;
  check(options, { signal, worker, store, token, endpoint, assetsUrl, headType });
}

/**
 * Checked options for the engine, without those that are `undefined`.
 * The signal and callbacks stay on the page, and processors are sent separately.
 *
 * @throws {SetunError} `bad-option`
 */
export function engineOptions(options: GenerateOptions): RequestOptions {
  check(options, GENERATE);
  const { tools: given, toolChoice, parallelToolCalls, ...others } = options;
  const { signal: _, logitsProcessors: __, responseFormat, speculative, onPromptProgress, ...rest } = others;
  check(speculative ?? {}, SPECULATIVE, "speculative.");
  const grammar = responseFormat && grammarSource(responseFormat);
  const tools = sentTools({ tools: given, toolChoice, parallelToolCalls });
  const promptProgress = onPromptProgress && true;
  const sent = { ...rest, ...speculative, promptProgress, tools, ...(grammar && { grammar }) };
  const set = Object.entries(sent).filter(([, value]) => value !== undefined);
  return Object.fromEntries(
    set.map(([name, value]) => [name, isOneOfStrings(name, value) ? [value] : value]),
  );
}

/** Whether an option that takes several strings has one alone. */
function isOneOfStrings(name: string, value: unknown): boolean {
  const [accepts] = GENERATE[name as keyof GenerateOptions] ?? [];
  return accepts === isStringOrStrings && typeof value === "string";
}

/** Limits of the engine, and how it computes, as far as they are set. */
export function engineLimits(options: LoadOptions): EngineLimits {
  const isSet = ([name, value]: [string, unknown]) => Object.hasOwn(LIMITS, name) && value !== undefined;
  return Object.fromEntries(Object.entries(options).filter(isSet));
}

/** @throws {SetunError} `bad-option` */
export function checkCount(n: number): void {
  if (isCount(n)) return;
  throw new SetunError("bad-option", `n: expected an integer from 1 to 65536, found ${shown(n)}`);
}

/** @throws {SetunError} `bad-option` */
export function checkMessages(messages: readonly ChatMessage[]): void {
  const isMessage = (message: unknown) =>
    typeof message === "object" &&
    message !== null &&
    "role" in message &&
    typeof message.role === "string" &&
    (!("content" in message) || isContent(message.content));
  if (!Array.isArray(messages) || !messages.every(isMessage)) {
    const expected = "an array of {role, content}: a string, and a string, an array of text parts or null";
    throw new SetunError("bad-option", `messages: expected ${expected}`);
  }
}

function isContent(content: unknown): boolean {
  return typeof content === "string" || content === undefined || content === null || Array.isArray(content);
}

/** @throws {SetunError} `bad-option` */
export function checkSignal(signal: AbortSignal | undefined): void {
  if (signal === undefined || isSignal(signal)) return;
  throw new SetunError("bad-option", `signal: expected an AbortSignal, found ${shown(signal)}`);
}

/** @throws {SetunError} `bad-option` */
export function checkString(name: string, text: string): void {
  if (typeof text !== "string")
    throw new SetunError("bad-option", `${name}: expected a string, found ${typeof text}`);
}

/** @throws {SetunError} `bad-option` */
export function checkStrings(name: string, texts: readonly string[]): void {
  if (areStrings(texts)) return;
  throw new SetunError("bad-option", `${name}: expected a list of non-empty strings, found ${shown(texts)}`);
}

/** @throws {SetunError} `bad-option` */
export function checkBytes(bytes: Uint8Array): void {
  if (bytes instanceof Uint8Array) return;
  throw new SetunError("bad-option", `bytes: expected a Uint8Array, found ${typeof bytes}`);
}

/** @throws {SetunError} `bad-option` */
export function checkTokens(tokens: readonly unknown[], vocabulary: number): void {
  const wrong = tokens.find((token) => !isToken(token) || (token as number) >= vocabulary);
  if (wrong === undefined) return;
  throw new SetunError("bad-option", `tokens: expected ids below ${vocabulary}, found ${String(wrong)}`);
}

/**
 * Checks options; `within` comes before their names in messages.
 *
 * @throws {SetunError} `bad-option` for an unknown option, or a value that its check refuses.
 */
export function check<Options extends object>(options: Options, rules: Rules<Options>, within = ""): void {
  if (typeof options !== "object" || options === null) {
    throw new SetunError("bad-option", `options: expected an object, found ${shown(options)}`);
  }
  for (const [name, value] of Object.entries(options)) {
    if (!Object.hasOwn(rules, name)) {
      const known = Object.keys(rules);
      const meant = nearestName(name, known);
      const advice = meant === undefined ? `expected one of ${known.join(", ")}` : `did you mean ${meant}?`;
      throw new SetunError("bad-option", `${within}${name}: unknown option; ${advice}`);
    }
    const [accepts, expected] = rules[name as keyof Options];
    if (value !== undefined && !accepts(value)) {
      const found = name === "token" ? typeof value : shown(value); // a secret
      throw new SetunError("bad-option", `${within}${name}: expected ${expected}, found ${found}`);
    }
  }
}
