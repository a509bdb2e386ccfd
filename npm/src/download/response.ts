/** A server's response: headers, body and timeouts. */

import { failedRequest, hidesHeaders, isMissing } from "./answers.js";
import { networkError, RetryableError, sizeError } from "./errors.js";
import { IDLE_TIMEOUT, type RequestLimits, RequestWatchdog } from "./watchdog.js";

/** Position of a range in its file. */
export interface ContentRange {
  readonly first: number;
  readonly last: number;
  /** Size of the file, if known. */
  readonly total: number | undefined;
}

/** A response. Its body must be read to the end or cancelled. */
export class DownloadResponse {
  /** The requested URL. */
  readonly address: string;
  readonly #response: Response;
  readonly #watchdog: RequestWatchdog;
  #body: ReadableStreamDefaultReader<Uint8Array> | undefined;

  private constructor(address: string, response: Response, watchdog: RequestWatchdog) {
    this.address = address;
    this.#response = response;
    this.#watchdog = watchdog;
  }

  /** Sends a request. Failures are {@link RetryableError}s; an aborted signal rejects with its reason. */
  static async from(address: string, request: RequestInit, limits: RequestLimits): Promise<DownloadResponse> {
    const watchdog = new RequestWatchdog(limits);
    try {
      const { signal } = limits.controller;
      const response = await watchdog.guard(() => fetch(address, { ...request, signal }));
      return new DownloadResponse(address, response, watchdog);
    } catch (cause) {
      watchdog.end();
      limits.signal.throwIfAborted();
      throw new RetryableError(
        networkError(address, watchdog.hasTimedOut ? IDLE_TIMEOUT : failedRequest(address), cause),
      );
    }
  }

  get status(): number {
    return this.#response.status;
  }

  /** Whether the file does not exist. */
  get isMissing(): boolean {
    return isMissing(this.#response, this.address);
  }

  header(name: string): string | null {
    return this.#response.headers.get(name);
  }

  /** Entity tag or date that identifies the file, if the page may read it. */
  get identity(): string | undefined {
    const name = this.header("x-linked-etag") ?? this.header("etag") ?? this.header("last-modified");
    return name?.replace(/^W\//, "");
  }

  /** Strong entity tag for `If-Range`; a weak one does not guarantee equal bytes. */
  get condition(): string | undefined {
    const etag = this.header("etag");
    return etag?.startsWith('"') ? etag : undefined;
  }

  /** Length of the body; unknown for a compressed transfer. */
  get length(): number | undefined {
    const length = this.header("content-length");
    return length === null || this.isCompressed ? undefined : Number(length);
  }

  get isCompressed(): boolean {
    return this.header("content-encoding") !== null;
  }

  /** Position of the range; other origins may hide it. */
  get range(): ContentRange | undefined {
    const parts = /^bytes (?:(\d+)-(\d+)|\*)\/(\d+|\*)$/.exec(this.header("content-range") ?? "");
    if (parts === null) return undefined;
    const [, first = 0, last = -1, total] = parts;
    return { first: Number(first), last: Number(last), total: total === "*" ? undefined : Number(total) };
  }

  /** The next bytes; `undefined` at the end. */
  async next(): Promise<Uint8Array | undefined> {
    this.#body ??= this.#response.body?.getReader();
    const body = this.#body;
    if (body === undefined) return undefined;
    try {
      const { value, done } = await this.#watchdog.guard(() => body.read());
      if (done) this.#watchdog.end();
      return value;
    } catch (cause) {
      this.#watchdog.end();
      this.#watchdog.signal.throwIfAborted();
      throw new RetryableError(
        networkError(this.address, this.#watchdog.hasTimedOut ? IDLE_TIMEOUT : CONNECTION_LOST, cause),
      );
    }
  }

  /** The whole body; `undefined` if it has more than `maxBytes`. */
  async readAll(maxBytes: number): Promise<Uint8Array<ArrayBuffer> | undefined> {
    const pieces: Uint8Array[] = [];
    let length = 0;
    for (;;) {
      const piece = await this.next();
      if (piece === undefined) break;
      length += piece.length;
      if (length > maxBytes) return this.cancel();
      pieces.push(piece);
    }
    // Of another origin the stated length may be that of a compressed transfer.
    if (this.length !== undefined && this.length !== length && !hidesHeaders(this.address)) {
      throw new RetryableError(sizeError(this.address, this.length, `${length}`));
    }
    const bytes = new Uint8Array(length);
    let filled = 0;
    for (const piece of pieces) {
      bytes.set(piece, filled);
      filled += piece.length;
    }
    return bytes;
  }

  /** Ends the request. */
  async cancel(): Promise<undefined> {
    this.#watchdog.end();
    const cancelled = this.#body?.cancel() ?? this.#response.body?.cancel();
    // A failed body rejects its cancellation with the same error.
    await cancelled?.catch(() => undefined);
  }
}

const CONNECTION_LOST = "the connection broke";
