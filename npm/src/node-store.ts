/** Models in the store of `setun models`, for Node. It is only read. */

import { open, readdir, readFile, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";
import { catalogSource } from "./catalog.js";
import { entryOfSelection, selectStoredFiles } from "./download/select-files.js";
import { SetunError } from "./errors.js";
import { HUB_PREFIX } from "./hub-name.js";
import { type Damage, findWrongBytes, findWrongSizes, type SlicedStorage } from "./store/damage.js";
import { fields, parseVersioned } from "./store/json.js";
import { lookupModel } from "./store/lookup.js";
import { modelIdText, parseName } from "./store/names.js";
import { downloadedRevision, storedModels } from "./store/revisions.js";
import type { ReadableStorage } from "./store/storage.js";

/** The longest chain of aliases. */
const MAX_ALIASES = 8;

/** The folder of the store, as the command has it. */
export function storeFolder(): string {
  const { SETUN_HOME, LOCALAPPDATA, XDG_DATA_HOME } = process.env;
  if (SETUN_HOME) return SETUN_HOME;
  if (process.platform === "win32") return join(LOCALAPPDATA || join(homedir(), "AppData/Local"), "setun");
  if (process.platform === "darwin") return join(homedir(), "Library/Application Support/setun");
  const isData = XDG_DATA_HOME !== undefined && isAbsolute(XDG_DATA_HOME);
  return join(isData ? XDG_DATA_HOME : join(homedir(), ".local/share"), "setun");
}

/**
 * The path of a stored model: a folder, or a file. An alias comes before the catalog. With `verify` all of its files are
 * compared with their hashes, else their sizes.
 *
 * @throws {SetunError} `bad-checkpoint` if its files are damaged.
 */
export async function storedPath(name: string, verify = false): Promise<string | undefined> {
  const root = storeFolder();
  const storage = diskStorage(root);
  const source = await unaliased(storage, name);
  const hubName = source.startsWith(HUB_PREFIX) ? source : `${HUB_PREFIX}${source}`;
  if (!isHubModel(hubName)) return undefined;
  const query = await lookupModel(storage, hubName, "file:///");
  if (query === undefined) return undefined;
  const { id, revision, file } = query;
  const found = await downloadedRevision(storage, id, revision);
  if (found === undefined) return undefined;
  const { signal } = new AbortController();
  const damages = await (verify ? findWrongBytes(storage, found, signal) : findWrongSizes(storage, found));
  if (damages.length > 0) throw damaged(modelIdText(id), join(root, found.folder), damages);
  const names = found.manifest.files.map((each) => each.name);
  const selection = selectStoredFiles(modelIdText(id), join(root, found.folder), names, file);
  const entry = entryOfSelection(selection, id.name);
  return join(root, found.folder, entry.layout === "file" ? entry.name : "");
}

function damaged(model: string, folder: string, damages: readonly Damage[]): SetunError {
  const files = damages.map(({ name, reason }) => `${join(folder, name)} is damaged: ${reason}`).join("; ");
  const message = `${files}; \`setun models pull --verify ${model}\` downloads what is wrong with it again`;
  return new SetunError("bad-checkpoint", message);
}

/** Names of stored models, and aliases. */
export async function storedNames(): Promise<string[]> {
  const storage = diskStorage(storeFolder());
  const models = await storedModels(storage);
  return [...(await aliases(storage)).keys(), ...models.map(({ owner, name }) => `${owner}/${name}`)];
}

async function unaliased(storage: ReadableStorage, name: string): Promise<string> {
  const known = await aliases(storage);
  let source = name;
  for (let left = MAX_ALIASES; left > 0; left--) {
    const target = known.get(source);
    if (target === undefined) break;
    source = target;
  }
  return catalogSource(source);
}

async function aliases(storage: ReadableStorage): Promise<Map<string, string>> {
  const file = "aliases.json";
  const found = parseVersioned(await storage.readText(file), file);
  const pairs = Object.entries(fields(found?.aliases) ?? {});
  return new Map(pairs.filter((pair): pair is [string, string] => typeof pair[1] === "string"));
}

function isHubModel(hubName: string): boolean {
  try {
    return parseName(hubName.slice(HUB_PREFIX.length)).location.kind === "hub";
  } catch {
    return false;
  }
}

function diskStorage(root: string): SlicedStorage {
  return {
    readText: (path) => unlessMissing(readFile(join(root, path), "utf8")),
    open: async (path) => {
      const found = await unlessMissing(stat(join(root, path)));
      const slice = (start: number, end: number) => {
        return { arrayBuffer: () => readRange(join(root, path), start, end) };
      };
      return found && { size: found.size, slice };
    },
    list: async (path) => {
      const entries = await unlessMissing(readdir(join(root, path), { withFileTypes: true }));
      return (entries ?? []).map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name));
    },
  };
}

async function readRange(path: string, start: number, end: number): Promise<ArrayBuffer> {
  const file = await open(path);
  try {
    const bytes = new Uint8Array(end - start);
    const { bytesRead } = await file.read(bytes, 0, bytes.length, start);
    return bytes.buffer.slice(0, bytesRead);
  } finally {
    await file.close();
  }
}

/** `undefined` where there is nothing at a path. */
export async function unlessMissing<Result>(result: Promise<Result>): Promise<Result | undefined> {
  try {
    return await result;
  } catch (cause) {
    const code = cause instanceof Error && "code" in cause ? cause.code : undefined;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw cause;
  }
}
