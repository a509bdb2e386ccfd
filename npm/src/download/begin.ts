/** Before a file's bytes come: what an earlier download has left of it, without what the disk has lost. */

import { sha256 } from "../store/digest.js";
import {
  chunkRange,
  type Journal,
  linesWithout,
  readJournal,
  type Subject,
  sameSubject,
  subjectLine,
} from "../store/journal.js";
import type { Part } from "../store/storage.js";
import type { Wanted } from "./plan.js";
import type { DownloadSettings } from "./settings.js";

/** What was there of a file, and where more of it goes. */
export interface Begun {
  readonly part: Part;
  readonly subject: Subject;
  readonly chunks: Map<number, string>;
}

/** Takes up what is there of a file, or begins it. */
export async function beginPart(part: Part, wanted: Wanted, settings: DownloadSettings): Promise<Begun> {
  const journal = readJournal(part.lines);
  const subject = subjectOf(wanted, journal?.subject.chunkBytes ?? settings.chunkBytes);
  if (journal !== undefined && sameSubject(journal.subject, subject)) {
    const lost = await lostChunks(part, journal, 2 * settings.connections);
    const isCutOff = part.lines.length > journal.lines;
    if (isCutOff || lost.size > 0) await part.rewrite(linesWithout(journal, lost));
    const chunks = new Map([...journal.chunks].filter(([chunk]) => !lost.has(chunk)));
    return { part, subject, chunks };
  }
  const fresh = subjectOf(wanted, settings.chunkBytes);
  await part.clear();
  await part.note(subjectLine(fresh));
  return { part, subject: fresh, chunks: new Map() };
}

function subjectOf({ bytes, identity, sha256, chunks }: Wanted, chunkBytes: number): Subject {
  return {
    bytes,
    chunkBytes: chunks?.bytes ?? chunkBytes,
    ...(identity !== undefined && { identity }),
    ...(sha256 !== undefined && { sha256 }),
  };
}

/** Reads again the chunks that came last: should the disk have lost any, it is these. */
async function lostChunks(part: Part, journal: Journal, most: number): Promise<Set<number>> {
  const lost = new Set<number>();
  for (const chunk of new Set(journal.order.slice(-most))) {
    const { start, end } = chunkRange(journal.subject, chunk);
    const bytes = await part.read(start, end);
    if ((await sha256(bytes as Uint8Array<ArrayBuffer>)) !== journal.chunks.get(chunk)) lost.add(chunk);
  }
  return lost;
}
