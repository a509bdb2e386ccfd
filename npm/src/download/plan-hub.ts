/** Download plans for Hub repositories. */

import { SetunError } from "../errors.js";
import type { HubSource } from "../hub-name.js";
import { FilteredFiles, type ModelFiles } from "../model-files.js";
import type { ModelEntry } from "../model-layout.js";
import { isCount } from "../store/json.js";
import { hubModelId, isSafeFile } from "../store/names.js";
import { DEFAULT_REVISION } from "../store/revisions.js";
import { parseDigest } from "../store/sha256.js";
import { UrlFiles } from "../url-files.js";
import { pageAdvice } from "./answers.js";
import { networkError, noFileError } from "./errors.js";
import type { HttpClient } from "./http.js";
import { probeFile } from "./http.js";
import { escapePath, isCommit, type Plan, type PlannedFile } from "./plan.js";
import { entryOfSelection, selectFiles } from "./select-files.js";

/** Maximum size of a file list. */
const MAX_LIST_BYTES = 32 << 20;

/** The fields of the Hub's answer that are used. */
interface List {
  readonly sha?: unknown;
  readonly siblings?: readonly Sibling[];
  readonly cardData?: { readonly license?: unknown };
}

interface Sibling {
  readonly rfilename: string;
  readonly size?: number;
  readonly blobId?: string;
  readonly lfs?: { readonly sha256?: string; readonly oid?: string; readonly size?: number };
}

/** Requests the file list of a repository and selects the files of the model. */
export async function planHub(http: HttpClient, source: HubSource): Promise<Plan> {
  const { endpoint, model, revision = DEFAULT_REVISION } = source;
  const [owner = "", name = ""] = model.split("/");
  const { list, commit } = await readList(http, source, revision);
  const address = `${endpoint}/${model}`;
  const siblings = new Map((list.siblings ?? []).map((sibling) => [sibling.rfilename, sibling]));
  const choice = selectFiles(model, address, [...siblings.keys()], source.file);
  const planned = (file: string) =>
    planFile(http, hubFolder(endpoint, model, commit), file, siblings.get(file));
  const files = await Promise.all([...choice.companions, ...choice.weights].map(planned));
  const licence = list.cardData?.license;
  return {
    id: await hubModelId(endpoint, owner, name),
    revision: commit,
    ...(revision !== commit && { reference: revision }),
    source: address,
    ...(typeof licence === "string" && { licence }),
    entry: entryOfSelection(choice, name),
    files,
    more: async (file) => (siblings.has(file) && isSafeFile(file) ? planned(file) : undefined),
  };
}

/** URL of the files of a repository. */
export function hubFolder(endpoint: string, model: string, commit: string): string {
  return `${endpoint}/${model}/resolve/${encodeURIComponent(commit)}/`;
}

async function readList(http: HttpClient, { endpoint, model }: HubSource, revision: string) {
  const address = `${endpoint}/api/models/${model}/revision/${encodeURIComponent(revision)}?blobs=true`;
  const found = await http.fetchSmall(address, MAX_LIST_BYTES);
  if (found === undefined) {
    const message = `${endpoint}/${model}: no such repository, or no revision "${revision}" of it${pageAdvice(address)}`;
    throw new SetunError("not-found", message);
  }
  const list = parseList(address, new TextDecoder().decode(found.bytes));
  if (typeof list.sha !== "string" || !isCommit(list.sha)) {
    throw networkError(address, `the hub named the commit "${list.sha}"`);
  }
  return { list, commit: list.sha };
}

function parseList(address: string, text: string): List {
  try {
    const list: List = JSON.parse(text);
    const isList = (list.siblings ?? []).every(({ rfilename }) => typeof rfilename === "string");
    if (isList) return list;
  } catch {
    // The error follows.
  }
  throw networkError(address, "the hub's list cannot be read");
}

/** Files of a commit never change, so sizes and hashes of the list need no request. */
async function planFile(
  http: HttpClient,
  folder: string,
  name: string,
  sibling: Sibling | undefined,
): Promise<PlannedFile> {
  const address = folder + escapePath(name);
  const { lfs, size, blobId } = sibling ?? {};
  const sha256 = parseDigest((lfs?.sha256 ?? lfs?.oid)?.replace(/^sha256:/, ""));
  const bytes = lfs?.size ?? size;
  const oid = sha256 ?? blobId;
  const identity = oid === undefined ? undefined : `"${oid}"`;
  if (isCount(bytes)) return { name, address, bytes, sha256, identity, isPinned: true };
  const found = await probeFile(http, address);
  if (found === undefined) throw noFileError(address);
  if (found.bytes === undefined)
    throw networkError(address, "neither the hub nor the server states its size");
  const { condition } = found;
  return { name, address, bytes: found.bytes, sha256, identity: identity ?? found.identity, condition };
}

/** Opens a Hub model whose files are streamed, not stored. */
export async function openHubFiles(
  source: HubSource,
  http: HttpClient,
): Promise<{ readonly entry: ModelEntry; open(): ModelFiles }> {
  const { endpoint, model } = source;
  const plan = await planHub(http, source);
  const url = hubFolder(endpoint, model, plan.revision);
  const headers = http.authorization(url);
  const has = async (name: string) => (await plan.more(name)) !== undefined;
  const measure = async (name: string) => plan.files.find((file) => file.name === name)?.bytes;
  const folder = { kind: "url", layout: "folder", name: plan.entry.name, url } as const;
  const open = () => new FilteredFiles(new UrlFiles(folder, http.signal, { headers }, measure), has);
  return { entry: plan.entry, open };
}
