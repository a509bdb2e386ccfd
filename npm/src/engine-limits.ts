/**
 * Limits of an engine, with their documentation and checks.
 *
 * Written by `cargo xtask options` from the option table; do not edit.
 */

import { integer, type Rules } from "./option-checks.js";

/** Limits of an engine. */
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
}

/** The check of each option. */
export const LIMITS: Rules<EngineLimits> = {
  maxConcurrent: [integer(1), "an integer of 1 or more"],
  queue: [integer(1), "an integer of 1 or more"],
  contexts: [integer(1), "an integer of 1 or more"],
};
