/** A model that is in the store whole. */

import type { LoadProgress } from "../messages.js";
import type { Beginning, OpenModel } from "../open-model.js";
import { sha256 } from "../store/digest.js";
import { chunkRange } from "../store/journal.js";
import type { FileEntry } from "../store/manifest.js";
import { modelText } from "../store/names.js";
import { removeRevision } from "../store/revisions.js";
import type { Storage, WithLock } from "../store/storage.js";
import type { Stored } from "./find-stored.js";
import { StoredFiles } from "./stored-files.js";

/** See the module. */
export class StoredModel implements OpenModel {
  readonly tellsProgress = true;
  onProgress: ((progress: LoadProgress) => void) | undefined;
  readonly #storage: Storage;
  readonly #withLock: WithLock;
  readonly #stored: Stored;

  constructor(storage: Storage, withLock: WithLock, stored: Stored) {
    this.#storage = storage;
    this.#withLock = withLock;
    this.#stored = stored;
  }

  async begin(): Promise<Beginning> {
    const { model, entry } = this.#stored;
    return { entry, files: () => new StoredFiles(this.#storage, model) };
  }

  ahead(): void {
    const { files } = this.#stored.model.manifest;
    const { entry } = this.#stored;
    const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
    const file = entry.layout === "file" ? entry.name : (files.at(-1)?.name ?? "");
    this.onProgress?.({ loadedBytes: bytes, totalBytes: bytes, file, fromStore: true });
  }

  async keep(): Promise<void> {}

  /** What the disk has damaged is removed, so that the next load brings it. */
  async refuse(): Promise<void> {
    const { id, folder, manifest } = this.#stored.model;
    const { signal } = new AbortController();
    await this.#withLock(modelText(id), signal, async () => {
      const good = await Promise.all(
        manifest.files.map((file) => this.#isGood(`${folder}/${file.name}`, file)),
      );
      if (!good.every(Boolean)) await removeRevision(this.#storage, folder);
    });
  }

  async close(): Promise<void> {}

  /** Whether a file's chunks are as they were when they came. */
  async #isGood(path: string, { bytes, chunkBytes, chunks }: FileEntry): Promise<boolean> {
    const blob = await this.#storage.open(path);
    for (const [chunk, digest] of chunks.entries()) {
      const { start, end } = chunkRange({ bytes, chunkBytes }, chunk);
      const part = await blob?.slice(start, end).arrayBuffer();
      if (part === undefined || (await sha256(new Uint8Array(part))) !== digest) return false;
    }
    return true;
  }
}
