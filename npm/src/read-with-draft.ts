/** A model's bytes and those of the draft beside it, which are read by turns, as if they were one's. */

import type { LoadProgress } from "./messages.js";
import type { BeingRead, ModelBytes } from "./read-model.js";

/** What is true of either is true of both. */
export class WithDraft implements BeingRead {
  onProgress: ((progress: LoadProgress) => void) | undefined;
  readonly #both: readonly ModelBytes[];
  /** What a failure tells of. */
  #last: ModelBytes | undefined;

  constructor(model: ModelBytes, draft: ModelBytes) {
    this.#both = [model, draft];
    const told = new Map<ModelBytes, LoadProgress>();
    for (const bytes of this.#both) {
      bytes.onRead = () => {
        this.#last = bytes;
      };
      bytes.onProgress = (progress) => {
        told.set(bytes, progress);
        this.onProgress?.({ ...progress, ...sum([...told.values()]) });
      };
    }
  }

  get isAborted(): boolean {
    return this.#both.some(({ isAborted }) => isAborted);
  }

  abort(): void {
    for (const bytes of this.#both) bytes.abort();
  }

  async keep(): Promise<void> {
    for (const bytes of this.#both) await bytes.keep();
  }

  hasChanged(thrown: unknown): boolean {
    return this.#both.some((bytes) => bytes.hasChanged(thrown));
  }

  async end(thrown?: unknown): Promise<void> {
    await Promise.all(this.#both.map((bytes) => bytes.end(bytes === this.#last ? thrown : undefined)));
  }

  explain(error: unknown): unknown {
    return this.#last?.explain(error) ?? error;
  }
}

/** Bytes of all; the total only where all tell it. */
function sum(told: readonly LoadProgress[]): Pick<LoadProgress, "loadedBytes" | "totalBytes" | "fromStore"> {
  const loadedBytes = told.reduce((bytes, progress) => bytes + progress.loadedBytes, 0);
  const totalBytes = told.reduce((bytes, progress) => bytes + (progress.totalBytes ?? Number.NaN), 0);
  return {
    loadedBytes,
    ...(!Number.isNaN(totalBytes) && { totalBytes }),
    ...(told.some(({ fromStore }) => fromStore !== undefined) && {
      fromStore: told.every(({ fromStore }) => fromStore === true),
    }),
  };
}
