/** Journals of partial files: the lines of `FILE.chunks`, in the format of `setun models`. */

import { FORMAT, isCount, isTextOrNone, parseFields } from "./json.js";
import { parseDigest } from "./sha256.js";

/** The identity of a partial file. A download resumes only if it is unchanged. */
export interface JournalHeader {
  readonly bytes: number;
  readonly chunkBytes: number;
  /** Entity tag or date. */
  readonly identity?: string;
  /** SHA-256 of the whole file, if known. */
  readonly sha256?: string;
}

/** The stored beginning of a chunk whose download was ended. */
export interface ChunkPrefix {
  readonly bytes: number;
  /** SHA-256 of these bytes. */
  readonly sha256: string;
}

/** Contents of a journal. */
export interface Journal {
  readonly header: JournalHeader;
  /** Hashes of the stored chunks by number. */
  readonly chunks: ReadonlyMap<number, string>;
  /** Beginnings of other chunks. */
  readonly prefixes: ReadonlyMap<number, ChunkPrefix>;
  /** Chunk numbers in order of arrival. */
  readonly order: readonly number[];
  /** SHA-256 of the whole file, after verification. */
  readonly whole?: string;
  /** Number of valid lines. Others are removed before lines are appended. */
  readonly lines: number;
}

/** The first line. */
export function headerLine({ bytes, chunkBytes, identity, sha256 }: JournalHeader): string {
  const known = { identity: identity ?? null, sha256: sha256 ?? null };
  return JSON.stringify({ format: FORMAT, bytes, chunk_bytes: chunkBytes, ...known });
}

/** Line of a stored chunk. */
export function chunkLine(chunk: number, sha256: string): string {
  return JSON.stringify({ chunk: [chunk, sha256] });
}

/** Line of a chunk's beginning. Versions without this line ignore it and all that follow. */
export function prefixLine(chunk: number, { bytes, sha256 }: ChunkPrefix): string {
  return JSON.stringify({ prefix: [chunk, bytes, sha256] });
}

/** Line of a verified file. */
export function verifiedLine(sha256: string): string {
  return JSON.stringify({ whole: sha256 });
}

/** Reads a journal; `undefined` without a valid header. Lines after an invalid one are ignored. */
export function readJournal(lines: readonly string[]): Journal | undefined {
  const header = readHeader(lines[0]);
  if (header === undefined) return undefined;
  const chunks = new Map<number, string>();
  const prefixes = new Map<number, ChunkPrefix>();
  const order: number[] = [];
  let whole: string | undefined;
  let validLines = 1;
  for (const line of lines.slice(1)) {
    const found = readLine(line, header);
    if (found === undefined) break;
    const { chunk, bytes, sha256 } = found;
    if (chunk === undefined) whole = sha256;
    else if (bytes !== undefined) {
      prefixes.set(chunk, { bytes, sha256 });
      chunks.delete(chunk);
    } else {
      chunks.set(chunk, sha256);
      prefixes.delete(chunk);
      order.push(chunk);
    }
    validLines += 1;
  }
  const arrived = order.filter((chunk) => chunks.has(chunk));
  return {
    header,
    chunks,
    prefixes,
    order: arrived,
    ...(whole !== undefined && { whole }),
    lines: validLines,
  };
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

function readLine(
  line: string,
  header: JournalHeader,
): { chunk?: number; bytes?: number; sha256: string } | undefined {
  const found = parseFields(line);
  const whole = parseDigest(found?.whole);
  if (whole !== undefined) return { sha256: whole };
  const list: unknown = found?.chunk ?? found?.prefix;
  if (!Array.isArray(list)) return undefined;
  const [chunk, sha256] = [list[0], parseDigest(list.at(-1))];
  if (!isCount(chunk) || chunk >= chunkCount(header) || sha256 === undefined) return undefined;
  if (found?.chunk !== undefined) return list.length === 2 ? { chunk, sha256 } : undefined;
  const { start, end } = chunkRange(header, chunk);
  const bytes: unknown = list[1];
  return list.length === 3 && isCount(bytes) && bytes > 0 && bytes < end - start
    ? { chunk, bytes, sha256 }
    : undefined;
}

/** Lines of a journal without some chunks, and without the verification. */
export function linesWithoutChunks(
  { header, chunks, prefixes, order }: Journal,
  dropped: ReadonlySet<number>,
): string[] {
  const kept = [...new Set(order)].filter((chunk) => !dropped.has(chunk));
  const stored = kept.map((chunk) => chunkLine(chunk, chunks.get(chunk) ?? ""));
  const begun = [...prefixes].map(([chunk, prefix]) => prefixLine(chunk, prefix));
  return [headerLine(header), ...stored, ...begun];
}

/** Whether two headers describe the same file. */
export function sameHeader(a: JournalHeader, b: JournalHeader): boolean {
  return headerLine(a) === headerLine(b);
}

/** Number of chunks of a file. */
export function chunkCount({ bytes, chunkBytes }: JournalHeader): number {
  return Math.ceil(bytes / chunkBytes);
}

/** Position of a chunk in its file. */
export function chunkRange(
  { bytes, chunkBytes }: JournalHeader,
  chunk: number,
): { start: number; end: number } {
  const start = Math.min(chunk * chunkBytes, bytes);
  return { start, end: Math.min(start + chunkBytes, bytes) };
}

/** Bytes of the stored chunks and of beginnings. */
export function downloadedBytes({
  header,
  chunks,
  prefixes,
}: Pick<Journal, "header" | "chunks" | "prefixes">): number {
  const ranges = [...chunks.keys()].map((chunk) => chunkRange(header, chunk));
  const begun = [...prefixes.values()].reduce((sum, { bytes }) => sum + bytes, 0);
  return ranges.reduce((sum, { start, end }) => sum + end - start, begun);
}

/** Maximum length of a line. */
const LINE_BYTES = 4096;

const NEWLINE = 0x0a;

/** Complete lines and their length in bytes. A truncated rest is ignored. */
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

/** Lines as bytes. */
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
