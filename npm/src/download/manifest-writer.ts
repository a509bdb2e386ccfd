/** Writer of a folder's manifest during a download. */

import { type FileEntry, type Manifest, withFiles } from "../store/manifest.js";
import { writeManifest } from "../store/revisions.js";
import type { Storage } from "../store/storage.js";

/** The manifest, which is written again for each completed file. */
export class ManifestWriter {
  readonly #storage: Storage;
  readonly #folder: string;
  readonly #signal: AbortSignal;
  #manifest: Manifest;
  #written: Promise<void> = Promise.resolve();

  constructor(storage: Storage, folder: string, manifest: Manifest, signal: AbortSignal) {
    this.#storage = storage;
    this.#folder = folder;
    this.#manifest = manifest;
    this.#signal = signal;
  }

  get manifest(): Manifest {
    return this.#manifest;
  }

  /** Resolves when no write is pending. */
  get written(): Promise<void> {
    return this.#written;
  }

  /** Adds a completed file before it is renamed. A manifest that is complete already is not written. */
  async add(entry: FileEntry): Promise<void> {
    this.#manifest = withFiles(this.#manifest, [entry]);
    if (this.#manifest.complete) return;
    // Writes run one after the other, so that the last one stays.
    const written = this.#written.then(() => {
      this.#signal.throwIfAborted();
      return writeManifest(this.#storage, this.#folder, this.#manifest);
    });
    this.#written = written.catch(() => undefined);
    await written;
  }
}
