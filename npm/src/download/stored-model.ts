/** Files of the store for the checkpoint reader: of complete models, and of downloads. */

import { SetunError } from "../errors.js";
import type { OnProgress } from "../load-progress.js";
import type { ByteRange, ModelFiles } from "../model-files.js";
import type { ModelContents, OpenModel } from "../open-model.js";
import { BlobFile } from "../store/blob-file.js";
import { type Damage, findWrongBytes, removeDamaged } from "../store/damage.js";
import { modelIdText } from "../store/names.js";
import type { CompleteRevision } from "../store/revisions.js";
import type { Storage, StoredFile, WithLock } from "../store/storage.js";
import type { StoredMatch } from "./lookup.js";
import type { ModelDownload } from "./model-download.js";
import type { SharedFiles } from "./shared-weights.js";

/** Files of a download. A read waits for its chunks. */
export class DownloadingFiles implements ModelFiles {
  readonly #download: ModelDownload;

  constructor(download: ModelDownload) {
    this.#download = download;
  }

  read(name: string, range: ByteRange | undefined): Promise<Uint8Array | undefined> {
    return this.#download.read(name, range);
  }

  async expect(): Promise<void> {}

  totalBytes(): number {
    return this.#download.totalBytes;
  }

  where(name: string): string {
    return this.#download.where(name);
  }

  async close(): Promise<void> {}
}

/** Files of a complete stored model. */
export class StoredFiles implements ModelFiles {
  readonly #storage: Storage;
  readonly #model: CompleteRevision;
  readonly #shared: SharedFiles;
  readonly #files = new Map<string, Promise<StoredFile | undefined>>();

  /** `shared` are the files that are not in the model's folder. */
  constructor(storage: Storage, model: CompleteRevision, shared: SharedFiles = new Map()) {
    this.#storage = storage;
    this.#model = model;
    this.#shared = shared;
  }

  async read(name: string, range: ByteRange | undefined): Promise<Uint8Array | undefined> {
    const entry = this.#model.manifest.files.find((file) => file.name === name);
    if (entry === undefined) return undefined;
    const { start, end } = range ?? { start: 0, end: entry.bytes };
    let file = this.#files.get(name);
    if (file === undefined) {
      const shared = this.#shared.get(name);
      file = shared
        ? Promise.resolve(new BlobFile(shared))
        : this.#storage.openFile(`${this.#model.folder}/${name}`);
      this.#files.set(name, file);
    }
    return readFile(await file, name, start, end);
  }

  async expect(): Promise<void> {}

  totalBytes(): number {
    return this.#model.manifest.files.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  where(name: string): string {
    return `${this.#model.folder}/${name} in the browser's store`;
  }

  async close(): Promise<void> {
    this.#files.clear();
  }
}

/** Bytes of a stored file, which may have been deleted meanwhile. */
export async function readFile(
  file: StoredFile | undefined,
  name: string,
  start: number,
  end: number,
): Promise<Uint8Array> {
  try {
    if (file !== undefined) return await file.read(start, end);
  } catch (cause) {
    throw missingFileError(name, cause);
  }
  throw missingFileError(name);
}

/** The error of a deleted file. */
export function missingFileError(name: string, cause?: unknown): SetunError {
  const message = `${name} is no longer in the browser's store; load the model again`;
  return new SetunError("not-found", message, { cause });
}

/** A complete stored model as an {@link OpenModel}. */
export class StoredModel implements OpenModel {
  readonly reportsProgress = false;
  readonly readPhase = "packing";
  readonly fromStore = true;
  readonly damages = [];
  onProgress: OnProgress | undefined;
  readonly #storage: Storage;
  readonly #withLock: WithLock;
  readonly #stored: StoredMatch;

  constructor(storage: Storage, withLock: WithLock, stored: StoredMatch) {
    this.#storage = storage;
    this.#withLock = withLock;
    this.#stored = stored;
  }

  async open(): Promise<ModelContents> {
    return { entry: this.#stored.entry, files: () => this.files() };
  }

  files(): StoredFiles {
    return new StoredFiles(this.#storage, this.#stored.model, this.#stored.shared);
  }

  prefetch(): void {}

  async commit(): Promise<void> {}

  /** Compares all files with their hashes, and removes those that differ. */
  async discard(signal = new AbortController().signal): Promise<readonly Damage[]> {
    const { model } = this.#stored;
    const [storage, totalBytes] = [this.#storage, this.files().totalBytes()];
    let loadedBytes = 0;
    const onRead = (bytes: number, file: string) => {
      loadedBytes += bytes;
      this.onProgress?.({ phase: "checking", loadedBytes, totalBytes, file, fromStore: true });
    };
    return this.#withLock(modelIdText(model.id), signal, async () => {
      const damages = await findWrongBytes(storage, model, signal, onRead);
      await removeDamaged(storage, model.folder, damages);
      return damages;
    });
  }

  async close(): Promise<void> {}
}
