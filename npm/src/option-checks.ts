/** Checks of options, by the kind of their values. */

/** Whether an option accepts a value. */
export type Check = (value: unknown) => boolean;

/** A check for each option, with the values that it accepts in words. */
export type Rules<Options> = { readonly [Name in keyof Options]-?: readonly [Check, string] };

/** The largest finite number of single precision. */
export const MAX_FLOAT = 3.4028234663852886e38;

/** Finite numbers from `min` to `max`, and 0 with `orZero`. */
export const number =
  (min: number, max = MAX_FLOAT, orZero = false): Check =>
  (value) =>
    typeof value === "number" && ((value >= min && value <= max) || (orZero && value === 0));

const isFloat = number(-MAX_FLOAT);

/** Integers from `min` to `max`. */
export const integer =
  (min: number, max = Number.MAX_SAFE_INTEGER): Check =>
  (value) =>
    Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max;

/** Arrays of values that pass a check. */
export const arrayOf =
  (accepts: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(accepts);

/** One of some values. */
export const oneOf =
  (values: readonly unknown[]): Check =>
  (value) =>
    values.includes(value);

/** Arrays of names, each at most once. */
export const distinct =
  (names: readonly unknown[]): Check =>
  (value) =>
    arrayOf((name) => names.includes(name))(value) &&
    new Set(value as unknown[]).size === (value as []).length;

export const isBoolean: Check = (value) => typeof value === "boolean";

export const isObject: Check = (value) =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export const isFunction: Check = (value) => typeof value === "function";

export const isSignal: Check = (value) => value instanceof AbortSignal;

/** Integers of 64 bits; a `bigint` beyond 2^53. */
export const isSeed: Check = (value) =>
  typeof value === "bigint" ? value >= 0n && value < 1n << 64n : integer(0)(value);

/** Strings that are not empty. */
export const isText: Check = (text) => typeof text === "string" && text !== "";

export const areStrings = arrayOf(isText);

/** A text, or a list of texts. */
export const isStringOrStrings: Check = (value) => isText(value) || areStrings(value);

/** Whether a value is a token id. */
export const isToken = integer(0, 2 ** 32 - 1);

export const areTokens = arrayOf(isToken);

/** Objects of finite numbers by token id. */
export const isLogitBias: Check = (value) =>
  isObject(value) &&
  Object.entries(value as object).every(
    ([token, bias]) => /^\d+$/.test(token) && isToken(Number(token)) && isFloat(bias),
  );
