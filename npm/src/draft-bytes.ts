/** Files of a model and of its draft model, which load as one. */

import type { LoadProgress, OnProgress } from "./load-progress.js";
import type { ModelBytes, ReadOperation } from "./model-bytes.js";
import type { ModelRequest } from "./protocol.js";
import { isDownload } from "./sources.js";
import { modelIdOf, modelIdText } from "./store/names.js";

/** Both read operations as one. */
export class ModelAndDraftBytes implements ReadOperation {
  onProgress: OnProgress | undefined;
  readonly #both: readonly ModelBytes[];
  /** The operation of the latest read. The engine reads one after the other, so a failure belongs to it. */
  #last: ModelBytes | undefined;

  constructor(model: ModelBytes, draft: ModelBytes) {
    this.#both = [model, draft];
    const reports = new Map<ModelBytes, LoadProgress>();
    for (const bytes of this.#both) {
      bytes.onRead = () => {
        this.#last = bytes;
      };
      bytes.onProgress = (progress) => {
        reports.set(bytes, progress);
        this.onProgress?.({
          phase: progress.phase,
          file: progress.file,
          ...sumProgress([...reports.values()]),
        });
      };
    }
  }

  get isAborted(): boolean {
    return this.#both.some(({ isAborted }) => isAborted);
  }

  abort(): void {
    for (const bytes of this.#both) bytes.abort();
  }

  async commit(): Promise<void> {
    for (const bytes of this.#both) await bytes.commit();
  }

  hasChanged(thrown: unknown): boolean {
    return this.#last?.hasChanged(thrown) ?? false;
  }

  async repair(thrown: unknown): Promise<boolean> {
    return (await this.#last?.repair(thrown)) ?? false;
  }

  async end(thrown?: unknown): Promise<void> {
    await Promise.all(this.#both.map((bytes) => bytes.end(bytes === this.#last ? thrown : undefined)));
  }

  originalError(error: unknown): unknown {
    return this.#last?.originalError(error) ?? error;
  }
}

/** Whether two models share a folder of the store, as files of one repository do. */
export async function shareStoreFolder(...models: readonly ModelRequest[]): Promise<boolean> {
  const folders = await Promise.all(
    models.map(async ({ source, fetchOptions: { store } }) => {
      return store && isDownload(source) ? modelIdText(await modelIdOf(source)) : undefined;
    }),
  );
  return folders[0] !== undefined && folders.every((folder) => folder === folders[0]);
}

/** Sum of both; the total is known only if both totals are. */
function sumProgress(
  reports: readonly LoadProgress[],
): Pick<LoadProgress, "loadedBytes" | "totalBytes" | "fromStore" | "damaged"> {
  const loadedBytes = reports.reduce((bytes, progress) => bytes + progress.loadedBytes, 0);
  const totalBytes = reports.reduce((bytes, progress) => bytes + (progress.totalBytes ?? Number.NaN), 0);
  const damaged = reports.flatMap((progress) => progress.damaged ?? []);
  return {
    loadedBytes,
    ...(damaged.length > 0 && { damaged }),
    ...(!Number.isNaN(totalBytes) && { totalBytes }),
    ...(reports.some(({ fromStore }) => fromStore !== undefined) && {
      fromStore: reports.every(({ fromStore }) => fromStore === true),
    }),
  };
}
