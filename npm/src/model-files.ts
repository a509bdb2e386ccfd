/** Interface of a model's files for the checkpoint reader. */

/** Bytes `start..end` of a file. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/** A source of files. */
export interface ModelFiles {
  /**
   * A range of a file, or the whole file. `undefined` if it does not exist; shorter only at its end. Where it is a
   * mebibyte or more, the next such read may overwrite it.
   */
  read(name: string, range: ByteRange | undefined): Promise<Uint8Array | undefined>;
  /** Names files that are read later, so that {@link totalBytes} counts them. Those that do not exist count nothing. */
  expect(names: readonly string[]): Promise<void>;
  /** Bytes of all opened and expected files, if known. */
  totalBytes(): number | undefined;
  /** Location of a file, for messages. */
  where(name: string): string;
  /** Releases connections and handles. A later read opens them again. */
  close(): Promise<void>;
}

/** Files in memory, or chosen by the user. They are read in pieces. */
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

  async expect(names: readonly string[]): Promise<void> {
    for (const name of names) this.#opened.add(name);
  }

  totalBytes(): number {
    return [...this.#opened].reduce((sum, name) => sum + (this.#blobs.get(name)?.size ?? 0), 0);
  }

  where(name: string): string {
    return `${name} (among ${[...this.#blobs.keys()].join(", ")})`;
  }

  async close(): Promise<void> {}
}

/** A subset of a model's files. */
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

  expect(names: readonly string[]): Promise<void> {
    return this.#files.expect(names);
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
