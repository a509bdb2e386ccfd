/** One tab or worker at a time changes a model. The browser frees a lock whose holder ends, however that happens. */

import type { WithLock } from "./storage.js";

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
