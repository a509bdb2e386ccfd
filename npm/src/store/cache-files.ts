/**
 * Files in the Cache API: a text is one response; any other file is a list of chunks and a response for each chunk.
 */

import type { Chunk } from "./chunked-blob.js";
import { fields, isCount } from "./json.js";

/** No server has this name, so these URLs collide with nothing. */
const TOP = "https://setun.invalid/";

/** Header of a chunk list. */
const LIST = "x-setun-chunks";

/** Header with the size of a chunk. */
const BYTES = "x-setun-bytes";

/** A response and the path of its file. */
interface CacheEntry {
  readonly request: Request;
  readonly path: string;
  readonly isChunk: boolean;
}

/** Files by path. A file is complete when it has a chunk list. */
export class CacheFiles {
  readonly #cache: Cache;

  constructor(cache: Cache) {
    this.#cache = cache;
  }

  /** Whether there is a text or a complete file. */
  async has(path: string): Promise<boolean> {
    return (await this.#cache.match(address(path))) !== undefined;
  }

  async readText(path: string): Promise<string | undefined> {
    return (await this.#cache.match(address(path)))?.text();
  }

  async writeText(path: string, text: string): Promise<void> {
    await this.#cache.put(address(path), new Response(text));
  }

  /** The chunks of a complete file, in order; `undefined` if it is not complete. */
  async chunks(path: string): Promise<Chunk[] | undefined> {
    const answer = await this.#cache.match(address(path));
    if (!answer?.headers.has(LIST)) return undefined;
    const list: unknown = await answer.json().catch(() => undefined);
    const chunks = Array.isArray(list) ? list.map(parseChunk) : [undefined];
    const stored = await this.#starts(path);
    const known = chunks.filter((chunk) => chunk !== undefined && stored.has(chunk.start));
    return known.length === chunks.length ? known.filter((chunk) => chunk !== undefined) : undefined;
  }

  /** Completes a file. */
  async writeChunks(path: string, chunks: readonly Chunk[]): Promise<void> {
    await this.#cache.put(address(path), Response.json(chunks, { headers: { [LIST]: "1" } }));
  }

  async readChunk(path: string, start: number): Promise<Blob> {
    const answer = await this.#cache.match(address(path, start));
    if (answer === undefined) throw new Error(`the chunk at byte ${start} is missing`);
    return answer.blob();
  }

  async writeChunk(path: string, start: number, bytes: Uint8Array<ArrayBuffer>): Promise<void> {
    const headers = { [BYTES]: String(bytes.length) };
    await this.#cache.put(address(path, start), new Response(bytes, { headers }));
  }

  /** The chunks of an incomplete file, in order. */
  async comingChunks(path: string): Promise<Chunk[]> {
    const chunks: Chunk[] = [];
    for (const start of await this.#starts(path)) {
      const answer = await this.#cache.match(address(path, start));
      const bytes = Number(answer?.headers.get(BYTES));
      if (bytes > 0) chunks.push({ start, end: start + bytes });
    }
    return chunks.sort((a, b) => a.start - b.start);
  }

  /** Paths of all files; incomplete ones end in `.part`. */
  async paths(): Promise<string[]> {
    return (await this.#entries()).map(({ path }) => path);
  }

  /** Removes files whose path satisfies `isIn`: lists and texts first, then chunks. */
  async remove(isIn: (path: string) => boolean): Promise<void> {
    const chosen = (await this.#entries()).filter(({ path }) => isIn(path));
    for (const { request } of chosen.filter(({ isChunk }) => !isChunk)) await this.#cache.delete(request);
    for (const { request } of chosen.filter(({ isChunk }) => isChunk)) await this.#cache.delete(request);
  }

  async #entries(): Promise<CacheEntry[]> {
    const entries = (await this.#cache.keys()).map(cacheEntry).filter((found) => found !== undefined);
    const whole = new Set(entries.filter(({ isChunk }) => !isChunk).map(({ path }) => path));
    const isComing = ({ isChunk, path }: CacheEntry) => isChunk && !whole.has(path);
    return entries.map((found) => (isComing(found) ? { ...found, path: `${found.path}.part` } : found));
  }

  async #starts(path: string): Promise<Set<number>> {
    const requests = await this.#cache.keys(address(path), { ignoreSearch: true });
    const starts = requests.map(({ url }) => new URL(url).searchParams.get("start"));
    return new Set(starts.filter((start) => start !== null).map(Number));
  }
}

function address(path: string, start?: number): string {
  const names = path.split("/");
  if (names.some((name) => ["", ".", ".."].includes(name))) throw new TypeError(`${path}: invalid path`);
  const query = start === undefined ? "" : `?start=${start}`;
  return TOP + names.map(encodeURIComponent).join("/") + query;
}

function cacheEntry(request: Request): CacheEntry | undefined {
  if (!request.url.startsWith(TOP)) return undefined;
  const { pathname, searchParams } = new URL(request.url);
  const path = pathname.slice(1).split("/").map(decodeURIComponent).join("/");
  return { request, path, isChunk: searchParams.has("start") };
}

function parseChunk(value: unknown): Chunk | undefined {
  const { start, end } = fields(value) ?? {};
  return isCount(start) && isCount(end) && start < end ? { start, end } : undefined;
}
