/** Which chunks of a file have arrived: the lines of `FILE.chunks`, as `setun models` writes them too. */

import { FORMAT, isCount, isTextOrNone, parseFields } from "./json.js";
import { parseDigest } from "./sha256.js";

/** The file that a journal is of: all must be the same for a download to go on. */
export interface JournalHeader {
  readonly bytes: number;
  readonly chunkBytes: number;
  /** What the server knows the file by. */
  readonly identity?: string;
  /** The hash that was told of the whole file. */
  readonly sha256?: string;
}

/** What a journal says. */
export interface Journal {
  readonly header: JournalHeader;
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
export function headerLine({ bytes, chunkBytes, identity, sha256 }: JournalHeader): string {
  const known = { identity: identity ?? null, sha256: sha256 ?? null };
  return JSON.stringify({ format: FORMAT, bytes, chunk_bytes: chunkBytes, ...known });
}

/** The line of a chunk that is there. */
export function chunkLine(chunk: number, sha256: string): string {
  return JSON.stringify({ chunk: [chunk, sha256] });
}

/** The line of a file that has been checked as a whole. */
export function verifiedLine(sha256: string): string {
  return JSON.stringify({ whole: sha256 });
}

/** Reads the lines of a journal; `undefined` if they begin with none. What follows a line that cannot be read counts for nothing. */
export function readJournal(lines: readonly string[]): Journal | undefined {
  const header = readHeader(lines[0]);
  if (header === undefined) return undefined;
  const chunks = new Map<number, string>();
  const order: number[] = [];
  let whole: string | undefined;
  let good = 1;
  for (const line of lines.slice(1)) {
    const found = readLine(line, header);
    if (found === undefined) break;
    if (found.chunk === undefined) whole = found.sha256;
    else {
      chunks.set(found.chunk, found.sha256);
      order.push(found.chunk);
    }
    good += 1;
  }
  return { header, chunks, order, ...(whole !== undefined && { whole }), lines: good };
}

function readHeader(line: string | undefined): JournalHeader | undefined {
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

function readLine(line: string, header: JournalHeader): { chunk?: number; sha256: string } | undefined {
  const found = parseFields(line);
  const whole = parseDigest(found?.whole);
  if (whole !== undefined) return { sha256: whole };
  if (!Array.isArray(found?.chunk) || found.chunk.length !== 2) return undefined;
  const [chunk, sha256] = [found.chunk[0], parseDigest(found.chunk[1])];
  if (!isCount(chunk) || chunk >= chunkCount(header) || sha256 === undefined) return undefined;
  return { chunk, sha256 };
}

/** The lines of a journal without some chunks, and without the word that the whole was checked. */
export function linesWithoutChunks({ header, chunks, order }: Journal, bad: ReadonlySet<number>): string[] {
  const kept = [...new Set(order)].filter((chunk) => !bad.has(chunk));
  return [headerLine(header), ...kept.map((chunk) => chunkLine(chunk, chunks.get(chunk) ?? ""))];
}

/** True if a journal of one goes on for the other. */
export function sameHeader(a: JournalHeader, b: JournalHeader): boolean {
  return headerLine(a) === headerLine(b);
}

/** Number of chunks of a file. */
export function chunkCount({ bytes, chunkBytes }: JournalHeader): number {
  return Math.ceil(bytes / chunkBytes);
}

/** Where a chunk lies in its file. */
export function chunkRange(
  { bytes, chunkBytes }: JournalHeader,
  chunk: number,
): { start: number; end: number } {
  const start = Math.min(chunk * chunkBytes, bytes);
  return { start, end: Math.min(start + chunkBytes, bytes) };
}

/** Bytes of the chunks that are there. */
export function downloadedBytes({ header, chunks }: Journal): number {
  const ranges = [...chunks.keys()].map((chunk) => chunkRange(header, chunk));
  return ranges.reduce((sum, { start, end }) => sum + end - start, 0);
}

/** Longer lines are none of a journal. */
const LINE_BYTES = 4096;

const NEWLINE = 0x0a;

/** The lines that were written whole, and how many bytes they have: what follows was cut off and counts for nothing. */
export function completeLines(bytes: Uint8Array): { lines: string[]; bytes: number } {
  const decoder = new TextDecoder();
  const lines: string[] = [];
  let start = 0;
  for (;;) {
    const end = bytes.indexOf(NEWLINE, start);
    if (end < 0 || end - start >= LINE_BYTES) break;
    const line = decoder.decode(bytes.subarray(start, end));
    if (!isJson(line)) break;
    lines.push(line);
    start = end + 1;
  }
  return { lines, bytes: start };
}

/** The bytes of lines. */
export function lineBytes(lines: readonly string[]): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(lines.map((line) => `${line}\n`).join(""));
}

function isJson(line: string): boolean {
  try {
    JSON.parse(line);
    return true;
  } catch {
    return false;
  }
}
