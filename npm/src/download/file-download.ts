/** The download of one file into the store: its chunks, the readers that wait for them, and their hashes. */

import { SetunError } from "../errors.js";
import { BlobFile } from "../store/blob-file.js";
import { chunkCount, chunkLine, chunkRange, downloadedBytes, type JournalHeader } from "../store/journal.js";
import { sha256 } from "../store/sha256.js";
import type { PartialFile } from "../store/storage.js";
import { ChunkPrefixes } from "./chunk-prefixes.js";
import { bytesError } from "./errors.js";
import { fetchFull } from "./full-fetch.js";
import type { HttpClient } from "./http.js";
import type { PlannedFile } from "./plan.js";
import { type OnBytes, RangeFetcher, RangesUnsupported } from "./range-fetcher.js";
import type { DownloadResponse } from "./response.js";
import type { ResumedPart } from "./resume.js";
import { readFile } from "./stored-model.js";
import { Waiters } from "./waiters.js";

/** Maximum number of chunks that may be read back wrong from the disk. */
const MAX_CHUNK_LOSSES = 4;

/** A file with its journal of chunks. Readers wait for the chunks that they need. */
export class FileDownload {
  readonly planned: PlannedFile;
  readonly header: JournalHeader;
  readonly #partial: PartialFile;
  readonly #chunks: Map<number, string>;
  readonly #prefixes: ChunkPrefixes;
  readonly #fetcher: RangeFetcher;
  readonly #http: HttpClient;
  readonly #onBytes: OnBytes;
  readonly #signal: AbortSignal;
  /** Chunks with a request. */
  readonly #claimed = new Set<number>();
  /** Chunks that arrived with a wrong hash once. A second time is an error. */
  readonly #mismatched = new Set<number>();
  /** Chunks that readers wait for, with the number of readers. */
  readonly #awaited = new Map<number, number>();
  readonly #arrivals = new Waiters();
  /** Operations on the partial file run one after the other. */
  #queue: Promise<unknown> = Promise.resolve();
  #closed: { readonly reason: unknown } | undefined;
  #isReset = false;
  #fullFetch: Promise<void> | undefined;
  /** The complete file. */
  #stored: Blob | undefined;
  #cursor = 0;

  constructor(
    http: HttpClient,
    planned: PlannedFile,
    { part, header, chunks, prefixes }: ResumedPart,
    signal: AbortSignal,
    onBytes: OnBytes,
  ) {
    this.#http = http;
    this.planned = planned;
    this.header = header;
    this.#partial = part;
    this.#chunks = chunks;
    this.#prefixes = new ChunkPrefixes(part, prefixes);
    this.#fetcher = new RangeFetcher(http, planned);
    this.#signal = signal;
    this.#onBytes = onBytes;
  }

  /** Bytes of the stored chunks and of beginnings. */
  get downloadedBytes(): number {
    return downloadedBytes({
      header: this.header,
      chunks: this.#chunks,
      prefixes: this.#prefixes.stored,
    });
  }

  /** Bytes of a range, when its chunks have arrived. */
  async read(start: number, end: number): Promise<Uint8Array> {
    const { chunkBytes, bytes } = this.header;
    const queue = Math.min(end, bytes);
    for (let chunk = Math.floor(start / chunkBytes); chunk * chunkBytes < queue; chunk += 1) {
      await this.#waitForChunk(chunk, true);
    }
    return this.#exclusive(async () => {
      const stored = this.#stored;
      const to = Math.max(start, queue);
      return stored === undefined
        ? this.#partial.read(start, to)
        : readFile(new BlobFile(stored), this.planned.name, start, to);
    });
  }

  /** Claims a chunk for a request: one with waiting readers, else with `prefetch` the next missing one. */
  claimChunk(prefetch: boolean): number | undefined {
    // A server without range support would send the whole file on each connection.
    if (this.#fullFetch !== undefined || (!this.#fetcher.givesParts && this.#claimed.size > 0))
      return undefined;
    const isFree = (chunk: number) => !this.#chunks.has(chunk) && !this.#claimed.has(chunk);
    const chunk =
      [...this.#awaited.keys()].find(isFree) ?? (prefetch ? this.#nextMissing(isFree) : undefined);
    if (chunk !== undefined) this.#claimed.add(chunk);
    return chunk;
  }

  /** Whether a reader waits for a chunk without a request. */
  get isAwaited(): boolean {
    return [...this.#awaited.keys()].some((chunk) => !this.#chunks.has(chunk) && !this.#claimed.has(chunk));
  }

  /** Requests a claimed chunk. */
  async fetchChunk(chunk: number): Promise<void> {
    try {
      const { start, end } = chunkRange(this.header, chunk);
      const { content } = this.planned;
      const bytes = content?.slice(start, end) ?? (await this.#arrive(chunk, start, end));
      await this.storeChunk(chunk, bytes, content === undefined);
    } catch (thrown) {
      if (!(thrown instanceof RangesUnsupported)) throw thrown;
      // The full file brings these bytes again.
      this.#onBytes(-this.#prefixes.end(chunk) - this.#prefixes.endStored());
      await this.#fetchFullFrom(thrown.response);
    } finally {
      this.#claimed.delete(chunk);
    }
  }

  /** Bytes of a chunk: its stored beginning, and the requested rest. */
  async #arrive(chunk: number, start: number, end: number): Promise<Uint8Array<ArrayBuffer>> {
    const known = this.#prefixes.stored.get(chunk)?.bytes ?? 0;
    const arriving = await this.#exclusive(() => this.#prefixes.begin(chunk, start, end));
    if (arriving.filled < known) this.#onBytes(-known);
    await this.#fetcher.fill(arriving, this.#signal, this.#onBytes);
    return arriving.bytes;
  }

  /** Stores a chunk if its hash is right. `isCounted` says that its bytes are counted as progress. */
  async storeChunk(chunk: number, bytes: Uint8Array<ArrayBuffer>, isCounted: boolean): Promise<void> {
    const digest = await sha256(bytes);
    const expected = this.planned.chunks?.digests[chunk];
    if (expected !== undefined && expected !== digest) {
      if (isCounted) this.#onBytes(-bytes.length);
      this.#prefixes.end(chunk);
      if (this.#mismatched.has(chunk)) throw bytesError(this.planned.address, [chunk], expected, digest);
      this.#mismatched.add(chunk);
      return;
    }
    const { start } = chunkRange(this.header, chunk);
    const isNew = await this.#exclusive(async () => {
      // After a fallback to the full file, range requests may still be pending.
      const isStored = this.#chunks.has(chunk);
      if (!isStored) await this.#partial.writeChunk(start, bytes, chunkLine(chunk, digest));
      this.#prefixes.end(chunk);
      return !isStored;
    });
    this.#signal.throwIfAborted();
    if (isCounted !== isNew) this.#onBytes(isNew ? bytes.length : -bytes.length);
    if (!isNew) return;
    this.#chunks.set(chunk, digest);
    this.#arrivals.wake();
  }

  /** Hash of a stored chunk. */
  digest(chunk: number): string | undefined {
    return this.#chunks.get(chunk);
  }

  /** Renames the complete file. `open` opens it for readers. */
  finish(open: () => Promise<Blob>): Promise<Blob> {
    return this.#exclusive(async () => {
      await this.#partial.finish();
      this.#stored = await open();
      return this.#stored;
    });
  }

  /** Stores what has arrived, and closes the partial file. Later writes fail, since another download may own it. */
  close(reason: unknown): Promise<void> {
    const isFull = reason instanceof SetunError && reason.code === "storage-full";
    const closing = this.#exclusive(async () => {
      if (this.#stored !== undefined) return;
      // Bytes that cannot be stored are requested again.
      if (!this.#isReset && !isFull)
        await this.#prefixes.save(this.planned.chunks?.digests).catch(() => undefined);
      await this.#partial.close();
    });
    this.#closed = { reason };
    this.#arrivals.fail(reason);
    return closing;
  }

  /** Appends a line to the journal. */
  appendLine(line: string): Promise<void> {
    return this.#exclusive(() => this.#partial.appendLine(line));
  }

  /** Deletes all chunks. */
  reset(): Promise<void> {
    this.#isReset = true;
    return this.#exclusive(() => this.#partial.clear());
  }

  #nextMissing(isFree: (chunk: number) => boolean): number | undefined {
    const count = chunkCount(this.header);
    for (let i = 0; i < count; i += 1) {
      const chunk = (this.#cursor + i) % count;
      if (isFree(chunk)) return chunk;
    }
    return undefined;
  }

  /** Reads a stored chunk and verifies its hash. A chunk that the disk has lost is downloaded again. */
  async readVerified(chunk: number): Promise<Uint8Array> {
    for (let losses = 0; losses < MAX_CHUNK_LOSSES; losses += 1) {
      await this.#waitForChunk(chunk, false);
      const { start, end } = chunkRange(this.header, chunk);
      const bytes = await this.#exclusive(() => this.#partial.read(start, end));
      this.#signal.throwIfAborted();
      if ((await sha256(bytes as Uint8Array<ArrayBuffer>)) === this.#chunks.get(chunk)) return bytes;
      this.#chunks.delete(chunk);
      this.#onBytes(start - end);
      this.#arrivals.wake();
    }
    throw new Error(`${this.planned.name}: the browser's store returns wrong bytes`);
  }

  /** Waits for a chunk. A reader also requests it, and sets where prefetching continues. */
  async #waitForChunk(chunk: number, isReader: boolean): Promise<void> {
    if (isReader) this.#cursor = chunk;
    if (this.#chunks.has(chunk)) return;
    if (isReader) this.#awaited.set(chunk, (this.#awaited.get(chunk) ?? 0) + 1);
    try {
      this.#arrivals.wake();
      while (!this.#chunks.has(chunk)) await this.#arrivals.next();
    } finally {
      const others = (this.#awaited.get(chunk) ?? 1) - 1;
      if (isReader && others > 0) this.#awaited.set(chunk, others);
      else if (isReader) this.#awaited.delete(chunk);
    }
  }

  async #fetchFullFrom(response: DownloadResponse): Promise<void> {
    const underWay = this.#fullFetch;
    if (underWay !== undefined) {
      await response.cancel();
      return underWay;
    }
    this.#fullFetch = fetchFull(
      this,
      this.#http,
      this.#fetcher,
      this.#signal,
      response,
      this.#onBytes,
    ).finally(() => {
      this.#fullFetch = undefined;
    });
    await this.#fullFetch;
  }

  /** Notifies of each stored or lost chunk. */
  get arrivals(): Waiters {
    return this.#arrivals;
  }

  #exclusive<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#closed !== undefined) return Promise.reject(this.#closed.reason);
    const result = this.#queue.then(work);
    this.#queue = result.catch(() => undefined);
    return result;
  }
}

/** The next chunk to request: one with waiting readers, else with `prefetch` the first missing one. */
export function nextChunkJob(downloads: readonly FileDownload[], prefetch: boolean) {
  for (const download of [...downloads.filter((one) => one.isAwaited), ...downloads]) {
    const chunk = download.claimChunk(prefetch);
    if (chunk !== undefined) return { download, chunk };
  }
  return undefined;
}
