/** Options of the class `LanguageModel`. */

import type { GenerateOptions } from "./core.js";
import { checkTools, expectsTextsOnly } from "./prompt-api-checks.js";
import type { SessionDefaults } from "./prompt-api-model.js";
import type { CoreOptions, SamplingMode } from "./prompt-api-types.js";

/** The sampling of each mode. */
const SAMPLING = {
  "most-predictable": { temperature: 0 },
  predictable: { temperature: 0.4, topP: 0.9 },
  balanced: { temperature: 0.7, topP: 0.95 },
  creative: { temperature: 1, topP: 0.95 },
  "most-creative": { temperature: 1.3, topP: 0.98 },
} satisfies Record<SamplingMode, GenerateOptions>;

/** Options of `install`. */
export interface InstallOptions {
  /** Replaces a class that exists. */
  readonly force?: boolean;
  /** Options of all answers. */
  readonly defaults?: SessionDefaults;
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
