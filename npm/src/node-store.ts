/** Models in the store of `setun models`, for Node. It is only read. */

import { readdir, readFile, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";
import { catalogSource } from "./catalog.js";
import { entryOfSelection, selectStoredFiles } from "./download/select-files.js";
import { HUB_PREFIX } from "./hub-name.js";
import { fields, parseVersioned } from "./store/json.js";
import { commitOf, lookupModel } from "./store/lookup.js";
import { modelIdText, parseName } from "./store/names.js";
import { completeRevision, currentRevision, storedModels } from "./store/revisions.js";
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

/** The path of a stored model: a folder, or a file. An alias comes before the catalog. */
export async function storedPath(name: string): Promise<string | undefined> {
  const root = storeFolder();
  const storage = diskStorage(root);
  const source = await unaliased(storage, name);
  const hubName = source.startsWith(HUB_PREFIX) ? source : `${HUB_PREFIX}${source}`;
  if (!isHubModel(hubName)) return undefined;
  const query = await lookupModel(storage, hubName, "file:///");
  if (query === undefined) return undefined;
  const { id, revision, file } = query;
  const found =
    revision === undefined
      ? await currentRevision(storage, id)
      : await completeRevision(storage, id, await commitOf(storage, id, revision));
  if (found === undefined) return undefined;
  const names = found.manifest.files.map((each) => each.name);
  const selection = selectStoredFiles(modelIdText(id), join(root, found.folder), names, file);
  const entry = entryOfSelection(selection, id.name);
  return join(root, found.folder, entry.layout === "file" ? entry.name : "");
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

function diskStorage(root: string): ReadableStorage {
  return {
    readText: (path) => unlessMissing(readFile(join(root, path), "utf8")),
    open: (path) => unlessMissing(stat(join(root, path))),
    list: async (path) => {
      const entries = await unlessMissing(readdir(join(root, path), { withFileTypes: true }));
      return (entries ?? []).map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name));
    },
  };
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
