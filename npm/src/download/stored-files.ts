/** A model's files, as the reader of checkpoints asks for them: from the store, or while they come. */

import { SetunError } from "../errors.js";
import type { ByteRange, ModelFiles } from "../model-files.js";
import type { WholeRevision } from "../store/revisions.js";
import type { Storage } from "../store/storage.js";
import type { Run } from "./run.js";

/** Files that come: a read waits for its chunks. */
export class ComingFiles implements ModelFiles {
  readonly #run: Run;

  constructor(run: Run) {
    this.#run = run;
  }

  read(name: string, range: ByteRange | undefined): Promise<Uint8Array | undefined> {
    return this.#run.read(name, range);
  }

  totalBytes(): number {
    return this.#run.totalBytes;
  }

  where(name: string): string {
    return this.#run.where(name);
  }

  async close(): Promise<void> {}
}

/** Files of a model that is there whole. */
export class StoredFiles implements ModelFiles {
  readonly #storage: Storage;
  readonly #model: WholeRevision;
  readonly #blobs = new Map<string, Promise<Blob | undefined>>();

  constructor(storage: Storage, model: WholeRevision) {
    this.#storage = storage;
    this.#model = model;
  }

  async read(name: string, range: ByteRange | undefined): Promise<Uint8Array | undefined> {
    const entry = this.#model.manifest.files.find((file) => file.name === name);
    if (entry === undefined) return undefined;
    const { start, end } = range ?? { start: 0, end: entry.bytes };
    let blob = this.#blobs.get(name);
    if (blob === undefined) {
      blob = this.#storage.open(`${this.#model.folder}/${name}`);
      this.#blobs.set(name, blob);
    }
    return readBlob(await blob, name, start, end);
  }

  totalBytes(): number {
    return this.#model.manifest.files.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  where(name: string): string {
    return `${this.#model.folder}/${name} in the browser's store`;
  }

  async close(): Promise<void> {
    this.#blobs.clear();
  }
}

/** Bytes of a stored file, which somebody may have deleted meanwhile. */
export async function readBlob(
  blob: Blob | undefined,
  name: string,
  start: number,
  end: number,
): Promise<Uint8Array> {
  try {
    if (blob !== undefined) return new Uint8Array(await blob.slice(start, end).arrayBuffer());
  } catch (cause) {
    throw gone(name, cause);
  }
  throw gone(name);
}

/** A file is not there any more. */
export function gone(name: string, cause?: unknown): SetunError {
  const message = `${name} is not in the browser's store any more: load the model again`;
  return new SetunError("not-found", message, { cause });
}
