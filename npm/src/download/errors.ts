/** Errors of downloads: temporary failures, changed files, and files that cannot be stored. */

import { SetunError } from "../errors.js";
import { type Damage, describeDamage } from "../store/damage.js";
import { pageAdvice } from "./answers.js";

/** A failure that another attempt may not have. */
export class RetryableError extends Error {
  /** The error if this was the last attempt. */
  readonly error: SetunError;
  /** Milliseconds to wait, as the server demands. */
  readonly wait: number | undefined;
  /** Maximum number of attempts, if lower than usual. */
  readonly maxAttempts: number;

  constructor(
    error: SetunError,
    { wait, maxAttempts }: { wait?: number | undefined; maxAttempts?: number } = {},
  ) {
    super(error.message);
    this.error = error;
    this.wait = wait;
    this.maxAttempts = maxAttempts ?? Number.POSITIVE_INFINITY;
  }
}

/** The file changed on the server: everything read of it is invalid. */
export class FileChangedError extends Error {
  /** The size found, if the size has changed. */
  readonly size: { readonly address: string; readonly bytes: number } | undefined;

  constructor(reason: string, size?: { readonly address: string; readonly bytes: number }) {
    super(reason);
    this.size = size;
  }
}

/** A model can be read but not stored: there is no storage, or the size of a file is unknown before its end. */
export class NotStorableError extends Error {}

export function networkError(address: string, reason: string, cause?: unknown): SetunError {
  return new SetunError("network", `${address}: ${reason}`, cause === undefined ? {} : { cause });
}

/** The error of a damaged copy whose files could not be downloaded again; other errors stay as they are. */
export function repairError(thrown: unknown, damages: readonly Damage[]): unknown {
  if (!(thrown instanceof SetunError) || !["network", "not-found"].includes(thrown.code)) return thrown;
  const damaged = damages.map(describeDamage).join("; ");
  if (damaged === "" || thrown.message.startsWith(damaged)) return thrown;
  const message =
    `${damaged} and cannot be downloaded again: ${thrown.message}; ` +
    "its other files stay: load the model again when its server can be reached";
  return new SetunError(thrown.code, message, { cause: thrown });
}

export function noFileError(address: string): SetunError {
  return new SetunError("not-found", `${address}: no such file${pageAdvice(address)}`);
}

export function sizeError(address: string, expected: number, found: string): SetunError {
  return new SetunError("truncated", `${address}: expected ${expected} bytes, found ${found}`);
}

export function bytesError(
  address: string,
  chunks: readonly number[],
  expected: string,
  found: string,
): SetunError {
  const where = chunks.length === 0 ? "" : ` in chunk${chunks.length > 1 ? "s" : ""} ${formatChunks(chunks)}`;
  const message = `${address}: wrong bytes${where}: expected SHA-256 ${expected}, found ${found}`;
  return new SetunError("bad-checkpoint", message);
}

function formatChunks(chunks: readonly number[]): string {
  const limit = 8;
  return chunks.slice(0, limit).join(", ") + (chunks.length > limit ? ", …" : "");
}
