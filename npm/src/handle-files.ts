/** Model files by handles of the File System API. */

import { SetunError } from "./errors.js";
import { BlobFiles, type ByteRange, type ModelFiles } from "./model-files.js";
import type { HandleSource } from "./sources.js";

/** The files of a folder, or a single file. They are opened when they are first read. */
export class HandleFiles implements ModelFiles {
  readonly #source: HandleSource;
  readonly #found = new Map<string, Blob>();
  readonly #files = new BlobFiles(this.#found);

  constructor(source: HandleSource) {
    this.#source = source;
  }

  async read(name: string, range: ByteRange | undefined): Promise<Uint8Array | undefined> {
    try {
      const file = this.#found.get(name) ?? (await this.#find(name));
      if (file === undefined) return undefined;
      this.#found.set(name, file);
      return await this.#files.read(name, range);
    } catch (cause) {
      throw new SetunError("io", `${this.where(name)}: cannot be read; choose the files again`, {
        cause,
      });
    }
  }

  async expect(names: readonly string[]): Promise<void> {
    for (const name of names) {
      const file = this.#found.get(name) ?? (await this.#find(name).catch(() => undefined));
      if (file !== undefined) this.#found.set(name, file);
    }
    await this.#files.expect(names);
  }

  totalBytes(): number {
    return this.#files.totalBytes();
  }

  where(name: string): string {
    return `${name} (in ${this.#source.handle.name})`;
  }

  async close(): Promise<void> {}

  async #find(name: string): Promise<Blob | undefined> {
    const { handle } = this.#source;
    if (handle.kind === "file") return name === handle.name ? handle.getFile() : undefined;
    const path = name.split("/");
    const last = path.pop() ?? name;
    try {
      let folder = handle;
      for (const part of path) folder = await folder.getDirectoryHandle(part);
      return await (await folder.getFileHandle(last)).getFile();
    } catch (error) {
      if (error instanceof Error && ["NotFoundError", "TypeMismatchError"].includes(error.name))
        return undefined;
      throw error;
    }
  }
}
