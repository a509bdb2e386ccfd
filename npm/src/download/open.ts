/** Opens models in a worker: what is downloaded is kept where the browser has a store. */

import { type OpenSource, openStreamed } from "../open-model.js";
import { isDownload } from "../sources.js";
import { withLock } from "../store/locks.js";
import { openStorage } from "../store/open-storage.js";
import { Unkeepable } from "./faults.js";
import { openKept } from "./keep.js";

export const openModel: OpenSource = async (source, coming, signal) => {
  if (!isDownload(source)) return openStreamed(source, coming, signal);
  const storage = coming.store ? await openStorage() : undefined;
  if (storage === undefined) return openStreamed(source, coming, signal);
  try {
    return await openKept(source, coming, { storage, withLock }, signal);
  } catch (thrown) {
    if (!(thrown instanceof Unkeepable)) throw thrown;
    console.warn(`setun: the model is not kept: ${thrown.message}`);
    return openStreamed(source, coming, signal);
  }
};
