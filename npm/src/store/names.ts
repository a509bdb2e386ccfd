/** Names of models, and the folders that they have in the store: those that `setun models` gives them as well. */

import { SetunError } from "../errors.js";
import type { HubSource } from "../hub-name.js";
import type { UrlSource } from "../sources.js";
import { addressParts } from "./address.js";
import { sha256 } from "./digest.js";

/** A name of a model, taken apart. */
export interface ModelName {
  readonly place: Place;
  /** The file of it that is meant. */
  readonly file?: string;
}

/** Where a model comes from: a hub's repository, an address, or what an alias stands for. */
export type Place =
  | {
      readonly kind: "hub";
      readonly host?: string;
      readonly owner: string;
      readonly name: string;
      readonly revision?: string;
    }
  | { readonly kind: "address"; readonly address: string }
  | { readonly kind: "alias"; readonly alias: string };

/** The folders of a model, from the outermost. */
export interface ModelId {
  /** Host that it came from, with its port behind `_`. */
  readonly host: string;
  /** Who made it; of an address the folders that lead to it. */
  readonly owner: string;
  /** What it is called. */
  readonly name: string;
}

const EXPECTED = "owner/name, owner/name@revision, owner/name:file, or an address that begins with https://";

/** Most characters of a part of a name. */
const MOST_LETTERS = 96;

/** Hexadecimal digits that keep apart what the same folder name would be given to. */
const APART = 8;

/** Names that Windows gives to devices. */
const DEVICE = /^(con|prn|aux|nul|(com|lpt)\d)$/i;

/** Ends of the store's own files. */
const OWN_ENDS = [".part", ".chunks", ".tmp"];

/**
 * Takes a name apart: `owner/name`, `owner/name@revision`, `owner/name:file`, `host/owner/name`, an address, or one word.
 *
 * @throws {SetunError} `bad-option` if it is none of these.
 */
export function parseName(text: string): ModelName {
  const name = /^https?:\/\//.test(text) ? addressName(text) : hubName(text);
  if (name === undefined)
    throw new SetunError("bad-option", `"${text}" names no model: expected ${EXPECTED}`);
  return name;
}

function addressName(text: string): ModelName | undefined {
  const address = before(text, "#");
  return addressParts(address) && { place: { kind: "address", address } };
}

function hubName(text: string): ModelName | undefined {
  const [whole, file] = splitOnce(text, ":");
  if (file !== undefined && !isSafeFile(file)) return undefined;
  const [path, revision] = splitOnce(whole, "@");
  if (revision !== undefined && (revision === "" || /\p{Cc}/u.test(revision))) return undefined;
  const segments = path.split("/");
  if (segments.length > 3 || !segments.every(isPlain)) return undefined;
  const [name = "", owner = "", host] = segments.reverse();
  if (owner === "" && revision !== undefined) return undefined;
  const place: Place =
    owner === ""
      ? { kind: "alias", alias: name }
      : {
          kind: "hub",
          ...(host !== undefined && { host }),
          owner,
          name,
          ...(revision !== undefined && { revision }),
        };
  return { place, ...(file !== undefined && { file }) };
}

/** The folders of a source. */
export function modelOf(source: UrlSource | HubSource): Promise<ModelId> {
  if (source.kind === "url") return modelOfAddress(source.url);
  const [owner = "", name = ""] = source.model.split("/");
  return modelOfHub(source.endpoint, owner, name);
}

/** The folders of a repository of the hub at `endpoint`. */
export async function modelOfHub(endpoint: string, owner: string, name: string): Promise<ModelId> {
  const parts = addressParts(endpoint);
  const host = parts === undefined ? await plainName(endpoint) : await hostName(parts.authority);
  return { host, owner, name };
}

/** The folders of what lies at an address. */
export async function modelOfAddress(address: string): Promise<ModelId> {
  const { authority, path, query } = addressParts(address) ?? { authority: "", path: "" };
  const trimmed = path.replace(/^\/+|\/+$/g, "");
  const slash = trimmed.lastIndexOf("/");
  const owner = slash < 0 ? "_" : trimmed.slice(0, slash);
  const last = trimmed.slice(slash + 1);
  // What follows a question mark may say which file is meant, and may be a secret.
  const name = query === undefined ? last : `${last}-${await apart(query)}`;
  return {
    host: await hostName(authority),
    owner: await plainName(owner.replaceAll("/", "--")),
    name: await plainName(name),
  };
}

/** How a model is called, in messages and for its lock: `HOST/OWNER/NAME`. */
export function modelText({ host, owner, name }: ModelId): string {
  return `${host}/${owner}/${name}`;
}

/** The folder of a model's revisions. */
export function modelPath(id: ModelId): string {
  return `models/${modelText(id)}`;
}

/** The folder of a revision. */
export async function revisionPath(id: ModelId, revision: string): Promise<string> {
  return `${modelPath(id)}/${await plainName(revision)}`;
}

/** A host, with `_` before its port. */
async function hostName(authority: string): Promise<string> {
  const colon = authority.lastIndexOf(":");
  const [host, port] = [authority.slice(0, colon), authority.slice(colon + 1)];
  if (colon < 0) {
    if (!authority.includes("_")) return plainName(authority);
  } else if (!host.includes("_") && port !== "" && isPlain(host)) {
    return plainName(`${host}_${port}`);
  }
  return `${await plainName(authority)}-${await apart(authority)}`;
}

/** A text as the name of a folder, on any system. Texts that differ get names that differ. */
export async function plainName(text: string): Promise<string> {
  const plain = [...text].slice(0, MOST_LETTERS).map((letter) => (/[\w.-]/.test(letter) ? letter : "_"));
  const name = plain.join("");
  if (name === text && isPlain(name)) return name;
  return `${name.replace(/^\.+|\.+$/g, "")}-${await apart(text)}`;
}

async function apart(text: string): Promise<string> {
  return (await sha256(new TextEncoder().encode(text))).slice(0, APART);
}

/** True for what is a part of a name as it is, and a folder on any system. */
export function isPlain(text: string): boolean {
  const isSound = /^[\w.-]+$/.test(text) && text.length <= MOST_LETTERS;
  return isSound && !text.startsWith(".") && !text.endsWith(".") && !DEVICE.test(before(text, "."));
}

/** True for a file's name that stays in its folder, on any system, and is none of the store's own. */
export function isSafeFile(name: string): boolean {
  const parts = name.split("/");
  const isOwn = name === "manifest.json" || OWN_ENDS.some((end) => name.endsWith(end));
  return parts.length <= 4 && parts.every(isSafePart) && !isOwn;
}

function isSafePart(part: string): boolean {
  const bytes = new TextEncoder().encode(part).length;
  const isSound = bytes >= 1 && bytes <= 2 * MOST_LETTERS && !/[\p{Cc}\p{Cs}\\:*?"<>|]/u.test(part);
  return isSound && !part.startsWith(".") && !/[. ]$/.test(part) && !DEVICE.test(before(part, "."));
}

/** What stands before the first mark, and what behind it, if there is one. */
export function splitOnce(text: string, mark: string): [string, string | undefined] {
  const at = text.indexOf(mark);
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)];
}

function before(text: string, mark: string): string {
  return splitOnce(text, mark)[0];
}
