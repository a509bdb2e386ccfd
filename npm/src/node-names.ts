/** Names of models in Node: paths, stored models, short names and Hub names, in this order. */

import { readdir, stat } from "node:fs/promises";
import { basename, dirname, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { catalogNames } from "./catalog.js";
import { CATALOG } from "./catalog-entries.js";
import { SetunError } from "./errors.js";
import { isHubName } from "./hub-name.js";
import { detectEntry, EXPECTED_MODEL, EXPORT, formatNames } from "./model-layout.js";
import { storedNames, storedPath, storeFolder, unlessMissing } from "./node-store.js";
import { nearestName } from "./shown.js";

/** A name that can be one of a model, of one word or `owner/name`. */
const NAME = /^\w[\w.-]*(\/\w[\w.-]*)?$/;

/** A URL; a letter of a drive is none. */
const ADDRESS = /^[a-z][\w+.-]+:/i;

/**
 * What a text or URL means: the URL of a file or folder on the disk, or the text itself if it is to be fetched.
 *
 * @param verify Whether a stored model is compared with its hashes.
 * @throws {SetunError} `not-found` if it is neither, with the places that were searched; `bad-checkpoint` for a stored
 *   model that is damaged.
 */
export async function resolveInNode(source: string | URL, verify = false): Promise<string | URL> {
  const text = String(source);
  const path = localPath(text);
  const found = path && (await existing(text, path));
  if (found !== undefined) return modelAt(found);
  if (path === undefined && !isHubName(text)) return source;
  const stored = await storedPath(text, verify);
  if (stored !== undefined) return pathToFileURL(stored);
  if (isHubName(text) || catalogNames().includes(text)) return text;
  throw await missing(text, path ?? text);
}

/** The path that a text would be; `undefined` of a URL with another protocol than `file`. */
function localPath(text: string): string | undefined {
  if (/^file:/i.test(text)) return URL.canParse(text) ? fileURLToPath(text) : undefined;
  return ADDRESS.test(text) ? undefined : resolve(text);
}

/** The path if there is something, as it is or with the escapes of a URL. */
async function existing(text: string, path: string): Promise<string | undefined> {
  if (await unlessMissing(stat(path))) return path;
  if (!text.includes("%") || text.startsWith("file:")) return undefined;
  const decoded = fileURLToPath(new URL(text.replaceAll("\\", "/"), pathToFileURL(`${process.cwd()}/`)));
  return (await unlessMissing(stat(decoded))) && decoded;
}

/** The file or the folder of a model. */
async function modelAt(path: string): Promise<URL> {
  if (!(await stat(path)).isDirectory()) return pathToFileURL(path);
  const names = await readdir(path);
  if (await unlessMissing(stat(resolve(path, EXPORT)))) names.push(EXPORT);
  try {
    const { layout, name } = detectEntry(names, basename(path));
    return pathToFileURL(layout === "file" ? resolve(path, name) : `${path}/`);
  } catch (thrown) {
    if (!(thrown instanceof SetunError)) throw thrown;
    throw new SetunError(thrown.code, thrown.message.replace("source: found", `source: ${path} has`));
  }
}

async function missing(text: string, path: string): Promise<SetunError> {
  const folder = dirname(path);
  const names = await unlessMissing(readdir(folder));
  const beside =
    names === undefined ? `there is no folder ${folder} either` : `${folder} has ${formatNames(names)}`;
  if (!NAME.test(text)) {
    const message = `source: no model at ${path}: expected ${EXPECTED_MODEL}, found nothing; ${beside}`;
    return new SetunError("not-found", message);
  }
  const searched = `there is no such file or folder (${beside}), nor such a model in the store at ${storeFolder()}`;
  return new SetunError("not-found", `source: no model "${text}": ${searched}; ${await advice(text)}`);
}

async function advice(text: string): Promise<string> {
  const isOfHub = text.includes("/");
  const repositories = CATALOG.map(({ repository }) => repository);
  const known = [...catalogNames(), ...repositories, ...(await storedNames())];
  // A name without its owner is near.
  const compared = new Map(known.map((name) => [isOfHub ? name : basename(name), name]));
  const nearest = compared.get(nearestName(text, [...compared.keys()]) ?? "");
  const meant = nearest === undefined ? undefined : `did you mean "${nearest}"?`;
  if (!isOfHub) return meant ?? "models.catalog has the short names";
  return `${meant ? `${meant} ` : ""}"hf:${text}" loads it from the Hub, \`setun models pull ${text}\` keeps it here`;
}
