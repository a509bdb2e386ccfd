/** JSON that may hold anything: looked at with care, since a disk or another program may have changed it. */

import { SetunError } from "../errors.js";

/** The version of the small files that is written, and the latest that is read. */
export const FORMAT = 1;

/** Larger files are none of the store's. */
const MAX_JSON_LENGTH = 32 << 20;

export type Fields = Readonly<Record<string, unknown>>;

/** The fields of a JSON object; `undefined` if the text is none. */
export function parseFields(text: string | undefined): Fields | undefined {
  if (text === undefined || text.length > MAX_JSON_LENGTH) return undefined;
  try {
    return fields(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** A value as an object with fields. */
export function fields(value: unknown): Fields | undefined {
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  return isObject ? (value as Fields) : undefined;
}

/**
 * The fields of one of the store's own files; `undefined` if it is damaged.
 *
 * @throws {SetunError} `bad-checkpoint` if a later version of setun has written it.
 */
export function parseVersioned(text: string | undefined, where: string): Fields | undefined {
  const found = parseFields(text);
  const format = found?.format;
  if (isCount(format) && format > FORMAT) {
    const way = "a later version of setun has written it: use that one, or delete the model";
    throw new SetunError("bad-checkpoint", `${where}: it has format ${format}, expected ${FORMAT}; ${way}`);
  }
  return format === FORMAT ? found : undefined;
}

/** True for whole numbers that are exact. */
export function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

/** True for a text, or none. */
export function isTextOrNone(value: unknown): value is string | null | undefined {
  return value === undefined || value === null || typeof value === "string";
}
