/** What may become of a text that outgrows the context. */

/** The pairs of counts that say it; the second is 1 or more. */
const PAIRS = [
  ["keep", "room"],
  ["sinks", "window"],
] as const;

/** Whether a value is a `ContextStrategy`. */
export function isContext(value: unknown): boolean {
  if (value === "stop") return true;
  if (typeof value !== "object" || value === null) return false;
  const counts = value as Record<string, unknown>;
  return PAIRS.some(
    ([first, second]) =>
      Object.keys(counts).length === 2 && isCount(counts[first], 0) && isCount(counts[second], 1),
  );
}

function isCount(value: unknown, min: number): boolean {
  return Number.isSafeInteger(value) && (value as number) >= min;
}
