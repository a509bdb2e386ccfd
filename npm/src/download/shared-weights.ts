/** Weights in Cross-Origin Storage: found before a download, and left there alone after one. */

import type { CrossOriginFiles } from "../cross-origin-files.js";
import { type Damage, type OnRead, type StoredFolder, whatIsWrong } from "../store/damage.js";
import type { FileEntry, Manifest } from "../store/manifest.js";
import { readManifest, writeManifest } from "../store/revisions.js";
import type { Storage } from "../store/storage.js";
import type { PlannedFile } from "./plan.js";
import { matchesPlan } from "./verify.js";

/** Files by name. */
export type SharedFiles = ReadonlyMap<string, Blob>;

/** A file with a known SHA-256. */
type HashedFile = { readonly name: string; readonly bytes: number; readonly sha256: string };

const GONE = "it is no longer in the storage that sites share";

/** The shared files of a stored model, none if it has none; `undefined` if they cannot be had. */
export async function sharedFilesOf(
  { manifest }: StoredFolder,
  crossOrigin: CrossOriginFiles | undefined,
  signal: AbortSignal,
): Promise<SharedFiles | undefined> {
  return find(manifest.files.filter(isShared), crossOrigin, signal);
}

/** Forgets the shared files of a stored model, which is not complete then. */
export async function forgetShared(
  storage: Storage,
  { folder, manifest }: StoredFolder,
): Promise<readonly Damage[]> {
  const files = manifest.files.filter((file) => !isShared(file));
  await writeManifest(storage, folder, { ...manifest, complete: false, files });
  return manifest.files.filter(isShared).map(({ name }) => ({ name, reason: GONE }));
}

/** The shared files among those of a plan that are not stored yet: all that can be shared, or none. */
export async function findPlanned(
  storage: Storage,
  { folder, manifest }: StoredFolder,
  planned: readonly PlannedFile[],
  crossOrigin: CrossOriginFiles | undefined,
  signal: AbortSignal,
  onRead: OnRead,
): Promise<SharedFiles> {
  if (crossOrigin === undefined) return new Map();
  const missing: HashedFile[] = [];
  for (const file of planned) {
    const entry = manifest.files.find(({ name }) => name === file.name);
    const isStored = entry && !entry.crossOrigin && matchesPlan(entry, file);
    const stored = isStored ? await storage.open(`${folder}/${file.name}`) : undefined;
    if (canBeShared(file) && stored?.size !== file.bytes) missing.push(file);
  }
  const found = await find(missing, crossOrigin, signal);
  for (const file of missing) {
    const blob = found?.get(file.name);
    // The browser compares hashes when it stores a file; a copy is not trusted before it was compared here, too.
    const reason = blob && (await whatIsWrong(blob, entryOf(file), signal, onRead));
    if (blob === undefined || reason !== undefined) return new Map();
  }
  return found ?? new Map();
}

/** The manifest's entry of a shared file. */
export function entryOf({
  name,
  bytes,
  sha256,
  identity,
}: Pick<PlannedFile, "name" | "bytes" | "sha256" | "identity">): FileEntry {
  return {
    name,
    bytes,
    ...(identity !== undefined && { etag: identity }),
    ...(sha256 !== undefined && { sha256 }),
    chunkBytes: 0,
    chunks: [],
    crossOrigin: true,
  };
}

/**
 * Stores downloaded files for all sites. Returns those that can be read from there, and the manifest without their
 * copies in the folder; `undefined` if nothing was shared.
 */
export async function shareFiles(
  storage: Storage,
  { folder, manifest }: StoredFolder,
  planned: readonly PlannedFile[],
  crossOrigin: CrossOriginFiles,
  signal: AbortSignal,
): Promise<{ readonly files: SharedFiles; readonly manifest: Manifest } | undefined> {
  const own = planned.filter(canBeShared).filter(({ name, sha256 }) => {
    const entry = manifest.files.find((file) => file.name === name);
    return entry?.sha256 === sha256 && !entry?.crossOrigin;
  });
  const blobs = await Promise.all(own.map(({ name }) => storage.open(`${folder}/${name}`)));
  const files = blobs.filter((blob) => blob !== undefined);
  // Blobs of chunks cannot be sent to the page.
  if (storage.kind !== "opfs" || own.length === 0 || files.length < own.length) return undefined;
  const digests = own.map(({ sha256 }) => sha256);
  if (!(await crossOrigin.store(digests, files, signal))) return undefined;
  const found = await find(own, crossOrigin, signal);
  if (found === undefined) return undefined;
  const entries = manifest.files.map((file) =>
    found.has(file.name) ? { ...file, crossOrigin: true } : file,
  );
  return { files: found, manifest: { ...manifest, files: entries } };
}

/** Removes the copies of shared files, unless the folder has changed. Returns whether it had not. */
export async function removeCopies(
  storage: Storage,
  folder: string,
  { files, manifest }: { readonly files: SharedFiles; readonly manifest: Manifest },
): Promise<boolean> {
  const current = await readManifest(storage, folder);
  if (!current?.complete || current.pulled !== manifest.pulled) return false;
  await writeManifest(storage, folder, manifest);
  for (const name of files.keys()) await storage.remove(`${folder}/${name}`);
  return true;
}

async function find(
  files: readonly HashedFile[],
  crossOrigin: CrossOriginFiles | undefined,
  signal: AbortSignal,
): Promise<SharedFiles | undefined> {
  if (files.length === 0) return new Map();
  const found = await crossOrigin?.find(
    files.map(({ sha256 }) => sha256),
    signal,
  );
  const isRight = found?.length === files.length && files.every(({ bytes }, at) => found[at]?.size === bytes);
  return isRight ? new Map(files.map(({ name }, at) => [name, found[at] as Blob])) : undefined;
}

function isShared(file: FileEntry): file is FileEntry & HashedFile {
  return file.crossOrigin === true && file.sha256 !== undefined;
}

/** Small files have their contents in the plan, or no hash. */
function canBeShared(file: PlannedFile): file is PlannedFile & HashedFile {
  return file.sha256 !== undefined && file.content === undefined && file.bytes > 0;
}
