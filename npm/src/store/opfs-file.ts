/** A complete file in the origin private file system, read synchronously. */

import type { StoredFile } from "./storage.js";
import { openSyncToRead, readSync } from "./sync-files.js";

/** Reads of this many bytes and more share a buffer: to allocate one takes longer than to read. */
const SHARED_BYTES = 1 << 20;

export class OpfsFile implements StoredFile {
  readonly #file: FileSystemFileHandle;
  #buffer = new Uint8Array();

  constructor(file: FileSystemFileHandle) {
    this.#file = file;
  }

  /** The file is open during the read alone, so that another tab can remove it. */
  async read(start: number, end: number): Promise<Uint8Array> {
    const sync = await openSyncToRead(this.#file);
    try {
      return readSync(sync, start, end, this.#bufferOf(end - start));
    } finally {
      await sync.close();
    }
  }

  #bufferOf(length: number): Uint8Array<ArrayBuffer> {
    if (length < SHARED_BYTES) return new Uint8Array(length);
    if (length > this.#buffer.length) this.#buffer = new Uint8Array(length);
    return this.#buffer.subarray(0, length);
  }
}
