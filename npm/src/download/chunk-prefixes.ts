/** Beginnings of chunks: those in the store, and those that are arriving. */

import { type ChunkPrefix, chunkLine, prefixLine } from "../store/journal.js";
import { sha256 } from "../store/sha256.js";
import type { PartialFile } from "../store/storage.js";
import type { ArrivingChunk } from "./range-fetcher.js";

/** The chunks of a file that have arrived in part. */
export class ChunkPrefixes {
  readonly #partial: PartialFile;
  readonly #stored: Map<number, ChunkPrefix>;
  readonly #arriving = new Map<number, ArrivingChunk>();

  constructor(partial: PartialFile, stored: Map<number, ChunkPrefix>) {
    this.#partial = partial;
    this.#stored = stored;
  }

  /** Beginnings in the store. */
  get stored(): ReadonlyMap<number, ChunkPrefix> {
    return this.#stored;
  }

  /** The chunk `start..end` with its stored beginning, if the disk still has it. */
  async begin(chunk: number, start: number, end: number): Promise<ArrivingChunk> {
    const arriving = { start, bytes: new Uint8Array(end - start), filled: 0 };
    const known = this.#stored.get(chunk);
    if (known !== undefined) {
      const found = await this.#partial.read(start, start + known.bytes);
      if ((await sha256(found as Uint8Array<ArrayBuffer>)) === known.sha256) {
        arriving.bytes.set(found);
        arriving.filled = known.bytes;
      } else this.#stored.delete(chunk);
    }
    this.#arriving.set(chunk, arriving);
    return arriving;
  }

  /** Forgets a chunk that is stored or wrong. Returns its bytes so far. */
  end(chunk: number): number {
    const bytes = this.#arriving.get(chunk)?.filled ?? this.#stored.get(chunk)?.bytes ?? 0;
    this.#arriving.delete(chunk);
    this.#stored.delete(chunk);
    return bytes;
  }

  /** Forgets the beginnings in the store that nothing continues. Returns their bytes. */
  endStored(): number {
    const idle = [...this.#stored.keys()].filter((chunk) => !this.#arriving.has(chunk));
    return idle.reduce((sum, chunk) => sum + this.end(chunk), 0);
  }

  /** Stores what has arrived. `digests` are the known hashes of whole chunks. */
  async save(digests: readonly string[] | undefined): Promise<void> {
    for (const [chunk, { start, bytes, filled }] of this.#arriving) {
      if (filled <= (this.#stored.get(chunk)?.bytes ?? 0)) continue;
      const arrived = bytes.subarray(0, filled);
      const digest = await sha256(arrived);
      const isWhole = filled === bytes.length;
      if (isWhole && (digests?.[chunk] ?? digest) !== digest) continue;
      const line = isWhole ? chunkLine(chunk, digest) : prefixLine(chunk, { bytes: filled, sha256: digest });
      await this.#partial.writeChunk(start, arrived, line);
    }
  }
}
