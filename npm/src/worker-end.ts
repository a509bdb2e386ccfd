/**
 * The end of a worker, which no event reports.
 *
 * A worker holds a lock (Web Locks) as long as it lives, and the page waits for it.
 */

/** Request of the page that the worker hold a lock. */
export interface HoldLock {
  readonly type: "setun-hold";
  readonly lock: string;
}

/** Answer of the worker, which holds the lock. */
export interface LockHeld {
  readonly type: "setun-held";
}

/**
 * Has a worker hold a lock, and calls `ended` when the worker is no more. Without locks, as on insecure pages, it is
 * never called. Returns a function that ends the watch. The page's request refers to the worker until then: Firefox
 * collects workers that nothing refers to, even while they wait for the private file system.
 */
export function watchWorker(worker: Worker, ended: () => void): () => void {
  const locks = globalThis.navigator?.locks;
  if (locks === undefined) return () => undefined;
  const watch = new AbortController();
  const { signal } = watch;
  const lock = `setun-worker-${crypto.randomUUID()}`;
  const wait = ({ data }: MessageEvent<LockHeld | { type: unknown }>) => {
    if (data.type !== "setun-held") return;
    worker.removeEventListener("message", wait);
    // An aborted watch rejects.
    locks.request(lock, { signal }, () => signal.aborted || ended()).catch(() => undefined);
  };
  worker.addEventListener("message", wait, { signal });
  worker.postMessage({ type: "setun-hold", lock } satisfies HoldLock);
  return () => watch.abort();
}

/** Holds a lock until this worker ends. */
export function holdLock({ lock }: HoldLock, answer: (held: LockHeld) => void): void {
  const forever = new Promise<void>(() => undefined);
  navigator.locks
    .request(lock, () => {
      answer({ type: "setun-held" });
      return forever;
    })
    .catch(() => undefined);
}
