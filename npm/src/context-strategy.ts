/** Check of the option `contextOverflow`. */

/** Names of the counts of each strategy; the second is 1 or more. */
const COUNTS: Readonly<Record<string, readonly [string, string]>> = {
  truncate_middle: ["keep", "room"],
  sliding_window: ["sinks", "window"],
};

/** Whether a value is a `ContextStrategy`. */
export function isContextStrategy(value: unknown): boolean {
  if (value === "stop") return true;
  if (typeof value !== "object" || value === null) return false;
  const { type, ...counts } = value as Record<string, unknown>;
  const names = typeof type === "string" && Object.hasOwn(COUNTS, type) ? COUNTS[type] : undefined;
  if (names === undefined || Object.keys(counts).length !== 2) return false;
  return isCount(counts[names[0]], 0) && isCount(counts[names[1]], 1);
}

function isCount(value: unknown, min: number): boolean {
  return Number.isSafeInteger(value) && (value as number) >= min;
}
