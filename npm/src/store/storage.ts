/** Interface of a storage for models. */

/** The part of a storage that finds models. */
export interface ReadableStorage {
  /** Text of a small file (`manifest.json`, `refs.json`, `aliases.json`); `undefined` if it does not exist. */
  readText(path: string): Promise<string | undefined>;
  /** Size of a complete file; `undefined` if it does not exist. */
  open(path: string): Promise<{ readonly size: number } | undefined>;
  /** Names in a folder, those of folders with `/` at the end; empty if it does not exist. */
  list(path: string): Promise<string[]>;
}

/** The folders and files of `docs/hub.md`. Paths are relative to the store and separated by `/`. */
export interface Storage extends ReadableStorage {
  readonly kind: "opfs" | "cache";
  /** Replaces a small file atomically. */
  writeText(path: string, text: string): Promise<void>;
  /** A complete file; `undefined` if it does not exist. */
  open(path: string): Promise<Blob | undefined>;
  /** A complete file, to be read piece by piece; `undefined` if it does not exist. */
  openFile(path: string): Promise<StoredFile | undefined>;
  /** A partial file, `FILE.part` and `FILE.chunks`, created if necessary. */
  openPartial(path: string): Promise<PartialFile>;
  /** Removes a file or a folder with its contents, if it exists. */
  remove(path: string): Promise<void>;
}

/** A complete file. It may be removed while it is open. */
export interface StoredFile {
  /** Bytes `start..end`, fewer at its end. The next read may overwrite them. */
  read(start: number, end: number): Promise<Uint8Array>;
}

/** A partial file and its journal. It has one owner, which holds the model's lock. */
export interface PartialFile {
  /** Complete lines of the journal. */
  readonly lines: readonly string[];
  /** Bytes of `FILE.part` from `start`, fewer at its end. */
  read(start: number, end: number): Promise<Uint8Array>;
  /** Writes a chunk to the disk, then appends `line` to the journal. `storage-full` without room. */
  writeChunk(start: number, bytes: Uint8Array, line: string): Promise<void>;
  /** Appends a line to the journal. */
  appendLine(line: string): Promise<void>;
  /** Replaces the journal. The file stays. */
  rewrite(lines: readonly string[]): Promise<void>;
  /** Empties the file and its journal. */
  clear(): Promise<void>;
  /** Renames the file, removes the journal, and closes both. */
  finish(): Promise<void>;
  /** Closes the file. Its contents stay. */
  close(): Promise<void>;
}

/** Runs `work` with a lock on a model across tabs and workers. An aborted signal ends the wait with its reason. */
export type WithLock = <Result>(
  model: string,
  signal: AbortSignal,
  work: () => Promise<Result>,
) => Promise<Result>;
