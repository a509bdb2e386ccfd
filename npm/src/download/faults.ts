/** Why an attempt failed, where that is not the end. */

import { SetunError } from "../errors.js";

/** It may go well later. */
export class Later extends Error {
  /** What went wrong, should it be the last attempt. */
  readonly error: SetunError;
  /** Milliseconds that the server asks to wait. */
  readonly wait: number | undefined;
  /** Attempts that are worth it, where fewer are. */
  readonly most: number;

  constructor(error: SetunError, { wait, most }: { wait?: number | undefined; most?: number } = {}) {
    super(error.message);
    this.error = error;
    this.wait = wait;
    this.most = most ?? Number.POSITIVE_INFINITY;
  }
}

/** The server has another file than before: whoever has read of it begins anew. */
export class Changed extends Error {
  /** The size that the file was found to have, where that is what differs. */
  readonly size: { readonly address: string; readonly bytes: number } | undefined;

  constructor(reason: string, size?: { readonly address: string; readonly bytes: number }) {
    super(reason);
    this.size = size;
  }
}

/** How much comes is not known before it is there, so it can be read but not kept. */
export class Unkeepable extends Error {}

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
  const where = chunks.length === 0 ? "" : ` in chunk${chunks.length > 1 ? "s" : ""} ${someOf(chunks)}`;
  const message = `${address}: wrong bytes${where}: expected SHA-256 ${expected}, found ${found}`;
  return new SetunError("bad-checkpoint", message);
}

function someOf(chunks: readonly number[]): string {
  const most = 8;
  return chunks.slice(0, most).join(", ") + (chunks.length > most ? ", …" : "");
}
