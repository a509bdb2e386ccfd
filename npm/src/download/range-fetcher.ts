/** A file on its server: asked for in parts, each of which has to be of the same file. */

import { FileChangedError, networkError, RetryableError, sizeError } from "./errors.js";
import { expectStatus, type HttpClient } from "./http.js";
import type { PlannedFile } from "./plan.js";
import type { DownloadResponse } from "./response.js";
import { RetryBudget } from "./retry.js";

/** Bytes that make an attempt one that brought something. */
const MIN_PROGRESS_BYTES = 64 << 10;

/** The server gives no parts of the file: the answer has all of it, from its beginning. */
export class RangesUnsupported {
  readonly response: DownloadResponse;

  constructor(response: DownloadResponse) {
    this.response = response;
  }
}

/** Hears of bytes as they come; of fewer than none where they have to come again. */
export type OnBytes = (bytes: number) => void;

/** See the module. */
export class RangeFetcher {
  readonly #http: HttpClient;
  readonly #planned: PlannedFile;
  #identity: string | undefined;
  /** Whether it has given a part; until then one request at a time is enough. */
  givesParts = false;

  constructor(http: HttpClient, planned: PlannedFile) {
    this.#http = http;
    this.#planned = planned;
    this.#identity = planned.identity;
  }

  /** Bytes `start..end`. A connection that breaks is taken up where it broke. @throws {NoRanges} or {@link FileChangedError} */
  async part(
    start: number,
    end: number,
    signal: AbortSignal,
    onBytes: OnBytes,
  ): Promise<Uint8Array<ArrayBuffer>> {
    const bytes = new Uint8Array(end - start);
    const attempts = new RetryBudget(this.#http.settings, signal);
    const enough = Math.min(MIN_PROGRESS_BYTES, Math.ceil(bytes.length / 8));
    let filled = 0;
    while (filled < bytes.length) {
      const before = filled;
      try {
        const response = await this.#request(start + filled, end, signal);
        for (;;) {
          const piece = await this.#next(response, bytes.length - filled);
          if (piece === undefined) break;
          bytes.set(piece, filled);
          filled += piece.length;
          onBytes(piece.length);
        }
        if (filled < bytes.length)
          throw new RetryableError(this.#wrongSize(end - start - before, filled - before));
      } catch (thrown) {
        if (!(thrown instanceof RetryableError)) onBytes(-filled);
        if (filled - before >= enough) attempts.reset();
        await attempts.wait(thrown);
      }
    }
    return bytes;
  }

  /** The whole file from its beginning, for which `answer` may be there already. */
  async whole(signal: AbortSignal, response?: DownloadResponse): Promise<DownloadResponse> {
    const found = response ?? (await this.#http.send(this.#planned.address, {}, signal));
    await expectStatus(found, [200]);
    this.#checkIdentity(found);
    const { length, address } = found;
    if (length !== undefined && length !== this.#planned.bytes) {
      await found.cancel();
      throw this.otherSize(length);
    }
    if (found.isMissing) throw networkError(address, "a web page came in its place");
    return found;
  }

  /** The file has another size than was told: where a list told it, the server is wrong. */
  otherSize(found: number): Error {
    const { address, bytes, isPinned } = this.#planned;
    if (isPinned) return sizeError(address, bytes, `${found}`);
    return new FileChangedError(`${found} bytes, before ${bytes}`, { address, bytes: found });
  }

  async #request(start: number, end: number, signal: AbortSignal): Promise<DownloadResponse> {
    const { address, bytes, condition } = this.#planned;
    const isLast = end === bytes;
    // Of the last part the end is left open: it tells the size where other sites hide it.
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

  /** Finds out whether an answer is a part of the same file. */
  async #checkResponse(response: DownloadResponse, start: number, end: number): Promise<void> {
    const { status, range, length } = response;
    const { bytes } = this.#planned;
    if (status === 416) throw this.#rangeError(range?.total);
    if (status === 200) {
      this.#checkIdentity(response);
      if (length !== undefined && length !== bytes) throw this.otherSize(length);
      throw new RangesUnsupported(response);
    }
    await expectStatus(response, [206]);
    this.#checkIdentity(response);
    if (range?.total !== undefined && range.total !== bytes) throw this.otherSize(range.total);
    if (range !== undefined && (range.first !== start || range.last < range.first)) {
      throw new RetryableError(
        networkError(response.address, `bytes from ${range.first} came, wanted from ${start}`),
      );
    }
    if (length === undefined || length <= end - start) return;
    if (end === bytes && range === undefined) throw this.otherSize(start + length);
    throw new RetryableError(this.#wrongSize(end - start, length));
  }

  /** The next bytes of a part; that more come than were asked for is an error. */
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
    // Where an etag was hidden the date was taken, and the two are not to be compared.
    const isSameKind = known?.startsWith('"') === identity.startsWith('"');
    if (known !== undefined && isSameKind && known !== identity) {
      throw new FileChangedError(`known as ${identity}, before as ${known}`);
    }
  }

  #rangeError(total: number | undefined): Error {
    if (total !== undefined && total !== this.#planned.bytes) return this.otherSize(total);
    return new FileChangedError("it ends before bytes that it had");
  }

  #wrongSize(expected: number, found: number): ReturnType<typeof sizeError> {
    return sizeError(this.#planned.address, expected, `${found}`);
  }
}
