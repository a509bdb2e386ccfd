/** Model files on disk, for Node. */

import { type FileHandle, open, stat } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { SetunError } from "./errors.js";
import type { ByteRange, ModelFiles } from "./model-files.js";
import { folderOf, type ModelSource } from "./sources.js";

/** Bytes of a file that is read whole, as in the command. */
const MAX_WHOLE_FILE = 256 * 2 ** 20;

interface OpenFile {
  readonly handle: FileHandle;
  readonly size: number;
}

/** The files of a folder, or a single file and those beside it. */
export class DiskFiles implements ModelFiles {
  readonly #base: string;
  readonly #open = new Map<string, OpenFile>();
  readonly #sizes = new Map<string, number>();

  constructor(source: ModelSource & { kind: "url" }) {
    this.#base = folderOf(source);
  }

  async read(name: string, range: ByteRange | undefined): Promise<Uint8Array | undefined> {
    const file = await this.#file(name);
    if (file === undefined) return undefined;
    if (range === undefined && file.size > MAX_WHOLE_FILE) {
      const reason = `it has ${file.size} bytes, at most ${MAX_WHOLE_FILE} are read`;
      throw new SetunError("io", `${this.where(name)}: ${reason}`);
    }
    const start = range?.start ?? 0;
    const length = Math.max(0, Math.min(range?.end ?? file.size, file.size) - start);
    const { buffer, bytesRead } = await file.handle.read(new Uint8Array(length), 0, length, start);
    return buffer.subarray(0, bytesRead);
  }

  async expect(names: readonly string[]): Promise<void> {
    for (const name of names) {
      const found = await stat(this.#address(name)).catch(() => undefined);
      if (found?.isFile()) this.#sizes.set(name, found.size);
    }
  }

  totalBytes(): number {
    return [...this.#sizes.values()].reduce((sum, size) => sum + size, 0);
  }

  where(name: string): string {
    return fileURLToPath(this.#address(name));
  }

  async close(): Promise<void> {
    const open = [...this.#open.values()];
    this.#open.clear();
    await Promise.all(open.map(({ handle }) => handle.close()));
  }

  async #file(name: string): Promise<OpenFile | undefined> {
    const known = this.#open.get(name);
    if (known !== undefined) return known;
    try {
      // The type first: to open a pipe waits, and a device has no end.
      if (!(await stat(this.#address(name))).isFile()) {
        throw new SetunError("io", `${this.where(name)}: it is no file`);
      }
      const handle = await open(this.#address(name));
      const file = { handle, size: (await handle.stat()).size };
      this.#open.set(name, file);
      this.#sizes.set(name, file.size);
      return file;
    } catch (cause) {
      if (cause instanceof Error && "code" in cause && cause.code === "ENOENT") return undefined;
      if (cause instanceof SetunError) throw cause;
      throw new SetunError("io", `${this.where(name)}: cannot be read`, { cause });
    }
  }

  #address(name: string): URL {
    return new URL(name.split("/").map(encodeURIComponent).join("/"), this.#base);
  }
}
