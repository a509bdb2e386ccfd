/** Values and names in messages. */

/** Characters of a value in a message. */
const MAX_SHOWN = 60;

/** A value as a caller would recognise it: objects by their class or their properties, long ones cut. */
export function shown(value: unknown): string {
  const text = describe(value);
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
}

function describe(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value === "function") return `the function ${value.name}`.trimEnd();
  if (typeof value !== "object" || value === null) return String(value);
  const { name } = value.constructor ?? {};
  if (name !== undefined && name !== "Object" && name !== "Array") return `a value of class ${name}`;
  try {
    return JSON.stringify(value);
  } catch {
    return Array.isArray(value) ? "an array" : "an object";
  }
}

/** The known name that a name most probably means, with as few changed letters as possible; at most two. */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  const [best] = known
    .map((each) => ({ each, distance: editDistance(name.toLowerCase(), each.toLowerCase()) }))
    .filter(({ each, distance }) => distance <= 2 && distance < each.length)
    .sort((a, b) => a.distance - b.distance);
  return best?.each;
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
