/** `models`: what is kept of downloaded models, to be shown and to be deleted. */

import { commitOf, lookupModel, type ModelQuery } from "./lookup.js";
import { type ModelId, modelIdText, modelPath, safeFolderName } from "./names.js";
import {
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

/** A model that is kept, or a download that has not ended. */
export interface StoredModel {
  /** `HOST/OWNER/NAME`. */
  readonly name: string;
  /** The commit of a hub's repository; of an address what its files were known by. */
  readonly revision: string;
  /** Where it came from; empty if that is not known any more. */
  readonly source: string;
  /** Name of the licence, where the hub told one. */
  readonly licence?: string;
  /** Bytes of its files, as many as are there. */
  readonly bytes: number;
  /** Its files, as far as they are known. */
  readonly files: readonly { readonly name: string; readonly bytes: number }[];
  /** When it was downloaded, in UTC: `2026-11-21T17:00:00Z`; empty if that is not known any more. */
  readonly pulled: string;
  /** Whether all of it is there. What is missing comes with the next `load`. */
  readonly complete: boolean;
}

/** The models that this origin keeps. */
export interface Models {
  /** All that is kept, by name, unfinished downloads too; in Node none. */
  list(): Promise<StoredModel[]>;
  /** Whether a source that {@link load} takes is there whole, so that it needs no network. */
  has(source: string | URL | StoredModel): Promise<boolean>;
  /**
   * Deletes a model with all its revisions, or the one that is named or was listed, whole or not; `false` if there was
   * none. While another tab downloads it, this waits until that has ended, or until the signal aborts.
   */
  delete(source: string | URL | StoredModel, options?: { signal?: AbortSignal }): Promise<boolean>;
}

/** What differs between a browser and Node. */
export interface StorePlatform {
  openStorage(): Promise<Storage | undefined>;
  readonly withLock: WithLock;
  /** What relative addresses are relative to. */
  baseUrl(): string;
}

/** Makes the `models` of an entry point. */
export function modelsOn(platform: StorePlatform): Models {
  return {
    async list() {
      const storage = await platform.openStorage();
      return storage === undefined ? [] : listModels(storage);
    },
    async has(source) {
      const storage = await platform.openStorage();
      if (storage === undefined) return false;
      const meant = await lookupModel(storage, source, platform.baseUrl());
      return meant !== undefined && hasModel(storage, meant);
    },
    async delete(source, { signal = new AbortController().signal } = {}) {
      const storage = await platform.openStorage();
      if (storage === undefined) return false;
      const meant = await lookupModel(storage, source, platform.baseUrl());
      if (meant === undefined) return false;
      return platform.withLock(modelIdText(meant.id), signal, () => deleteModel(storage, meant));
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

/** What a folder holds. One whose manifest cannot be read is shown too: else nobody could delete it. */
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

async function hasModel(storage: Storage, { id, revision, file }: ModelQuery): Promise<boolean> {
  const found =
    revision === undefined
      ? await currentRevision(storage, id)
      : await completeRevision(storage, id, await commitOf(storage, id, revision));
  const files = found?.manifest.files;
  return files !== undefined && (file === undefined || files.some(({ name }) => name === file));
}

async function deleteModel(storage: Storage, { id, revision }: ModelQuery): Promise<boolean> {
  const all = await folders(storage, modelPath(id));
  // Names of revisions that cannot be read must not keep a model from being deleted.
  const commit = revision && (await commitOf(storage, id, revision).catch(() => revision));
  const wanted = commit && (await safeFolderName(commit));
  const chosen = all.filter((folder) => wanted === undefined || folder === wanted);
  for (const folder of chosen) await removeRevision(storage, `${modelPath(id)}/${folder}`);
  if (chosen.length === all.length) await storage.remove(modelPath(id));
  return chosen.length > 0;
}
