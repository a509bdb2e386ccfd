/**
 * Thread workers of a threaded build, which the page starts for its worker.
 *
 * Firefox 153 sometimes stops workers that start workers.
 */

import type { ThreadMessage } from "./worker.js";

/** Request of the worker for thread workers, one for each source. */
export interface ThreadsWanted {
  readonly type: "setun-start-threads";
  /** Where each thread gets the module and the memory, which the page never receives: it would keep them. */
  readonly sources: readonly MessagePort[];
  /** Port for a {@link ThreadsStarted}. */
  readonly reply: MessagePort;
}

/** The answer: all threads are ready, or the reason of a failure. */
export interface ThreadsStarted {
  readonly failure?: string;
}

type ThreadAnswer =
  | { readonly type: "setun-thread-ready" }
  | { readonly type: "setun-thread-failed"; readonly message: string };

/** Starts the workers of a pool and answers. After a failure none is left. */
export async function startThreads(
  { sources, reply }: ThreadsWanted,
  startWorker: () => Worker,
  threads: Worker[],
): Promise<void> {
  const started = sources.map((source) => {
    const worker = startWorker();
    threads.push(worker);
    return startThread(worker, source);
  });
  let answer: ThreadsStarted = {};
  try {
    await Promise.all(started);
  } catch (thrown) {
    for (const worker of threads.splice(0)) worker.terminate();
    answer = { failure: (thrown as Error).message };
  }
  reply.postMessage(answer);
}

function startThread(worker: Worker, source: MessagePort): Promise<void> {
  return new Promise((resolve, reject) => {
    worker.addEventListener("error", ({ message }) =>
      reject(new Error(message || "no thread could be started")),
    );
    worker.addEventListener("message", ({ data }: MessageEvent<ThreadAnswer>) => {
      if (data.type === "setun-thread-ready") resolve();
      else reject(new Error(data.message));
    });
    worker.postMessage({ type: "setun-thread", source } satisfies ThreadMessage, [source]);
  });
}
