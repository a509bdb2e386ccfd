/** Validation of JSON from the disk, which other programs may have changed. */

import { SetunError } from "../errors.js";

/** Format version of the store's files. */
export const FORMAT = 1;

/** Maximum length of a file. */
const MAX_JSON_LENGTH = 32 << 20;

export type Fields = Readonly<Record<string, unknown>>;

/** Fields of a JSON object; `undefined` for any other text. */
export function parseFields(text: string | undefined): Fields | undefined {
  if (text === undefined || text.length > MAX_JSON_LENGTH) return undefined;
  try {
    return fields(JSON.parse(text.replace(/^\uFEFF/, ""))); // a byte order mark
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
 * Fields of a file of the store; `undefined` if it is damaged.
 *
 * @throws {SetunError} `bad-checkpoint` if a later version of setun wrote it.
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

/** Whether a value is a non-negative safe integer. */
export function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

/** Whether a value is a string or absent. */
export function isTextOrNone(value: unknown): value is string | null | undefined {
  return value === undefined || value === null || typeof value === "string";
}
