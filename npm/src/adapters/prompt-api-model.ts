/** The model behind `LanguageModel`: where it comes from, and how far its load is. */

import type { LoadProgress } from "../load-progress.js";
import type { AdapterModel } from "./core.js";
import type { Availability, ModelSource, SessionDefaults } from "./prompt-api-types.js";

/** One model for all sessions. */
export class SharedModel {
  readonly #source: ModelSource;
  readonly defaults: SessionDefaults;
  readonly #listeners = new Set<(share: number) => void>();
  #loading: Promise<AdapterModel> | undefined;
  #loaded: AdapterModel | undefined;

  constructor(source: ModelSource, defaults: SessionDefaults) {
    this.#source = source;
    this.defaults = defaults;
    if (typeof source !== "function") this.#loaded = source;
  }

  get loaded(): AdapterModel | undefined {
    return this.#loaded;
  }

  get availability(): Availability {
    if (this.#loaded !== undefined) return "available";
    return this.#loading === undefined ? "downloadable" : "downloading";
  }

  /** The model, loaded once. `listener` gets the share that is loaded. A failed load is tried again the next time. */
  async load(listener: (share: number) => void): Promise<AdapterModel> {
    if (this.#loaded !== undefined) return this.#loaded;
    this.#listeners.add(listener);
    try {
      this.#loading ??= this.#start();
      return await this.#loading;
    } finally {
      this.#listeners.delete(listener);
    }
  }

  async #start(): Promise<AdapterModel> {
    try {
      const load = this.#source as Exclude<ModelSource, AdapterModel>;
      this.#loaded = await load({ onProgress: (progress) => this.#report(progress) });
      return this.#loaded;
    } finally {
      this.#loading = undefined;
    }
  }

  #report({ phase, loadedBytes, totalBytes }: LoadProgress): void {
    if (phase !== "downloading" || !totalBytes) return;
    for (const listener of this.#listeners) listener(Math.min(1, loadedBytes / totalBytes));
  }
}
