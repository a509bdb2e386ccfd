/** A partial file in the origin private file system. */

import { completeLines, lineBytes } from "./journal.js";
import type { PartialFile } from "./storage.js";
import { isMissing, translateErrors } from "./storage-errors.js";
import { openSync, readSync, removeFile, renameFile, type SyncFile, writeSync } from "./sync-files.js";

/** Maximum length of a journal. */
const JOURNAL_BYTES = 32 << 20;

export class OpfsPartialFile implements PartialFile {
  readonly #folder: FileSystemDirectoryHandle;
  readonly #name: string;
  /** Path in the store, for messages. */
  readonly #path: string;
  readonly #file: SyncFile;
  readonly #journal: SyncFile;
  #lines: string[] = [];
  /** Position of the next line. */
  #end = 0;

  private constructor(folder: FileSystemDirectoryHandle, path: string, file: SyncFile, journal: SyncFile) {
    this.#folder = folder;
    this.#name = path.slice(path.lastIndexOf("/") + 1);
    this.#path = path;
    this.#file = file;
    this.#journal = journal;
  }

  /** Opens the file and its journal for exclusive access. */
  static async take(folder: FileSystemDirectoryHandle, path: string): Promise<OpfsPartialFile> {
    const name = path.slice(path.lastIndexOf("/") + 1);
    const wasThere = await hasFile(folder, `${name}.part`);
    const file = await openSync(folder, `${name}.part`);
    let journal: SyncFile | undefined;
    try {
      journal = await openSync(folder, `${name}.chunks`);
      const part = new OpfsPartialFile(folder, path, file, journal);
      // A journal without its file is invalid.
      await part.#readJournal(wasThere ? Math.min(await journal.getSize(), JOURNAL_BYTES) : 0);
      return part;
    } catch (thrown) {
      await journal?.close();
      await file.close();
      throw thrown;
    }
  }

  get lines(): readonly string[] {
    return this.#lines;
  }

  async read(start: number, end: number): Promise<Uint8Array> {
    return translateErrors("read", `${this.#path}.part`, () => readSync(this.#file, start, end));
  }

  async writeChunk(start: number, bytes: Uint8Array, line: string): Promise<void> {
    await translateErrors("write", this.#path, async () => {
      await writeSync(this.#file, this.#path, start, bytes);
      await this.#file.flush();
    });
    await this.appendLine(line);
  }

  async appendLine(line: string): Promise<void> {
    await translateErrors("write", this.#path, async () => {
      const [start, bytes] = [this.#end, lineBytes([line])];
      this.#end += bytes.length;
      try {
        await writeSync(this.#journal, this.#path, start, bytes);
      } catch (thrown) {
        // The next line must not continue a partial one.
        this.#end = Math.min(this.#end, start);
        await this.#journal.truncate(start);
        throw thrown;
      }
      this.#lines.push(line);
    });
  }

  async rewrite(lines: readonly string[]): Promise<void> {
    const kept = [...lines];
    await translateErrors("write", this.#path, async () => {
      await this.#journal.truncate(0);
      this.#lines = [];
      this.#end = 0;
    });
    for (const line of kept) await this.appendLine(line);
    await translateErrors("write", this.#path, () => this.#journal.flush());
  }

  async clear(): Promise<void> {
    // The journal first: without it the chunks are invalid.
    await this.rewrite([]);
    await translateErrors("write", this.#path, async () => {
      await this.#file.truncate(0);
      await this.#file.flush();
    });
  }

  async finish(): Promise<void> {
    await translateErrors("write", this.#path, async () => {
      await this.#file.flush();
      await this.close();
      await renameFile(this.#folder, `${this.#name}.part`, this.#name);
      await removeFile(this.#folder, `${this.#name}.chunks`);
    });
  }

  async close(): Promise<void> {
    await this.#file.close();
    await this.#journal.close();
  }

  async #readJournal(size: number): Promise<void> {
    const { lines, bytes } = completeLines(readSync(this.#journal, 0, size));
    this.#lines = lines;
    this.#end = bytes;
    await this.#journal.truncate(bytes);
    // Without a journal the chunks are invalid.
    if (lines.length === 0) await this.#file.truncate(0);
  }
}

async function hasFile(folder: FileSystemDirectoryHandle, name: string): Promise<boolean> {
  try {
    await folder.getFileHandle(name);
    return true;
  } catch (thrown) {
    if (isMissing(thrown)) return false;
    throw thrown;
  }
}
