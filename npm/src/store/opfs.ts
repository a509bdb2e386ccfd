/** The store in the origin private file system. Only workers can write partial files. */

import { BlobFile } from "./blob-file.js";
import { OpfsFile } from "./opfs-file.js";
import { OpfsPartialFile } from "./opfs-part.js";
import type { PartialFile, Storage, StoredFile } from "./storage.js";
import { isMissing, translateErrors } from "./storage-errors.js";
import {
  canShareReads,
  canWriteParts,
  openSync,
  renameFile,
  retryWhileLocked,
  writeSync,
} from "./sync-files.js";

/** The package's folder. */
const TOP = "setun";

/** Maximum number of reads of a text that is being replaced. */
const MAX_READ_ATTEMPTS = 10;

export class OpfsStorage implements Storage {
  readonly kind = "opfs";
  readonly #origin: FileSystemDirectoryHandle;

  constructor(origin: FileSystemDirectoryHandle) {
    this.#origin = origin;
  }

  /** Whether the package's folder exists. */
  async isUsed(): Promise<boolean> {
    return (await this.#folder("")) !== undefined;
  }

  async readText(path: string): Promise<string | undefined> {
    for (let left = MAX_READ_ATTEMPTS; ; left -= 1) {
      const file = await this.open(path);
      try {
        return await file?.text();
      } catch (thrown) {
        // It was replaced meanwhile.
        if (left > 1) continue;
        return translateErrors("read", path, () => Promise.reject(thrown));
      }
    }
  }

  async writeText(path: string, text: string): Promise<void> {
    await translateErrors("write", path, async () => {
      const [folder, name] = await this.#parentOf(path);
      await replaceText(folder, name, text);
    });
  }

  async open(path: string): Promise<Blob | undefined> {
    return translateErrors("open", path, async () => {
      const [parent, name] = split(path);
      const folder = await this.#folder(parent);
      return folder && ifThere(async () => (await folder.getFileHandle(name)).getFile());
    });
  }

  async openFile(path: string): Promise<StoredFile | undefined> {
    return translateErrors("open", path, async () => {
      const [parent, name] = split(path);
      const folder = await this.#folder(parent);
      const file = folder && (await ifThere(() => folder.getFileHandle(name)));
      if (file === undefined) return undefined;
      return canShareReads() ? new OpfsFile(file) : new BlobFile(await file.getFile());
    });
  }

  async openPartial(path: string): Promise<PartialFile> {
    if (!canWriteParts()) throw new Error(`${path}: only a worker can write to it`);
    return translateErrors("open", path, async () => {
      const [folder] = await this.#parentOf(path);
      return OpfsPartialFile.take(folder, path);
    });
  }

  async list(path: string): Promise<string[]> {
    return translateErrors("list", path, async () => {
      const names: string[] = [];
      for await (const [name, { kind }] of (await this.#folder(path))?.entries() ?? []) {
        names.push(kind === "directory" ? `${name}/` : name);
      }
      return names.sort();
    });
  }

  async remove(path: string): Promise<void> {
    await translateErrors("remove", path, async () => {
      const [parent, name] = split(path);
      const folder = await this.#folder(parent);
      await ifThere(
        async () => folder && retryWhileLocked(() => folder.removeEntry(name, { recursive: true })),
      );
    });
  }

  /** A folder; `undefined` if it does not exist. */
  async #folder(path: string): Promise<FileSystemDirectoryHandle | undefined> {
    return ifThere(() => this.#walk(path, false));
  }

  /** The folder of a file, created if necessary, and the file's name. */
  async #parentOf(path: string): Promise<[FileSystemDirectoryHandle, string]> {
    const [parent, name] = split(path);
    return [await this.#walk(parent, true), name];
  }

  async #walk(path: string, create: boolean): Promise<FileSystemDirectoryHandle> {
    let folder = this.#origin;
    for (const name of [TOP, ...path.split("/").filter(Boolean)]) {
      folder = await folder.getDirectoryHandle(name, { create });
    }
    return folder;
  }
}

/** Replaces a text atomically. */
async function replaceText(folder: FileSystemDirectoryHandle, name: string, text: string): Promise<void> {
  if ("createWritable" in FileSystemFileHandle.prototype) {
    const file = await folder.getFileHandle(name, { create: true });
    const writable = await file.createWritable();
    await writable.write(text);
    await writable.close();
    return;
  }
  const temporary = await openSync(folder, `${name}.tmp`);
  try {
    await temporary.truncate(0);
    await writeSync(temporary, name, 0, new TextEncoder().encode(text));
    await temporary.flush();
  } finally {
    await temporary.close();
  }
  await renameFile(folder, `${name}.tmp`, name);
}

/** Result of `work`; `undefined` if the file or folder does not exist. */
async function ifThere<Found>(work: () => Promise<Found>): Promise<Found | undefined> {
  try {
    return await work();
  } catch (thrown) {
    if (isMissing(thrown)) return undefined;
    throw thrown;
  }
}

/** Folder and name of a path. */
function split(path: string): [string, string] {
  const slash = path.lastIndexOf("/");
  return [path.slice(0, Math.max(slash, 0)), path.slice(slash + 1)];
}
