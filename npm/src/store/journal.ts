/** Which chunks of a file have arrived: the lines of `FILE.chunks`, as `setun models` writes them too. */

import { parseDigest } from "./digest.js";
import { FORMAT, isCount, isTextOrNone, parseFields } from "./json.js";

/** The file that a journal is of: all must be the same for a download to go on. */
export interface Subject {
  readonly bytes: number;
  readonly chunkBytes: number;
  /** What the server knows the file by. */
  readonly identity?: string;
  /** The hash that was told of the whole file. */
  readonly sha256?: string;
}

/** What a journal says. */
export interface Journal {
  readonly subject: Subject;
  /** Hashes of the chunks that are there, by number. */
  readonly chunks: ReadonlyMap<number, string>;
  /** Numbers in the order in which they came. */
  readonly order: readonly number[];
  /** The whole file's hash, once it has been checked. */
  readonly whole?: string;
  /** How many lines this is; those behind are to be forgotten before others are appended. */
  readonly lines: number;
}

/** The first line. */
export function subjectLine({ bytes, chunkBytes, identity, sha256 }: Subject): string {
  const known = { identity: identity ?? null, sha256: sha256 ?? null };
  return JSON.stringify({ format: FORMAT, bytes, chunk_bytes: chunkBytes, ...known });
}

/** The line of a chunk that is there. */
export function chunkLine(chunk: number, sha256: string): string {
  return JSON.stringify({ chunk: [chunk, sha256] });
}

/** The line of a file that has been checked as a whole. */
export function wholeLine(sha256: string): string {
  return JSON.stringify({ whole: sha256 });
}

/** Reads the lines of a journal; `undefined` if they begin with none. What follows a line that cannot be read counts for nothing. */
export function readJournal(lines: readonly string[]): Journal | undefined {
  const subject = readSubject(lines[0]);
  if (subject === undefined) return undefined;
  const chunks = new Map<number, string>();
  const order: number[] = [];
  let whole: string | undefined;
  let good = 1;
  for (const line of lines.slice(1)) {
    const found = readLine(line, subject);
    if (found === undefined) break;
    if (found.chunk === undefined) whole = found.sha256;
    else {
      chunks.set(found.chunk, found.sha256);
      order.push(found.chunk);
    }
    good += 1;
  }
  return { subject, chunks, order, ...(whole !== undefined && { whole }), lines: good };
}

function readSubject(line: string | undefined): Subject | undefined {
  const found = parseFields(line);
  if (found?.format !== FORMAT) return undefined;
  const { bytes, chunk_bytes: chunkBytes, identity, sha256 } = found;
  const digest = parseDigest(sha256);
  const isSound = isTextOrNone(identity) && isTextOrNone(sha256) && (digest !== undefined || sha256 == null);
  if (!isCount(bytes) || !isCount(chunkBytes) || chunkBytes === 0 || !isSound) return undefined;
  return {
    bytes,
    chunkBytes,
    ...(typeof identity === "string" && { identity }),
    ...(digest !== undefined && { sha256: digest }),
  };
}

function readLine(line: string, subject: Subject): { chunk?: number; sha256: string } | undefined {
  const found = parseFields(line);
  const whole = parseDigest(found?.whole);
  if (whole !== undefined) return { sha256: whole };
  if (!Array.isArray(found?.chunk) || found.chunk.length !== 2) return undefined;
  const [chunk, sha256] = [found.chunk[0], parseDigest(found.chunk[1])];
  if (!isCount(chunk) || chunk >= chunkCount(subject) || sha256 === undefined) return undefined;
  return { chunk, sha256 };
}

/** The lines of a journal without some chunks, and without the word that the whole was checked. */
export function linesWithout({ subject, chunks, order }: Journal, bad: ReadonlySet<number>): string[] {
  const kept = [...new Set(order)].filter((chunk) => !bad.has(chunk));
  return [subjectLine(subject), ...kept.map((chunk) => chunkLine(chunk, chunks.get(chunk) ?? ""))];
}

/** True if a journal of one goes on for the other. */
export function sameSubject(a: Subject, b: Subject): boolean {
  return subjectLine(a) === subjectLine(b);
}

/** Number of chunks of a file. */
export function chunkCount({ bytes, chunkBytes }: Subject): number {
  return Math.ceil(bytes / chunkBytes);
}

/** Where a chunk lies in its file. */
export function chunkRange({ bytes, chunkBytes }: Subject, chunk: number): { start: number; end: number } {
  const start = Math.min(chunk * chunkBytes, bytes);
  return { start, end: Math.min(start + chunkBytes, bytes) };
}

/** Bytes of the chunks that are there. */
export function bytesThere({ subject, chunks }: Journal): number {
  const ranges = [...chunks.keys()].map((chunk) => chunkRange(subject, chunk));
  return ranges.reduce((sum, { start, end }) => sum + end - start, 0);
}
