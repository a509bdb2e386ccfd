/** Options of the class `LanguageModel`. */

import type { GenerateOptions } from "./core.js";
import {
  checkTools,
  type Expected,
  expectsTextsOnly,
  type PromptMessage,
  type PromptTool,
} from "./prompt-api-checks.js";
import type { CreateMonitor, SessionDefaults } from "./prompt-api-model.js";

/** The sampling of each mode. */
const SAMPLING = {
  "most-predictable": { temperature: 0 },
  predictable: { temperature: 0.4, topP: 0.9 },
  balanced: { temperature: 0.7, topP: 0.95 },
  creative: { temperature: 1, topP: 0.95 },
  "most-creative": { temperature: 1.3, topP: 0.98 },
} satisfies Record<string, GenerateOptions>;

/** How varied answers are. */
export type SamplingMode = keyof typeof SAMPLING;

/** Options of `LanguageModel.availability`. */
export interface CoreOptions {
  /** Default: the sampling of the model, and of `provideModel`. */
  samplingMode?: SamplingMode | "default";
  /** Overrides that of the mode. */
  topK?: number;
  /** Overrides that of the mode. */
  temperature?: number;
  /** Kinds of content that prompts have. */
  expectedInputs?: readonly Expected[];
  /** Kinds of content that answers have. */
  expectedOutputs?: readonly Expected[];
  /** Tools that the session calls. */
  tools?: readonly PromptTool[];
}

/** Options of `LanguageModel.create`. */
export interface CreateOptions extends CoreOptions {
  /** Aborts the creation, and destroys the session afterwards. */
  signal?: AbortSignal;
  /** Gets a target of `downloadprogress` events. */
  monitor?: (monitor: CreateMonitor) => void;
  /** Messages that are never dropped. */
  initialPrompts?: readonly PromptMessage[];
}

/** Options of a prompt. */
export interface PromptOptions {
  /** JSON Schema, or a regular expression for the whole answer. */
  responseConstraint?: object;
  /** Without effect, since constraints are never part of the prompt. It needs a constraint. */
  omitResponseConstraintInput?: boolean;
  /** Aborts the prompt. */
  signal?: AbortSignal;
}

/** Options of `install`. */
export interface InstallOptions {
  /** Replaces a class that exists. */
  readonly force?: boolean;
  /** Options of all answers. */
  readonly defaults?: SessionDefaults;
}

/** Sampling defaults and limits. */
export interface LanguageModelParams {
  readonly defaultTopK: number;
  readonly maxTopK: number;
  readonly defaultTemperature: number;
  readonly maxTemperature: number;
}

/** Whether sessions with these options are possible. @throws {TypeError | RangeError} */
export function checkCore({
  samplingMode = "default",
  expectedInputs,
  expectedOutputs,
  tools,
}: CoreOptions): boolean {
  if (samplingMode !== "default" && !Object.hasOwn(SAMPLING, samplingMode))
    throw new TypeError(
      `samplingMode: expected one of ${Object.keys(SAMPLING).join(", ")}, found ${samplingMode}`,
    );
  checkTools(tools);
  const inputs = expectsTextsOnly("expectedInputs", expectedInputs);
  return expectsTextsOnly("expectedOutputs", expectedOutputs) && inputs;
}

/** The mode of a session, and its sampling where options say one. */
export function samplingOf({ samplingMode = "default", topK, temperature }: CoreOptions) {
  const isDefault = samplingMode === "default";
  const mode: SamplingMode = isDefault ? "balanced" : samplingMode;
  const own = { ...(topK !== undefined && { topK }), ...(temperature !== undefined && { temperature }) };
  return [mode, { ...(isDefault ? {} : SAMPLING[mode]), ...own }] as const;
}
