/** Opening a source: streamed, stored, or downloaded into the store. */

import { credentials, HttpClient, probeOnce } from "./download/http.js";
import { openHubFiles } from "./download/plan-hub.js";
import { DEFAULT_SETTINGS } from "./download/settings.js";
import { HandleFiles } from "./handle-files.js";
import type { LoadPhase, OnProgress } from "./load-progress.js";
import { BlobFiles, type ModelFiles } from "./model-files.js";
import type { ModelEntry } from "./model-layout.js";
import type { ModelSource } from "./sources.js";
import type { Damage } from "./store/damage.js";
import { UrlFiles } from "./url-files.js";

/** Fetch options of a model. */
export interface FetchOptions {
  /** Whether downloads are stored. */
  readonly store: boolean;
  /** Whether a stored model is compared with its hashes. */
  readonly verify?: boolean;
  /** Whether large files are shared with other sites. */
  readonly crossOriginStorage?: boolean;
  /** Concurrent requests of a stored download. */
  readonly connections?: number;
  /** Hub endpoint and access token. */
  readonly endpoint?: string;
  readonly token?: string;
  /** How a GGUF file's tokenizer splits text. */
  readonly pretokenizer?: string;
}

/** An opened source. */
export interface OpenModel {
  /** The files from their beginning. After a change they are new ones. */
  open(): Promise<ModelContents>;
  /** Continues the download without a reader. */
  prefetch(): void;
  /** Resolves when everything to be stored is complete, verified and named. */
  commit(): Promise<void>;
  /** Removes invalid files from the store. Returns those that were damaged there, which can be downloaded again. */
  discard(): Promise<readonly Damage[]>;
  /** Ends the download. */
  close(): Promise<void>;
  /** Called as bytes arrive, while {@link reportsProgress}. */
  onProgress: OnProgress | undefined;
  /** Whether this model reports progress itself; otherwise its reader does. */
  readonly reportsProgress: boolean;
  /** Phase of its reader's reports. */
  readonly readPhase: LoadPhase;
  /** Whether it was stored before. */
  readonly fromStore: boolean;
  /** Stored files that were damaged and are downloaded again. */
  readonly damages: readonly Damage[];
}

/** What the reader opens, and its files. */
export interface ModelContents {
  readonly entry: ModelEntry;
  files(): ModelFiles;
}

/**
 * Opens a source, and reports that it waits. Aborting the signal ends it and all its reads. `damages` are known of its
 * stored files.
 */
export type OpenSource = (
  source: ModelSource,
  fetchOptions: FetchOptions,
  signal: AbortSignal,
  onProgress?: OnProgress,
  damages?: readonly Damage[],
) => Promise<OpenModel>;

/** Opens a source whose files are streamed, not stored. */
export const openStreamed: OpenSource = async (source, fetchOptions, signal) => {
  if (source.kind === "handle") return new StreamedModel(source, () => new HandleFiles(source), "packing");
  if (source.kind === "blobs") {
    return new StreamedModel(source, () => new BlobFiles(source.blobs), "packing");
  }
  const http = new HttpClient(DEFAULT_SETTINGS, signal, credentials(source, fetchOptions));
  if (source.kind === "url") {
    const headers = /^https?:/.test(source.url) ? http.authorization(source.url) : {};
    const measure = async (_: string, address: string) => (await probeOnce(http, address))?.bytes;
    return new StreamedModel(source, () => new UrlFiles(source, signal, { headers }, measure));
  }
  const { entry, open } = await openHubFiles(source, http);
  return new StreamedModel(entry, open);
};

/** Files that are read on demand. */
export class StreamedModel implements OpenModel {
  readonly reportsProgress = false;
  readonly readPhase: LoadPhase;
  readonly fromStore = false;
  readonly damages = [];
  onProgress = undefined;
  readonly #entry: ModelEntry;
  readonly #files: () => ModelFiles;

  constructor({ layout, name }: ModelEntry, files: () => ModelFiles, readPhase: LoadPhase = "downloading") {
    this.#entry = { layout, name };
    this.#files = files;
    this.readPhase = readPhase;
  }

  async open(): Promise<ModelContents> {
    return { entry: this.#entry, files: this.#files };
  }

  prefetch(): void {}

  async commit(): Promise<void> {}

  async discard(): Promise<readonly Damage[]> {
    return [];
  }

  async close(): Promise<void> {}
}
