/** One file on its way into the store: which chunks are there, who waits for which, and whether they are right. */

import { sha256 } from "../store/digest.js";
import { chunkCount, chunkLine, chunkRange, type Subject } from "../store/journal.js";
import type { Part } from "../store/storage.js";
import type { Answer } from "./answer.js";
import type { Begun } from "./begin.js";
import { bytesError } from "./faults.js";
import type { Http } from "./http.js";
import type { Wanted } from "./plan.js";
import { Queue } from "./queue.js";
import { type Heard, NoRanges, Remote } from "./remote.js";
import { readBlob } from "./stored-files.js";
import { receiveWhole } from "./whole.js";

/** Times that a chunk is read back wrong before the disk counts as one that keeps nothing. */
const MOST_LOSSES = 4;

/** See the module. */
export class FileDownload {
  readonly wanted: Wanted;
  readonly subject: Subject;
  readonly #part: Part;
  readonly #chunks: Map<number, string>;
  readonly #remote: Remote;
  readonly #http: Http;
  readonly #heard: Heard;
  readonly #signal: AbortSignal;
  /** Chunks that are asked for. */
  readonly #taken = new Set<number>();
  /** Chunks that were sent with other bytes than told: once is forgiven. */
  readonly #doubted = new Set<number>();
  /** Chunks that somebody waits for, and how many do. */
  readonly #awaited = new Map<number, number>();
  readonly #arrivals = new Queue();
  /** One at a time uses the part. */
  #last: Promise<unknown> = Promise.resolve();
  #closed: { readonly reason: unknown } | undefined;
  #whole: Promise<void> | undefined;
  /** The file, once it has its name. */
  #stored: Blob | undefined;
  #cursor = 0;

  constructor(
    http: Http,
    wanted: Wanted,
    { part, subject, chunks }: Begun,
    signal: AbortSignal,
    heard: Heard,
  ) {
    this.#http = http;
    this.wanted = wanted;
    this.subject = subject;
    this.#part = part;
    this.#chunks = chunks;
    this.#remote = new Remote(http, wanted);
    this.#signal = signal;
    this.#heard = heard;
  }

  /** Bytes of the chunks that are there. */
  get there(): number {
    const ranges = [...this.#chunks.keys()].map((chunk) => chunkRange(this.subject, chunk));
    return ranges.reduce((sum, { start, end }) => sum + end - start, 0);
  }

  /** Bytes of a range, once they are there. */
  async read(start: number, end: number): Promise<Uint8Array> {
    const { chunkBytes, bytes } = this.subject;
    const last = Math.min(end, bytes);
    for (let chunk = Math.floor(start / chunkBytes); chunk * chunkBytes < last; chunk += 1) {
      await this.#arrived(chunk, true);
    }
    return this.#alone(async () => {
      const stored = this.#stored;
      const to = Math.max(start, last);
      return stored === undefined
        ? this.#part.read(start, to)
        : readBlob(stored, this.wanted.name, start, to);
    });
  }

  /** A chunk to bring: one that somebody waits for, else with `ahead` the next that is missing. */
  take(ahead: boolean): number | undefined {
    // One that gives no parts would send the whole to each connection.
    if (this.#whole !== undefined || (!this.#remote.givesParts && this.#taken.size > 0)) return undefined;
    const isFree = (chunk: number) => !this.#chunks.has(chunk) && !this.#taken.has(chunk);
    const chunk = [...this.#awaited.keys()].find(isFree) ?? (ahead ? this.#missing(isFree) : undefined);
    if (chunk !== undefined) this.#taken.add(chunk);
    return chunk;
  }

  /** Whether some chunk is awaited that nobody brings. */
  get isAwaited(): boolean {
    return [...this.#awaited.keys()].some((chunk) => !this.#chunks.has(chunk) && !this.#taken.has(chunk));
  }

  /** Brings a chunk that was taken. */
  async bring(chunk: number): Promise<void> {
    try {
      const { start, end } = chunkRange(this.subject, chunk);
      const { content } = this.wanted;
      const bytes =
        content?.slice(start, end) ?? (await this.#remote.part(start, end, this.#signal, this.#heard));
      await this.keep(chunk, bytes, content === undefined);
    } catch (thrown) {
      if (!(thrown instanceof NoRanges)) throw thrown;
      await this.#wholeFrom(thrown.answer);
    } finally {
      this.#taken.delete(chunk);
    }
  }

  /** Puts a chunk into its place, if it is what was told. `isHeard` says that its bytes were counted. */
  async keep(chunk: number, bytes: Uint8Array<ArrayBuffer>, isHeard: boolean): Promise<void> {
    const digest = await sha256(bytes);
    const told = this.wanted.chunks?.digests[chunk];
    if (told !== undefined && told !== digest) {
      if (isHeard) this.#heard(-bytes.length);
      if (this.#doubted.has(chunk)) throw bytesError(this.wanted.address, [chunk], told, digest);
      this.#doubted.add(chunk);
      return;
    }
    const { start } = chunkRange(this.subject, chunk);
    const isNew = await this.#alone(async () => {
      // Where the whole comes after a server has given no part, other parts may still be under way.
      if (this.#chunks.has(chunk)) return false;
      await this.#part.put(start, bytes, chunkLine(chunk, digest));
      return true;
    });
    this.#signal.throwIfAborted();
    if (isHeard !== isNew) this.#heard(isNew ? bytes.length : -bytes.length);
    if (!isNew) return;
    this.#chunks.set(chunk, digest);
    this.#arrivals.wake();
  }

  /** The hash of a chunk that is there. */
  digest(chunk: number): string | undefined {
    return this.#chunks.get(chunk);
  }

  /** Gives the file its name; then it is read with `open`. */
  finish(open: () => Promise<Blob>): Promise<Blob> {
    return this.#alone(async () => {
      await this.#part.finish();
      this.#stored = await open();
      return this.#stored;
    });
  }

  /** Lets go of the part; what is in it stays, whatever comes still: it may be another owner's soon. */
  close(reason: unknown): Promise<void> {
    const closing = this.#alone(async () => {
      if (this.#stored === undefined) await this.#part.close();
    });
    this.#closed = { reason };
    this.#arrivals.fail(reason);
    return closing;
  }

  /** Appends a line to the journal. */
  note(line: string): Promise<void> {
    return this.#alone(() => this.#part.note(line));
  }

  /** Forgets what has come. */
  forget(): Promise<void> {
    return this.#alone(() => this.#part.clear());
  }

  #missing(isFree: (chunk: number) => boolean): number | undefined {
    const count = chunkCount(this.subject);
    for (let i = 0; i < count; i += 1) {
      const chunk = (this.#cursor + i) % count;
      if (isFree(chunk)) return chunk;
    }
    return undefined;
  }

  /** A chunk's bytes as they are kept. One that the disk has lost comes once more. */
  async readBack(chunk: number): Promise<Uint8Array> {
    for (let losses = 0; losses < MOST_LOSSES; losses += 1) {
      await this.#arrived(chunk, false);
      const { start, end } = chunkRange(this.subject, chunk);
      const bytes = await this.#alone(() => this.#part.read(start, end));
      this.#signal.throwIfAborted();
      if ((await sha256(bytes as Uint8Array<ArrayBuffer>)) === this.#chunks.get(chunk)) return bytes;
      this.#chunks.delete(chunk);
      this.#heard(start - end);
      this.#arrivals.wake();
    }
    throw new Error(`${this.wanted.name}: the browser's store gives other bytes than were written`);
  }

  /** Waits for a chunk; a reader has it brought, and those behind it after it. */
  async #arrived(chunk: number, isReader: boolean): Promise<void> {
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

  async #wholeFrom(answer: Answer): Promise<void> {
    const underWay = this.#whole;
    if (underWay !== undefined) {
      await answer.cancel();
      return underWay;
    }
    this.#whole = receiveWhole(this, this.#http, this.#remote, this.#signal, answer, this.#heard).finally(
      () => {
        this.#whole = undefined;
      },
    );
    await this.#whole;
  }

  /** Hears of every chunk that comes, or goes. */
  get arrivals(): Queue {
    return this.#arrivals;
  }

  #alone<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#closed !== undefined) return Promise.reject(this.#closed.reason);
    const result = this.#last.then(work);
    this.#last = result.catch(() => undefined);
    return result;
  }
}

/** The chunk to bring next: one that a reader waits for, else with `ahead` the first that is missing. */
export function nextJob(downloads: readonly FileDownload[], ahead: boolean) {
  for (const download of [...downloads.filter((one) => one.isAwaited), ...downloads]) {
    const chunk = download.take(ahead);
    if (chunk !== undefined) return { download, chunk };
  }
  return undefined;
}
