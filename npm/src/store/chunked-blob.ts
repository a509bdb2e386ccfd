/** A `Blob` of stored chunks, which is never in memory as a whole. */

/** Bytes `start..end` of a file. */
export interface Chunk {
  readonly start: number;
  readonly end: number;
}

/** Reads a chunk. */
export type ReadChunk = (chunk: Chunk) => Promise<Blob>;

/**
 * A reader that keeps the last chunk. Tensors are read one after the other, and each is a small part of a chunk, which
 * Firefox decrypts as a whole in private windows.
 */
export function keepLastChunk(read: ReadChunk): ReadChunk {
  let last: { readonly start: number; readonly blob: Promise<Blob> } | undefined;
  return async (chunk) => {
    if (last?.start !== chunk.start) last = { start: chunk.start, blob: read(chunk) };
    const { blob } = last;
    try {
      return await blob;
    } catch (thrown) {
      if (last?.blob === blob) last = undefined;
      throw thrown;
    }
  };
}

/** A `Blob` on the calling thread that reads its chunks on demand. */
export class ChunkedBlob extends Blob {
  readonly #chunks: readonly Chunk[];
  readonly #read: ReadChunk;
  readonly #start: number;
  readonly #end: number;

  /** Bytes `start..end` of contiguous chunks. */
  constructor(chunks: readonly Chunk[], read: ReadChunk, start = 0, end = chunks.at(-1)?.end ?? 0) {
    super();
    this.#chunks = chunks;
    this.#read = read;
    this.#start = start;
    this.#end = Math.max(start, end);
  }

  override get size(): number {
    return this.#end - this.#start;
  }

  override slice(start = 0, end = this.size): Blob {
    const at = (position: number) =>
      this.#start + (position < 0 ? Math.max(this.size + position, 0) : Math.min(position, this.size));
    return new ChunkedBlob(this.#chunks, this.#read, at(start), at(end));
  }

  override async arrayBuffer(): Promise<ArrayBuffer> {
    return (await this.bytes()).buffer;
  }

  override async text(): Promise<string> {
    return new TextDecoder().decode(await this.bytes());
  }

  override async bytes(): Promise<Uint8Array<ArrayBuffer>> {
    const bytes = new Uint8Array(this.size);
    for await (const { at, part } of this.#parts()) bytes.set(part, at - this.#start);
    return bytes;
  }

  override stream(): ReadableStream<Uint8Array<ArrayBuffer>> {
    const parts = this.#parts();
    return new ReadableStream({
      async pull(controller) {
        const { value, done } = await parts.next();
        if (done) controller.close();
        else controller.enqueue(value.part);
      },
    });
  }

  async *#parts(): AsyncGenerator<{ at: number; part: Uint8Array<ArrayBuffer> }, undefined> {
    for (const chunk of this.#chunks) {
      const [start, end] = [Math.max(chunk.start, this.#start), Math.min(chunk.end, this.#end)];
      if (start >= end) continue;
      const piece = (await this.#read(chunk)).slice(start - chunk.start, end - chunk.start);
      yield { at: start, part: new Uint8Array(await piece.arrayBuffer()) };
    }
  }
}
