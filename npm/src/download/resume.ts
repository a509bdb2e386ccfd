/** Resumption of a partial download. */

import {
  type ChunkPrefix,
  chunkRange,
  headerLine,
  type Journal,
  type JournalHeader,
  linesWithoutChunks,
  readJournal,
  sameHeader,
} from "../store/journal.js";
import { sha256 } from "../store/sha256.js";
import type { PartialFile } from "../store/storage.js";
import type { PlannedFile } from "./plan.js";
import type { DownloadSettings } from "./settings.js";

/** A partial file and its verified chunks. */
export interface ResumedPart {
  readonly part: PartialFile;
  readonly header: JournalHeader;
  readonly chunks: Map<number, string>;
  /** Beginnings of other chunks, which are verified when they are continued. */
  readonly prefixes: Map<number, ChunkPrefix>;
}

/** Resumes a partial file with the same header, or starts it again. */
export async function resumePart(
  part: PartialFile,
  planned: PlannedFile,
  settings: DownloadSettings,
): Promise<ResumedPart> {
  const journal = readJournal(part.lines);
  const header = headerOf(planned, journal?.header.chunkBytes ?? settings.chunkBytes);
  if (journal !== undefined && sameHeader(journal.header, header)) {
    const corrupt = await corruptChunks(part, journal, 2 * settings.connections);
    const isTruncated = part.lines.length > journal.lines;
    if (isTruncated || corrupt.size > 0) await part.rewrite(linesWithoutChunks(journal, corrupt));
    const chunks = new Map([...journal.chunks].filter(([chunk]) => !corrupt.has(chunk)));
    return { part, header, chunks, prefixes: new Map(journal.prefixes) };
  }
  const fresh = headerOf(planned, settings.chunkBytes);
  await part.clear();
  await part.appendLine(headerLine(fresh));
  return { part, header: fresh, chunks: new Map(), prefixes: new Map() };
}

function headerOf({ bytes, identity, sha256, chunks }: PlannedFile, chunkBytes: number): JournalHeader {
  return {
    bytes,
    chunkBytes: chunks?.bytes ?? chunkBytes,
    ...(identity !== undefined && { identity }),
    ...(sha256 !== undefined && { sha256 }),
  };
}

/** Chunks among the latest whose bytes do not match the journal: a crash loses these first. */
async function corruptChunks(part: PartialFile, journal: Journal, limit: number): Promise<Set<number>> {
  const corrupt = new Set<number>();
  for (const chunk of new Set(journal.order.slice(-limit))) {
    const { start, end } = chunkRange(journal.header, chunk);
    const bytes = await part.read(start, end);
    if ((await sha256(bytes as Uint8Array<ArrayBuffer>)) !== journal.chunks.get(chunk)) corrupt.add(chunk);
  }
  return corrupt;
}
