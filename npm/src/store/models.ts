/** The stored models of an origin: listing and deleting. */

import { commitOf, lookupModel, type ModelQuery } from "./lookup.js";
import { type ModelId, modelIdText, modelPath, safeFolderName } from "./names.js";
import {
  type CompleteRevision,
  completeRevision,
  currentRevision,
  folders,
  isComplete,
  readManifest,
  removeRevision,
  storedBytesIn,
  storedModels,
} from "./revisions.js";
import type { Storage, WithLock } from "./storage.js";

/** A stored model, or an unfinished download. */
export interface StoredModel {
  /** `HOST/OWNER/NAME`. */
  readonly name: string;
  /** Commit of the Hub repository, or a hash of the files of a URL. */
  readonly revision: string;
  /** Source of the download; empty if unknown. */
  readonly source: string;
  /** Licence as the Hub names it, if it does. */
  readonly licence?: string;
  /** Stored bytes. */
  readonly bytes: number;
  /** Known files. */
  readonly files: readonly {
    /** Path in the model's folder. */
    readonly name: string;
    /** Size of the file. */
    readonly bytes: number;
  }[];
  /** Time of the download in UTC: `2026-11-21T17:00:00Z`; empty if unknown. */
  readonly pulled: string;
  /** Whether the model is complete. The next `load` downloads missing parts. */
  readonly complete: boolean;
}

/** The stored models of this origin. */
export interface Models {
  /** All stored models by name, including unfinished downloads. Empty in Node. */
  list(): Promise<StoredModel[]>;
  /**
   * Whether a source of `load` is stored completely, so that loading needs no network. Of weights in Cross-Origin Storage
   * the browser is asked, and may ask its user.
   */
  has(source: string | URL | StoredModel): Promise<boolean>;
  /**
   * Deletes a model with all revisions, or the named or listed revision. Returns `false` if it was not stored.
   * Waits while another tab downloads it, until the signal aborts.
   */
  delete(source: string | URL | StoredModel, options?: { signal?: AbortSignal }): Promise<boolean>;
}

/** Differences between a browser and Node. */
export interface StorePlatform {
  openStorage(): Promise<Storage | undefined>;
  readonly withLock: WithLock;
  /** Base of relative URLs. */
  baseUrl(): string;
  /** All files that sites share with these SHA-256; `undefined` if one cannot be had. */
  findShared?(digests: readonly string[]): Promise<readonly Blob[] | undefined>;
}

/** The `models` of an entry point. */
export function modelsOn(platform: StorePlatform): Models {
  return {
    async list() {
      const storage = await platform.openStorage();
      return storage === undefined ? [] : listModels(storage);
    },
    async has(source) {
      const storage = await platform.openStorage();
      if (storage === undefined) return false;
      const query = await lookupModel(storage, source, platform.baseUrl());
      const found = query && (await findModel(storage, query));
      return found !== undefined && hasShared(found, platform);
    },
    async delete(source, { signal = new AbortController().signal } = {}) {
      const storage = await platform.openStorage();
      if (storage === undefined) return false;
      const query = await lookupModel(storage, source, platform.baseUrl());
      if (query === undefined) return false;
      return platform.withLock(modelIdText(query.id), signal, () => deleteModel(storage, query));
    },
  };
}

async function listModels(storage: Storage): Promise<StoredModel[]> {
  const models: StoredModel[] = [];
  for (const id of await storedModels(storage)) {
    const revisions: StoredModel[] = [];
    for (const revision of await folders(storage, modelPath(id))) {
      revisions.push(await describe(storage, id, revision));
    }
    models.push(...revisions.sort((a, b) => (a.pulled < b.pulled ? -1 : 1)));
  }
  return models;
}

/** Contents of a folder. A folder with an unreadable manifest is listed too, so that it can be deleted. */
async function describe(storage: Storage, id: ModelId, folder: string): Promise<StoredModel> {
  const path = `${modelPath(id)}/${folder}`;
  const manifest = await readManifest(storage, path).catch(() => undefined);
  const complete = manifest !== undefined && (await isComplete(storage, path, manifest));
  const { revision = folder, source = "", licence, pulled = "", files = [] } = manifest ?? {};
  return {
    name: modelIdText(id),
    revision,
    source,
    ...(licence !== undefined && { licence }),
    bytes: await storedBytesIn(storage, path),
    files: files.map(({ name, bytes }) => ({ name, bytes })),
    pulled,
    complete,
  };
}

async function findModel(
  storage: Storage,
  { id, revision, file }: ModelQuery,
): Promise<CompleteRevision | undefined> {
  const found =
    revision === undefined
      ? await currentRevision(storage, id)
      : await completeRevision(storage, id, await commitOf(storage, id, revision));
  return file === undefined || found?.manifest.files.some(({ name }) => name === file) ? found : undefined;
}

/** Whether files of a model that are not in its folder can be had. */
async function hasShared({ manifest }: CompleteRevision, platform: StorePlatform): Promise<boolean> {
  const shared = manifest.files.filter(({ crossOrigin }) => crossOrigin);
  if (shared.length === 0) return true;
  const found = await platform.findShared?.(shared.map(({ sha256 = "" }) => sha256));
  return found?.length === shared.length && shared.every(({ bytes }, at) => found[at]?.size === bytes);
}

async function deleteModel(storage: Storage, { id, revision }: ModelQuery): Promise<boolean> {
  const all = await folders(storage, modelPath(id));
  // An unreadable list of references must not prevent the deletion.
  const commit = revision && (await commitOf(storage, id, revision).catch(() => revision));
  const folderName = commit && (await safeFolderName(commit));
  const chosen = all.filter((folder) => folderName === undefined || folder === folderName);
  for (const folder of chosen) await removeRevision(storage, `${modelPath(id)}/${folder}`);
  if (chosen.length === all.length) await storage.remove(modelPath(id));
  return chosen.length > 0;
}
