/**
 * Checks of the options of a generation.
 *
 * Written by `cargo xtask options` from the option table; do not edit.
 */

import { isContextStrategy } from "./context-strategy.js";
import { isFilterRule } from "./filter.js";
import type { GenerateOptions, SpeculativeOptions } from "./generate-options.js";
import {
  areTokens,
  arrayOf,
  distinct,
  integer,
  isBoolean,
  isFunction,
  isLogitBias,
  isObject,
  isSeed,
  isSignal,
  isStringOrStrings,
  isText,
  MAX_FLOAT,
  number,
  oneOf,
  type Rules,
} from "./option-checks.js";
import { isProcessor } from "./processors.js";
import { grammarSource, RESPONSE_FORMATS } from "./response-format.js";
import { SAMPLING_STEPS } from "./sampling-options.js";
import { isTool, isToolChoice } from "./tools.js";

/** The check of each option. */
export const GENERATE: Rules<GenerateOptions> = {
  parseSpecial: [isBoolean, "true or false"],
  continueFinalMessage: [isBoolean, "true or false"],
  chatTemplateKwargs: [isObject, "an object of variables"],
  enableThinking: [oneOf([true, false]), "one of true, false"],
  reasoningEffort: [
    oneOf(["none", "minimal", "low", "medium", "high", "xhigh", "max"]),
    "one of none, minimal, low, medium, high, xhigh, max",
  ],
  preserveThinking: [oneOf([true, false]), "one of true, false"],
  chatTemplateTime: [integer(0, 253402300799), "an integer from 0 to 253402300799"],
  generatedTokens: [areTokens, "a list of token ids"],
  maxThinkingTokens: [integer(0), "an integer of 0 or more"],
  maxTokens: [integer(1), "an integer of 1 or more"],
  timeout: [number(0, 1000000000000), "a number of milliseconds from 0 to 1000000000000"],
  contextOverflow: [
    isContextStrategy,
    '"stop", "truncate_middle", "sliding_window", {type: "truncate_middle", keep, room} or {type: "sliding_window", sinks, window}',
  ],
  stop: [isStringOrStrings, "a non-empty string or a list of them"],
  stopTokenIds: [areTokens, "a list of token ids"],
  minTokens: [integer(0), "an integer of 0 or more"],
  seed: [isSeed, "an integer from 0 to 2^64 - 1"],
  sampleIndex: [integer(0), "an integer of 0 or more"],
  temperature: [number(9.999999974752427e-7, MAX_FLOAT, true), "0, or a finite number of 0.000001 or more"],
  topK: [integer(0), "an integer of 0 or more"],
  topP: [number(0, 1), "a number from 0 to 1"],
  minP: [number(0, 1), "a number from 0 to 1"],
  dryBreakers: [isStringOrStrings, "a non-empty string or a list of them"],
  allowedTokens: [areTokens, "a list of token ids"],
  logitBias: [isLogitBias, "finite numbers by token id"],
  bannedTokens: [areTokens, "a list of token ids"],
  badWords: [isStringOrStrings, "a non-empty string or a list of them"],
  repetitionPenalty: [number(1.1754943508222875e-38), "a finite number above 0"],
  frequencyPenalty: [number(-2, 2), "a number from -2 to 2"],
  presencePenalty: [number(-2, 2), "a number from -2 to 2"],
  noRepeatNgram: [integer(0), "an integer of 0 or more"],
  dryMultiplier: [number(0), "a finite number of 0 or more"],
  dryBase: [number(1), "a finite number of 1 or more"],
  dryAllowedLength: [integer(0), "an integer of 0 or more"],
  dryRange: [integer(0), "an integer of 0 or more"],
  samplingOrder: [distinct(SAMPLING_STEPS), "a list of distinct sampling steps"],
  logitsProcessors: [arrayOf(isProcessor), "an array of module URLs or of {module, options?}"],
  dynamicTemperature: [number(0), "a finite number of 0 or more"],
  dynamicTemperatureExponent: [number(1.1754943508222875e-38), "a finite number above 0"],
  topNSigma: [number(0), "a finite number of 0 or more"],
  typicalP: [number(0, 1), "a number from 0 to 1"],
  epsilonCutoff: [number(0, 0.9999999403953552), "a number of 0 or more, below 1"],
  etaCutoff: [number(0, 0.9999999403953552), "a number of 0 or more, below 1"],
  xtcProbability: [number(0, 1), "a number from 0 to 1"],
  xtcThreshold: [number(0, 0.5), "a number from 0 to 0.5"],
  mirostatTau: [number(0), "a finite number of 0 or more"],
  mirostatEta: [number(0), "a finite number of 0 or more"],
  logprobs: [isBoolean, "true or false"],
  topLogprobs: [integer(0), "an integer of 0 or more"],
  promptLogprobs: [isBoolean, "true or false"],
  responseFormat: [(value) => grammarSource(value) !== undefined, RESPONSE_FORMATS],
  tools: [
    arrayOf(isTool),
    'an array of {type: "function", function: {name, description?, parameters?, strict?}}',
  ],
  toolChoice: [isToolChoice, '"auto", "none", "required" or {type: "function", function: {name}}'],
  parallelToolCalls: [oneOf([true, false]), "one of true, false"],
  filter: [
    arrayOf(isFilterRule),
    "an array of {word, wholeWord?, ignoreCase?} or {regex} with either replace or stop: true",
  ],
  priority: [integer(-2147483648, 2147483647), "an integer from -2147483648 to 2147483647"],
  queueTimeout: [number(0, 1000000000000), "a number of milliseconds from 0 to 1000000000000"],
  cacheSalt: [isText, "a non-empty string"],
  speculative: [isObject, "an object with lookahead"],
  onPromptProgress: [isFunction, "a function"],
  signal: [isSignal, "an AbortSignal"],
};

/** The check of each option of `speculative`. */
export const SPECULATIVE: Rules<SpeculativeOptions> = {
  lookahead: [integer(0, 255), "an integer from 0 to 255"],
};

/** The options that a beam search takes, too. */
export const BEAM_SEARCH_KEYS = [
  "parseSpecial",
  "continueFinalMessage",
  "chatTemplateKwargs",
  "chatTemplateTime",
  "maxTokens",
  "timeout",
  "stop",
  "stopTokenIds",
  "minTokens",
  "dryBreakers",
  "allowedTokens",
  "logitBias",
  "bannedTokens",
  "badWords",
  "repetitionPenalty",
  "frequencyPenalty",
  "presencePenalty",
  "noRepeatNgram",
  "dryMultiplier",
  "dryBase",
  "dryAllowedLength",
  "dryRange",
  "samplingOrder",
  "logitsProcessors",
  "priority",
  "queueTimeout",
  "cacheSalt",
  "signal",
] as const satisfies readonly (keyof GenerateOptions)[];
