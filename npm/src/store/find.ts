/** From what a caller names to the model in the store that it means. */

import { SetunError } from "../errors.js";
import { DEFAULT_ENDPOINT, HUB_PREFIX, isHubName } from "../hub-name.js";
import { addressParts } from "./address.js";
import {
  isPlain,
  type ModelId,
  modelOfAddress,
  modelOfHub,
  modelPath,
  modelText,
  parseName,
} from "./names.js";
import { referredCommit, storedModels } from "./revisions.js";
import type { Storage } from "./storage.js";

/** What is meant: a model, and perhaps one revision and one file of it. */
export interface Meant {
  readonly id: ModelId;
  readonly revision?: string;
  readonly file?: string;
}

/** A model as a list shows it. */
export interface Listed {
  readonly name: string;
  readonly revision: string;
}

/**
 * The model that `source` means, whether it is in the store or not; `undefined` for what is never stored.
 *
 * @throws {SetunError} `bad-option` if it is no source, or could mean models of several hubs.
 */
export async function findModel(
  storage: Storage,
  source: string | URL | Listed,
  base: string,
): Promise<Meant | undefined> {
  if (typeof source === "string" && isHubName(source)) return findHub(storage, source);
  if (typeof source === "string" || source instanceof URL) return findAddress(source, base);
  return findListed(source);
}

async function findAddress(source: string | URL, base: string): Promise<Meant | undefined> {
  if (!URL.canParse(source, base))
    throw new SetunError("bad-option", `source: "${source}" is not an address`);
  const { href } = new URL(source, base);
  return addressParts(href) && { id: await modelOfAddress(href) };
}

async function findHub(storage: Storage, source: string): Promise<Meant> {
  const { place, file } = parseName(source.slice(HUB_PREFIX.length));
  if (place.kind !== "hub")
    throw new SetunError("bad-option", `source: expected hf:owner/name, found "${source}"`);
  const { host, owner, name, revision } = place;
  const id = host === undefined ? await onAnyHub(storage, owner, name) : { host, owner, name };
  return { id, ...(revision !== undefined && { revision }), ...(file !== undefined && { file }) };
}

/** The usual hub's comes first; one that another hub gave is found without naming it. */
async function onAnyHub(storage: Storage, owner: string, name: string): Promise<ModelId> {
  const own = await modelOfHub(DEFAULT_ENDPOINT, owner, name);
  if ((await storage.list(modelPath(own))).length > 0) return own;
  const others = (await storedModels(storage)).filter((id) => id.owner === owner && id.name === name);
  if (others.length > 1) {
    const names = others.map((id) => `${HUB_PREFIX}${modelText(id)}`).join(", ");
    throw new SetunError("bad-option", `"${owner}/${name}" is here from several hubs: name one of ${names}`);
  }
  return others[0] ?? own;
}

function findListed(source: Listed): Meant {
  const { name, revision } = source ?? {};
  const parts = typeof name === "string" ? name.split("/") : [];
  const [host = "", owner = "", last = ""] = parts;
  if (parts.length !== 3 || !parts.every(isPlain) || typeof revision !== "string") {
    const expected = "an address, hf:owner/name, or a model that models.list() has given";
    throw new SetunError("bad-option", `source: expected ${expected}`);
  }
  return { id: { host, owner, name: last }, revision };
}

/** The commit that a named revision was at the last download, or the name itself. */
export async function commitOf(storage: Storage, id: ModelId, revision: string): Promise<string> {
  return (await referredCommit(storage, id, revision)) ?? revision;
}
