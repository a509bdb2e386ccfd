/** Damage of stored files, by their sizes and by their hashes. */

import { chunkRange } from "./journal.js";
import type { FileEntry, Manifest } from "./manifest.js";
import { Sha256Hasher, sha256 } from "./sha256.js";
import type { ReadableStorage, Storage } from "./storage.js";

/** A file that is read in pieces, as a `Blob` is. */
export interface SlicedFile {
  readonly size: number;
  slice(start: number, end: number): { arrayBuffer(): Promise<ArrayBuffer> };
}

/** A storage whose files are read in pieces. */
export interface SlicedStorage extends ReadableStorage {
  open(path: string): Promise<SlicedFile | undefined>;
}

/** A stored file that is not what its manifest says. */
export interface Damage {
  readonly name: string;
  /** What is wrong with it: `it has 5 bytes, expected 7`. */
  readonly reason: string;
}

/** A revision in the store, with its manifest. */
export interface StoredFolder {
  readonly folder: string;
  readonly manifest: Manifest;
}

/** Called with the bytes of each piece that was read. */
export type OnRead = (bytes: number, file: string) => void;

/** Bytes of a file without hashes of chunks that are hashed at a time. */
const PIECE_BYTES = 8 << 20;

/** Files of the folder that are missing or have another size, which costs no read. */
export async function findWrongSizes(
  storage: ReadableStorage,
  { folder, manifest }: StoredFolder,
): Promise<Damage[]> {
  const damages: Damage[] = [];
  for (const { name, bytes, crossOrigin } of manifest.files) {
    if (crossOrigin) continue;
    const found = (await storage.open(`${folder}/${name}`))?.size;
    if (found !== bytes) damages.push({ name, reason: sizeReason(found, bytes) });
  }
  return damages;
}

/** Damaged files of the folder by their hashes. All are read; one without hashes is compared by its size alone. */
export async function findWrongBytes(
  storage: SlicedStorage,
  stored: StoredFolder,
  signal: AbortSignal,
  onRead: OnRead = () => undefined,
): Promise<Damage[]> {
  const damages = await findWrongSizes(storage, stored);
  const skipped = new Set(damages.map(({ name }) => name));
  const isRead = ({ name, crossOrigin }: FileEntry) => !crossOrigin && !skipped.has(name);
  for (const entry of stored.manifest.files.filter(isRead)) {
    const file = await storage.open(`${stored.folder}/${entry.name}`);
    const reason = file ? await whatIsWrong(file, entry, signal, onRead) : "it is missing";
    if (reason !== undefined) damages.push({ name: entry.name, reason });
  }
  return damages;
}

/** Removes damaged files. The manifest stays, so that the next download completes the model. */
export async function removeDamaged(
  storage: Storage,
  folder: string,
  damages: readonly Damage[],
): Promise<void> {
  for (const { name } of damages) await storage.remove(`${folder}/${name}`);
}

function sizeReason(found: number | undefined, expected: number): string {
  return found === undefined ? "it is missing" : `it has ${found} bytes, expected ${expected}`;
}

/** A damage in words. */
export function describeDamage({ name, reason }: Damage): string {
  return `${name} in the browser's store was damaged (${reason})`;
}

/** How a file differs from its size and hashes; `undefined` if it does not. */
export async function whatIsWrong(
  file: SlicedFile,
  { name, bytes, chunkBytes, chunks, sha256: expected }: FileEntry,
  signal: AbortSignal,
  onRead: OnRead,
): Promise<string | undefined> {
  if (file.size !== bytes) return sizeReason(file.size, bytes);
  const size = chunks.length > 0 ? chunkBytes : PIECE_BYTES;
  const whole = chunks.length > 0 || expected === undefined ? undefined : new Sha256Hasher();
  if (chunks.length === 0 && whole === undefined) return undefined;
  for (let chunk = 0; chunk * size < bytes; chunk += 1) {
    signal.throwIfAborted();
    const { start, end } = chunkRange({ bytes, chunkBytes: size }, chunk);
    const piece = await readPiece(file, start, end);
    if (piece === undefined) return `its bytes ${start} to ${end} cannot be read`;
    whole?.add(piece);
    if (whole === undefined && (await sha256(piece)) !== chunks[chunk])
      return `its bytes ${start} to ${end} have another SHA-256`;
    onRead(piece.length, name);
  }
  return whole === undefined || whole.finish() === expected ? undefined : "it has another SHA-256";
}

/** Bytes of a file; `undefined` if the disk does not give them. */
async function readPiece(
  file: SlicedFile,
  start: number,
  end: number,
): Promise<Uint8Array<ArrayBuffer> | undefined> {
  try {
    return new Uint8Array(await file.slice(start, end).arrayBuffer());
  } catch {
    return undefined;
  }
}
