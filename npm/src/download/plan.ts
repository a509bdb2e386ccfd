/** Download plans: the files of a model with their URLs, sizes and hashes. */

import { SetunError } from "../errors.js";
import type { ModelEntry } from "../model-layout.js";
import { isSafeFile, type ModelId } from "../store/names.js";
import { sha256 } from "../store/sha256.js";
import { networkError } from "./errors.js";

/** The files of a model to download. */
export interface Plan {
  readonly id: ModelId;
  /** A commit, or a hash of the files. */
  readonly revision: string;
  /** The requested branch or tag, which may become another commit. */
  readonly reference?: string;
  /** URL of the repository, folder or file. */
  readonly source: string;
  readonly licence?: string;
  /** The folder or file that the reader opens. */
  readonly entry: ModelEntry;
  /** Files to download, small ones first. */
  readonly files: readonly PlannedFile[];
  /** A further file that the reader requests; `undefined` if it does not exist. */
  more(name: string): Promise<PlannedFile | undefined>;
}

/** A file to download. */
export interface PlannedFile {
  readonly name: string;
  readonly address: string;
  readonly bytes: number;
  readonly sha256?: string | undefined;
  /** Entity tag or date. A change means another file. */
  readonly identity?: string | undefined;
  /** Strong entity tag for `If-Range`. */
  readonly condition?: string | undefined;
  /** Whether the URL is immutable because it names a commit. */
  readonly isPinned?: boolean;
  /** Size and hashes of the chunks, if known. */
  readonly chunks?: { readonly bytes: number; readonly digests: readonly string[] } | undefined;
  /** Contents, if they were read for the plan. */
  readonly content?: Uint8Array<ArrayBuffer>;
}

/** Revision of a URL without commits: a hash of its files. */
export async function revisionOf(files: readonly PlannedFile[]): Promise<string> {
  const lines = files.map(({ name, bytes, sha256 = null, identity = null }) =>
    JSON.stringify([name, bytes, sha256, identity]),
  );
  return (await sha256(new TextEncoder().encode(lines.join("\n")))).slice(0, 16);
}

/** Whether a revision is a full commit hash. */
export function isCommit(revision: string): boolean {
  return /^[0-9a-f]{40}$/i.test(revision);
}

/** Percent-encodes a path, except for slashes. */
export function escapePath(path: string): string {
  return path.split("/").map(encodeURIComponent).join("/");
}

/** URL of a file in a folder. The query of the folder is kept. */
export function inFolder(folder: string, file: string): string {
  const url = new URL(folder);
  url.hash = "";
  url.pathname = `${url.pathname.replace(/\/+$/, "")}/${escapePath(file)}`;
  return url.href;
}

/** All parts of a model in several files, `STEM-00001-of-00003.END`, or the name itself. */
export function partsOf(name: string): string[] {
  const parts = /^(.*-)(\d{5})-of-(\d{5})(\.[^./]+)$/.exec(name);
  const count = Number(parts?.[3] ?? 0);
  if (parts === null || count < 1 || count > MAX_PARTS) return [name];
  const numbers = Array.from({ length: count }, (_, i) => String(i + 1).padStart(5, "0"));
  return numbers.map((number) => `${parts[1]}${number}-of-${parts[3]}${parts[4]}`);
}

/** Maximum number of parts of a model. */
export const MAX_PARTS = 4096;

/** The files that a shard index names. @throws {SetunError} if it cannot be read. */
export function shardsOf(address: string, text: string): string[] {
  let map: unknown;
  try {
    map = JSON.parse(text)?.weight_map;
  } catch (cause) {
    throw new SetunError("bad-checkpoint", `${address}: the index cannot be read`, { cause });
  }
  const names = [...new Set(Object.values(map ?? {}))].map(String).sort();
  const bad = names.find((name) => !isSafeFile(name));
  if (bad !== undefined) throw networkError(address, `the index names the file "${bad}"`);
  if (names.length > MAX_PARTS) throw networkError(address, `the index names ${names.length} files`);
  return names;
}
