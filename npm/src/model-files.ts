/** The files of one model, as the reader of checkpoints asks for them. */

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
  /** Releases connections and handles; a later read opens them anew. */
  close(): Promise<void>;
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

/** Some of a model's files; the others seem not to be there. */
export class FilteredFiles implements ModelFiles {
  readonly #files: ModelFiles;
  readonly #has: (name: string) => boolean | Promise<boolean>;

  constructor(files: ModelFiles, has: (name: string) => boolean | Promise<boolean>) {
    this.#files = files;
    this.#has = has;
  }

  async read(name: string, range: ByteRange | undefined): Promise<Uint8Array | undefined> {
    return (await this.#has(name)) ? this.#files.read(name, range) : undefined;
  }

  totalBytes(): number | undefined {
    return this.#files.totalBytes();
  }

  where(name: string): string {
    return this.#files.where(name);
  }

  close(): Promise<void> {
    return this.#files.close();
  }
}
