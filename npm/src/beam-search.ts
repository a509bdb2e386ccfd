/** Beam search: options and request. */

import { check, engineOptions } from "./check-options.js";
import { requestWithProgress } from "./connection.js";
import type { GenerateOptions } from "./generate-options.js";
import { BEAM_SEARCH_KEYS, GENERATE } from "./generate-rules.js";
import type { GenerationContext } from "./generation.js";
import { integer, number, type Rules } from "./option-checks.js";
import { toSentProcessors } from "./processors.js";
import type { BeamText, WasmBeamOptions, WasmPrompt } from "./wasm.js";

/**
 * Options of {@link Model.beamSearch}, with the meaning that they have in Hugging Face's `generate`.
 *
 * Of the options of {@link GenerateOptions} those are accepted that act on single tokens or end a text.
 * A search that reaches its `deadline` returns the best texts so far.
 */
export interface BeamSearchOptions extends Pick<GenerateOptions, (typeof BEAM_SEARCH_KEYS)[number]> {
  /**
   * Number of beams, 1 to 1024 and at most the `streams` of `load`.
   *
   * @defaultValue 4
   */
  numBeams?: number;
  /**
   * Number of returned texts, 1 to `numBeams`.
   *
   * @defaultValue 1
   */
  numReturnSequences?: number;
  /**
   * Exponent of the length that divides the score: above 0 favours longer texts, below 0 shorter ones.
   *
   * @defaultValue 1
   */
  lengthPenalty?: number;
  /**
   * When a search ends that has as many finished texts as beams: `true` at once, `false` when a better text is unlikely,
   * `"never"` when a better text is impossible.
   *
   * @defaultValue `false`
   */
  earlyStopping?: boolean | "never";
  /**
   * Number of groups in diverse beam search, a divisor of `numBeams`.
   *
   * @defaultValue 1
   */
  numBeamGroups?: number;
  /**
   * Penalty on a token for each beam of an earlier group that chose it, 0 or more; above 0 with several groups.
   *
   * @defaultValue 0
   */
  diversityPenalty?: number;
}

const COUNT = [integer(1, 1024), "an integer from 1 to 1024"] as const;

const RULES: Rules<BeamSearchOptions> = {
  numBeams: COUNT,
  numReturnSequences: COUNT,
  lengthPenalty: [Number.isFinite, "a number"],
  earlyStopping: [(value) => typeof value === "boolean" || value === "never", 'true, false or "never"'],
  numBeamGroups: COUNT,
  diversityPenalty: [number(0), "a finite number of 0 or more"],
  ...(Object.fromEntries(BEAM_SEARCH_KEYS.map((name) => [name, GENERATE[name]])) as Rules<
    Pick<GenerateOptions, (typeof BEAM_SEARCH_KEYS)[number]>
  >),
};

/** Runs a beam search and returns its texts. */
export async function search(
  context: GenerationContext,
  prompt: WasmPrompt,
  given: BeamSearchOptions,
): Promise<readonly BeamText[]> {
  check(given, RULES);
  const {
    numBeams = 4,
    numReturnSequences = 1,
    lengthPenalty = 1,
    earlyStopping = false,
    numBeamGroups = 1,
    diversityPenalty = 0,
    ...shared
  } = given;
  const { processors, signal } = shared;
  signal?.throwIfAborted();
  const beams: WasmBeamOptions = {
    numBeams,
    numReturnSequences,
    lengthPenalty,
    earlyStopping: `${earlyStopping}`,
    numBeamGroups,
    diversityPenalty,
  };
  const request = {
    type: "beam-search",
    prompt,
    beams,
    options: engineOptions(shared),
    ...(processors && { processors: toSentProcessors(processors, context) }),
  } as const;
  const found = await requestWithProgress(
    context.connection,
    request,
    "beam-texts",
    signal ? { signal } : {},
  );
  return found.texts;
}
