/** The store in the Cache API, for browsers without synchronous file access. */

import { BlobFile } from "./blob-file.js";
import { CacheFiles } from "./cache-files.js";
import { CachePartialFile } from "./cache-part.js";
import { ChunkedBlob, keepLastChunk } from "./chunked-blob.js";
import type { PartialFile, Storage, StoredFile } from "./storage.js";
import { translateErrors } from "./storage-errors.js";

export class CacheStorageOfModels implements Storage {
  readonly kind = "cache";
  readonly #files: CacheFiles;

  constructor(cache: Cache) {
    this.#files = new CacheFiles(cache);
  }

  async readText(path: string): Promise<string | undefined> {
    return translateErrors("read", path, async () => {
      const file = await this.#complete(path);
      return file === undefined ? this.#files.readText(path) : file.text();
    });
  }

  async writeText(path: string, text: string): Promise<void> {
    await translateErrors("write", path, () => this.#files.writeText(path, text));
  }

  async open(path: string): Promise<Blob | undefined> {
    return translateErrors("open", path, async () => {
      const file = await this.#complete(path);
      if (file !== undefined) return file;
      const text = await this.#files.readText(path);
      return text === undefined ? undefined : new Blob([text]);
    });
  }

  async openFile(path: string): Promise<StoredFile | undefined> {
    const blob = await this.open(path);
    return blob && new BlobFile(blob);
  }

  async openPartial(path: string): Promise<PartialFile> {
    return translateErrors("open", path, () => CachePartialFile.take(this.#files, path));
  }

  async list(path: string): Promise<string[]> {
    const top = path === "" ? "" : `${path}/`;
    const paths = await translateErrors("list", path, () => this.#files.paths());
    const below = paths.filter((each) => each.startsWith(top)).map((each) => each.slice(top.length));
    return [...new Set(below.map(firstName))].sort();
  }

  async remove(path: string): Promise<void> {
    const isIn = (each: string) => each === path || each.startsWith(`${path}/`);
    await translateErrors("remove", path, () => this.#files.remove(isIn));
  }

  async #complete(path: string): Promise<ChunkedBlob | undefined> {
    const chunks = await this.#files.chunks(path);
    const read = keepLastChunk(({ start }) =>
      translateErrors("read", path, () => this.#files.readChunk(path, start)),
    );
    return chunks && new ChunkedBlob(chunks, read);
  }
}

/** First name of a path, with `/` for a folder. */
function firstName(path: string): string {
  const slash = path.indexOf("/");
  return slash < 0 ? path : path.slice(0, slash + 1);
}
