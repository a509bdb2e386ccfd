/** Names of models, and their folders in the store, as `setun models` has them. */

import { SetunError } from "../errors.js";
import type { HubSource } from "../hub-name.js";
import type { UrlSource } from "../sources.js";
import { sha256 } from "./sha256.js";
import { unsignedQuery } from "./signed-url.js";

/** A parsed model name. */
export interface ModelName {
  readonly location: ModelLocation;
  /** The requested file. */
  readonly file?: string;
}

/** A Hub repository, a URL or an alias. */
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

/** Folders of a model. */
export interface ModelId {
  /** Host, with its port after `_`. */
  readonly host: string;
  /** Owner of the repository, or the parent folders of a URL. */
  readonly owner: string;
  /** Name of the repository, folder or file. */
  readonly name: string;
}

const EXPECTED = "owner/name, owner/name@revision, owner/name:file, or an address that begins with https://";

/** Maximum length of a name. */
const MAX_NAME_LENGTH = 96;

/** Hexadecimal digits of a hash that distinguishes names. */
const HASH_DIGITS = 8;

/** Device names of Windows. */
const WINDOWS_DEVICE = /^(con|prn|aux|nul|(com|lpt)\d)$/i;

/** Suffixes of the store's own files. */
const RESERVED_SUFFIXES = [".part", ".chunks", ".tmp"];

/**
 * Parses `owner/name`, `owner/name@revision`, `owner/name:file`, `host/owner/name`, a URL or an alias.
 *
 * @throws {SetunError} `bad-option` for any other text.
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

/** Folders of a source. */
export function modelIdOf(source: UrlSource | HubSource): Promise<ModelId> {
  if (source.kind === "url") return urlModelId(source.url);
  const [owner = "", name = ""] = source.model.split("/");
  return hubModelId(source.endpoint, owner, name);
}

/** Folders of a Hub repository. */
export async function hubModelId(endpoint: string, owner: string, name: string): Promise<ModelId> {
  const parts = addressParts(endpoint);
  const host = parts === undefined ? await safeFolderName(endpoint) : await hostName(parts.authority);
  return { host, owner, name };
}

/** Folders of a URL. */
export async function urlModelId(address: string): Promise<ModelId> {
  const { authority, path, query } = addressParts(address) ?? { authority: "", path: "" };
  const trimmed = path.replace(/^\/+|\/+$/g, "");
  const slash = trimmed.lastIndexOf("/");
  const owner = slash < 0 ? "_" : trimmed.slice(0, slash);
  const last = trimmed.slice(slash + 1);
  // A query may select a file, and may be secret. A signature is new each time and selects nothing.
  const kept = unsignedQuery(query ?? "");
  const name = kept === "" ? last : `${last}-${await shortHash(kept)}`;
  return {
    host: await hostName(authority),
    owner: await safeFolderName(owner.replaceAll("/", "--")),
    name: await safeFolderName(name),
  };
}

/** `HOST/OWNER/NAME`, for messages and locks. */
export function modelIdText({ host, owner, name }: ModelId): string {
  return `${host}/${owner}/${name}`;
}

/** Path of a model. */
export function modelPath(id: ModelId): string {
  return `models/${modelIdText(id)}`;
}

/** Path of a revision. */
export async function revisionPath(id: ModelId, revision: string): Promise<string> {
  return `${modelPath(id)}/${await safeFolderName(revision)}`;
}

/** Folder name of a host, with `_` before its port. */
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

/** A text as a folder name that is valid on all systems and unique. */
export async function safeFolderName(text: string): Promise<string> {
  const plain = [...text].slice(0, MAX_NAME_LENGTH).map((letter) => (/[\w.-]/.test(letter) ? letter : "_"));
  const name = plain.join("");
  if (name === text && isSafeFolderName(name)) return name;
  return `${name.replace(/^\.+|\.+$/g, "")}-${await shortHash(text)}`;
}

async function shortHash(text: string): Promise<string> {
  return (await sha256(new TextEncoder().encode(text))).slice(0, HASH_DIGITS);
}

/** Whether a text is a valid folder name on all systems. */
export function isSafeFolderName(text: string): boolean {
  const isSound = /^[\w.-]+$/.test(text) && text.length <= MAX_NAME_LENGTH;
  return (
    isSound && !text.startsWith(".") && !text.endsWith(".") && !WINDOWS_DEVICE.test(textBefore(text, "."))
  );
}

/** Whether a file name stays in its folder, is valid on all systems, and is not reserved. */
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

/** Text before and after the first mark. */
export function splitOnce(text: string, mark: string): [string, string | undefined] {
  const at = text.indexOf(mark);
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)];
}

function textBefore(text: string, mark: string): string {
  return splitOnce(text, mark)[0];
}

/** Parts of a URL, unchanged. */
export interface AddressParts {
  /** Host and port in lower case. */
  readonly authority: string;
  readonly path: string;
  readonly query?: string;
}

/** Parses a URL; `undefined` for other schemes and for URLs with credentials. */
export function addressParts(address: string): AddressParts | undefined {
  const found = /^https?:\/\/([^/?#@\s]+)(?=[/?#]|$)([^?#]*)(?:\?([^#]*))?/i.exec(address);
  if (found === null) return undefined;
  const [, authority = "", path = "", query = ""] = found;
  return { authority: asciiLower(authority), path, ...(query !== "" && { query }) };
}

/** Only ASCII letters change, as in `setun models`. */
function asciiLower(text: string): string {
  return text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}
