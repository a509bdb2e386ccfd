/** Searches for the likeliest texts. */

import { requestWithProgress } from "./connection.js";
import type { GenerationContext } from "./generation.js";
import { check, engineOptions, GENERATE, type GenerateOptions, type Rules } from "./options.js";
import { toSentProcessors } from "./processors.js";
import type { BeamText, WasmBeamOptions, WasmPrompt } from "./wasm.js";

/** The options of a generation that a search knows: those that act on single tokens, and where it ends. */
const SHARED = [
  "maxTokens",
  "repetitionPenalty",
  "frequencyPenalty",
  "presencePenalty",
  "noRepeatNgram",
  "dryMultiplier",
  "dryBase",
  "dryAllowedLength",
  "dryRange",
  "dryBreakers",
  "logitBias",
  "allowedTokens",
  "bannedTokens",
  "ban",
  "minTokens",
  "samplingOrder",
  "processors",
  "stop",
  "priority",
  "deadline",
  "signal",
] as const satisfies (keyof GenerateOptions)[];

/**
 * Options of `model.beams`: of those of a generation the ones that act on single tokens or say where a text ends. A search
 * whose `deadline` is over gives the best of what it has.
 */
export interface BeamOptions extends Pick<GenerateOptions, (typeof SHARED)[number]> {
  /** Hypotheses that run side by side, 1 to 1024, and no more than the model's `streams`; 4 unless given. */
  beams?: number;
  /** How many texts to give, 1 to `beams`; 1 unless given. */
  best?: number;
  /** Scores are divided by the length to this power: above 0 longer texts gain, below 0 shorter ones; 1 unless given. */
  lengthPenalty?: number;
  /**
   * When a search ends that has found as many texts as it has beams: at once (`true`), where no better one is likely
   * (`false`, as unless given), or where none is possible (`"never"`).
   */
  earlyStopping?: boolean | "never";
  /** Groups of equally many beams, which find different texts: a divisor of `beams`; 1 unless given. */
  groups?: number;
  /**
   * Taken from the logarithm of a token's probability for each beam of an earlier group that took it; above 0 where there
   * are groups.
   */
  diversityPenalty?: number;
}

const isComplete = (value: unknown) =>
  Number.isInteger(value) && (value as number) >= 1 && (value as number) <= 1024;

const WHOLE = [isComplete, "a whole number from 1 to 1024"] as const;

const RULES: Rules<BeamOptions> = {
  beams: WHOLE,
  best: WHOLE,
  lengthPenalty: [Number.isFinite, "a number"],
  earlyStopping: [(value) => typeof value === "boolean" || value === "never", 'true, false or "never"'],
  groups: WHOLE,
  diversityPenalty: [(value) => Number.isFinite(value) && (value as number) >= 0, "a number of 0 or more"],
  ...(Object.fromEntries(SHARED.map((name) => [name, GENERATE[name]])) as Rules<
    Pick<GenerateOptions, (typeof SHARED)[number]>
  >),
};

/** Searches, and gives the texts at the end. */
export async function search(
  context: GenerationContext,
  prompt: WasmPrompt,
  given: BeamOptions,
): Promise<readonly BeamText[]> {
  check(given, RULES);
  const {
    beams = 4,
    best = 1,
    lengthPenalty = 1,
    earlyStopping = false,
    groups = 1,
    diversityPenalty = 0,
    ...others
  } = given;
  const { processors, signal } = others;
  signal?.throwIfAborted();
  const how: WasmBeamOptions = {
    beams,
    best,
    lengthPenalty,
    earlyStopping: `${earlyStopping}`,
    groups,
    diversityPenalty,
  };
  const request = {
    type: "beams",
    prompt,
    beams: how,
    options: engineOptions(others),
    ...(processors && { processors: toSentProcessors(processors, context) }),
  } as const;
  return (await requestWithProgress(context.connection, request, "found", signal ? { signal } : {})).texts;
}
