/** A server's answer: what it says of a file, and its bytes as they come. */

import { Later, networkError, sizeError } from "./faults.js";

/** Where a part lies in its file. */
export interface ContentRange {
  readonly first: number;
  readonly last: number;
  /** Size of the whole file, where it is told. */
  readonly total: number | undefined;
}

interface Waiting {
  readonly controller: AbortController;
  readonly signal: AbortSignal;
  /** Milliseconds without a byte after which the connection counts as broken. */
  readonly silence: number;
}

/** See the module. Its end has to be read, or it has to be cancelled. */
export class Answer {
  /** What was asked for. */
  readonly address: string;
  readonly #response: Response;
  readonly #watch: Watch;
  #body: ReadableStreamDefaultReader<Uint8Array> | undefined;

  private constructor(address: string, response: Response, watch: Watch) {
    this.address = address;
    this.#response = response;
    this.#watch = watch;
  }

  /** Sends a request. What breaks is a {@link Later}, an aborted signal rejects with its reason. */
  static async from(address: string, request: RequestInit, waiting: Waiting): Promise<Answer> {
    const watch = new Watch(waiting);
    try {
      const { signal } = waiting.controller;
      const response = await watch.within(() => fetch(address, { ...request, signal }));
      return new Answer(address, response, watch);
    } catch (cause) {
      watch.end();
      waiting.signal.throwIfAborted();
      throw new Later(networkError(address, watch.isSilent ? SILENT : "the request failed", cause));
    }
  }

  get status(): number {
    return this.#response.status;
  }

  /** No such file. Development servers answer any unknown address with the application's own page. */
  get isMissing(): boolean {
    if (this.status === 404 || this.status === 410) return true;
    return this.#response.ok && (this.header("content-type") ?? "").startsWith("text/html");
  }

  header(name: string): string | null {
    return this.#response.headers.get(name);
  }

  /** What the file is known by, as far as the page may see it: if that is another later, so is the file. */
  get identity(): string | undefined {
    const name = this.header("x-linked-etag") ?? this.header("etag") ?? this.header("last-modified");
    return name?.replace(/^W\//, "");
  }

  /** What a part may be asked for on condition of: a weak etag does not say that the bytes are the same. */
  get condition(): string | undefined {
    const etag = this.header("etag");
    return etag?.startsWith('"') ? etag : undefined;
  }

  /** Bytes of the body. A compressed one has as many only while it travels. */
  get length(): number | undefined {
    const length = this.header("content-length");
    return length === null || this.isCompressed ? undefined : Number(length);
  }

  get isCompressed(): boolean {
    return this.header("content-encoding") !== null;
  }

  /** Other sites may hide it. */
  get range(): ContentRange | undefined {
    const parts = /^bytes (?:(\d+)-(\d+)|\*)\/(\d+|\*)$/.exec(this.header("content-range") ?? "");
    if (parts === null) return undefined;
    const [, first = 0, last = -1, total] = parts;
    return { first: Number(first), last: Number(last), total: total === "*" ? undefined : Number(total) };
  }

  /** The next bytes, `undefined` at the end. */
  async next(): Promise<Uint8Array | undefined> {
    this.#body ??= this.#response.body?.getReader();
    const body = this.#body;
    if (body === undefined) return undefined;
    try {
      const { value, done } = await this.#watch.within(() => body.read());
      if (done) this.#watch.end();
      return value;
    } catch (cause) {
      this.#watch.end();
      this.#watch.signal.throwIfAborted();
      throw new Later(networkError(this.address, this.#watch.isSilent ? SILENT : BROKEN, cause));
    }
  }

  /** The whole body, `undefined` if it has more bytes than `most`. */
  async all(most: number): Promise<Uint8Array<ArrayBuffer> | undefined> {
    const pieces: Uint8Array[] = [];
    let length = 0;
    for (;;) {
      const piece = await this.next();
      if (piece === undefined) break;
      length += piece.length;
      if (length > most) return this.cancel();
      pieces.push(piece);
    }
    if (this.length !== undefined && this.length !== length) {
      throw new Later(sizeError(this.address, this.length, `${length}`));
    }
    const bytes = new Uint8Array(length);
    let filled = 0;
    for (const piece of pieces) {
      bytes.set(piece, filled);
      filled += piece.length;
    }
    return bytes;
  }

  /** Ends the request, whatever comes still. */
  async cancel(): Promise<undefined> {
    this.#watch.end();
    const cancelled = this.#body?.cancel() ?? this.#response.body?.cancel();
    // A body that has failed already rejects its cancellation with the same error.
    await cancelled?.catch(() => undefined);
  }
}

const SILENT = "nothing came for too long";
const BROKEN = "the connection broke";

/** Ends a request that is aborted or silent. */
class Watch {
  readonly signal: AbortSignal;
  readonly #waiting: Waiting;
  readonly #abort = () => this.#waiting.controller.abort(this.signal.reason);
  isSilent = false;

  constructor(waiting: Waiting) {
    this.#waiting = waiting;
    this.signal = waiting.signal;
    this.signal.addEventListener("abort", this.#abort, { once: true });
    if (this.signal.aborted) this.#abort();
  }

  async within<Result>(work: () => Promise<Result>): Promise<Result> {
    const timer = setTimeout(() => {
      this.isSilent = true;
      this.#waiting.controller.abort();
    }, this.#waiting.silence);
    try {
      return await work();
    } finally {
      clearTimeout(timer);
    }
  }

  end(): void {
    this.signal.removeEventListener("abort", this.#abort);
  }
}
