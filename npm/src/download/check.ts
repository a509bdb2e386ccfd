/** Whether a file is what was sent, and what was told. */

import { chunkCount, wholeLine } from "../store/journal.js";
import type { FileEntry } from "../store/manifest.js";
import { bytesError, Changed } from "./faults.js";
import type { FileDownload } from "./file-download.js";
import type { Wanted } from "./plan.js";
import { Hasher } from "./sha256.js";

/** Hashes of the chunks of files that were wrong as a whole, by file. */
export type Doubted = Map<string, readonly string[]>;

/**
 * Reads all again as it comes, and compares it with what was sent and what was told.
 *
 * @throws {Changed} where all has to come once more. A second time, the error names the chunks that differ.
 */
export async function checkFile(file: FileDownload, doubted: Doubted): Promise<FileEntry> {
  const { name, sha256: told, address } = file.wanted;
  const { bytes, identity, chunkBytes } = file.subject;
  const hasher = told === undefined ? undefined : new Hasher();
  const count = chunkCount(file.subject);
  for (let chunk = 0; chunk < count; chunk += 1) {
    const read = await file.readBack(chunk);
    hasher?.add(read);
  }
  const chunks = Array.from({ length: count }, (_, chunk) => file.digest(chunk) ?? "");
  const whole = hasher?.finish();
  if (whole !== undefined && told !== undefined && whole !== told) {
    await file.forget();
    const first = doubted.get(name);
    doubted.set(name, chunks);
    if (first === undefined) throw new Changed(`${name} has the SHA-256 ${whole}, expected ${told}`);
    const differ = chunks.flatMap((digest, chunk) => (digest === first[chunk] ? [] : [chunk]));
    throw bytesError(address, differ, told, whole);
  }
  if (whole !== undefined) await file.note(wholeLine(whole));
  return {
    name,
    bytes,
    ...(identity !== undefined && { etag: identity }),
    ...(whole !== undefined && { sha256: whole }),
    chunkBytes,
    chunks,
  };
}

/** Whether a file that is there is the one that is wanted. */
export function isSame({ bytes, sha256, etag }: FileEntry, wanted: Wanted): boolean {
  if (bytes !== wanted.bytes) return false;
  return wanted.sha256 === undefined ? etag === wanted.identity : sha256 === wanted.sha256;
}
