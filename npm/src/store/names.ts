/** Names of models, and the folders that they have in the store: those that `setun models` gives them as well. */

import { SetunError } from "../errors.js";
import type { HubSource } from "../hub-name.js";
import type { UrlSource } from "../sources.js";
import { sha256 } from "./sha256.js";

/** A name of a model, taken apart. */
export interface ModelName {
  readonly location: ModelLocation;
  /** The file of it that is meant. */
  readonly file?: string;
}

/** Where a model comes from: a hub's repository, an address, or what an alias stands for. */
export type ModelLocation =
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
const MAX_NAME_LENGTH = 96;

/** Hexadecimal digits that keep apart what the same folder name would be given to. */
const HASH_DIGITS = 8;

/** Names that Windows gives to devices. */
const WINDOWS_DEVICE = /^(con|prn|aux|nul|(com|lpt)\d)$/i;

/** Ends of the store's own files. */
const RESERVED_SUFFIXES = [".part", ".chunks", ".tmp"];

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
  const address = textBefore(text, "#");
  return addressParts(address) && { location: { kind: "address", address } };
}

function hubName(text: string): ModelName | undefined {
  const [whole, file] = splitOnce(text, ":");
  if (file !== undefined && !isSafeFile(file)) return undefined;
  const [path, revision] = splitOnce(whole, "@");
  if (revision !== undefined && (revision === "" || /\p{Cc}/u.test(revision))) return undefined;
  const segments = path.split("/");
  if (segments.length > 3 || !segments.every(isSafeFolderName)) return undefined;
  const [name = "", owner = "", host] = segments.reverse();
  if (owner === "" && revision !== undefined) return undefined;
  const location: ModelLocation =
    owner === ""
      ? { kind: "alias", alias: name }
      : {
          kind: "hub",
          ...(host !== undefined && { host }),
          owner,
          name,
          ...(revision !== undefined && { revision }),
        };
  return { location, ...(file !== undefined && { file }) };
}

/** The folders of a source. */
export function modelIdOf(source: UrlSource | HubSource): Promise<ModelId> {
  if (source.kind === "url") return urlModelId(source.url);
  const [owner = "", name = ""] = source.model.split("/");
  return hubModelId(source.endpoint, owner, name);
}

/** The folders of a repository of the hub at `endpoint`. */
export async function hubModelId(endpoint: string, owner: string, name: string): Promise<ModelId> {
  const parts = addressParts(endpoint);
  const host = parts === undefined ? await safeFolderName(endpoint) : await hostName(parts.authority);
  return { host, owner, name };
}

/** The folders of what lies at an address. */
export async function urlModelId(address: string): Promise<ModelId> {
  const { authority, path, query } = addressParts(address) ?? { authority: "", path: "" };
  const trimmed = path.replace(/^\/+|\/+$/g, "");
  const slash = trimmed.lastIndexOf("/");
  const owner = slash < 0 ? "_" : trimmed.slice(0, slash);
  const last = trimmed.slice(slash + 1);
  // What follows a question mark may say which file is meant, and may be a secret.
  const name = query === undefined ? last : `${last}-${await shortHash(query)}`;
  return {
    host: await hostName(authority),
    owner: await safeFolderName(owner.replaceAll("/", "--")),
    name: await safeFolderName(name),
  };
}

/** How a model is called, in messages and for its lock: `HOST/OWNER/NAME`. */
export function modelIdText({ host, owner, name }: ModelId): string {
  return `${host}/${owner}/${name}`;
}

/** The folder of a model's revisions. */
export function modelPath(id: ModelId): string {
  return `models/${modelIdText(id)}`;
}

/** The folder of a revision. */
export async function revisionPath(id: ModelId, revision: string): Promise<string> {
  return `${modelPath(id)}/${await safeFolderName(revision)}`;
}

/** A host, with `_` before its port. */
async function hostName(authority: string): Promise<string> {
  const colon = authority.lastIndexOf(":");
  const [host, port] = [authority.slice(0, colon), authority.slice(colon + 1)];
  if (colon < 0) {
    if (!authority.includes("_")) return safeFolderName(authority);
  } else if (!host.includes("_") && port !== "" && isSafeFolderName(host)) {
    return safeFolderName(`${host}_${port}`);
  }
  return `${await safeFolderName(authority)}-${await shortHash(authority)}`;
}

/** A text as the name of a folder, on any system. Texts that differ get names that differ. */
export async function safeFolderName(text: string): Promise<string> {
  const plain = [...text].slice(0, MAX_NAME_LENGTH).map((letter) => (/[\w.-]/.test(letter) ? letter : "_"));
  const name = plain.join("");
  if (name === text && isSafeFolderName(name)) return name;
  return `${name.replace(/^\.+|\.+$/g, "")}-${await shortHash(text)}`;
}

async function shortHash(text: string): Promise<string> {
  return (await sha256(new TextEncoder().encode(text))).slice(0, HASH_DIGITS);
}

/** True for what is a part of a name as it is, and a folder on any system. */
export function isSafeFolderName(text: string): boolean {
  const isSound = /^[\w.-]+$/.test(text) && text.length <= MAX_NAME_LENGTH;
  return (
    isSound && !text.startsWith(".") && !text.endsWith(".") && !WINDOWS_DEVICE.test(textBefore(text, "."))
  );
}

/** True for a file's name that stays in its folder, on any system, and is none of the store's own. */
export function isSafeFile(name: string): boolean {
  const parts = name.split("/");
  const isReserved = name === "manifest.json" || RESERVED_SUFFIXES.some((end) => name.endsWith(end));
  return parts.length <= 4 && parts.every(isSafePart) && !isReserved;
}

function isSafePart(part: string): boolean {
  const bytes = new TextEncoder().encode(part).length;
  const isSound = bytes >= 1 && bytes <= 2 * MAX_NAME_LENGTH && !/[\p{Cc}\p{Cs}\\:*?"<>|]/u.test(part);
  return (
    isSound && !part.startsWith(".") && !/[. ]$/.test(part) && !WINDOWS_DEVICE.test(textBefore(part, "."))
  );
}

/** What stands before the first mark, and what behind it, if there is one. */
export function splitOnce(text: string, mark: string): [string, string | undefined] {
  const at = text.indexOf(mark);
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)];
}

function textBefore(text: string, mark: string): string {
  return splitOnce(text, mark)[0];
}

/** An address taken apart, as it is written. */
export interface AddressParts {
  /** Host, and the port where one is written, in small letters. */
  readonly authority: string;
  readonly path: string;
  readonly query?: string;
}

/** Takes an address apart; `undefined` if it is none of the web, or carries a name and password. */
export function addressParts(address: string): AddressParts | undefined {
  const found = /^https?:\/\/([^/?#@\s]+)(?=[/?#]|$)([^?#]*)(?:\?([^#]*))?/i.exec(address);
  if (found === null) return undefined;
  const [, authority = "", path = "", query = ""] = found;
  return { authority: asciiLower(authority), path, ...(query !== "" && { query }) };
}

/** As the other side does: letters beyond ASCII stay. */
function asciiLower(text: string): string {
  return text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}
