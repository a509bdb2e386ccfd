/** Values and names in messages. */

/** Characters of a value in a message. */
const MAX_SHOWN = 60;

/** A value as a caller would recognise it: objects by their class or their properties, long ones cut. */
export function shown(value: unknown): string {
  const text = describe(value);
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
}

/** What was thrown: an error by its text, any other value as {@link shown}. */
export function thrownText(thrown: unknown): string {
  return typeof thrown === "object" && !(thrown instanceof Error) ? shown(thrown) : String(thrown);
}

function describe(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value === "function") return `the function ${value.name}`.trimEnd();
  if (typeof value !== "object" || value === null) return String(value);
  try {
    const { name } = value.constructor ?? {};
    if (name !== undefined && name !== "Object" && name !== "Array") return `a value of class ${name}`;
    return JSON.stringify(value, asJson) ?? "an object";
  } catch {
    return Array.isArray(value) ? "an array" : "an object";
  }
}

/** What JSON lacks, as text. */
function asJson(_key: string, value: unknown): unknown {
  const isMissing = value === undefined || typeof value === "bigint" || typeof value === "function";
  return isMissing || (typeof value === "number" && !Number.isFinite(value)) ? String(value) : value;
}

/** The known name that differs from a name in the fewest letters: in a third of them and two at most, and alone. */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  const most = Math.min(2, Math.floor(name.length / 3));
  const [best, next] = known
    .map((each) => ({ each, distance: editDistance(name.toLowerCase(), each.toLowerCase()) }))
    .filter(({ distance }) => distance <= most)
    .sort((a, b) => a.distance - b.distance);
  return best?.distance === next?.distance ? undefined : best?.each;
}

/** Letters to add, remove or replace (Levenshtein's distance). */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (const [i, letter] of [...a].entries()) {
    const next = [i + 1];
    for (const [j, other] of [...b].entries()) {
      const [left = 0, above = 0, corner = 0] = [next[j], row[j + 1], row[j]];
      next.push(Math.min(left + 1, above + 1, corner + (letter === other ? 0 : 1)));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
