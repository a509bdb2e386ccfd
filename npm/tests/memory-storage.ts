/** A storage in memory with the behaviour of a browser's. */

import { SetunError } from "../src/errors.js";
import { BlobFile } from "../src/store/blob-file.js";
import { completeLines, lineBytes } from "../src/store/journal.js";
import type { PartialFile, Storage, StoredFile } from "../src/store/storage.js";

/** Files by path. Tests inspect, truncate and delete them. */
export class MemoryStorage implements Storage {
  readonly kind = "opfs";
  readonly files = new Map<string, Uint8Array<ArrayBuffer>>();
  /** Open partial files. As in a browser, a second owner is refused. */
  readonly parts = new Set<string>();
  /** Quota of all files. */
  room = Number.POSITIVE_INFINITY;
  /** What writes of chunks wait for. */
  beforeWrite: ((path: string) => Promise<void>) | undefined;

  async readText(path: string): Promise<string | undefined> {
    const bytes = this.files.get(path);
    return bytes && new TextDecoder().decode(bytes);
  }

  async writeText(path: string, text: string): Promise<void> {
    this.set(path, new TextEncoder().encode(text));
  }

  async open(path: string): Promise<Blob | undefined> {
    const bytes = this.files.get(path);
    return bytes && new Blob([bytes]);
  }

  async openFile(path: string): Promise<StoredFile | undefined> {
    const blob = await this.open(path);
    return blob && new BlobFile(blob);
  }

  async openPartial(path: string): Promise<PartialFile> {
    checkPath(path);
    if (this.parts.has(path)) throw new Error(`${path}.part is open already`);
    this.parts.add(path);
    return new MemoryPart(this, path);
  }

  async list(path: string): Promise<string[]> {
    const top = path === "" ? "" : `${path}/`;
    const below = [...this.files.keys()].filter((file) => file.startsWith(top));
    const names = below.map((file) => /^[^/]*\/?/.exec(file.slice(top.length))?.[0] ?? "");
    return [...new Set(names)].sort();
  }

  async remove(path: string): Promise<void> {
    const isIn = (file: string) => file === path || file.startsWith(`${path}/`);
    for (const part of this.parts) {
      if (isIn(`${part}.part`) || isIn(`${part}.chunks`)) throw new Error(`${part}.part is open`);
    }
    for (const file of [...this.files.keys()].filter(isIn)) this.files.delete(file);
  }

  /** Writes a whole file, if there is room. */
  set(path: string, bytes: Uint8Array<ArrayBuffer>): void {
    checkPath(path);
    const others = [...this.files].filter(([file]) => file !== path);
    const used = others.reduce((sum, [, { length }]) => sum + length, 0);
    if (used + bytes.length > this.room) throw new SetunError("storage-full", `no room for ${path}`);
    this.files.set(path, bytes);
  }
}

class MemoryPart implements PartialFile {
  readonly #storage: MemoryStorage;
  readonly #path: string;
  #lines: string[];

  constructor(storage: MemoryStorage, path: string) {
    this.#storage = storage;
    this.#path = path;
    const isThere = storage.files.has(`${path}.part`);
    this.#lines = isThere ? completeLines(this.#bytes(".chunks")).lines : [];
    this.#write(".part", this.#lines.length > 0 ? this.#bytes(".part") : new Uint8Array());
    this.#write(".chunks", lineBytes(this.#lines));
  }

  get lines(): readonly string[] {
    return this.#lines;
  }

  async read(start: number, end: number): Promise<Uint8Array> {
    return this.#bytes(".part").slice(start, end);
  }

  async writeChunk(start: number, bytes: Uint8Array, line: string): Promise<void> {
    await this.#storage.beforeWrite?.(this.#path);
    const old = this.#bytes(".part");
    const next = new Uint8Array(Math.max(old.length, start + bytes.length));
    next.set(old);
    next.set(bytes, start);
    this.#write(".part", next);
    await this.appendLine(line);
  }

  async appendLine(line: string): Promise<void> {
    await this.rewrite([...this.#lines, line]);
  }

  async rewrite(lines: readonly string[]): Promise<void> {
    this.#write(".chunks", lineBytes(lines));
    this.#lines = [...lines];
  }

  async clear(): Promise<void> {
    await this.rewrite([]);
    this.#write(".part", new Uint8Array());
  }

  async finish(): Promise<void> {
    const bytes = this.#bytes(".part");
    await this.close();
    this.#storage.files.delete(`${this.#path}.part`);
    this.#storage.files.set(this.#path, bytes);
    this.#storage.files.delete(`${this.#path}.chunks`);
  }

  async close(): Promise<void> {
    this.#storage.parts.delete(this.#path);
  }

  #bytes(end: ".part" | ".chunks"): Uint8Array<ArrayBuffer> {
    return this.#storage.files.get(this.#path + end) ?? new Uint8Array();
  }

  #write(end: ".part" | ".chunks", bytes: Uint8Array<ArrayBuffer>): void {
    if (!this.#storage.parts.has(this.#path)) throw new Error(`${this.#path}${end} is closed`);
    this.#storage.set(this.#path + end, bytes);
  }
}

function checkPath(path: string): void {
  if (path.split("/").some((name) => ["", ".", ".."].includes(name)))
    throw new TypeError(`${path}: invalid path`);
}
