/**
 * Cross-Origin Storage on a page: files that all sites of a browser share, by their SHA-256.
 *
 * It follows the explainer of the Web Incubator Community Group as of March 2026: workers have no access to it, so a page
 * answers for its workers, and a request finds all of its files or none.
 */

/** The part of `navigator.crossOriginStorage` that is used. */
interface CrossOriginStorageManager {
  requestFileHandles(
    hashes: readonly { readonly algorithm: string; readonly value: string }[],
    options?: { readonly create?: boolean },
  ): Promise<FileSystemFileHandle[]>;
}

/** What a worker asks its page. */
export interface CrossOriginWanted {
  readonly type: "setun-cross-origin";
  /** SHA-256 of each file. */
  readonly digests: readonly string[];
  /** The files to store; absent to find them. */
  readonly files?: readonly Blob[];
  /** Port for the files, or for `undefined` after a refusal. */
  readonly reply: MessagePort;
}

/** Whether this page has the API. */
export function hasCrossOriginStorage(): boolean {
  return manager() !== undefined;
}

/** All files with these SHA-256; `undefined` if one is missing, or the browser or its user refuses them. */
export function findShared(digests: readonly string[]): Promise<readonly Blob[] | undefined> {
  return findFiles(digests).catch(() => undefined);
}

/** Answers a worker. A refusal of the browser or of its user is no error: the origin's own store is used then. */
export async function answerCrossOrigin({ digests, files, reply }: CrossOriginWanted): Promise<void> {
  const work = files === undefined ? findFiles(digests) : storeFiles(digests, files);
  reply.postMessage(await work.catch(() => undefined));
}

async function findFiles(digests: readonly string[]): Promise<readonly Blob[] | undefined> {
  const handles = await manager()?.requestFileHandles(digests.map(hashOf));
  return handles && Promise.all(handles.map((handle) => handle.getFile()));
}

/** Handles for writing cannot be read. A browser refuses bytes that do not have the hash. */
async function storeFiles(
  digests: readonly string[],
  files: readonly Blob[],
): Promise<readonly Blob[] | undefined> {
  const handles = await manager()?.requestFileHandles(digests.map(hashOf), { create: true });
  for (const [index, handle] of (handles ?? []).entries()) {
    const writable = await handle.createWritable();
    await writable.write(files[index] as Blob);
    await writable.close();
  }
  return handles && files;
}

function hashOf(value: string): { readonly algorithm: string; readonly value: string } {
  return { algorithm: "SHA-256", value };
}

function manager(): CrossOriginStorageManager | undefined {
  const host = globalThis.navigator as { crossOriginStorage?: CrossOriginStorageManager } | undefined;
  const found = host?.crossOriginStorage;
  return typeof found?.requestFileHandles === "function" ? found : undefined;
}
