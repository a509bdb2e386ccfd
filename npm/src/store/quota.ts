/** Storage quota and persistence. */

import { SetunError } from "../errors.js";

/** Quota and usage in bytes; both are estimates. */
export interface StorageEstimate {
  readonly quota: number;
  readonly usage: number;
}

/** Accepted error of the estimate, as a fraction of the required bytes. The write itself decides. */
const TOLERANCE = 0.05;

/**
 * Asks the browser not to evict the store; `false` if it refuses. Only pages may ask, and a permission prompt may
 * stay open.
 */
export async function requestPersistence(): Promise<boolean> {
  try {
    const { storage } = navigator;
    return (await storage.persisted()) || (await storage.persist());
  } catch {
    return false;
  }
}

/** The browser's estimate; `undefined` if it has none. */
export async function storageEstimate(): Promise<StorageEstimate | undefined> {
  try {
    const { quota, usage } = await navigator.storage.estimate();
    return quota === undefined ? undefined : { quota, usage: usage ?? 0 };
  } catch {
    return undefined;
  }
}

/** Bytes that are missing for `bytes` more; 0 if they fit within the tolerance. */
export function missingBytesFor(bytes: number, found: StorageEstimate | undefined): number {
  if (found === undefined) return 0;
  const missing = bytes - Math.max(0, found.quota - found.usage);
  return missing > TOLERANCE * bytes ? missing : 0;
}

/**
 * Fails early if `bytes` of `what` do not fit.
 *
 * @throws {SetunError} `storage-full`
 */
export async function checkQuota(what: string, bytes: number): Promise<void> {
  const missing = missingBytesFor(bytes, await storageEstimate());
  if (missing > 0)
    throw storageFull(what, `${bytes} bytes are still to be written, ${missing} more than it gives`);
}

/** The error of a full storage: `what` was to be written, `detail` says how much. */
export function storageFull(what: string, detail: string, cause?: unknown): SetunError {
  const way =
    "delete models (`models.list`, `models.delete`), leave a private window, which has less, or load with `store: false`";
  const message = `no room for ${what} in the browser's storage: ${detail}; stored files stay; ${way}`;
  return new SetunError("storage-full", message, cause === undefined ? undefined : { cause });
}
