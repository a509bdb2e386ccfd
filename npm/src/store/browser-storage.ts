/** Which of a browser's storages models are kept in. */

import { CacheStorageOfModels } from "./cache-storage.js";
import { OpfsStorage } from "./opfs.js";
import type { Storage, WithLock } from "./storage.js";
import { canWriteParts } from "./sync-files.js";

/** The name of our cache. */
const CACHE = "setun";

/**
 * The origin's private file system where it can be written piece by piece, else the Cache API; `undefined` where there
 * is neither. The page's own thread cannot write to the first, and takes the one that workers have kept something in.
 */
export async function openStorage(): Promise<Storage | undefined> {
  const opfs = await openOpfs();
  const isOnPage = typeof document !== "undefined";
  const takesOpfs = isOnPage ? (await isUsed(opfs)) || !(await hasCache()) : canWriteParts();
  return takesOpfs && opfs !== undefined ? opfs : openCache();
}

async function openOpfs(): Promise<OpfsStorage | undefined> {
  return allowed(async () => new OpfsStorage(await navigator.storage.getDirectory()));
}

async function isUsed(opfs: OpfsStorage | undefined): Promise<boolean> {
  return (await allowed(async () => opfs?.isUsed())) ?? false;
}

async function hasCache(): Promise<boolean> {
  return (await allowed(() => caches.has(CACHE))) ?? false;
}

async function openCache(): Promise<Storage | undefined> {
  return allowed(async () => new CacheStorageOfModels(await caches.open(CACHE)));
}

/** `undefined` for what a browser lacks, or refuses: in some private windows it has names for what it does not do. */
async function allowed<Result>(work: () => Promise<Result>): Promise<Result | undefined> {
  try {
    return await work();
  } catch {
    return undefined;
  }
}

/** {@link WithLock} with Web Locks; where a browser has none, `work` runs at once. */
export const withLock: WithLock = async (model, signal, work) => {
  signal.throwIfAborted();
  const locks: LockManager | undefined = navigator.locks;
  if (locks === undefined) return work();
  let isHeld = false;
  const run = () => {
    isHeld = true;
    return work();
  };
  try {
    return await locks.request(`setun:${model}`, { signal }, run);
  } catch (thrown) {
    // Some browsers reject with an error of their own in place of the signal's reason.
    throw !isHeld && signal.aborted ? signal.reason : thrown;
  }
};
