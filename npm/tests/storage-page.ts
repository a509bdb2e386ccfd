/** Store functions for a test page, and its workers. */

import { openStorage, withLock } from "../src/store/browser-storage.js";
import { modelsOn } from "../src/store/models.js";
import { requestPersistence, storageEstimate } from "../src/store/quota.js";
import type { Task } from "./storage-worker.js";

/** Firefox collects, and so ends, a worker that nothing refers to while it waits for the private file system. */
const workers: Worker[] = [];

/** A worker and its answer. `refused` resolves when a file that it asked for was locked. */
function start(task: Task): { worker: Worker; answer: Promise<unknown>; refused: Promise<void> } {
  const worker = new Worker("./storage-worker.js", { type: "module" });
  workers.push(worker);
  let refuse = () => {};
  const refused = new Promise<void>((resolve) => {
    refuse = resolve;
  });
  const answer = new Promise((resolve, reject) => {
    worker.addEventListener("error", ({ message }) => reject(new Error(message)));
    worker.addEventListener("message", ({ data }) => {
      if ("refused" in data) refuse();
      else if ("failure" in data) reject(new Error(data.failure));
      else resolve(data.result);
    });
  });
  worker.postMessage(task);
  return { worker, answer, refused };
}

async function ask(task: Task): Promise<unknown> {
  const { worker, answer } = start(task);
  return answer.finally(() => worker.terminate());
}

/** Resolves when somebody waits for the lock of a model. */
async function lockIsAwaited(): Promise<void> {
  for (;;) {
    const { pending = [] } = await navigator.locks.query();
    if (pending.length > 0) return;
  }
}

const models = modelsOn({ openStorage, withLock, baseUrl: () => document.baseURI });
Object.assign(globalThis, {
  setun: { start, ask, lockIsAwaited, models, openStorage, requestPersistence, storageEstimate, withLock },
});
