/** A model's bytes and those of the draft beside it, which are read by turns, as if they were one's. */

import type { LoadProgress, WantedModel } from "./messages.js";
import type { BeingRead, ModelBytes } from "./read-model.js";
import { isDownload } from "./sources.js";
import { modelOf, modelText } from "./store/names.js";

/** Ends, and is kept, as one. */
export class WithDraft implements BeingRead {
  onProgress: ((progress: LoadProgress) => void) | undefined;
  readonly #both: readonly ModelBytes[];
  /** Read from last: the engine reads one after the other, so that a failure is this one's. */
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
        this.onProgress?.({ file: progress.file, ...sum([...told.values()]) });
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
    return this.#last?.hasChanged(thrown) ?? false;
  }

  async end(thrown?: unknown): Promise<void> {
    await Promise.all(this.#both.map((bytes) => bytes.end(bytes === this.#last ? thrown : undefined)));
  }

  explain(error: unknown): unknown {
    return this.#last?.explain(error) ?? error;
  }
}

/** Whether two models have one folder in the store, as files of one repository do. */
export async function areKeptTogether(...models: readonly WantedModel[]): Promise<boolean> {
  const folders = await Promise.all(
    models.map(async ({ source, coming: { store } }) => {
      return store && isDownload(source) ? modelText(await modelOf(source)) : undefined;
    }),
  );
  return folders[0] !== undefined && folders.every((folder) => folder === folders[0]);
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
