/** From a source to its files, whether they are kept, stored already, or read as they come. */

import { credentials, Http } from "./download/http.js";
import { hubFiles } from "./download/hub-files.js";
import type { Entry } from "./download/plan.js";
import { DEFAULT_SETTINGS } from "./download/settings.js";
import { HandleFiles } from "./handle-files.js";
import type { LoadProgress } from "./messages.js";
import { BlobFiles, type ModelFiles } from "./model-files.js";
import type { ModelSource } from "./sources.js";
import { UrlFiles } from "./url-files.js";

/** How a model's files come. */
export interface Coming {
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
  begin(): Promise<Beginning>;
  /** What was read is to go on coming although nobody reads it. */
  ahead(): void;
  /** Resolves once all that is to be kept is whole, checked and named. */
  keep(): Promise<void>;
  /** What was read is no model. */
  refuse(): Promise<void>;
  /** Ends what is under way. */
  close(): Promise<void>;
  /** Told as bytes arrive, where that is not when they are read. */
  onProgress: ((progress: LoadProgress) => void) | undefined;
  /** Whether {@link onProgress} is told. */
  readonly tellsProgress: boolean;
}

/** What a reader begins with. */
export interface Beginning {
  readonly entry: Entry;
  files(): ModelFiles;
}

/** Opens a source. Aborting the signal ends it, and all that comes of it. */
export type OpenSource = (source: ModelSource, coming: Coming, signal: AbortSignal) => Promise<OpenModel>;

/** Opens a source whose files are read as they come, and not kept. */
export const openStreamed: OpenSource = async (source, coming, signal) => {
  if (source.kind === "handle") return new StreamedModel(source, () => new HandleFiles(source));
  if (source.kind === "blobs") return new StreamedModel(source, () => new BlobFiles(source.blobs));
  const http = new Http(DEFAULT_SETTINGS, signal, credentials(source, coming));
  if (source.kind === "url") {
    const headers = /^https?:/.test(source.url) ? http.authorization(source.url) : {};
    return new StreamedModel(source, () => new UrlFiles(source, signal, headers));
  }
  const { entry, open } = await hubFiles(source, http);
  return new StreamedModel(entry, open);
};

/** Files that are read as they come. */
export class StreamedModel implements OpenModel {
  readonly tellsProgress = false;
  onProgress = undefined;
  readonly #entry: Entry;
  readonly #files: () => ModelFiles;

  constructor({ layout, name }: Entry, files: () => ModelFiles) {
    this.#entry = { layout, name };
    this.#files = files;
  }

  async begin(): Promise<Beginning> {
    return { entry: this.#entry, files: this.#files };
  }

  ahead(): void {}

  async keep(): Promise<void> {}

  async refuse(): Promise<void> {}

  async close(): Promise<void> {}
}
