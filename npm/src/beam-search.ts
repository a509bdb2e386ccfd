/** Beam search: options and request. */

import { BEAMS, type BeamOptions } from "./beam-options.js";
import { check, engineOptions } from "./check-options.js";
import { requestWithProgress } from "./connection.js";
import type { GenerateOptions } from "./generate-options.js";
import { BEAM_SEARCH_KEYS, GENERATE } from "./generate-rules.js";
import type { GenerationContext } from "./generation.js";
import type { Rules } from "./option-checks.js";
import { toSentProcessors } from "./processors.js";
import type { BeamText, WasmPrompt } from "./wasm.js";

/**
 * Options of {@link Model.beamSearch}, with the meaning that they have in Hugging Face's `generate`.
 *
 * Of the options of {@link GenerateOptions} those are accepted that act on single tokens or end a text.
 * A search that reaches its `timeout` returns the best texts so far.
 */
export interface BeamSearchOptions
  extends BeamOptions,
    Pick<GenerateOptions, (typeof BEAM_SEARCH_KEYS)[number]> {}

const RULES: Rules<BeamSearchOptions> = {
  ...BEAMS,
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
  const [beams, shared] = split(given);
  const { logitsProcessors, signal } = shared;
  signal?.throwIfAborted();
  const request = {
    type: "beam-search",
    prompt,
    beams,
    options: engineOptions(shared),
    ...(logitsProcessors && { processors: toSentProcessors(logitsProcessors, context) }),
  } as const;
  const found = await requestWithProgress(
    context.connection,
    request,
    "beam-texts",
    signal ? { signal } : {},
  );
  return found.texts;
}

/** The options of the beams, and those of a generation. */
function split(given: BeamSearchOptions): [BeamOptions, GenerateOptions] {
  const entries = Object.entries(given).filter(([, value]) => value !== undefined);
  const isOfBeams = ([name]: [string, unknown]) => Object.hasOwn(BEAMS, name);
  const others = entries.filter((entry) => !isOfBeams(entry));
  return [Object.fromEntries(entries.filter(isOfBeams)), Object.fromEntries(others)];
}
