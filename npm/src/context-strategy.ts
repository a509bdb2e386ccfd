/** The option `contextOverflow`: its check, and the counts of a strategy that is given by its name. */

import type { ContextStrategy } from "./wasm.js";

/** Names of the counts of each strategy; the second is 1 or more. */
const COUNTS: Readonly<Record<string, readonly [string, string]>> = {
  truncate_middle: ["keep", "room"],
  sliding_window: ["sinks", "window"],
};

/** Attention sinks of a sliding window, as in StreamingLLM. */
const SINKS = 4;

/** Whether a value is a `ContextStrategy`. */
export function isContextStrategy(value: unknown): boolean {
  if (value === "stop") return true;
  if (typeof value === "string") return Object.hasOwn(COUNTS, value);
  if (typeof value !== "object" || value === null) return false;
  const { type, ...counts } = value as Record<string, unknown>;
  const names = typeof type === "string" && Object.hasOwn(COUNTS, type) ? COUNTS[type] : undefined;
  if (names === undefined || Object.keys(counts).length !== 2) return false;
  return isCount(counts[names[0]], 0) && isCount(counts[names[1]], 1);
}

/** A strategy with its counts. Those of a name are the command's: of a context of `length` tokens. */
export function withCounts(strategy: ContextStrategy, length: number): Exclude<ContextStrategy, OfLength> {
  const part = (share: number) => Math.max(1, Math.floor(length / share));
  if (strategy === "truncate_middle") return { type: strategy, keep: part(4), room: part(4) };
  if (strategy === "sliding_window") return { type: strategy, sinks: SINKS, window: part(2) };
  return strategy;
}

/** Strategies whose counts follow from the context. */
type OfLength = "truncate_middle" | "sliding_window";

function isCount(value: unknown, min: number): boolean {
  return Number.isSafeInteger(value) && (value as number) >= min;
}
