/**
 * Options of a beam search, with their documentation and checks.
 *
 * Written by `cargo xtask options` from the option table; do not edit.
 */

import { integer, MAX_FLOAT, number, oneOf, type Rules } from "./option-checks.js";

/** How a beam search goes on and ends. The names are those of Hugging Face's `generate`. */
export interface BeamOptions {
  /**
   * Number of beams, which run side by side in one batch; at most the engine's `maxConcurrent`. Takes an
   * integer from 1 to 1024.
   *
   * @defaultValue 4
   */
  numBeams?: number;
  /**
   * Number of texts to return, best first; at most `numBeams`. Takes an integer from 1 to 1024.
   *
   * @defaultValue 1
   */
  numReturnSequences?: number;
  /**
   * Exponent of the length that divides a score: above 0 favours longer texts, below 0 shorter ones. Takes a
   * finite number.
   *
   * @defaultValue 1
   */
  lengthPenalty?: number;
  /**
   * When a search ends that has as many texts as beams: at once (true), when a better one is unlikely
   * (false), or when a better one is impossible (never). Takes one of true, false, never.
   *
   * @defaultValue false
   */
  earlyStopping?: boolean | "never";
  /**
   * Number of groups in diverse beam search; a divisor of `numBeams`. Takes an integer from 1 to 1024.
   *
   * @defaultValue 1
   */
  numBeamGroups?: number;
  /**
   * Penalty on a token's log-probability for each beam of an earlier group that chose it in the same step;
   * above 0 with several groups, else 0. Takes a finite number of 0 or more.
   *
   * @defaultValue 0
   */
  diversityPenalty?: number;
}

/** The check of each option. */
export const BEAMS: Rules<BeamOptions> = {
  numBeams: [integer(1, 1024), "an integer from 1 to 1024"],
  numReturnSequences: [integer(1, 1024), "an integer from 1 to 1024"],
  lengthPenalty: [number(-MAX_FLOAT), "a finite number"],
  earlyStopping: [oneOf([true, false, "never"]), "one of true, false, never"],
  numBeamGroups: [integer(1, 1024), "an integer from 1 to 1024"],
  diversityPenalty: [number(0), "a finite number of 0 or more"],
};
