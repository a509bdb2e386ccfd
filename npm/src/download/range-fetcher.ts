/** Range requests of one file, which must not change between them. */

import { hidesHeaders } from "./answers.js";
import { FileChangedError, networkError, RetryableError, sizeError } from "./errors.js";
import { expectStatus, type HttpClient, lengthOfAll } from "./http.js";
import type { PlannedFile } from "./plan.js";
import type { DownloadResponse } from "./response.js";
import { RetryBudget } from "./retry.js";

/** Bytes from which an attempt counts as progress. */
const MIN_PROGRESS_BYTES = 64 << 10;

/** The server has no range support; its response is the full file. */
export class RangesUnsupported {
  readonly response: DownloadResponse;

  constructor(response: DownloadResponse) {
    this.response = response;
  }
}

/** Called with the number of arrived bytes; negative if they have to be sent again. */
export type OnBytes = (bytes: number) => void;

/** A chunk whose bytes arrive in order. */
export interface ArrivingChunk {
  readonly start: number;
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Number of the first bytes that are there. */
  filled: number;
}

/** Fetches ranges of a file, with retries. */
export class RangeFetcher {
  readonly #http: HttpClient;
  readonly #planned: PlannedFile;
  #identity: string | undefined;
  /** Whether a range response has arrived. Until then there is one request at a time. */
  givesParts = false;

  constructor(http: HttpClient, planned: PlannedFile) {
    this.#http = http;
    this.#planned = planned;
    this.#identity = planned.identity;
  }

  /**
   * Fetches the missing bytes of a chunk. A broken connection continues where it broke.
   *
   * @throws {RangesUnsupported} or {@link FileChangedError}
   */
  async fill(chunk: ArrivingChunk, signal: AbortSignal, onBytes: OnBytes): Promise<void> {
    const { start, bytes } = chunk;
    const attempts = new RetryBudget(this.#http.settings, signal);
    const enough = Math.min(MIN_PROGRESS_BYTES, Math.ceil(bytes.length / 8));
    while (chunk.filled < bytes.length) {
      const before = chunk.filled;
      try {
        const response = await this.#request(start + before, start + bytes.length, signal);
        for (;;) {
          const piece = await this.#next(response, bytes.length - chunk.filled);
          if (piece === undefined) break;
          bytes.set(piece, chunk.filled);
          chunk.filled += piece.length;
          onBytes(piece.length);
        }
        if (chunk.filled < bytes.length)
          throw new RetryableError(this.#wrongSize(bytes.length - before, chunk.filled - before));
      } catch (thrown) {
        if (chunk.filled - before >= enough) attempts.reset();
        await attempts.wait(thrown);
      }
    }
  }

  /** The response with the full file; `response` if it is there already. */
  async whole(signal: AbortSignal, response?: DownloadResponse): Promise<DownloadResponse> {
    const found = response ?? (await this.#http.send(this.#planned.address, {}, signal));
    await expectStatus(found, [200]);
    this.#checkIdentity(found);
    const { length, address } = found;
    if (length !== undefined && length !== this.#planned.bytes && !hidesHeaders(address)) {
      await found.cancel();
      throw this.otherSize(length);
    }
    if (found.isMissing) throw networkError(address, "received an HTML page instead of the file");
    return found;
  }

  /** Error of a wrong size: of the server if the size is pinned, else a changed file. */
  otherSize(found: number): Error {
    const { address, bytes, isPinned } = this.#planned;
    if (isPinned) return sizeError(address, bytes, `${found}`);
    return new FileChangedError(`${found} bytes, before ${bytes}`, { address, bytes: found });
  }

  async #request(start: number, end: number, signal: AbortSignal): Promise<DownloadResponse> {
    const { address, bytes, condition } = this.#planned;
    const isLast = end === bytes;
    // An open end on the last range makes servers state the size where the header is hidden.
    const request = { start, end: isLast ? undefined : end, ifRange: condition };
    const response = await this.#http.send(address, request, signal);
    try {
      await this.#checkResponse(response, start, end);
    } catch (thrown) {
      if (!(thrown instanceof RangesUnsupported)) await response.cancel();
      throw thrown;
    }
    this.givesParts = true;
    return response;
  }

  /** Checks that a response is a range of the same file. */
  async #checkResponse(response: DownloadResponse, start: number, end: number): Promise<void> {
    const { status, range, length } = response;
    const { bytes } = this.#planned;
    if (status === 416)
      throw this.#rangeError(range?.total ?? (await lengthOfAll(this.#http, response.address)));
    if (status === 200) {
      this.#checkIdentity(response);
      if (length !== undefined && length !== bytes && !hidesHeaders(response.address))
        throw this.otherSize(length);
      throw new RangesUnsupported(response);
    }
    await expectStatus(response, [206]);
    this.#checkIdentity(response);
    if (range?.total !== undefined && range.total !== bytes) throw this.otherSize(range.total);
    if (range !== undefined && (range.first !== start || range.last < range.first)) {
      throw new RetryableError(
        networkError(response.address, `expected bytes from ${start}, found bytes from ${range.first}`),
      );
    }
    if (length === undefined || length <= end - start) return;
    if (end === bytes && range === undefined) throw this.otherSize(start + length);
    throw new RetryableError(this.#wrongSize(end - start, length));
  }

  /** The next bytes of a range. More bytes than requested are an error. */
  async #next(response: DownloadResponse, maxBytes: number): Promise<Uint8Array | undefined> {
    const piece = await response.next();
    if (piece === undefined || piece.length <= maxBytes) return piece;
    await response.cancel();
    throw new RetryableError(sizeError(response.address, maxBytes, "more"));
  }

  #checkIdentity(response: DownloadResponse): void {
    const { identity } = response;
    if (this.#planned.isPinned === true || identity === undefined) return;
    const known = this.#identity;
    this.#identity ??= identity;
    // An entity tag and a date cannot be compared.
    const isSameKind = known?.startsWith('"') === identity.startsWith('"');
    if (known !== undefined && isSameKind && known !== identity) {
      throw new FileChangedError(`expected the entity tag ${known}, found ${identity}`);
    }
  }

  #rangeError(total: number | undefined): Error {
    if (total !== undefined && total !== this.#planned.bytes) return this.otherSize(total);
    return new FileChangedError("the file has become shorter");
  }

  #wrongSize(expected: number, found: number): ReturnType<typeof sizeError> {
    return sizeError(this.#planned.address, expected, `${found}`);
  }
}
