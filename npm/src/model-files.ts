/** The files of one model, as the reader of checkpoints asks for them. */

import { SetunError } from "./errors.js";
import { HandleFiles } from "./handle-files.js";
import type { ModelSource } from "./sources.js";
import { UrlFiles } from "./url-files.js";

/** Bytes `start..end` of a file. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/** Where the reader's bytes come from. */
export interface ModelFiles {
  /** A range, or without one the whole file; `undefined` if there is no such file. Short only where the file ends. */
  read(name: string, range: ByteRange | undefined): Promise<Uint8Array | undefined>;
  /** Bytes of all files opened so far, while known. */
  totalBytes(): number | undefined;
  /** Where a file was looked for, for messages. */
  where(name: string): string;
  /** Releases connections and handles. */
  close(): Promise<void>;
}

/** Opens what a browser can open. */
export function openFiles(source: ModelSource, signal: AbortSignal): ModelFiles {
  switch (source.kind) {
    case "url":
      return new UrlFiles(source, signal);
    case "blobs":
      return new BlobFiles(source.blobs);
    case "handle":
      return new HandleFiles(source);
    case "hub":
      throw new SetunError("not-found", `hf:${source.model}: names of hubs cannot be resolved here`);
  }
}

/** Files in memory, or files that a user dropped or chose: read piece by piece, never as a whole. */
export class BlobFiles implements ModelFiles {
  readonly #blobs: ReadonlyMap<string, Blob>;
  readonly #opened = new Set<string>();

  constructor(blobs: ReadonlyMap<string, Blob>) {
    this.#blobs = blobs;
  }

  async read(name: string, range: ByteRange | undefined): Promise<Uint8Array | undefined> {
    const blob = this.#blobs.get(name);
    if (blob === undefined) return undefined;
    this.#opened.add(name);
    const part = range === undefined ? blob : blob.slice(range.start, range.end);
    return new Uint8Array(await part.arrayBuffer());
  }

  totalBytes(): number {
    return [...this.#opened].reduce((sum, name) => sum + (this.#blobs.get(name)?.size ?? 0), 0);
  }

  where(name: string): string {
    return `${name} (among ${[...this.#blobs.keys()].join(", ")})`;
  }

  async close(): Promise<void> {}
}
