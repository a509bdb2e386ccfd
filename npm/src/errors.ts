/** Errors, and their form in messages of workers. */

import { remedy } from "./environment.js";
import { thrownText } from "./shown.js";

/** Error codes. `docs/errors.md` has the meaning of each and a remedy. */
export const ERROR_CODES = [
  "network",
  "not-found",
  "truncated",
  "bad-checkpoint",
  "unsupported-model",
  "context-full",
  "out-of-memory",
  "backend-unavailable",
  "device-lost",
  "disposed",
  "bad-option",
  "storage-full",
  "busy",
  "io",
  "cancelled",
] as const;

/** One of {@link ERROR_CODES}. */
export type ErrorCode = (typeof ERROR_CODES)[number];

/** An error that a user, a file, a network or a device can cause. Any other error is a defect of setun. */
export class SetunError extends Error {
  /** `"SetunError"` */
  override readonly name = "SetunError";
  /** Stable code of the failure, for comparison. */
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.code = code;
  }
}

/** An error in a worker message. Structured clone drops an error's own properties, so they are sent beside it. */
export interface WireError {
  readonly code: ErrorCode | undefined;
  readonly name: string;
  readonly message: string;
  readonly cause: unknown;
}

/** Packs a thrown value for {@link fromWire}. */
export function toWire(thrown: unknown): WireError {
  if (!(thrown instanceof Error)) {
    return { code: undefined, name: "Error", message: thrownText(thrown), cause: undefined };
  }
  const code = codeOf(thrown);
  return { code, name: thrown.name, message: thrown.message, cause: cloneable(thrown.cause) };
}

/** The error that {@link toWire} packed: a {@link SetunError} if it has a code. */
export function fromWire({ code, name, message, cause }: WireError): Error {
  const options = cause === undefined ? undefined : { cause };
  if (code !== undefined) return new SetunError(code, message, options);
  const error = new Error(message, options);
  error.name = name;
  return error;
}

/** Converts errors of the WebAssembly side, which have a `code`, and their option names to camel case. */
export function asSetunError(thrown: unknown): unknown {
  if (thrown instanceof SetunError || !(thrown instanceof Error)) return thrown;
  const code = codeOf(thrown);
  if (code === undefined) return thrown;
  return new SetunError(code, translated(code, thrown.message), { cause: thrown.cause ?? thrown });
}

function translated(code: ErrorCode, message: string): string {
  if (code === "out-of-memory") return `${message}; ${remedy("memory")}`;
  return withoutTypes(code === "bad-option" ? nameOption(message) : message);
}

/** Parsers of JSON name types of Rust. */
function withoutTypes(message: string): string {
  return message
    .replace(/\bexpected (u(8|16|32|64|size))\b/, "expected a whole number of at least 0")
    .replace(/\bexpected (i(8|16|32|64|size))\b/, "expected a whole number")
    .replace(/\bexpected f(32|64)\b/, "expected a number")
    .replace(/\bexpected struct \w+/, "expected an object");
}

/** Messages of the engine begin with the option: "top_p is 2, ..." or "option `max_tokens` is 0, ...". */
function nameOption(message: string): string {
  return message.replace(/^(option `)?[a-z]+(_[a-z]+)+(?=`? (is|names) )/, (name) =>
    name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
  );
}

function codeOf(error: Error): ErrorCode | undefined {
  const code: unknown = "code" in error ? error.code : undefined;
  return ERROR_CODES.find((known) => known === code);
}

/** Errors can be cloned; other causes become text. */
function cloneable(cause: unknown): unknown {
  return cause === undefined || cause instanceof Error ? cause : thrownText(cause);
}
