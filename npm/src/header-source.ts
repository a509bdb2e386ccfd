/** What is known of a model before it is downloaded: its files with their sizes, and what of them is here. */

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

/** Bytes that a model's download takes. */
export interface DownloadSize {
  /** Of all files; `undefined` where a server does not say. 0 for what is no download. */
  readonly bytes: number | undefined;
  /** Those that the browser's store has already. */
  readonly storedBytes: number;
}

/** A model whose headers can be read. */
export interface HeaderSource extends DownloadSize {
  readonly model: OpenModel;
}

/** What the reader asks for and no estimate needs: texts that may be larger than all headers. */
const TEXTS = ["tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "chat_template.json"];

/** Finds out what there is of a source, and where its headers are read from: the store, if it has all. */
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
  const stored = storage && (await lookupStored(storage, source));
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
  const there = storage === undefined ? 0 : await storedBytesIn(storage, folder);
  return { bytes, storedBytes: Math.min(there, bytes) };
}

/** The files; `undefined` where a server does not tell how long they are. */
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

/** The same model without its texts. */
async function headersOf(model: OpenModel): Promise<OpenModel> {
  const { entry, files } = await model.open();
  return new StreamedModel(entry, () => new FilteredFiles(files(), isNoText));
}

function isNoText(name: string): boolean {
  return !TEXTS.some((text) => name === text || name.endsWith(`/${text}`));
}
