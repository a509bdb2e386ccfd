/** From a source to its files, whether they are kept, stored already, or read as they come. */

import { credentials, HttpClient } from "./download/http.js";
import { openHubFiles } from "./download/plan-hub.js";
import { DEFAULT_SETTINGS } from "./download/settings.js";
import { HandleFiles } from "./handle-files.js";
import { BlobFiles, type ModelFiles } from "./model-files.js";
import type { ModelEntry } from "./model-layout.js";
import type { LoadProgress } from "./protocol.js";
import type { ModelSource } from "./sources.js";
import { UrlFiles } from "./url-files.js";

/** How a model's files come. */
export interface FetchOptions {
  /** Whether they are kept in the browser's store. */
  readonly store: boolean;
  /** Requests at once for files that are kept. */
  readonly connections?: number;
  /** A hub, and what it is told by whom it is asked. */
  readonly endpoint?: string;
  readonly token?: string;
}

/** A model of which it is known what there is to read. */
export interface OpenModel {
  /** Files to be read from their beginnings, and which of them to open. After a change they are others. */
  open(): Promise<ModelContents>;
  /** What was read is to go on coming although nobody reads it. */
  prefetch(): void;
  /** Resolves once all that is to be kept is whole, checked and named. */
  commit(): Promise<void>;
  /** What was read is no model. */
  discard(): Promise<void>;
  /** Ends what is under way. */
  close(): Promise<void>;
  /** Told as bytes arrive, where that is not when they are read. */
  onProgress: ((progress: LoadProgress) => void) | undefined;
  /** Whether {@link onProgress} is told. */
  readonly reportsProgress: boolean;
}

/** What a reader begins with. */
export interface ModelContents {
  readonly entry: ModelEntry;
  files(): ModelFiles;
}

/** Opens a source. Aborting the signal ends it, and all that comes of it. */
export type OpenSource = (
  source: ModelSource,
  fetchOptions: FetchOptions,
  signal: AbortSignal,
) => Promise<OpenModel>;

/** Opens a source whose files are read as they come, and not kept. */
export const openStreamed: OpenSource = async (source, fetchOptions, signal) => {
  if (source.kind === "handle") return new StreamedModel(source, () => new HandleFiles(source));
  if (source.kind === "blobs") return new StreamedModel(source, () => new BlobFiles(source.blobs));
  const http = new HttpClient(DEFAULT_SETTINGS, signal, credentials(source, fetchOptions));
  if (source.kind === "url") {
    const headers = /^https?:/.test(source.url) ? http.authorization(source.url) : {};
    return new StreamedModel(source, () => new UrlFiles(source, signal, headers));
  }
  const { entry, open } = await openHubFiles(source, http);
  return new StreamedModel(entry, open);
};

/** Files that are read as they come. */
export class StreamedModel implements OpenModel {
  readonly reportsProgress = false;
  onProgress = undefined;
  readonly #entry: ModelEntry;
  readonly #files: () => ModelFiles;

  constructor({ layout, name }: ModelEntry, files: () => ModelFiles) {
    this.#entry = { layout, name };
    this.#files = files;
  }

  async open(): Promise<ModelContents> {
    return { entry: this.#entry, files: this.#files };
  }

  prefetch(): void {}

  async commit(): Promise<void> {}

  async discard(): Promise<void> {}

  async close(): Promise<void> {}
}
