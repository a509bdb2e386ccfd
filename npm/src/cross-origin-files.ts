/** Cross-Origin Storage for a worker, which asks its page. */

import type { CrossOriginWanted } from "./cross-origin-page.js";

/** Files that all sites of a browser share, by their SHA-256. */
export interface CrossOriginFiles {
  /** All of the files; `undefined` if one is missing, or the browser or its user refuses them. */
  find(digests: readonly string[], signal: AbortSignal): Promise<readonly Blob[] | undefined>;
  /** Stores files. Returns whether the browser has taken them all. */
  store(digests: readonly string[], files: readonly Blob[], signal: AbortSignal): Promise<boolean>;
}

/** The files of the page that has started this worker. */
export const filesOfPage: CrossOriginFiles = {
  find: (digests, signal) => askPage({ digests }, signal),
  store: async (digests, files, signal) => (await askPage({ digests, files }, signal)) !== undefined,
};

/** The used part of a worker's global scope. TypeScript's own types conflict with the page's. */
interface WorkerScope {
  postMessage(message: CrossOriginWanted, transfer: readonly MessagePort[]): void;
}

/** The answer of the page; `undefined` if the signal aborts first, as a page that has ended the load gives none. */
function askPage(
  question: Pick<CrossOriginWanted, "digests" | "files">,
  signal: AbortSignal,
): Promise<readonly Blob[] | undefined> {
  const { port1, port2: reply } = new MessageChannel();
  return new Promise((resolve) => {
    const end = (found: readonly Blob[] | undefined) => {
      signal.removeEventListener("abort", abort);
      port1.close();
      resolve(found);
    };
    const abort = () => end(undefined);
    port1.onmessage = ({ data }: MessageEvent<readonly Blob[] | undefined>) => end(data);
    if (signal.aborted) return abort();
    signal.addEventListener("abort", abort, { once: true });
    const message = { type: "setun-cross-origin", ...question, reply } as const;
    (globalThis as unknown as WorkerScope).postMessage(message, [reply]);
  });
}
