/** A complete file that is a blob. */

import type { StoredFile } from "./storage.js";

export class BlobFile implements StoredFile {
  readonly #blob: Blob;

  constructor(blob: Blob) {
    this.#blob = blob;
  }

  async read(start: number, end: number): Promise<Uint8Array> {
    return new Uint8Array(await this.#blob.slice(start, end).arrayBuffer());
  }
}
