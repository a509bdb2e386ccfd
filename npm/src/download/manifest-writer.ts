/** What is known of a folder's files while they come: its manifest, which is written anew with each that is whole. */

import { type FileEntry, type Manifest, withFiles } from "../store/manifest.js";
import { writeManifest } from "../store/revisions.js";
import type { Storage } from "../store/storage.js";

/** See the module. */
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

  /** Resolves once no manifest is being written. */
  get written(): Promise<void> {
    return this.#written;
  }

  /** Adds a file that is about to get its name. A complete manifest tells of those that have one, so it is not written. */
  async add(entry: FileEntry): Promise<void> {
    this.#manifest = withFiles(this.#manifest, [entry]);
    if (this.#manifest.complete) return;
    // One text after another, so that the last is the one that stays.
    const written = this.#written.then(() => {
      this.#signal.throwIfAborted();
      return writeManifest(this.#storage, this.#folder, this.#manifest);
    });
    this.#written = written.catch(() => undefined);
    await written;
  }
}
