/** A response body, read on demand. */

import { failedRequest, hidesHeaders, isMissing } from "./download/answers.js";
import { IDLE_TIMEOUT, RequestWatchdog } from "./download/watchdog.js";
import { SetunError } from "./errors.js";

/** Options of a stream. */
export interface StreamOptions {
  readonly signal: AbortSignal;
  /** Milliseconds without a byte after which the server counts as silent. */
  readonly idleTimeout: number;
  readonly headers: Record<string, string>;
}

/** A streamed file. Without a reader the browser stops receiving. */
export class UrlStream {
  readonly #url: URL;
  readonly #body: ReadableStreamDefaultReader<Uint8Array>;
  readonly #watchdog: RequestWatchdog;
  /** Received bytes that are not read yet. */
  #pending: Uint8Array = new Uint8Array(0);
  #position: number;
  #ended = false;
  /** Length of the file, if known. */
  readonly #length: number | undefined;

  private constructor(url: URL, response: Response, start: number, watchdog: RequestWatchdog) {
    this.#url = url;
    this.#watchdog = watchdog;
    this.#body = (response.body ?? new Blob([]).stream()).getReader();
    this.#position = response.status === 206 ? start : 0;
    this.#length = fileLength(response, this.#position);
  }

  /**
   * Requests a file from byte `start`; `undefined` if it does not exist. A server without range support sends it from
   * 0.
   */
  static async open(
    url: URL,
    start: number,
    { signal, idleTimeout, headers: baseHeaders }: StreamOptions,
  ): Promise<UrlStream | undefined> {
    const headers = start > 0 ? { ...baseHeaders, range: `bytes=${start}-` } : baseHeaders;
    const controller = new AbortController();
    const watchdog = new RequestWatchdog({ controller, signal, idleTimeout });
    const response = await request(url, { headers, signal: controller.signal }, watchdog);
    const missing = isMissing(response, url.href);
    if (response.ok && !missing) return new UrlStream(url, response, start, watchdog);
    watchdog.end();
    await response.body?.cancel().catch(() => undefined);
    if (missing) return undefined;
    throw new SetunError("network", `${url}: the server answered ${response.status}`);
  }

  /** Position of the next byte. */
  get position(): number {
    return this.#position;
  }

  /** Length of the file, if plausible: a compressed transfer states a smaller one. */
  get totalBytes(): number | undefined {
    return this.#length !== undefined && this.#length >= this.#position ? this.#length : undefined;
  }

  /** The next `length` bytes, fewer at the end of the file. */
  async read(length: number): Promise<Uint8Array> {
    const bytes = new Uint8Array(length);
    let filled = 0;
    while (filled < length && (await this.#fill())) {
      const piece = this.#take(length - filled);
      bytes.set(piece, filled);
      filled += piece.length;
    }
    return bytes.subarray(0, filled);
  }

  /** All remaining bytes. */
  async readAll(): Promise<Uint8Array> {
    const pieces: Uint8Array[] = [];
    while (await this.#fill()) pieces.push(this.#take(this.#pending.length));
    const bytes = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
    let filled = 0;
    for (const piece of pieces) {
      bytes.set(piece, filled);
      filled += piece.length;
    }
    return bytes;
  }

  /** Skips to byte `position`. */
  async skipTo(position: number): Promise<void> {
    while (this.#position < position && (await this.#fill())) this.#take(position - this.#position);
  }

  /** Ends the request. A complete one ends normally, so that browsers cache it. */
  async close(): Promise<void> {
    try {
      if (this.#position === this.#length) await this.#fill();
    } finally {
      this.#watchdog.end();
      // A failed body rejects its cancellation with the same error.
      await this.#body.cancel().catch(() => undefined);
    }
  }

  /** Waits for bytes; `false` at the end of the file. */
  async #fill(): Promise<boolean> {
    while (this.#pending.length === 0 && !this.#ended) {
      const { done, value } = await this.#nextChunk();
      this.#ended = done;
      if (value !== undefined) this.#pending = value;
    }
    if (this.#pending.length === 0) this.#checkLength();
    return this.#pending.length > 0;
  }

  #take(maxBytes: number): Uint8Array {
    const piece = this.#pending.subarray(0, maxBytes);
    this.#pending = this.#pending.subarray(piece.length);
    this.#position += piece.length;
    return piece;
  }

  async #nextChunk(): Promise<{ done: boolean; value?: Uint8Array | undefined }> {
    try {
      return await this.#watchdog.guard(() => this.#body.read());
    } catch (cause) {
      this.#watchdog.signal.throwIfAborted();
      if (this.#watchdog.hasTimedOut)
        throw new SetunError("network", `${this.#url}: ${IDLE_TIMEOUT}`, { cause });
      throw this.#truncated(cause);
    }
  }

  #checkLength(): void {
    // Of another origin the stated length may be that of a compressed transfer. Browsers reject a body that breaks off.
    if (this.#length === undefined || hidesHeaders(this.#url.href)) return;
    if (this.#position < this.#length) throw this.#truncated(undefined);
  }

  #truncated(cause: unknown): SetunError {
    const expected = this.#length === undefined ? "more" : `${this.#length} bytes`;
    const message = `${this.#url}: the download ended after ${this.#position} bytes, expected ${expected}`;
    return new SetunError("truncated", message, { cause });
  }
}

/** Fetches, distinguishing network failures from an abort. */
async function request(url: URL, options: RequestInit, watchdog: RequestWatchdog): Promise<Response> {
  try {
    return await watchdog.guard(() => fetch(url, options));
  } catch (cause) {
    watchdog.end();
    watchdog.signal.throwIfAborted();
    const why = watchdog.hasTimedOut ? IDLE_TIMEOUT : failedRequest(url.href);
    throw new SetunError("network", `${url}: ${why}`, { cause });
  }
}

function fileLength(response: Response, start: number): number | undefined {
  const length = response.headers.get("content-length");
  if (length === null || response.headers.get("content-encoding") !== null) return undefined;
  return start + Number(length);
}
