/** How much a browser lets a page keep. */

import { SetunError } from "../errors.js";

/** What a browser tells of its room, in bytes; both are estimates. */
export interface StorageEstimate {
  readonly quota: number;
  readonly usage: number;
}

/** What the estimate may be wrong by, as a share of what is to be written: the write itself decides. */
const TOLERANCE = 0.05;

/** Asks the browser not to clear the store when the disk gets full; `false` if it does not promise that. Only pages may ask; where the browser asks the user, the answer may never come. */
export async function requestPersistence(): Promise<boolean> {
  try {
    const { storage } = navigator;
    return (await storage.persisted()) || (await storage.persist());
  } catch {
    return false;
  }
}

/** The room that a browser tells of; `undefined` if it does not. */
export async function storageEstimate(): Promise<StorageEstimate | undefined> {
  try {
    const { quota, usage } = await navigator.storage.estimate();
    return quota === undefined ? undefined : { quota, usage: usage ?? 0 };
  } catch {
    return undefined;
  }
}

/** Bytes that lack for `bytes` more; 0 if they fit, as far as one can tell. */
export function missingBytesFor(bytes: number, found: StorageEstimate | undefined): number {
  if (found === undefined) return 0;
  const missing = bytes - Math.max(0, found.quota - found.usage);
  return missing > TOLERANCE * bytes ? missing : 0;
}

/**
 * Ends early what cannot go well: `bytes` of `what` are still to be written.
 *
 * @throws {SetunError} `storage-full`
 */
export async function checkQuota(what: string, bytes: number): Promise<void> {
  const missing = missingBytesFor(bytes, await storageEstimate());
  if (missing > 0)
    throw storageFull(what, `${bytes} bytes are still to be written, ${missing} more than it gives`);
}

/** The browser gives no more room: `what` was to be written, `detail` says how much of it. */
export function storageFull(what: string, detail: string, cause?: unknown): SetunError {
  const way = "delete models (`models.list`, `models.delete`), or load with `store: false`";
  const message = `no room for ${what} in the browser's storage: ${detail}; what is there is kept; ${way}`;
  return new SetunError("storage-full", message, cause === undefined ? undefined : { cause });
}
