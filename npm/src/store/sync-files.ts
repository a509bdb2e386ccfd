/** Files of the origin's private file system as a worker may have them: each with one owner, read and written at once. */

import { storageFull } from "./quota.js";
import { isMissing, nameOf } from "./storage-errors.js";

/** `FileSystemSyncAccessHandle`, whose methods without bytes were asynchronous in its first versions. */
export interface SyncFile {
  read(bytes: Uint8Array, at: { at: number }): number;
  write(bytes: Uint8Array, at: { at: number }): number;
  truncate(bytes: number): void | Promise<void>;
  getSize(): number | Promise<number>;
  flush(): void | Promise<void>;
  close(): void | Promise<void>;
}

/** What a worker, or not every browser, has beside what all have. */
type FileHandle = FileSystemFileHandle & {
  createSyncAccessHandle?: () => Promise<SyncFile>;
  move?: (folder: FileSystemDirectoryHandle, name: string) => Promise<void>;
};

/** How a browser says that a file has an owner; the second is WebKit's. */
const LOCKED_ERRORS = ["NoModificationAllowedError", "InvalidStateError"];

/** A worker that has ended lets go of its files a moment later. */
const LOCK_TIMEOUT_MS = 5000;
const LOCK_POLL_MS = 50;

/** Bytes that are copied at a time. */
const COPIED_BYTES = 1 << 20;

/** True on threads, and in browsers, that can write files piece by piece. */
export function canWriteParts(): boolean {
  return (
    typeof FileSystemFileHandle === "function" && "createSyncAccessHandle" in FileSystemFileHandle.prototype
  );
}

/** Does it as soon as nobody else owns the file, or fails after some seconds. */
export async function retryWhileLocked<Result>(work: () => Promise<Result>): Promise<Result> {
  const end = performance.now() + LOCK_TIMEOUT_MS;
  for (;;) {
    try {
      return await work();
    } catch (thrown) {
      if (!LOCKED_ERRORS.includes(nameOf(thrown)) || performance.now() > end) throw thrown;
      await new Promise((resolve) => setTimeout(resolve, LOCK_POLL_MS));
    }
  }
}

/** Takes a file, made where it is not; it is the caller's until it is closed. */
export async function openSync(folder: FileSystemDirectoryHandle, name: string): Promise<SyncFile> {
  const file: FileHandle = await folder.getFileHandle(name, { create: true });
  const open = file.createSyncAccessHandle?.bind(file);
  if (open === undefined) throw new Error(`${name}: only a worker can write to it`);
  return retryWhileLocked(open);
}

/** All bytes from `start` to `end`, fewer where the file ends. */
export function readSync(file: SyncFile, start: number, end: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(end - start);
  let length = 0;
  while (length < bytes.length) {
    const read = file.read(bytes.subarray(length), { at: start + length });
    if (read === 0) break;
    length += read;
  }
  return bytes.subarray(0, length);
}

/** Writes all bytes, or says that there is no room for them. The writing itself is done when this returns its promise. */
export async function writeSync(
  file: SyncFile,
  path: string,
  start: number,
  bytes: Uint8Array,
): Promise<void> {
  const written = file.write(bytes, { at: start });
  // Chromium's private windows count bytes as written that they had no room for, or more than there were.
  const size = await file.getSize();
  if (written !== bytes.length || size < start + bytes.length) {
    throw storageFull(path, `${bytes.length} bytes at ${start} did not fit`);
  }
}

/** Gives a file another name in its folder, in place of any that has it. */
export async function renameFile(folder: FileSystemDirectoryHandle, from: string, to: string): Promise<void> {
  const file: FileHandle = await folder.getFileHandle(from);
  const move = file.move?.bind(file, folder, to);
  if (move === undefined) return copyFile(folder, from, to);
  try {
    await retryWhileLocked(move);
  } catch (thrown) {
    // Not every browser puts a file in the place of another.
    if (!(await removeFile(folder, to))) throw thrown;
    await retryWhileLocked(move);
  }
}

/** Removes a file; `false` if there was none. */
export async function removeFile(folder: FileSystemDirectoryHandle, name: string): Promise<boolean> {
  try {
    await retryWhileLocked(() => folder.removeEntry(name));
    return true;
  } catch (thrown) {
    if (isMissing(thrown)) return false;
    throw thrown;
  }
}

/** For browsers that cannot rename. The copy is whole before what it was made of is removed. */
async function copyFile(folder: FileSystemDirectoryHandle, from: string, to: string): Promise<void> {
  const source = await openSync(folder, from);
  try {
    const copy = await openSync(folder, to);
    try {
      await copy.truncate(0);
      const size = await source.getSize();
      for (let start = 0; start < size; start += COPIED_BYTES) {
        await writeSync(copy, to, start, readSync(source, start, Math.min(start + COPIED_BYTES, size)));
      }
      await copy.flush();
    } finally {
      await copy.close();
    }
  } finally {
    await source.close();
  }
  await removeFile(folder, from);
}
