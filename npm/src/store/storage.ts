/** Where models are kept: what every kind of storage offers, and no more. */

/** The folders and files of `docs/hub.md`, in whatever this browser has. Paths begin at the store's top, with `/` between names. */
export interface Storage {
  readonly kind: "opfs" | "cache";
  /** The text of a small file (`manifest.json`, `refs.json`, `aliases.json`), `undefined` if there is none. */
  readText(path: string): Promise<string | undefined>;
  /** Replaces a small file, wholly or not at all. */
  writeText(path: string, text: string): Promise<void>;
  /** A file that is whole, to be read piece by piece; `undefined` if there is none. */
  open(path: string): Promise<Blob | undefined>;
  /** A file that comes: `FILE.part` and `FILE.chunks`, made where they are not. */
  openPartial(path: string): Promise<PartialFile>;
  /** Names in a folder, those of folders with `/` behind; empty if there is none. */
  list(path: string): Promise<string[]>;
  /** Removes a file or a folder with all in it; nothing happens if there is none. */
  remove(path: string): Promise<void>;
}

/** A file that comes, and what is known of it. It has one owner at a time, who holds the model's lock. */
export interface PartialFile {
  /** The lines of the journal that were written whole. */
  readonly lines: readonly string[];
  /** Bytes of `FILE.part` from `start` on, fewer where it ends. */
  read(start: number, end: number): Promise<Uint8Array>;
  /** Puts a whole chunk into its place, brings it to the disk, then appends `line` to the journal. `storage-full` if there is no room. */
  writeChunk(start: number, bytes: Uint8Array, line: string): Promise<void>;
  /** Appends a line alone. */
  appendLine(line: string): Promise<void>;
  /** Replaces the journal's lines; the bytes of the file stay. */
  rewrite(lines: readonly string[]): Promise<void>;
  /** Forgets all: file and journal are empty. */
  clear(): Promise<void>;
  /** Gives the file its name and removes the journal; the part is closed. */
  finish(): Promise<void>;
  /** Lets go of the file; what is in it stays. */
  close(): Promise<void>;
}

/** Runs `work` while no other tab or worker changes this model. Waits for its turn; an aborted signal ends the waiting with its reason. */
export type WithLock = <Result>(
  model: string,
  signal: AbortSignal,
  work: () => Promise<Result>,
) => Promise<Result>;
