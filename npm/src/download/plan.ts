/** What is to be downloaded. */

import type { ModelEntry } from "../model-layout.js";
import type { ModelId } from "../store/names.js";
import { sha256 } from "../store/sha256.js";

/** A model's files, once it is known which they are. */
export interface Plan {
  readonly id: ModelId;
  /** A commit, or what the files were known by. */
  readonly revision: string;
  /** The name of the revision that was asked for, if it may be another commit later. */
  readonly reference?: string;
  /** Where it comes from. */
  readonly source: string;
  readonly licence?: string;
  /** What the reader is to open: the folder, or one file. */
  readonly entry: ModelEntry;
  /** The small ones first. */
  readonly files: readonly PlannedFile[];
  /** A file that the reader asks for beside those; `undefined` if there is none. */
  more(name: string): Promise<PlannedFile | undefined>;
}

/** A file that is to come. */
export interface PlannedFile {
  readonly name: string;
  readonly address: string;
  readonly bytes: number;
  readonly sha256?: string | undefined;
  /** What it is known by: another identity is another file. */
  readonly identity?: string | undefined;
  /** What the server takes for a condition that it is still this file. */
  readonly condition?: string | undefined;
  /** Whether the address never has another file: it names a commit. */
  readonly isPinned?: boolean;
  /** Size and hashes of its chunks, where they were told. */
  readonly chunks?: { readonly bytes: number; readonly digests: readonly string[] } | undefined;
  /** All of it, where it was read to make the plan. */
  readonly content?: Uint8Array<ArrayBuffer>;
}

/** A name for the files of an address, which has no commits. */
export async function revisionOf(files: readonly PlannedFile[]): Promise<string> {
  const lines = files.map(({ name, bytes, sha256 = null, identity = null }) =>
    JSON.stringify([name, bytes, sha256, identity]),
  );
  return (await sha256(new TextEncoder().encode(lines.join("\n")))).slice(0, 16);
}

/** True for the full name of a commit, which never is another. */
export function isCommit(revision: string): boolean {
  return /^[0-9a-f]{40}$/i.test(revision);
}

/** Escapes what has a meaning in an address, slashes excepted. */
export function escapePath(path: string): string {
  return path.split("/").map(encodeURIComponent).join("/");
}

/** The address of a file in a folder. What follows a question mark stays at the end. */
export function inFolder(folder: string, file: string): string {
  const url = new URL(folder);
  url.hash = "";
  url.pathname = `${url.pathname.replace(/\/+$/, "")}/${escapePath(file)}`;
  return url.href;
}

/** The other parts of a model in several files: `STEM-00001-of-00003.END`; the file alone if it is no part. */
export function partsOf(name: string): string[] {
  const parts = /^(.*-)(\d{5})-of-(\d{5})(\.[^./]+)$/.exec(name);
  const count = Number(parts?.[3] ?? 0);
  if (parts === null || count < 1 || count > MAX_PARTS) return [name];
  const numbers = Array.from({ length: count }, (_, i) => String(i + 1).padStart(5, "0"));
  return numbers.map((number) => `${parts[1]}${number}-of-${parts[3]}${parts[4]}`);
}

/** Most parts of a model. */
export const MAX_PARTS = 4096;
