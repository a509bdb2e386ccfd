/** Lookup of stored models by the names that callers use. */

import { catalogSource } from "../catalog.js";
import { SetunError } from "../errors.js";
import { DEFAULT_ENDPOINT, HUB_PREFIX, isHubName } from "../hub-name.js";
import {
  addressParts,
  hubModelId,
  isSafeFolderName,
  type ModelId,
  modelIdText,
  modelPath,
  parseName,
  urlModelId,
} from "./names.js";
import { referencedCommit, storedModels } from "./revisions.js";
import type { ReadableStorage } from "./storage.js";

/** A model, optionally one revision and one file of it. */
export interface ModelQuery {
  readonly id: ModelId;
  readonly revision?: string;
  readonly file?: string;
}

/** An entry of `models.list()`. */
export interface ListedModel {
  readonly name: string;
  readonly revision: string;
}

/**
 * The model that `given` names, stored or not; `undefined` for sources that are never stored.
 *
 * @throws {SetunError} `bad-option` if it is no source, or is ambiguous among several Hubs.
 */
export async function lookupModel(
  storage: ReadableStorage,
  given: string | URL | ListedModel,
  base: string,
): Promise<ModelQuery | undefined> {
  const source = catalogSource(given);
  if (typeof source === "string" && isHubName(source)) return lookupHub(storage, source);
  if (typeof source === "string" || source instanceof URL) return lookupUrl(source, base);
  return lookupListed(source);
}

async function lookupUrl(source: string | URL, base: string): Promise<ModelQuery | undefined> {
  if (!URL.canParse(source, base)) throw new SetunError("bad-option", `source: "${source}" is not a URL`);
  const { href } = new URL(source, base);
  return addressParts(href) && { id: await urlModelId(href) };
}

async function lookupHub(storage: ReadableStorage, source: string): Promise<ModelQuery> {
  const { location, file } = parseName(source.slice(HUB_PREFIX.length));
  if (location.kind !== "hub")
    throw new SetunError("bad-option", `source: expected hf:owner/name, found "${source}"`);
  const { host, owner, name, revision } = location;
  const id = host === undefined ? await findOnAnyHub(storage, owner, name) : { host, owner, name };
  return { id, ...(revision !== undefined && { revision }), ...(file !== undefined && { file }) };
}

/** The default Hub's model comes first; otherwise the only Hub that has it. */
async function findOnAnyHub(storage: ReadableStorage, owner: string, name: string): Promise<ModelId> {
  const preferred = await hubModelId(DEFAULT_ENDPOINT, owner, name);
  if ((await storage.list(modelPath(preferred))).length > 0) return preferred;
  const others = (await storedModels(storage)).filter((id) => id.owner === owner && id.name === name);
  if (others.length > 1) {
    const names = others.map((id) => `${HUB_PREFIX}${modelIdText(id)}`).join(", ");
    throw new SetunError(
      "bad-option",
      `"${owner}/${name}" is stored from several hubs; expected one of ${names}`,
    );
  }
  return others[0] ?? preferred;
}

function lookupListed(source: ListedModel): ModelQuery {
  const { name, revision } = source ?? {};
  const parts = typeof name === "string" ? name.split("/") : [];
  const [host = "", owner = "", last = ""] = parts;
  if (parts.length !== 3 || !parts.every(isSafeFolderName) || typeof revision !== "string") {
    const expected = "an address, hf:owner/name, a short name, or a model that models.list() has given";
    throw new SetunError("bad-option", `source: expected ${expected}`);
  }
  return { id: { host, owner, name: last }, revision };
}

/** Commit of a named revision at the last download, or the name itself. */
export async function commitOf(storage: ReadableStorage, id: ModelId, revision: string): Promise<string> {
  return (await referencedCommit(storage, id, revision)) ?? revision;
}
