/** Lookup of a source in the store. */

import type { HubSource } from "../hub-name.js";
import type { ModelEntry } from "../model-layout.js";
import type { UrlSource } from "../sources.js";
import { modelIdOf } from "../store/names.js";
import {
  type CompleteRevision,
  completeRevision,
  currentRevision,
  downloadedRevision,
  isComplete,
  referencedCommit,
} from "../store/revisions.js";
import type { Storage } from "../store/storage.js";
import { hidesHeaders } from "./answers.js";
import type { HttpClient } from "./http.js";
import { lengthOfAll, probeOnce } from "./http.js";
import { inFolder } from "./plan.js";
import { entryOfSelection, SHARD_INDEX, SINGLE_WEIGHTS, selectStoredFiles } from "./select-files.js";
import type { SharedFiles } from "./shared-weights.js";

/** A complete stored model and the file or folder to open. */
export interface StoredMatch {
  readonly model: CompleteRevision;
  readonly entry: ModelEntry;
  /** Its files that are not in its folder. */
  readonly shared?: SharedFiles;
}

/** The stored model of a source, if it is complete. Hub names are looked up without a request. */
export async function lookupStored(
  storage: Storage,
  source: UrlSource | HubSource,
): Promise<StoredMatch | undefined> {
  const id = await modelIdOf(source);
  const revision = source.kind === "hub" ? source.revision : undefined;
  const model =
    revision === undefined
      ? await currentRevision(storage, id)
      : await completeRevision(storage, id, (await referencedCommit(storage, id, revision)) ?? revision);
  const entry = model && entryOfStored(source, model);
  return model && entry && { model, entry };
}

/** The stored model of a source if files of it are missing or have another size. */
export async function lookupDamaged(
  storage: Storage,
  source: UrlSource | HubSource,
): Promise<CompleteRevision | undefined> {
  const revision = source.kind === "hub" ? source.revision : undefined;
  const model = await downloadedRevision(storage, await modelIdOf(source), revision);
  return model && !(await isComplete(storage, model.folder, model.manifest)) ? model : undefined;
}

/** The file or folder of a stored model to open; `undefined` if it lacks the requested file. */
export function entryOfStored(
  source: UrlSource | HubSource,
  { manifest }: CompleteRevision,
): ModelEntry | undefined {
  const { layout, name } = source;
  const names = manifest.files.map((file) => file.name);
  if (source.kind === "url" && layout === "file") return names.includes(name) ? { layout, name } : undefined;
  const requested = source.kind === "hub" ? source.file : undefined;
  if (requested !== undefined && !names.includes(requested)) return undefined;
  const reported = source.kind === "hub" ? (source.model.split("/")[1] ?? name) : name;
  try {
    return entryOfSelection(selectStoredFiles(manifest.model, manifest.source, names, requested), reported);
  } catch {
    return undefined; // Without an unambiguous model the Hub's file list decides.
  }
}

/** Whether a stored URL is unchanged on the server. It counts as unchanged if the server cannot be reached. */
export async function isUpToDate(
  http: HttpClient,
  source: UrlSource,
  { model, entry }: StoredMatch,
): Promise<boolean> {
  const { files } = model.manifest;
  const mains = entry.layout === "file" ? [entry.name] : [SINGLE_WEIGHTS, SHARD_INDEX];
  const main = mains
    .map((name) => files.find((file) => file.name === name))
    .find((file) => file !== undefined);
  if (main === undefined) return false;
  const address = source.layout === "file" ? source.url : inFolder(source.url, main.name);
  try {
    const found = await probeOnce(http, address);
    if (found === undefined) return true;
    const isSameKind = found.identity?.startsWith('"') === main.etag?.startsWith('"');
    const matchesPlan = !isSameKind || found.identity === undefined || found.identity === main.etag;
    if (!matchesPlan || found.bytes === undefined || found.bytes === main.bytes) return matchesPlan;
    // Of another origin the stated length may be that of a compressed transfer.
    return hidesHeaders(address) && (await lengthOfAll(http, address)) === main.bytes;
  } catch {
    http.signal.throwIfAborted();
    return true;
  }
}
