/** A partial file in the Cache API. It has the chunks of the complete file, but no chunk list. */

import type { CacheFiles } from "./cache-files.js";
import { type Chunk, ChunkedBlob, keepLastChunk, type ReadChunk } from "./chunked-blob.js";
import { completeLines, lineBytes } from "./journal.js";
import type { PartialFile } from "./storage.js";
import { translateErrors } from "./storage-errors.js";

export class CachePartialFile implements PartialFile {
  readonly #files: CacheFiles;
  readonly #path: string;
  readonly #chunks: Map<number, Chunk>;
  #lines: readonly string[];
  #read: ReadChunk;
  /** Resolves after the last requested write of the journal. */
  #turn: Promise<unknown> = Promise.resolve();
  /** Removal of another file with this name, before the first change. */
  #alone: Promise<void> | undefined;

  private constructor(files: CacheFiles, path: string, chunks: readonly Chunk[], lines: readonly string[]) {
    this.#files = files;
    this.#path = path;
    this.#chunks = new Map(chunks.map((chunk) => [chunk.start, chunk]));
    this.#lines = lines;
    this.#read = this.#reader();
    // Without a journal the chunks are invalid.
    if (lines.length > 0) this.#alone = Promise.resolve();
  }

  static async take(files: CacheFiles, path: string): Promise<CachePartialFile> {
    const isComplete = await files.has(path);
    const chunks = isComplete ? [] : await files.comingChunks(path);
    const text = await files.readText(journalOf(path));
    const { lines } = completeLines(new TextEncoder().encode(text));
    // The first line describes the file, the others its chunks.
    const isSound = !isComplete && (chunks.length > 0 || lines.length === 1);
    return isSound && lines.length > 0
      ? new CachePartialFile(files, path, chunks, lines)
      : new CachePartialFile(files, path, [], []);
  }

  get lines(): readonly string[] {
    return this.#lines;
  }

  async read(start: number, end: number): Promise<Uint8Array> {
    return translateErrors("read", `${this.#path}.part`, () =>
      new ChunkedBlob(this.#inOrder(), this.#read).slice(start, end).bytes(),
    );
  }

  async writeChunk(start: number, bytes: Uint8Array, line: string): Promise<void> {
    await translateErrors("write", this.#path, async () => {
      await this.#removeOther();
      await this.#files.writeChunk(this.#path, start, bytes as Uint8Array<ArrayBuffer>);
    });
    this.#chunks.set(start, { start, end: start + bytes.length });
    this.#read = this.#reader();
    await this.appendLine(line);
  }

  async appendLine(line: string): Promise<void> {
    await this.#write(() => [...this.#lines, line]);
  }

  async rewrite(lines: readonly string[]): Promise<void> {
    await this.#write(() => [...lines]);
  }

  async clear(): Promise<void> {
    await this.rewrite([]);
    await translateErrors("write", this.#path, () =>
      this.#files.remove((path) => path === `${this.#path}.part`),
    );
    this.#chunks.clear();
    this.#read = this.#reader();
  }

  async finish(): Promise<void> {
    await this.#turn;
    await translateErrors("write", this.#path, async () => {
      await this.#removeOther();
      await this.#files.writeChunks(this.#path, this.#inOrder());
      await this.#files.remove((path) => path === journalOf(this.#path));
    });
  }

  async close(): Promise<void> {
    await this.#turn;
  }

  /** Replaces the journal, after pending writes. */
  async #write(next: () => readonly string[]): Promise<void> {
    const turn = this.#turn.then(() =>
      translateErrors("write", this.#path, async () => {
        await this.#removeOther();
        const lines = next();
        await this.#files.writeText(journalOf(this.#path), new TextDecoder().decode(lineBytes(lines)));
        this.#lines = lines;
      }),
    );
    this.#turn = turn.catch(() => undefined);
    await turn;
  }

  #removeOther(): Promise<void> {
    this.#alone ??= this.#files.remove((path) => path === this.#path || path === `${this.#path}.part`);
    return this.#alone;
  }

  /** A reader without a kept chunk. */
  #reader(): ReadChunk {
    return keepLastChunk(({ start }) => this.#files.readChunk(this.#path, start));
  }

  #inOrder(): Chunk[] {
    return [...this.#chunks.values()].sort((a, b) => a.start - b.start);
  }
}

function journalOf(path: string): string {
  return `${path}.chunks`;
}
