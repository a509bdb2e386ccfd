/** The storage of this browser: the origin private file system or the Cache API. */

import { CacheStorageOfModels } from "./cache-storage.js";
import { OpfsStorage } from "./opfs.js";
import type { Storage, WithLock } from "./storage.js";
import { canWriteParts } from "./sync-files.js";

/** Name of the cache. */
const CACHE = "setun";

/**
 * The origin private file system (OPFS) if it has synchronous access, else the Cache API; `undefined` without either.
 * The page's thread cannot write to OPFS, so it uses the storage that workers have used.
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

/** Runs `work`; `undefined` if the browser lacks the API or refuses it, as in some private windows. */
async function allowed<Result>(work: () => Promise<Result>): Promise<Result | undefined> {
  try {
    return await work();
  } catch {
    return undefined;
  }
}

/** {@link WithLock} by Web Locks. Without them `work` runs at once. */
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
    // Some browsers reject with an error of their own instead of the signal's reason.
    throw !isHeld && signal.aborted ? signal.reason : thrown;
  }
};
