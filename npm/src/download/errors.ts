/** Why an attempt failed, where that is not the end. */

import { SetunError } from "../errors.js";

/** It may go well later. */
export class RetryableError extends Error {
  /** What went wrong, should it be the last attempt. */
  readonly error: SetunError;
  /** Milliseconds that the server asks to wait. */
  readonly wait: number | undefined;
  /** Attempts that are worth it, where fewer are. */
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

/** The server has another file than before: whoever has read of it begins anew. */
export class FileChangedError extends Error {
  /** The size that the file was found to have, where that is what differs. */
  readonly size: { readonly address: string; readonly bytes: number } | undefined;

  constructor(reason: string, size?: { readonly address: string; readonly bytes: number }) {
    super(reason);
    this.size = size;
  }
}

/** How much comes is not known before it is there, so it can be read but not kept. */
export class NotStorableError extends Error {}

export function networkError(address: string, reason: string, cause?: unknown): SetunError {
  return new SetunError("network", `${address}: ${reason}`, cause === undefined ? {} : { cause });
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
