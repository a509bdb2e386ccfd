/** Where a model can come from, in the form that crosses to the worker. */

import { SetunError } from "./errors.js";
import { type HubOptions, type HubSource, isHubName, parseHubName } from "./hub-name.js";

/** The address of a folder or file, files a user dropped or chose, or bytes by file name. */
export type LoadSource = string | URL | Iterable<File> | Record<string, Uint8Array | Blob>;

/** A model's files: a folder in Hugging Face's layout, or one file called `name` and what lies beside it. */
export type ModelSource = UrlSource | BlobSource | HubSource;

/** Files behind an address. */
export interface UrlSource {
  readonly kind: "url";
  readonly layout: "folder" | "file";
  readonly name: string;
  readonly url: string;
}

/** Files that are here. */
export interface BlobSource {
  readonly kind: "blobs";
  readonly layout: "folder" | "file";
  readonly name: string;
  readonly blobs: ReadonlyMap<string, Blob>;
}

const SAFETENSORS = ".safetensors";

/**
 * Brings any {@link LoadSource} into the form the reader takes.
 *
 * @throws {SetunError} `bad-option` if it is none, `not-found` if it holds no files.
 */
export function modelSource(source: LoadSource, base: string, hub: HubOptions = {}): ModelSource {
  if (typeof source === "string" && isHubName(source)) return parseHubName(source, hub);
  if (typeof source === "string" || source instanceof URL) return urlSource(source, base);
  if (typeof source !== "object" || source === null) {
    throw new SetunError(
      "bad-option",
      `source: expected an address, files or bytes by name, found ${typeof source}`,
    );
  }
  return Symbol.iterator in source ? fileSource(source) : bytesSource(source);
}

/** An address that ends in `.safetensors` is a file, any other a folder, with or without its last slash. */
function urlSource(source: string | URL, base: string): ModelSource {
  const url = parseUrl(source, base);
  const name = decodeURIComponent(url.pathname.split("/").pop() ?? "");
  if (name.endsWith(SAFETENSORS)) return { kind: "url", layout: "file", name, url: url.href };
  if (!url.pathname.endsWith("/")) url.pathname += "/";
  return { kind: "url", layout: "folder", name: lastFolder(url.pathname), url: url.href };
}

function parseUrl(source: string | URL, base: string): URL {
  try {
    return new URL(source, base);
  } catch (cause) {
    throw new SetunError("bad-option", `source: "${source}" is not an address`, { cause });
  }
}

function lastFolder(path: string): string {
  return decodeURIComponent(path.split("/").filter(Boolean).pop() ?? "");
}

function fileSource(files: Iterable<File>): ModelSource {
  const blobs = new Map<string, Blob>();
  let folder = "";
  for (const file of files) {
    if (!(file instanceof Blob)) throw new SetunError("bad-option", "source: expected a list of files");
    const [top, ...rest] = (file.webkitRelativePath || file.name).split("/");
    // A chosen folder prefixes every path with its own name, which the checkpoint does not know.
    if (rest.length > 0 && top !== undefined) folder = top;
    blobs.set(rest.length > 0 ? rest.join("/") : file.name, file);
  }
  return blobSource(blobs, folder);
}

function bytesSource(source: Record<string, Uint8Array | Blob>): ModelSource {
  const blobs = new Map<string, Blob>();
  for (const [name, bytes] of Object.entries(source)) {
    if (!(bytes instanceof Uint8Array || bytes instanceof Blob)) {
      throw new SetunError("bad-option", `source["${name}"]: expected a Uint8Array or a Blob`);
    }
    blobs.set(name, bytes instanceof Blob ? bytes : new Blob([bytes as Uint8Array<ArrayBuffer>]));
  }
  return blobSource(blobs, "");
}

/** One .safetensors file without a config.json is a whole model in one file; anything else is a folder. */
function blobSource(blobs: ReadonlyMap<string, Blob>, folder: string): ModelSource {
  if (blobs.size === 0) throw new SetunError("not-found", "source: there are no files in it");
  const checkpoints = [...blobs.keys()].filter((name) => name.endsWith(SAFETENSORS));
  const [only] = checkpoints;
  const lone = checkpoints.length === 1 && !blobs.has("config.json");
  if (lone && only !== undefined) return { kind: "blobs", layout: "file", name: only, blobs };
  return { kind: "blobs", layout: "folder", name: folder, blobs };
}
