/** Synchronous access to files of the origin private file system, in workers. */

import { storageFull } from "./quota.js";
import { isMissing, nameOf } from "./storage-errors.js";

/** `FileSystemSyncAccessHandle`, some of whose methods were asynchronous at first. */
export interface SyncFile {
  read(bytes: Uint8Array, at: { at: number }): number;
  write(bytes: Uint8Array, at: { at: number }): number;
  truncate(bytes: number): void | Promise<void>;
  getSize(): number | Promise<number>;
  flush(): void | Promise<void>;
  close(): void | Promise<void>;
}

/** Methods that only workers or some browsers have. */
type FileHandle = FileSystemFileHandle & {
  createSyncAccessHandle?: (options?: { mode: "read-only" }) => Promise<SyncFile>;
  move?: (folder: FileSystemDirectoryHandle, name: string) => Promise<void>;
};

/** Names of errors of a locked file; the second is WebKit's. */
const LOCKED_ERRORS = ["NoModificationAllowedError", "InvalidStateError"];

/** A terminated worker releases its files a moment later. */
const LOCK_TIMEOUT_MS = 5000;
const LOCK_POLL_MS = 50;

/** Bytes copied at a time. */
const COPIED_BYTES = 1 << 20;

/** Whether this thread has synchronous access. */
export function canWriteParts(): boolean {
  return (
    typeof FileSystemFileHandle === "function" && "createSyncAccessHandle" in FileSystemFileHandle.prototype
  );
}

/** Whether this thread can open a file that others read, too: without modes of access each is exclusive. */
export function canShareReads(): boolean {
  const { FileSystemSyncAccessHandle } = globalThis as { FileSystemSyncAccessHandle?: { prototype: object } };
  return FileSystemSyncAccessHandle !== undefined && "mode" in FileSystemSyncAccessHandle.prototype;
}

/** Repeats `work` while the file is locked, for a few seconds. */
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

/** Opens a file for exclusive access, creating it if necessary. */
export async function openSync(folder: FileSystemDirectoryHandle, name: string): Promise<SyncFile> {
  const file: FileHandle = await folder.getFileHandle(name, { create: true });
  const open = file.createSyncAccessHandle?.bind(file);
  if (open === undefined) throw new Error(`${name}: only a worker can write to it`);
  return retryWhileLocked(open);
}

/** Opens a file to read it, which others may do at the same time. */
export async function openSyncToRead(file: FileHandle): Promise<SyncFile> {
  const open = file.createSyncAccessHandle?.bind(file, { mode: "read-only" });
  if (open === undefined) throw new Error(`${file.name}: only a worker can open it`);
  return retryWhileLocked(open);
}

/** Bytes `start..end`, fewer at the end of the file, in `bytes`. */
export function readSync(
  file: SyncFile,
  start: number,
  end: number,
  bytes = new Uint8Array(end - start),
): Uint8Array<ArrayBuffer> {
  let length = 0;
  while (length < bytes.length) {
    const read = file.read(bytes.subarray(length), { at: start + length });
    if (read === 0) break;
    // Of a file that was removed, Chromium's private windows give a negative number as a very large one.
    if (read > bytes.length - length) throw new Error("the file cannot be read: it may have been removed");
    length += read;
  }
  return bytes.subarray(0, length);
}

/** Writes all bytes or fails with `storage-full`. The write itself is done when the promise is returned. */
export async function writeSync(
  file: SyncFile,
  path: string,
  start: number,
  bytes: Uint8Array,
): Promise<void> {
  const written = file.write(bytes, { at: start });
  // Chromium's private windows report more written bytes than there was room for.
  const size = await file.getSize();
  if (written !== bytes.length || size < start + bytes.length) {
    throw storageFull(path, `${bytes.length} bytes at ${start} did not fit`);
  }
}

/** Renames a file within its folder, replacing any other. */
export async function renameFile(folder: FileSystemDirectoryHandle, from: string, to: string): Promise<void> {
  const file: FileHandle = await folder.getFileHandle(from);
  const move = file.move?.bind(file, folder, to);
  if (move === undefined) return copyFile(folder, from, to);
  try {
    await retryWhileLocked(move);
  } catch (thrown) {
    // Some browsers do not replace an existing file.
    if (!(await removeFile(folder, to))) throw thrown;
    await retryWhileLocked(move);
  }
}

/** Removes a file; `false` if it did not exist. */
export async function removeFile(folder: FileSystemDirectoryHandle, name: string): Promise<boolean> {
  try {
    await retryWhileLocked(() => folder.removeEntry(name));
    return true;
  } catch (thrown) {
    if (isMissing(thrown)) return false;
    throw thrown;
  }
}

/** Copies and removes a file, for browsers without a rename. */
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
