/** What the store knows of a model: `manifest.json` in its folder, as `setun models` writes it too. */

import { type Fields, FORMAT, fields, isCount, isTextOrNone, parseVersioned } from "./json.js";
import { isSafeFile } from "./names.js";
import { parseDigest } from "./sha256.js";

/** Name of the file. */
export const MANIFEST = "manifest.json";

/** Least and most bytes of a chunk that a manifest may have. */
const CHUNK_BYTES = { least: 4 << 10, most: 1 << 30 };

/** A revision of a model. */
export interface Manifest {
  /** `HOST/OWNER/NAME`. */
  readonly model: string;
  /** The commit of a hub's repository; of an address what its files were known by. */
  readonly revision: string;
  /** Where it came from: a repository, a folder or a file. */
  readonly source: string;
  /** Name of the licence, where the hub told one. */
  readonly licence?: string;
  /** When it was downloaded, in UTC: `2026-11-21T17:00:00Z`. */
  readonly pulled: string;
  /** Whether all files are there. */
  readonly complete: boolean;
  readonly files: readonly FileEntry[];
}

/** A file of a model. */
export interface FileEntry {
  /** Its name in the model's folder, with slashes. */
  readonly name: string;
  readonly bytes: number;
  /** What the server knew it by. */
  readonly etag?: string;
  /** The hash of the whole file. */
  readonly sha256?: string;
  /** Bytes of each chunk but the last; 0 where chunks have no hashes. */
  readonly chunkBytes: number;
  /** The hash of each chunk, in order. */
  readonly chunks: readonly string[];
}

/** The text of a manifest. */
export function printManifest({
  model,
  revision,
  source,
  licence,
  pulled,
  complete,
  files,
}: Manifest): string {
  const entries = files.map(({ name, bytes, etag, sha256, chunkBytes, chunks }) => {
    return { name, bytes, etag, sha256, chunk_bytes: chunkBytes, chunks };
  });
  const all = { format: FORMAT, model, revision, source, licence, pulled, complete, files: entries };
  return `${JSON.stringify(all, null, 2)}\n`;
}

/**
 * Reads a manifest; `undefined` if there is none, or one that is damaged. `where` is its place, for messages.
 *
 * @throws {SetunError} `bad-checkpoint` if a later version of setun has written it.
 */
export function parseManifest(text: string | undefined, where: string): Manifest | undefined {
  const found = parseVersioned(text, where);
  if (found === undefined) return undefined;
  const { model, revision, source, licence, pulled, complete } = found;
  const files = Array.isArray(found.files) ? found.files.map((file) => parseFile(fields(file))) : [undefined];
  const isSound =
    typeof model === "string" &&
    typeof revision === "string" &&
    typeof source === "string" &&
    typeof pulled === "string" &&
    typeof complete === "boolean" &&
    isTextOrNone(licence);
  const known = files.filter((file) => file !== undefined);
  const names = new Set(known.map(({ name }) => name));
  if (!isSound || names.size < files.length) return undefined;
  return { model, revision, source, ...(licence != null && { licence }), pulled, complete, files: known };
}

function parseFile(found: Fields | undefined): FileEntry | undefined {
  const { name, bytes, etag, chunk_bytes: chunkBytes = 0, chunks: list = [] } = found ?? {};
  const sha256 = found?.sha256 == null ? undefined : (parseDigest(found.sha256) ?? null);
  const chunks = Array.isArray(list) ? list.map(parseDigest) : [undefined];
  const digests = chunks.filter((digest) => digest !== undefined);
  if (typeof name !== "string" || !isSafeFile(name) || !isCount(bytes) || !isTextOrNone(etag))
    return undefined;
  if (sha256 === null || !isCount(chunkBytes) || digests.length < chunks.length) return undefined;
  if (chunks.length > 0 && !fits(bytes, chunkBytes, chunks.length)) return undefined;
  return {
    name,
    bytes,
    ...(etag != null && { etag }),
    ...(sha256 !== undefined && { sha256 }),
    chunkBytes,
    chunks: digests,
  };
}

function fits(bytes: number, chunkBytes: number, count: number): boolean {
  const isSize = chunkBytes >= CHUNK_BYTES.least && chunkBytes <= CHUNK_BYTES.most;
  return isSize && count === Math.ceil(bytes / chunkBytes);
}

/** A manifest with files added, or put in the place of those of the same names. */
export function withFiles(manifest: Manifest, files: readonly FileEntry[]): Manifest {
  const byName = new Map([...manifest.files, ...files].map((file) => [file.name, file]));
  return { ...manifest, files: [...byName.values()].sort((a, b) => (a.name < b.name ? -1 : 1)) };
}

/** The time in UTC, as a manifest writes it. */
export function now(): string {
  return `${new Date().toISOString().slice(0, 19)}Z`;
}
