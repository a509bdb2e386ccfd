/** Manifests: `manifest.json` of a stored model, in the format of `setun models`. */

import { type Fields, FORMAT, fields, isCount, isTextOrNone, parseVersioned } from "./json.js";
import { isSafeFile } from "./names.js";
import { parseDigest } from "./sha256.js";

/** File name of the manifest. */
export const MANIFEST = "manifest.json";

/** Minimum and maximum size of a chunk. */
const CHUNK_BYTES = { min: 4 << 10, max: 1 << 30 };

/** A revision of a model. */
export interface Manifest {
  /** `HOST/OWNER/NAME`. */
  readonly model: string;
  /** Commit of the Hub repository, or a hash of the files of a URL. */
  readonly revision: string;
  /** URL of the repository, folder or file. */
  readonly source: string;
  /** Licence as the Hub names it, if it does. */
  readonly licence?: string;
  /** Time of the download in UTC: `2026-11-21T17:00:00Z`. */
  readonly pulled: string;
  /** Whether all files are stored. */
  readonly complete: boolean;
  readonly files: readonly FileEntry[];
}

/** A file of a model. */
export interface FileEntry {
  /** Path in the model's folder. */
  readonly name: string;
  readonly bytes: number;
  /** Entity tag or date on the server. */
  readonly etag?: string;
  /** SHA-256 of the whole file. */
  readonly sha256?: string;
  /** Size of each chunk but the last; 0 without chunk hashes. */
  readonly chunkBytes: number;
  /** SHA-256 of each chunk. */
  readonly chunks: readonly string[];
  /** Whether it is in Cross-Origin Storage instead of the folder. */
  readonly crossOrigin?: boolean;
}

/** A manifest as text. */
export function printManifest({
  model,
  revision,
  source,
  licence,
  pulled,
  complete,
  files,
}: Manifest): string {
  const entries = files.map(({ name, bytes, etag, sha256, chunkBytes, chunks, crossOrigin }) => {
    const isElsewhere = crossOrigin && { cross_origin: true };
    return { name, bytes, etag, sha256, chunk_bytes: chunkBytes, chunks, ...isElsewhere };
  });
  const all = { format: FORMAT, model, revision, source, licence, pulled, complete, files: entries };
  return `${JSON.stringify(all, null, 2)}\n`;
}

/**
 * Reads a manifest; `undefined` if there is none or it is damaged. `where` is its path, for messages.
 *
 * @throws {SetunError} `bad-checkpoint` if a later version of setun wrote it.
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
    ...(sha256 !== undefined && found?.cross_origin === true && { crossOrigin: true }),
  };
}

function fits(bytes: number, chunkBytes: number, count: number): boolean {
  const isSize = chunkBytes >= CHUNK_BYTES.min && chunkBytes <= CHUNK_BYTES.max;
  return isSize && count === Math.ceil(bytes / chunkBytes);
}

/** A manifest with files added or replaced. */
export function withFiles(manifest: Manifest, files: readonly FileEntry[]): Manifest {
  const byName = new Map([...manifest.files, ...files].map((file) => [file.name, file]));
  return { ...manifest, files: [...byName.values()].sort((a, b) => (a.name < b.name ? -1 : 1)) };
}

/** The current time in UTC. */
export function now(): string {
  return `${new Date().toISOString().slice(0, 19)}Z`;
}
