/** Download of a whole file, for servers without range requests. */

import { chunkCount, chunkRange } from "../store/journal.js";
import { sha256 } from "../store/sha256.js";
import { hidesHeaders } from "./answers.js";
import { FileChangedError, RetryableError, sizeError } from "./errors.js";
import type { FileDownload } from "./file-download.js";
import type { HttpClient } from "./http.js";
import type { OnBytes, RangeFetcher } from "./range-fetcher.js";
import type { DownloadResponse } from "./response.js";
import { RetryBudget } from "./retry.js";

/** Downloads the file from the start. Chunks that are stored already are compared, not written. */
export async function fetchFull(
  file: FileDownload,
  { settings }: HttpClient,
  fetcher: RangeFetcher,
  signal: AbortSignal,
  first: DownloadResponse,
  onBytes: OnBytes,
): Promise<void> {
  const attempts = new RetryBudget(settings, signal);
  let response: DownloadResponse | undefined = first;
  for (;;) {
    const before = file.downloadedBytes;
    try {
      const whole = await fetcher.whole(signal, response);
      return await new FullFetch(file, fetcher, whole, onBytes).receive();
    } catch (thrown) {
      if (file.downloadedBytes > before) attempts.reset();
      await attempts.wait(thrown);
    }
    response = undefined;
  }
}

class FullFetch {
  readonly #file: FileDownload;
  readonly #fetcher: RangeFetcher;
  readonly #response: DownloadResponse;
  readonly #onBytes: OnBytes;
  #pending = new Uint8Array(0) as Uint8Array;

  constructor(file: FileDownload, fetcher: RangeFetcher, response: DownloadResponse, onBytes: OnBytes) {
    this.#file = file;
    this.#fetcher = fetcher;
    this.#response = response;
    this.#onBytes = onBytes;
  }

  async receive(): Promise<void> {
    const { header } = this.#file;
    const count = chunkCount(header);
    try {
      for (let chunk = 0; chunk < count; chunk += 1) await this.#receiveChunk(chunk);
      let more = this.#pending.length;
      for (
        let piece = await this.#response.next();
        piece !== undefined;
        piece = await this.#response.next()
      ) {
        more += piece.length;
      }
      if (more > 0) throw this.#fetcher.otherSize(header.bytes + more);
    } finally {
      await this.#response.cancel();
    }
  }

  async #receiveChunk(chunk: number): Promise<void> {
    const { header } = this.#file;
    const { start, end } = chunkRange(header, chunk);
    const stored = this.#file.digest(chunk);
    const bytes = new Uint8Array(end - start);
    let filled = 0;
    try {
      while (filled < bytes.length) {
        const piece = await this.#next(bytes.length - filled);
        if (piece === undefined) throw this.#ended(start + filled);
        bytes.set(piece, filled);
        filled += piece.length;
        if (stored === undefined) this.#onBytes(piece.length);
      }
    } catch (thrown) {
      if (stored === undefined) this.#onBytes(-filled);
      throw thrown;
    }
    if (stored === undefined) return this.#file.storeChunk(chunk, bytes, true);
    if ((await sha256(bytes)) !== stored) throw new FileChangedError(`chunk ${chunk} has changed`);
  }

  /** Error of a file with fewer bytes. Where a server's size may be of a compressed transfer, those are all. */
  #ended(found: number): Error {
    const { header, planned } = this.#file;
    if (hidesHeaders(planned.address)) return this.#fetcher.otherSize(found);
    return new RetryableError(sizeError(planned.address, header.bytes, `${found}`));
  }

  async #next(maxBytes: number): Promise<Uint8Array | undefined> {
    if (this.#pending.length === 0) {
      const piece = await this.#response.next();
      if (piece === undefined) return undefined;
      this.#pending = piece;
    }
    const piece = this.#pending.subarray(0, maxBytes);
    this.#pending = this.#pending.subarray(piece.length);
    return piece;
  }
}
