/** What the store has of a source already. */

import type { HubSource } from "../hub-name.js";
import type { UrlSource } from "../sources.js";
import { modelOf } from "../store/names.js";
import { currentRevision, referredCommit, type WholeRevision, wholeRevision } from "../store/revisions.js";
import type { Storage } from "../store/storage.js";
import { chooseStored, entryOf, INDEX, WEIGHTS } from "./choice.js";
import type { Http } from "./http.js";
import { type Entry, inFolder } from "./plan.js";
import { probeOnce } from "./probe.js";

/** A model that is there whole, and what to open of it. */
export interface Stored {
  readonly model: WholeRevision;
  readonly entry: Entry;
}

/** The model that a source means, if it is there whole: of a hub without asking anybody. */
export async function findStored(
  storage: Storage,
  source: UrlSource | HubSource,
): Promise<Stored | undefined> {
  const id = await modelOf(source);
  const revision = source.kind === "hub" ? source.revision : undefined;
  const model =
    revision === undefined
      ? await currentRevision(storage, id)
      : await wholeRevision(storage, id, (await referredCommit(storage, id, revision)) ?? revision);
  const entry = model && storedEntry(source, model);
  return model && entry && { model, entry };
}

/** What to open of a stored model; `undefined` if it has not what is meant. */
export function storedEntry(source: UrlSource | HubSource, { manifest }: WholeRevision): Entry | undefined {
  const { layout, name } = source;
  const names = manifest.files.map((file) => file.name);
  if (source.kind === "url" && layout === "file") return names.includes(name) ? { layout, name } : undefined;
  const asked = source.kind === "hub" ? source.file : undefined;
  if (asked !== undefined && !names.includes(asked)) return undefined;
  const reported = source.kind === "hub" ? (source.model.split("/")[1] ?? name) : name;
  try {
    return entryOf(chooseStored(manifest.model, manifest.source, names, asked), reported);
  } catch {
    return undefined; // The list of what could be meant is the hub's to give.
  }
}

/** Whether an address has still what is stored of it. Nobody who can be asked counts as a yes. */
export async function isFresh(http: Http, source: UrlSource, { model, entry }: Stored): Promise<boolean> {
  const { files } = model.manifest;
  const mains = entry.layout === "file" ? [entry.name] : [WEIGHTS, INDEX];
  const main = mains
    .map((name) => files.find((file) => file.name === name))
    .find((file) => file !== undefined);
  if (main === undefined) return false;
  const address = source.layout === "file" ? source.url : inFolder(source.url, main.name);
  try {
    const found = await probeOnce(http, address);
    if (found === undefined) return true;
    const isSameKind = found.identity?.startsWith('"') === main.etag?.startsWith('"');
    const isSame = !isSameKind || found.identity === undefined || found.identity === main.etag;
    return isSame && (found.bytes === undefined || found.bytes === main.bytes);
  } catch {
    http.signal.throwIfAborted();
    return true;
  }
}
