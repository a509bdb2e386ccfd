/** Headers and download size of a model, before it is downloaded. */

import { NotStorableError } from "./download/errors.js";
import { credentials, HttpClient } from "./download/http.js";
import { isUpToDate, lookupStored, type StoredMatch } from "./download/lookup.js";
import type { Plan } from "./download/plan.js";
import { planHub } from "./download/plan-hub.js";
import { planUrl } from "./download/plan-url.js";
import { DEFAULT_SETTINGS } from "./download/settings.js";
import { StoredFiles } from "./download/stored-model.js";
import type { HubSource } from "./hub-name.js";
import { FilteredFiles } from "./model-files.js";
import { type FetchOptions, type OpenModel, type OpenSource, StreamedModel } from "./open-model.js";
import { isDownload, type ModelSource, type UrlSource } from "./sources.js";
import { revisionPath } from "./store/names.js";
import { storedBytesIn } from "./store/revisions.js";
import type { Storage } from "./store/storage.js";

/** Size of a model's download. */
export interface DownloadSize {
  /** Bytes of all files; `undefined` if a server does not report, 0 for local files. */
  readonly bytes: number | undefined;
  /** Bytes that the browser's store has already. */
  readonly storedBytes: number;
}

/** A model whose headers can be read. */
export interface HeaderSource extends DownloadSize {
  readonly model: OpenModel;
}

/** Files that the reader requests and an estimate does not need. They may be larger than all headers. */
const TEXTS = ["tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "chat_template.json"];

/** Finds the files of a source, and where to read its headers: from the store if it is complete there. */
export async function openHeaders(
  source: ModelSource,
  fetchOptions: FetchOptions,
  { openModel, storage }: { readonly openModel: OpenSource; readonly storage: Storage | undefined },
  signal: AbortSignal,
): Promise<HeaderSource> {
  if (!isDownload(source)) {
    const model = await headersOf(await openModel(source, fetchOptions, signal));
    return { bytes: 0, storedBytes: 0, model };
  }
  const http = new HttpClient(DEFAULT_SETTINGS, signal, credentials(source, fetchOptions));
  const found = storage && (await lookupStored(storage, source));
  // Only a load asks the page for shared files.
  const stored = found?.model.manifest.files.some(({ crossOrigin }) => crossOrigin) ? undefined : found;
  if (storage && stored && (source.kind === "hub" || (await isUpToDate(http, source, stored)))) {
    const bytes = sumOf(stored.model.manifest.files);
    return { bytes, storedBytes: bytes, model: await headersOf(storedModel(storage, stored)) };
  }
  const [size, model] = await Promise.all([
    downloadSize(http, source, storage),
    openModel(source, { ...fetchOptions, store: false }, signal),
  ]);
  return { ...size, model: await headersOf(model) };
}

async function downloadSize(
  http: HttpClient,
  source: UrlSource | HubSource,
  storage: Storage | undefined,
): Promise<DownloadSize> {
  const plan = await planOf(http, source);
  if (plan === undefined) return { bytes: undefined, storedBytes: 0 };
  const folder = await revisionPath(plan.id, plan.revision);
  const bytes = sumOf(plan.files);
  const stored = storage === undefined ? 0 : await storedBytesIn(storage, folder);
  return { bytes, storedBytes: Math.min(stored, bytes) };
}

/** The download plan; `undefined` if a server does not report sizes. */
async function planOf(http: HttpClient, source: UrlSource | HubSource): Promise<Plan | undefined> {
  try {
    return await (source.kind === "hub" ? planHub(http, source) : planUrl(http, source, new Map()));
  } catch (thrown) {
    if (thrown instanceof NotStorableError) return undefined;
    throw thrown;
  }
}

function storedModel(storage: Storage, { model, entry }: StoredMatch): OpenModel {
  return new StreamedModel(entry, () => new StoredFiles(storage, model));
}

function sumOf(files: readonly { readonly bytes: number }[]): number {
  return files.reduce((sum, file) => sum + file.bytes, 0);
}

/** The model without its tokenizer files. */
async function headersOf(model: OpenModel): Promise<OpenModel> {
  const { entry, files } = await model.open();
  return new StreamedModel(entry, () => new FilteredFiles(files(), isNoText));
}

function isNoText(name: string): boolean {
  return !TEXTS.some((text) => name === text || name.endsWith(`/${text}`));
}
