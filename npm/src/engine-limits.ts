/**
 * Limits and arithmetic of an engine, with their documentation and checks.
 *
 * Written by `cargo xtask options` from the option table; do not edit.
 */

import { integer, oneOf, type Rules } from "./option-checks.js";

/** Limits of an engine, and how it computes. */
export interface EngineLimits {
  /**
   * Maximum number of generations in one batch, on each device. Further ones wait. Takes an integer of 1 or
   * more.
   *
   * @defaultValue 64
   */
  maxConcurrent?: number;
  /**
   * Maximum number of generations beyond `maxConcurrent` that each device takes, which wait. One more is
   * refused (`busy`). Takes an integer of 1 or more.
   *
   * Each sample and each beam counts, from its request to its last event.
   *
   * @defaultValue 1024
   */
  queue?: number;
  /**
   * Maximum size of the KV cache in whole contexts. Memory is taken as it is used. Takes an integer of 1 or
   * more.
   *
   * Generations whose tokens do not fit all at once wait, or give up their memory to others and begin again
   * from their tokens, which changes no text.
   *
   * @defaultValue 8
   */
  contexts?: number;
  /**
   * Representation of the output head in memory. Takes one of auto, stored, screened, int8.
   *
   * `stored` is the table as the model has it. `screened` has 7 bits of each element beside it, so that a
   * step reads less of it; every text is the same. `int8` is the rounded table alone, with slightly other
   * logits. `auto` is `screened` where that pays; in JavaScript `stored` where WebAssembly has no room for
   * the screen.
   *
   * @defaultValue auto
   */
  headType?: "auto" | "stored" | "screened" | "int8";
  /**
   * Columns of activations that share a scale: fewer are nearer to float activations, and slower. Takes one
   * of row, 32, 64, 128.
   *
   * `row` is one scale for all columns, as `BitNet` is trained. With another value a model with relu² passes
   * over no zeros, and one that adds biases before its scales is refused. Logits depend on it, so an engine
   * with another value computes the cache of a saved session again. A draft model has its own.
   *
   * @defaultValue the model's
   */
  activationGroup?: "row" | 32 | 64 | 128;
}

/** The check of each option. */
export const LIMITS: Rules<EngineLimits> = {
  maxConcurrent: [integer(1), "an integer of 1 or more"],
  queue: [integer(1), "an integer of 1 or more"],
  contexts: [integer(1), "an integer of 1 or more"],
  headType: [oneOf(["auto", "stored", "screened", "int8"]), "one of auto, stored, screened, int8"],
  activationGroup: [oneOf(["row", 32, 64, 128]), "one of row, 32, 64, 128"],
};
