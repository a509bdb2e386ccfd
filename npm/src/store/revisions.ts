/** Stored revisions of models, and the names that refer to them. */

import { findWrongSizes, type StoredFolder } from "./damage.js";
import { downloadedBytes, readJournal } from "./journal.js";
import { FORMAT, fields, parseVersioned } from "./json.js";
import { MANIFEST, type Manifest, parseManifest, printManifest } from "./manifest.js";
import { isSafeFile, type ModelId, modelPath, revisionPath } from "./names.js";
import type { ReadableStorage, Storage } from "./storage.js";

/** Default branch of a repository. */
export const DEFAULT_REVISION = "main";

/** A complete stored revision. */
export interface CompleteRevision extends StoredFolder {
  readonly id: ModelId;
}

/**
 * Manifest of a folder; `undefined` if there is none or it is damaged.
 *
 * @throws {SetunError} `bad-checkpoint` if a later version of setun wrote it.
 */
export async function readManifest(storage: ReadableStorage, folder: string): Promise<Manifest | undefined> {
  const path = `${folder}/${MANIFEST}`;
  return parseManifest(await storage.readText(path), path);
}

/** Replaces the manifest of a folder. */
export function writeManifest(storage: Storage, folder: string, manifest: Manifest): Promise<void> {
  return storage.writeText(`${folder}/${MANIFEST}`, printManifest(manifest));
}

/** A revision by its name or folder, if all its files are stored with the right sizes. */
export async function completeRevision(
  storage: ReadableStorage,
  id: ModelId,
  revision: string,
): Promise<CompleteRevision | undefined> {
  const folder = await revisionPath(id, revision);
  const manifest = await readManifest(storage, folder);
  return manifest && (await isComplete(storage, folder, manifest)) ? { id, folder, manifest } : undefined;
}

/** Whether a manifest is complete and all its files exist. A browser may have evicted some. */
export async function isComplete(
  storage: ReadableStorage,
  folder: string,
  manifest: Manifest,
): Promise<boolean> {
  return manifest.complete && (await findWrongSizes(storage, { folder, manifest })).length === 0;
}

/**
 * The current revision: that of the default branch at the last download, else the latest; `undefined` if it is damaged.
 * An older one does not take its place.
 */
export async function currentRevision(
  storage: ReadableStorage,
  id: ModelId,
): Promise<CompleteRevision | undefined> {
  const current = await downloadedRevision(storage, id, undefined);
  return current && (await isComplete(storage, current.folder, current.manifest)) ? current : undefined;
}

/** A revision that was downloaded completely, whatever has happened to its files since; without a name the current one. */
export async function downloadedRevision(
  storage: ReadableStorage,
  id: ModelId,
  revision: string | undefined,
): Promise<CompleteRevision | undefined> {
  const name = revision ?? DEFAULT_REVISION;
  const commit = (await referencedCommit(storage, id, name)) ?? revision;
  const folder = commit && (await revisionPath(id, commit));
  const referred = folder && (await downloadedIn(storage, id, folder));
  // A manifest that cannot be read is that of a damaged revision; without one the revision was deleted.
  const isDamaged = folder && !referred && (await storage.readText(`${folder}/${MANIFEST}`)) !== undefined;
  if (referred || isDamaged || revision !== undefined) return referred || undefined;
  let last: CompleteRevision | undefined;
  for (const folder of await folders(storage, modelPath(id))) {
    const found = await downloadedIn(storage, id, `${modelPath(id)}/${folder}`);
    if (found && (last === undefined || found.manifest.pulled >= last.manifest.pulled)) last = found;
  }
  return last;
}

async function downloadedIn(
  storage: ReadableStorage,
  id: ModelId,
  folder: string,
): Promise<CompleteRevision | undefined> {
  const manifest = await readManifest(storage, folder);
  return manifest?.complete ? { id, folder, manifest } : undefined;
}

/** Commit of a branch or tag at the last download. */
export async function referencedCommit(
  storage: ReadableStorage,
  id: ModelId,
  name: string,
): Promise<string | undefined> {
  return (await references(storage, id)).get(name);
}

/** Stores the commit of a branch or tag. */
export async function saveReference(
  storage: Storage,
  id: ModelId,
  name: string,
  commit: string,
): Promise<void> {
  const known = await references(storage, id);
  if (known.get(name) === commit) return;
  const sorted = [...known.set(name, commit)].sort(([a], [b]) => (a < b ? -1 : 1));
  const text = JSON.stringify({ format: FORMAT, revisions: Object.fromEntries(sorted) }, null, 2);
  await storage.writeText(referencesPath(id), text);
}

async function references(storage: ReadableStorage, id: ModelId): Promise<Map<string, string>> {
  const path = referencesPath(id);
  const found = parseVersioned(await storage.readText(path), path);
  const pairs = Object.entries(fields(found?.revisions) ?? {});
  return new Map(pairs.filter((pair): pair is [string, string] => typeof pair[1] === "string"));
}

function referencesPath(id: ModelId): string {
  return `${modelPath(id)}/refs.json`;
}

/** All models with a folder. */
export async function storedModels(storage: ReadableStorage): Promise<ModelId[]> {
  const models: ModelId[] = [];
  for (const host of await folders(storage, "models")) {
    for (const owner of await folders(storage, `models/${host}`)) {
      const names = await folders(storage, `models/${host}/${owner}`);
      models.push(...names.map((name) => ({ host, owner, name })));
    }
  }
  return models;
}

/** Names of the folders in a folder, sorted. */
export async function folders(storage: ReadableStorage, path: string): Promise<string[]> {
  const names = await storage.list(path);
  return names
    .filter((name) => name.endsWith("/"))
    .map((name) => name.slice(0, -1))
    .sort();
}

/** Removes a revision, its manifest first. */
export async function removeRevision(storage: Storage, folder: string): Promise<void> {
  await storage.remove(`${folder}/${MANIFEST}`);
  await storage.remove(folder);
}

/** Stored bytes of the model's files in a folder, including chunks of partial files. */
export async function storedBytesIn(storage: Storage, folder: string): Promise<number> {
  let sum = 0;
  for (const name of await storage.list(folder)) {
    const path = `${folder}/${name}`;
    if (name.endsWith("/")) sum += await storedBytesIn(storage, path.slice(0, -1));
    else if (name.endsWith(".chunks")) sum += await bytesComing(storage, path);
    else if (isSafeFile(name)) sum += (await storage.open(path))?.size ?? 0;
  }
  return sum;
}

/** A journal that another tab has open cannot be read; it counts as empty. */
async function bytesComing(storage: Storage, path: string): Promise<number> {
  const text = await storage.readText(path).catch(() => undefined);
  const journal = readJournal(text?.split("\n").slice(0, -1) ?? []);
  return journal === undefined ? 0 : downloadedBytes(journal);
}
