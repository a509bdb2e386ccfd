/** Model sources, and their form in messages to the host. */

import { catalogSource } from "./catalog.js";
import { type DroppedItems, droppedFiles, entriesOf, isEntry, isHandle, isItem } from "./dropped-files.js";
import { SetunError } from "./errors.js";
import { type HubOptions, type HubSource, isHubName, parseHubName } from "./hub-name.js";
import {
  detectEntry,
  EXPORT,
  EXPORTS,
  hasEnd,
  isModelFile,
  isPickle,
  PICKLE_ADVICE,
} from "./model-layout.js";
import { shown } from "./shown.js";

/**
 * A source of a model: a short name of {@link Models.catalog}, the URL of a folder or file, a Hub name
 * (`hf:owner/name`), files or folders that the user chose or dropped, a file system handle, or bytes by file name.
 *
 * A text that equals a short name is that model; a folder of the same name is `./name`. In Node a path that is there
 * comes first, then what `setun models pull` has stored, also by `owner/name` or an alias.
 */
export type LoadSource =
  | string
  | URL
  | File
  | Iterable<File>
  | DroppedItems
  | FileSystemFileHandle
  | FileSystemDirectoryHandle
  | Record<string, Uint8Array | ArrayBuffer | Blob>;

/** A resolved source: a folder in Hugging Face's layout, or the file `name` with the files beside it. */
export type ModelSource = UrlSource | BlobSource | HandleSource | HubSource;

/** Files behind a URL. */
export interface UrlSource {
  readonly kind: "url";
  readonly layout: "folder" | "file";
  readonly name: string;
  readonly url: string;
}

/** Files in memory or chosen by the user. */
export interface BlobSource {
  readonly kind: "blobs";
  readonly layout: "folder" | "file";
  readonly name: string;
  readonly blobs: ReadonlyMap<string, Blob>;
}

/** Files behind a file system handle. */
export interface HandleSource {
  readonly kind: "handle";
  readonly layout: "folder" | "file";
  readonly name: string;
  readonly handle: FileSystemFileHandle | FileSystemDirectoryHandle;
}

/**
 * Resolves a {@link LoadSource}. Drop events are read before the first wait.
 *
 * @param name The option in error messages.
 * @param resolve What a text or URL means, where files can be searched.
 * @throws {SetunError} `bad-option` for an invalid source, `not-found` without a model in it.
 */
export async function modelSource(
  source: LoadSource,
  base: string,
  hub: HubOptions = {},
  name = "source",
  resolve?: (source: string | URL) => Promise<string | URL>,
): Promise<ModelSource> {
  try {
    const isName = typeof source === "string" || source instanceof URL;
    return await anySource(resolve && isName ? await resolve(source) : source, base, hub);
  } catch (thrown) {
    throw named(thrown, name);
  }
}

/** The error with the name of the option. */
function named(thrown: unknown, name: string): unknown {
  if (name === "source" || !(thrown instanceof SetunError)) return thrown;
  const { code, message, cause } = thrown;
  return new SetunError(code, message.replace(/^source\b/, name), { cause });
}

async function anySource(source: LoadSource, base: string, hub: HubOptions): Promise<ModelSource> {
  if (typeof source === "string" || source instanceof URL) return addressSource(source, base, hub);
  if (typeof source !== "object" || source === null) throw unknown(shown(source));
  if (source instanceof Blob) return fileSource([source]);
  if (isHandle(source)) return handleSource(source);
  if (isEntry(source)) return droppedSource([source]);
  if ("then" in source) throw unknown(`${shown(source)}; await it first`);
  if (isUnnamed(source)) throw unnamed(source);
  if (!(Symbol.iterator in source)) return bytesSource(source);
  const list = [...(source as Iterable<unknown>)];
  const isDropped = list.some((item) => isItem(item) || isEntry(item));
  return isDropped ? droppedSource(list as DataTransferItem[]) : fileSource(list);
}

/**
 * Resolves a URL, a Hub name or a short name of the catalog.
 *
 * @throws {SetunError} `bad-option` for any other text, `bad-checkpoint` for the URL of a pickle.
 */
export function addressSource(
  source: string | URL,
  base: string,
  hub: HubOptions = {},
): UrlSource | HubSource {
  const named = catalogSource(source);
  if (typeof named === "string" && isHubName(named)) return parseHubName(named, hub);
  return urlSource(named, base);
}

/** Bytes without a name, from which the format would be known. */
function isUnnamed(source: object): boolean {
  return source instanceof ArrayBuffer || ArrayBuffer.isView(source) || source instanceof Response;
}

function unnamed(source: object): SetunError {
  const advice = source instanceof Response ? RESPONSE_ADVICE : BYTES_ADVICE;
  return new SetunError("bad-option", `source: found ${shown(source)}${advice}`);
}

function unknown(found: string): SetunError {
  return new SetunError("bad-option", `source: expected a URL, files or bytes by file name, found ${found}`);
}

/**
 * A URL that ends in `.safetensors`, `.gguf`, `.onnx` or `.setun` is a file; any other is a folder, with or without a final
 * slash.
 */
function urlSource(source: string | URL, base: string): UrlSource {
  const url = parseUrl(source, base);
  const name = decode(url.pathname.split("/").pop() ?? "");
  if (isModelFile(name)) return { kind: "url", layout: "file", name: nameInFolder(url, name), url: url.href };
  if (isPickle(name)) throw new SetunError("bad-checkpoint", `source: ${name} ${PICKLE_ADVICE}`);
  if (!url.pathname.endsWith("/")) url.pathname += "/";
  return { kind: "url", layout: "folder", name: lastFolder(url.pathname), url: url.href };
}

/** ONNX exports have the other files in the folder above theirs. */
function nameInFolder({ pathname }: URL, name: string): string {
  const isExport = hasEnd(name, ".onnx") && pathname.split("/").at(-2) === EXPORTS;
  return isExport ? `${EXPORTS}/${name}` : name;
}

/** The folder that the names of a source's files are relative to, or a file in it. */
export function folderOf({ layout, name, url }: UrlSource): string {
  return layout === "file" && name.includes("/") ? new URL("..", url).href : url;
}

function parseUrl(source: string | URL, base: string): URL {
  let url: URL;
  try {
    url = new URL(source, base);
  } catch (cause) {
    throw new SetunError("bad-option", `source: "${source}" is not a URL`, { cause });
  }
  const advice = NAMELESS[url.protocol];
  if (advice === undefined) return url;
  throw new SetunError("bad-option", `source: expected an http or https URL, found ${url.protocol}${advice}`);
}

const BYTES_ADVICE = '; pass the bytes by file name, such as { "model.gguf": bytes }';

const RESPONSE_ADVICE =
  '; pass its URL, or its bytes by file name, such as { "model.gguf": await response.blob() }';

/** Protocols of addresses without a file name, which tells the format, and what to do. */
const NAMELESS: Readonly<Record<string, string>> = {
  "blob:": BYTES_ADVICE,
  "data:": BYTES_ADVICE,
  "javascript:": "",
  "about:": "",
};

function lastFolder(path: string): string {
  return decode(path.split("/").filter(Boolean).pop() ?? "");
}

/** A percent sign need not begin an escape. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function fileSource(files: readonly unknown[]): BlobSource {
  const blobs = new Map<string, Blob>();
  let folder = "";
  for (const file of files) {
    if (!(file instanceof Blob && "name" in file && typeof file.name === "string")) {
      const found = `${shown(file)}${file instanceof Blob ? ", which has no name" : ""}`;
      throw new SetunError("bad-option", `source: expected a list of files, found ${found}${BYTES_ADVICE}`);
    }
    const path = "webkitRelativePath" in file ? String(file.webkitRelativePath) : "";
    const [top, ...rest] = (path || file.name).split("/");
    // Paths of a chosen folder begin with its name.
    if (rest.length > 0 && top !== undefined) folder = top;
    blobs.set(rest.length > 0 ? rest.join("/") : file.name, file);
  }
  return blobSource(blobs, folder);
}

async function droppedSource(items: Iterable<DataTransferItem | FileSystemEntry>): Promise<BlobSource> {
  const { blobs, folder } = await droppedFiles(entriesOf(items));
  return blobSource(blobs, folder);
}

async function handleSource(handle: FileSystemFileHandle | FileSystemDirectoryHandle): Promise<HandleSource> {
  if (handle.kind === "file") return { kind: "handle", handle, ...detectEntry([handle.name], "") };
  const names: string[] = [];
  for await (const [name, { kind }] of handle.entries()) {
    if (kind === "file") names.push(name);
    else if (name === EXPORTS && (await hasExport(handle))) names.push(EXPORT);
  }
  return { kind: "handle", handle, ...detectEntry(names, handle.name) };
}

async function hasExport(handle: FileSystemDirectoryHandle): Promise<boolean> {
  const [folder = "", file = ""] = EXPORT.split("/");
  const exports = await handle.getDirectoryHandle(folder);
  return exports.getFileHandle(file).then(
    () => true,
    () => false,
  );
}

function bytesSource(source: object): BlobSource {
  const blobs = new Map<string, Blob>();
  for (const [name, bytes] of Object.entries(source)) {
    if (!(bytes instanceof Uint8Array || bytes instanceof ArrayBuffer || bytes instanceof Blob)) {
      const expected = "a Uint8Array, an ArrayBuffer or a Blob";
      throw new SetunError("bad-option", `source["${name}"]: expected ${expected}, found ${shown(bytes)}`);
    }
    blobs.set(name, bytes instanceof Blob ? bytes : new Blob([bytes as Uint8Array<ArrayBuffer>]));
  }
  return blobSource(blobs, "");
}

function blobSource(blobs: ReadonlyMap<string, Blob>, folder: string): BlobSource {
  if (blobs.size === 0) throw new SetunError("not-found", "source: found no files");
  return { kind: "blobs", blobs, ...detectEntry([...blobs.keys()], folder) };
}

/** Whether a source is downloaded. Others are local. */
export function isDownload(source: ModelSource): source is UrlSource | HubSource {
  return source.kind === "hub" || (source.kind === "url" && /^https?:/.test(source.url));
}
