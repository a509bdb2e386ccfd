/** Verification of downloaded files. */

import { chunkCount, verifiedLine } from "../store/journal.js";
import type { FileEntry } from "../store/manifest.js";
import { Sha256Hasher } from "../store/sha256.js";
import { bytesError, FileChangedError } from "./errors.js";
import type { FileDownload } from "./file-download.js";
import type { PlannedFile } from "./plan.js";

/** Chunk hashes of files whose SHA-256 was wrong, by name. */
export type ChunkMismatches = Map<string, readonly string[]>;

/**
 * Reads a file back from the disk and compares it with the hashes of its chunks and of the server.
 *
 * @throws {FileChangedError} if everything has to be downloaded again. A second time the error names the chunks that
 * differ.
 */
export async function verifyFile(file: FileDownload, mismatches: ChunkMismatches): Promise<FileEntry> {
  const { name, sha256: expected, address } = file.planned;
  const { bytes, identity, chunkBytes } = file.header;
  const hasher = expected === undefined ? undefined : new Sha256Hasher();
  const count = chunkCount(file.header);
  for (let chunk = 0; chunk < count; chunk += 1) {
    const read = await file.readVerified(chunk);
    hasher?.add(read);
  }
  const chunks = Array.from({ length: count }, (_, chunk) => file.digest(chunk) ?? "");
  const actual = hasher?.finish();
  if (actual !== undefined && expected !== undefined && actual !== expected) {
    await file.reset();
    const first = mismatches.get(name);
    mismatches.set(name, chunks);
    if (first === undefined)
      throw new FileChangedError(`${name} has the SHA-256 ${actual}, expected ${expected}`);
    const differ = chunks.flatMap((digest, chunk) => (digest === first[chunk] ? [] : [chunk]));
    throw bytesError(address, differ, expected, actual);
  }
  if (actual !== undefined) await file.appendLine(verifiedLine(actual));
  return {
    name,
    bytes,
    ...(identity !== undefined && { etag: identity }),
    ...(actual !== undefined && { sha256: actual }),
    chunkBytes,
    chunks,
  };
}

/** Whether a stored file matches the planned one. */
export function matchesPlan({ bytes, sha256, etag }: FileEntry, planned: PlannedFile): boolean {
  if (bytes !== planned.bytes) return false;
  return planned.sha256 === undefined ? etag === planned.identity : sha256 === planned.sha256;
}
